//! One batch: its numbers, its records, and the handling of records that cannot be read or decoded.

use super::plan::Plan;
use crate::base::memory::check_available;
use crate::base::{Batch, Error, ErrorKind, Label, Position, Result, Tags};
use crate::engine::{self, BatchPool, Fetch, OnBad, Place, RecordSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Before a batch of more records than this is planned, the files are checked to contain them.
const MANY: u64 = 1 << 16;
/// Memory per record for the batch's bookkeeping, which must be available.
const PER_RECORD: usize = 256;

/// What to do if a record cannot be read or decoded.
///
/// With every choice, a batch without a single good record is an error. So is running out of memory
/// ([`ErrorKind::OutOfMemory`]), which says nothing about a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnError {
    /// Fail the batch. The loader stays before it: the next call tries it again.
    #[default]
    Raise,
    /// Leave the record out of the batch.
    Skip,
    /// Repeat the next good record of the same batch (after the last comes the first) in its place.
    Replace,
    /// Fill a sample that cannot be decoded with zeros, and keep its label. A record that cannot be
    /// read is an error, as with [`Raise`](OnError::Raise).
    Blank,
}

/// Turns each record into a sample of a batch, on the loader's threads.
///
/// All samples have the same size. A batch of them is one buffer, ready to become a tensor. The
/// crate `anyrec-image` implements this trait for images; pass your own implementation to
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

    /// Whether a record can be decoded as it is. If not, and its file does not declare record
    /// headers, the record alone decides whether it begins with a header of its format
    /// ([`Format::tags`](crate::format::Format::tags)).
    fn accepts(&self, _record: &[u8]) -> bool {
        true
    }

    /// Decodes a record's payload, which begins after the header that the record's tags describe.
    /// `into` has [`size`](Decode::size) bytes; their contents are unspecified, so write all of
    /// them.
    ///
    /// The result must depend only on the arguments. Then it is the same for any number of threads
    /// and ranks, and after a resume.
    ///
    /// # Errors
    /// If the payload cannot be decoded; [`OnError`] decides what happens to the batch.
    fn decode(&self, sample: &Sample, payload: &[u8], into: &mut [u8]) -> Result<()>;
}

/// One occurrence of a record in a run, for random augmentation.
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

/// A batch returned by a loader.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Loaded {
    /// The records, decoded if the loader decodes.
    pub records: Batch,
    /// Their numbers.
    pub indices: Vec<u64>,
    /// Their labels, if requested.
    pub labels: Option<Vec<Option<Label>>>,
    /// With labels: the ids of their image headers, or their numbers if they have none.
    pub ids: Option<Vec<u64>>,
    /// How many records at the end only pad the last batch of an epoch, see
    /// [`Plan::fill`](super::Plan::fill).
    pub padding: u64,
}

/// A record that could not be read or decoded.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The epoch of the failure.
    pub epoch: u64,
    /// The record's number.
    pub record: u64,
    /// The error.
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
    pub records: Arc<dyn RecordSet>,
    pub plan: Plan,
    pub on_error: OnError,
    pub labels: bool,
    pub payloads: bool,
    pub decode: Option<Arc<dyn Decode>>,
    /// For the batches returned to the caller.
    pub pool: BatchPool,
    /// For the records that samples are decoded from: much smaller, and never returned.
    pub scratch: BatchPool,
}

/// A batch, and what the loading of it reports.
pub(super) struct Load {
    pub loaded: Loaded,
    /// The records that failed.
    pub failures: Vec<Failure>,
    /// How long loading took, and decoding as a part of it.
    pub loading: Duration,
    pub decoding: Duration,
}

/// Records read for a batch, with their tags if requested.
struct Read {
    /// The places in the batch of the good records, ascending, each with its index in `records`.
    good: Vec<(usize, usize)>,
    records: Batch,
    tags: Vec<Tags>,
    decoding: Duration,
}

impl Job {
    /// Loads the batch of the step that begins at `consumed` on up to `threads` threads. Fails once
    /// `stop` is set, because no one waits for the batch then.
    pub fn load(&self, epoch: u64, consumed: u64, threads: usize, stop: &AtomicBool) -> Result<Load> {
        let began = Instant::now();
        let mut indices = Vec::new();
        let count = self.plan.count(consumed);
        if count > MANY {
            // The plan is as long as the files claim, and they may claim too much.
            self.records.check_all()?;
            check_available(usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(PER_RECORD))?;
        }
        let padding = self.plan.fill(epoch, consumed, &mut indices);
        let mut failures = Vec::new();
        let mut failed = |record: u64, error: Error| failures.push(Failure { epoch, record, error });
        let read = match &self.decode {
            None => self.read(&indices, threads, &mut failed)?,
            Some(decode) => {
                let first = self.plan.first(consumed);
                let sample = |at: usize, record: u64| Sample {
                    seed: self.plan.seed(),
                    epoch,
                    place: first.saturating_add(at as u64) % self.plan.samples().max(1),
                    record,
                };
                self.decode(decode.as_ref(), &indices, sample, stop, &mut failed)?
            }
        };
        let kept = self.kept(indices.len(), &read.good);
        if kept.is_empty() && !indices.is_empty() {
            let first = failures.into_iter().next();
            return Err(first.map_or_else(|| Error::invalid("a batch has no good record"), |one| one.error));
        }
        let real = indices.len().saturating_sub(usize::try_from(padding).unwrap_or(usize::MAX));
        let padding = kept.iter().filter(|kept| kept.place >= real).count() as u64;
        let Read { mut records, mut tags, decoding, .. } = read;
        if !kept.iter().map(|kept| kept.at).eq(0..records.len()) {
            let gathered = kept.iter().map(|kept| records.get(kept.at).unwrap_or_default()).collect();
            self.pool.give(std::mem::replace(&mut records, gathered));
            tags = kept.iter().filter_map(|kept| tags.get(kept.at).cloned()).collect();
        }
        let indices: Vec<u64> = kept.iter().filter_map(|kept| indices.get(kept.from).copied()).collect();
        let ids = self.labels.then(|| {
            let id = |(tags, &index): (&Tags, &u64)| tags.ids.map_or(index, |[id, _]| id);
            tags.iter().zip(&indices).map(id).collect()
        });
        let labels = self.labels.then(|| tags.into_iter().map(|tags| tags.label).collect());
        let loaded = Loaded { records, indices, labels, ids, padding };
        Ok(Load { loaded, failures, loading: began.elapsed(), decoding })
    }

    /// Whether an unreadable record is left out of its batch.
    fn leaves_out(&self) -> bool {
        matches!(self.on_error, OnError::Skip | OnError::Replace)
    }

    /// Locates records: all of them, unless some may be left out.
    fn locate(&self, numbers: &[u64], before: &Batch, threads: usize) -> Result<Fetch<'_>> {
        let on_bad = if self.leaves_out() { OnBad::Collect } else { OnBad::Fail };
        let fetch = engine::locate(&*self.records, numbers, threads, on_bad)?;
        engine::check_size(&*self.records, &fetch, before)?;
        Ok(fetch)
    }

    /// Reads records, and their tags if requested.
    fn read(&self, indices: &[u64], threads: usize, failed: &mut impl FnMut(u64, Error)) -> Result<Read> {
        let mut read =
            Read { good: Vec::new(), records: self.pool.take(), tags: Vec::new(), decoding: Duration::ZERO };
        for numbers in indices.chunks(engine::GROUP) {
            let first = read.records.len();
            let fetch = self.locate(numbers, &read.records, threads)?;
            let places: Vec<_> = if self.labels { fetch.places().collect() } else { Vec::new() };
            let failures = fetch.append_to(&mut read.records, threads)?;
            let mut failures = failures.into_iter().peekable();
            for (at, &number) in numbers.iter().enumerate() {
                match failures.next_if(|(bad, _)| *bad == at) {
                    Some((_, error)) => failed(number, error),
                    None => read.good.push((first + at, first + at)),
                }
            }
            for (at, (place, position)) in places.into_iter().enumerate() {
                let is_good = read.good.binary_search_by_key(&(first + at), |&(place, _)| place).is_ok();
                let record = read.records.get(first + at).unwrap_or_default();
                read.tags.push(if is_good { place.tags(position, record)? } else { Tags::none() });
            }
        }
        if self.payloads {
            self.strip(indices, &mut read, failed)?;
        }
        Ok(read)
    }

    /// Turns the records that were read into their payloads.
    fn strip(&self, indices: &[u64], read: &mut Read, failed: &mut impl FnMut(u64, Error)) -> Result<()> {
        let (mut unsplit, good) = (Vec::new(), &read.good);
        read.records.shorten(0, |at, record| {
            if good.binary_search_by_key(&at, |&(place, _)| place).is_err() {
                return Ok(0..0);
            }
            let number = indices.get(at).copied().unwrap_or(u64::MAX);
            match self.records.payload_of(number, record) {
                Ok(payload) => Ok(record.len() - payload.len()..record.len()),
                Err(error) if self.leaves_out() => {
                    failed(number, error);
                    unsplit.push(at);
                    Ok(0..0)
                }
                Err(error) => Err(error),
            }
        })?;
        read.good.retain(|(place, _)| unsplit.binary_search(place).is_err());
        Ok(())
    }

    /// Decodes records into samples, without copying those that are in memory.
    fn decode(
        &self,
        decode: &dyn Decode,
        indices: &[u64],
        sample: impl Fn(usize, u64) -> Sample,
        stop: &AtomicBool,
        failed: &mut impl FnMut(u64, Error),
    ) -> Result<Read> {
        let size = decode.size();
        let mut samples = self.pool.take();
        let ends = (0..=indices.len() as u64).map(|end| end.saturating_mul(size as u64));
        let mut slots = samples.lay_out(ends.collect())?.chunks_exact_mut(size.max(1));
        let (mut good, mut all_tags) = (Vec::new(), Vec::new());
        let mut scratch = self.scratch.take();
        let mut decoding = Duration::ZERO;
        for numbers in indices.chunks(engine::GROUP) {
            let fetch = self.locate(numbers, &Batch::new(), 1)?;
            // The first visit comes when the group has been read.
            let mut began = None;
            fetch.visit(&mut scratch, |place, position, record| {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::invalid("the loader was closed"));
                }
                began.get_or_insert_with(Instant::now);
                let at = all_tags.len();
                let (slot, number) =
                    (slots.next().unwrap_or_default(), indices.get(at).copied().unwrap_or(0));
                all_tags.push(Tags::none());
                let record = match record {
                    Ok(record) => record,
                    Err(error) if self.leaves_out() => {
                        failed(number, error);
                        return Ok(());
                    }
                    Err(error) => return Err(error),
                };
                let tags = tags_for(decode, place, position, record)?;
                let payload = record.get(tags.header_length..).unwrap_or_default();
                let decoded = decode.decode(&sample(at, number), payload, slot);
                match (decoded.map_err(|error| place.blame(error)), self.on_error) {
                    (Ok(()), _) => good.push((at, at)),
                    (Err(error), _) if error.kind() == ErrorKind::OutOfMemory => return Err(error),
                    (Err(error), OnError::Raise) => return Err(error),
                    (Err(error), OnError::Skip | OnError::Replace) => failed(number, error),
                    (Err(error), OnError::Blank) => {
                        slot.fill(0);
                        failed(number, error);
                        good.push((at, at));
                    }
                }
                if let Some(last) = all_tags.last_mut() {
                    *last = tags;
                }
                Ok(())
            })?;
            decoding = decoding.saturating_add(began.map_or(Duration::ZERO, |began| began.elapsed()));
        }
        self.scratch.give(scratch);
        Ok(Read { good, records: samples, tags: all_tags, decoding })
    }

    /// Which of the good records fills each of the `count` places of a batch.
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

/// The tags of a record to decode.
fn tags_for(decode: &dyn Decode, place: Place<'_>, position: Position, record: &[u8]) -> Result<Tags> {
    let stored = place.tags(position, record)?;
    if stored.header_length > 0 || decode.accepts(record) {
        return Ok(stored);
    }
    // One odd record is enough for the file not to declare image headers. Each record by itself may
    // still have one.
    let found = place.reader.format().tags(record);
    Ok(Tags { key: stored.key, label: stored.label.or(found.label), ..found })
}

/// A place of a batch, the place whose record fills it, and the index of that record among those
/// read.
struct Kept {
    place: usize,
    from: usize,
    at: usize,
}
