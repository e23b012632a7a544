//! Batches to be filled again.

use crate::batch::Batch;
use std::sync::{Arc, Mutex};

/// Keeps the memory of batches that were used, for the next ones: large buffers cost more to get
/// from the system than to fill.
///
/// It never waits. When another thread is at it (for ever, in a process forked just then), a batch
/// has fresh memory, or its memory is let go.
#[derive(Debug, Clone)]
pub struct Recycler {
    most: usize,
    free: Arc<Mutex<Vec<Batch>>>,
}

impl Recycler {
    /// Keeps at most that many batches.
    pub fn new(most: usize) -> Self {
        Recycler { most, free: Arc::default() }
    }

    /// An empty batch, with room if there is one to use again.
    pub fn take(&self) -> Batch {
        self.free.try_lock().ok().and_then(|mut free| free.pop()).unwrap_or_default()
    }

    /// Gives a batch back, whatever it holds.
    pub fn give(&self, mut batch: Batch) {
        batch.clear();
        if let Ok(mut free) = self.free.try_lock()
            && free.len() < self.most
        {
            free.push(batch);
        }
    }
}
