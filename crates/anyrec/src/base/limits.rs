//! The only way to an allocation whose size comes from a file.

use super::hint::Hint;
use crate::base::{Error, ErrorKind, Result};

/// Upper bounds on what a file can make this library hold in memory at once.
///
/// A stored (uncompressed) size is also checked against the bytes left in the file, so these limits
/// matter mostly for compressed data and for streams, whose length is not known in advance.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum size of a record, in bytes. Default 4 GiB.
    pub record: u64,
    /// Maximum size of a decompressed frame (a GRAIL block). Default 4 GiB.
    pub frame: u64,
    /// Maximum size of a decompressed array (a gzipped IDX file). Default 64 GiB.
    pub decompressed: u64,
    /// Maximum bytes of data held in memory at once: a record, a block (as stored and
    /// decompressed), an array, a batch. Threads that read parts of one file in parallel share it.
    /// Memory that is small compared with the data (positions, offset tables, fixed-size buffers)
    /// does not count. Default: unlimited. Set it with [`Limits::hold_at_most`].
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { record: 4 << 30, frame: 4 << 30, decompressed: 64 << 30, memory: u64::MAX }
    }
}

impl Limits {
    /// Sets [`memory`](Limits::memory) and lowers the other limits on data in memory to it.
    /// ([`decompressed`](Limits::decompressed) is unchanged, because scans do not hold the array.)
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

    /// The limits for each of this many threads that hold data at once.
    pub(crate) fn shared_by(&self, threads: usize) -> Limits {
        let mut limits = self.clone();
        if self.memory < u64::MAX {
            limits.hold_at_most(self.memory / (threads as u64).max(1));
        }
        limits
    }

    /// Returns an error if a batch of this size is over the memory limit.
    pub(crate) fn check_batch(size: u64, memory: u64) -> Result<()> {
        if size > memory { Err(Self::exceeded("batch size", size, memory)) } else { Ok(()) }
    }

    /// An empty buffer with space for `declared` bytes, which must be at most `left` (the bytes
    /// left in the file) and `limit` (one of this struct's fields).
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

    /// Performs the checks of [`Limits::buffer`] without allocating, and returns the size as a
    /// `usize`.
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
