//! Memory of batches that nobody looks at any more, to be filled again.

use anyrec::{Batch, Bytes};
use std::sync::{Arc, Mutex, Weak};

/// Batches kept for the next reads, and their bytes: two at least, however large.
const KEPT: (usize, usize) = (8, 64 << 20);

/// Batches of a dataset that were let go of. Fresh memory must be cleared by the system, page by
/// page, which costs about as much as copying records into it.
#[derive(Default)]
pub struct Buffers(Mutex<Vec<Batch>>);

impl Buffers {
    /// A batch to be filled.
    pub fn take(&self) -> Batch {
        // Never waits: another thread may be at it, or may have been when this process was forked.
        self.0.try_lock().ok().and_then(|mut free| free.pop()).unwrap_or_default()
    }

    /// A filled batch's bytes and offsets. The memory comes back here when the last look at it ends.
    pub fn lend(self: &Arc<Self>, batch: Batch) -> (Bytes, Vec<u64>) {
        let offsets = batch.offsets().to_vec();
        (Bytes::from_owner(Lent { batch, home: Arc::downgrade(self) }), offsets)
    }

    fn put(&self, batch: Batch) {
        if let Ok(mut free) = self.0.try_lock()
            && (free.len() < 2
                || free.len() < KEPT.0 && free.iter().map(Batch::capacity).sum::<usize>() < KEPT.1)
        {
            free.push(batch);
        }
    }
}

struct Lent {
    batch: Batch,
    home: Weak<Buffers>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.batch.buffer()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(home) = self.home.upgrade() {
            home.put(std::mem::take(&mut self.batch));
        }
    }
}
