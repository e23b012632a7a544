//! Copies records out of a mapped file.

use super::checksum::{Checksum, copied_crc32_after, crc32_after};
use std::marker::PhantomData;

/// Bytes copied at a time, so that data just read for a checksum is still in the processor's
/// nearest caches when it is copied.
const BLOCK: usize = 16 << 10;

/// Copies records, with `stream` past the caches. A destination larger than the caches would only
/// evict their contents, and the processor would read its memory before writing it.
///
/// Such bytes must not be read by any thread before the stores are fenced. Dropping the copier
/// fences them on every way out of a function, and the copier keeps each destination borrowed until
/// then.
pub(crate) struct Copier<'d> {
    stream: bool,
    destinations: PhantomData<&'d mut [u8]>,
}

impl<'d> Copier<'d> {
    pub(crate) fn new(stream: bool) -> Self {
        Copier { stream, destinations: PhantomData }
    }

    /// Copies `from` to `to`, which has the same length. Returns whether the bytes have the
    /// checksum, if one is given.
    #[inline]
    pub(crate) fn copy(&mut self, from: &[u8], to: &'d mut [u8], checksum: Option<Checksum>) -> bool {
        let blocks = from.chunks(BLOCK).zip(to.chunks_mut(BLOCK));
        match checksum {
            None => {
                blocks.for_each(|(from, to)| self.copy_block(from, to));
                true
            }
            Some(Checksum::Crc32(stored)) if !self.stream => {
                blocks.fold(0, |crc, (from, to)| copied_crc32_after(crc, from, to)) == stored
            }
            Some(Checksum::Crc32(stored)) => {
                let step = |crc, (from, to): (&[u8], &mut [u8])| {
                    let crc = crc32_after(crc, from);
                    self.copy_block(from, to);
                    crc
                };
                blocks.fold(0, step) == stored
            }
            Some(Checksum::Crc32c(stored)) => {
                let step = |crc, (from, to): (&[u8], &mut [u8])| {
                    let crc = crc32c::crc32c_append(crc, from);
                    self.copy_block(from, to);
                    crc
                };
                blocks.fold(0, step) == stored
            }
        }
    }

    fn copy_block(&self, from: &[u8], to: &mut [u8]) {
        match self.stream {
            true => copy_past_caches(from, to),
            false => to.copy_from_slice(from),
        }
    }
}

impl Drop for Copier<'_> {
    fn drop(&mut self) {
        if self.stream {
            fence();
        }
    }
}

/// Must be followed by [`fence`]; used only through a [`Copier`].
#[cfg(target_arch = "x86_64")]
fn copy_past_caches(from: &[u8], to: &mut [u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    #[cfg(test)]
    UNFENCED.set(true);
    // SAFETY: every value of 16 bytes is valid for each type.
    let (begin, middle, end) = unsafe { to.align_to_mut::<__m128i>() };
    let (first, rest) = from.split_at(begin.len());
    let (pieces, last) = rest.as_chunks::<16>();
    begin.copy_from_slice(first);
    for (to, from) in middle.iter_mut().zip(pieces) {
        // SAFETY: `from` has 16 bytes; `to` is aligned to 16 bytes, writable and of that size.
        // Every processor of this architecture has the instructions. The bytes stay borrowed by the
        // copier, so nothing reads them before it fences the stores.
        unsafe { _mm_stream_si128(to, _mm_loadu_si128(from.as_ptr().cast())) };
    }
    end.copy_from_slice(last);
}

#[cfg(not(target_arch = "x86_64"))]
fn copy_past_caches(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

/// Fences this thread's stores past the caches.
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction has no operands, and every processor of this architecture has it.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
    #[cfg(test)]
    UNFENCED.set(false);
}

#[cfg(test)]
thread_local! {
    /// Whether this thread has stores past the caches that are not fenced yet.
    pub(crate) static UNFENCED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Prefetches the first bytes of a slice, this many lines of 64 bytes, without waiting for them.
pub(crate) fn prefetch(bytes: &[u8], lines: usize) {
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
    use crate::base::checksum::crc32;

    #[test]
    fn all_lengths_and_alignments_are_copied() {
        let from: Vec<u8> = (0..40_000u32).map(|i| (i % 251).to_le_bytes()[0]).collect();
        for length in (0..100).chain([BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 77]) {
            for shift in 0..17 {
                for stream in [false, true] {
                    let piece = &from[shift..shift + length];
                    let mut to = vec![255; length + 40];
                    let slot = &mut to[20 - shift % 3..][..length];
                    let checksums = [
                        None,
                        Some(Checksum::Crc32(crc32(piece))),
                        Some(Checksum::Crc32c(crc32c::crc32c(piece))),
                    ];
                    let checksum = checksums[shift % 3];
                    assert!(Copier::new(stream).copy(piece, slot, checksum));
                    let wrong = match checksum {
                        Some(Checksum::Crc32(crc)) => Some(Checksum::Crc32(crc ^ 1)),
                        Some(Checksum::Crc32c(crc)) => Some(Checksum::Crc32c(crc ^ 1)),
                        None => None,
                    };
                    let slot = &mut to[20 - shift % 3..][..length];
                    assert_eq!(Copier::new(stream).copy(piece, slot, wrong), wrong.is_none());
                    let begin = 20 - shift % 3;
                    assert_eq!(&to[begin..begin + length], piece);
                    assert!(to[..begin].iter().chain(&to[begin + length..]).all(|&byte| byte == 255));
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn bytes_copied_past_the_caches_are_fenced_also_after_a_panic() {
        let mut to = vec![0; 100];
        let copy_and_panic = || {
            let mut copier = Copier::new(true);
            copier.copy(&[7; 100], &mut to, None);
            assert!(UNFENCED.get());
            std::panic::resume_unwind(Box::new(()));
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(copy_and_panic)).is_err());
        assert!(!UNFENCED.get());
        assert_eq!(to, [7; 100]);
    }
}
