//! The only road to an allocation whose size comes from a file.

use crate::error::{Error, ErrorKind, Result};

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
}

impl Default for Limits {
    fn default() -> Self {
        Limits { record: 4 << 30, frame: 4 << 30, decompressed: 64 << 30 }
    }
}

impl Limits {
    /// An empty buffer with room for `declared` bytes, which must be at most `left` (what the
    /// file still has) and `limit` (one of this struct's fields).
    ///
    /// # Errors
    /// [`Corrupt`](ErrorKind::Corrupt) past the end of the file, [`Limit`](ErrorKind::Limit) past
    /// the limit.
    pub fn buffer(what: &str, declared: u64, left: u64, limit: u64) -> Result<Vec<u8>> {
        Self::check(what, declared, left, limit).map(Vec::with_capacity)
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
            .with_hint("raise the limit in `Limits` if the file is trusted")
    }
}
