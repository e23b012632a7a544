//! Making the states of flate2.
//!
//! They take about 50 KiB (300 KiB to compress), and flate2 panics where these cannot be had. Here
//! that is an error.

use crate::base::{Error, Result};
use crate::base::memory::check_available;
use flate2::{Compress, Compression, Decompress};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// More than a state takes.
const DECOMPRESSOR: usize = 72 << 10;
const COMPRESSOR: usize = 512 << 10;

/// Undoes raw deflate.
///
/// # Errors
/// [`OutOfMemory`](crate::base::ErrorKind::OutOfMemory).
pub(crate) fn decompressor() -> Result<Decompress> {
    made(DECOMPRESSOR, || Decompress::new(false))
}

/// Makes raw deflate.
///
/// # Errors
/// [`OutOfMemory`](crate::base::ErrorKind::OutOfMemory).
pub(crate) fn compressor(level: Compression) -> Result<Compress> {
    made(COMPRESSOR, || Compress::new(level, false))
}

fn made<T>(size: usize, make: impl FnOnce() -> T) -> Result<T> {
    check_available(size)?;
    // Another thread may have taken the memory meanwhile: the only way in which this panics.
    catch_unwind(AssertUnwindSafe(make)).map_err(|_| Error::out_of_memory(size as u64))
}
