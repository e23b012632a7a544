//! How fast a plan gives its indices, how much memory it takes for that, and how well its shuffles mix.
//!
//!     cargo run --release -p anyrec-bench-plan
//!
//! The second table takes 1,000,000 records sorted by 100 labels, the worst case for a block
//! shuffle, and looks at batches of 256. *From one block* is the share of a batch that lies within
//! 1024 records of another record of the batch, by number; *labels* is how many different ones a
//! batch has; *moved* is how far a record is from its place in the file on average, as a share of
//! the file (a third when every order is equally likely).
#![allow(clippy::cast_precision_loss)]

use anyrec::loader::{Plan, PlanOptions, Shuffle};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const BATCH: u64 = 256;

/// The system's allocator, and how many bytes were in use at once at most.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all is left to the system's allocator; counting changes nothing about the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let in_use = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(in_use, Ordering::Relaxed);
        // SAFETY: what the caller promises is what the system's allocator wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn plan(count: u64, shuffle: Shuffle) -> anyrec::Result<Plan> {
    let mut options = PlanOptions::default();
    (options.batch_size, options.shuffle, options.seed) = (BATCH, shuffle, 1);
    Plan::new(count, &options)
}

fn blocks(block: u64, window: u64) -> Shuffle {
    Shuffle::Blocks { block, window }
}

/// Indices a second, and the most bytes that the plan and a batch of indices took.
fn cost(count: u64, shuffle: Shuffle) -> anyrec::Result<(f64, usize)> {
    let before = IN_USE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let plan = plan(count, shuffle)?;
    let steps = 40_000.min(plan.steps(0));
    let mut batch = Vec::new();
    let begin = Instant::now();
    let mut sum = 0u64;
    for step in 0..steps {
        batch.clear();
        plan.fill(0, plan.consumed(step), &mut batch);
        sum = batch.iter().fold(sum, |sum, number| sum.wrapping_add(*number));
    }
    let rate = (steps * BATCH) as f64 / begin.elapsed().as_secs_f64();
    // Printing it keeps the work from being left out.
    std::hint::black_box(sum);
    Ok((rate, MOST.load(Ordering::Relaxed).saturating_sub(before) + size_of::<Plan>()))
}

fn quality(shuffle: Shuffle) -> anyrec::Result<(f64, f64, f64)> {
    const COUNT: u64 = 1_000_000;
    let plan = plan(COUNT, shuffle)?;
    let (mut near, mut labels, mut moved) = (0, 0, 0.0);
    let steps = COUNT / BATCH;
    for step in 0..steps {
        let mut batch = Vec::new();
        plan.fill(0, plan.consumed(step), &mut batch);
        for (place, number) in (plan.consumed(step)..).zip(&batch) {
            moved += number.abs_diff(place) as f64 / COUNT as f64;
        }
        batch.sort_unstable();
        let gaps: Vec<u64> = batch.windows(2).filter_map(|pair| Some(pair.last()? - pair.first()?)).collect();
        let close = |gap: Option<&u64>| gap.is_some_and(|gap| *gap < 1024);
        near += (0..batch.len())
            .filter(|at| close(gaps.get(*at)) || close(at.checked_sub(1).and_then(|at| gaps.get(at))))
            .count();
        labels += batch.iter().map(|number| number / (COUNT / 100)).collect::<HashSet<_>>().len();
    }
    let batches = steps as f64;
    let samples = batches * BATCH as f64;
    Ok((near as f64 / samples, labels as f64 / batches, moved / samples))
}

fn main() -> anyrec::Result<()> {
    println!("{:>34} {:>16} {:>20} {:>16}", "order", "records", "million indices/s", "bytes of memory");
    for count in [2_000_000, 1_000_000_000_000] {
        for shuffle in [Shuffle::None, Shuffle::Full, blocks(1024, 64)] {
            let (rate, memory) = cost(count, shuffle)?;
            println!("{:>34} {count:>16} {:>20.1} {memory:>16}", shuffle.to_string(), rate / 1e6);
        }
    }
    println!("\n{:>34} {:>16} {:>10} {:>10}", "order", "from one block", "labels", "moved");
    let shuffles = [16, 64, 256, 1000].map(|window| blocks(1024, window));
    for shuffle in
        [Shuffle::None, blocks(1024, 1), blocks(1024, 4)].into_iter().chain(shuffles).chain([Shuffle::Full])
    {
        let (near, labels, moved) = quality(shuffle)?;
        println!("{:>34} {:>15.0}% {labels:>10.1} {moved:>10.2}", shuffle.to_string(), near * 100.0);
    }
    Ok(())
}
