//! Memory reserved for reporting that memory has run out.
//!
//! When a small allocation fails, Rust aborts the process without a message about the file. Large
//! allocations (records, blocks, arrays) return errors instead, but reporting such an error and
//! cleaning up needs a little memory. This reserve provides it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The size of the reserve, and the largest allocation that may draw on it.
const RESERVE: Layout = match Layout::from_size_align(2 << 20, 16) {
    Ok(layout) => layout,
    Err(_) => Layout::new::<u8>(),
};
const SMALL: usize = 512 << 10;

#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve(AtomicPtr::new(std::ptr::null_mut()));

/// The system allocator, with a reserve that is released when an allocation fails.
struct WithReserve(AtomicPtr<u8>);

/// Allocates the reserve. If that fails, the program runs without it.
pub fn put_by() {
    // SAFETY: the layout's size is not 0.
    let memory = unsafe { System.alloc(RESERVE) };
    ALLOCATOR.0.store(memory, Ordering::SeqCst);
}

impl WithReserve {
    /// Releases the reserve after a small allocation failed. Returns false if it was released
    /// before.
    fn is_released(&self, size: usize) -> bool {
        if size > SMALL {
            return false;
        }
        let memory = self.0.swap(std::ptr::null_mut(), Ordering::SeqCst);
        if memory.is_null() {
            return false;
        }
        // SAFETY: `put_by` allocated it with this layout, and the swap made this call its only
        // owner.
        unsafe { System.dealloc(memory, RESERVE) };
        true
    }
}

// SAFETY: every call is forwarded to the system allocator; a failed call may be made once more.
unsafe impl GlobalAlloc for WithReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc`.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() && self.is_released(layout.size()) {
            // SAFETY: as above.
            return unsafe { System.alloc(layout) };
        }
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        let memory = unsafe { System.alloc_zeroed(layout) };
        if memory.is_null() && self.is_released(layout.size()) {
            // SAFETY: as above.
            return unsafe { System.alloc_zeroed(layout) };
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `realloc`.
        let grown = unsafe { System.realloc(memory, layout, size) };
        if grown.is_null() && self.is_released(size) {
            // SAFETY: as above; a `realloc` that fails leaves the old memory unchanged.
            return unsafe { System.realloc(memory, layout, size) };
        }
        grown
    }
}
