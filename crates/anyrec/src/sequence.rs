//! The records of a dataset in order: one by one, in batches, in chunks.

use crate::batch::Batch;
use crate::dataset::Dataset;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Event, OpenOptions, Scan};
use crate::input::Input;
use crate::io::ReadAt;
use crate::pool::in_background;
use crate::process::generation;
use crate::scan_ahead::scan_ahead;
use bytes::Bytes;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

/// Iterator over the records of a dataset, see [`Dataset::iter`].
pub struct Records<D> {
    dataset: D,
    next_file: usize,
    /// The scan in progress, and what it reads.
    current: Option<(Box<dyn Scan>, Arc<dyn ReadAt>)>,
    /// What went wrong behind the records of the last batch.
    failure: Option<Error>,
}

impl<D: Deref<Target = Dataset>> Records<D> {
    pub(crate) fn new(dataset: D) -> Self {
        Records { dataset, next_file: 0, current: None, failure: None }
    }

    /// Fills a batch with the next records: `count` of them, or fewer where they come to `bytes`
    /// bytes (one at least). Empty at the end.
    ///
    /// # Errors
    /// As the iteration; the records before the failure come first.
    pub fn fill(&mut self, batch: &mut Batch, count: usize, bytes: usize) -> Result<()> {
        batch.clear();
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        while batch.len() < count && (batch.is_empty() || batch.buffer().len() < bytes) {
            match self.step(|_, record| batch.push(record)) {
                Ok(Some(())) => {}
                Ok(None) => break,
                Err(error) => {
                    let error = self.failed(error);
                    if batch.is_empty() {
                        return Err(error);
                    }
                    self.failure = Some(error);
                    break;
                }
            }
        }
        Ok(())
    }

    /// After a failure that would come again for ever the file is over.
    fn failed(&mut self, error: Error) -> Error {
        if error.kind() != ErrorKind::Corrupt {
            self.current = None;
        }
        error
    }

    /// Takes the next record; `None` at the end.
    fn step<R>(&mut self, take: impl FnOnce(&Arc<dyn ReadAt>, &[u8]) -> R) -> Result<Option<R>> {
        loop {
            let Some((scan, source)) = &mut self.current else {
                let Some(file) = self.dataset.files.get(self.next_file) else { return Ok(None) };
                self.next_file += 1;
                let input = Input::over(file.source.clone(), file.reader.format());
                let options = &OpenOptions { notices: false, ..self.dataset.options.clone() };
                // Handing records from one thread to another costs more than reading them, unless they
                // must be decoded.
                let scan = match file.reader.is_transformed() {
                    true => scan_ahead(input, options)?,
                    false => input.scan(options)?,
                };
                self.current = Some((scan, file.source.clone()));
                continue;
            };
            match scan.next_event()? {
                Event::Record(record) => return Ok(Some(take(source, record.data))),
                Event::Damage(damage) if !self.dataset.options.skip_damage => {
                    return Err(damage.into_error(source.name()));
                }
                Event::End => self.current = None,
                _ => {}
            }
        }
    }
}

impl<D: Deref<Target = Dataset>> Iterator for Records<D> {
    type Item = Result<Bytes>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failure.take() {
            return Some(Err(error));
        }
        self.step(lend).map_err(|error| self.failed(error)).transpose()
    }
}

/// The records of a dataset in order, some at a time. See [`Dataset::batches`].
///
/// Where records are found without a scan they are read as a batch is, on several threads. The
/// first damage ends that: from there on a scan tells what is wrong and where to go on.
pub struct Batches {
    dataset: Arc<Dataset>,
    next: u64,
    scan: Option<Records<Arc<Dataset>>>,
}

impl Batches {
    pub(crate) fn new(dataset: Arc<Dataset>) -> Self {
        Batches { dataset, next: 0, scan: None }
    }

    /// Fills a batch with the next records, `count` of them where there are as many. Empty at the
    /// end.
    ///
    /// # Errors
    /// As the iteration with [`Dataset::iter`]: damage is an error once, the records before it come
    /// first, and the next call goes on behind it.
    pub fn fill(&mut self, batch: &mut Batch, count: usize) -> Result<()> {
        let numbered =
            self.dataset.format().capabilities().random_access && !self.dataset.options.skip_damage;
        if numbered && self.scan.is_none() {
            let end = self.next.saturating_add(count as u64).min(self.dataset.len()?);
            let indices: Vec<u64> = (self.next..end).collect();
            let threads = self.dataset.options.thread_count();
            if self.dataset.read_batch_into(&indices, batch, threads).is_ok() {
                self.next = end;
                return Ok(());
            }
        }
        let scan = match &mut self.scan {
            Some(scan) => scan,
            None => {
                let mut scan = Arc::clone(&self.dataset).shared_iter();
                for _ in 0..self.next {
                    scan.step(|_, _| ())?;
                }
                self.scan.insert(scan)
            }
        };
        scan.fill(batch, count, usize::MAX)
    }
}

/// The records of a dataset in order, in chunks of some 64 KiB, or of one record where that is
/// larger. See [`Dataset::chunks`].
///
/// After the first few chunks another thread reads the next one while the caller deals with the
/// last.
pub struct Chunks {
    records: Option<Records<Arc<Dataset>>>,
    /// The chunk that is being read, and the process whose thread does it.
    coming: Option<(u32, Receiver<Chunk>)>,
    /// Memory for the one after that.
    spare: Batch,
    given: usize,
    threads: usize,
}

struct Chunk {
    records: Records<Arc<Dataset>>,
    batch: Batch,
    outcome: Result<()>,
}

/// Bytes and records of a chunk.
const CHUNK: (usize, usize) = (64 << 10, 512);

/// Chunks that are read by the caller's own thread: who wants but a few records starts no other.
const OWN_CHUNKS: usize = 16;

/// Records in a chunk that make it worth another thread: large ones are read as fast by their own.
const SMALL_RECORDS: usize = 16;

impl Chunks {
    pub(crate) fn new(dataset: Arc<Dataset>) -> Self {
        let threads = dataset.options.thread_count();
        Chunks { records: Some(Records::new(dataset)), coming: None, spare: Batch::new(), given: 0, threads }
    }

    /// Fills a batch with the next records. Empty at the end.
    ///
    /// # Errors
    /// As [`Batches::fill`]; [`Invalid`](ErrorKind::Invalid) in a process that was forked in the
    /// middle of it.
    pub fn fill(&mut self, batch: &mut Batch) -> Result<()> {
        let outcome = match (self.coming.take(), self.records.take()) {
            (Some((process, coming)), _) if process == generation() => match coming.recv() {
                Ok(Chunk { records, batch: filled, outcome }) => {
                    self.spare = std::mem::replace(batch, filled);
                    self.records = Some(records);
                    outcome
                }
                Err(_) => Err(Error::invalid("the thread that read ahead panicked")),
            },
            (None, Some(mut records)) => {
                let outcome = records.fill(batch, CHUNK.1, CHUNK.0);
                self.records = Some(records);
                outcome
            }
            _ => {
                Err(Error::invalid("this iteration was under way when the process was forked: start another"))
            }
        };
        self.given += 1;
        let worth_it = self.given >= OWN_CHUNKS && self.threads > 1 && batch.len() >= SMALL_RECORDS;
        if worth_it && outcome.is_ok() {
            self.read_next();
        }
        outcome
    }

    fn read_next(&mut self) {
        let Some(mut records) = self.records.take() else { return };
        let mut batch = std::mem::take(&mut self.spare);
        let (sender, coming) = sync_channel(1);
        self.coming = Some((generation(), coming));
        in_background(move || {
            let outcome = records.fill(&mut batch, CHUNK.1, CHUNK.0);
            // Nobody listens any more when the iteration was dropped.
            let _ = sender.send(Chunk { records, batch, outcome });
        });
    }
}

/// `data` as shared bytes: a slice of the source where it lies in it, else a copy.
fn lend(source: &Arc<dyn ReadAt>, data: &[u8]) -> Bytes {
    let within = source.as_slice().and_then(|all| {
        let begin = (data.as_ptr() as usize).checked_sub(all.as_ptr() as usize)? as u64;
        let end = begin.checked_add(data.len() as u64)?;
        (end <= all.len() as u64).then_some(begin..end)
    });
    within.and_then(|range| source.bytes(range).ok()).unwrap_or_else(|| Bytes::copy_from_slice(data))
}
