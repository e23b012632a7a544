//! Where a loader's records come from: a dataset, a selection of one, or several.

use crate::batch::Batch;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::format::Tags;
use std::sync::Arc;

/// Numbered records. Shared between threads.
pub trait Source: Send + Sync {
    /// Number of records.
    ///
    /// # Errors
    /// As [`Dataset::len`].
    fn count(&self) -> Result<u64>;

    /// Puts the records of these numbers into `batch`, in this order, repeats kept, in place of
    /// what it held. Up to `threads` threads may work on it.
    ///
    /// # Errors
    /// As [`Dataset::read_batch`]; the batch then holds anything.
    fn fill(&self, numbers: &[u64], batch: &mut Batch, threads: usize) -> Result<()>;

    /// Key and label of a record that was read.
    ///
    /// # Errors
    /// As [`Dataset::tags`].
    fn tags(&self, number: u64, record: &[u8]) -> Result<Tags>;

    /// An error about a record that was read, with the place of that record.
    fn placed(&self, number: u64, error: Error) -> Error {
        error.in_record(number)
    }

    /// Makes sure that the records that are counted are there, as far as that can be told without
    /// reading them ([`Dataset::check_range`]): asked before a list of very many is made.
    ///
    /// # Errors
    /// As [`Dataset::check_range`].
    fn check_all(&self) -> Result<()> {
        Ok(())
    }
}

impl Source for Dataset {
    fn count(&self) -> Result<u64> {
        self.len()
    }

    fn fill(&self, numbers: &[u64], batch: &mut Batch, threads: usize) -> Result<()> {
        self.read_batch_into(numbers, batch, threads)
    }

    fn tags(&self, number: u64, record: &[u8]) -> Result<Tags> {
        self.tags_of(number, record)
    }

    fn placed(&self, number: u64, error: Error) -> Error {
        Dataset::placed(self, number, error)
    }

    fn check_all(&self) -> Result<()> {
        self.check_range(&(0..self.len()?))
    }
}

/// Some of the records of a source, in an order of one's own.
///
/// ```
/// # use std::sync::Arc;
/// # fn main() -> anyrec::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("three.ffr");
/// # let mut writer = anyrec::create(&path, "ffrecord")?;
/// # for record in [&b"one"[..], b"two", b"three"] {
/// #     writer.append(record, &anyrec::format::Tags::none())?;
/// # }
/// # writer.finish()?;
/// use anyrec::loader::{Selection, Source};
///
/// let dataset = Arc::new(anyrec::open(&path)?);
/// let selection = Selection::new(dataset, vec![2, 0])?;
/// let mut batch = anyrec::Batch::new();
/// selection.fill(&[0], &mut batch, 1)?;
/// assert_eq!(batch.get(0), Some(&b"three"[..]));
/// # Ok(())
/// # }
/// ```
pub struct Selection {
    of: Arc<dyn Source>,
    numbers: Arc<[u64]>,
}

impl Selection {
    /// The records of these numbers.
    ///
    /// # Errors
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for a number that the source does not have.
    pub fn new(of: Arc<dyn Source>, numbers: impl Into<Arc<[u64]>>) -> Result<Selection> {
        let (numbers, count) = (numbers.into(), of.count()?);
        match numbers.iter().find(|&&number| number >= count) {
            Some(&number) => Err(Error::no_such_record(number, count)),
            None => Ok(Selection { of, numbers }),
        }
    }

    fn number(&self, number: u64) -> Result<u64> {
        let at = usize::try_from(number).ok().and_then(|number| self.numbers.get(number));
        at.copied().ok_or_else(|| Error::no_such_record(number, self.numbers.len() as u64))
    }
}

impl Source for Selection {
    fn count(&self) -> Result<u64> {
        Ok(self.numbers.len() as u64)
    }

    fn fill(&self, numbers: &[u64], batch: &mut Batch, threads: usize) -> Result<()> {
        let numbers = numbers.iter().map(|&number| self.number(number)).collect::<Result<Vec<_>>>()?;
        self.of.fill(&numbers, batch, threads)
    }

    fn tags(&self, number: u64, record: &[u8]) -> Result<Tags> {
        self.of.tags(self.number(number)?, record)
    }

    fn placed(&self, number: u64, error: Error) -> Error {
        match self.number(number) {
            Ok(number) => self.of.placed(number, error),
            Err(_) => error.in_record(number),
        }
    }
}

/// Several sources, numbered through: what a mixture ([`Plan::mix`](super::Plan::mix)) reads from.
pub struct Sources {
    parts: Vec<Arc<dyn Source>>,
    /// Number of each part's first record, then of all records.
    starts: Vec<u64>,
}

impl Sources {
    /// The sources in this order.
    ///
    /// # Errors
    /// As [`Source::count`].
    pub fn new(parts: Vec<Arc<dyn Source>>) -> Result<Sources> {
        let mut starts = vec![0u64];
        let mut total = 0u64;
        for part in &parts {
            total = total
                .checked_add(part.count()?)
                .ok_or_else(|| Error::invalid("there are 2^64 records or more"))?;
            starts.push(total);
        }
        Ok(Sources { parts, starts })
    }

    /// Which part a record is in, and its number there.
    fn find(&self, number: u64) -> Result<(usize, u64)> {
        let part = self.starts.partition_point(|&start| start <= number).saturating_sub(1);
        match self.starts.get(part) {
            Some(start) if part < self.parts.len() => Ok((part, number - start)),
            _ => Err(Error::no_such_record(number, self.starts.last().copied().unwrap_or(0))),
        }
    }
}

impl Source for Sources {
    fn count(&self) -> Result<u64> {
        Ok(self.starts.last().copied().unwrap_or(0))
    }

    fn fill(&self, numbers: &[u64], batch: &mut Batch, threads: usize) -> Result<()> {
        // One batched read a part; the caller's order is restored from the pieces.
        let mut wanted: Vec<Vec<u64>> = vec![Vec::new(); self.parts.len()];
        let mut places = Vec::with_capacity(numbers.len());
        for &number in numbers {
            let (part, local) = self.find(number)?;
            if let Some(list) = wanted.get_mut(part) {
                places.push((part, list.len()));
                list.push(local);
            }
        }
        let mut pieces = vec![Batch::new(); self.parts.len()];
        for ((part, list), piece) in self.parts.iter().zip(&wanted).zip(&mut pieces) {
            if !list.is_empty() {
                part.fill(list, piece, threads)?;
            }
        }
        batch.clear();
        for (part, at) in places {
            batch.try_push(pieces.get(part).and_then(|piece| piece.get(at)).unwrap_or_default())?;
        }
        Ok(())
    }

    fn tags(&self, number: u64, record: &[u8]) -> Result<Tags> {
        let (part, local) = self.find(number)?;
        match self.parts.get(part) {
            Some(part) => part.tags(local, record),
            None => Ok(Tags::none()),
        }
    }

    fn placed(&self, number: u64, error: Error) -> Error {
        let part = self.find(number).ok().and_then(|(part, local)| Some((self.parts.get(part)?, local)));
        match part {
            Some((part, local)) => part.placed(local, error),
            None => error.in_record(number),
        }
    }

    fn check_all(&self) -> Result<()> {
        self.parts.iter().try_for_each(|part| part.check_all())
    }
}
