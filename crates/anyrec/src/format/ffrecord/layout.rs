//! The bytes of an FFRecord file and what they mean. No I/O happens here.
//!
//! ```text
//! 0        4         12              12+4N            12+12N
//! | checksum | N      | N checksums    | N offsets       | (gap) samples ...
//! | u32      | i64    | u32 each       | i64 each        |
//! ```
//!
//! Everything is little-endian. The checksum covers the bytes from `N` to the last offset. Sample
//! `i` extends from offset `i` to offset `i + 1`, and the last one to the end of the file. The `N`
//! offsets and the file's length are the `N + 1` *boundaries* between samples.
//!
//! The table is kept in its stored form, and entries are decoded on demand: opening a file with
//! millions of samples allocates nothing per sample.

use crate::base::Result;
use crate::base::checksum::{crc32, crc32_after};
use crate::base::verified_copy::prefetch;
use bytes::Bytes;
use std::ops::Range;

/// Length of the part before the sample checksums: the metadata checksum and `N`.
pub(super) const HEADER: u64 = 12;

/// Size of a table entry: a checksum and an offset.
const ENTRY: u64 = 12;

/// How many later boundaries a boundary is compared with, see [`Table::boundary`].
const LOOK_AHEAD: u64 = 8;

/// Number of entries encoded at a time.
const CHUNK: usize = 1 << 16;

/// Length of the header and table for `count` samples; `None` if it exceeds an `i64`.
pub(super) fn table_length(count: u64) -> Option<u64> {
    count.checked_mul(ENTRY)?.checked_add(HEADER).filter(|&length| i64::try_from(length).is_ok())
}

/// The result of checking the table against the metadata checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableState {
    /// It matches.
    Verified,
    /// The checksum is 0: the file was written by an old version, which did not store one.
    Unprotected,
    /// It does not match.
    Mismatch {
        /// The checksum in the file.
        stored: u32,
        /// The checksum of the actual table.
        computed: u32,
    },
    /// The file ends inside the table.
    CutShort,
}

/// The table of a file: its first `12 + 12 N` bytes, or as many as the file has.
#[derive(Debug, Clone)]
pub(super) struct Table {
    bytes: Bytes,
    count: u64,
    length: u64,
}

impl Table {
    /// The number of samples that a header declares, and the length of their table.
    ///
    /// # Errors
    /// A sentence: fewer than 12 bytes, or an impossible number.
    pub(super) fn parse_header(header: &[u8]) -> std::result::Result<(u64, u64), String> {
        let Some(stored) = header.get(4..).and_then(|count| count.first_chunk()) else {
            return Err(format!("the file has {} bytes, fewer than a header's {HEADER}", header.len()));
        };
        let stored = i64::from_le_bytes(*stored);
        let count =
            u64::try_from(stored).map_err(|_| format!("the number of samples is negative: {stored}"))?;
        let length =
            table_length(count).ok_or_else(|| format!("the number of samples is impossible: {count}"))?;
        Ok((count, length))
    }

    /// Parses the table at the beginning of a file. `bytes` may end early if the file does.
    ///
    /// # Errors
    /// Same as [`Table::parse_header`].
    pub(super) fn parse(bytes: Bytes) -> std::result::Result<Self, String> {
        let (count, length) = Self::parse_header(&bytes)?;
        Ok(Table { bytes, count, length })
    }

    /// Number of samples.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Length in bytes. Samples begin at or after this offset.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Checks the table against the metadata checksum, in one pass over it.
    pub(super) fn check(&self) -> TableState {
        let stored = self.stored_checksum();
        let Some(covered) = usize::try_from(self.length).ok().and_then(|end| self.bytes.get(4..end)) else {
            return TableState::CutShort;
        };
        if stored == 0 {
            return TableState::Unprotected;
        }
        match crc32(covered) {
            computed if computed == stored => TableState::Verified,
            computed => TableState::Mismatch { stored, computed },
        }
    }

    /// The metadata checksum as stored.
    pub(super) fn stored_checksum(&self) -> u32 {
        self.bytes.first_chunk().map_or(0, |stored| u32::from_le_bytes(*stored))
    }

    /// Checksum of sample `index`; `None` at or past `N`, or if the file ends before it.
    #[inline]
    pub(super) fn checksum(&self, index: u64) -> Option<u32> {
        self.checksum_entry(index).map(|stored| u32::from_le_bytes(*stored))
    }

    /// Stored offset of sample `index`; `None` at or past `N`, or if the file ends before it.
    #[inline]
    pub(super) fn offset(&self, index: u64) -> Option<i64> {
        self.offset_entry(index).map(|stored| i64::from_le_bytes(*stored))
    }

    #[inline]
    fn checksum_entry(&self, index: u64) -> Option<&[u8; 4]> {
        let at = HEADER.checked_add(index.checked_mul(4)?).filter(|_| index < self.count)?;
        self.bytes.get(usize::try_from(at).ok()?..)?.first_chunk()
    }

    #[inline]
    fn offset_entry(&self, index: u64) -> Option<&[u8; 8]> {
        if index >= self.count {
            return None;
        }
        let at = HEADER.checked_add(self.count.checked_mul(4)?)?.checked_add(index.checked_mul(8)?)?;
        self.bytes.get(usize::try_from(at).ok()?..)?.first_chunk()
    }

    /// Prefetches the entries of a sample without waiting for them.
    pub(super) fn approach(&self, index: u64) {
        if let (Some(checksum), Some(offset)) = (self.checksum_entry(index), self.offset_entry(index)) {
            prefetch(checksum, 1);
            prefetch(offset, 1);
        }
    }

    /// The byte range of sample `index` in a file of `length` bytes.
    ///
    /// # Errors
    /// A sentence: the entry is missing, or points outside the sample area of the file.
    pub(super) fn span(&self, index: u64, length: u64) -> std::result::Result<Range<u64>, String> {
        let missing = || "the file ends before the sample's table entry".to_owned();
        let begin = self.offset(index).ok_or_else(missing)?;
        let end = match index.checked_add(1) {
            Some(next) if next < self.count => self.offset(next).ok_or_else(missing)?,
            _ => i64::try_from(length).map_err(|_| missing())?,
        };
        match (u64::try_from(begin), u64::try_from(end)) {
            (Ok(from), Ok(to)) if self.length <= from && from <= to && to <= length => Ok(from..to),
            _ => Err(format!(
                "the table puts the sample at bytes {begin} to {end}, but samples lie between bytes {} and {length}",
                self.length
            )),
        }
    }

    /// Whether every sample lies after the table and within a file of `length` bytes, and none
    /// begins before its predecessor. In that case [`span`](Table::span) is correct for each sample
    /// independently.
    pub(super) fn is_in_order(&self, length: u64) -> bool {
        let offsets = self.count.checked_mul(4).and_then(|size| size.checked_add(HEADER));
        let offsets = offsets.and_then(|begin| self.bytes.get(usize::try_from(begin).ok()?..));
        let (offsets, _) = offsets.unwrap_or_default().as_chunks::<8>();
        let mut last = self.length;
        // Read as unsigned, negative offsets lie beyond the end of any file.
        let follows = |stored: &[u8; 8]| {
            let before = std::mem::replace(&mut last, u64::from_le_bytes(*stored));
            before <= last
        };
        offsets.iter().all(follows) && last <= length
    }

    /// Boundary `index` (of `0..=N`; the last is the file's length), if it is credible.
    ///
    /// A damaged or malicious table may hold boundaries in any order. This picks a non-decreasing
    /// chain from them by looking at only a few entries. `after` is the last accepted boundary. A
    /// boundary is rejected if it lies before `after`, outside the file, or beyond both of the next
    /// two candidates. A single wrong offset therefore costs only the two samples it separates, and
    /// samples never overlap.
    ///
    /// Without a `length` (on a stream) the last boundary is `u64::MAX`.
    #[inline]
    pub(super) fn boundary(&self, index: u64, after: u64, length: Option<u64>) -> Option<u64> {
        let value = self.candidate(index, after, length)?;
        let mut beyond = 0;
        for next in index.saturating_add(1)..=index.saturating_add(LOOK_AHEAD).min(self.count) {
            match self.candidate(next, after, length) {
                Some(other) if other >= value => return Some(value),
                Some(_) if beyond == 1 => return None,
                Some(_) => beyond += 1,
                None => {}
            }
        }
        Some(value)
    }

    /// Checksums and ends of the samples from `index` on, in a file of `length` bytes. Stops at the
    /// first end that is not credible because the next one lies before it.
    pub(super) fn in_order(&self, index: u64, length: u64) -> impl Iterator<Item = (u32, u64)> {
        let entries = |begin: Option<u64>, end: Option<u64>| {
            let begin = begin.and_then(|begin| usize::try_from(begin).ok())?;
            self.bytes.get(begin..usize::try_from(end?).ok()?)
        };
        let offsets_begin = self.count.checked_mul(4).and_then(|size| size.checked_add(HEADER));
        let checksums = entries(index.checked_mul(4).and_then(|at| at.checked_add(HEADER)), offsets_begin);
        let next = index.checked_add(1).and_then(|next| next.checked_mul(8));
        let ends =
            entries(next.zip(offsets_begin).and_then(|(at, begin)| at.checked_add(begin)), Some(self.length));
        let (checksums, _) = checksums.unwrap_or_default().as_chunks::<4>();
        let (ends, _) = ends.unwrap_or_default().as_chunks::<8>();
        let mut ends = ends.iter().map(|end| u64::from_le_bytes(*end)).chain([length]);
        let mut end = ends.next();
        checksums.iter().map_while(move |stored| {
            let this = end?;
            end = ends.next();
            (this <= end.unwrap_or(length) && end.is_none_or(|end| end <= length))
                .then_some((u32::from_le_bytes(*stored), this))
        })
    }

    /// Boundary `index`, if it lies between `after` and the end of the file.
    #[inline]
    fn candidate(&self, index: u64, after: u64, length: Option<u64>) -> Option<u64> {
        let end = length.unwrap_or(u64::MAX);
        if index >= self.count {
            return Some(end);
        }
        let value = u64::try_from(self.offset(index)?).ok()?;
        (after <= value && value <= end).then_some(value)
    }
}

/// Encodes a table for samples with these checksums that begin at these offsets plus `base`.
/// `write` receives the pieces and their offsets. The first 12 bytes come last, so that a partially
/// written table has no header. With `unprotected` the metadata checksum stays 0.
///
/// # Errors
/// Any error of `write`.
pub(super) fn encode_table(
    checksums: &[u32],
    offsets: &[u64],
    base: u64,
    unprotected: bool,
    mut write: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let count = checksums.len() as u64;
    let mut checksum = crc32(&count.to_le_bytes());
    let mut at = HEADER;
    let mut put = |piece: &[u8]| {
        checksum = crc32_after(checksum, piece);
        write(at, piece)?;
        at += piece.len() as u64;
        Ok(())
    };
    for chunk in checksums.chunks(CHUNK) {
        put(&chunk.iter().flat_map(|checksum| checksum.to_le_bytes()).collect::<Vec<u8>>())?;
    }
    for chunk in offsets.chunks(CHUNK) {
        put(&chunk.iter().flat_map(|offset| (base + offset).to_le_bytes()).collect::<Vec<u8>>())?;
    }
    let stored = if unprotected { 0 } else { checksum };
    let mut header = stored.to_le_bytes().to_vec();
    header.extend_from_slice(&count.to_le_bytes());
    write(0, &header)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table with these offsets.
    fn table(offsets: &[u64]) -> Table {
        let checksums = vec![7; offsets.len()];
        let mut bytes = vec![0; usize::try_from(table_length(offsets.len() as u64).unwrap()).unwrap()];
        encode_table(&checksums, offsets, 0, false, |at, piece| {
            let at = usize::try_from(at).unwrap();
            bytes[at..at + piece.len()].copy_from_slice(piece);
            Ok(())
        })
        .unwrap();
        Table::parse(bytes.into()).unwrap()
    }

    /// The chain of boundaries that a scan accepts.
    fn chain(offsets: &[u64], length: u64) -> Vec<Option<u64>> {
        let table = table(offsets);
        let mut after = table.length();
        (0..=table.count())
            .map(|index| {
                let boundary = table.boundary(index, after, Some(length));
                after = boundary.unwrap_or(after);
                boundary
            })
            .collect()
    }

    #[test]
    fn a_table_says_what_was_encoded() {
        let table = table(&[36, 40]);
        assert_eq!(table.check(), TableState::Verified);
        assert_eq!((table.count(), table.length()), (2, 36));
        assert_eq!((table.checksum(1), table.checksum(2)), (Some(7), None));
        assert_eq!((table.offset(1), table.offset(2)), (Some(40), None));
        assert_eq!(table.span(0, 50), Ok(36..40));
        assert_eq!(table.span(1, 50), Ok(40..50));
        assert!(table.span(1, 39).unwrap_err().contains("bytes 40 to 39"));
    }

    #[test]
    fn offsets_are_in_order_where_none_lies_before_another_or_outside_the_samples() {
        let in_order = |offsets: &[u64]| table(offsets).is_in_order(120);
        assert!(in_order(&[72, 80, 80, 100, 120]));
        assert!(in_order(&[]));
        assert!(!in_order(&[71, 80, 90, 100, 110]));
        assert!(!in_order(&[72, 90, 80, 100, 110]));
        assert!(!in_order(&[72, 80, 90, 100, 121]));
        assert!(!in_order(&[72, 80, u64::MAX, 100, 110]));
    }

    #[test]
    fn one_wrong_offset_is_left_out_of_the_chain() {
        let good = [72, 80, 90, 100, 110];
        assert_eq!(chain(&good, 120), [Some(72), Some(80), Some(90), Some(100), Some(110), Some(120)]);
        assert_eq!(
            chain(&[72, 80, 118, 100, 110], 120),
            [Some(72), Some(80), None, Some(100), Some(110), Some(120)]
        );
        assert_eq!(
            chain(&[72, 80, 73, 100, 110], 120),
            [Some(72), Some(80), None, Some(100), Some(110), Some(120)]
        );
        assert_eq!(
            chain(&[119, 80, 90, 100, 110], 120),
            [None, Some(80), Some(90), Some(100), Some(110), Some(120)]
        );
        assert_eq!(
            chain(&[72, 80, u64::MAX, 100, 3], 120),
            [Some(72), Some(80), None, Some(100), None, Some(120)]
        );
    }

    #[test]
    fn impossible_counts_are_refused() {
        let header = |count: i64| [&[0; 4][..], &count.to_le_bytes()].concat();
        assert!(Table::parse_header(&header(-1)).unwrap_err().contains("negative: -1"));
        assert!(Table::parse_header(&header(i64::MAX)).unwrap_err().contains("impossible"));
        assert!(Table::parse_header(&[0; 11]).unwrap_err().contains("11 bytes"));
        assert_eq!(Table::parse_header(&header(2)), Ok((2, 36)));
    }
}
