//! Work in numbered parts, done by several threads, with the results in order.
//!
//! Each thread takes the next part and sends the part's items one by one. Items are received part
//! by part, in order. The number of pending items is bounded: [`WAITING`] items of each part in
//! progress, and as many parts as there are threads.

use super::fork::generation;
use super::pool::caught;
use super::spawn::{Thread, spawn};
use crate::base::{Error, ErrorKind, Result};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of pending items per part.
const WAITING: usize = 4;

/// The next result.
#[derive(Debug)]
pub(crate) enum Next<T> {
    /// An item of the current part.
    Item(T),
    /// The current part has no more items.
    EndOfPart,
    /// The current part could not be finished. Nothing comes after it.
    Failed(Error),
    /// There are no more parts.
    End,
}

enum Message<T> {
    Item(T),
    End,
    Failed(Error),
}

/// Sends an item of a part to the consumer. Returns false if no more items are needed.
pub(crate) type Emit<'a, T> = &'a mut dyn FnMut(T) -> bool;

/// The parts in progress, and their results in order.
pub(crate) struct Ordered<T> {
    // Dropped in this order: senders find the channel closed, and the threads end before they are
    // joined.
    current: Option<Receiver<Message<T>>>,
    parts: Option<Receiver<Receiver<Message<T>>>>,
    threads: Vec<Thread>,
    process: u32,
}

/// The next part to take, and the channel for the receiver of its items. Both are under one lock,
/// so that receivers arrive in order.
struct Queue<T> {
    next: usize,
    parts: SyncSender<Receiver<Message<T>>>,
}

impl<T: Send + 'static> Ordered<T> {
    /// Starts up to `threads` threads on `parts` parts. `None` if no thread can be started.
    pub(crate) fn start(
        name: &str,
        threads: usize,
        parts: usize,
        work: impl Fn(usize, Emit<'_, T>) -> Result<()> + Send + Sync + 'static,
    ) -> Option<Self> {
        let (sender, receiver) = sync_channel(threads);
        let queue = Arc::new(Mutex::new(Queue { next: 0, parts: sender }));
        let work = Arc::new(work);
        let mut started = Vec::new();
        for _ in 0..threads.min(parts) {
            let (queue, work) = (Arc::clone(&queue), Arc::clone(&work));
            let run = move || while do_part(&queue, parts, &*work) {};
            match spawn(name, run) {
                Ok(thread) => started.push(thread),
                // The threads that could be started do all the work.
                Err(_) => break,
            }
        }
        let ordered =
            Ordered { current: None, parts: Some(receiver), threads: started, process: generation() };
        (!ordered.threads.is_empty()).then_some(ordered)
    }

    /// Waits for the next item, in order.
    pub(crate) fn next(&mut self) -> Next<T> {
        if self.process != generation() {
            return Next::Failed(Error::invalid("a scan on threads cannot continue in a forked process"));
        }
        loop {
            let Some(items) = &self.current else {
                match self.parts.as_ref().and_then(|parts| parts.recv().ok()) {
                    Some(items) => self.current = Some(items),
                    None => return Next::End,
                }
                continue;
            };
            let next = match items.recv() {
                Ok(Message::Item(item)) => return Next::Item(item),
                Ok(Message::End) => {
                    self.current = None;
                    return Next::EndOfPart;
                }
                Ok(Message::Failed(error)) => Next::Failed(error),
                Err(_) => Next::Failed(Error::new(ErrorKind::Internal, "a thread ended early")),
            };
            (self.current, self.parts) = (None, None);
            return next;
        }
    }
}

/// Takes the next part and processes it. Returns false if there is nothing left to do.
fn do_part<T>(
    queue: &Mutex<Queue<T>>,
    parts: usize,
    work: &impl Fn(usize, Emit<'_, T>) -> Result<()>,
) -> bool {
    let (part, sender) = {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        let part = queue.next;
        if part >= parts {
            return false;
        }
        queue.next += 1;
        let (sender, receiver) = sync_channel(WAITING);
        // Blocks here while enough parts are in progress, as does any thread that wants the lock.
        if queue.parts.send(receiver).is_err() {
            return false;
        }
        (part, sender)
    };
    let mut wanted = true;
    let done = caught(|| {
        work(part, &mut |item| {
            wanted = wanted && sender.send(Message::Item(item)).is_ok();
            wanted
        })
    });
    let last = match done {
        Ok(()) => Message::End,
        Err(error) => Message::Failed(error),
    };
    wanted && sender.send(last).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_in_the_order_of_their_parts_for_any_number_ofthreads() {
        for threads in [1, 2, 5] {
            let mut ordered = Ordered::start("test", threads, 20, |part, emit| {
                (0..part % 7).take_while(|&item| emit((part, item))).for_each(drop);
                Ok(())
            })
            .unwrap();
            for part in 0..20 {
                for item in 0..part % 7 {
                    assert!(matches!(ordered.next(), Next::Item(found) if found == (part, item)));
                }
                assert!(matches!(ordered.next(), Next::EndOfPart));
            }
            assert!(matches!(ordered.next(), Next::End));
        }
    }

    #[test]
    fn an_error_and_a_panic_come_after_the_items_before_them() {
        for panics in [false, true] {
            let mut ordered = Ordered::start("test", 2, 9, move |part, emit| {
                emit(part);
                assert!(part != 1 || !panics, "on purpose");
                if part == 1 { Err(Error::invalid("on purpose")) } else { Ok(()) }
            })
            .unwrap();
            assert!(matches!(ordered.next(), Next::Item(0)));
            assert!(matches!(ordered.next(), Next::EndOfPart));
            assert!(matches!(ordered.next(), Next::Item(1)));
            assert!(matches!(ordered.next(), Next::Failed(error) if error.message().contains("on purpose")));
            assert!(matches!(ordered.next(), Next::End));
        }
    }

    #[test]
    fn dropping_it_early_ends_thethreads() {
        let ordered = Ordered::start("test", 3, usize::MAX, |part, emit| {
            while emit(part) {}
            Ok(())
        });
        drop(ordered.unwrap());
    }
}
