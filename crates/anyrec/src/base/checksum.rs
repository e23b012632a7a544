//! Checksums of records, and fast implementations of them.
//!
//! [`Checksum`] pairs the value with its algorithm. FFRecord, GRAIL and our tables use CRC-32
//! (IEEE). For long data, the crate `crc32fast` is as fast as memory. For records of a few hundred
//! bytes it spends more time on the beginning and the end than on what lies between, and in a
//! format with one checksum per record that is most of the time such a record takes. On processors
//! with AVX-512, everything but the shortest data is therefore processed here, in the same pass as
//! the copy if there is one. Gzip, which combines checksums, uses `crc32fast` itself. CRC-32C uses
//! the crate `crc32c`, which uses the processor's own instruction.

/// A stored checksum, with its algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checksum {
    /// CRC-32 with the IEEE 802.3 polynomial, as in zlib.
    Crc32(u32),
    /// CRC-32C with the Castagnoli polynomial, as in iSCSI and TFRecord (unmasked).
    Crc32c(u32),
}

impl Checksum {
    /// Whether the bytes have this checksum.
    ///
    /// ```
    /// use anyrec::Checksum;
    ///
    /// assert!(Checksum::Crc32(0xcbf4_3926).holds_for(b"123456789"));
    /// assert!(Checksum::Crc32c(0xe306_9283).holds_for(b"123456789"));
    /// ```
    #[inline]
    pub fn holds_for(self, bytes: &[u8]) -> bool {
        match self {
            Checksum::Crc32(stored) => crc32(bytes) == stored,
            Checksum::Crc32c(stored) => crc32c::crc32c(bytes) == stored,
        }
    }
}

/// The checksum of some bytes.
#[inline]
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    crc32_after(0, bytes)
}

/// Continues the checksum `before` with more bytes.
#[inline]
pub(crate) fn crc32_after(before: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if wide::suits(bytes) {
        let (before, rest) = plain_start(before, bytes);
        // SAFETY: `suits` returned true, and nothing is copied.
        return unsafe { wide::crc32_after::<false>(before, rest, std::ptr::null_mut()) };
    }
    plain(before, bytes)
}

/// Like [`crc32_after`], and copies the bytes to a destination of the same length.
#[inline]
pub(crate) fn copied_crc32_after(before: u32, bytes: &[u8], to: &mut [u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if wide::suits(bytes) && bytes.len() == to.len() {
        let (before, rest) = plain_start(before, bytes);
        let (first, into) = to.split_at_mut(bytes.len() - rest.len());
        first.copy_from_slice(bytes.get(..first.len()).unwrap_or_default());
        // SAFETY: `suits` returned true, and `into` is as long as `rest`.
        return unsafe { wide::crc32_after::<true>(before, rest, into.as_mut_ptr()) };
    }
    to.copy_from_slice(bytes);
    plain(before, bytes)
}

/// The checksum of a first part, and the remaining bytes. These fill whole blocks, or leave four or
/// more bytes for another one.
#[cfg(target_arch = "x86_64")]
#[inline]
fn plain_start(before: u32, bytes: &[u8]) -> (u32, &[u8]) {
    match bytes.len() % wide::BLOCK {
        odd @ 1..4 => {
            let (first, rest) = bytes.split_at(odd);
            (plain(before, first), rest)
        }
        _ => (before, bytes),
    }
}

fn plain(before: u32, bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new_with_initial(before);
    crc.update(bytes);
    crc.finalize()
}

/// Blocks of 64 bytes, each multiplied by a power of x for its distance from the end. All
/// multiplications can be in flight at the same time, and the sum is reduced once.
///
/// Polynomials modulo 2 are in reflected order: the lowest bit of the first byte is the highest
/// power. A product of two such numbers is shifted by one bit, which the constants compensate for.
#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m128i, __m512i, _mm_and_si128, _mm_clmulepi64_si128, _mm_extract_epi32, _mm_set_epi32,
        _mm_set_epi64x, _mm_setzero_si128, _mm_srli_si128, _mm_xor_si128, _mm256_castsi256_si128,
        _mm256_extracti128_si256, _mm256_xor_si256, _mm512_castsi512_si256, _mm512_clmulepi64_epi128,
        _mm512_extracti64x4_epi64, _mm512_load_si512, _mm512_loadu_si512, _mm512_mask_storeu_epi8,
        _mm512_maskz_loadu_epi8, _mm512_maskz_mov_epi8, _mm512_set1_epi32, _mm512_setzero_si512,
        _mm512_storeu_si512, _mm512_xor_si512,
    };

    /// Bytes multiplied at a time.
    pub(super) const BLOCK: usize = 64;
    /// Blocks that are summed before the sum is reduced to a quarter of a block.
    const GROUP: usize = 16;
    const GROUP_BITS: i32 = 16 * 64 * 8;

    /// x^32 + x^26 + ... + 1, without the highest power.
    const POLYNOMIAL: u32 = 0xEDB8_8320;
    const ONE: u32 = 1 << 31;

    const fn times_x(value: u32) -> u32 {
        if value & 1 == 0 { value >> 1 } else { (value >> 1) ^ POLYNOMIAL }
    }

    const fn over_x(value: u32) -> u32 {
        if value & ONE == 0 { value << 1 } else { ((value ^ POLYNOMIAL) << 1) | 1 }
    }

    /// x^power, modulo the polynomial.
    const fn x_to(power: i32) -> i64 {
        let (mut value, mut left) = (ONE, power);
        while left != 0 {
            (value, left) = if left > 0 { (times_x(value), left - 1) } else { (over_x(value), left + 1) };
        }
        (value as i64) << 1
    }

    /// The factors that shift 16 bytes by this many bits: for the first eight bytes, and for the
    /// others.
    const fn mover(bits: i32) -> [i64; 2] {
        [x_to(bits + 32), x_to(bits - 32)]
    }

    #[repr(align(64))]
    struct Movers([[[i64; 2]; 4]; GROUP]);

    /// The factors that shift the four parts of a block to the end, past this many other blocks of
    /// its group.
    #[allow(clippy::indexing_slicing, reason = "computed while compiling")]
    static MOVERS: Movers = {
        let mut all = [[[0; 2]; 4]; GROUP];
        let mut bits = 0;
        let mut behind = 0;
        while behind < GROUP {
            let mut part = 4;
            while part > 0 {
                part -= 1;
                all[behind][part] = mover(bits);
                bits += 128;
            }
            behind += 1;
        }
        Movers(all)
    };

    /// The factors that shift 16 bytes by a group.
    const BY_A_GROUP: [i64; 2] = mover(GROUP_BITS);

    /// Whether there is a whole block, and the processor supports the instructions.
    #[inline]
    pub(super) fn suits(bytes: &[u8]) -> bool {
        bytes.len() >= BLOCK
            && is_x86_feature_detected!("vpclmulqdq")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("pclmulqdq")
    }

    /// # Safety
    /// The bytes must suit, and must fill whole blocks or leave four or more bytes for another one.
    /// With `COPY`, `to` must be writable for as many bytes.
    #[target_feature(enable = "avx512bw,vpclmulqdq,pclmulqdq,sse4.1")]
    pub(super) unsafe fn crc32_after<const COPY: bool>(before: u32, bytes: &[u8], to: *mut u8) -> u32 {
        // Two blocks at a time, which halves the number of ways for the loop to end.
        let mut left = bytes.len().div_ceil(2 * BLOCK);
        // Leading zeros change nothing. With this many, there are only whole pairs of blocks.
        let zeros = left * 2 * BLOCK - bytes.len();
        let (mut at, mut to) = (bytes.as_ptr().wrapping_sub(zeros), to.wrapping_sub(zeros));
        let [mask, mask_of_second] = halves(!0 << zeros);
        // SAFETY: the masks exclude what lies before the bytes.
        let (mut block, mut second) = unsafe {
            let second = at.wrapping_add(BLOCK).cast();
            (_mm512_maskz_loadu_epi8(mask, at.cast()), _mm512_maskz_loadu_epi8(mask_of_second, second))
        };
        if COPY {
            // SAFETY: as above.
            unsafe {
                _mm512_mask_storeu_epi8(to.cast(), mask, block);
                _mm512_mask_storeu_epi8(to.wrapping_add(BLOCK).cast(), mask_of_second, second);
            }
        }
        // The checksum so far is added to the first four bytes.
        #[allow(clippy::cast_possible_truncation)]
        let turn = 8 * (zeros % 4) as u32;
        let before = _mm512_set1_epi32((!before).rotate_left(turn).cast_signed());
        let [mask, mask_of_second] = halves(0xF << zeros);
        block = _mm512_xor_si512(block, _mm512_maskz_mov_epi8(mask, before));
        second = _mm512_xor_si512(second, _mm512_maskz_mov_epi8(mask_of_second, before));
        let mut sum = _mm_setzero_si128();
        loop {
            let pairs = (left - 1) % (GROUP / 2) + 1;
            let (mut low, mut high) = (_mm512_setzero_si512(), _mm512_setzero_si512());
            for behind in (0..pairs).rev() {
                let mover = MOVERS.0.as_ptr().wrapping_add(2 * behind);
                // SAFETY: there are two for every pair, aligned to their size.
                let (by, second_by): (__m512i, __m512i) =
                    unsafe { (_mm512_load_si512(mover.add(1).cast()), _mm512_load_si512(mover.cast())) };
                low = _mm512_xor_si512(low, _mm512_clmulepi64_epi128::<0x00>(block, by));
                high = _mm512_xor_si512(high, _mm512_clmulepi64_epi128::<0x11>(block, by));
                low = _mm512_xor_si512(low, _mm512_clmulepi64_epi128::<0x00>(second, second_by));
                high = _mm512_xor_si512(high, _mm512_clmulepi64_epi128::<0x11>(second, second_by));
                (at, to) = (at.wrapping_add(2 * BLOCK), to.wrapping_add(2 * BLOCK));
                left -= 1;
                if left > 0 {
                    // SAFETY: another whole pair begins there.
                    (block, second) =
                        unsafe { (_mm512_loadu_si512(at.cast()), _mm512_loadu_si512(at.add(BLOCK).cast())) };
                    if COPY {
                        // SAFETY: the destination has as many bytes.
                        unsafe {
                            _mm512_storeu_si512(to.cast(), block);
                            _mm512_storeu_si512(to.add(BLOCK).cast(), second);
                        }
                    }
                }
            }
            sum = _mm_xor_si128(times(sum, BY_A_GROUP), fold(_mm512_xor_si512(low, high)));
            if left == 0 {
                return !reduce(sum);
            }
        }
    }

    #[allow(clippy::cast_possible_truncation)]
    fn halves(mask: u128) -> [u64; 2] {
        [mask as u64, (mask >> 64) as u64]
    }

    #[target_feature(enable = "pclmulqdq")]
    fn times(value: __m128i, [low, high]: [i64; 2]) -> __m128i {
        let by = _mm_set_epi64x(high, low);
        _mm_xor_si128(_mm_clmulepi64_si128::<0x00>(value, by), _mm_clmulepi64_si128::<0x11>(value, by))
    }

    /// The sum of the four parts.
    #[target_feature(enable = "avx512f")]
    fn fold(sum: __m512i) -> __m128i {
        let half = _mm256_xor_si256(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64::<1>(sum));
        _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half))
    }

    /// The remainder of 16 bytes and of the four zeros that follow the data of a checksum: first to
    /// twelve bytes, then to eight, then by Barrett reduction, with the polynomial and its inverse.
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    fn reduce(sum: __m128i) -> u32 {
        const INVERSE: i64 = 0x1_F701_1641;
        const WHOLE: i64 = ((POLYNOMIAL as i64) << 1) | 1;
        let four_bytes = _mm_set_epi32(0, 0, 0, !0);
        let by = _mm_set_epi64x(const { x_to(64) }, const { x_to(96) });
        let sum = _mm_xor_si128(_mm_clmulepi64_si128::<0x00>(sum, by), _mm_srli_si128::<8>(sum));
        let low = _mm_and_si128(sum, four_bytes);
        let sum = _mm_xor_si128(_mm_clmulepi64_si128::<0x10>(low, by), _mm_srli_si128::<4>(sum));
        let by = _mm_set_epi64x(INVERSE, WHOLE);
        let quotient = _mm_clmulepi64_si128::<0x10>(_mm_and_si128(sum, four_bytes), by);
        let product = _mm_clmulepi64_si128::<0x00>(_mm_and_si128(quotient, four_bytes), by);
        _mm_extract_epi32::<1>(_mm_xor_si128(product, sum)).cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lengths_and_alignments_have_the_checksum_that_they_have_bit_by_bit() {
        let bytes: Vec<u8> =
            (0..40_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0]).collect();
        for length in (0..300).chain(1000..1100).chain([2047, 2048, 2049, 30_000]) {
            for shift in [0, 1, 3, 63] {
                let piece = &bytes[shift..shift + length];
                let checksum = bit_by_bit(piece);
                assert_eq!(crc32(piece), checksum, "{length} bytes");
                let mut copy = vec![255; length + 100];
                assert_eq!(copied_crc32_after(0, piece, &mut copy[50..50 + length]), checksum);
                assert!(copy[50..50 + length] == *piece, "{length} bytes");
                assert!(copy[..50].iter().chain(&copy[50 + length..]).all(|&byte| byte == 255));
                for cut in
                    [0, 1, 2, 3, 64, 65, 67, length / 2, length].into_iter().filter(|&cut| cut <= length)
                {
                    let (before, after) = piece.split_at(cut);
                    assert_eq!(crc32_after(crc32(before), after), crc32(piece), "{cut} of {length} bytes");
                }
            }
        }
    }

    fn bit_by_bit(bytes: &[u8]) -> u32 {
        let bit = |crc: u32| (crc >> 1) ^ (0xEDB8_8320 * (crc & 1));
        !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| bit(crc)))
    }
}
