//! Seeded random choices, for generated files.

use std::ops::RangeInclusive;

/// A file's own stream of choices: file 17 is the same whatever the number of files.
pub struct Random(fastrand::Rng);

impl Random {
    pub fn new(seed: u64, ordinal: u64) -> Self {
        Random(fastrand::Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(ordinal)))
    }

    pub fn between(&mut self, range: RangeInclusive<usize>) -> usize {
        self.0.usize(range)
    }

    pub fn chance(&mut self, percent: u32) -> bool {
        self.0.u32(..100) < percent
    }

    /// The index of one of the weights.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let mut at = self.0.u32(0..weights.iter().sum::<u32>());
        for (number, &weight) in weights.iter().enumerate() {
            if at < weight {
                return number;
            }
            at -= weight;
        }
        0
    }

    pub fn choose<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.0.usize(..values.len())]
    }

    pub fn bits(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// A number like a measurement: often small, with fractions and both signs.
    pub fn number(&mut self) -> f64 {
        let size = self.choose(&[1.0, 100.0, 1e6]);
        (self.0.f64() - 0.5) * size
    }

    pub fn bytes(&mut self, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        self.0.fill(&mut bytes);
        bytes
    }

    /// This many of these bytes.
    pub fn letters(&mut self, alphabet: &[u8], size: usize) -> Vec<u8> {
        (0..size).map(|_| self.choose(alphabet)).collect()
    }

    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        self.0.shuffle(values);
    }

    /// Bytes that may contain one of the format's magic words, anywhere and repeatedly.
    pub fn payload(&mut self, size: usize, magics: &[&[u8]]) -> Vec<u8> {
        let magic = self.choose(magics);
        match self.weighted(&[35, 15, 15, 35]) {
            0 => self.bytes(size),
            1 => self.letters(b"acgt \n\0", size),
            2 => {
                // Back to back, from the first byte or unaligned.
                let shift = self.choose(&[0, 0, 1, 2, 3]);
                let begin = vec![b'.'; shift];
                begin.into_iter().chain(magic.iter().copied().cycle()).take(size).collect()
            }
            _ => {
                let mut bytes = self.bytes(size);
                if let Some(last) = size.checked_sub(magic.len()) {
                    for _ in 0..self.between(1..=6) {
                        let at = self.between(0..=last);
                        let at = self.choose(&[at, at & !3, 0, last]);
                        bytes[at..at + magic.len()].copy_from_slice(magic);
                    }
                }
                bytes
            }
        }
    }

    /// Mostly small, sometimes empty, sometimes more than two GRAIL chunks.
    pub fn size(&mut self, record_count: usize) -> usize {
        match record_count {
            1001.. => self.between(0..=12),
            41.. => self.between(0..=250),
            _ => match self.weighted(&[10, 70, 14, 6]) {
                0 => 0,
                1 => self.between(1..=300),
                2 => self.between(301..=5000),
                _ => self.between(5001..=70_000),
            },
        }
    }

    /// None, one, some or many.
    pub fn count(&mut self) -> usize {
        match self.weighted(&[10, 10, 65, 15]) {
            0 => 0,
            1 => 1,
            2 => self.between(2..=40),
            _ => self.between(41..=300),
        }
    }
}
