//! The order of an epoch's samples, as a function: (epoch, place in the epoch) -> record number.
//!
//! Nothing here depends on ranks, workers, threads or where an iteration began: those only choose
//! which places of the order they take (see [`Plan`](super::Plan)).

use super::permutation::Permutation;
use crate::base::splitmix::mix;
use crate::base::{Error, Result};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// How the records of an epoch are shuffled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Shuffle {
    /// In the order of their numbers.
    #[default]
    None,
    /// Every order is equally likely.
    Full,
    /// Blocks of `block` consecutive records are shuffled, then the records of `window` blocks at a
    /// time. For disks and stores on which nearby reads are much faster. The block boundaries move
    /// from epoch to epoch, so that the same records are not always grouped together.
    Blocks {
        /// Number of records in a block.
        block: u64,
        /// Number of blocks in a window.
        window: u64,
    },
}

impl fmt::Display for Shuffle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shuffle::None => f.write_str("in order"),
            Shuffle::Full => f.write_str("shuffled"),
            Shuffle::Blocks { block, window } => {
                write!(f, "shuffled in windows of {window} blocks of {block}")
            }
        }
    }
}

/// Derives a number that depends on all bits of the seed and of its purpose.
fn derive(seed: u64, purpose: u64) -> u64 {
    mix(mix(seed ^ 0x5851_f42d_4c95_7f2d).wrapping_add(purpose))
}

/// Records `0..count`, repeated in passes; every pass has its own order.
#[derive(Debug, Clone)]
struct Passes {
    count: u64,
    seed: u64,
    shuffle: Shuffle,
    /// The last requested pass. Neighbours in an order are requested consecutively, and deriving
    /// keys takes longer than using them.
    pass: Pass,
}

#[derive(Debug, Clone)]
struct Pass {
    number: u64,
    key: u64,
    /// The order of the records, or of the blocks.
    outer: Permutation,
    /// Blocks: the rotation of all record numbers.
    shift: u64,
    /// Blocks: the places of the last requested window, and the order within it.
    window: Range<u64>,
    within: Permutation,
}

impl Passes {
    fn new(count: u64, seed: u64, shuffle: Shuffle, pass: u64) -> Self {
        Passes { count, seed, shuffle, pass: Pass::new(pass, count, seed, shuffle) }
    }

    /// The record at `place` (less than the count) of a pass.
    fn get(&mut self, pass: u64, place: u64) -> u64 {
        if self.pass.number != pass {
            self.pass = Pass::new(pass, self.count, self.seed, self.shuffle);
        }
        match self.shuffle {
            Shuffle::None => place,
            Shuffle::Full => self.pass.outer.get(place),
            Shuffle::Blocks { block, window } => self.pass.in_blocks(self.count, block, window, place),
        }
    }
}

impl Pass {
    fn new(number: u64, count: u64, seed: u64, shuffle: Shuffle) -> Pass {
        let key = derive(seed, number);
        let shuffled = match shuffle {
            Shuffle::None => 0,
            Shuffle::Full => count,
            Shuffle::Blocks { block, .. } => count / block,
        };
        let shift = derive(key, u64::MAX).checked_rem(count).unwrap_or(0);
        let (outer, within) = (Permutation::new(shuffled, key), Permutation::new(0, key));
        Pass { number, key, outer, shift, window: 0..0, within }
    }

    /// Complete blocks are permuted; the remainder at the end is a short block that stays in the
    /// last window. Then all numbers are rotated by an amount that depends on the pass, so that
    /// neither the remaining records nor the block boundaries are those of the previous pass.
    fn in_blocks(&mut self, count: u64, block: u64, window: u64, place: u64) -> u64 {
        if !self.window.contains(&place) {
            let size = block.saturating_mul(window).min(count);
            let number = place / size;
            self.window = number * size..(number * size).saturating_add(size).min(count);
            self.within = Permutation::new(self.window.end - self.window.start, derive(self.key, number));
        }
        let place = self.window.start + self.within.get(place - self.window.start);
        let record = self.outer.get(place / block) * block + place % block;
        let room = count - self.shift;
        if record < room { record + self.shift } else { record - room }
    }
}

/// The order of all epochs, for one set of records or a mixture of several.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub seed: u64,
    pub shuffle: Shuffle,
    /// Number of samples in an epoch.
    pub samples: u64,
    parts: Parts,
}

#[derive(Debug, Clone)]
enum Parts {
    One,
    Mixed(Arc<Mixture>),
}

/// Several sets of records, numbered consecutively, and the number of turns of each.
///
/// Samples come in rounds of [`ROUND`]. In each round, part `i` has exactly `turns[i]` samples, so
/// the number of its turns before any sample is a multiplication.
#[derive(Debug)]
struct Mixture {
    /// For each part: number of the first record, number of records, turns per round.
    parts: Vec<(u64, u64, u64)>,
    /// For each place in a round: the part whose turn it is, and the index of that turn among the
    /// part's turns in the round.
    turns: Vec<(usize, u64)>,
}

/// Number of samples in a round of a mixture, which is the precision of the weights.
const ROUND: u64 = 1 << 14;

/// Number of turns of a mixture that are shuffled together. A round has even proportions
/// everywhere, so this is enough to hide the regular order of the turns.
const WINDOW: u64 = 64;

impl Mixture {
    fn new(parts: &[(u64, f64)]) -> Result<Mixture> {
        let total: f64 = parts.iter().map(|(_, weight)| weight).sum();
        let bad = |(count, weight): &&(u64, f64)| *count == 0 || !weight.is_finite() || *weight <= 0.0;
        if parts.is_empty() || !total.is_finite() {
            return Err(Error::invalid("a mixture has at least one part"));
        }
        if let Some((count, weight)) = parts.iter().find(bad) {
            return Err(Error::invalid(format!(
                "a part of a mixture needs records and a weight above 0, found {count} records and weight {weight}"
            )));
        }
        if parts.len() as u64 > ROUND / 16 {
            return Err(Error::invalid(format!("a mixture has at most {} parts", ROUND / 16)));
        }
        // The turn goes to the part that is furthest behind its share. Its next turn is due one
        // share later. Each part's turns are therefore as evenly spaced as the others allow.
        let mut credit = vec![0.0; parts.len()];
        let mut taken = vec![0u64; parts.len()];
        let mut turns = Vec::new();
        for _ in 0..ROUND {
            for (credit, (_, weight)) in credit.iter_mut().zip(parts) {
                *credit += weight / total;
            }
            let furthest = credit.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
            let part = furthest.map_or(0, |(part, _)| part);
            if let (Some(credit), Some(taken)) = (credit.get_mut(part), taken.get_mut(part)) {
                *credit -= 1.0;
                turns.push((part, *taken));
                *taken += 1;
            }
        }
        let mut start = 0u64;
        let mut numbered = Vec::new();
        for ((count, _), turns) in parts.iter().zip(taken) {
            if turns == 0 {
                return Err(Error::invalid(format!(
                    "a weight is less than 1/{ROUND} of all weights together"
                )));
            }
            numbered.push((start, *count, turns));
            start = start
                .checked_add(*count)
                .ok_or_else(|| Error::invalid("a mixture must have less than 2^64 records"))?;
        }
        Ok(Mixture { parts: numbered, turns })
    }
}

impl Order {
    /// The order of `count` records; an epoch contains each once.
    pub fn of_one(count: u64, seed: u64, shuffle: Shuffle) -> Order {
        Order { seed, shuffle, samples: count, parts: Parts::One }
    }

    /// The order of several sets of records, each with its count and weight, numbered
    /// consecutively.
    pub fn of_mixture(parts: &[(u64, f64)], samples: u64, seed: u64, shuffle: Shuffle) -> Result<Order> {
        let mixture = Mixture::new(parts)?;
        Ok(Order { seed, shuffle, samples, parts: Parts::Mixed(Arc::new(mixture)) })
    }

    /// Number of records, whether used in an epoch or not.
    pub fn records(&self) -> u64 {
        match &self.parts {
            Parts::One => self.samples,
            Parts::Mixed(mixture) => mixture.parts.last().map_or(0, |(start, count, _)| start + count),
        }
    }

    /// Appends the records at `places` of an epoch to `numbers`.
    pub fn fill(&self, epoch: u64, places: impl Iterator<Item = u64>, numbers: &mut Vec<u64>) {
        match &self.parts {
            Parts::One => {
                let mut passes = Passes::new(self.samples, self.seed, self.shuffle, epoch);
                numbers.extend(places.map(|place| passes.get(epoch, place)));
            }
            Parts::Mixed(mixture) => {
                let mut walk = MixtureWalk::new(mixture, self);
                // Epochs are consecutive: a part continues where the previous epoch left it.
                let before = epoch.wrapping_mul(self.samples);
                numbers.extend(places.map(|place| walk.get(before.wrapping_add(place))));
            }
        }
    }
}

/// The parts of a mixture, each repeating its records.
struct MixtureWalk<'a> {
    mixture: &'a Mixture,
    passes: Vec<Passes>,
    /// The seed for shuffling the turns of a window; `None` if they come in order.
    seed: Option<u64>,
    /// The last requested window, and its turns.
    window: u64,
    turns: Vec<(usize, u64)>,
}

impl<'a> MixtureWalk<'a> {
    fn new(mixture: &'a Mixture, order: &Order) -> Self {
        let part = |(number, (_, count, _)): (u64, &(u64, u64, u64))| {
            Passes::new(*count, derive(order.seed, number), order.shuffle, 0)
        };
        let shuffled = order.shuffle != Shuffle::None && mixture.parts.len() > 1;
        MixtureWalk {
            mixture,
            passes: (0u64..).zip(&mixture.parts).map(part).collect(),
            seed: shuffled.then(|| derive(order.seed, u64::MAX)),
            window: 0,
            turns: Vec::new(),
        }
    }

    /// The record of sample number `sample`, counted from the first epoch.
    fn get(&mut self, sample: u64) -> u64 {
        let round = sample / ROUND;
        let (part, nth) = self.turn(sample);
        match (self.mixture.parts.get(part), self.passes.get_mut(part)) {
            (Some((start, count, turns)), Some(passes)) => {
                let use_number = round.wrapping_mul(*turns).wrapping_add(nth);
                start + passes.get(use_number / count, use_number % count)
            }
            _ => 0,
        }
    }

    /// The part whose turn it is, and the index of that turn among the part's turns in the round.
    fn turn(&mut self, sample: u64) -> (usize, u64) {
        let of_round = |place: u64| {
            let place = usize::try_from(place % ROUND).unwrap_or(0);
            self.mixture.turns.get(place).copied().unwrap_or_default()
        };
        let Some(seed) = self.seed else { return of_round(sample) };
        let window = sample / WINDOW;
        if self.turns.is_empty() || self.window != window {
            let first = window * WINDOW;
            let in_order: Vec<(usize, u64)> = (0..WINDOW).map(|place| of_round(first + place)).collect();
            let shuffle = Permutation::new(WINDOW, derive(seed, window));
            // Parts are permuted, but a part's turns keep their order, so that its passes do not
            // mix.
            let mut left = in_order.clone();
            let parts =
                (0..WINDOW).filter_map(|place| in_order.get(usize::try_from(shuffle.get(place)).ok()?));
            self.turns = parts
                .filter_map(|(part, _)| {
                    let next = left.iter().position(|(other, _)| other == part)?;
                    Some(left.remove(next))
                })
                .collect();
            self.window = window;
        }
        self.turns.get(usize::try_from(sample % WINDOW).unwrap_or(0)).copied().unwrap_or_default()
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.parts {
            Parts::One => write!(f, "{} records {}", self.samples, self.shuffle),
            Parts::Mixed(mixture) => {
                write!(f, "{} samples mixed from ", self.samples)?;
                for (number, (_, count, turns)) in mixture.parts.iter().enumerate() {
                    let comma = if number == 0 { "" } else { ", " };
                    write!(f, "{comma}{count} records ({turns}/{ROUND})")?;
                }
                write!(f, ", {}", self.shuffle)
            }
        }
    }
}
