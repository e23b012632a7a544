//! Reads the records of files in order, one by one or several at a time.

use crate::base::memory::copied;
use crate::base::{Batch, Error, ErrorKind, Result};
use crate::format::{Event, OpenOptions, RecordReader, Scan, scan_ahead};
use crate::io::{Source, Window};
use bytes::Bytes;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Iterator over the records of files, by a sequential scan; see [`Dataset::iter`](crate::Dataset::iter).
pub struct Records {
    /// Each file's source, as stored, and its reader.
    files: std::vec::IntoIter<(Arc<dyn Source>, Arc<dyn RecordReader>)>,
    options: OpenOptions,
    /// The scan in progress.
    current: Option<Current>,
    /// Whether records are returned without their headers.
    payloads: bool,
    /// How many damaged stretches were skipped or reported.
    damaged: u64,
    /// The error that followed the records of the last batch.
    failure: Option<Error>,
}

impl Records {
    pub(crate) fn new(files: Vec<(Arc<dyn Source>, Arc<dyn RecordReader>)>, options: &OpenOptions) -> Self {
        let options = options.clone().with_notices(false);
        Records {
            files: files.into_iter(),
            options,
            current: None,
            payloads: false,
            damaged: 0,
            failure: None,
        }
    }

    /// Returns the payloads of the records ([`Dataset::payload_of`](crate::Dataset::payload_of)) instead of
    /// whole records. A record that cannot be split ends the iteration.
    #[must_use]
    pub fn with_payloads(mut self) -> Self {
        self.payloads = true;
        self
    }

    /// How many damaged stretches of the files were met so far. After one, a record's place in the
    /// iteration need not be its number.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Fills a batch with the next records: `count` of them, or fewer if they reach `bytes` bytes (but
    /// at least one). The batch is empty at the end.
    ///
    /// # Errors
    /// As the iteration. The records before a failure are returned first.
    pub fn fill(&mut self, batch: &mut Batch, count: usize, bytes: usize) -> Result<()> {
        batch.clear();
        self.extend(batch, count, bytes)
    }

    /// Appends the next records to a batch, until it has `count` records or `bytes` bytes in total (but
    /// at least one record if it was empty). If nothing is appended, the batch was full or the end is
    /// reached.
    ///
    /// # Errors
    /// As [`fill`](Records::fill). The next call with an empty batch returns the error.
    pub fn extend(&mut self, batch: &mut Batch, count: usize, bytes: usize) -> Result<()> {
        if self.failure.is_some() && !batch.is_empty() {
            return Ok(());
        }
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        while batch.len() < count && (batch.buffer().len() < bytes || batch.is_empty()) {
            match self.push_some(batch, count, bytes) {
                Ok(Some(())) => {}
                Ok(None) => break,
                Err(error) if batch.is_empty() => return Err(self.ended_by(error)),
                Err(error) => {
                    self.failure = Some(self.ended_by(error));
                    break;
                }
            }
        }
        Ok(())
    }

    /// Running out of memory ends the iteration: continuing would skip sound records.
    fn ended_by(&mut self, error: Error) -> Error {
        if error.kind() == ErrorKind::OutOfMemory {
            self.end();
        }
        error
    }

    /// Ends the iteration.
    fn end(&mut self) {
        self.current = None;
        self.files = Vec::new().into_iter();
    }

    /// Appends one or more records to a batch, up to this many records or bytes; `None` at the end.
    fn push_some(&mut self, batch: &mut Batch, count: usize, bytes: usize) -> Result<Option<()>> {
        let before = batch.len();
        if let Some(current) = &mut self.current {
            // The same error would repeat forever, so this file is finished.
            current.scan.fill(batch, count, bytes).inspect_err(|_| self.current = None)?;
        }
        if batch.len() > before {
            if let Some(Current { reader, payloads, .. }) = self.current.as_mut().filter(|_| self.payloads) {
                let split = batch.shorten(before, |_, record| split(&**reader, payloads, record));
                split.inspect_err(|_| self.end())?;
            }
            return Ok(Some(()));
        }
        self.step(Window::read_ahead, |_, record| batch.try_push(record))
    }

    /// The next records, counted as in [`fill`](Records::fill): lent, not copied, if they lie in
    /// mapped files; see [`Dataset::lend`](crate::Dataset::lend). For an iteration that only lends.
    ///
    /// # Errors
    /// As [`fill`](Records::fill).
    pub fn lend(&mut self, count: usize, bytes: usize) -> Result<Vec<Bytes>> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let (mut lent, mut size) = (Vec::new(), 0);
        while lent.len() < count && (size < bytes || lent.is_empty()) {
            match self.step(Window::lending, lend).transpose() {
                Some(Ok(record)) => {
                    size += record.len();
                    lent.push(record);
                }
                Some(Err(error)) if lent.is_empty() => return Err(error),
                Some(Err(error)) => {
                    self.failure = Some(error);
                    break;
                }
                None => break,
            }
        }
        Ok(lent)
    }

    /// Takes the next record; `None` at the end. `look` decides how a new file is scanned.
    fn step<R>(
        &mut self,
        look: fn(Window) -> Window,
        take: impl FnOnce(&Arc<dyn Source>, &[u8]) -> Result<R>,
    ) -> Result<Option<R>> {
        loop {
            let Some(current) = &mut self.current else {
                let Some((source, reader)) = self.files.next() else { return Ok(None) };
                let window = look(Window::new(Arc::clone(&source)));
                // Passing records between threads costs more than reading them, unless they must be
                // decoded.
                let scan = match reader.is_transformed() {
                    true => scan_ahead(reader.format(), window, &self.options)?,
                    false => reader.format().scan(window, &self.options)?,
                };
                self.current = Some(Current { scan, source, reader, payloads: 0 });
                continue;
            };
            match current.scan.next_event() {
                Ok(Event::Record(record)) if self.payloads => {
                    let kept = split(&*current.reader, &mut current.payloads, record.data);
                    let taken = kept.and_then(|kept| {
                        take(&current.source, record.data.get(kept).unwrap_or_default()).map(Some)
                    });
                    return taken.inspect_err(|_| self.end());
                }
                Ok(Event::Record(record)) => return take(&current.source, record.data).map(Some),
                Ok(Event::Damage(damage)) => {
                    self.damaged += 1;
                    if !self.options.skip_damage {
                        return Err(damage.into_error(current.source.name()));
                    }
                }
                Ok(Event::End) => self.current = None,
                Ok(_) => {}
                Err(error) => {
                    // It would repeat forever, so this file is finished.
                    self.current = None;
                    return Err(error);
                }
            }
        }
    }
}

/// The file that is being scanned.
struct Current {
    scan: Box<dyn Scan>,
    source: Arc<dyn Source>,
    reader: Arc<dyn RecordReader>,
    /// How many of its payloads were returned.
    payloads: u64,
}

/// The range of a record's payload, which is counted.
fn split(reader: &dyn RecordReader, count: &mut u64, record: &[u8]) -> Result<Range<usize>> {
    let payload = reader.payload(record).map_err(|error| error.in_record(*count))?;
    *count += 1;
    Ok(record.len() - payload.len()..record.len())
}

impl Iterator for Records {
    type Item = Result<Bytes>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failure.take() {
            return Some(Err(error));
        }
        let next = self.step(Window::read_ahead, |_, record| Ok(copied(record)?.into()));
        next.map_err(|error| self.ended_by(error)).transpose()
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.current.as_ref().map(|current| current.source.name());
        f.debug_struct("Records").field("file", &file).field("files_left", &self.files.len()).finish()
    }
}

/// `data` as shared bytes: a slice of the source if it lies in it, else a copy.
fn lend(source: &Arc<dyn Source>, data: &[u8]) -> Result<Bytes> {
    let within = source.lendable().and_then(|all| {
        let begin = (data.as_ptr() as usize).checked_sub(all.as_ptr() as usize)?;
        let end = begin.checked_add(data.len())?;
        (end <= all.len()).then(|| all.slice(begin..end))
    });
    match within {
        Some(record) => Ok(record),
        None => Ok(copied(data)?.into()),
    }
}
