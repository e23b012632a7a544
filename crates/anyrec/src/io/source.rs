//! Positional reads, many at a time.

use crate::base::memory::zeroed;
use crate::base::{Error, Result};
use bytes::Bytes;
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// One piece of a [`Source::read_ranges`] call: fill `buffer` from `offset`.
#[derive(Debug)]
pub struct RangeRead<'a> {
    /// Offset in the source.
    pub offset: u64,
    /// The buffer, which is filled completely.
    pub buffer: &'a mut [u8],
}

/// A source of bytes with a length: a file, a mapped file or memory.
///
/// Shared by reference between threads. The length is fixed at opening;
/// [`check_unchanged`](Source::check_unchanged) checks whether it is still valid.
pub trait Source: Send + Sync + fmt::Debug {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// Whether the source is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of this source in messages.
    fn name(&self) -> &str;

    /// The file's path, if there is one (companion files are searched beside it).
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Fills all buffers. One call takes many ranges, so that a source can serve them together.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) for a range past the end of the source;
    /// otherwise the operating system's error.
    fn read_ranges(&self, reads: &mut [RangeRead<'_>]) -> Result<()>;

    /// The entire source, if it is already in memory (mapped, or read before).
    ///
    /// Only for copying out of. If the source is a mapped file, the copy is valid only if a
    /// *subsequent* [`check_unchanged`](Source::check_unchanged) succeeds.
    fn as_slice(&self) -> Option<&[u8]> {
        None
    }

    /// Ensures that accessing [`as_slice`](Source::as_slice) or a [`view`](Source::view) cannot end
    /// the process. Called before a batch or a record is read.
    ///
    /// # Errors
    /// The operating system's error.
    fn guard(&self) -> Result<()> {
        Ok(())
    }

    /// The entire source as memory that may be returned without a copy, if available. If it is a
    /// mapped file, accessing it after the file was truncated ends the process.
    fn lendable(&self) -> Option<&Bytes> {
        None
    }

    /// The bytes of a range, without a copy if the source is in memory. The restrictions of
    /// [`as_slice`](Source::as_slice) apply.
    ///
    /// # Errors
    /// Same as [`Source::read_ranges`].
    fn view(&self, range: Range<u64>) -> Result<Bytes> {
        self.bytes(range)
    }

    /// The bytes of a range, which do not change whatever happens to the source.
    ///
    /// # Errors
    /// Same as [`Source::read_ranges`].
    fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        // Within the source, so its size is no number that a file made up.
        let size = range.end.checked_sub(range.start).filter(|_| range.end <= self.len());
        let size = size.and_then(|size| usize::try_from(size).ok());
        let size = size.ok_or_else(|| past_end(self.name(), self.len(), &range))?;
        let mut buffer = zeroed(size)?;
        self.read_ranges(&mut [RangeRead { offset: range.start, buffer: &mut buffer }])?;
        Ok(buffer.into())
    }

    /// Announces that these ranges will be accessed soon. A mapped source prefetches what is not in
    /// memory yet, all at once, instead of faulting the ranges in one by one. Returns whether it
    /// had to: then they arrive in file order.
    fn expect(&self, _ranges: &[Range<u64>]) -> bool {
        false
    }

    /// Fails if the source has become shorter since it was opened, or could not be read.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if it was truncated in the meantime,
    /// [`Io`](crate::ErrorKind::Io) if bytes of [`as_slice`](Source::as_slice) could not be
    /// read.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    /// Fails if another file has the source's name by now: its companion files belong to the other
    /// file.
    ///
    /// # Errors
    /// [`Stale`](crate::ErrorKind::Stale) if it was replaced in the meantime.
    fn check_still_named(&self) -> Result<()> {
        Ok(())
    }
}

impl dyn Source {
    /// The bytes of a range, lent without a copy if possible, see [`lendable`](Source::lendable).
    ///
    /// # Errors
    /// Same as [`Source::bytes`].
    pub fn lend(&self, range: Range<u64>) -> Result<Bytes> {
        match self.lendable() {
            Some(all) => Ok(all.slice(checked(self, &range)?)),
            None => self.bytes(range),
        }
    }

    /// The bytes of many ranges, read together.
    ///
    /// # Errors
    /// Same as [`Source::read_ranges`].
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

/// The error for a range beyond the end of a source.
pub(super) fn past_end(name: &str, length: u64, range: &Range<u64>) -> Error {
    Error::corrupt(format!("the file ends at byte {length} but bytes up to {} are needed", range.end))
        .in_file(name)
        .at(range.start)
}

/// `range` as indices, if the source contains it.
pub(super) fn checked(source: &dyn Source, range: &Range<u64>) -> Result<Range<usize>> {
    if range.start > range.end || range.end > source.len() {
        return Err(past_end(source.name(), source.len(), range));
    }
    match (usize::try_from(range.start), usize::try_from(range.end)) {
        (Ok(start), Ok(end)) => Ok(start..end),
        _ => Err(past_end(source.name(), source.len(), range)),
    }
}
