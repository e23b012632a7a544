//! Memory put by for the moment when there is no more.
//!
//! Rust ends the process where a small allocation fails, with nothing said about the file. Large ones
//! (records, blocks, arrays) are errors instead; to tell of such an error and to clean up takes a
//! little memory, and this is it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicPtr, Ordering};

/// What is put by, and the largest allocation that may draw on it.
const RESERVE: Layout = match Layout::from_size_align(2 << 20, 16) {
    Ok(layout) => layout,
    Err(_) => Layout::new::<u8>(),
};
const SMALL: usize = 128 << 10;

#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve(AtomicPtr::new(std::ptr::null_mut()));

/// The system's allocator, and a block of memory that is let go when that fails.
struct WithReserve(AtomicPtr<u8>);

/// Puts the memory by. Without it everything works as it would anyway.
pub fn put_by() {
    // SAFETY: the layout's size is not 0.
    let memory = unsafe { System.alloc(RESERVE) };
    ALLOCATOR.0.store(memory, Ordering::SeqCst);
}

impl WithReserve {
    /// Lets the memory go, if a small allocation failed and that was not done before.
    fn is_released(&self, size: usize) -> bool {
        if size > SMALL {
            return false;
        }
        let memory = self.0.swap(std::ptr::null_mut(), Ordering::SeqCst);
        if memory.is_null() {
            return false;
        }
        // SAFETY: `put_by` allocated it with this layout, and the swap gave it to this call alone.
        unsafe { System.dealloc(memory, RESERVE) };
        true
    }
}

// SAFETY: every call is handed to the system's allocator; one that failed may be made once more.
unsafe impl GlobalAlloc for WithReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() && self.is_released(layout.size()) {
            // SAFETY: as above.
            return unsafe { System.alloc(layout) };
        }
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        let memory = unsafe { System.alloc_zeroed(layout) };
        if memory.is_null() && self.is_released(layout.size()) {
            // SAFETY: as above.
            return unsafe { System.alloc_zeroed(layout) };
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        let grown = unsafe { System.realloc(memory, layout, size) };
        if grown.is_null() && self.is_released(size) {
            // SAFETY: as above; a `realloc` that failed left the old memory as it was.
            return unsafe { System.realloc(memory, layout, size) };
        }
        grown
    }
}
