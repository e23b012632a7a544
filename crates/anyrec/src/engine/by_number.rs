//! Reads many records at once: locates them first, then fetches them together, verifies them, and
//! puts them into one buffer in the caller's order.

use super::record_set::Place;
use crate::base::memory::check_available;
use crate::base::verified_copy::{Copier, prefetch};
use crate::base::{Batch, Error, ErrorKind, Location, Plain, Position, Result};
use crate::format::RecordReader;
use crate::io::RangeRead;
use crate::threads::each_side_by_side;
use crate::threads::interrupt::{go_on, go_on_at};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;

/// The number of bytes that makes waking another thread worthwhile.
const WORTH_A_THREAD: u64 = 512 << 10;

/// A batch of this size would evict everything else from the processor's caches.
const LARGER_THAN_CACHES: u64 = 8 << 20;

/// Bytes that each thread fills before the caller is asked again whether to continue.
const ROUND: u64 = 8 << 20;

/// Frames, and bytes of them, that each thread decodes before the caller is asked again.
const FRAMES: (usize, u64) = (32, 8 << 20);

/// The number of records that are located and read at a time: the bookkeeping of each takes more
/// memory than a small record.
pub(crate) const GROUP: usize = 1 << 16;

/// The number of records from which memory is checked before it is requested, and the bytes of
/// bookkeeping per record.
const MANY: usize = GROUP;
const PER_RECORD: usize = 256;

/// While a record is copied, the beginning of the record this many places later is prefetched.
const AHEAD: usize = 4;

/// How much of it is prefetched: as much as a small record has. The processor prefetches the rest
/// of a large one by itself.
const NEAR_LINES: usize = 16;

/// The records of one reader with these numbers, in this order, repeats included.
///
/// # Errors
/// As [`RecordReader::read`], for the first record that fails.
pub fn read_batch(reader: &dyn RecordReader, indices: &[u64]) -> Result<Batch> {
    let places = indices.iter().map(|&index| Place { reader, index }).collect();
    let mut batch = Batch::new();
    Fetch::new(places, 1, OnBad::Fail)?.append_to(&mut batch, 1)?;
    Ok(batch)
}

/// What happens if a record cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnBad {
    /// The whole fetch fails with the error of the first such record in the caller's order.
    Fail,
    /// The other records are still read.
    Collect,
}

/// Records that could not be read, and why, in the order of their places.
pub(crate) type Failures = Vec<(usize, Error)>;

/// Located records, whose sizes are known.
///
/// With [`OnBad::Collect`], a record that cannot be read does not prevent the others from being
/// read: it is left empty, and the reason is returned.
pub(crate) struct Fetch<'a> {
    wanted: Vec<Place<'a>>,
    /// The indices (in `wanted`) of the records of each reader.
    by_reader: Vec<(&'a dyn RecordReader, Vec<usize>)>,
    /// For each of `wanted`, the whole source, if it is in memory.
    memory: Vec<Option<&'a [u8]>>,
    locations: Vec<Location>,
    /// Some records are being prefetched from the disk.
    cold: bool,
    /// Records that are not stored verbatim.
    decoded: Vec<Batch>,
    /// For each of `wanted` that is one of these: which of `decoded` it is in, and its number
    /// there.
    decoded_at: Vec<Option<(usize, usize)>>,
    offsets: Vec<u64>,
    on_bad: OnBad,
    failures: Failures,
}

impl<'a> Fetch<'a> {
    /// Locates the records, and reads those that must be decoded to know their size, on up to this
    /// many threads.
    ///
    /// # Errors
    /// With [`OnBad::Collect`], only errors that do not concern a single record: too little memory,
    /// an interrupt.
    pub(crate) fn new(wanted: Vec<Place<'a>>, threads: usize, on_bad: OnBad) -> Result<Self> {
        if wanted.len() > MANY {
            check_available(wanted.len().saturating_mul(PER_RECORD))?;
        }
        let by_reader = by_reader(&wanted);
        let mut memory = vec![None; wanted.len()];
        for (reader, places) in &by_reader {
            reader.source().guard()?;
            let all = reader.source().as_slice();
            for &at in places {
                if let Some(slot) = memory.get_mut(at) {
                    *slot = all;
                }
            }
        }
        let early: Vec<Option<Range<u64>>> =
            wanted.iter().map(|place| place.reader.approach(place.index)).collect();
        let mut cold = false;
        for (reader, places) in &by_reader {
            let ranges: Vec<Range<u64>> =
                places.iter().filter_map(|&at| early.get(at).cloned().flatten()).collect();
            cold |= reader.source().expect(&ranges);
        }
        let mut failures = Failures::new();
        let mut locations = Vec::with_capacity(wanted.len());
        for (at, place) in wanted.iter().enumerate() {
            go_on_at(at)?;
            locations.push(match place.reader.locate(place.index) {
                Ok(location) => location,
                Err(error) => {
                    failures.push((at, of_one_record(error)?));
                    if on_bad == OnBad::Fail {
                        break;
                    }
                    nowhere()
                }
            });
        }
        let mut fetch = Fetch {
            wanted,
            by_reader,
            memory,
            locations,
            cold,
            decoded: Vec::new(),
            decoded_at: Vec::new(),
            offsets: Vec::new(),
            on_bad,
            failures,
        };
        fetch.check_failures()?;
        fetch.cold |= fetch.expect_rest(&early);
        if fetch.locations.iter().any(|location| location.plain.is_none()) {
            fetch.decode(threads)?;
            fetch.check_failures()?;
        }
        let mut end = 0;
        fetch.offsets.reserve(fetch.wanted.len() + 1);
        fetch.offsets.push(end);
        for at in 0..fetch.wanted.len() {
            end += fetch.size(at);
            fetch.offsets.push(end);
        }
        Ok(fetch)
    }

    /// Returns an error if records could not be located or decoded and that is not allowed.
    fn check_failures(&mut self) -> Result<()> {
        if self.failures.is_empty() {
            return Ok(());
        }
        // A file that was truncated in the meantime may look like anything.
        self.check_unchanged()?;
        match self.on_bad {
            OnBad::Fail => Err(self.failures.swap_remove(0).1),
            OnBad::Collect => Ok(()),
        }
    }

    /// Appends the records to a batch and returns those that could not be read. Their contents in
    /// the batch are undefined. After an error the batch is empty.
    ///
    /// # Errors
    /// As [`Fetch::new`].
    pub(crate) fn append_to(mut self, batch: &mut Batch, threads: usize) -> Result<Failures> {
        let offsets = std::mem::take(&mut self.offsets);
        let filled = batch.lay_out_more(offsets).and_then(|buffer| self.fill(buffer, threads));
        filled.inspect_err(|_| batch.clear())
    }

    /// The records as slices of their sources if those can be lent, else as slices of one buffer.
    ///
    /// # Errors
    /// As [`RecordReader::read`], for the first record that fails.
    pub(crate) fn lend(self) -> Result<Vec<Bytes>> {
        let fetch = self;
        if !(0..fetch.wanted.len()).all(|at| fetch.in_memory(at)) {
            let mut batch = Batch::new();
            fetch.append_to(&mut batch, 1)?;
            let (buffer, offsets) = batch.into_parts();
            let buffer = Bytes::from(buffer);
            let place = |pair: &[u64]| match pair {
                // The offsets lie within the buffer.
                #[allow(clippy::cast_possible_truncation)]
                &[begin, end] => buffer.slice(begin as usize..end as usize),
                _ => Bytes::new(),
            };
            return Ok(offsets.windows(2).map(place).collect());
        }
        let lend = |(at, place): (usize, &Place<'_>)| {
            go_on_at(at)?;
            fetch.borrow(at)?;
            let range = fetch.plain(at).map_or(0..0, |plain| plain.range.clone());
            place.reader.source().lend(range)
        };
        let lent = fetch.wanted.iter().enumerate().map(lend).collect();
        fetch.check_unchanged().and(lent)
    }

    /// Calls `visit` for each record, in order, with its bytes: borrowed from its source if that is
    /// in memory, else read together into `scratch`. Results computed from the bytes are valid only
    /// if this returns `Ok`: a file may be truncated in the meantime.
    ///
    /// # Errors
    /// Errors that do not concern a single record; an error of `visit`, which ends the visits.
    pub(crate) fn visit(
        mut self,
        scratch: &mut Batch,
        mut visit: impl FnMut(Place<'a>, Position, Result<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        scratch.clear();
        let borrowed = (0..self.wanted.len()).all(|at| self.in_memory(at) || self.plain(at).is_none());
        let failures = match borrowed {
            true => std::mem::take(&mut self.failures),
            false => {
                let offsets = self.offsets.clone();
                scratch.lay_out_more(offsets).and_then(|buffer| self.fill(buffer, 1))?
            }
        };
        let mut failures = failures.into_iter().peekable();
        let mut visited = Ok(());
        for (at, (place, location)) in self.wanted.iter().zip(&self.locations).enumerate() {
            let record = match failures.next_if(|(failed, _)| *failed == at) {
                Some((_, error)) => Err(error),
                None if borrowed => self.borrow(at),
                None => Ok(scratch.get(at).unwrap_or_default()),
            };
            visited = visit(*place, location.position, record);
            if visited.is_err() {
                break;
            }
        }
        self.check_unchanged().and(visited)
    }

    /// A record whose bytes are already in memory, verified.
    fn borrow(&self, at: usize) -> Result<&[u8]> {
        let Some((plain, Some(bytes))) = self.plain_bytes(at) else { return Ok(self.decoded_record(at)) };
        match plain.checksum {
            Some(checksum) if !checksum.holds_for(bytes) => Err(self.damaged(at, bytes)),
            _ => Ok(bytes),
        }
    }

    fn in_memory(&self, at: usize) -> bool {
        self.plain_bytes(at).is_some_and(|(_, bytes)| bytes.is_some())
    }

    /// The records, and the location of each in its file.
    pub(crate) fn places(&self) -> impl Iterator<Item = (Place<'a>, Position)> {
        self.wanted.iter().zip(&self.locations).map(|(place, location)| (*place, location.position))
    }

    /// The offset of each record in the buffer, followed by the size of the buffer.
    pub(crate) fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    fn size(&self, at: usize) -> u64 {
        match (self.plain(at), self.decoded_record(at)) {
            (Some(plain), _) => plain.range.end.saturating_sub(plain.range.start),
            (None, record) => record.len() as u64,
        }
    }

    fn plain(&self, at: usize) -> Option<&Plain> {
        self.locations.get(at).and_then(|location| location.plain.as_ref())
    }

    fn decoded_record(&self, at: usize) -> &[u8] {
        let place = self.decoded_at.get(at).copied().flatten();
        place.and_then(|(batch, at)| self.decoded.get(batch)?.get(at)).unwrap_or_default()
    }

    /// Lets the sources prefetch what is not in memory yet, all at once, except for what was
    /// requested early. Returns whether there was any.
    fn expect_rest(&self, early: &[Option<Range<u64>>]) -> bool {
        let mut cold = false;
        for (reader, places) in &self.by_reader {
            let late = places.iter().filter(|&&at| early.get(at).is_none_or(Option::is_none));
            let locations = late.filter_map(|&at| self.locations.get(at));
            let ranges: Vec<Range<u64>> = locations
                .map(|location| location.plain.as_ref().map_or(&location.span, |plain| &plain.range).clone())
                .collect();
            cold |= reader.source().expect(&ranges);
        }
        for at in 0..self.wanted.len() {
            if let Some((_, Some(bytes))) = self.plain_bytes(at) {
                prefetch(bytes, 1);
            }
        }
        cold
    }

    /// Reads the records that are not stored verbatim: file by file, in file order, each once, and
    /// all records of a frame on one thread.
    fn decode(&mut self, threads: usize) -> Result<()> {
        let mut decoded_at = vec![None; self.wanted.len()];
        let mut failed = BTreeMap::new();
        for (reader, places) in &self.by_reader {
            let place = |&at: &usize| {
                let (wanted, location) = self.wanted.get(at).zip(self.locations.get(at))?;
                location.plain.is_none().then_some((wanted.index, &location.span, at))
            };
            let mut places: Vec<(u64, &Range<u64>, usize)> = places.iter().filter_map(place).collect();
            places.sort_unstable_by_key(|&(index, _, at)| (index, at));
            let frames: Vec<_> = places.chunk_by(|one, other| one.1.start == other.1.start).collect();
            let mut left = &frames[..];
            while !left.is_empty() {
                go_on()?;
                let (frames, bytes) = round_of(&mut left, threads);
                let count = workers(bytes, threads).min(frames.len());
                let mut shares: Vec<Share> = (0..count).map(|_| Share::default()).collect();
                for (number, &frame) in frames.iter().enumerate() {
                    let share = number * count / frames.len();
                    let Some(Share { indices, .. }) = shares.get_mut(share) else { continue };
                    for &(index, span, at) in frame {
                        if indices.last().is_none_or(|(last, _)| *last != index) {
                            indices.push((index, span.start));
                        }
                        if let Some(slot) = decoded_at.get_mut(at) {
                            *slot = Some((self.decoded.len() + share, indices.len() - 1));
                        }
                    }
                }
                for share in each_side_by_side(shares, |share| share.decode(*reader))? {
                    let batch = self.decoded.len();
                    failed.extend(share.failed.into_iter().map(|(number, error)| ((batch, number), error)));
                    self.decoded.push(share.batch);
                }
            }
        }
        for (at, place) in decoded_at.iter().enumerate() {
            if let Some(error) = place.and_then(|place| failed.get(&place)) {
                self.failures.push((at, error.duplicate()));
            }
        }
        self.failures.sort_by_key(|(at, _)| *at);
        self.decoded_at = decoded_at;
        Ok(())
    }

    /// Puts the records into a buffer whose size is the last of the offsets, on up to this many
    /// threads. Returns the records that could not be read, including those already known.
    ///
    /// # Errors
    /// As [`Fetch::new`].
    pub(crate) fn fill(&mut self, buffer: &mut [u8], threads: usize) -> Result<Failures> {
        let mut failures = std::mem::take(&mut self.failures);
        let copied = self.copy_all(buffer, threads);
        self.check_unchanged()?;
        failures.extend(copied?);
        failures.sort_by_key(|(at, _)| *at);
        if self.on_bad == OnBad::Fail && !failures.is_empty() {
            return Err(failures.swap_remove(0).1);
        }
        Ok(failures)
    }

    /// Must be checked after records are copied, not before: see
    /// [`Source::as_slice`](crate::io::Source).
    fn check_unchanged(&self) -> Result<()> {
        self.by_reader.iter().try_for_each(|(reader, _)| reader.source().check_unchanged())
    }

    fn copy_all(&self, buffer: &mut [u8], threads: usize) -> Result<Failures> {
        let total = buffer.len() as u64;
        let stream = total >= LARGER_THAN_CACHES;
        let mut slots = self.slots(buffer);
        let round = ROUND.saturating_mul(threads.max(1) as u64);
        if total <= round {
            return self.fill_slots(0, &mut slots, total, threads, stream);
        }
        let mut failures = Failures::new();
        for (first, slots) in shares(&mut slots, round) {
            go_on()?;
            let size = slots.iter().map(|slot| slot.len() as u64).sum();
            failures.extend(self.fill_slots(first, slots, size, threads, stream)?);
        }
        Ok(failures)
    }

    /// Fills slots of this many bytes in total, the first of which belongs to record `first`.
    fn fill_slots(
        &self,
        first: usize,
        slots: &mut [&mut [u8]],
        size: u64,
        threads: usize,
        stream: bool,
    ) -> Result<Failures> {
        self.read_unmapped(first, slots)?;
        let workers = workers(size, threads);
        if workers == 1 {
            return Ok(self.put(first, slots, stream));
        }
        let shares = shares(slots, size / workers as u64).into_iter();
        let shares = shares.map(|(at, slots)| (at + first, slots, Failures::new())).collect();
        let shares = each_side_by_side(shares, |(at, slots, failures)| {
            *failures = self.put(*at, slots, stream);
            Ok(())
        })?;
        Ok(shares.into_iter().flat_map(|(_, _, failures)| failures).collect())
    }

    /// The slices of the buffer, one per record.
    fn slots<'b>(&self, mut buffer: &'b mut [u8]) -> Vec<&'b mut [u8]> {
        (0..self.wanted.len())
            .map(|at| {
                let size = usize::try_from(self.size(at)).unwrap_or(usize::MAX).min(buffer.len());
                let (slot, rest) = std::mem::take(&mut buffer).split_at_mut(size);
                buffer = rest;
                slot
            })
            .collect()
    }

    /// Reads plain records of sources that are not in memory directly into their slots, those of a
    /// source together and in file order. The first slot belongs to record `first`.
    fn read_unmapped(&self, first: usize, slots: &mut [&mut [u8]]) -> Result<()> {
        for (reader, places) in &self.by_reader {
            if reader.source().as_slice().is_some() {
                continue;
            }
            let before = places.partition_point(|&at| at < first);
            let mut places = places.iter().skip(before).peekable();
            let of_source = (first..).zip(slots.iter_mut());
            let of_source = of_source.filter(|(at, _)| places.next_if_eq(&at).is_some());
            let mut reads: Vec<RangeRead<'_>> = of_source
                .filter_map(|(at, slot)| {
                    self.plain(at).map(|plain| RangeRead { offset: plain.range.start, buffer: slot })
                })
                .collect();
            reads.sort_by_key(|read| read.offset);
            reader.source().read_ranges(&mut reads)?;
        }
        Ok(())
    }

    /// Fills and verifies slots, the first of which belongs to record `first`.
    fn put(&self, first: usize, slots: &mut [&mut [u8]], stream: bool) -> Failures {
        let bad = if self.cold {
            // In order of arrival: records that are present are processed while the others are
            // still being read.
            let mut order: Vec<(usize, &mut &mut [u8])> = (first..).zip(slots.iter_mut()).collect();
            order.sort_unstable_by_key(|(at, _)| self.plain(*at).map(|plain| plain.range.start));
            self.put_each(order.into_iter(), stream)
        } else {
            let near = |(at, _): &(usize, &mut &mut [u8])| {
                if let Some((_, Some(bytes))) = self.plain_bytes(at + AHEAD) {
                    prefetch(bytes, NEAR_LINES);
                }
            };
            self.put_each((first..).zip(slots.iter_mut()).inspect(near), stream)
        };
        let blame = |at: usize| (at, self.damaged(at, slots.get(at - first).map_or(&[], |slot| slot)));
        bad.into_iter().map(blame).collect()
    }

    /// Fills and verifies slots, and returns the numbers of those that fail.
    fn put_each<'s, 'b: 's>(
        &self,
        slots: impl Iterator<Item = (usize, &'s mut &'b mut [u8])>,
        stream: bool,
    ) -> Vec<usize> {
        let mut copier = Copier::new(stream);
        let mut bad = Vec::new();
        for (at, slot) in slots {
            let holds = match self.plain_bytes(at) {
                Some((plain, Some(bytes))) => copier.copy(bytes, slot, plain.checksum),
                // It was already read into its slot.
                Some((plain, None)) => plain.checksum.is_none_or(|checksum| checksum.holds_for(slot)),
                None => copier.copy(self.decoded_record(at), slot, None),
            };
            if !holds {
                bad.push(at);
            }
        }
        bad
    }

    /// A plain record, and its bytes if its source is in memory.
    #[inline]
    fn plain_bytes(&self, at: usize) -> Option<(&Plain, Option<&[u8]>)> {
        let plain = self.plain(at)?;
        // Located records lie within their source.
        let within = |all: &'a [u8]| -> &'a [u8] {
            let (begin, end) = (usize::try_from(plain.range.start), usize::try_from(plain.range.end));
            begin.ok().zip(end.ok()).and_then(|(begin, end)| all.get(begin..end)).unwrap_or_default()
        };
        Some((plain, self.memory.get(at)?.map(within)))
    }

    /// The error for a record whose checksum does not match, as its reader words it.
    fn damaged(&self, at: usize, found: &[u8]) -> Error {
        let placed = self.wanted.get(at).zip(self.locations.get(at));
        let error =
            placed.and_then(|(wanted, location)| wanted.reader.decode(wanted.index, location, found).err());
        error.unwrap_or_else(|| Error::corrupt("a record changed while it was read"))
    }
}

/// Divides the slots into shares of about `size` bytes, each with the number of its first slot.
fn shares<'s, 'b>(mut slots: &'s mut [&'b mut [u8]], size: u64) -> Vec<(usize, &'s mut [&'b mut [u8]])> {
    let mut shares = Vec::new();
    let mut begin = 0;
    while !slots.is_empty() {
        let mut bytes = 0;
        let fits = |slot: &&&mut [u8]| {
            let begun = bytes < size;
            bytes += slot.len() as u64;
            begun
        };
        let count = slots.iter().take_while(fits).count().max(1);
        let (share, rest) = std::mem::take(&mut slots).split_at_mut(count);
        shares.push((begin, share));
        (slots, begin) = (rest, begin + count);
    }
    shares
}

/// A record that must be decoded: its number, the location of its frame, and its index in `wanted`.
type InFrame<'a> = (u64, &'a Range<u64>, usize);

/// Takes the next frames that are decoded together, and returns their number of bytes too.
fn round_of<'f, 'a>(left: &mut &'f [&'f [InFrame<'a>]], threads: usize) -> (&'f [&'f [InFrame<'a>]], u64) {
    let threads = threads.max(1);
    let most = FRAMES.1.saturating_mul(threads as u64);
    let mut bytes = 0u64;
    let fits = |frame: &&&[InFrame<'_>]| {
        let begun = bytes < most;
        if begun {
            bytes += frame.first().map_or(0, |(_, span, _)| span.end.saturating_sub(span.start));
        }
        begun
    };
    let count = left.iter().take(FRAMES.0.saturating_mul(threads)).take_while(fits).count();
    let (round, rest) = left.split_at(count.max(1).min(left.len()));
    *left = rest;
    (round, bytes)
}

/// How many threads are worth waking for this many bytes.
fn workers(bytes: u64, threads: usize) -> usize {
    usize::try_from(bytes / WORTH_A_THREAD).unwrap_or(usize::MAX).clamp(1, threads.max(1))
}

/// Records that one thread decodes.
#[derive(Default)]
struct Share {
    /// Their numbers, which ascend, and where their frames begin.
    indices: Vec<(u64, u64)>,
    batch: Batch,
    /// Records that could not be decoded; they are empty in the batch.
    failed: Failures,
}

impl Share {
    fn decode(&mut self, reader: &dyn RecordReader) -> Result<()> {
        let numbers: Vec<u64> = self.indices.iter().map(|(index, _)| *index).collect();
        let Err(error) = reader.read_decoded(&numbers, &mut self.batch) else { return Ok(()) };
        of_one_record(error)?;
        // Reads the records one by one to find which of them failed. A frame that cannot be decoded
        // is not tried again for each of its records.
        self.batch.clear();
        let mut bad: Option<(u64, Error)> = None;
        for (number, &(index, frame)) in self.indices.iter().enumerate() {
            let error = match &bad {
                Some((begin, error)) if *begin == frame => error.duplicate(),
                _ => match reader.read(index) {
                    Ok(record) => {
                        self.batch.try_push(&record)?;
                        continue;
                    }
                    Err(error) => of_one_record(error)?,
                },
            };
            self.batch.try_push(&[])?;
            bad = Some((frame, error.duplicate()));
            self.failed.push((number, error));
        }
        Ok(())
    }
}

/// An error about one record. Errors that do not concern a single record end the whole fetch.
fn of_one_record(error: Error) -> Result<Error> {
    if error.kind() == ErrorKind::OutOfMemory { Err(error) } else { Ok(error) }
}

/// A placeholder for the location of a record that has none.
fn nowhere() -> Location {
    let plain = Some(Plain { range: 0..0, checksum: None });
    Location { position: Position::default(), span: 0..0, plain }
}

/// The indices of the records of each reader.
fn by_reader<'a>(wanted: &[Place<'a>]) -> Vec<(&'a dyn RecordReader, Vec<usize>)> {
    let key = |at: usize| wanted.get(at).map(|wanted| std::ptr::from_ref(wanted.reader).cast::<()>());
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    if !order.is_sorted_by_key(|&at| key(at)) {
        order.sort_by_key(|&at| key(at));
    }
    order
        .chunk_by(|&one, &other| key(one) == key(other))
        .filter_map(|places| Some((wanted.get(*places.first()?)?.reader, places.to_vec())))
        .collect()
}

#[cfg(all(test, target_arch = "x86_64"))]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;
    use crate::base::verified_copy::UNFENCED;
    use crate::format::{OpenOptions, WriteOptions, by_id, ffrecord::Writer};
    use crate::io::MemorySource;
    use std::sync::Arc;

    #[test]
    fn batch_larger_than_the_caches_is_fenced_also_when_a_record_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.ffr");
        let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
        for number in 0..3 {
            writer.append(&vec![number; 3 << 20]).unwrap();
        }
        writer.finish().unwrap();
        let sound = std::fs::read(&path).unwrap();
        let mut damaged = sound.clone();
        *damaged.last_mut().unwrap() ^= 1;
        for (bytes, kind) in [(sound, None), (damaged, Some(ErrorKind::Corrupt))] {
            let source = Arc::new(MemorySource::new("large.ffr", bytes));
            let reader = by_id("ffrecord").unwrap().open(source, &OpenOptions::default()).unwrap();
            let batch = read_batch(&*reader, &[0, 1, 2]);
            assert!(!UNFENCED.get());
            assert_eq!(batch.err().map(|error| error.kind()), kind);
        }
    }
}
