//! Many records at once: located first, then fetched together, verified, and put into the caller's
//! order in one buffer.

use super::RecordReader;
use crate::batch::Batch;
use crate::checksum::crc32;
use crate::error::{Error, Result};
use crate::interrupt::{go_on, go_on_at};
use crate::io::{Copier, RangeRead, bring_near};
use crate::pool::{caught, side_by_side};
use crate::position::{Location, Plain};
use crate::room::check_room;
use bytes::Bytes;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Bytes that make it worth waking another thread.
const WORTH_A_THREAD: u64 = 512 << 10;

/// A batch of this size leaves no room for anything else in the processor's caches.
const LARGER_THAN_CACHES: u64 = 8 << 20;

/// Bytes for each thread to be filled before the caller is asked again whether to go on.
const ROUND: u64 = 8 << 20;

/// Frames for each thread, and bytes of them, to be decoded before the same.
const FRAMES: (usize, u64) = (32, 8 << 20);

/// The records of one reader with these numbers, in this order, repeats kept.
///
/// # Errors
/// As [`RecordReader::read`], for the first record that fails.
pub fn read_batch(reader: &dyn RecordReader, indices: &[u64]) -> Result<Batch> {
    let wanted = indices.iter().map(|&index| Wanted { reader, index }).collect();
    let mut batch = Batch::new();
    Fetch::new(wanted, 1)?.into_batch(&mut batch, 1)?;
    Ok(batch)
}

/// Memory for so many records is not asked for before it is known to be there; and what the lists
/// about one take, all together.
const MANY: usize = 1 << 16;
const PER_RECORD: usize = 256;

/// While a record is copied, the beginning of the one so many places later is brought near.
const AHEAD: usize = 4;

/// How much of it: what small records have. The rest of a large one comes by itself.
const NEAR_LINES: usize = 16;

/// A record that is wanted, and the reader that has it.
pub(crate) struct Wanted<'a> {
    pub(crate) reader: &'a dyn RecordReader,
    pub(crate) index: u64,
}

/// Records that were located, so that the size of each is known.
pub(crate) struct Fetch<'a> {
    wanted: Vec<Wanted<'a>>,
    /// The numbers (in `wanted`) of the records of each reader.
    by_reader: Vec<(&'a dyn RecordReader, Vec<usize>)>,
    /// For each of `wanted` all of its source, where that is in memory.
    memory: Vec<Option<&'a [u8]>>,
    locations: Vec<Location>,
    /// Some are on their way from the disk.
    cold: bool,
    /// Those that do not lie in their file as they are.
    decoded: Vec<Batch>,
    /// For each of `wanted` that is there: in which of `decoded`, and its number in that.
    decoded_at: Vec<Option<(usize, usize)>>,
    offsets: Vec<u64>,
}

impl<'a> Fetch<'a> {
    /// Locates the records, and reads those that must be decoded to know their size, with up to that
    /// many threads.
    pub(crate) fn new(wanted: Vec<Wanted<'a>>, threads: usize) -> Result<Self> {
        if wanted.len() > MANY {
            check_room(wanted.len().saturating_mul(PER_RECORD))?;
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
            wanted.iter().map(|wanted| wanted.reader.approach(wanted.index)).collect();
        let mut cold = false;
        for (reader, places) in &by_reader {
            let ranges: Vec<Range<u64>> =
                places.iter().filter_map(|&at| early.get(at).cloned().flatten()).collect();
            cold |= reader.source().expect(&ranges);
        }
        let locate = |(at, wanted): (usize, &Wanted<'a>)| {
            go_on_at(at)?;
            wanted.reader.locate(wanted.index)
        };
        let locations = wanted.iter().enumerate().map(locate).collect();
        let mut fetch = Fetch {
            wanted,
            by_reader,
            memory,
            locations: Vec::new(),
            cold,
            decoded: Vec::new(),
            decoded_at: Vec::new(),
            offsets: Vec::new(),
        };
        fetch.locations = fetch.unless_changed(locations)?;
        fetch.cold |= fetch.ask_for_rest(&early);
        if fetch.locations.iter().any(|location| location.plain.is_none()) {
            let decoded = fetch.decode(threads);
            fetch.unless_changed(decoded)?;
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

    /// Puts the records into a batch, behind those it has. After an error the batch is empty.
    pub(crate) fn into_batch(mut self, batch: &mut Batch, threads: usize) -> Result<()> {
        let offsets = std::mem::take(&mut self.offsets);
        let filled = batch.lay_out_more(offsets).and_then(|buffer| self.fill(buffer, threads));
        filled.inspect_err(|_| batch.clear())
    }

    /// The records as slices of their sources where those are in memory, else as slices of a buffer
    /// of their own.
    pub(crate) fn lend(self) -> Result<Vec<Bytes>> {
        let in_memory = |at: usize| self.plain_bytes(at).is_some_and(|(_, bytes)| bytes.is_some());
        if !(0..self.wanted.len()).all(in_memory) {
            let mut batch = Batch::new();
            self.into_batch(&mut batch, 1)?;
            let (buffer, offsets) = batch.into_parts();
            let buffer = Bytes::from(buffer);
            let place = |pair: &[u64]| match pair {
                // The offsets are the buffer's.
                #[allow(clippy::cast_possible_truncation)]
                &[begin, end] => buffer.slice(begin as usize..end as usize),
                _ => Bytes::new(),
            };
            return Ok(offsets.windows(2).map(place).collect());
        }
        let lend = |(at, wanted): (usize, &Wanted<'_>)| {
            let Some((plain, Some(bytes))) = self.plain_bytes(at) else { return Ok(Bytes::new()) };
            go_on_at(at)?;
            if plain.checksum.is_some_and(|checksum| crc32(bytes) != checksum) {
                return Err(self.damaged(at, bytes));
            }
            wanted.reader.source().lend(plain.range.clone())
        };
        let lent = self.wanted.iter().enumerate().map(lend).collect();
        self.check_unchanged().and(lent)
    }

    /// Where each record will begin in the buffer, and, last, how large that must be.
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

    /// Lets the sources fetch what is not in memory yet, all at once; what was asked for early is
    /// left out. Says whether there was any.
    fn ask_for_rest(&self, early: &[Option<Range<u64>>]) -> bool {
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
                bring_near(bytes, 1);
            }
        }
        cold
    }

    /// Reads the records that do not lie in their file as they are: file by file, in file order,
    /// each once, and all of a frame by one thread.
    fn decode(&mut self, threads: usize) -> Result<()> {
        let mut decoded_at = vec![None; self.wanted.len()];
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
                let mut shares = vec![(Vec::new(), Batch::new()); count];
                for (number, &frame) in frames.iter().enumerate() {
                    let share = number * count / frames.len();
                    let Some((indices, _)) = shares.get_mut(share) else { continue };
                    for &(index, _, at) in frame {
                        if indices.last() != Some(&index) {
                            indices.push(index);
                        }
                        if let Some(slot) = decoded_at.get_mut(at) {
                            *slot = Some((self.decoded.len() + share, indices.len() - 1));
                        }
                    }
                }
                let shares = by_threads(shares, |(indices, batch)| reader.read_decoded(indices, batch))?;
                self.decoded.extend(shares.into_iter().map(|(_, batch)| batch));
            }
        }
        self.decoded_at = decoded_at;
        Ok(())
    }

    /// Puts the records into a buffer as large as the last of the offsets says, with up to that
    /// many threads.
    pub(crate) fn fill(&self, buffer: &mut [u8], threads: usize) -> Result<()> {
        let copied = self.copy_all(buffer, threads);
        self.check_unchanged().and(copied)
    }

    /// What came of looking into the files, unless one of them was cut short meanwhile: then it may be
    /// anything, and so may an error.
    fn unless_changed<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|error| self.check_unchanged().err().unwrap_or(error))
    }

    /// To be asked after records were copied, not before: see [`ReadAt::as_slice`](crate::io::ReadAt).
    fn check_unchanged(&self) -> Result<()> {
        self.by_reader.iter().try_for_each(|(reader, _)| reader.source().check_unchanged())
    }

    fn copy_all(&self, buffer: &mut [u8], threads: usize) -> Result<()> {
        let total = buffer.len() as u64;
        let stream = total >= LARGER_THAN_CACHES;
        let mut slots = self.slots(buffer);
        let round = ROUND.saturating_mul(threads.max(1) as u64);
        if total <= round {
            return self.fill_slots(0, &mut slots, total, threads, stream);
        }
        for (first, slots) in shares(&mut slots, round) {
            go_on()?;
            let size = slots.iter().map(|slot| slot.len() as u64).sum();
            self.fill_slots(first, slots, size, threads, stream)?;
        }
        Ok(())
    }

    /// Fills some slots of so many bytes together, the first of which is that of record `first`.
    fn fill_slots(
        &self,
        first: usize,
        slots: &mut [&mut [u8]],
        size: u64,
        threads: usize,
        stream: bool,
    ) -> Result<()> {
        self.read_unmapped(first, slots)?;
        let workers = workers(size, threads);
        if workers == 1 {
            return self.put(first, slots, stream);
        }
        let mut shares = shares(slots, size / workers as u64);
        shares.iter_mut().for_each(|(at, _)| *at += first);
        by_threads(shares, |(at, slots)| self.put(*at, slots, stream)).map(drop)
    }

    /// The stretches of the buffer for each record.
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

    /// Reads plain records of sources that are not in memory straight into their slots, those of a
    /// source together and in file order. The first slot is that of record `first`.
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

    /// Fills and verifies some slots, the first of which is that of record `first`.
    fn put(&self, first: usize, slots: &mut [&mut [u8]], stream: bool) -> Result<()> {
        // In the order in which they arrive, so that those that are there are dealt with while the others
        // are on their way. An error is had again below: that of the first record in the caller's order.
        if self.cold {
            let mut order: Vec<(usize, &mut &mut [u8])> = (first..).zip(slots.iter_mut()).collect();
            order.sort_unstable_by_key(|(at, _)| self.plain(*at).map(|plain| plain.range.start));
            if self.put_each(order.into_iter(), stream).is_none() {
                return Ok(());
            }
        }
        let near = |(at, _): &(usize, &mut &mut [u8])| {
            if let Some((_, Some(bytes))) = self.plain_bytes(at + AHEAD) {
                bring_near(bytes, NEAR_LINES);
            }
        };
        match self.put_each((first..).zip(slots.iter_mut()).inspect(near), stream) {
            None => Ok(()),
            Some(at) => Err(self.damaged(at, slots.get(at - first).map_or(&[], |slot| slot))),
        }
    }

    /// Fills and verifies slots up to the first that does not hold, and gives its number.
    fn put_each<'s, 'b: 's>(
        &self,
        slots: impl Iterator<Item = (usize, &'s mut &'b mut [u8])>,
        stream: bool,
    ) -> Option<usize> {
        let mut copier = Copier::new(stream);
        for (at, slot) in slots {
            let (wanted, found) = match self.plain_bytes(at) {
                Some((plain, Some(bytes))) => {
                    (plain.checksum, copier.copy(bytes, slot, plain.checksum.is_some()))
                }
                // It was read into its slot already.
                Some((plain, None)) => (plain.checksum, plain.checksum.map(|_| crc32(slot))),
                None => (None, copier.copy(self.decoded_record(at), slot, false)),
            };
            if found != wanted {
                return Some(at);
            }
        }
        None
    }

    /// A plain record, and its bytes where its source is in memory.
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

    /// The error for a record whose checksum does not hold, in the words of its reader.
    fn damaged(&self, at: usize, found: &[u8]) -> Error {
        let placed = self.wanted.get(at).zip(self.locations.get(at));
        let error =
            placed.and_then(|(wanted, location)| wanted.reader.decode(wanted.index, location, found).err());
        error.unwrap_or_else(|| Error::corrupt("a record changed while it was read"))
    }
}

/// The slots cut into shares of about `size` bytes, each with the number of its first one.
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

/// A record that must be decoded: its number, where its frame is, and its place among those wanted.
type InFrame<'a> = (u64, &'a Range<u64>, usize);

/// Takes the next frames that are decoded together; also says how many bytes they have.
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

/// How many threads are worth waking for so many bytes.
fn workers(bytes: u64, threads: usize) -> usize {
    usize::try_from(bytes / WORTH_A_THREAD).unwrap_or(usize::MAX).clamp(1, threads.max(1))
}

/// Does something with each of some pieces, each on a thread of its own; gives them back, or the
/// first's error.
fn by_threads<T: Send>(pieces: Vec<T>, work: impl Fn(&mut T) -> Result<()> + Sync) -> Result<Vec<T>> {
    let pieces: Vec<_> = pieces.into_iter().map(|piece| Mutex::new((piece, Ok(())))).collect();
    side_by_side(pieces.len(), |worker| {
        let Some(piece) = pieces.get(worker) else { return };
        // Each lock is taken once.
        let mut piece = piece.lock().unwrap_or_else(PoisonError::into_inner);
        let (piece, outcome) = &mut *piece;
        *outcome = caught(|| work(piece));
    });
    let done = |piece: Mutex<(T, Result<()>)>| {
        let (piece, outcome) = piece.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcome.map(|()| piece)
    };
    pieces.into_iter().map(done).collect()
}

/// The numbers of the records of each reader.
fn by_reader<'a>(wanted: &[Wanted<'a>]) -> Vec<(&'a dyn RecordReader, Vec<usize>)> {
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
    use crate::error::ErrorKind;
    use crate::format::{OpenOptions, WriteOptions, by_id, ffrecord::Writer};
    use crate::io::{MemorySource, UNFENCED};
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
