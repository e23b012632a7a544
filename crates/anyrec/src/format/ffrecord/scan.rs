//! The sequential parser: the table, then the samples in file order.
//!
//! A sound file yields one [`Content::Table`], possibly a [`Content::Filler`] for a gap after the
//! table, and the samples. A damaged file is read as far as its table is credible:
//!
//! - The metadata checksum does not match: the table is reported as damage but still used, since
//!   each sample has its own checksum.
//! - A sample's checksum does not match: that sample is damage.
//! - Offsets lie outside the file or out of order: [`Table::boundary`] drops them, and the samples
//!   they would separate are reported together as damage. If two neighbours contradict each other,
//!   the checksum of the sample before them decides which one to drop.
//!
//! Only the table and the current sample are held in memory, so a stream can be scanned too.
//!
//! Two routines take samples: `advance`, which handles everything, and `fill`, its one fast case: a run of
//! intact samples, one after the other, into a batch. Without `fill`, batches of records of 200-1000 bytes
//! took 1.18 times as long (118 against 100 ns per record). A third one, for single samples in order, made no
//! difference beside it and was removed.

use super::layout::{HEADER, Table, TableState};
use super::read::{NEVER_FINISHED, OLD_VERSION, table_cut_short, table_mismatch};
use crate::base::checksum::crc32;
use crate::base::{Batch, Checksum, Error, Limits, Position, Result};
use crate::format::{Content, Damage, Event, Integrity, Metadata, Notice, OpenOptions, Scan, ScannedRecord};
use crate::io::Window;
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;

/// How many bytes may be read twice to resolve contradictory offsets. In a malicious table, every
/// entry can contradict the next. Without a bound, each would cost a pass over the file.
const SECOND_LOOKS: u64 = 1 << 30;

/// A scan of an FFRecord file.
#[derive(Debug)]
pub(super) struct FfRecordScan {
    window: Window,
    verify: bool,
    limits: Limits,
    stage: Stage,
    /// Events that are delivered before anything else.
    pending: VecDeque<Event<'static>>,
    /// The next intact sample; the window is at its beginning.
    ready: Option<ReadySample>,
    /// Length of the last delivered record, skipped before continuing.
    handed_out: u64,
    /// Number of records delivered.
    records: u64,
    /// This scan stops before this sample; another scan covers the rest.
    end: u64,
    /// The samples that had a place so far, if requested.
    placed: Option<Placed>,
}

/// The set of samples that a scan found a place for.
#[derive(Debug, Default)]
pub(super) struct Placed(Vec<u64>);

impl Placed {
    fn insert(&mut self, index: u64) {
        let Ok(word) = usize::try_from(index / 64) else { return };
        // At most as many as the table has entries, and all of those were read.
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        if let Some(word) = self.0.get_mut(word) {
            *word |= 1 << (index % 64);
        }
    }

    pub(super) fn contains(&self, index: u64) -> bool {
        let word = usize::try_from(index / 64).ok().and_then(|word| self.0.get(word));
        word.is_some_and(|word| word >> (index % 64) & 1 == 1)
    }
}

#[derive(Debug)]
enum Stage {
    Table,
    /// Boxed because it moves with every sample.
    Samples(Box<Samples>),
    End,
}

/// The scan's progress through the table.
#[derive(Debug)]
struct Samples {
    table: Table,
    /// The table does not match its checksum.
    damaged: bool,
    /// The next sample.
    next: u64,
    /// Where it begins, if that is credible.
    begin: Option<u64>,
    /// The last accepted boundary.
    after: u64,
    /// The first of the samples before `next` that could not be placed.
    lost: Option<u64>,
    /// The remainder of [`SECOND_LOOKS`].
    second_looks: u64,
}

impl Samples {
    /// Called if the sample at `begin..end` is not intact. If the offset after `end` lies before
    /// it, `end` may be the wrong one. Then `end` is dropped, and the result is true.
    fn reconsider(&mut self, index: u64, begin: u64, end: u64) -> bool {
        let next = self.table.boundary(self.next.saturating_add(1), begin, Some(end));
        let Some(left) = self.second_looks.checked_sub(end.saturating_sub(begin)) else {
            return false;
        };
        if self.next >= self.table.count() || next.is_none_or(|next| next >= end) {
            return false;
        }
        self.second_looks = left;
        self.begin = None;
        self.after = begin;
        self.lost.get_or_insert(index);
        true
    }
}

#[derive(Debug)]
struct ReadySample {
    length: usize,
    position: Position,
}

/// The outcome of reading a placed sample.
enum Outcome {
    Intact(usize),
    Mismatch { length: usize, stored: u32, computed: u32 },
    CutShort(usize),
}

impl FfRecordScan {
    pub(super) fn new(window: Window, options: &OpenOptions) -> Self {
        FfRecordScan {
            window,
            verify: options.verify,
            limits: options.limits.clone(),
            stage: Stage::Table,
            pending: VecDeque::new(),
            ready: None,
            handed_out: 0,
            records: 0,
            end: u64::MAX,
            placed: None,
        }
    }

    /// Scans to the end and returns the samples that have a place, intact or not. If offsets are
    /// out of order, an entry by itself does not determine that.
    ///
    /// # Errors
    /// Same as [`Scan::next_event`].
    pub(super) fn placed(mut self) -> Result<Placed> {
        self.placed = Some(Placed::default());
        while !matches!(self.next_event()?, Event::End) {}
        Ok(self.placed.unwrap_or_default())
    }

    /// Records that a sample has a place.
    fn note_placed(&mut self, index: u64) {
        if let Some(placed) = &mut self.placed {
            placed.insert(index);
        }
    }

    /// Limits this scan to the samples before `end`.
    pub(super) fn up_to(mut self, end: u64) -> Self {
        self.end = end;
        self
    }

    /// A scan of these samples only; the first begins at the window's position. The offsets of the
    /// table must be in order.
    pub(super) fn part(window: Window, options: &OpenOptions, table: Table, samples: Range<u64>) -> Self {
        let begin = window.offset();
        let mut scan = Self::new(window, options).up_to(samples.end);
        scan.stage = Stage::Samples(Box::new(Samples {
            table,
            // This only affects gaps between samples, and there are none after the first.
            damaged: false,
            next: samples.start,
            begin: Some(begin),
            after: begin,
            lost: None,
            second_looks: SECOND_LOOKS,
        }));
        scan
    }

    /// Total length of the input, if known.
    fn length(&self) -> Option<u64> {
        self.window.length()
    }

    /// Handles the header and table. Samples follow, or the end.
    fn read_table(&mut self) -> Result<Stage> {
        let header = self.window.peek(usize::try_from(HEADER).unwrap_or_default())?;
        let table_length = match Table::parse_header(header) {
            Ok((_, length)) => length,
            Err(reason) => return self.nothing_readable(reason),
        };
        let bytes = self.table_bytes(table_length)?;
        let length = bytes.len() as u64;
        let table = match Table::parse(bytes) {
            Ok(table) => table,
            Err(reason) => return self.nothing_readable(reason),
        };
        if length < table_length {
            return self.nothing_readable(table_cut_short(&table, length));
        }
        // With verification off, no checksum is computed, not even the table's.
        let state = if self.verify { table.check() } else { TableState::Verified };
        let span = 0..table_length;
        self.window.skip(table_length)?;
        let damaged = match state {
            TableState::Mismatch { stored, computed } => {
                self.damage(span, table_mismatch(stored, computed));
                true
            }
            _ => {
                let content = Content::Table { records: table.count() };
                self.pending.push_back(Event::Metadata(Metadata { span, content }));
                false
            }
        };
        if table.stored_checksum() == 0 && table.count() > 0 {
            self.pending.push_back(Event::Notice(Notice::at(0, OLD_VERSION)));
        }
        let begin = table.boundary(0, table_length, self.length());
        let after = begin.unwrap_or(table_length);
        Ok(Stage::Samples(Box::new(Samples {
            table,
            damaged,
            next: 0,
            begin,
            after,
            lost: None,
            second_looks: SECOND_LOOKS,
        })))
    }

    /// The first `length` bytes, or as many as there are, without advancing.
    fn table_bytes(&mut self, length: u64) -> Result<Bytes> {
        if let Some(source) = self.window.source() {
            return source.view(0..length.min(source.len()));
        }
        // A stream has no length to check the declared one against, so read what arrives.
        let limit = self.limits.frame;
        let want = usize::try_from(length.min(limit.saturating_add(1))).unwrap_or(usize::MAX);
        let bytes = Bytes::copy_from_slice(self.window.peek(want)?);
        match bytes.len() as u64 > limit {
            true => Err(Limits::exceeded("table of size", length, limit).in_file(self.window.name())),
            false => Ok(bytes),
        }
    }

    /// Reports all of the input as damage, with that reason.
    fn nothing_readable(&mut self, reason: String) -> Result<Stage> {
        self.window.skip(u64::MAX)?;
        let end = self.window.offset();
        self.damage(0..end, reason);
        Ok(Stage::End)
    }

    fn damage(&mut self, span: Range<u64>, reason: String) {
        let damage = Damage { begin: span.start, end: span.end, record: self.records, reason };
        self.pending.push_back(Event::Damage(damage));
    }

    /// Finds the next sample that is where the table says, or finishes.
    fn advance(&mut self, mut samples: Box<Samples>) -> Result<Stage> {
        while samples.next < samples.table.count().min(self.end) {
            let index = samples.next;
            let begin = samples.begin;
            let end = samples.table.boundary(index.saturating_add(1), samples.after, self.length());
            samples.next = index.saturating_add(1);
            samples.begin = end;
            samples.after = end.unwrap_or(samples.after);
            let (Some(begin), Some(end)) = (begin, end) else {
                samples.lost.get_or_insert(index);
                continue;
            };
            if self.close_gap(&mut samples, index, begin)? {
                self.read_sample(&mut samples, index, begin, end)?;
            }
            if self.ready.is_some() || !self.pending.is_empty() {
                return Ok(Stage::Samples(samples));
            }
        }
        if self.end < samples.table.count() {
            return Ok(Stage::End);
        }
        let begin = self.window.offset();
        self.window.skip(u64::MAX)?;
        let span = begin..self.window.offset();
        if let Some(first) = samples.lost {
            let reason = self.lost_reason(&samples.table, first..samples.next);
            self.damage(span, reason);
        } else if !span.is_empty() {
            // This happens only without samples: otherwise the last sample extends to the end.
            if samples.table.stored_checksum() == 0 {
                self.damage(span, NEVER_FINISHED.to_owned());
            } else {
                self.pending.push_back(Event::Metadata(Metadata { span, content: Content::Filler }));
            }
        }
        Ok(Stage::End)
    }

    /// Accounts for the bytes before a sample, and for earlier samples that have no place. Returns
    /// false if a stream ends before the sample: then nothing more can be placed.
    fn close_gap(&mut self, samples: &mut Samples, index: u64, begin: u64) -> Result<bool> {
        let from = self.window.offset();
        self.window.skip(begin.saturating_sub(from))?;
        let span = from..self.window.offset();
        if span.end < begin {
            let lost = samples.lost.take().unwrap_or(index)..samples.table.count();
            let reason = cut_short(lost, span.end);
            self.damage(span, reason);
            samples.next = samples.table.count();
            return Ok(false);
        }
        if let Some(first) = samples.lost.take() {
            let reason = self.lost_reason(&samples.table, first..index);
            self.damage(span, reason);
        } else if !span.is_empty() && samples.damaged {
            self.damage(span, "bytes that the damaged table assigns to no sample".to_owned());
        } else if !span.is_empty() {
            self.pending.push_back(Event::Metadata(Metadata { span, content: Content::Filler }));
        }
        Ok(true)
    }

    /// Reads and checks the sample at the window's position.
    fn read_sample(&mut self, samples: &mut Samples, index: u64, begin: u64, end: u64) -> Result<()> {
        let length = match self.check_sample(&samples.table, index, begin, end)? {
            Outcome::Intact(length) => {
                self.ready = Some(ReadySample { length, position: Position::of_frame(begin) });
                self.note_placed(index);
                return Ok(());
            }
            Outcome::Mismatch { .. } if samples.reconsider(index, begin, end) => return Ok(()),
            Outcome::Mismatch { length, stored, computed } => {
                let reason = format!(
                    "Sample {index}: checksum mismatched: expected {stored:#010x}, found {computed:#010x}"
                );
                self.damage(begin..begin + length as u64, reason);
                self.note_placed(index);
                length
            }
            Outcome::CutShort(length) => {
                let reason = cut_short(index..samples.table.count(), begin + length as u64);
                self.damage(begin..begin + length as u64, reason);
                samples.next = samples.table.count();
                length
            }
        };
        self.window.skip(length as u64)?;
        Ok(())
    }

    fn check_sample(&mut self, table: &Table, index: u64, begin: u64, end: u64) -> Result<Outcome> {
        // In a file, the sample's end was checked against the file's. In a stream, what arrives
        // decides, and the last sample ends where the stream ends.
        let declared = end.saturating_sub(begin);
        let limit = self.limits.record;
        let exceeded = |window: &Window| {
            let error = Limits::exceeded("sample of size", declared, limit);
            Err(error.in_file(window.name()).at(begin).in_record(index))
        };
        if declared > limit && self.length().is_some() {
            return exceeded(&self.window);
        }
        let want = declared.min(limit.saturating_add(1));
        let ahead = self.window.peek(usize::try_from(want).unwrap_or(usize::MAX))?;
        if ahead.len() as u64 > limit {
            return exceeded(&self.window);
        }
        if end != u64::MAX && (ahead.len() as u64) < declared {
            return Ok(Outcome::CutShort(ahead.len()));
        }
        let length = ahead.len();
        if !self.verify {
            return Ok(Outcome::Intact(length));
        }
        let computed = crc32(ahead);
        let stored = table.checksum(index).unwrap_or_default();
        Ok(match stored == computed {
            true => Outcome::Intact(length),
            false => Outcome::Mismatch { length, stored, computed },
        })
    }

    /// The reason why these samples have no place.
    fn lost_reason(&self, table: &Table, lost: Range<u64>) -> String {
        let end = self.length().unwrap_or(u64::MAX);
        let past_end = |index| {
            table
                .offset(index)
                .and_then(|offset| u64::try_from(offset).ok())
                .is_some_and(|offset| offset > end)
        };
        if lost.end == table.count() && (lost.start..lost.end).skip(1).all(past_end) {
            return cut_short(lost, end);
        }
        if lost.end - lost.start == 1 {
            let reason = table.span(lost.start, end).err();
            let reason = reason.unwrap_or_else(|| "its offset contradicts those around it".to_owned());
            return format!("Sample {} cannot be placed: {reason}", lost.start);
        }
        format!(
            "Samples {} to {} cannot be placed: their offsets lie outside the file or out of order",
            lost.start,
            lost.end - 1
        )
    }
}

/// The message for a file that ends at `end`, inside the first of these samples or before them.
fn cut_short(samples: Range<u64>, end: u64) -> String {
    let Range { start: first, end: count } = samples;
    match count - first {
        1 => format!("Sample {first} is cut short by the end of the file at byte {end}"),
        _ => format!("Samples {first} to {} are cut off by the end of the file at byte {end}", count - 1),
    }
}

impl Scan for FfRecordScan {
    fn next_event(&mut self) -> Result<Event<'_>> {
        self.window.skip(std::mem::take(&mut self.handed_out))?;
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            if self.ready.is_some() {
                break;
            }
            // An error leaves the scan at its end, because it cannot be resumed.
            self.stage = match std::mem::replace(&mut self.stage, Stage::End) {
                Stage::Table => self.read_table()?,
                Stage::Samples(samples) => self.advance(samples)?,
                Stage::End => return Ok(Event::End),
            };
        }
        match self.ready.take() {
            Some(ReadySample { length, position }) => self.hand_out(position.frame, length),
            None => Ok(Event::End),
        }
    }

    fn fill(&mut self, batch: &mut Batch, records: usize, bytes: usize) -> Result<()> {
        self.window.skip(std::mem::take(&mut self.handed_out))?;
        let (before, begin) = (batch.len(), self.window.offset());
        let (Some(samples), Some(file_length)) = (self.undisturbed(), self.window.length()) else {
            return Ok(());
        };
        let left = samples.table.count().min(self.end) - samples.next;
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(records.saturating_sub(before));
        let limit = self.limits.record;
        let size_of = |begin, end: u64| {
            let size = end.checked_sub(begin).filter(|&size| size <= limit);
            size.and_then(|size| usize::try_from(size).ok())
        };
        let first = samples.table.in_order(samples.next, file_length).next();
        let Some(first) = first.and_then(|(_, end)| size_of(begin, end)) else { return Ok(()) };
        let mut ahead = self.window.reach(first)?;
        let Stage::Samples(samples) = &self.stage else { return Ok(()) };
        let (mut end, mut size) = (begin, batch.buffer().len());
        for (stored, next) in samples.table.in_order(samples.next, file_length).take(most) {
            let data = size_of(end, next).filter(|_| size < bytes);
            let Some((data, rest)) = data.and_then(|size| ahead.split_at_checked(size)) else { break };
            if !self.verify {
                batch.try_push(data)?;
            } else if !batch.push_verified(data, Checksum::Crc32(stored))? {
                break;
            }
            (ahead, end, size) = (rest, next, size + data.len());
        }
        let count = (batch.len() - before) as u64;
        self.passed(count, end);
        self.records += count;
        self.window.skip(end - begin)?;
        Ok(())
    }
}

impl FfRecordScan {
    /// The remaining samples, if no other event precedes the next one and it begins at the window.
    fn undisturbed(&self) -> Option<&Samples> {
        let Stage::Samples(samples) = &self.stage else { return None };
        let undisturbed = self.pending.is_empty() && self.ready.is_none() && samples.lost.is_none();
        let there =
            samples.begin == Some(self.window.offset()) && samples.next < samples.table.count().min(self.end);
        (undisturbed && there).then_some(samples)
    }

    /// Advances past that many samples, the last of which ends at `end`.
    fn passed(&mut self, samples: u64, end: u64) {
        if let Stage::Samples(left) = &mut self.stage {
            (left.next, left.begin, left.after) = (left.next + samples, Some(end), end);
        }
    }

    /// Delivers the intact sample at the window's position.
    fn hand_out(&mut self, begin: u64, length: usize) -> Result<Event<'_>> {
        self.records += 1;
        self.handed_out = length as u64;
        let data = self.window.peek(length)?;
        if data.len() != length {
            return Err(Error::corrupt("the file was cut short while it was read").at(begin));
        }
        Ok(Event::Record(ScannedRecord {
            position: Position::of_frame(begin),
            span: begin..begin + length as u64,
            integrity: if self.verify { Integrity::Verified } else { Integrity::Unchecked },
            data,
        }))
    }
}
