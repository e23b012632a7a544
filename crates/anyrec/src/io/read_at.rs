//! Positional reads, many at a time.

use crate::error::{Error, Result};
use crate::room::room;
use bytes::Bytes;
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// One piece of a [`ReadAt::read_ranges`] call: fill `buffer` from `offset` on.
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
/// [`check_unchanged`](ReadAt::check_unchanged) says whether it still holds.
pub trait ReadAt: Send + Sync + fmt::Debug {
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
    fn as_slice(&self) -> Option<&[u8]> {
        None
    }

    /// Whether a walk that copies all of it is faster with [`read_ranges`](ReadAt::read_ranges) than
    /// over [`as_slice`](ReadAt::as_slice).
    fn is_read_faster(&self) -> bool {
        false
    }

    /// The bytes of a range: lent without a copy where the source lies in memory, else read.
    ///
    /// # Errors
    /// As [`ReadAt::read_ranges`].
    fn bytes(&self, range: Range<u64>) -> Result<Bytes>;

    /// Says that these ranges will be looked at soon: a mapped source brings in what is not in
    /// memory yet, all at once, where a look at each in turn would wait for each in turn. Says whether
    /// it has to: then they arrive in the order of the file.
    fn expect(&self, _ranges: &[Range<u64>]) -> bool {
        false
    }

    /// Waits until these bytes are in memory, where that is possible without a copy of them.
    fn bring_in(&self, _range: Range<u64>) {}

    /// Says that these bytes are not needed any more: a mapped source gives their memory back (they
    /// are still there for whoever asks). So a walk over a large file stays small.
    fn release(&self, _range: Range<u64>) {}

    /// An error if the source has become shorter since it was opened.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) when it was cut short meanwhile.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }
}

impl dyn ReadAt {
    /// The bytes of many ranges, read together.
    ///
    /// # Errors
    /// As [`ReadAt::read_ranges`].
    pub fn many_bytes(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if self.as_slice().is_some() {
            return ranges.iter().map(|range| self.bytes(range.clone())).collect();
        }
        let buffer = |range| room(checked(self, range)?.len());
        let mut buffers = ranges.iter().map(buffer).collect::<Result<Vec<Vec<u8>>>>()?;
        let reads = ranges.iter().zip(&mut buffers);
        let mut reads: Vec<RangeRead<'_>> =
            reads.map(|(range, buffer)| RangeRead { offset: range.start, buffer }).collect();
        self.read_ranges(&mut reads)?;
        Ok(buffers.into_iter().map(Bytes::from).collect())
    }
}

/// The error for a range that a source does not have.
pub(super) fn past_end(source: &dyn ReadAt, range: &Range<u64>) -> Error {
    Error::corrupt(format!("the file ends at byte {} but bytes up to {} are needed", source.len(), range.end))
        .in_file(source.name())
        .at(range.start)
}

/// `range` as indices, if the source has it.
pub(super) fn checked(source: &dyn ReadAt, range: &Range<u64>) -> Result<Range<usize>> {
    if range.start > range.end || range.end > source.len() {
        return Err(past_end(source, range));
    }
    match (usize::try_from(range.start), usize::try_from(range.end)) {
        (Ok(start), Ok(end)) => Ok(start..end),
        _ => Err(past_end(source, range)),
    }
}
