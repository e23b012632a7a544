//! Which records a rank reads at which step.
//!
//! The order of an epoch is one global sequence of samples, given by the seed and the epoch alone.
//! A step takes the next `batch_size * world` of them, and rank `r` the `r`-th share. How far the
//! epoch has come is therefore one number, the samples consumed by all ranks together: it means the
//! same for any number of ranks and any batch size, so that either can change on resume.

use super::order::{Order, Shuffle};
use crate::base::{Error, Result};

/// The settings of a [`Plan`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlanOptions {
    /// Records in a batch of one rank. Default 1.
    pub batch_size: u64,
    /// How an epoch is shuffled. Default: not at all.
    pub shuffle: Shuffle,
    /// Chooses the order.
    pub seed: u64,
    /// This process among those that train together.
    pub rank: u64,
    /// How many processes train together. Default 1.
    pub world: u64,
    /// Whether the samples at the end that do not fill a batch on every rank are left out (default
    /// false). Otherwise the last batch is smaller, the same on every rank: where the samples do not
    /// divide evenly, the first ones of the epoch fill it up (see [`Plan::fill`]).
    pub drop_last: bool,
}

impl Default for PlanOptions {
    fn default() -> Self {
        PlanOptions { batch_size: 1, shuffle: Shuffle::None, seed: 0, rank: 0, world: 1, drop_last: false }
    }
}

/// Where a run is: small plain data, for a checkpoint.
///
/// It says nothing about ranks, batch size or threads, which may differ on resume.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// Chose the order.
    pub seed: u64,
    /// The epoch that is under way or comes next.
    pub epoch: u64,
    /// Samples of the epoch that all ranks together have consumed.
    pub consumed: u64,
    /// What is being read in which order, in words: resuming with another is an error.
    pub order: String,
}

impl State {
    /// A state that was saved.
    pub fn new(seed: u64, epoch: u64, consumed: u64, order: String) -> Self {
        State { seed, epoch, consumed, order }
    }
}

/// Which records come when: a pure function of (seed, epoch, samples consumed).
///
/// A plan holds no list of indices; asking for a batch takes time and memory in proportion to the
/// batch, wherever in the epoch it is.
///
/// ```
/// use anyrec::loader::{Plan, PlanOptions, Shuffle};
///
/// # fn main() -> anyrec::Result<()> {
/// let mut options = PlanOptions::default();
/// options.batch_size = 4;
/// options.shuffle = Shuffle::Full;
/// options.seed = 7;
/// let plan = Plan::new(10, &options)?;
///
/// let (mut consumed, mut seen) = (0, Vec::new());
/// while plan.steps(consumed) > 0 {
///     plan.fill(0, consumed, &mut seen);
///     consumed = plan.after(consumed);
/// }
/// seen.sort();
/// assert_eq!(seen, (0..10).collect::<Vec<u64>>());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Plan {
    order: Order,
    batch_size: u64,
    rank: u64,
    world: u64,
    drop_last: bool,
}

impl Plan {
    /// The plan for `count` records, each once an epoch.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for settings that make no sense.
    pub fn new(count: u64, options: &PlanOptions) -> Result<Plan> {
        Self::with_order(Order::of_one(count, options.seed, options.shuffle), options)
    }

    /// The plan for several sets of records, given as (count, weight) and numbered through.
    ///
    /// Each set has its weight's share of every 16384 samples, to a precision of one in 16384. It is
    /// gone through again and again, in a new order each time, on and on through the epochs; an
    /// epoch has `samples` samples.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for settings that make no sense: an empty set, a
    /// weight that is not above 0.
    pub fn mix(parts: &[(u64, f64)], samples: u64, options: &PlanOptions) -> Result<Plan> {
        Self::with_order(Order::of_mixture(parts, samples, options.seed, options.shuffle)?, options)
    }

    fn with_order(order: Order, options: &PlanOptions) -> Result<Plan> {
        let &PlanOptions { batch_size, rank, world, drop_last, shuffle, .. } = options;
        let blocks_empty =
            matches!(shuffle, Shuffle::Blocks { block: 0, .. } | Shuffle::Blocks { window: 0, .. });
        if batch_size == 0 || blocks_empty {
            return Err(Error::invalid("a batch, a block and a window have at least one record"));
        }
        if rank >= world {
            return Err(Error::invalid(format!(
                "there is no rank {rank} among {world}: ranks are numbered from 0"
            )));
        }
        if batch_size.checked_mul(world).is_none_or(|all| all > u64::from(u32::MAX)) {
            return Err(Error::invalid("the batches of all ranks together have at most 2^32 - 1 records"));
        }
        Ok(Plan { order, batch_size, rank, world, drop_last })
    }

    /// Samples in an epoch.
    pub fn samples(&self) -> u64 {
        self.order.samples
    }

    /// Number of records that the plan draws from.
    pub fn records(&self) -> u64 {
        self.order.records()
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.order.seed
    }

    /// How many steps (batches of this rank) an epoch still has after `consumed` samples.
    pub fn steps(&self, consumed: u64) -> u64 {
        let left = self.samples().saturating_sub(consumed);
        let step = self.batch_size * self.world;
        if self.drop_last { left / step } else { left.div_ceil(step) }
    }

    /// Samples consumed after `step` whole steps from the beginning of an epoch.
    pub fn consumed(&self, step: u64) -> u64 {
        step.saturating_mul(self.batch_size * self.world).min(self.samples())
    }

    /// Samples consumed after the step that begins at `consumed`.
    pub fn after(&self, consumed: u64) -> u64 {
        consumed.saturating_add(self.share(consumed) * self.world).min(self.samples())
    }

    /// Records in a batch of every rank, in the step that begins at `consumed`.
    fn share(&self, consumed: u64) -> u64 {
        if self.steps(consumed) == 0 {
            return 0;
        }
        (self.samples() - consumed).div_ceil(self.world).min(self.batch_size)
    }

    /// Records in this rank's batch, in the step that begins at `consumed`.
    pub(super) fn count(&self, consumed: u64) -> u64 {
        self.share(consumed)
    }

    /// The place in the epoch's order of this rank's first sample, in the step that begins at
    /// `consumed`; the batch's others follow it. Places past the end are the epoch's first again.
    pub fn first(&self, consumed: u64) -> u64 {
        consumed.saturating_add(self.rank * self.share(consumed))
    }

    /// Appends the record numbers of this rank's batch in the step that begins at `consumed`; says
    /// how many of them, at its end, only fill it up (they are the epoch's first ones again, so that
    /// all ranks have as many: training may use them, an evaluation should leave them out).
    ///
    /// Appends nothing at the end of the epoch.
    pub fn fill(&self, epoch: u64, consumed: u64, numbers: &mut Vec<u64>) -> u64 {
        let (begin, share) = (self.first(consumed), self.share(consumed));
        let end = begin.saturating_add(share);
        let samples = self.samples();
        let real = end.min(samples).saturating_sub(begin.min(samples));
        self.order.fill(
            epoch,
            (begin..end).map(|place| if place < samples { place } else { place % samples }),
            numbers,
        );
        share - real
    }

    /// The state after `consumed` samples of an epoch.
    pub fn state(&self, epoch: u64, consumed: u64) -> State {
        State { seed: self.seed(), epoch, consumed, order: self.order.to_string() }
    }

    /// Takes over the seed of a state.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) when the state is of other records or another order.
    pub fn resume(&mut self, state: &State) -> Result<()> {
        let mine = self.order.to_string();
        if state.order != mine || state.consumed > self.samples() {
            let found = format!("{mine}, after {} samples", state.consumed);
            return Err(Error::invalid("the state does not fit this data")
                .expected_found(&state.order, found)
                .with_hint("resume with the data, shuffle and block that the state was saved with"));
        }
        self.order.seed = state.seed;
        Ok(())
    }
}
