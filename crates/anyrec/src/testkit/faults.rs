//! A source that fails on purpose.

use crate::base::{Error, Result};
use crate::io::{MemorySource, RangeRead, Source};
use bytes::Bytes;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes in memory behind positional reads. Read number `fail_at` (from 0) and all later ones fail
/// like a broken disk.
#[derive(Debug)]
pub struct FaultySource {
    inner: MemorySource,
    fail_at: u64,
    reads: AtomicU64,
}

impl FaultySource {
    /// A source over `data` whose read number `fail_at` fails; with `u64::MAX` none does.
    pub fn new(data: impl Into<Bytes>, fail_at: u64) -> Self {
        FaultySource { inner: MemorySource::new("faulty", data), fail_at, reads: AtomicU64::new(0) }
    }

    /// Number of reads so far.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    fn fault(&self) -> Result<()> {
        if self.reads.fetch_add(1, Ordering::Relaxed) >= self.fail_at {
            return Err(
                Error::io("cannot read", std::io::Error::from_raw_os_error(libc::EIO)).in_file("faulty")
            );
        }
        Ok(())
    }
}

impl Source for FaultySource {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn read_ranges(&self, reads: &mut [RangeRead<'_>]) -> Result<()> {
        self.fault()?;
        self.inner.read_ranges(reads)
    }

    fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        self.fault()?;
        self.inner.bytes(range)
    }
}
