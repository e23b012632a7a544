//! Recently used decoded blocks.

use super::block::Block;
use crate::threads::fork::Lock;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum total size of cached blocks. A larger block is used and dropped.
const CAPACITY: usize = 32 << 20;

/// A few decoded blocks, shared by the threads that read one file; the least recently used is
/// evicted first. Blocks are large, so there are never many, and a list is enough.
#[derive(Debug, Default)]
pub(super) struct BlockCache {
    blocks: Lock<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// By frame offset, the most recently used at the back.
    blocks: VecDeque<(u64, Arc<Block>)>,
    size: usize,
}

/// Maximum number of blocks: otherwise small ones would make the list long.
const MOST: usize = 64;

impl BlockCache {
    pub(super) fn get(&self, frame: u64) -> Option<Arc<Block>> {
        let mut kept = self.blocks.lock();
        let at = kept.blocks.iter().rposition(|(other, _)| *other == frame)?;
        let entry = kept.blocks.remove(at)?;
        let block = Arc::clone(&entry.1);
        kept.blocks.push_back(entry);
        Some(block)
    }

    pub(super) fn put(&self, frame: u64, block: &Arc<Block>) {
        if block.size() > CAPACITY {
            return;
        }
        let mut kept = self.blocks.lock();
        if kept.blocks.iter().any(|(other, _)| *other == frame) {
            return;
        }
        kept.size += block.size();
        kept.blocks.push_back((frame, Arc::clone(block)));
        while kept.size > CAPACITY || kept.blocks.len() > MOST {
            let Some((_, oldest)) = kept.blocks.pop_front() else { break };
            kept.size -= oldest.size();
        }
    }
}
