//! Python's `random.shuffle` for a given seed.
//!
//! `im2rec.py` shuffles its lists with it, and a list made here must have the same order. The
//! generator is the Mersenne Twister MT19937 of Matsumoto and Nishimura, seeded through their
//! `init_by_array`. To draw a number below a bound, Python draws as many bits as the bound has, and
//! repeats until the result is below it.

/// Words of state.
const WORDS: usize = 624;
/// The offset of the word that is mixed into each word.
const MIDDLE: usize = 397;

/// Python's generator, seeded with an integer.
pub struct PythonRandom {
    state: [u32; WORDS],
    next: usize,
}

impl PythonRandom {
    /// `random.seed(seed)`.
    pub fn new(seed: u32) -> Self {
        let mut state = [0u32; WORDS];
        let mut last = 19_650_218u32;
        for (place, word) in (0u32..).zip(&mut state) {
            if place > 0 {
                last = (last ^ last >> 30).wrapping_mul(1_812_433_253).wrapping_add(place);
            }
            *word = last;
        }
        let mut random = PythonRandom { state, next: WORDS };
        // The key has one word, the seed, at index 0, so its index is never added.
        let mut at = 1;
        for _ in 0..WORDS {
            at = random.mix(at, 1_664_525, |word| word.wrapping_add(seed));
        }
        for _ in 1..WORDS {
            let place = u32::try_from(at).unwrap_or(0);
            at = random.mix(at, 1_566_083_941, |word| word.wrapping_sub(place));
        }
        if let Some(first) = random.state.first_mut() {
            *first = 1 << 31;
        }
        random
    }

    /// One step of seeding at word `at`. Returns the index of the next word.
    fn mix(&mut self, at: usize, factor: u32, finish: impl Fn(u32) -> u32) -> usize {
        let before = self.word(at - 1);
        let mixed = finish(self.word(at) ^ (before ^ before >> 30).wrapping_mul(factor));
        self.set(at, mixed);
        if at + 1 < WORDS {
            return at + 1;
        }
        self.set(0, mixed);
        1
    }

    fn word(&self, at: usize) -> u32 {
        self.state.get(at % WORDS).copied().unwrap_or(0)
    }

    fn set(&mut self, at: usize, value: u32) {
        if let Some(word) = self.state.get_mut(at) {
            *word = value;
        }
    }

    /// The next 32 bits.
    fn next_word(&mut self) -> u32 {
        if self.next == WORDS {
            for at in 0..WORDS {
                let joined = self.word(at) & 1 << 31 | self.word(at + 1) & !(1 << 31);
                let twisted = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
                self.set(at, self.word(at + MIDDLE) ^ joined >> 1 ^ twisted);
            }
            self.next = 0;
        }
        let mut word = self.word(self.next);
        self.next += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }

    /// `getrandbits(bits)` for up to 64 bits: the low word first.
    fn bits(&mut self, bits: u32) -> u64 {
        let low_bits = bits.min(32);
        let low = u64::from(self.next_word()) >> (32 - low_bits);
        match bits.checked_sub(32) {
            None | Some(0) => low,
            Some(high) => low | (u64::from(self.next_word()) >> (32 - high)) << 32,
        }
    }

    /// A number below `bound`, which is at least 1.
    fn below(&mut self, bound: u64) -> u64 {
        let bits = u64::BITS - bound.leading_zeros();
        loop {
            let drawn = self.bits(bits);
            if drawn < bound {
                return drawn;
            }
        }
    }

    /// `random.shuffle(items)`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1);
            // The result is below the length of a slice.
            items.swap(last, usize::try_from(other).unwrap_or(last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_after_seed_100_are_pythons() {
        let mut random = PythonRandom::new(100);
        assert_eq!([2_624_923_986, 746_800_229, 1_980_960_893], random.state[1..4]);
        assert_eq!(
            [625_644_691, 1_973_661_107, 1_953_896_601],
            [random.next_word(), random.next_word(), random.next_word()]
        );
    }

    #[test]
    fn bits_of_one_and_of_two_words_are_pythons() {
        // [random.getrandbits(n) for n in (1, 5, 32, 33, 40, 64)] after random.seed(100).
        let mut random = PythonRandom::new(100);
        let drawn = [1, 5, 32, 33, 40, 64].map(|bits| random.bits(bits));
        assert_eq!(drawn, [0, 14, 1_953_896_601, 8_382_563_697, 773_844_648_076, 13_502_259_857_454_914_158]);
    }

    #[test]
    fn short_and_long_lists_are_shuffled_as_python_shuffles_them() {
        let shuffled = |count: u32| {
            let mut items: Vec<u32> = (0..count).collect();
            PythonRandom::new(100).shuffle(&mut items);
            items
        };
        assert!(shuffled(0).is_empty());
        assert_eq!(shuffled(1), [0]);
        assert_eq!(shuffled(2), [1, 0]);
        assert_eq!(shuffled(10), [4, 0, 5, 9, 3, 1, 6, 8, 7, 2]);
        // More draws than the generator has words, so that the state is renewed in between.
        let digest = |count| {
            let texts: Vec<String> = shuffled(count).iter().map(u32::to_string).collect();
            crate::cmd::sha256(texts.join(",").as_bytes())
        };
        assert_eq!(digest(700), "3bd19103b0ba7c390db9c19a030df60cda6eadee32ad79ec31c08db39d3565c7");
        assert_eq!(digest(5000), "8632753dd599518b921977dc708217a42fb0687b50a3c4a130c14b1a76e155a3");
    }
}
