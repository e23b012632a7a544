//! Repeatable random numbers that depend only on a key.

/// The increment of SplitMix64's state.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The random numbers of one sample (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The numbers for a key: a seed, an epoch, a position in its order.
    ///
    /// ```
    /// use anyrec_image::Random;
    ///
    /// let (mut one, mut again) = (Random::new([7, 0, 3]), Random::new([7, 0, 3]));
    /// assert_eq!(one.between(0.0, 1.0), again.between(0.0, 1.0));
    /// ```
    pub fn new(key: [u64; 3]) -> Self {
        Random { state: key.into_iter().fold(0, |state, part| mix(state ^ mix(part.wrapping_add(STEP)))) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number from 0 (inclusive) to 1 (exclusive).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number between two others.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Returns true with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// An integer from 0 to `most`, uniformly distributed.
    pub fn up_to(&mut self, most: u32) -> u32 {
        // The bias of the product is below 2^-32.
        let product = u128::from(self.next()) * (u128::from(most) + 1);
        u32::try_from(product >> 64).unwrap_or(most)
    }

    /// A normally distributed number with this standard deviation.
    pub fn normal(&mut self, deviation: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        deviation * radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// SplitMix64's output for a state: every input bit changes about half of the output bits.
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
#[allow(clippy::cast_precision_loss)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_splitmix64() {
        let mut random = Random { state: 0 };
        // The first outputs of the reference implementation for the seed 0.
        let expected = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        assert_eq!([random.next(), random.next(), random.next()], expected);
    }

    #[test]
    fn neighbouring_keys_have_unrelated_numbers() {
        let firsts = |key: fn(u64) -> [u64; 3]| {
            let mean = (0..20_000).map(|i| Random::new(key(i)).unit()).sum::<f64>() / 20_000.0;
            let pairs = (0..20_000)
                .map(|i| (Random::new(key(i)).unit() - 0.5) * (Random::new(key(i + 1)).unit() - 0.5));
            (mean, pairs.sum::<f64>() / 20_000.0)
        };
        for key in [|i| [i, 0, 0], |i| [1, i, 0], |i| [1, 5, i]] as [fn(u64) -> [u64; 3]; 3] {
            let (mean, covariance) = firsts(key);
            assert!((mean - 0.5).abs() < 0.01, "{mean}");
            assert!(covariance.abs() < 0.003, "{covariance}");
        }
    }

    #[test]
    fn numbers_are_distributed_as_they_should() {
        let mut random = Random::new([1, 2, 3]);
        let mut seen = [0u32; 5];
        for _ in 0..50_000 {
            seen[random.up_to(4) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (9_500..10_500).contains(count)), "{seen:?}");
        let drawn: Vec<f64> = (0..50_000).map(|_| random.normal(2.0)).collect();
        let mean = drawn.iter().sum::<f64>() / 50_000.0;
        let variance = drawn.iter().map(|x| x * x).sum::<f64>() / 50_000.0;
        assert!(mean.abs() < 0.05 && (variance - 4.0).abs() < 0.15, "{mean} {variance}");
        assert_eq!(random.up_to(0), 0);
        assert!(!random.happens(0.0) && random.happens(1.0));
    }
}
