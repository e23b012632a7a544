//! An allocator that remembers how much a thread held at most.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

pub struct Counting;

thread_local! {
    /// (held now, most held) since the last [`peak_of`] began, of this thread. A thread may free
    /// what another allocated, hence the sign.
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

fn count(change: i64) {
    // A thread that is ending has no counters any more, and nothing to report.
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + change, most.max(now + change)));
    });
}

// SAFETY: every call is handed to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
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
