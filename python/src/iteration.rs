//! The records of a dataset, front to back.

use crate::batch::Batch;
use crate::buffers::lend;
use crate::handle::Handle;
use crate::record::Record;
use anyrec::{Bytes, Error, Records, Recycler, Result};
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

/// The records of a dataset, front to back.
///
/// Needs no index and no count. Damage is raised once, after which the iteration may be taken up
/// again and goes on with the next intact record. Small records that are read together share their
/// memory, up to 64 KiB.
#[pyclass(frozen, module = "anyrec")]
pub struct RecordIterator(Handle<Ahead>);

/// Records are read some at a time: each is then handed out without letting go of the interpreter.
struct Ahead {
    records: Source,
    /// What was read and not yet handed out; the first is at work.
    chunks: VecDeque<Chunk>,
    /// The next record of the first chunk.
    next: usize,
    /// What went wrong behind them.
    failure: Option<Error>,
}

enum Source {
    /// Records are slices of the mapped file.
    Lent(Records<Arc<anyrec::Dataset>>),
    /// Records have memory of their own, which comes from there.
    Copied(Records<Arc<anyrec::Dataset>>, Recycler),
}

enum Chunk {
    Lent(Vec<Bytes>),
    /// The memory, and where records begin and end in it.
    Copied(Bytes, Vec<u64>),
}

impl Chunk {
    fn record(&self, index: usize) -> Option<Bytes> {
        match self {
            Chunk::Lent(records) => records.get(index).cloned(),
            Chunk::Copied(buffer, offsets) => {
                let begin = usize::try_from(*offsets.get(index)?).ok()?;
                let end = usize::try_from(*offsets.get(index + 1)?).ok()?;
                Some(buffer.slice(begin..end))
            }
        }
    }
}

/// Bytes and records of a chunk.
const CHUNK: (usize, usize) = (64 << 10, 512);
/// Large records, each of which is a chunk, are read so many bytes at a time.
const STRETCH: usize = 512 << 10;
/// Chunks whose memory is kept to be used again.
const KEPT: usize = 2 * STRETCH / CHUNK.0;

impl Ahead {
    /// The next record, if it was read already.
    fn ready(&mut self) -> Option<Bytes> {
        loop {
            if let Some(record) = self.chunks.front()?.record(self.next) {
                self.next += 1;
                return Some(record);
            }
            self.chunks.pop_front();
            self.next = 0;
        }
    }

    fn next(&mut self) -> Result<Option<Bytes>> {
        if let Some(record) = self.ready() {
            return Ok(Some(record));
        }
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        match &mut self.records {
            Source::Lent(records) => self.chunks.push_back(Chunk::Lent(records.lend(CHUNK.1, CHUNK.0)?)),
            Source::Copied(records, buffers) => {
                let mut size = 0;
                while size < STRETCH && self.failure.is_none() {
                    let mut batch = buffers.take();
                    self.failure = records.fill(&mut batch, CHUNK.1, CHUNK.0).err();
                    size += if batch.len() == 1 { batch.buffer().len() } else { STRETCH };
                    let (buffer, offsets) = lend(batch, buffers);
                    self.chunks.push_back(Chunk::Copied(buffer, offsets));
                }
            }
        }
        match self.ready() {
            None => self.failure.take().map_or(Ok(None), Err),
            record => Ok(record),
        }
    }
}

impl RecordIterator {
    /// Gives records memory of their own.
    pub fn copying(dataset: Arc<anyrec::Dataset>) -> Self {
        Self::over(Source::Copied(dataset.shared_iter(), Recycler::new(KEPT)))
    }

    /// Lends records from mapped files.
    pub fn lending(dataset: Arc<anyrec::Dataset>) -> Self {
        Self::over(Source::Lent(dataset.shared_iter()))
    }

    fn over(records: Source) -> Self {
        RecordIterator(Handle::reader(
            "the iteration",
            Ahead { records, chunks: VecDeque::new(), next: 0, failure: None },
        ))
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
    records: Handle<Records<Arc<anyrec::Dataset>>>,
}

impl BatchIterator {
    /// Batches of `size` records.
    pub fn new(dataset: Arc<anyrec::Dataset>, buffers: Recycler, size: usize) -> Self {
        BatchIterator { size, buffers, records: Handle::reader("the iteration", dataset.shared_iter()) }
    }
}

#[pymethods]
impl BatchIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let mut batch = self.buffers.take();
        let batch = self.records.with(py, move |records| {
            records.fill(&mut batch, self.size, usize::MAX)?;
            Ok(batch)
        })?;
        Ok((!batch.is_empty()).then(|| Batch::new(lend(batch, &self.buffers))))
    }
}
