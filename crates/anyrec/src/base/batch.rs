//! Many records in one buffer.

use super::checksum::Checksum;
use crate::base::memory::{reserve, zeroed};
use crate::base::verified_copy::Copier;
use crate::base::{Error, Result};
use std::ops::Range;

/// Records back to back in one buffer, with the offsets between them (the layout Arrow calls
/// LargeBinary).
///
/// A batch can be filled repeatedly ([`Dataset::read_batch_into`](crate::Dataset)). Its memory is
/// then reused, which is faster than fresh memory, because the operating system need not clear it.
///
/// ```
/// let batch: anyrec::Batch = [&b"one"[..], b"", b"three"].into_iter().collect();
/// assert_eq!(batch.len(), 3);
/// assert_eq!(batch.get(2), Some(&b"three"[..]));
/// assert_eq!(batch.offsets(), [0, 3, 3, 8]);
/// ```
#[derive(Clone)]
pub struct Batch {
    /// May be longer than its records: the rest is left over from a larger batch.
    buffer: Vec<u8>,
    /// One more than there are records; the first is 0, the last is the end of the last record.
    offsets: Vec<u64>,
}

impl Default for Batch {
    fn default() -> Self {
        Batch { buffer: Vec::new(), offsets: vec![0] }
    }
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Like [`push`](Batch::push), for a record whose size a file determines.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[inline]
    pub(crate) fn try_push(&mut self, record: &[u8]) -> Result<()> {
        let end = self.end();
        if self.buffer.len() > end {
            self.buffer.truncate(end);
        }
        reserve(&mut self.buffer, record.len())?;
        reserve(&mut self.offsets, 1)?;
        self.buffer.extend_from_slice(record);
        self.offsets.push(self.buffer.len() as u64);
        Ok(())
    }

    /// Appends a record.
    #[inline]
    pub fn push(&mut self, record: &[u8]) {
        let end = self.end();
        if self.buffer.len() > end {
            self.buffer.truncate(end);
        }
        self.buffer.extend_from_slice(record);
        self.offsets.push(self.buffer.len() as u64);
    }

    /// Appends a record if it has this checksum. Returns whether it has.
    #[inline]
    pub(crate) fn push_verified(&mut self, record: &[u8], checksum: Checksum) -> Result<bool> {
        let begin = self.end();
        let end = begin + record.len();
        if self.buffer.len() < end {
            let more = end - self.buffer.len();
            reserve(&mut self.buffer, more)?;
            self.buffer.resize(end, 0);
        }
        reserve(&mut self.offsets, 1)?;
        let slot = self.buffer.get_mut(begin..end).unwrap_or_default();
        let holds = Copier::new(false).copy(record, slot, Some(checksum));
        if holds {
            self.offsets.push(end as u64);
        }
        Ok(holds)
    }

    /// Removes all records and keeps the memory for the next ones.
    pub fn clear(&mut self) {
        self.offsets.truncate(1);
    }

    /// Number of records.
    #[inline]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Record `index` of the batch.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let begin = usize::try_from(*self.offsets.get(index)?).ok()?;
        let end = usize::try_from(*self.offsets.get(index + 1)?).ok()?;
        self.buffer.get(begin..end)
    }

    /// The records in order.
    pub fn iter(&self) -> Iter<'_> {
        self.into_iter()
    }

    /// The bytes of all records, back to back.
    #[inline]
    pub fn buffer(&self) -> &[u8] {
        self.buffer.get(..self.end()).unwrap_or_default()
    }

    /// The bytes of all records, to be changed in place.
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        let end = self.end();
        self.buffer.get_mut(..end).unwrap_or_default()
    }

    /// The offset of each record in the buffer, followed by the end of the last record.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Bytes of memory it holds, used or not.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Returns buffer and offsets.
    pub fn into_parts(mut self) -> (Vec<u8>, Vec<u64>) {
        self.buffer.truncate(self.end());
        (self.buffer, self.offsets)
    }

    /// Makes space for records that end at these offsets (the first is 0) and returns it to be
    /// filled.
    pub(crate) fn lay_out(&mut self, offsets: Vec<u64>) -> Result<&mut [u8]> {
        let total = offsets.last().copied().unwrap_or(0);
        let too_large = || Error::out_of_memory(total);
        let size = usize::try_from(total).map_err(|_| too_large())?;
        if self.buffer.len() < size {
            self.clear();
            if self.buffer.capacity() < size {
                // With some slack: the next batch is likely to be slightly larger or smaller.
                self.buffer = zeroed(size.saturating_add(size / 8)).or_else(|_| zeroed(size))?;
            } else {
                self.buffer.resize(size, 0);
            }
        }
        self.offsets = offsets;
        self.buffer.get_mut(..size).ok_or_else(too_large)
    }

    /// Makes space for more records, and returns it to be filled. The offsets (the first is 0)
    /// count from the end of the last record.
    pub(crate) fn lay_out_more(&mut self, offsets: Vec<u64>) -> Result<&mut [u8]> {
        if self.is_empty() {
            return self.lay_out(offsets);
        }
        let begin = self.end();
        let total = (begin as u64).saturating_add(offsets.last().copied().unwrap_or(0));
        let too_large = || Error::out_of_memory(total);
        let end = usize::try_from(total).map_err(|_| too_large())?;
        reserve(&mut self.offsets, offsets.len())?;
        if self.buffer.len() < end {
            let more = end - self.buffer.len();
            reserve(&mut self.buffer, more)?;
            self.buffer.resize(end, 0);
        }
        self.offsets.extend(offsets.into_iter().skip(1).map(|offset| begin as u64 + offset));
        self.buffer.get_mut(begin..end).ok_or_else(too_large)
    }

    /// Replaces the records from `first` on by parts of them, without using more memory.
    ///
    /// # Errors
    /// Those of `part`; the batch then ends before the record that failed.
    pub(crate) fn shorten(
        &mut self,
        first: usize,
        mut part: impl FnMut(usize, &[u8]) -> Result<Range<usize>>,
    ) -> Result<()> {
        let place = |offset: Option<&u64>| offset.and_then(|&at| usize::try_from(at).ok()).unwrap_or(0);
        let mut begin = place(self.offsets.get(first));
        let mut end = begin;
        for index in first..self.len() {
            let next = place(self.offsets.get(index + 1));
            let record = self.buffer.get(begin..next).unwrap_or_default();
            let kept = match part(index, record) {
                Ok(kept) => kept.start.min(record.len())..kept.end.min(record.len()),
                Err(error) => {
                    self.offsets.truncate(index + 1);
                    return Err(error);
                }
            };
            self.buffer.copy_within(begin + kept.start..begin + kept.end, end);
            end += kept.len();
            if let Some(offset) = self.offsets.get_mut(index + 1) {
                *offset = end as u64;
            }
            begin = next;
        }
        Ok(())
    }

    /// The end of the last record. It lies within the buffer, so the number fits.
    #[inline]
    fn end(&self) -> usize {
        self.offsets.last().and_then(|&end| usize::try_from(end).ok()).unwrap_or(0)
    }
}

impl<'a> IntoIterator for &'a Batch {
    type Item = &'a [u8];
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        Iter { batch: self, next: 0 }
    }
}

/// The records of a [`Batch`], in order.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    batch: &'a Batch,
    next: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let record = self.batch.get(self.next)?;
        self.next += 1;
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.batch.len().saturating_sub(self.next);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl PartialEq for Batch {
    fn eq(&self, other: &Self) -> bool {
        self.offsets == other.offsets && self.buffer() == other.buffer()
    }
}

impl Eq for Batch {}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> FromIterator<&'a [u8]> for Batch {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(records: I) -> Self {
        let mut batch = Batch::new();
        for record in records {
            batch.push(record);
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_shortened_in_place() {
        let mut batch: Batch = [&b"kept"[..], b"12345", b"", b"abc"].into_iter().collect();
        batch.shorten(1, |_, record| Ok(record.len().min(1)..record.len())).unwrap();
        assert!(batch.iter().eq([&b"kept"[..], b"2345", b"", b"bc"]));
        let fails = |at, _: &[u8]| if at == 2 { Err(Error::invalid("no")) } else { Ok(0..1) };
        assert!(batch.shorten(0, fails).is_err());
        assert!(batch.iter().eq([&b"k"[..], b"2"]));
    }

    #[test]
    fn a_batch_that_is_filled_again_shows_nothing_of_before() {
        let mut batch: Batch = [&b"something long"[..], b"and more"].into_iter().collect();
        batch.lay_out(vec![0, 2, 3]).unwrap().copy_from_slice(b"abc");
        assert_eq!(batch.iter().collect::<Vec<_>>(), [&b"ab"[..], b"c"]);
        assert_eq!((batch.buffer(), batch.offsets()), (&b"abc"[..], &[0, 2, 3][..]));
        batch.push(b"d");
        assert_eq!(batch, [&b"ab"[..], b"c", b"d"].into_iter().collect());
        assert_eq!(batch.clone().into_parts(), (b"abcd".to_vec(), vec![0, 2, 3, 4]));
        batch.lay_out_more(vec![0, 1, 3]).unwrap().copy_from_slice(b"efg");
        assert_eq!(batch, [&b"ab"[..], b"c", b"d", b"e", b"fg"].into_iter().collect());
        assert_eq!(batch.lay_out_more(vec![0, u64::MAX]).unwrap_err().kind(), crate::ErrorKind::OutOfMemory);
        batch.clear();
        assert_eq!(batch, Batch::new());
        assert_eq!(batch.lay_out(vec![0, u64::MAX]).unwrap_err().kind(), crate::ErrorKind::OutOfMemory);
    }
}
