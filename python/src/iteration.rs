//! The records of a dataset, front to back.

use crate::batch::Batch;
use crate::buffers::lend;
use crate::handle::Handle;
use crate::record::Record;
use anyrec::loader::Recycler;
use anyrec::{Bytes, Chunks, Records, Result};
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

/// Small records are read some at a time: each is then handed out without letting go of the
/// interpreter.
struct Ahead {
    records: Source,
    ready: VecDeque<Result<Bytes>>,
}

enum Source {
    /// Each record is a slice of the mapped file.
    Lent(Records<Arc<anyrec::Dataset>>),
    /// Records have memory of their own, which comes from there.
    Copied(Chunks, Recycler),
}

/// Lent records are verified so many bytes at a time (one record at least).
const LENT: usize = 64 << 10;
/// Large records are read so many bytes at a time, each into memory of its own.
const AT_A_TIME: usize = 512 << 10;
/// Chunks whose memory is kept to be used again.
const KEPT: usize = 16;

impl Ahead {
    /// The next record, if it is there already.
    fn ready(&mut self) -> Option<Bytes> {
        match self.ready.front() {
            Some(Ok(_)) => self.ready.pop_front().and_then(Result::ok),
            _ => None,
        }
    }

    fn next(&mut self) -> Result<Option<Bytes>> {
        if self.ready.is_empty() {
            self.refill();
        }
        self.ready.pop_front().transpose()
    }

    fn refill(&mut self) {
        match &mut self.records {
            Source::Lent(records) => {
                let mut size = 0;
                while size < LENT
                    && let Some(record) = records.next()
                {
                    // An empty record is some work too.
                    size += record.as_ref().map_or(LENT, |record| record.len().max(64));
                    self.ready.push_back(record);
                }
            }
            Source::Copied(chunks, buffers) => {
                let mut size = 0;
                while size < AT_A_TIME {
                    let mut batch = buffers.take();
                    let outcome = chunks.fill(&mut batch);
                    // A chunk of small records is enough; of large ones some are worth the call.
                    size += if batch.len() == 1 { batch.buffer().len() } else { AT_A_TIME };
                    let (buffer, offsets) = lend(batch, buffers);
                    for (begin, end) in offsets.iter().zip(offsets.iter().skip(1)) {
                        let range = usize::try_from(*begin).ok().zip(usize::try_from(*end).ok());
                        self.ready.extend(range.map(|(begin, end)| Ok(buffer.slice(begin..end))));
                    }
                    if let Err(error) = outcome {
                        self.ready.push_back(Err(error));
                        break;
                    }
                }
            }
        }
    }
}

impl RecordIterator {
    /// Gives records memory of their own.
    pub fn copying(dataset: Arc<anyrec::Dataset>) -> Self {
        Self::over(Source::Copied(dataset.chunks(), Recycler::new(KEPT)))
    }

    /// Lends records from mapped files.
    pub fn lending(dataset: Arc<anyrec::Dataset>) -> Self {
        Self::over(Source::Lent(dataset.shared_iter()))
    }

    fn over(records: Source) -> Self {
        RecordIterator(Handle::reader("the iteration", Ahead { records, ready: VecDeque::new() }))
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
