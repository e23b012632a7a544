//! One batch: its numbers, its records, and what happens to those that cannot be read.

use super::plan::Plan;
use super::source::Source;
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::format::Label;
use crate::recycler::Recycler;
use std::fmt;
use std::sync::Arc;

/// What happens when a record cannot be read or decoded.
///
/// Whatever is chosen, a batch without a single good record is an error.
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
}

/// Makes what a batch holds of a record: gets its number and bytes, appends the result.
pub type Decode = dyn Fn(u64, &[u8], &mut Vec<u8>) -> Result<()> + Send + Sync;

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
    pub decode: Option<Arc<Decode>>,
    pub recycler: Recycler,
}

impl Job {
    /// The batch of the step that begins at `consumed`, read by up to `threads` threads, and the
    /// records that failed.
    pub fn load(&self, epoch: u64, consumed: u64, threads: usize) -> Result<(Loaded, Vec<Failure>)> {
        let mut indices = Vec::new();
        let padding = self.plan.fill(epoch, consumed, &mut indices);
        let error = match self.read(&indices, threads) {
            Ok((records, labels)) => return Ok((Loaded { records, indices, labels, padding }, Vec::new())),
            Err(error) if self.on_error == OnError::Raise => return Err(error),
            Err(error) => error,
        };
        let mut failures = Vec::new();
        let mut good = Vec::with_capacity(indices.len());
        for &record in &indices {
            let outcome = self.read(&[record], 1);
            good.push(outcome.is_ok());
            match outcome {
                Ok((records, _)) => self.recycler.give(records),
                Err(error) => failures.push(Failure { epoch, record, error }),
            }
        }
        let next_good = |place: usize| {
            let after = indices.iter().zip(&good).skip(place);
            let all = after.chain(indices.iter().zip(&good));
            all.filter(|(_, good)| **good).map(|(record, _)| *record).next()
        };
        let real = indices.len().saturating_sub(usize::try_from(padding).unwrap_or(usize::MAX));
        let (mut kept, mut padding) = (Vec::with_capacity(indices.len()), 0);
        for (place, &good) in good.iter().enumerate() {
            if good || self.on_error == OnError::Replace {
                kept.extend(next_good(place));
                padding += u64::from(place >= real);
            }
        }
        if kept.is_empty() {
            return Err(error);
        }
        let (records, labels) = self.read(&kept, threads)?;
        Ok((Loaded { records, indices: kept, labels, padding }, failures))
    }

    /// Reads records and makes of them what was asked for.
    fn read(&self, indices: &[u64], threads: usize) -> Result<(Batch, Option<Vec<Option<Label>>>)> {
        let mut records = self.recycler.take();
        self.source.fill(indices, &mut records, threads)?;
        let labels = self.labels.then(|| {
            let label = |(&index, record): (&u64, &[u8])| Ok(self.source.tags(index, record)?.label);
            indices.iter().zip(records.iter()).map(label).collect::<Result<Vec<_>>>()
        });
        let labels = labels.transpose()?;
        let Some(decode) = &self.decode else { return Ok((records, labels)) };
        let mut decoded = self.recycler.take();
        let mut one = Vec::new();
        for (&index, record) in indices.iter().zip(records.iter()) {
            one.clear();
            decode(index, record, &mut one).map_err(|error| error.in_record(index))?;
            decoded.push(&one);
        }
        self.recycler.give(records);
        Ok((decoded, labels))
    }
}
