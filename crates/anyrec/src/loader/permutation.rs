//! A keyed permutation of `0..count`, computed per index.
//!
//! Shuffling a list of indices takes memory and time proportional to the list; this takes none. The
//! numbers below the smallest power of two that holds `count` are permuted by rounds of invertible
//! steps: add a key, multiply by an odd key (low bits affect high ones), and fold the high half
//! onto the low one (high bits affect low ones). A result outside `0..count` goes through the
//! rounds again until it is inside. The domain is less than twice too large, so this takes fewer
//! than two passes on average (more for a handful of records). Every index is reached exactly once,
//! whatever the count.
//!
//! This is for shuffling; it is not cryptographically secure.

use crate::base::splitmix::{STEP, mix};

/// A permutation of the numbers below `count`, chosen by a seed.
///
/// ```
/// let shuffle = anyrec::loader::Permutation::new(5, 42);
/// let mut seen: Vec<u64> = (0..5).map(|i| shuffle.get(i)).collect();
/// seen.sort();
/// assert_eq!(seen, [0, 1, 2, 3, 4]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation {
    count: u64,
    /// The bits of the domain's numbers.
    mask: u64,
    /// Half of the domain's bits, rounded up.
    half: u32,
    /// The addend and the multiplier of each round.
    keys: [(u64, u64); ROUNDS],
}

/// After three rounds, every bit of the index affects every bit of the result. The others are for
/// small domains, whose few bits mix slowly.
const ROUNDS: usize = 6;

/// A handful of records is permuted in a larger domain: two or three bits have too few keys to make
/// all orders equally likely.
const FEWEST_BITS: u32 = 6;

impl Permutation {
    /// The permutation of `0..count` for a seed.
    pub fn new(count: u64, seed: u64) -> Self {
        let bits = (u64::BITS - count.saturating_sub(1).leading_zeros()).max(FEWEST_BITS);
        let mut state = seed ^ count.rotate_left(32);
        let mut next = || {
            state = state.wrapping_add(STEP);
            mix(state)
        };
        let keys = std::array::from_fn(|_| (next(), next() | 1));
        Permutation { count, mask: u64::MAX >> (u64::BITS - bits), half: bits.div_ceil(2), keys }
    }

    /// The image of `index`. An index that is not less than `count` is returned unchanged.
    pub fn get(&self, index: u64) -> u64 {
        if index >= self.count {
            return index;
        }
        let mut at = self.once(index);
        while at >= self.count {
            at = self.once(at);
        }
        at
    }

    fn once(&self, mut value: u64) -> u64 {
        for (add, multiply) in self.keys {
            value = value.wrapping_add(add).wrapping_mul(multiply) & self.mask;
            value ^= value >> self.half;
        }
        value
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Chi-squared of counts that should all be equal, as a distance from its mean in standard
    /// deviations: above 5 in about one in a million cases.
    fn excess(seen: &[u64]) -> f64 {
        let expected = seen.iter().sum::<u64>() as f64 / seen.len() as f64;
        let chi: f64 = seen.iter().map(|&seen| (seen as f64 - expected).powi(2) / expected).sum();
        let freedom = seen.len() as f64 - 1.0;
        (chi - freedom) / (2.0 * freedom).sqrt()
    }

    #[test]
    fn every_count_up_to_a_thousand_is_permuted() {
        for count in 0..1000u64 {
            let permutation = Permutation::new(count, count * 7);
            let mut seen = vec![false; count as usize];
            for index in 0..count {
                let at = permutation.get(index) as usize;
                assert!(!std::mem::replace(&mut seen[at], true), "{count}: {at} twice");
            }
        }
    }

    #[test]
    fn huge_counts_stay_in_range_and_do_not_repeat() {
        for count in [u64::MAX, 1 << 63, 1_000_000_000_000] {
            let permutation = Permutation::new(count, 3);
            let seen: std::collections::HashSet<u64> =
                (0..10_000).map(|index| permutation.get(index)).collect();
            assert_eq!(seen.len(), 10_000);
            assert!(seen.iter().all(|&at| at < count));
        }
    }

    #[test]
    fn every_index_reaches_every_place_equally_often_over_seeds() {
        for count in [3u64, 5, 8, 11, 16, 23, 32] {
            let mut seen = vec![0u64; (count * count) as usize];
            for seed in 0..20_000 {
                let permutation = Permutation::new(count, seed);
                for index in 0..count {
                    seen[(index * count + permutation.get(index)) as usize] += 1;
                }
            }
            let excess = excess(&seen);
            assert!(excess < 5.0, "{count}: {excess}");
        }
    }

    #[test]
    fn all_orders_of_a_few_are_equally_likely_over_seeds() {
        for (count, orders) in [(2u64, 2), (3, 6), (4, 24), (5, 120), (6, 720)] {
            let mut seen: HashMap<Vec<u64>, u64> = HashMap::new();
            for seed in 0..60_000 {
                let permutation = Permutation::new(count, seed);
                *seen.entry((0..count).map(|index| permutation.get(index)).collect()).or_default() += 1;
            }
            assert_eq!(seen.len(), orders, "{count}");
            let excess = excess(&seen.into_values().collect::<Vec<_>>());
            assert!(excess < 5.0, "{count}: {excess}");
        }
    }

    #[test]
    fn stretches_of_the_order_are_spread_over_all_records() {
        // The images of 1000 consecutive indices, and of 1000 indices a power of two apart.
        for count in [100_000u64, 2_000_000, 1_000_000_000_000] {
            for stride in [1, 64, 1 << 10] {
                for seed in 0..20 {
                    let permutation = Permutation::new(count, seed);
                    let mut seen = [0u64; 50];
                    for index in 0..1000 {
                        let at = permutation.get((seed * 1000 + index * stride) % count);
                        seen[(u128::from(at) * 50 / u128::from(count)) as usize] += 1;
                    }
                    let excess = excess(&seen);
                    assert!(excess < 6.0, "{count} {stride} {seed}: {excess}");
                }
            }
        }
    }

    #[test]
    fn neighbours_and_neighbouring_seeds_are_not_correlated() {
        // The correlation of two independent series of 100,000 has a standard deviation of 1/316.
        const COUNT: u64 = 100_000;
        let correlation = |a: &dyn Fn(u64) -> u64, b: &dyn Fn(u64) -> u64| {
            let centre = |at: u64| at as f64 / COUNT as f64 - 0.5;
            (0..COUNT).map(|i| centre(a(i)) * centre(b(i))).sum::<f64>() * 12.0 / COUNT as f64
        };
        for seed in 0..8 {
            let one = Permutation::new(COUNT, seed);
            let other = Permutation::new(COUNT, seed + 1);
            for lag in [1, 2, 3, 16, 256, 4096] {
                let serial = correlation(&|i| one.get(i), &|i| one.get((i + lag) % COUNT));
                assert!(serial.abs() < 5.0 / 316.0, "{seed} {lag}: {serial}");
            }
            let across = correlation(&|i| one.get(i), &|i| other.get(i));
            assert!(across.abs() < 5.0 / 316.0, "{seed}: {across}");
            let plain = correlation(&|i| one.get(i), &|i| i);
            assert!(plain.abs() < 5.0 / 316.0, "{seed}: {plain}");
        }
        // Neighbours do not stay neighbours: two in 100,000 are expected.
        let one = Permutation::new(COUNT, 1);
        let close = (0..COUNT - 1).filter(|&i| one.get(i).abs_diff(one.get(i + 1)) <= 1).count();
        assert!(close < 20, "{close}");
    }
}
