//! Transformers at work on several blocks at once, results in order.
//!
//! Threads start when there is a block for them and none is idle, and are joined when the
//! pipeline is dropped. Nothing here is written: the owner takes the results, oldest first.

use super::transform::Chain;
use crate::base::{Error, Result};
use crate::threads::{Thread, caught, spawn};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// A block to transform, and where the result goes.
type Job = (Vec<u8>, Sender<Result<Vec<u8>>>);

pub(super) struct Pipeline {
    chain: Arc<Chain>,
    parallelism: usize,
    /// `None` while being dropped, which tells the threads to end.
    jobs: Option<Sender<Job>>,
    queue: Arc<Mutex<Receiver<Job>>>,
    /// One receiver per block in flight, in the order of submission.
    results: VecDeque<Receiver<Result<Vec<u8>>>>,
    threads: Vec<Thread>,
}

impl Pipeline {
    pub(super) fn new(chain: Chain, parallelism: usize) -> Self {
        let (jobs, queue) = channel();
        Pipeline {
            chain: Arc::new(chain),
            parallelism,
            jobs: Some(jobs),
            queue: Arc::new(Mutex::new(queue)),
            results: VecDeque::new(),
            threads: Vec::new(),
        }
    }

    /// Whether there is nothing to do to blocks, and none is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.chain.is_empty() && self.results.is_empty()
    }

    /// Whether no more block may be submitted before a result is taken. One waits beside those that
    /// are worked on: a thread that is done goes on with it, and not only when the owner comes by.
    pub(super) fn is_full(&self) -> bool {
        self.results.len() > self.parallelism
    }

    /// Adds a block.
    pub(super) fn submit(&mut self, block: Vec<u8>) -> Result<()> {
        let (sender, receiver) = channel();
        if self.parallelism == 1 || self.chain.is_empty() {
            // A thread of its own would only add the trouble.
            let _ = sender.send(self.chain.encode(block));
        } else {
            if self.threads.len() < self.parallelism.min(self.results.len() + 1) {
                self.start_thread()?;
            }
            if let Some(jobs) = &self.jobs {
                // The pipeline holds the other end: this does not fail.
                let _ = jobs.send((block, sender));
            }
        }
        self.results.push_back(receiver);
        Ok(())
    }

    /// The oldest block's result, waiting for it; `None` when no block is in flight.
    pub(super) fn next(&mut self) -> Option<Result<Vec<u8>>> {
        let receiver = self.results.pop_front()?;
        Some(receiver.recv().unwrap_or_else(|_| Err(died())))
    }

    /// The oldest block's result if it is there already.
    pub(super) fn next_if_ready(&mut self) -> Option<Result<Vec<u8>>> {
        let result = match self.results.front()?.try_recv() {
            Ok(result) => result,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(died()),
        };
        self.results.pop_front();
        Some(result)
    }

    fn start_thread(&mut self) -> Result<()> {
        let (chain, queue) = (Arc::clone(&self.chain), Arc::clone(&self.queue));
        let work = move || {
            loop {
                // One thread waits for work, the others for the lock.
                let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok((block, result)) = job else { break };
                // Nobody listens any more when the writer was dropped.
                let _ = result.send(caught(|| chain.encode(block)));
            }
        };
        let thread = spawn("anyrec-grail-writer", work)?;
        self.threads.push(thread);
        Ok(())
    }
}

/// The error for a result that never came: the transformer panicked and took its thread along.
fn died() -> Error {
    Error::invalid("a transformer panicked while transforming a block")
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.jobs = None;
        self.threads.clear();
    }
}
