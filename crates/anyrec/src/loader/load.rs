//! One batch: its numbers, its records, and what happens to those that cannot be read or decoded.

use super::plan::Plan;
use super::source::Source;
use crate::batch::Batch;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Label, Tags};
use crate::recycler::Recycler;
use crate::room::check_room;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Before a batch of more records than this is planned, the files are asked whether they have them.
const MANY: u64 = 1 << 16;
/// And the lists about them, so many bytes a record, must find room.
const PER_RECORD: usize = 256;

/// What happens when a record cannot be read or decoded.
///
/// Whatever is chosen, a batch without a single good record is an error, and so is running out of
/// memory ([`ErrorKind::OutOfMemory`]), which says nothing about a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnError {
    /// The batch is an error, and the loader stays before it: asking again tries it again.
    #[default]
    Raise,
    /// The batch comes without it.
    Skip,
    /// The next good record of the same batch (after the last comes the first) is there twice.
    Replace,
    /// What cannot be decoded is all zeros, with the label that it has. What cannot even be read is
    /// an error, as with [`Raise`](OnError::Raise).
    Blank,
}

/// Turns each record into the sample that a batch holds, on the loader's threads.
///
/// All samples have the same size. A batch of them is one buffer, ready to become a tensor. The crate
/// `anyrec-image` implements this trait for images; give your own to
/// [`LoaderOptions::decode`](super::LoaderOptions::decode).
///
/// ```
/// use anyrec::loader::{Decode, Sample};
/// use anyrec::{Error, Result};
///
/// /// Numbers as text become four bytes each.
/// struct Numbers;
///
/// impl Decode for Numbers {
///     fn size(&self) -> usize {
///         4
///     }
///
///     fn decode(&self, _: &Sample, payload: &[u8], into: &mut [u8]) -> Result<()> {
///         let text = str::from_utf8(payload).map_err(|_| Error::corrupt("the record is not text"))?;
///         let number: u32 = text.parse().map_err(|_| Error::corrupt("the record is not a number"))?;
///         into.copy_from_slice(&number.to_ne_bytes());
///         Ok(())
///     }
/// }
/// ```
pub trait Decode: Send + Sync {
    /// The size of a sample in bytes, the same for every record.
    fn size(&self) -> usize;

    /// The tags of a record, where the record itself says more than its file (`stored`) does. The
    /// payload begins behind [`header_length`](Tags::header_length) bytes.
    fn tags(&self, _record: &[u8], stored: Tags) -> Tags {
        stored
    }

    /// Makes a sample of a record's payload. `into` has [`size`](Decode::size) bytes; their contents
    /// are unspecified, so write all of them.
    ///
    /// The result must depend on the arguments alone. Then it is the same for any number of threads
    /// and ranks, and after a resume.
    ///
    /// # Errors
    /// When the payload cannot be decoded; [`OnError`] decides what happens to the batch.
    fn decode(&self, sample: &Sample, payload: &[u8], into: &mut [u8]) -> Result<()>;
}

/// One turn of a record, for those who decode at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample {
    /// The plan's seed.
    pub seed: u64,
    /// The epoch.
    pub epoch: u64,
    /// The place in the order of the epoch, over all ranks.
    pub place: u64,
    /// The record's number.
    pub record: u64,
}

/// A batch as a loader gives it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Loaded {
    /// The records, decoded if the loader decodes.
    pub records: Batch,
    /// Their numbers.
    pub indices: Vec<u64>,
    /// Their labels, if they were asked for.
    pub labels: Option<Vec<Option<Label>>>,
    /// With the labels: the ids of their image headers, their numbers where they have none.
    pub ids: Option<Vec<u64>>,
    /// How many of them, at the end, only fill the last batch of an epoch up, see
    /// [`Plan::fill`](super::Plan::fill).
    pub padding: u64,
}

/// A record that could not be read or decoded.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The epoch in which that was.
    pub epoch: u64,
    /// The record's number.
    pub record: u64,
    /// Why.
    pub error: Error,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {}, record {}: {}", self.epoch, self.record, self.error)
    }
}

/// Everything that loading a batch needs.
#[derive(Clone)]
pub(super) struct Job {
    pub source: Arc<dyn Source>,
    pub plan: Plan,
    pub on_error: OnError,
    pub labels: bool,
    pub decode: Option<Arc<dyn Decode>>,
    /// For the batches that are given out.
    pub recycler: Recycler,
    /// For the records that samples are made of: much smaller, and never given out.
    pub undecoded: Recycler,
}

/// Records read for a batch, and what belongs to each where anybody asks for it.
struct Read {
    /// The places in the batch of those that are good, ascending, and which of `records` each is.
    good: Vec<(usize, usize)>,
    records: Batch,
    tags: Vec<Tags>,
}

impl Job {
    /// The batch of the step that begins at `consumed`, read by up to `threads` threads, and the
    /// records that failed. An error once `stop` is set: nobody waits for the batch any more.
    pub fn load(
        &self,
        epoch: u64,
        consumed: u64,
        threads: usize,
        stop: &AtomicBool,
    ) -> Result<(Loaded, Vec<Failure>)> {
        let mut indices = Vec::new();
        let count = self.plan.count(consumed);
        if count > MANY {
            // The plan is as long as the files say, and they may say too much.
            self.source.check_all()?;
            check_room(usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(PER_RECORD))?;
        }
        let padding = self.plan.fill(epoch, consumed, &mut indices);
        let mut failures = Vec::new();
        let mut failed = |record: u64, error: Error| failures.push(Failure { epoch, record, error });
        let mut read = self.read(&indices, threads, &mut failed)?;
        if let Some(decode) = &self.decode {
            let first = self.plan.first(consumed);
            let sample = |place: usize| Sample {
                seed: self.plan.seed(),
                epoch,
                place: first.saturating_add(place as u64) % self.plan.samples().max(1),
                record: indices.get(place).copied().unwrap_or(0),
            };
            self.decode(decode.as_ref(), &mut read, sample, stop, &mut failed)?;
        }
        let kept = self.kept(indices.len(), &read.good);
        if kept.is_empty() && !indices.is_empty() {
            let first = failures.into_iter().next();
            return Err(first.map_or_else(|| Error::invalid("a batch has no good record"), |one| one.error));
        }
        let real = indices.len().saturating_sub(usize::try_from(padding).unwrap_or(usize::MAX));
        let padding = kept.iter().filter(|kept| kept.place >= real).count() as u64;
        let Read { mut records, mut tags, .. } = read;
        if !kept.iter().map(|kept| kept.at).eq(0..records.len()) {
            let gathered = kept.iter().map(|kept| records.get(kept.at).unwrap_or_default()).collect();
            self.recycler.give(std::mem::replace(&mut records, gathered));
            tags = kept.iter().filter_map(|kept| tags.get(kept.at).cloned()).collect();
        }
        let indices: Vec<u64> = kept.iter().filter_map(|kept| indices.get(kept.from).copied()).collect();
        let ids = self.labels.then(|| {
            let id = |(tags, &index): (&Tags, &u64)| tags.ids.map_or(index, |[id, _]| id);
            tags.iter().zip(&indices).map(id).collect()
        });
        let labels = self.labels.then(|| tags.into_iter().map(|tags| tags.label).collect());
        Ok((Loaded { records, indices, labels, ids, padding }, failures))
    }

    /// Reads records, and what belongs to them where that is of use.
    fn read(&self, indices: &[u64], threads: usize, failed: &mut impl FnMut(u64, Error)) -> Result<Read> {
        let recycler = if self.decode.is_some() { &self.undecoded } else { &self.recycler };
        let mut records = recycler.take();
        let mut readable: Vec<(usize, u64)> = indices.iter().copied().enumerate().collect();
        match self.source.fill(indices, &mut records, threads) {
            Ok(()) => {}
            Err(error)
                if matches!(self.on_error, OnError::Raise | OnError::Blank)
                    || error.kind() == ErrorKind::OutOfMemory =>
            {
                return Err(error);
            }
            Err(_) => {
                // Which of them it was is found by reading them one by one.
                let mut no_memory = Ok(());
                readable.retain(|&(_, record)| match self.source.fill(&[record], &mut records, 1) {
                    Ok(()) => true,
                    Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                        no_memory = Err(error);
                        false
                    }
                    Err(error) => {
                        failed(record, error);
                        false
                    }
                });
                no_memory?;
                let numbers: Vec<u64> = readable.iter().map(|&(_, record)| record).collect();
                self.source.fill(&numbers, &mut records, threads)?;
            }
        }
        let mut tags = Vec::new();
        if self.labels || self.decode.is_some() {
            for (&(_, number), record) in readable.iter().zip(records.iter()) {
                let stored = self.source.tags(number, record)?;
                tags.push(match &self.decode {
                    Some(decode) => decode.tags(record, stored),
                    None => stored,
                });
            }
        }
        let good = readable.iter().enumerate().map(|(at, &(place, _))| (place, at)).collect();
        Ok(Read { good, records, tags })
    }

    /// Makes samples of the records that were read.
    fn decode(
        &self,
        decode: &dyn Decode,
        read: &mut Read,
        sample: impl Fn(usize) -> Sample,
        stop: &AtomicBool,
        failed: &mut impl FnMut(u64, Error),
    ) -> Result<()> {
        let size = decode.size();
        let mut samples = self.recycler.take();
        let ends = (0..=read.records.len() as u64).map(|end| end.saturating_mul(size as u64));
        let mut slots = samples.lay_out(ends.collect())?.chunks_exact_mut(size.max(1));
        let Read { good, records, tags } = read;
        let mut inputs = records.iter().zip(tags.iter());
        let mut outcome = Ok(());
        good.retain(|&(place, _)| {
            let (Some((record, tags)), Ok(())) = (inputs.next(), &outcome) else { return false };
            if stop.load(Ordering::Relaxed) {
                outcome = Err(Error::invalid("the loader was closed"));
                return false;
            }
            let (slot, sample) = (slots.next().unwrap_or_default(), sample(place));
            let payload = record.get(tags.header_length..).unwrap_or_default();
            let Err(error) = decode.decode(&sample, payload, slot) else { return true };
            let error = self.source.placed(sample.record, error);
            match self.on_error {
                _ if error.kind() == ErrorKind::OutOfMemory => outcome = Err(error),
                OnError::Raise => outcome = Err(error),
                OnError::Skip | OnError::Replace => failed(sample.record, error),
                OnError::Blank => {
                    slot.fill(0);
                    failed(sample.record, error);
                    return true;
                }
            }
            false
        });
        drop(inputs);
        outcome?;
        self.undecoded.give(std::mem::replace(records, samples));
        Ok(())
    }

    /// Which of `count` places of a batch hold which of the good records.
    fn kept(&self, count: usize, good: &[(usize, usize)]) -> Vec<Kept> {
        let next = |place: usize| {
            let after = good.partition_point(|&(good, _)| good < place);
            good.get(after).or_else(|| good.first())
        };
        (0..count)
            .filter_map(|place| {
                let &(from, at) = next(place)?;
                (from == place || self.on_error == OnError::Replace).then_some(Kept { place, from, at })
            })
            .collect()
    }
}

/// A place of a batch, the place whose record it holds, and which of those read that is.
struct Kept {
    place: usize,
    from: usize,
    at: usize,
}
