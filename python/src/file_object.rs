//! A file object of Python as a source of bytes.
//!
//! `anyrec._file_object.FileObject` reads from it, under a lock of Python's: a thread that waits for
//! that lock releases the GIL, so the thread that holds it can go on. Reads are joined and blocks are
//! kept, so that there is not one call of Python per record.

use crate::errors::{carried, raised};
use anyrec::io::{RangeRead, Source};
use anyrec::{Bytes, Error, Result};
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The size of a block.
const BLOCK: u64 = 1 << 20;
/// The number of blocks that are kept.
const KEPT: usize = 16;

pub struct FileObject {
    object: Py<PyAny>,
    name: String,
    length: u64,
    process: u32,
    /// The blocks that were read last, the latest at the end. Never locked while Python runs.
    blocks: Mutex<VecDeque<(u64, Bytes)>>,
}

impl FileObject {
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(FileObject {
            name: object.getattr("name")?.extract()?,
            length: object.getattr("length")?.extract()?,
            object: object.clone().unbind(),
            process: anyrec::generation(),
            blocks: Mutex::default(),
        })
    }

    /// Reads bytes that the object has according to its length.
    fn read_at(&self, offset: u64, size: u64) -> Result<Bytes> {
        let read = Python::attach(|py| -> PyResult<Bytes> {
            let bytes = self.object.bind(py).call_method1("read_at", (offset, size))?;
            Ok(crate::payload::Payload::of(&bytes)?.into_bytes())
        });
        let read = read.map_err(|error| carried(error).in_file(&*self.name))?;
        if read.len() as u64 != size {
            return Err(Error::corrupt("the file object ends earlier than when it was opened")
                .expected_found(format!("{size} bytes"), format!("{} bytes", read.len()))
                .in_file(&*self.name)
                .at(offset));
        }
        Ok(read)
    }

    /// A block, read if it is not kept.
    fn block(&self, number: u64) -> Result<Bytes> {
        let kept = || self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, block)) = kept().iter().find(|(kept, _)| *kept == number) {
            return Ok(block.clone());
        }
        let offset = number.saturating_mul(BLOCK);
        let block = self.read_at(offset, BLOCK.min(self.length.saturating_sub(offset)))?;
        let mut blocks = kept();
        if blocks.len() >= KEPT {
            blocks.pop_front();
        }
        blocks.push_back((number, block.clone()));
        Ok(block)
    }

    fn fill(&self, mut offset: u64, mut buffer: &mut [u8]) -> Result<()> {
        if anyrec::generation() != self.process {
            // A thread of the other process may hold the lock. The object refuses the read.
            return self.read_at(offset, buffer.len() as u64).map(drop);
        }
        if buffer.len() as u64 >= BLOCK {
            buffer.copy_from_slice(&self.read_at(offset, buffer.len() as u64)?);
            return Ok(());
        }
        while !buffer.is_empty() {
            let block = self.block(offset / BLOCK)?;
            let begin = usize::try_from(offset % BLOCK).unwrap_or(usize::MAX);
            let found = block.get(begin..).unwrap_or_default();
            let count = found.len().min(buffer.len());
            let (now, later) = std::mem::take(&mut buffer).split_at_mut(count);
            now.copy_from_slice(found.get(..count).unwrap_or_default());
            offset += count as u64;
            buffer = later;
        }
        Ok(())
    }
}

impl Source for FileObject {
    fn len(&self) -> u64 {
        self.length
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn read_ranges(&self, reads: &mut [RangeRead<'_>]) -> Result<()> {
        for read in reads {
            let end = read.offset.saturating_add(read.buffer.len() as u64);
            if end > self.length {
                return Err(Error::corrupt(format!(
                    "the file ends at byte {} but bytes up to {end} are needed",
                    self.length
                ))
                .in_file(&*self.name)
                .at(read.offset));
            }
            self.fill(read.offset, read.buffer)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for FileObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the file object {:?}", self.name)
    }
}

/// The dataset over a file object.
pub fn dataset(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    options: &anyrec::format::OpenOptions,
) -> PyResult<anyrec::Dataset> {
    let source = std::sync::Arc::new(FileObject::new(object)?);
    py.detach(|| anyrec::Dataset::over(source, options)).map_err(raised)
}
