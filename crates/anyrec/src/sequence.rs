//! The records of a dataset in order: one by one, or some at a time.

use crate::batch::Batch;
use crate::dataset::Dataset;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Event, OpenOptions, Scan};
use crate::input::Input;
use crate::io::ReadAt;
use crate::room::copied;
use crate::scan_ahead::scan_ahead;
use bytes::Bytes;
use std::ops::Deref;
use std::sync::Arc;

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
        self.fill_more(batch, count, bytes)
    }

    /// As [`fill`](Records::fill), behind the records that the batch has: until there are `count`
    /// records or `bytes` bytes in it. Where it gets no more, the batch is complete.
    ///
    /// # Errors
    /// As [`fill`](Records::fill), for an empty batch; another one is to be taken first.
    pub fn fill_more(&mut self, batch: &mut Batch, count: usize, bytes: usize) -> Result<()> {
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

    /// Running out of memory ends the iteration: to go on would be to leave sound records out.
    fn ended_by(&mut self, error: Error) -> Error {
        if error.kind() == ErrorKind::OutOfMemory {
            (self.current, self.next_file) = (None, self.dataset.files.len());
        }
        error
    }

    /// Adds one record or more to a batch, up to so many records or bytes; `None` at the end.
    fn push_some(&mut self, batch: &mut Batch, count: usize, bytes: usize) -> Result<Option<()>> {
        let before = batch.len();
        if let Some((scan, _)) = &mut self.current {
            // An error would come again for ever: this file is over.
            scan.fill(batch, count, bytes).inspect_err(|_| self.current = None)?;
        }
        if batch.len() > before {
            return Ok(Some(()));
        }
        self.step(Input::read_ahead, |_, record| batch.try_push(record))
    }

    /// The next records as [`fill`](Records::fill) counts them: lent, not copied, where they lie in
    /// mapped files; see [`Dataset::lend`]. For an iteration that only lends.
    ///
    /// # Errors
    /// As [`fill`](Records::fill).
    pub fn lend(&mut self, count: usize, bytes: usize) -> Result<Vec<Bytes>> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let (mut lent, mut size) = (Vec::new(), 0);
        while lent.len() < count && (size < bytes || lent.is_empty()) {
            match self.step(Input::lending, lend).transpose() {
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

    /// Takes the next record; `None` at the end. A file that is begun is looked at as `look` says.
    fn step<R>(
        &mut self,
        look: fn(Input) -> Input,
        take: impl FnOnce(&Arc<dyn ReadAt>, &[u8]) -> Result<R>,
    ) -> Result<Option<R>> {
        loop {
            let Some((scan, source)) = &mut self.current else {
                let Some(file) = self.dataset.files.get(self.next_file) else { return Ok(None) };
                self.next_file += 1;
                let input = look(Input::over(file.source.clone(), file.reader.format()));
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
            match scan.next_event() {
                Ok(Event::Record(record)) => return take(source, record.data).map(Some),
                Ok(Event::Damage(damage)) if !self.dataset.options.skip_damage => {
                    return Err(damage.into_error(source.name()));
                }
                Ok(Event::End) => self.current = None,
                Ok(_) => {}
                Err(error) => {
                    // It would come again for ever: this file is over.
                    self.current = None;
                    return Err(error);
                }
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
        let next = self.step(Input::read_ahead, |_, record| Ok(copied(record)?.into()));
        next.map_err(|error| self.ended_by(error)).transpose()
    }
}

/// `data` as shared bytes: a slice of the source where it lies in it, else a copy.
fn lend(source: &Arc<dyn ReadAt>, data: &[u8]) -> Result<Bytes> {
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
