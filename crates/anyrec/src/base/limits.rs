//! The only road to an allocation whose size comes from a file.

use super::hint::Hint;
use crate::base::{Error, ErrorKind, Result};

/// Upper bounds on what a file can make this library hold in memory at once.
///
/// A stored (uncompressed) size is also held against the bytes left in the file, so these matter
/// mostly for compressed data and for streams, where no length is known beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Largest record, in bytes. Default 4 GiB.
    pub record: u64,
    /// Largest frame after undoing compression (a GRAIL block). Default 4 GiB.
    pub frame: u64,
    /// Largest array after undoing gzip (an IDX file). Default 64 GiB.
    pub decompressed: u64,
    /// Most bytes of data held in memory at once: a record, a block (as stored, and after undoing
    /// compression), an array, a batch. Threads that read parts of one file side by side share it.
    /// What is small beside the data (positions, tables of offsets, buffers of a fixed size) does
    /// not count. Default: no such bound. Set with [`Limits::hold_at_most`].
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { record: 4 << 30, frame: 4 << 30, decompressed: 64 << 30, memory: u64::MAX }
    }
}

impl Limits {
    /// Sets [`memory`](Limits::memory), and lowers the other limits on what is held to it.
    /// ([`decompressed`](Limits::decompressed) stays: scans do not hold the array.)
    ///
    /// ```
    /// let mut limits = anyrec::Limits::default();
    /// limits.hold_at_most(64 << 20);
    /// assert_eq!((limits.record, limits.frame), (64 << 20, 64 << 20));
    /// ```
    pub fn hold_at_most(&mut self, bytes: u64) {
        self.memory = self.memory.min(bytes);
        self.record = self.record.min(bytes);
        self.frame = self.frame.min(bytes);
    }

    /// The limits for each of so many threads that hold data at once.
    pub(crate) fn shared_by(&self, threads: usize) -> Limits {
        let mut limits = self.clone();
        if self.memory < u64::MAX {
            limits.hold_at_most(self.memory / (threads as u64).max(1));
        }
        limits
    }

    /// An error for a batch of that size that is over the limit on memory.
    pub(crate) fn check_batch(size: u64, memory: u64) -> Result<()> {
        if size > memory { Err(Self::exceeded("batch size", size, memory)) } else { Ok(()) }
    }

    /// An empty buffer with room for `declared` bytes, which must be at most `left` (what the
    /// file still has) and `limit` (one of this struct's fields).
    ///
    /// # Errors
    /// [`Corrupt`](ErrorKind::Corrupt) past the end of the file, [`Limit`](ErrorKind::Limit) past
    /// the limit, [`OutOfMemory`](ErrorKind::OutOfMemory).
    pub fn buffer(what: &str, declared: u64, left: u64, limit: u64) -> Result<Vec<u8>> {
        let size = Self::check(what, declared, left, limit)?;
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(size).map_err(|_| Error::out_of_memory(declared))?;
        Ok(buffer)
    }

    /// The checks of [`Limits::buffer`] without the buffer: the size as a `usize`.
    ///
    /// # Errors
    /// As [`Limits::buffer`].
    pub fn check(what: &str, declared: u64, left: u64, limit: u64) -> Result<usize> {
        if declared > left {
            return Err(Error::corrupt(format!(
                "{what} {declared} exceeds the {left} bytes left in the file"
            )));
        }
        if declared > limit {
            return Err(Self::exceeded(what, declared, limit));
        }
        usize::try_from(declared).map_err(|_| Self::exceeded(what, declared, limit))
    }

    /// The error for a size over a limit.
    pub fn exceeded(what: &str, size: u64, limit: u64) -> Error {
        Error::new(ErrorKind::Limit, format!("{what} {size} is over the limit of {limit} bytes"))
            .with_hint(Hint::RaiseLimit)
    }
}
