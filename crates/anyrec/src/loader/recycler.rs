//! Batches to be filled again.

use crate::batch::Batch;
use std::sync::{Arc, Mutex, PoisonError};

/// Keeps the memory of batches that were used, for the next ones: large buffers cost more to get
/// from the system than to fill.
#[derive(Debug, Clone)]
pub struct Recycler {
    most: usize,
    free: Arc<Mutex<Vec<Batch>>>,
}

impl Recycler {
    /// Keeps at most that many batches.
    pub(super) fn new(most: usize) -> Self {
        Recycler { most, free: Arc::default() }
    }

    /// One like it that shares no lock with it.
    pub(super) fn renewed(&self) -> Self {
        Self::new(self.most)
    }

    /// An empty batch, with room if there is one to use again.
    pub(super) fn take(&self) -> Batch {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Gives a batch back, whatever it holds. Never waits: its memory is let go when another thread
    /// is at the list, which in a forked process may be for ever.
    pub fn give(&self, mut batch: Batch) {
        batch.clear();
        if let Ok(mut free) = self.free.try_lock()
            && free.len() < self.most
        {
            free.push(batch);
        }
    }
}
