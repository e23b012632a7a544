//! Memory of batches that nobody looks at any more, to be filled again.

use anyrec::BatchPool;
use anyrec::{Batch, Bytes};

/// A filled batch's bytes and offsets. The memory goes back home when the last look at it ends: fresh
/// memory must be cleared by the system, page by page, which costs about as much as copying records
/// into it.
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
