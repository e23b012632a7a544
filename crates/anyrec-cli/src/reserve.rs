//! Memory reserved for reporting that memory has run out.
//!
//! When a small allocation fails, Rust aborts the process without a message about the file. Large
//! allocations (records, blocks, arrays) return errors instead, but reporting such an error and
//! cleaning up needs a little memory. This reserve provides it, in two parts. The first is released to the
//! system, so that it can be used again and again. Another thread may take it for a large allocation; the
//! second part is therefore handed out here, to small allocations only.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The size of each part.
const PART: Layout = match Layout::from_size_align(2 << 20, 4096) {
    Ok(layout) => layout,
    Err(_) => Layout::new::<u8>(),
};
/// The largest allocation that may draw on the reserve.
const SMALL: usize = 512 << 10;
/// Allocations up to this size may use all of the second part, larger ones leave this much of it.
const TINY: usize = 16 << 10;
const FOR_TINY: usize = 1 << 20;

#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve {
    released: AtomicPtr::new(std::ptr::null_mut()),
    kept: AtomicPtr::new(std::ptr::null_mut()),
    used: AtomicUsize::new(0),
};

/// The system allocator, with a reserve for small allocations that it refuses.
struct WithReserve {
    /// The part that is released when an allocation fails.
    released: AtomicPtr<u8>,
    /// The part that is handed out, and how much of it was.
    kept: AtomicPtr<u8>,
    used: AtomicUsize,
}

/// Allocates the reserve. If that fails, the program runs without it.
pub fn put_by() {
    for part in [&ALLOCATOR.released, &ALLOCATOR.kept] {
        // SAFETY: the layout's size is not 0.
        part.store(unsafe { System.alloc_zeroed(PART) }, Ordering::SeqCst);
    }
}

impl WithReserve {
    /// Releases the first part after a small allocation failed. Returns false if it was released before.
    fn release(&self, size: usize) -> bool {
        if size > SMALL {
            return false;
        }
        let memory = self.released.swap(std::ptr::null_mut(), Ordering::SeqCst);
        if !memory.is_null() {
            // SAFETY: `put_by` allocated it with this layout, and the swap made this call its only owner.
            unsafe { System.dealloc(memory, PART) };
        }
        !memory.is_null()
    }

    /// A piece of the second part, which is zeroed; null if there is none.
    fn take(&self, layout: Layout) -> *mut u8 {
        let begin = self.kept.load(Ordering::SeqCst);
        if begin.is_null() || layout.size() > SMALL || layout.align() > PART.align() {
            return std::ptr::null_mut();
        }
        let limit = if layout.size() > TINY { PART.size() - FOR_TINY } else { PART.size() };
        let place = |used: usize| used.next_multiple_of(layout.align());
        let grown = |used| Some(place(used) + layout.size()).filter(|&end| end <= limit);
        match self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, grown) {
            // SAFETY: the place and the size of the allocation lie within the part.
            Ok(used) => unsafe { begin.add(place(used)) },
            Err(_) => std::ptr::null_mut(),
        }
    }

    /// Whether memory is a piece of the second part.
    fn has(&self, memory: *mut u8) -> bool {
        let begin = self.kept.load(Ordering::Relaxed) as usize;
        begin != 0 && (memory as usize).wrapping_sub(begin) < PART.size()
    }
}

// SAFETY: every call is forwarded to the system allocator, once more if it fails, or served from the second
// part of the reserve, whose pieces are handed out once and stay valid until the process ends.
unsafe impl GlobalAlloc for WithReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc`.
        let mut memory = unsafe { System.alloc(layout) };
        if memory.is_null() && self.release(layout.size()) {
            // SAFETY: as above.
            memory = unsafe { System.alloc(layout) };
        }
        if memory.is_null() { self.take(layout) } else { memory }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        let mut memory = unsafe { System.alloc_zeroed(layout) };
        if memory.is_null() && self.release(layout.size()) {
            // SAFETY: as above.
            memory = unsafe { System.alloc_zeroed(layout) };
        }
        if memory.is_null() { self.take(layout) } else { memory }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if !self.has(memory) {
            // SAFETY: the caller upholds the contract of `dealloc`, and the memory is the system's.
            unsafe { System.dealloc(memory, layout) }
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !self.has(memory) {
            // SAFETY: the caller upholds the contract of `realloc`, and the memory is the system's.
            let grown = unsafe { System.realloc(memory, layout, size) };
            if !grown.is_null() {
                return grown;
            }
        }
        // SAFETY: the caller guarantees a valid size for this alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the caller guarantees that the size is not 0. Both parts are at least as long as what is
        // copied, and they do not overlap, because the new one was free.
        unsafe {
            let grown = self.alloc(wanted);
            if !grown.is_null() {
                grown.copy_from_nonoverlapping(memory, layout.size().min(size));
                self.dealloc(memory, layout);
            }
            grown
        }
    }
}
