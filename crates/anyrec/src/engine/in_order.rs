//! Reads the records of files in order, one by one or several at a time.

use crate::base::memory::copied;
use crate::base::{Batch, Error, ErrorKind, Result};
use crate::format::{Event, OpenOptions, RecordReader, Scan, scan_ahead};
use crate::io::{Source, Window};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// Iterator over the records of files, by a sequential scan; see [`Dataset::iter`](crate::Dataset::iter).
pub struct Records {
    /// Each file's source, as stored, and its reader.
    files: std::vec::IntoIter<(Arc<dyn Source>, Arc<dyn RecordReader>)>,
    options: OpenOptions,
    /// The scan in progress, and its source.
    current: Option<(Box<dyn Scan>, Arc<dyn Source>)>,
    /// The error that followed the records of the last batch.
    failure: Option<Error>,
}

impl Records {
    pub(crate) fn new(files: Vec<(Arc<dyn Source>, Arc<dyn RecordReader>)>, options: &OpenOptions) -> Self {
        let options = options.clone().with_notices(false);
        Records { files: files.into_iter(), options, current: None, failure: None }
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
            self.current = None;
            self.files = Vec::new().into_iter();
        }
        error
    }

    /// Appends one or more records to a batch, up to this many records or bytes; `None` at the end.
    fn push_some(&mut self, batch: &mut Batch, count: usize, bytes: usize) -> Result<Option<()>> {
        let before = batch.len();
        if let Some((scan, _)) = &mut self.current {
            // The same error would repeat forever, so this file is finished.
            scan.fill(batch, count, bytes).inspect_err(|_| self.current = None)?;
        }
        if batch.len() > before {
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
            let Some((scan, source)) = &mut self.current else {
                let Some((source, reader)) = self.files.next() else { return Ok(None) };
                let window = look(Window::new(Arc::clone(&source)));
                // Passing records between threads costs more than reading them, unless they must be
                // decoded.
                let scan = match reader.is_transformed() {
                    true => scan_ahead(reader.format(), window, &self.options)?,
                    false => reader.format().scan(window, &self.options)?,
                };
                self.current = Some((scan, source));
                continue;
            };
            match scan.next_event() {
                Ok(Event::Record(record)) => return take(source, record.data).map(Some),
                Ok(Event::Damage(damage)) if !self.options.skip_damage => {
                    return Err(damage.into_error(source.name()));
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
        let file = self.current.as_ref().map(|(_, source)| source.name());
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
