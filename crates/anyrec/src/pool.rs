//! Threads for work within one call.
//!
//! They start when they are first needed and belong to one process: a forked child, which has none
//! of its parent's threads, starts its own.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicPtr, Ordering};

struct OfProcess {
    process: u32,
    threads: ThreadPool,
}

/// No lock: a child forked while another thread holds one would wait for ever.
static POOL: AtomicPtr<OfProcess> = AtomicPtr::new(std::ptr::null_mut());

/// Calls `work` with 0, 1, ... `workers - 1`, side by side, and waits for all of them. One of the
/// calls is made by this thread.
pub(crate) fn side_by_side(workers: usize, work: impl Fn(usize) + Sync) {
    match (workers, pool()) {
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

/// Does something while the caller goes on; not at all where threads cannot be started.
pub(crate) fn in_background(work: impl FnOnce() + Send + 'static) {
    if let Some(pool) = pool() {
        pool.spawn(work);
    }
}

/// This process's pool; none where threads cannot be started.
fn pool() -> Option<&'static ThreadPool> {
    let process = crate::process::generation();
    let current = POOL.load(Ordering::Acquire);
    // SAFETY: the pointer is null or comes from `Box::into_raw` below, and is never freed.
    if let Some(of_process) = unsafe { current.as_ref() }.filter(|pool| pool.process == process) {
        return Some(&of_process.threads);
    }
    let threads = ThreadPoolBuilder::new().thread_name(|_| "anyrec-batch".to_owned()).build().ok()?;
    let made = Box::into_raw(Box::new(OfProcess { process, threads }));
    match POOL.compare_exchange(current, made, Ordering::AcqRel, Ordering::Acquire) {
        // The parent's pool stays where it is: its threads are not there to be ended.
        // SAFETY: `made` was made just now and is never freed from here on.
        Ok(_) => unsafe { made.as_ref() }.map(|pool| &pool.threads),
        Err(_) => {
            // SAFETY: nobody has seen it: another thread was faster.
            drop(unsafe { Box::from_raw(made) });
            pool()
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
}
