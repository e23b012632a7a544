//! A keyed permutation of `0..count`, computed per index.
//!
//! Shuffling a list of indices takes memory and time in proportion to the list; this takes none.
//! A Feistel network permutes the smallest power-of-four domain that holds `count`, and a result
//! outside `0..count` is fed in again until it falls inside (the domain is less than four times
//! too large, so that takes under four rounds on average). Every index is reached exactly once,
//! whatever the count.

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
    /// Bits of each half of the domain.
    half: u32,
    keys: [u64; ROUNDS],
}

/// Four rounds make a Feistel network indistinguishable from random for attackers; two more cost
/// little and serve small domains, where halves of a few bits mix slowly.
const ROUNDS: usize = 6;

impl Permutation {
    /// The permutation of `0..count` for a seed.
    pub fn new(count: u64, seed: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let mut state = seed ^ count.rotate_left(32);
        let keys = std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state)
        });
        Permutation { count, half: bits.div_ceil(2).max(1), keys }
    }

    /// Where `index` goes. An index that is not below `count` stays where it is.
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

    fn once(&self, value: u64) -> u64 {
        let mask = u64::MAX >> (u64::BITS - self.half);
        let (mut left, mut right) = ((value >> self.half) & mask, value & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        (left << self.half) | right
    }
}

/// Every input bit changes about half of the output bits (the finaliser of SplitMix64).
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use super::*;

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
    fn places_are_spread_evenly_and_seeds_differ() {
        // How often index 0 lands in each tenth, over many seeds: chi-squared with 9 degrees of
        // freedom stays below 33.7 in all but one of ten thousand cases.
        let mut tenths = [0f64; 10];
        for seed in 0..20_000 {
            tenths[(Permutation::new(1000, seed).get(0) / 100) as usize] += 1.0;
        }
        let chi: f64 = tenths.iter().map(|seen| (seen - 2000.0).powi(2) / 2000.0).sum();
        assert!(chi < 33.7, "{chi}: {tenths:?}");
        // Neighbours do not stay neighbours.
        let permutation = Permutation::new(100_000, 1);
        let close = (0..99_999).filter(|&i| permutation.get(i).abs_diff(permutation.get(i + 1)) <= 1).count();
        assert!(close < 20, "{close}");
    }
}
