//! Sequential iteration over the records of a dataset.

use crate::batch::Batch;
use crate::buffers::lend;
use crate::errors::raised;
use crate::handle::Handle;
use crate::record::{Home, Record};
use anyrec::interrupt::go_on;
use anyrec::{BatchPool, Bytes, Error, Records, Result};
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Iterates over the records of a dataset in order.
///
/// Needs no index and no count. Damage is raised once; the iteration can then be resumed and
/// continues with the next intact record. Small records that are read together share memory, up to
/// 64 KiB.
#[pyclass(frozen, module = "anyrec")]
pub struct RecordIterator {
    source: Handle<Origin>,
    home: Arc<Home>,
    /// Held only briefly and without calling Python, so no thread waits for long.
    ready: Mutex<Ready>,
}

enum Origin {
    /// Records are slices of the mapped file.
    Lent(Records),
    /// Records are copied into memory of their own, taken from this pool.
    Copied(Records, BatchPool),
}

/// Records are read in chunks, so that each can be returned without releasing the GIL.
enum Chunk {
    Lent(std::vec::IntoIter<Bytes>),
    /// The memory, and where records begin and end in it.
    Copied(Bytes, Vec<u64>),
    /// The error that followed the records before it.
    Failed(Error),
    /// From here on, the number of a record is not known, because damage was met.
    Unnumbered,
}

/// What has been read but not yet returned.
#[derive(Default)]
struct Ready {
    /// The first chunk is in use.
    chunks: VecDeque<Chunk>,
    /// The next record of the first chunk.
    next: usize,
    /// How many records were returned. That is the number of the next one, until damage is met.
    count: u64,
    unnumbered: bool,
    /// Records of the first chunk that were returned. A loop drops each record once it has the next
    /// one. Two objects used alternately save allocating an object per record: without them, a loop
    /// over records of 200-1000 bytes takes 1.5 times as long (133 against 90 ns per record). Python's own `zip` and `enumerate` do the same with their
    /// tuples. Empty on free-threaded Python, where a reference count does not prove that no other
    /// thread has a reference.
    handed_out: Vec<Py<Record>>,
}

/// The next item.
enum Next {
    Again(Py<Record>),
    New(Record),
    Failed(Error),
}

/// The bytes and records of a chunk.
const CHUNK: (usize, usize) = (64 << 10, 512);
/// Large records, each of which is a chunk, are read this many bytes at a time.
const STRETCH: usize = 512 << 10;
/// The number of chunks whose memory is kept for reuse.
const KEPT: usize = 2 * STRETCH / CHUNK.0;
/// The number of record objects used alternately.
const TURNS: usize = 2;

impl Origin {
    /// The next chunks; none at the end.
    fn read(&mut self) -> Vec<Chunk> {
        let damaged = self.records().damaged();
        let mut chunks = self.read_records();
        if self.records().damaged() > damaged {
            // Where among the records the damage was is not known.
            chunks.insert(0, Chunk::Unnumbered);
        }
        chunks
    }

    fn records(&self) -> &Records {
        match self {
            Origin::Lent(records) | Origin::Copied(records, _) => records,
        }
    }

    fn read_records(&mut self) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        match self {
            Origin::Lent(records) => match records.lend(CHUNK.1, CHUNK.0) {
                Ok(lent) if lent.is_empty() => {}
                Ok(lent) => chunks.push(Chunk::Lent(lent.into_iter())),
                Err(error) => chunks.push(Chunk::Failed(error)),
            },
            Origin::Copied(records, buffers) => {
                let mut size = 0;
                while size < STRETCH {
                    let mut batch = buffers.take();
                    if let Err(error) = records.fill(&mut batch, CHUNK.1, CHUNK.0) {
                        chunks.push(Chunk::Failed(error));
                        break;
                    }
                    if batch.is_empty() {
                        break;
                    }
                    size += if batch.len() == 1 { batch.buffer().len() } else { STRETCH };
                    let (buffer, offsets) = lend(batch, buffers);
                    chunks.push(Chunk::Copied(buffer, offsets));
                }
            }
        }
        chunks
    }
}

impl Ready {
    fn next(&mut self, py: Python<'_>, home: &Arc<Home>) -> Option<Next> {
        loop {
            let number = (!self.unnumbered).then_some(self.count);
            match self.chunks.front_mut()? {
                Chunk::Copied(memory, offsets) => {
                    if let Some(place) = place(offsets, self.next) {
                        self.next += 1;
                        self.count += 1;
                        let free = self.handed_out.iter().find(|record| is_ours_alone(record));
                        return Some(match free {
                            Some(record) => {
                                record.get().move_to(place, number);
                                Next::Again(record.clone_ref(py))
                            }
                            None => Next::New(Record::within(memory.clone(), place).of(home, number)),
                        });
                    }
                }
                Chunk::Lent(records) => {
                    if let Some(record) = records.next() {
                        self.count += 1;
                        return Some(Next::New(Record::new(record).of(home, number)));
                    }
                }
                Chunk::Unnumbered => self.unnumbered = true,
                Chunk::Failed(_) => {}
            }
            self.handed_out.clear();
            self.next = 0;
            if let Some(Chunk::Failed(error)) = self.chunks.pop_front() {
                return Some(Next::Failed(error));
            }
        }
    }

    /// Remembers a record of the first chunk that will be returned.
    fn keep(&mut self, py: Python<'_>, record: &Py<Record>) {
        if cfg!(not(Py_GIL_DISABLED))
            && let Some(Chunk::Copied(memory, _)) = self.chunks.front()
            && self.handed_out.len() < TURNS
            && record.get().shares(memory)
        {
            self.handed_out.push(record.clone_ref(py));
        }
    }
}

/// Whether only [`Ready::handed_out`] still references the record.
fn is_ours_alone(record: &Py<Record>) -> bool {
    // SAFETY: the object lives as long as the reference to it, and the caller holds the GIL. A view
    // of the record's memory also holds a reference.
    cfg!(not(Py_GIL_DISABLED)) && unsafe { pyo3::ffi::Py_REFCNT(record.as_ptr()) == 1 }
}

fn place(offsets: &[u64], index: usize) -> Option<Range<usize>> {
    let begin = usize::try_from(*offsets.get(index)?).ok()?;
    let end = usize::try_from(*offsets.get(index + 1)?).ok()?;
    Some(begin..end)
}

/// The records of a dataset in order, whole or as payloads.
fn in_order(dataset: &anyrec::Dataset, payloads: bool) -> Records {
    match payloads {
        true => dataset.iter().with_payloads(),
        false => dataset.iter(),
    }
}

impl RecordIterator {
    /// Copies records into memory of their own, or lends them from mapped files.
    pub fn new(dataset: Arc<anyrec::Dataset>, payloads: bool, copy: bool) -> Self {
        let records = in_order(&dataset, payloads);
        let source = match copy {
            true => Origin::Copied(records, BatchPool::new(KEPT)),
            false => Origin::Lent(records),
        };
        RecordIterator {
            source: Handle::reader("the iteration", source),
            home: Home::in_order(dataset, payloads),
            ready: Mutex::default(),
        }
    }

    fn ready(&self) -> MutexGuard<'_, Ready> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl RecordIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Record>>> {
        loop {
            let next = self.ready().next(py, &self.home);
            match next {
                Some(Next::Again(record)) => return Ok(Some(record)),
                Some(Next::New(record)) => {
                    let record = Py::new(py, record)?;
                    self.ready().keep(py, &record);
                    return Ok(Some(record));
                }
                Some(Next::Failed(error)) => return Err(raised(error)),
                None => {}
            }
            let chunks = self.source.with(py, |source| Ok(source.read()))?;
            if chunks.is_empty() {
                return Ok(None);
            }
            self.ready().chunks.extend(chunks);
        }
    }
}

/// The records of a dataset in order, in batches.
#[pyclass(frozen, module = "anyrec")]
pub struct BatchIterator {
    size: usize,
    home: Arc<Home>,
    buffers: BatchPool,
    reading: Handle<Reading>,
}

struct Reading {
    records: Records,
    /// How many records were returned.
    count: u64,
    /// What was read before an interruption: the next batch begins with it.
    begun: Option<anyrec::Batch>,
}

/// Ctrl-C is checked after this many bytes of a batch.
const ROUND: usize = 8 << 20;

impl Reading {
    /// The next batch, empty at the end. Reuses `begun` for it unless a batch was already begun.
    fn next(&mut self, spare: anyrec::Batch, size: usize) -> Result<anyrec::Batch> {
        let batch = self.begun.get_or_insert(spare);
        loop {
            let before = batch.len();
            self.records.extend(batch, size, batch.buffer().len().saturating_add(ROUND))?;
            if batch.len() == before || batch.len() >= size {
                return Ok(self.begun.take().unwrap_or_default());
            }
            go_on()?;
        }
    }
}

impl BatchIterator {
    /// Batches of `size` records.
    pub fn new(dataset: Arc<anyrec::Dataset>, buffers: BatchPool, size: usize, payloads: bool) -> Self {
        let reading = Reading { records: in_order(&dataset, payloads), count: 0, begun: None };
        let home = Home::in_order(dataset, payloads);
        BatchIterator { size, home, buffers, reading: Handle::reader("the iteration", reading) }
    }
}

#[pymethods]
impl BatchIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let mut spare = self.buffers.take();
        spare.clear();
        let (batch, numbers) = self.reading.with(py, move |reading| {
            let batch = reading.next(spare, self.size)?;
            let first = reading.count;
            reading.count += batch.len() as u64;
            // Without numbers after damage: a record's place in the order is then not its number.
            let is_numbered = reading.records.damaged() == 0;
            Ok((batch, if is_numbered { (first..reading.count).collect() } else { Vec::new() }))
        })?;
        let lent = |batch| Batch::new(lend(batch, &self.buffers)).of(Arc::clone(&self.home), numbers);
        Ok((!batch.is_empty()).then(|| lent(batch)))
    }
}
