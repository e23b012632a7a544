//! The records of a dataset, front to back.

use crate::batch::Batch;
use crate::buffers::lend;
use crate::handle::Handle;
use crate::record::Record;
use anyrec::loader::Recycler;
use anyrec::{Bytes, Records, Result};
use pyo3::prelude::*;
use std::sync::Arc;

/// The records of a dataset, front to back.
///
/// Needs no index and no count. Damage is raised once, after which the iteration may be taken up
/// again and goes on with the next intact record. Small records that are read together share their
/// memory, up to 64 KiB.
#[pyclass(frozen, module = "anyrec")]
pub struct RecordIterator(Handle<Ahead>);

/// Small records are read some at a time: each is then handed out without letting go of the
/// interpreter.
struct Ahead {
    records: Records<Arc<anyrec::Dataset>>,
    /// Where records' own memory comes from; none where they are lent from the file.
    buffers: Option<Recycler>,
    /// What was read and not yet handed out, and the next of it.
    chunk: Chunk,
    next: usize,
}

enum Chunk {
    /// Slices of a mapped file.
    Lent(Vec<Bytes>),
    /// Memory of the records' own, and where they begin and end in it.
    Copied(Bytes, Vec<u64>),
}

/// What is read at a time where records are small: bytes, and records.
const AT_A_TIME: (usize, usize) = (64 << 10, 512);
/// Chunks whose memory is kept to be used again.
const KEPT: usize = 4;

impl Ahead {
    /// The next record, if it was read already.
    fn ready(&mut self) -> Option<Bytes> {
        let record = match &self.chunk {
            Chunk::Lent(records) => records.get(self.next)?.clone(),
            Chunk::Copied(buffer, offsets) => {
                let begin = usize::try_from(*offsets.get(self.next)?).ok()?;
                let end = usize::try_from(*offsets.get(self.next + 1)?).ok()?;
                buffer.slice(begin..end)
            }
        };
        self.next += 1;
        Some(record)
    }

    fn next(&mut self) -> Result<Option<Bytes>> {
        if let Some(record) = self.ready() {
            return Ok(Some(record));
        }
        self.refill()?;
        Ok(self.ready())
    }

    fn refill(&mut self) -> Result<()> {
        // What the last chunk held is free before the next is read.
        (self.chunk, self.next) = (Chunk::Lent(Vec::new()), 0);
        self.chunk = match &self.buffers {
            None => Chunk::Lent(self.records.lend(AT_A_TIME.1, AT_A_TIME.0)?),
            Some(buffers) => {
                let mut batch = buffers.take();
                self.records.fill(&mut batch, AT_A_TIME.1, AT_A_TIME.0)?;
                let (buffer, offsets) = lend(batch, buffers);
                Chunk::Copied(buffer, offsets)
            }
        };
        Ok(())
    }
}

impl RecordIterator {
    /// Gives records memory of their own.
    pub fn copying(dataset: Arc<anyrec::Dataset>) -> Self {
        Self::over(dataset, Some(Recycler::new(KEPT)))
    }

    /// Lends records from mapped files.
    pub fn lending(dataset: Arc<anyrec::Dataset>) -> Self {
        Self::over(dataset, None)
    }

    fn over(dataset: Arc<anyrec::Dataset>, buffers: Option<Recycler>) -> Self {
        let ahead =
            Ahead { records: dataset.shared_iter(), buffers, chunk: Chunk::Lent(Vec::new()), next: 0 };
        RecordIterator(Handle::reader("the iteration", ahead))
    }
}

#[pymethods]
impl RecordIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        match self.0.at_once(Ahead::ready) {
            Some(data) => Ok(Some(Record::new(data))),
            None => Ok(self.0.with(py, Ahead::next)?.map(Record::new)),
        }
    }
}

/// The records of a dataset, front to back, some at a time.
#[pyclass(frozen, module = "anyrec")]
pub struct BatchIterator {
    size: usize,
    buffers: Recycler,
    batches: Handle<anyrec::Batches>,
}

impl BatchIterator {
    /// Batches of `size` records.
    pub fn new(dataset: Arc<anyrec::Dataset>, buffers: Recycler, size: usize) -> Self {
        BatchIterator { size, buffers, batches: Handle::reader("the iteration", dataset.batches()) }
    }
}

#[pymethods]
impl BatchIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let mut batch = self.buffers.take();
        let batch = self.batches.with(py, move |batches| {
            batches.fill(&mut batch, self.size)?;
            Ok(batch)
        })?;
        Ok((!batch.is_empty()).then(|| Batch::new(lend(batch, &self.buffers))))
    }
}
