//! Transforms several blocks in parallel and returns the results in order.
//!
//! A thread is started when a block is submitted and no thread is idle. Threads are joined when the
//! pipeline is dropped. The pipeline writes nothing: the owner takes the results, oldest first.

use super::transform::Chain;
use crate::base::{Error, Result};
use crate::threads::{Thread, caught, spawn};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// A block to transform, and the channel for the result.
type Job = (Vec<u8>, Sender<Result<Vec<u8>>>);

pub(super) struct Pipeline {
    chain: Arc<Chain>,
    parallelism: usize,
    /// `None` while being dropped, which ends the threads.
    jobs: Option<Sender<Job>>,
    queue: Arc<Mutex<Receiver<Job>>>,
    /// One receiver per block in flight, in submission order.
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

    /// Whether blocks need no transforming and none is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.chain.is_empty() && self.results.is_empty()
    }

    /// Whether a result must be taken before another block may be submitted. One block waits in
    /// addition to those being transformed, so that a thread that finishes can continue with it at
    /// once.
    pub(super) fn is_full(&self) -> bool {
        self.results.len() > self.parallelism
    }

    /// Submits a block.
    pub(super) fn submit(&mut self, block: Vec<u8>) -> Result<()> {
        let (sender, receiver) = channel();
        if self.parallelism == 1 || self.chain.is_empty() {
            // A thread would only add overhead.
            let _ = sender.send(self.chain.encode(block));
        } else {
            if self.threads.len() < self.parallelism.min(self.results.len() + 1) {
                self.start_thread()?;
            }
            if let Some(jobs) = &self.jobs {
                // The pipeline holds the receiver, so this does not fail.
                let _ = jobs.send((block, sender));
            }
        }
        self.results.push_back(receiver);
        Ok(())
    }

    /// Waits for the oldest block's result; `None` if no block is in flight.
    pub(super) fn next(&mut self) -> Option<Result<Vec<u8>>> {
        let receiver = self.results.pop_front()?;
        Some(receiver.recv().unwrap_or_else(|_| Err(died())))
    }

    /// The oldest block's result, if it is ready.
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
                // The receiver is gone if the writer was dropped.
                let _ = result.send(caught(|| chain.encode(block)));
            }
        };
        let thread = spawn("anyrec-grail-writer", work)?;
        self.threads.push(thread);
        Ok(())
    }
}

/// The error for a missing result: the transformer panicked and ended its thread.
fn died() -> Error {
    Error::invalid("a transformer panicked while transforming a block")
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.jobs = None;
        self.threads.clear();
    }
}
