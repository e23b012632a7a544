//! Batches to be filled again.

use crate::base::Batch;
use crate::threads::fork::Lock;
use std::sync::Arc;

/// Keeps the memory of batches that were used, for the next ones: large buffers cost more to get
/// from the system than to fill.
#[derive(Debug, Clone)]
pub struct BatchPool {
    most: usize,
    free: Arc<Lock<Vec<Batch>>>,
}

impl BatchPool {
    /// Keeps at most that many batches.
    pub fn new(most: usize) -> Self {
        BatchPool { most, free: Arc::default() }
    }

    /// An empty batch, with room if there is one to use again.
    pub fn take(&self) -> Batch {
        self.free.lock().pop().unwrap_or_default()
    }

    /// Gives a batch back, whatever it holds.
    pub fn give(&self, mut batch: Batch) {
        batch.clear();
        let mut free = self.free.lock();
        if free.len() < self.most {
            free.push(batch);
        }
    }
}
