//! Deflate by flate2, or, in a build without the feature `deflate`, an error that says so.
//!
//! flate2's state takes about 50 KiB (300 KiB to compress), and flate2 panics if it cannot be
//! allocated. Here that is an error.

pub(crate) use states::*;

#[cfg(feature = "deflate")]
mod states {
    use crate::base::memory::check_available;
    use crate::base::{Error, Result};
    pub(crate) use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// More than a state takes.
    const DECOMPRESSOR: usize = 72 << 10;
    const COMPRESSOR: usize = 512 << 10;

    /// Decompresses raw deflate.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub(crate) fn decompressor() -> Result<Decompress> {
        made(DECOMPRESSOR, || Decompress::new(false))
    }

    /// Compresses to raw deflate.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub(crate) fn compressor(level: Compression) -> Result<Compress> {
        made(COMPRESSOR, || Compress::new(level, false))
    }

    fn made<T>(size: usize, make: impl FnOnce() -> T) -> Result<T> {
        check_available(size)?;
        // Another thread may have taken the memory since the check: the only way in which this
        // panics.
        catch_unwind(AssertUnwindSafe(make)).map_err(|_| Error::out_of_memory(size as u64))
    }
}

/// The part of flate2's interface that callers use, for builds without flate2, which never create a
/// state.
#[cfg(not(feature = "deflate"))]
mod states {
    use crate::base::{Error, Result};
    use std::io;

    #[derive(Debug)]
    pub(crate) enum Decompress {}

    #[derive(Debug)]
    pub(crate) enum Compress {}

    pub(crate) enum Failure {}

    impl From<Failure> for io::Error {
        fn from(failure: Failure) -> Self {
            match failure {}
        }
    }

    #[derive(Default)]
    pub(crate) struct Compression(());

    #[derive(Clone, Copy)]
    pub(crate) enum FlushCompress {
        None,
        Finish,
    }

    pub(crate) enum FlushDecompress {
        None,
    }

    #[expect(dead_code, reason = "nothing is ever done")]
    pub(crate) enum Status {
        Ok,
        StreamEnd,
    }

    pub(crate) fn decompressor() -> Result<Decompress> {
        Err(off())
    }

    pub(crate) fn compressor(_: Compression) -> Result<Compress> {
        Err(off())
    }

    fn off() -> Error {
        Error::feature_is_off("gzip", "deflate")
    }

    impl Decompress {
        pub(crate) fn reset(&mut self, _: bool) {
            match *self {}
        }

        pub(crate) fn total_in(&self) -> u64 {
            match *self {}
        }

        pub(crate) fn total_out(&self) -> u64 {
            match *self {}
        }

        pub(crate) fn decompress(
            &mut self,
            _: &[u8],
            _: &mut [u8],
            _: FlushDecompress,
        ) -> std::result::Result<Status, Failure> {
            match *self {}
        }
    }

    impl Compress {
        pub(crate) fn total_in(&self) -> u64 {
            match *self {}
        }

        pub(crate) fn compress_vec(
            &mut self,
            _: &[u8],
            _: &mut Vec<u8>,
            _: FlushCompress,
        ) -> std::result::Result<Status, Failure> {
            match *self {}
        }
    }
}
