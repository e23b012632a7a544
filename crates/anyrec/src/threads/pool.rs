//! Threads for parallel work within one call.
//!
//! They start when first needed and belong to one process: a forked child, which has none of its
//! parent's threads, starts its own.

use super::fork::PerProcess;
use super::spawn::spawn;
use crate::base::{Error, ErrorKind, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

static POOL: PerProcess<ThreadPool> = PerProcess::new();
static BACKGROUND: PerProcess<Sender<Work>> = PerProcess::new();

type Work = Box<dyn FnOnce() + Send>;

/// Calls `work` with 0, 1, ... `workers - 1` in parallel, and waits for all calls. This thread
/// makes one of the calls.
pub(crate) fn side_by_side(workers: usize, work: impl Fn(usize) + Sync) {
    match (workers, POOL.get(start_pool)) {
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

/// Runs `work` on each piece in parallel. Returns the pieces, or the error of the first piece that
/// failed.
///
/// # Errors
/// As `work`; a panic in it is [`ErrorKind::Internal`].
pub(crate) fn each_side_by_side<T: Send>(
    pieces: Vec<T>,
    work: impl Fn(&mut T) -> Result<()> + Sync,
) -> Result<Vec<T>> {
    let pieces = Pieces::new(pieces);
    side_by_side(pieces.0.len(), |worker| pieces.work_on(worker, &work));
    pieces.done()
}

/// Like [`each_side_by_side`], with a new thread for each piece. For work that waits, where more
/// pieces can be in progress than there are cores.
///
/// # Errors
/// As [`each_side_by_side`].
pub(crate) fn each_on_a_thread<T: Send>(
    pieces: Vec<T>,
    work: impl Fn(&mut T) -> Result<()> + Sync,
) -> Result<Vec<T>> {
    let pieces = Pieces::new(pieces);
    std::thread::scope(|scope| {
        for number in 0..pieces.0.len() {
            let (pieces, work) = (&pieces, &work);
            let thread = std::thread::Builder::new().name("anyrec-read".to_owned());
            if thread.spawn_scoped(scope, move || pieces.work_on(number, work)).is_err() {
                pieces.work_on(number, work);
            }
        }
    });
    pieces.done()
}

/// Pieces of work, and the result of each. Each lock is taken once, by one thread.
struct Pieces<T>(Vec<Mutex<(T, Result<()>)>>);

impl<T> Pieces<T> {
    fn new(pieces: Vec<T>) -> Self {
        Pieces(pieces.into_iter().map(|piece| Mutex::new((piece, Ok(())))).collect())
    }

    fn work_on(&self, number: usize, work: &impl Fn(&mut T) -> Result<()>) {
        let Some(piece) = self.0.get(number) else { return };
        let mut piece = piece.lock().unwrap_or_else(PoisonError::into_inner);
        let (piece, outcome) = &mut *piece;
        *outcome = caught(|| work(piece));
    }

    fn done(self) -> Result<Vec<T>> {
        let done = |piece: Mutex<(T, Result<()>)>| {
            let (piece, outcome) = piece.into_inner().unwrap_or_else(PoisonError::into_inner);
            outcome.map(|()| piece)
        };
        self.0.into_iter().map(done).collect()
    }
}

/// Runs work in the background, in the order of the calls. If no thread can be started, the work
/// runs before this returns.
///
/// It uses its own thread, which sleeps when there is nothing to do. The pool's threads spin for a
/// while before they sleep, and on few cores they would take the time from the caller.
pub(crate) fn in_background(work: impl FnOnce() + Send + 'static) {
    let sent = match BACKGROUND.get(start_background) {
        Some(background) => background.send(Box::new(work)).map_err(|unsent| unsent.0),
        None => Err(Box::new(work) as Work),
    };
    if let Err(work) = sent {
        work();
    }
}

/// Runs work and turns a panic into an error: a thread that waits for the result must get one.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let why = panic.downcast_ref::<&str>().copied();
        let why =
            why.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given");
        Err(Error::new(ErrorKind::Internal, format!("a thread panicked, which is a bug in anyrec: {why}")))
    })
}

fn start_pool() -> Option<ThreadPool> {
    ThreadPoolBuilder::new().thread_name(|_| "anyrec-batch".to_owned()).build().ok()
}

fn start_background() -> Option<Sender<Work>> {
    let (sender, work): (_, Receiver<Work>) = channel();
    let background = move || {
        for work in work {
            // A panic must not prevent the next work from running.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    };
    spawn("anyrec-ahead", background).ok()?.detach();
    Some(sender)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

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
