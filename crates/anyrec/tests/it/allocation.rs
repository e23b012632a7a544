//! An allocator that remembers how much a thread held at most, and that can fail.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

pub struct Counting;

thread_local! {
    /// (held now, most held) since the last [`peak_of`] began, of this thread. A thread may free
    /// what another allocated, hence the sign.
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

thread_local! {
    /// Allocations of at least so many bytes are counted down, and the one at 0 fails.
    static FAILING: Cell<Option<(usize, u64)>> = const { Cell::new(None) };
}

/// Whether an allocation of that size is the one that shall fail.
fn fails(size: usize) -> bool {
    let count = |failing: &Cell<Option<(usize, u64)>>| match failing.get() {
        Some((least, 0)) if size >= least => {
            failing.set(None);
            true
        }
        Some((least, left)) if size >= least => {
            failing.set(Some((least, left - 1)));
            false
        }
        _ => false,
    };
    FAILING.try_with(count).unwrap_or(false)
}

/// Runs `work` with the `nth` allocation of at least that many bytes by this thread failing; says
/// whether there were as many.
pub fn with_failure<T>(least: usize, nth: u64, work: impl FnOnce() -> T) -> (T, bool) {
    FAILING.with(|failing| failing.set(Some((least, nth))));
    let result = work();
    (result, FAILING.with(|failing| failing.take().is_none()))
}

fn count(change: i64) {
    // A thread that is ending has no counters any more, and nothing to report.
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + change, most.max(now + change)));
    });
}

// SAFETY: every call is handed to the system's allocator unchanged, or fails; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails(layout.size()) {
            return std::ptr::null_mut();
        }
        count(layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if fails(size) {
            return std::ptr::null_mut();
        }
        // Old and new exist side by side while the bytes move.
        count(size as i64);
        count(-(layout.size() as i64));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Runs `work` and says how many bytes this thread held more than before, at most.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, u64) {
    HELD.with(|held| held.set((0, 0)));
    let result = work();
    (result, HELD.with(|held| held.get().1.max(0) as u64))
}

#[test]
fn the_counter_sees_an_allocation() {
    let (_, peak) = peak_of(|| drop(std::hint::black_box(vec![1u8; 1 << 20])));
    assert!((1 << 20..1 << 21).contains(&peak), "{peak}");
}
