//! Batches for training: which record comes when, and threads that prefetch.
//!
//! * [`Permutation`] shuffles any number of records without a list of them.
//! * [`Plan`] determines which records a rank reads at which step: a pure function of (seed, epoch,
//!   samples consumed), so that a run can resume anywhere, even with another number of ranks.
//! * [`Loader`] reads a plan's batches from a [`RecordSet`] on its own threads.
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
//! // Stop after the first batch, and resume elsewhere.
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
mod stats;

pub use load::{Decode, Failure, Loaded, OnError, Sample};
pub use order::Shuffle;
pub use permutation::Permutation;
pub use plan::{Plan, PlanOptions, State};
pub use stats::Stats;

use crate::base::{Error, Result};
use crate::engine::{BatchPool, RecordSet};
use load::{Job, Load};
use run::{Ahead, Run};
use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// How a [`Loader`] works. None of these options changes the batches or their order.
#[derive(Clone)]
#[non_exhaustive]
pub struct LoaderOptions {
    /// Number of threads that read; 0 (the default) means one per core.
    pub threads: usize,
    /// Maximum number of batches read ahead of the consumer, including those being read; 0 (the
    /// default) means two per thread.
    pub prefetch: usize,
    /// Maximum total size of the prefetched batches in bytes (default 1 GiB). The batch that the
    /// consumer waits for is read however large it is. Until the first batch is complete, batches
    /// being read do not count.
    pub max_bytes: u64,
    /// What to do if a record cannot be read or decoded.
    pub on_error: OnError,
    /// Whether batches include labels and ids.
    pub labels: bool,
    /// Whether records are returned as payloads, without the headers that hold their labels
    /// ([`Dataset::payload_of`](crate::Dataset::payload_of)). A record that cannot be split is treated like
    /// one that cannot be read. With [`decode`](LoaderOptions::decode) this has no effect: samples are
    /// decoded from payloads in any case.
    pub payloads: bool,
    /// Turns each record into a sample, on the loader's threads (`anyrec_image::Images` for
    /// images).
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
            payloads: false,
            decode: None,
        }
    }
}

/// Maximum number of failures kept for the caller; all are counted.
const KEPT_FAILURES: usize = 100;

/// Returns the batches of a plan, epoch after epoch, prefetched by threads.
///
/// Threads start when the first batch is requested. They end with the epoch, with
/// [`close`](Loader::close) and with the loader: batches being read are completed, and no other is
/// started. In a forked child, a loader continues from the same place with its own threads.
pub struct Loader {
    job: Arc<Job>,
    ahead: Ahead,
    epoch: u64,
    consumed: u64,
    /// Whether a batch was returned since the loader reached the epoch or was moved to a place in
    /// it.
    begun: bool,
    run: Option<Run>,
    failures: Vec<Arc<Failure>>,
    total: Stats,
    /// What was counted since the epoch began, or the last one if none has begun since.
    in_epoch: Stats,
    /// Whether the next request begins another epoch for `in_epoch`.
    epoch_is_over: bool,
}

impl Loader {
    /// Creates a loader at the beginning of epoch 0. Nothing is read yet.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if the plan was made for another number of
    /// records.
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
        let LoaderOptions { on_error, labels, payloads, decode, max_bytes, .. } = options;
        // The waiting batches, plus those held by the threads and the consumer.
        let pool = BatchPool::new(prefetch.saturating_add(2));
        let scratch = BatchPool::new(threads);
        Ok(Loader {
            job: Arc::new(Job { records, plan, on_error, labels, payloads, decode, pool, scratch }),
            ahead: Ahead { threads, batches: prefetch as u64, bytes: max_bytes },
            epoch: 0,
            consumed: 0,
            begun: false,
            run: None,
            failures: Vec::new(),
            total: Stats::default(),
            in_epoch: Stats::default(),
            epoch_is_over: false,
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.job.plan
    }

    /// The current epoch, or the next one.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Number of completed steps of the epoch (with the current number of ranks).
    pub fn step(&self) -> u64 {
        let plan = self.plan();
        plan.steps(0) - plan.steps(self.consumed)
    }

    /// Number of batches left in the epoch.
    pub fn steps_left(&self) -> u64 {
        self.plan().steps(self.consumed)
    }

    /// The loader's position: after the last batch it returned, whatever was prefetched. After the
    /// last batch of an epoch, this is the beginning of the next.
    pub fn state(&self) -> State {
        if self.begun && self.steps_left() == 0 {
            return self.plan().state(self.epoch.saturating_add(1), 0);
        }
        self.plan().state(self.epoch, self.consumed)
    }

    /// Moves to the position of a saved state, with any number of ranks, and adopts its seed.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if the state is of other records or another
    /// order.
    pub fn resume(&mut self, state: &State) -> Result<()> {
        let mut plan = self.plan().clone();
        plan.resume(state)?;
        self.close();
        self.job = Arc::new(Job { plan, ..Job::clone(&self.job) });
        self.go_to(state.epoch, state.consumed);
        Ok(())
    }

    /// Moves to the beginning of an epoch. A position in that epoch that was resumed or set and not
    /// yet used is kept, so that this may be called before every epoch.
    pub fn set_epoch(&mut self, epoch: u64) {
        let consumed = if self.begun || epoch != self.epoch { 0 } else { self.consumed };
        self.epoch_is_over |= self.begun || epoch != self.epoch;
        self.go_to(epoch, consumed);
    }

    /// Moves to a step of the current or next epoch.
    pub fn set_step(&mut self, step: u64) {
        self.go_to(self.epoch, self.plan().consumed(step));
    }

    /// Skips batches of the epoch without reading them, as if they had been returned.
    pub fn skip(&mut self, batches: u64) {
        if batches > 0 {
            let consumed = self.consumed.saturating_add(self.plan().consumed(batches));
            self.go_to(self.epoch, consumed.min(self.plan().samples()));
            self.begun = true;
        }
    }

    fn go_to(&mut self, epoch: u64, consumed: u64) {
        self.close();
        (self.epoch, self.consumed, self.begun) = (epoch, consumed, false);
    }

    /// Begins an iteration: at the position that was resumed or set; otherwise at the next epoch if
    /// a batch of this one was returned, whether or not it was the last.
    pub fn begin(&mut self) {
        if self.begun {
            self.end_epoch();
        }
    }

    /// The next batch of the epoch; `None` once at its end. The call after that begins the next
    /// epoch.
    ///
    /// # Errors
    /// According to [`OnError`]. The loader then stays before that batch.
    pub fn next_batch(&mut self) -> Result<Option<Loaded>> {
        loop {
            if let Poll::Ready(next) = self.poll(None)? {
                return Ok(next);
            }
        }
    }

    /// Same as [`next_batch`](Loader::next_batch), with a timeout: then `Pending`, and nothing has
    /// changed.
    ///
    /// # Errors
    /// Same as [`next_batch`](Loader::next_batch).
    pub fn next_batch_within(&mut self, time: Duration) -> Result<Poll<Option<Loaded>>> {
        self.poll(Instant::now().checked_add(time))
    }

    fn poll(&mut self, deadline: Option<Instant>) -> Result<Poll<Option<Loaded>>> {
        if self.steps_left() == 0 {
            self.end_epoch();
            return Ok(Poll::Ready(None));
        }
        if std::mem::take(&mut self.epoch_is_over) {
            self.in_epoch = Stats::default();
        }
        let began = Instant::now();
        let (outcome, ready) = self.running()?.next(deadline);
        self.count(&Stats { waited: began.elapsed(), ..Stats::default() });
        let Some(outcome) = outcome else { return Ok(Poll::Pending) };
        let Load { loaded, failures, loading, decoding } = outcome.inspect_err(|_| self.close())?;
        self.consumed = self.plan().after(self.consumed);
        self.begun = true;
        self.count(&Stats {
            batches: 1,
            records: loaded.indices.len() as u64,
            bytes: loaded.records.buffer().len() as u64,
            failed: failures.len() as u64,
            waited: Duration::ZERO,
            loading,
            decoding,
            ready,
        });
        let room = KEPT_FAILURES.saturating_sub(self.failures.len());
        self.failures.extend(failures.into_iter().take(room).map(Arc::new));
        if self.steps_left() == 0 {
            self.close();
        }
        Ok(Poll::Ready(Some(loaded)))
    }

    /// Moves to the beginning of the next epoch.
    fn end_epoch(&mut self) {
        self.epoch_is_over = true;
        self.go_to(self.epoch.saturating_add(1), 0);
    }

    fn count(&mut self, more: &Stats) {
        self.total.add(more);
        self.in_epoch.add(more);
    }

    /// The running threads, started if there are none in this process.
    fn running(&mut self) -> Result<&Run> {
        let run = match self.run.take() {
            Some(run) if run.is_ours() => run,
            _ => Run::start(Arc::clone(&self.job), self.ahead, self.epoch, self.consumed)?,
        };
        Ok(self.run.insert(run))
    }

    /// The batches of the epoch that [`begin`](Loader::begin) begins. An error is the last item;
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

    /// Number of records that could not be read or decoded and were skipped or replaced.
    pub fn failed(&self) -> u64 {
        self.total.failed
    }

    /// What the loader did since it was created.
    pub fn stats(&self) -> Stats {
        self.total
    }

    /// What the loader did in the current epoch; between two epochs, in the one that ended.
    pub fn epoch_stats(&self) -> Stats {
        self.in_epoch
    }

    /// Number of batches that are ready to be returned.
    pub fn queued(&self) -> u64 {
        self.run.as_ref().filter(|run| run.is_ours()).map_or(0, Run::ready)
    }

    /// The first hundred failures.
    pub fn failures(&self) -> &[Arc<Failure>] {
        &self.failures
    }

    /// The pool that takes back batches no longer in use, so that their memory is reused.
    pub fn pool(&self) -> &BatchPool {
        &self.job.pool
    }

    /// Ends the threads and discards what was prefetched. The position is kept: the next batch is
    /// the one that would have come.
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
            .field("payloads", &self.payloads)
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
