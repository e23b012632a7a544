//! Copying records out of a mapped file.

use crate::checksum::{copied_crc32_after, crc32_after};

/// Bytes copied at a time, so that what was just read for a checksum is copied out of the
/// processor's nearest caches.
const BLOCK: usize = 16 << 10;

/// Copies `from` to `to`, which is as long, and gives the CRC-32 (IEEE) of the bytes if asked to.
///
/// With `stream` the bytes go past the caches: a destination larger than the caches would only
/// push out what is in them, and the processor would read its memory before writing it.
pub(crate) fn copy(from: &[u8], to: &mut [u8], checksum: bool, stream: bool) -> Option<u32> {
    let mut crc = checksum.then_some(0);
    for (from, to) in from.chunks(BLOCK).zip(to.chunks_mut(BLOCK)) {
        match (&mut crc, stream) {
            (Some(crc), false) => *crc = copied_crc32_after(*crc, from, to),
            (None, false) => to.copy_from_slice(from),
            (crc, true) => {
                if let Some(crc) = crc {
                    *crc = crc32_after(*crc, from);
                }
                copy_past_caches(from, to);
            }
        }
    }
    crc
}

#[cfg(target_arch = "x86_64")]
fn copy_past_caches(from: &[u8], to: &mut [u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    // SAFETY: every value of 16 bytes is one of each type.
    let (begin, middle, end) = unsafe { to.align_to_mut::<__m128i>() };
    let (first, rest) = from.split_at(begin.len());
    let (pieces, last) = rest.as_chunks::<16>();
    begin.copy_from_slice(first);
    for (to, from) in middle.iter_mut().zip(pieces) {
        // SAFETY: `from` has 16 bytes; `to` is aligned to 16 bytes, writable and of that size. The
        // instructions are part of every processor of this kind.
        unsafe { _mm_stream_si128(to, _mm_loadu_si128(from.as_ptr().cast())) };
    }
    end.copy_from_slice(last);
}

/// Makes what was copied past the caches visible to other threads; before they are told.
pub(crate) fn finish_streaming() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction has no operands and is part of every processor of this kind.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn copy_past_caches(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

/// Asks the processor to bring the first of some bytes near, without waiting for them: so many lines
/// of 64 bytes.
pub(crate) fn bring_near(bytes: &[u8], lines: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64).take(lines) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is that of a byte of the slice; the instruction changes nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, lines);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::crc32;

    #[test]
    fn all_lengths_and_alignments_are_copied() {
        let from: Vec<u8> = (0..40_000u32).map(|i| (i % 251).to_le_bytes()[0]).collect();
        for length in (0..100).chain([BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 77]) {
            for shift in 0..17 {
                for stream in [false, true] {
                    let piece = &from[shift..shift + length];
                    let mut to = vec![255; length + 40];
                    let crc = copy(piece, &mut to[20 - shift % 3..][..length], true, stream);
                    finish_streaming();
                    assert_eq!(crc, Some(crc32(piece)));
                    let begin = 20 - shift % 3;
                    assert_eq!(&to[begin..begin + length], piece);
                    assert!(to[..begin].iter().chain(&to[begin + length..]).all(|&byte| byte == 255));
                }
            }
        }
    }
}
