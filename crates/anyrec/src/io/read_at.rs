//! Positional reads, many at a time.

use crate::base::memory::zeroed;
use crate::base::{Error, Result};
use bytes::Bytes;
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// One piece of a [`Source::read_ranges`] call: fill `buffer` from `offset` on.
#[derive(Debug)]
pub struct RangeRead<'a> {
    /// Where in the file.
    pub offset: u64,
    /// What to fill, wholly.
    pub buffer: &'a mut [u8],
}

/// A source of bytes with a length: a file, a mapped file, memory, later an object store.
///
/// Shared by reference between threads. The length is fixed at opening;
/// [`check_unchanged`](Source::check_unchanged) says whether it still holds.
pub trait Source: Send + Sync + fmt::Debug {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// Whether there are no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What to call this source in messages.
    fn name(&self) -> &str;

    /// The file's path, where there is one (companion files are looked for beside it).
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Fills all the buffers. One call takes many ranges so that a source may serve them together.
    ///
    /// # Errors
    /// A range past the end of the source is [`Corrupt`](crate::ErrorKind::Corrupt); otherwise
    /// whatever the system says.
    fn read_ranges(&self, reads: &mut [RangeRead<'_>]) -> Result<()>;

    /// All of the source as memory, where it lies in memory already (mapped, or read before).
    ///
    /// Only to copy out of: where the source is a mapped file, what was copied counts only if
    /// [`check_unchanged`](Source::check_unchanged) finds nothing wrong *afterwards*.
    fn as_slice(&self) -> Option<&[u8]> {
        None
    }

    /// Sees to it that looking into [`as_slice`](Source::as_slice) or a [`view`](Source::view) cannot end
    /// the process: asked before a batch or a record is read.
    ///
    /// # Errors
    /// What the system says.
    fn guard(&self) -> Result<()> {
        Ok(())
    }

    /// All of the source as memory that may be handed out, without a copy, where there is such. Where
    /// it is a mapped file, looking at it after the file was cut short ends the process.
    fn lendable(&self) -> Option<&Bytes> {
        None
    }

    /// The bytes of a range, without a copy where the source lies in memory: to be used as
    /// [`as_slice`](Source::as_slice) is.
    ///
    /// # Errors
    /// As [`Source::read_ranges`].
    fn view(&self, range: Range<u64>) -> Result<Bytes> {
        self.bytes(range)
    }

    /// The bytes of a range, which stay as they are whatever becomes of the source.
    ///
    /// # Errors
    /// As [`Source::read_ranges`].
    fn bytes(&self, range: Range<u64>) -> Result<Bytes>;

    /// Says that these ranges will be looked at soon: a mapped source brings in what is not in
    /// memory yet, all at once, where a look at each in turn would wait for each in turn. Says whether
    /// it has to: then they arrive in the order of the file.
    fn expect(&self, _ranges: &[Range<u64>]) -> bool {
        false
    }

    /// An error if the source has become shorter since it was opened, or could not be read.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) when it was cut short meanwhile,
    /// [`Io`](crate::ErrorKind::Io) when bytes of [`as_slice`](Source::as_slice) could not be read.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    /// An error if another file has the source's name by now: what stands beside that belongs to
    /// the other one.
    ///
    /// # Errors
    /// [`Stale`](crate::ErrorKind::Stale) when it was replaced meanwhile.
    fn check_still_named(&self) -> Result<()> {
        Ok(())
    }
}

impl dyn Source {
    /// The bytes of a range: lent without a copy where that can be, see
    /// [`lendable`](Source::lendable).
    ///
    /// # Errors
    /// As [`Source::bytes`].
    pub fn lend(&self, range: Range<u64>) -> Result<Bytes> {
        match self.lendable() {
            Some(all) => Ok(all.slice(checked(self, &range)?)),
            None => self.bytes(range),
        }
    }

    /// The bytes of many ranges, read together.
    ///
    /// # Errors
    /// As [`Source::read_ranges`].
    pub fn many_bytes(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let buffer = |range| zeroed(checked(self, range)?.len());
        let mut buffers = ranges.iter().map(buffer).collect::<Result<Vec<Vec<u8>>>>()?;
        let reads = ranges.iter().zip(&mut buffers);
        let mut reads: Vec<RangeRead<'_>> =
            reads.map(|(range, buffer)| RangeRead { offset: range.start, buffer }).collect();
        self.read_ranges(&mut reads)?;
        Ok(buffers.into_iter().map(Bytes::from).collect())
    }
}

/// The error for a range that a source does not have.
pub(super) fn past_end(source: &dyn Source, range: &Range<u64>) -> Error {
    Error::corrupt(format!("the file ends at byte {} but bytes up to {} are needed", source.len(), range.end))
        .in_file(source.name())
        .at(range.start)
}

/// `range` as indices, if the source has it.
pub(super) fn checked(source: &dyn Source, range: &Range<u64>) -> Result<Range<usize>> {
    if range.start > range.end || range.end > source.len() {
        return Err(past_end(source, range));
    }
    match (usize::try_from(range.start), usize::try_from(range.end)) {
        (Ok(start), Ok(end)) => Ok(start..end),
        _ => Err(past_end(source, range)),
    }
}
