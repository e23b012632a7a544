//! Threads that load the batches of (the rest of) an epoch ahead of the consumer.
//!
//! Each thread claims the next step, computes its record numbers and reads its batch on its own.
//! The lock is held to claim and to hand over, never while reading. The consumer takes the batches
//! in step order, whichever thread finished first. When fewer steps are left than there are
//! threads, idle threads help with the remaining ones.

use super::load::{Job, Load};
use crate::base::Result;
use crate::threads::fork::generation;
use crate::threads::{Thread, caught, spawn};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The result of a thread for a step.
type Outcome = Result<Load>;

/// How far ahead of the consumer the threads may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ahead {
    pub threads: usize,
    pub batches: u64,
    pub bytes: u64,
}

/// The threads of one iteration. Dropping it ends them.
pub(super) struct Run {
    shared: Arc<Shared>,
    threads: Vec<Thread>,
    /// Threads do not survive a fork.
    process: u32,
}

struct Shared {
    job: Arc<Job>,
    ahead: Ahead,
    epoch: u64,
    /// Number of samples consumed before the first step.
    begin: u64,
    steps: u64,
    progress: Mutex<Progress>,
    /// Signalled when there may be room for another claim.
    room: Condvar,
    /// Signalled when a batch is ready.
    ready: Condvar,
    /// Set while `progress` is locked, so that no thread begins to wait in between.
    stop: AtomicBool,
}

#[derive(Default)]
struct Progress {
    claimed: u64,
    delivered: u64,
    waiting: BTreeMap<u64, Outcome>,
    /// Total size of the waiting batches.
    bytes: u64,
    /// Size of the largest batch so far, the estimate for a batch being read.
    largest: u64,
}

impl Run {
    /// Starts threads for the steps of an epoch after `begin` samples.
    pub fn start(job: Arc<Job>, ahead: Ahead, epoch: u64, begin: u64) -> Result<Run> {
        let steps = job.plan.steps(begin);
        let shared = Arc::new(Shared {
            job,
            ahead,
            epoch,
            begin,
            steps,
            progress: Mutex::default(),
            room: Condvar::new(),
            ready: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let mut run = Run { shared, threads: Vec::new(), process: generation() };
        for _ in 0..(ahead.threads as u64).min(steps).min(ahead.batches) {
            let shared = Arc::clone(&run.shared);
            run.threads.push(spawn("anyrec-loader", move || shared.work())?);
        }
        Ok(run)
    }

    /// Whether the threads are in this process.
    pub fn is_ours(&self) -> bool {
        self.process == generation()
    }

    /// Number of batches that are ready.
    pub fn ready(&self) -> u64 {
        self.shared.lock().waiting.len() as u64
    }

    /// The next batch (`None` if it is not ready by the deadline), and how many were ready at first.
    pub fn next(&self, deadline: Option<Instant>) -> (Option<Outcome>, u64) {
        let mut progress = self.shared.lock();
        let ready = progress.waiting.len() as u64;
        loop {
            let step = progress.delivered;
            if let Some(outcome) = progress.waiting.remove(&step) {
                progress.delivered += 1;
                progress.bytes = progress.bytes.saturating_sub(size(&outcome));
                self.shared.room.notify_all();
                return (Some(outcome), ready);
            }
            progress = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return (None, ready),
                Some(left) => {
                    let waited = self.shared.ready.wait_timeout(progress, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.shared.ready.wait(progress).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.is_ours() {
            // The lock's memory exists in this process, but the thread that holds it does not.
            return;
        }
        let progress = self.shared.lock();
        self.shared.stop.store(true, Ordering::Relaxed);
        drop(progress);
        self.shared.room.notify_all();
        self.threads.clear();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of a thread: claims steps and loads them until none is left.
    fn work(&self) {
        while let Some((step, threads)) = self.claim() {
            let plan = &self.job.plan;
            let consumed = self.begin.saturating_add(plan.consumed(step));
            let outcome = caught(|| self.job.load(self.epoch, consumed, threads, &self.stop));
            let mut progress = self.lock();
            let size = size(&outcome);
            progress.bytes = progress.bytes.saturating_add(size);
            progress.largest = progress.largest.max(size);
            progress.waiting.insert(step, outcome);
            drop(progress);
            self.ready.notify_one();
        }
    }

    /// The next step, once there is room for its batch, and how many threads may work on it; `None`
    /// if there is nothing more to do.
    fn claim(&self) -> Option<(u64, usize)> {
        let mut progress = self.lock();
        loop {
            if self.stop.load(Ordering::Relaxed) || progress.claimed == self.steps {
                return None;
            }
            if progress.has_room(self.ahead) {
                let step = progress.claimed;
                progress.claimed += 1;
                return Some((step, threads_for(self.steps - step, self.ahead.threads)));
            }
            progress = self.room.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Progress {
    /// Whether another batch may be read ahead. The one that the consumer waits for always may.
    fn has_room(&self, ahead: Ahead) -> bool {
        let undelivered = self.claimed - self.delivered;
        let being_read = undelivered.saturating_sub(self.waiting.len() as u64);
        let bytes = being_read.saturating_add(1).saturating_mul(self.largest).saturating_add(self.bytes);
        undelivered == 0 || (undelivered < ahead.batches && bytes <= ahead.bytes)
    }
}

fn size(outcome: &Outcome) -> u64 {
    outcome.as_ref().map_or(0, |load| load.loaded.records.buffer().len() as u64)
}

/// Number of threads that may work on a step when this many are left: idle threads help.
fn threads_for(steps_left: u64, threads: usize) -> usize {
    let left = usize::try_from(steps_left).unwrap_or(usize::MAX);
    (threads / left.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::threads_for;

    #[test]
    fn threads_without_a_step_help_with_the_last_ones() {
        for (count, expected) in [(1, [1; 7]), (2, [1, 1, 1, 1, 1, 1, 2]), (5, [1, 1, 1, 1, 1, 2, 5])] {
            let threads: Vec<usize> = (1..=7).rev().map(|left| threads_for(left, count)).collect();
            assert_eq!(threads, expected, "{count} threads");
        }
    }
}
