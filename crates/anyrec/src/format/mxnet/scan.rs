//! The sequential parser of `.rec` files.
//!
//! The scan delivers what the original reader delivers, with a [`Notice`] wherever that reader is
//! more lenient than the format. What the original rejects or silently drops (a split record
//! truncated by the end of the file) is [`Damage`]. The scan then resumes at the next aligned magic
//! at which a record may begin. It searches from just after the damaged record's first word,
//! because its length field cannot be trusted either.
//!
//! Unescaped magics inside records are common in files of other writers (Amazon SageMaker's
//! protobuf files). They are counted, and reported once at the end.
//!
//! `walk` handles every record. `whole_part` is its one fast case: a record of one part, which nearly all are.
//! Without it, records of 200-1000 bytes took 1.4 times as long (148 against 107 ns per record). `fill` takes a
//! run of such records at once, which saves another 1 to 9 % in batches.

use super::layout::{
    self, ALIGNMENT, Fault, FaultKind, Oddity, Outline, PartHeader, PartKind, Progress, RecordParser,
};
use crate::base::{Batch, Error, Limits, Position, Result};
use crate::format::{Damage, Event, Integrity, Notice, OpenOptions, Scan, ScannedRecord};
use crate::io::Window;
use std::collections::VecDeque;
use std::ops::Range;

/// Bytes searched at a time for the next record after damage.
const SEARCH: usize = 1 << 20;

/// A broken record with more parts than this is skipped as a whole. Each place in it where another
/// record might begin costs a walk over the parts that follow. Without a bound, a file of first
/// parts only would take quadratic time.
const DOUBTED_PARTS: u64 = 64;

/// A scan over the records of a `.rec` file. The module documentation describes what it yields.
#[derive(Debug)]
pub struct RecordScan {
    window: Window,
    record_limit: u64,
    search_payload: bool,
    /// An index file or the caller states that a record begins at the window's position.
    strict: bool,
    /// Length of the last record, skipped before the next step.
    taken: u64,
    records: u64,
    /// A record whose notices are delivered first.
    ready: Option<Outline>,
    notices: VecDeque<Notice>,
    joined: Vec<u8>,
    unescaped: Unescaped,
    last_fault: Option<FaultKind>,
}

/// Records with unescaped magics: the count, and the first place.
#[derive(Debug, Default)]
struct Unescaped {
    records: u64,
    first: u64,
}

/// One step through the file, without the record's bytes.
#[derive(Debug)]
pub(super) enum Step {
    /// A record with that outline begins here.
    Record(Outline),
    /// A range that was skipped.
    Damage(Damage),
    /// The end of the file.
    End,
}

impl RecordScan {
    /// Starts a scan at the window's position.
    pub fn new(window: Window, options: &OpenOptions) -> Self {
        RecordScan {
            window,
            record_limit: options.limits.record,
            search_payload: options.notices,
            strict: false,
            taken: 0,
            records: 0,
            ready: None,
            notices: VecDeque::new(),
            joined: Vec::new(),
            unescaped: Unescaped::default(),
            last_fault: None,
        }
    }

    /// Treats the window's position as the stated beginning of a record: a middle or last part
    /// there is damage, not a record.
    pub(super) fn where_a_record_begins(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Leaves the payloads unread when unescaped magics are of no interest.
    pub(super) fn headers_only(mut self) -> Self {
        self.search_payload = false;
        self
    }

    /// Offset just after the last event's span, where the next record begins.
    pub fn tell(&self) -> u64 {
        self.window.offset() + self.taken
    }

    /// The original reader's message for the last damage, word for word. `None` for a split record
    /// truncated by the end of the file: the original treats it as the end.
    pub fn original_message(&self) -> Option<String> {
        match self.last_fault? {
            FaultKind::Magic(_) | FaultKind::Inside(_) => Some("Invalid RecordIO File".to_owned()),
            FaultKind::HeaderCut(_) => Some("Inavlid RecordIO File".to_owned()),
            FaultKind::PayloadCut { need, .. } => Some(format!("Invalid RecordIO File upper_align={need}")),
            FaultKind::PartMissing => None,
        }
    }

    /// The next record or damage; the record's notices are dropped.
    pub(super) fn step(&mut self) -> Result<Step> {
        self.pass()?;
        let found = self.walk()?;
        if let Step::Record(outline) = &found {
            self.taken = outline.span;
            self.records += 1;
        }
        Ok(found)
    }

    /// Moves past the last delivered record.
    #[inline]
    fn pass(&mut self) -> Result<()> {
        let taken = std::mem::take(&mut self.taken);
        self.window.skip(taken)?;
        Ok(())
    }

    /// Determines what begins at the window's position. Damage is skipped, a record is not.
    fn walk(&mut self) -> Result<Step> {
        let begin = self.window.offset();
        let mut left = self.window.remaining();
        let mut walk = match std::mem::take(&mut self.strict) && self.records == 0 {
            true => RecordParser::where_a_record_begins(),
            false => RecordParser::new(),
        };
        let mut want = PartHeader::SIZE;
        loop {
            let ahead = self.window.peek(want)?;
            if ahead.is_empty() {
                return Ok(Step::End);
            }
            if ahead.len() < want {
                left = Some(ahead.len() as u64);
            }
            match walk.advance(ahead, left) {
                Progress::Needs(need) => {
                    want = Limits::check("record size", need, u64::MAX, usize::MAX as u64)
                        .map_err(|error| error.in_file(self.window.name()).at(begin))?;
                }
                Progress::Complete(mut outline) => {
                    if self.search_payload {
                        layout::note_unescaped_magics(ahead, &mut outline);
                    }
                    return Ok(Step::Record(outline));
                }
                Progress::Broken(fault) => return self.resynchronise(begin, &fault).map(Step::Damage),
            }
        }
    }

    /// The part at this position, if it is a valid record by itself.
    fn next_whole(&mut self) -> Result<Option<PartHeader>> {
        let head = <[u8; PartHeader::SIZE]>::try_from(self.window.peek(PartHeader::SIZE)?);
        let part = head.ok().and_then(|head| whole_part(&head, self.record_limit));
        Ok(part.filter(|part| self.window.remaining().is_some_and(|left| part.size() <= left)))
    }

    /// Skips to the next position at which a record may begin, or to the end.
    fn resynchronise(&mut self, begin: u64, fault: &Fault) -> Result<Damage> {
        self.last_fault = Some(fault.kind);
        let from = match fault.parts {
            0..=DOUBTED_PARTS => begin + 1,
            _ => begin + fault.place.max(1),
        };
        self.window.skip(from.next_multiple_of(ALIGNMENT) - begin)?;
        loop {
            let offset = self.window.offset();
            // The window must include the header of a record that begins in the last searched word.
            let ahead = self.window.peek(SEARCH + PartHeader::SIZE)?;
            let at_end = ahead.len() < SEARCH + PartHeader::SIZE;
            let place = layout::find_record(ahead, offset).map(|place| place as u64);
            let step = match place {
                Some(place) => place,
                None if at_end => ahead.len() as u64,
                None => SEARCH as u64,
            };
            self.window.skip(step)?;
            if place.is_some() || at_end {
                break;
            }
        }
        Ok(Damage { begin, end: self.window.offset(), record: self.records, reason: fault.to_string() })
    }

    /// Queues the notices for the record at the window's position.
    fn remark(&mut self, outline: &Outline) {
        let begin = self.window.offset();
        for (kind, place, count) in outline.oddities.iter() {
            let place = begin + place;
            if kind == Oddity::UnescapedMagic {
                if self.unescaped.records == 0 {
                    self.unescaped.first = place;
                }
                self.unescaped.records += 1;
                continue;
            }
            let more = match count {
                1 => String::new(),
                count => format!(" ({count} times in record {})", self.records),
            };
            self.notices.push_back(Notice::at(place, format!("{kind}{more}")));
        }
    }

    /// The notice about unescaped magics, once.
    fn last_remark(&mut self) -> Option<Notice> {
        let Unescaped { records, first } = std::mem::take(&mut self.unescaped);
        let subject = match records {
            0 => return None,
            1 => "1 record holds".to_owned(),
            count => format!("{count} records hold"),
        };
        Some(Notice::at(
            first,
            format!(
                "{subject} the magic word unescaped, as protobuf RecordIO files of Amazon SageMaker do; \
                 the records are read as they are"
            ),
        ))
    }

    fn deliver(&mut self, outline: Outline) -> Result<Event<'_>> {
        let begin = self.window.offset();
        let span: Range<u64> = begin..begin + outline.span;
        if outline.length > self.record_limit {
            // The next call continues after this record.
            self.taken = outline.span;
            return Err(Limits::exceeded("record length", outline.length, self.record_limit)
                .in_file(self.window.name())
                .at(begin)
                .in_record(self.records));
        }
        let size = usize::try_from(outline.span).unwrap_or(usize::MAX);
        let data = layout::join_into(self.window.peek(size)?, &outline, &mut self.joined)?;
        self.taken = outline.span;
        self.records += 1;
        let position = Position::of_frame(begin);
        Ok(Event::Record(ScannedRecord { position, span, integrity: Integrity::Absent, data }))
    }
}

/// The part at the start of the bytes, if it is a complete record (as nearly all are) within the
/// limit. A fast path of [`RecordScan::walk`] that does not check the padding.
#[inline]
fn whole_part(ahead: &[u8], limit: u64) -> Option<PartHeader> {
    let part = PartHeader::at_start_of(ahead)?;
    (part.kind == PartKind::Whole && u64::from(part.length) <= limit).then_some(part)
}

impl Scan for RecordScan {
    fn next_event(&mut self) -> Result<Event<'_>> {
        self.pass()?;
        if let Some(notice) = self.notices.pop_front() {
            return Ok(Event::Notice(notice));
        }
        if let Some(outline) = self.ready.take() {
            return self.deliver(outline);
        }
        if !self.search_payload
            && let Some(part) = self.next_whole()?
        {
            let begin = self.window.offset();
            let (position, span) = (Position::of_frame(begin), begin..begin + part.size());
            (self.taken, self.records) = (part.size(), self.records + 1);
            let frame = self.window.peek(usize::try_from(part.size()).unwrap_or(usize::MAX))?;
            let Some(data) = part.payload(frame) else {
                return Err(Error::corrupt("the file was cut short while it was read").at(begin));
            };
            return Ok(Event::Record(ScannedRecord { position, span, integrity: Integrity::Absent, data }));
        }
        match self.walk()? {
            Step::Record(outline) => {
                self.remark(&outline);
                match self.notices.pop_front() {
                    Some(notice) => {
                        self.ready = Some(outline);
                        Ok(Event::Notice(notice))
                    }
                    None => self.deliver(outline),
                }
            }
            Step::Damage(damage) => Ok(Event::Damage(damage)),
            Step::End => Ok(self.last_remark().map_or(Event::End, Event::Notice)),
        }
    }

    fn fill(&mut self, batch: &mut Batch, records: usize, bytes: usize) -> Result<()> {
        self.pass()?;
        if self.search_payload || !self.notices.is_empty() || self.ready.is_some() {
            return Ok(());
        }
        let Some(first) = self.next_whole()? else { return Ok(()) };
        let (before, mut size) = (batch.len(), batch.buffer().len());
        let stretch = self.window.reach(usize::try_from(first.size()).unwrap_or(usize::MAX))?;
        let mut ahead = stretch;
        while batch.len() < records
            && size < bytes
            && let Some(part) = whole_part(ahead, self.record_limit)
        {
            let frame = usize::try_from(part.size()).ok().and_then(|size| ahead.split_at_checked(size));
            let Some((data, rest)) = frame.and_then(|(frame, rest)| Some((part.payload(frame)?, rest)))
            else {
                break;
            };
            batch.try_push(data)?;
            (ahead, size) = (rest, size + data.len());
        }
        let distance = stretch.len() - ahead.len();
        self.records += (batch.len() - before) as u64;
        self.window.skip(distance as u64)?;
        Ok(())
    }
}
