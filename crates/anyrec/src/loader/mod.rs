//! Batches for training: which record comes when, and threads that read ahead.
//!
//! * [`Permutation`] shuffles any number of records without a list of them.
//! * [`Plan`] says which records a rank reads at which step: a pure function of (seed, epoch,
//!   samples consumed), so that a run can go on anywhere, also with another number of ranks.
//! * [`Loader`] reads a plan's batches from a [`RecordSet`] on threads of its own.
//!
//! ```
//! # use std::sync::Arc;
//! # fn main() -> anyrec::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("numbers.ffr");
//! # let mut writer = anyrec::create(&path)?;
//! # for number in 0..10u8 {
//! #     writer.append(&[number], &anyrec::Tags::none())?;
//! # }
//! # writer.finish()?;
//! use anyrec::loader::{Loader, LoaderOptions, Plan, PlanOptions, Shuffle};
//!
//! let dataset = Arc::new(anyrec::open(&path)?);
//! let mut options = PlanOptions::default();
//! options.batch_size = 4;
//! options.shuffle = Shuffle::Full;
//! let plan = Plan::new(dataset.len()?, &options)?;
//! let mut loader = Loader::new(dataset.clone(), plan.clone(), LoaderOptions::default())?;
//!
//! let whole: Vec<_> = loader.batches().collect::<anyrec::Result<_>>()?;
//! assert_eq!(whole.iter().map(|batch| batch.indices.len()).collect::<Vec<_>>(), [4, 4, 2]);
//!
//! // Stopped after the first batch, and gone on with elsewhere.
//! let mut stopped = Loader::new(dataset.clone(), plan.clone(), LoaderOptions::default())?;
//! assert_eq!(stopped.next_batch()?.as_ref(), whole.first());
//! let mut again = Loader::new(dataset, plan, LoaderOptions::default())?;
//! again.resume(&stopped.state())?;
//! assert_eq!(again.batches().collect::<anyrec::Result<Vec<_>>>()?, whole[1..]);
//! # Ok(())
//! # }
//! ```

mod load;
mod order;
mod permutation;
mod plan;
mod run;

pub use load::{Decode, Failure, Loaded, OnError, Sample};
pub use order::Shuffle;
pub use permutation::Permutation;
pub use plan::{Plan, PlanOptions, State};

use crate::base::{Error, Result};
use crate::engine::{BatchPool, RecordSet};
use load::Job;
use run::{Ahead, Run};
use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// How a [`Loader`] works. None of it changes which batches come, or their order.
#[derive(Clone)]
#[non_exhaustive]
pub struct LoaderOptions {
    /// Threads that read; 0 (the default) for as many as there are cores.
    pub threads: usize,
    /// Batches that may be read or being read ahead of the consumer; 0 (the default) for two a
    /// thread.
    pub prefetch: usize,
    /// Bytes that the batches read ahead may have together (default 1 GiB). The batch that the
    /// consumer waits for is read however large it is; until the first batch is there, those being
    /// read count for nothing.
    pub max_bytes: u64,
    /// What happens when a record cannot be read or decoded.
    pub on_error: OnError,
    /// Whether batches come with labels and ids.
    pub labels: bool,
    /// Turns each record into a sample, on the loader's threads (`anyrec_image::Images` for images).
    pub decode: Option<Arc<dyn Decode>>,
}

impl Default for LoaderOptions {
    fn default() -> Self {
        LoaderOptions {
            threads: 0,
            prefetch: 0,
            max_bytes: 1 << 30,
            on_error: OnError::Raise,
            labels: false,
            decode: None,
        }
    }
}

/// Failures that are kept for the user to see; all are counted.
const KEPT_FAILURES: usize = 100;

/// Gives the batches of a plan, epoch after epoch, read ahead by threads.
///
/// Threads start when the first batch is asked for, and end with the epoch, with
/// [`close`](Loader::close) and with the loader: a batch being read then is read to its end, no
/// other is begun. In a forked child, a loader goes on where it was, with threads of its own.
pub struct Loader {
    job: Arc<Job>,
    ahead: Ahead,
    epoch: u64,
    consumed: u64,
    /// Whether a batch was given since the loader came to the epoch or was sent to a place in it.
    begun: bool,
    run: Option<Run>,
    failed: u64,
    failures: Vec<Arc<Failure>>,
}

impl Loader {
    /// A loader at the beginning of epoch 0. Nothing is read yet.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) when the plan was made for another number of records.
    pub fn new(records: Arc<dyn RecordSet>, plan: Plan, options: LoaderOptions) -> Result<Loader> {
        let count = records.count()?;
        if plan.records() != count {
            return Err(Error::invalid("the plan is for another number of records")
                .expected_found(plan.records(), count));
        }
        let threads = match options.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let prefetch = if options.prefetch == 0 { threads.saturating_mul(2) } else { options.prefetch };
        let LoaderOptions { on_error, labels, decode, max_bytes, .. } = options;
        // As many as wait, and those in the hands of threads and consumer.
        let pool = BatchPool::new(prefetch.saturating_add(2));
        let scratch = BatchPool::new(threads);
        Ok(Loader {
            job: Arc::new(Job { records, plan, on_error, labels, decode, pool, scratch }),
            ahead: Ahead { threads, batches: prefetch as u64, bytes: max_bytes },
            epoch: 0,
            consumed: 0,
            begun: false,
            run: None,
            failed: 0,
            failures: Vec::new(),
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.job.plan
    }

    /// The epoch that is under way, or comes next.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Steps of the epoch that lie behind (of as many ranks as there are now).
    pub fn step(&self) -> u64 {
        let plan = self.plan();
        plan.steps(0) - plan.steps(self.consumed)
    }

    /// Batches that the epoch still has.
    pub fn steps_left(&self) -> u64 {
        self.plan().steps(self.consumed)
    }

    /// Where the loader is: after the last batch it gave, whatever was read ahead. After the last
    /// batch of an epoch, that is the beginning of the next.
    pub fn state(&self) -> State {
        if self.begun && self.steps_left() == 0 {
            return self.plan().state(self.epoch.saturating_add(1), 0);
        }
        self.plan().state(self.epoch, self.consumed)
    }

    /// Goes to where a state was saved, with any number of ranks, and takes over its seed.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) when the state is of other records or another order.
    pub fn resume(&mut self, state: &State) -> Result<()> {
        let mut plan = self.plan().clone();
        plan.resume(state)?;
        self.close();
        self.job = Arc::new(Job { plan, ..Job::clone(&self.job) });
        self.go_to(state.epoch, state.consumed);
        Ok(())
    }

    /// Goes to the beginning of an epoch. A place in it that was resumed or set and not yet gone on
    /// from is kept, so that this may be called before every epoch.
    pub fn set_epoch(&mut self, epoch: u64) {
        let consumed = if self.begun || epoch != self.epoch { 0 } else { self.consumed };
        self.go_to(epoch, consumed);
    }

    /// Goes to a step of the epoch that is under way or comes next.
    pub fn set_step(&mut self, step: u64) {
        self.go_to(self.epoch, self.plan().consumed(step));
    }

    fn go_to(&mut self, epoch: u64, consumed: u64) {
        self.close();
        (self.epoch, self.consumed, self.begun) = (epoch, consumed, false);
    }

    /// Begins an iteration: with the place that was resumed or set, else with the next epoch if a
    /// batch of this one was given, whether it was the last or not.
    pub fn begin(&mut self) {
        if self.begun {
            self.go_to(self.epoch.saturating_add(1), 0);
        }
    }

    /// The next batch of the epoch; `None` once at its end, and the next call begins the next epoch.
    ///
    /// # Errors
    /// What [`OnError`] says. The loader is then still before that batch.
    pub fn next_batch(&mut self) -> Result<Option<Loaded>> {
        loop {
            if let Poll::Ready(next) = self.poll(None)? {
                return Ok(next);
            }
        }
    }

    /// [`next_batch`](Loader::next_batch), for so long: then `Pending`, and nothing has changed.
    ///
    /// # Errors
    /// As [`next_batch`](Loader::next_batch).
    pub fn next_batch_within(&mut self, time: Duration) -> Result<Poll<Option<Loaded>>> {
        self.poll(Instant::now().checked_add(time))
    }

    fn poll(&mut self, deadline: Option<Instant>) -> Result<Poll<Option<Loaded>>> {
        if self.steps_left() == 0 {
            self.go_to(self.epoch.saturating_add(1), 0);
            return Ok(Poll::Ready(None));
        }
        let Some(outcome) = self.running()?.next(deadline) else { return Ok(Poll::Pending) };
        let (loaded, failures) = outcome.inspect_err(|_| self.close())?;
        self.consumed = self.plan().after(self.consumed);
        self.begun = true;
        self.failed = self.failed.saturating_add(failures.len() as u64);
        let room = KEPT_FAILURES.saturating_sub(self.failures.len());
        self.failures.extend(failures.into_iter().take(room).map(Arc::new));
        if self.steps_left() == 0 {
            self.close();
        }
        Ok(Poll::Ready(Some(loaded)))
    }

    /// The threads at work, started if there are none in this process.
    fn running(&mut self) -> Result<&Run> {
        let run = match self.run.take() {
            Some(run) if run.is_ours() => run,
            _ => Run::start(Arc::clone(&self.job), self.ahead, self.epoch, self.consumed)?,
        };
        Ok(self.run.insert(run))
    }

    /// The batches of the epoch that [`begin`](Loader::begin) begins. An error is the last item:
    /// [`next_batch`](Loader::next_batch) tries the same batch again.
    pub fn batches(&mut self) -> impl Iterator<Item = Result<Loaded>> {
        self.begin();
        let mut failed = false;
        std::iter::from_fn(move || {
            let next = if failed { None } else { self.next_batch().transpose() };
            failed = matches!(next, Some(Err(_)));
            next
        })
    }

    /// How many records could not be read or decoded and were skipped or replaced.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// The first hundred of them.
    pub fn failures(&self) -> &[Arc<Failure>] {
        &self.failures
    }

    /// Takes batches back when they are done with, so that their memory is used again.
    pub fn pool(&self) -> &BatchPool {
        &self.job.pool
    }

    /// Ends the threads and forgets what was read ahead. The place stays: the next batch asked for
    /// is the one that would have come.
    pub fn close(&mut self) {
        self.run = None;
    }
}

impl fmt::Debug for LoaderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoaderOptions")
            .field("threads", &self.threads)
            .field("prefetch", &self.prefetch)
            .field("max_bytes", &self.max_bytes)
            .field("on_error", &self.on_error)
            .field("labels", &self.labels)
            .field("decodes", &self.decode.is_some())
            .finish()
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("plan", self.plan())
            .field("epoch", &self.epoch)
            .field("consumed", &self.consumed)
            .finish_non_exhaustive()
    }
}
