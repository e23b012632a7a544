//! Memory of batches that are no longer in use, kept for reuse.

use anyrec::BatchPool;
use anyrec::{Batch, Bytes};

/// The bytes and offsets of a filled batch. The memory returns to the pool when the last view of it
/// is dropped: the operating system must clear fresh memory page by page, which costs about as much
/// as copying records into it.
pub fn lend(batch: Batch, home: &BatchPool) -> (Bytes, Vec<u64>) {
    let offsets = batch.offsets().to_vec();
    (Bytes::from_owner(Lent { batch, home: home.clone() }), offsets)
}

struct Lent {
    batch: Batch,
    home: BatchPool,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.batch.buffer()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.home.give(std::mem::take(&mut self.batch));
    }
}
