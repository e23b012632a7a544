//! Threads for work within one call.
//!
//! They start when they are first needed and belong to one process: a forked child, which has none
//! of its parent's threads, starts its own.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// What belongs to one process.
struct OfProcess<T> {
    process: u32,
    threads: T,
}

/// No lock: a child forked while another thread holds one would wait for ever.
type Slot<T> = AtomicPtr<OfProcess<T>>;

static POOL: Slot<ThreadPool> = Slot::new(std::ptr::null_mut());
static BACKGROUND: Slot<Sender<Work>> = Slot::new(std::ptr::null_mut());

type Work = Box<dyn FnOnce() + Send>;

/// Calls `work` with 0, 1, ... `workers - 1`, side by side, and waits for all of them. One of the
/// calls is made by this thread.
pub(crate) fn side_by_side(workers: usize, work: impl Fn(usize) + Sync) {
    match (workers, this_process(&POOL, start_pool)) {
        (2.., Some(pool)) => pool.in_place_scope(|scope| {
            for worker in 1..workers {
                let work = &work;
                scope.spawn(move |_| work(worker));
            }
            work(0);
        }),
        _ => (0..workers).for_each(work),
    }
}

/// Does something while the caller goes on, in the order in which it was asked for; before that where
/// no thread can be started.
///
/// By a thread of its own, which sleeps when there is nothing to do. The pool's threads look out for
/// more for a while, and on few cores take from the caller what it was to be spared.
pub(crate) fn in_background(work: impl FnOnce() + Send + 'static) {
    let sent = match this_process(&BACKGROUND, start_background) {
        Some(background) => background.send(Box::new(work)).map_err(|unsent| unsent.0),
        None => Err(Box::new(work) as Work),
    };
    if let Err(work) = sent {
        work();
    }
}

fn start_pool() -> Option<ThreadPool> {
    ThreadPoolBuilder::new().thread_name(|_| "anyrec-batch".to_owned()).build().ok()
}

fn start_background() -> Option<Sender<Work>> {
    let (sender, work): (_, Receiver<Work>) = channel();
    let background = move || {
        for work in work {
            // One that panics must not keep the next from being done.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    };
    std::thread::Builder::new().name("anyrec-ahead".to_owned()).spawn(background).ok()?;
    Some(sender)
}

/// This process's threads, started if there are none; none where they cannot be.
fn this_process<T: Sync>(slot: &'static Slot<T>, start: fn() -> Option<T>) -> Option<&'static T> {
    let process = crate::process::generation();
    let current = slot.load(Ordering::Acquire);
    // SAFETY: the pointer is null or comes from `Box::into_raw` below, and is never freed.
    if let Some(of_process) = unsafe { current.as_ref() }.filter(|found| found.process == process) {
        return Some(&of_process.threads);
    }
    let made = Box::into_raw(Box::new(OfProcess { process, threads: start()? }));
    match slot.compare_exchange(current, made, Ordering::AcqRel, Ordering::Acquire) {
        // The parent's threads stay where they are: they are not there to be ended.
        // SAFETY: `made` was made just now and is never freed from here on.
        Ok(_) => unsafe { made.as_ref() }.map(|made| &made.threads),
        Err(_) => {
            // SAFETY: nobody has seen it: another thread was faster.
            drop(unsafe { Box::from_raw(made) });
            this_process(slot, start)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn every_worker_is_called_once() {
        for workers in [0, 1, 2, 7, 100] {
            let calls: Vec<AtomicUsize> = (0..workers).map(|_| AtomicUsize::new(0)).collect();
            side_by_side(workers, |worker| {
                calls[worker].fetch_add(1, Ordering::Relaxed);
            });
            assert!(calls.iter().all(|calls| calls.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn work_in_the_background_is_done_in_order_also_after_a_panic() {
        let (sender, done) = channel();
        for number in 0..10 {
            let sender = sender.clone();
            in_background(move || {
                sender.send(number).unwrap();
                assert_ne!(number, 3, "on purpose");
            });
        }
        drop(sender);
        assert_eq!(done.iter().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    }
}
