//! Batches to be filled again.

use crate::batch::Batch;
use crate::fork::Lock;
use std::sync::Arc;

/// Keeps the memory of batches that were used, for the next ones: large buffers cost more to get
/// from the system than to fill.
#[derive(Debug, Clone)]
pub struct Recycler {
    most: usize,
    free: Arc<Lock<Vec<Batch>>>,
}

impl Recycler {
    /// Keeps at most that many batches.
    pub fn new(most: usize) -> Self {
        Recycler { most, free: Arc::default() }
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
