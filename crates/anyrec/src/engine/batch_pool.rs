//! Batches for reuse.

use crate::base::Batch;
use crate::threads::fork::Lock;
use std::sync::Arc;

/// Keeps the memory of used batches for the next ones: allocating a large buffer costs more than
/// filling it.
#[derive(Debug, Clone)]
pub struct BatchPool {
    most: usize,
    free: Arc<Lock<Vec<Batch>>>,
}

impl BatchPool {
    /// Keeps at most this many batches.
    pub fn new(most: usize) -> Self {
        BatchPool { most, free: Arc::default() }
    }

    /// An empty batch, with the capacity of a used one if there is one.
    pub fn take(&self) -> Batch {
        self.free.lock().pop().unwrap_or_default()
    }

    /// Returns a batch to the pool, whatever it contains.
    pub fn give(&self, mut batch: Batch) {
        batch.clear();
        let mut free = self.free.lock();
        if free.len() < self.most {
            free.push(batch);
        }
    }
}
