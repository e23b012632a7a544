//! Going through a source from front to back.

use super::read_at::ReadAt;
use std::sync::Arc;

/// Bytes left behind before they are given back: few enough to stay small, enough to ask rarely.
const RELEASE: u64 = 16 << 20;
/// Bytes that another thread brings in ahead of a walk, once it has gone that far.
const AHEAD: u64 = 4 << 20;

/// Lets a source bring in what comes next while the caller is at work, and give back what lies
/// behind: so a walk waits little, and over a mapped file keeps little of it in memory.
#[derive(Debug)]
pub(super) struct Walk {
    /// What lies before was given back.
    released: u64,
    /// What lies before was asked for.
    asked: u64,
}

impl Walk {
    /// A walk that begins there.
    pub(super) fn from(offset: u64) -> Self {
        Walk { released: offset, asked: offset.saturating_add(AHEAD) }
    }

    /// The walk has come to `offset`.
    #[inline]
    pub(super) fn is_at(&mut self, source: &Arc<dyn ReadAt>, offset: u64) {
        if offset.saturating_sub(self.released) >= RELEASE {
            let behind = std::mem::replace(&mut self.released, offset)..offset;
            let source = Arc::clone(source);
            crate::pool::in_background(move || source.release(behind));
        }
        if offset.saturating_add(AHEAD / 2) >= self.asked {
            self.ask(source, offset);
        }
    }

    /// Gives back what lies before `offset`.
    pub(super) fn ends_at(&mut self, source: &Arc<dyn ReadAt>, offset: u64) {
        let behind = self.released..offset;
        self.released = offset;
        source.release(behind);
    }

    fn ask(&mut self, source: &Arc<dyn ReadAt>, offset: u64) {
        let begin = self.asked.max(offset);
        let end = begin.saturating_add(AHEAD).min(source.len());
        self.asked = end.max(begin.saturating_add(1));
        if begin < end && source.as_slice().is_some() {
            let source = Arc::clone(source);
            crate::pool::in_background(move || source.bring_in(begin..end));
        }
    }
}
