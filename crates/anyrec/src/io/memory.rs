//! Bytes that are already in memory.

use super::source::{RangeRead, Source, checked};
use crate::base::Result;
use bytes::Bytes;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A source over bytes in memory: decompressed files, tests, fuzzing.
#[derive(Debug, Clone)]
pub struct MemorySource {
    name: String,
    path: Option<PathBuf>,
    data: Bytes,
}

impl MemorySource {
    /// Creates a source; `name` is used in messages.
    pub fn new(name: impl Into<String>, data: impl Into<Bytes>) -> Self {
        MemorySource { name: name.into(), path: None, data: data.into() }
    }

    /// A source of `data` in place of `original` (its decompressed form): same name, same path.
    pub fn derived_from(original: &dyn Source, data: impl Into<Bytes>) -> Self {
        MemorySource {
            name: original.name().to_owned(),
            path: original.path().map(Path::to_owned),
            data: data.into(),
        }
    }
}

impl Source for MemorySource {
    fn len(&self) -> u64 {
        self.data.len() as u64
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    fn read_ranges(&self, reads: &mut [RangeRead<'_>]) -> Result<()> {
        super::file::copy_ranges(self, &self.data, reads)
    }

    fn as_slice(&self) -> Option<&[u8]> {
        Some(&self.data)
    }

    fn lendable(&self) -> Option<&Bytes> {
        Some(&self.data)
    }

    fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        Ok(self.data.slice(checked(self, &range)?))
    }
}
