//! A gzipped file presented as the plain file it contains.

use super::gzip::{Inflater, Survey};
use super::layout::Header;
use crate::base::memory::reserve;
use crate::base::{Error, Limits, Result};
use crate::io::{RangeRead, Source, Window};
use crate::threads::fork::{Lock, Once};
use bytes::Bytes;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Initial size of the buffer, which then doubles as data arrives.
const FIRST: usize = 1 << 16;

/// The uncompressed form of a gzipped file, inflated completely on first use and then kept.
///
/// Its length is what the header declares: bytes beyond that are checked but not kept.
#[derive(Debug)]
pub(super) struct Inflated {
    compressed: Arc<dyn Source>,
    length: u64,
    verify: bool,
    limits: Limits,
    content: Once<Content>,
    /// Held while inflating, so that concurrent threads do it only once.
    inflating: Lock<()>,
}

/// The result of inflating.
#[derive(Debug)]
pub(super) struct Content {
    /// The bytes, as many of the declared ones as there are.
    pub(super) data: Bytes,
    pub(super) survey: Survey,
}

impl Inflated {
    pub(super) fn new(compressed: Arc<dyn Source>, header: &Header, verify: bool, limits: &Limits) -> Self {
        Inflated {
            compressed,
            length: header.file_length(),
            verify,
            // All of it will be held in memory.
            limits: Limits { decompressed: limits.decompressed.min(limits.memory), ..limits.clone() },
            content: Once::new(),
            inflating: Lock::new(),
        }
    }

    /// The content, if it was already inflated.
    pub(super) fn known(&self) -> Option<&Content> {
        self.content.get()
    }

    /// The content. For a damaged file this is what could be recovered; the survey says what can be
    /// trusted.
    ///
    /// # Errors
    /// Only if reading itself fails, or beyond the limits. Such errors are not stored: the next
    /// call tries again.
    pub(super) fn content(&self) -> Result<&Content> {
        if let Some(content) = self.content.get() {
            return Ok(content);
        }
        let _guard = self.inflating.lock();
        if let Some(content) = self.content.get() {
            return Ok(content);
        }
        let content = self.inflate()?;
        Ok(self.content.get_or_init(|| content))
    }

    /// Creates an inflater at the beginning of the file.
    pub(super) fn inflater(&self) -> Result<Inflater> {
        self.compressed.check_unchanged()?;
        Inflater::new(Window::new(self.compressed.clone()), self.verify, &self.limits)
    }

    fn inflate(&self) -> Result<Content> {
        let mut inflater = self.inflater()?;
        let wanted = usize::try_from(self.length).unwrap_or(usize::MAX);
        let mut data = Vec::new();
        while data.len() < wanted {
            let have = data.len();
            // Bounded by what has arrived, not by what the header declares.
            let next = have.saturating_mul(2).max(FIRST).min(wanted);
            reserve(&mut data, next - have).map_err(|error| error.in_file(self.name()))?;
            data.resize(next, 0);
            let room = data.get_mut(have..).unwrap_or_default();
            let asked = room.len();
            let filled = inflater.fill(room)?;
            if filled < asked {
                data.truncate(have + filled);
                break;
            }
        }
        let survey = inflater.finish()?;
        Ok(Content { data: data.into(), survey })
    }

    /// A range of the uncompressed bytes.
    fn slice(&self, range: Range<u64>) -> Result<Bytes> {
        let content = self.content()?;
        let bounds = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        match bounds {
            Some((begin, end)) if begin <= end && end <= content.data.len() => {
                Ok(content.data.slice(begin..end))
            }
            _ => Err(Error::corrupt("the uncompressed file is too short")
                .expected_found(format!("{} bytes", range.end), format!("{} bytes", content.data.len()))
                .in_file(self.name())
                .at(range.start)),
        }
    }
}

impl Source for Inflated {
    fn len(&self) -> u64 {
        self.length
    }

    fn name(&self) -> &str {
        self.compressed.name()
    }

    fn path(&self) -> Option<&Path> {
        self.compressed.path()
    }

    fn read_ranges(&self, reads: &mut [RangeRead<'_>]) -> Result<()> {
        for read in reads {
            let end = read.offset.saturating_add(read.buffer.len() as u64);
            read.buffer.copy_from_slice(&self.slice(read.offset..end)?);
        }
        Ok(())
    }

    /// `None` if bytes are missing, so that the slice is never mistaken for the complete file.
    fn as_slice(&self) -> Option<&[u8]> {
        self.lendable().map(|data| &**data)
    }

    fn lendable(&self) -> Option<&Bytes> {
        let content = self.content().ok()?;
        (content.data.len() as u64 == self.length).then_some(&content.data)
    }

    fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        self.slice(range)
    }
}
