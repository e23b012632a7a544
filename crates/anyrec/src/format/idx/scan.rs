//! The sequential parser of IDX files.
//!
//! A plain file is a header, the records, and possibly extra bytes. Its records have no checksum.
//! If records have no bytes (a 0 among their dimensions), the header's dimensions, which declare
//! them, are the frame that holds them all.
//!
//! A gzipped file yields the same records. No record has its own range in it, so the compressed
//! file is one frame that holds them all: the first record's span is that frame, the others are its
//! items. (Damage ends a frame, and another may follow.) The checksum of a gzip member follows its
//! data, and no record may be delivered before its checksum is known. With verification on, the
//! file is therefore read twice: first for the checksums, then for the records (a stream is copied
//! to a temporary file for that). Records are then `Verified`. Those of a member with a wrong
//! checksum or broken data are damage. Those of a truncated member have lost their checksum and are
//! `Absent`. With verification off, everything that can be inflated is delivered in one pass, as
//! `Unchecked`.

use super::gzip::{Inflater, Stretch, Survey, is_gzip};
use super::layout::{FIXED, Header, MAX_HEADER};
use super::read::left_over;
use super::replay::{GzipStream, Progress, Replay};
use crate::base::{Limits, Position, Result};
use crate::format::{Content, Damage, Event, Integrity, Metadata, Notice, OpenOptions, Scan, ScannedRecord};
use crate::io::Window;
use std::collections::VecDeque;
use std::ops::Range;

/// A scan of an IDX file.
#[derive(Debug)]
pub(super) struct IdxScan {
    /// The uncompressed file.
    window: Window,
    verify: bool,
    limits: Limits,
    gzip: Option<Gzip>,
    stage: Stage,
    /// The bytes of the file up to this offset are accounted for.
    at: u64,
    /// The current frame, and the number of records delivered from it, if a frame has several.
    frame: u64,
    item: u64,
    /// Number of the next record, and of records delivered so far.
    next: u64,
    intact: u64,
    /// Length of the last delivered record, still to be skipped.
    pending: u64,
    /// Events that borrow nothing, ready for delivery.
    queue: VecDeque<Event<'static>>,
}

#[derive(Debug)]
enum Stage {
    Start,
    /// Within the records, of which there are that many.
    Records(Header, u64),
    End,
}

/// What was found in place of the next record.
enum Sight {
    /// The record: its range in the uncompressed file, and its size.
    Record(Range<u64>, usize),
    /// Records that cannot be trusted. They are skipped; more may follow.
    Doubt,
    /// No more records.
    Over,
}

/// What is known about the gzip file under the window.
#[derive(Debug)]
struct Gzip {
    /// The result of the first pass, if there was one.
    survey: Option<Survey>,
    /// The status of the records that are still to come.
    stretches: VecDeque<Stretch>,
    /// Length of the compressed file, if known in advance.
    length: Option<u64>,
    /// Progress of the current pass.
    progress: Progress,
}

impl IdxScan {
    pub(super) fn new(window: Window, options: &OpenOptions) -> Self {
        IdxScan {
            window,
            verify: options.verify,
            limits: options.limits.clone(),
            gzip: None,
            stage: Stage::Start,
            at: 0,
            frame: 0,
            item: 0,
            next: 0,
            intact: 0,
            pending: 0,
            queue: VecDeque::new(),
        }
    }

    /// Reads the header. If it is damaged, everything else is too.
    fn start(&mut self) -> Result<()> {
        if is_gzip(self.window.peek(2)?) {
            self.open_gzip()?;
        }
        let parsed = Header::parse(self.peek(MAX_HEADER)?).map_err(|error| error.to_string());
        let length = parsed.as_ref().map_or(MAX_HEADER as u64, Header::length);
        // If the header does not match its checksum, that is the reason to report, whatever it
        // contains.
        let doubt = self.survey().and_then(|survey| Some(survey.reason(survey.doubt(&(0..length))?)));
        let header = match doubt.map_or(parsed, Err) {
            Ok(header) => header,
            Err(reason) => {
                self.skip_rest()?;
                let reason = self.with_fault(reason);
                self.damage_to(self.file_end(), reason);
                return Ok(());
            }
        };
        self.skip(header.length())?;
        let count = header.record_count();
        let records = *count.as_ref().unwrap_or(&0);
        let end = match &self.gzip {
            // The records account for all bytes, if there are any.
            Some(_) if records > 0 => 0,
            Some(gzip) => gzip.survey.as_ref().map_or(0, |survey| survey.compressed),
            None if records > 0 && header.record_size() == 0 => FIXED as u64,
            None => header.length(),
        };
        let content = Content::Shape { dtype: header.dtype(), shape: header.shape().to_vec() };
        self.queue.push_back(Event::Metadata(Metadata { span: 0..end, content }));
        self.at = end;
        if let Some(gzip) = &mut self.gzip
            && let Some(survey) = &gzip.survey
        {
            gzip.stretches = survey.stretches(&header).into();
        }
        match count {
            Ok(count) => self.stage = Stage::Records(header, count),
            Err(error) => {
                self.damage_to(self.at, error.to_string());
                self.finish(&header)?;
            }
        }
        Ok(())
    }

    /// Determines what is in place of record `next`.
    fn look(&mut self, header: &Header, count: u64) -> Result<Sight> {
        if self.next == count {
            self.finish(header)?;
            return Ok(Sight::Over);
        }
        let span = header.span(self.next);
        if let Some(gzip) = &mut self.gzip {
            if gzip.stretches.front().is_some_and(|stretch| stretch.numbers.end <= self.next) {
                gzip.stretches.pop_front();
                self.item = 0;
            }
            let doubtful = gzip.stretches.front().is_some_and(|stretch| stretch.reason.is_some());
            if let Some(lost) = doubtful.then(|| gzip.stretches.pop_front()).flatten() {
                self.next = lost.numbers.end;
                self.item = 0;
                self.skip(header.span(self.next).start - span.start)?;
                self.damage_to(lost.compressed.end, lost.reason.unwrap_or_default());
                return Ok(Sight::Doubt);
            }
        }
        let size = header.record_size();
        let limit = self.limits.record;
        // On a stream, the bytes must be fetched to know that they exist.
        let there = match self.window.remaining() {
            Some(remaining) => remaining >= size,
            None => {
                let within = size.min(limit.saturating_add(1));
                self.peek(usize::try_from(within).unwrap_or(usize::MAX))?.len() as u64 == within
            }
        };
        if !there {
            self.cut_short(header)?;
            return Ok(Sight::Over);
        }
        let size = Limits::check("record size", size, size, limit)
            .map_err(|error| error.in_file(self.window.name()).at(span.start).in_record(self.next))?;
        Ok(Sight::Record(span, size))
    }

    /// Position of the record at `span` of the uncompressed file, and the bytes of the file it
    /// accounts for.
    fn account(&mut self, header: &Header, span: &Range<u64>) -> (Position, Range<u64>) {
        let frame_end = match &self.gzip {
            None if header.record_size() > 0 => {
                self.at = span.end;
                return (Position::of_frame(span.start), span.clone());
            }
            None => header.length(),
            Some(gzip) => match gzip.stretches.front() {
                Some(stretch) => stretch.compressed.end,
                None => gzip.length.unwrap_or_else(|| gzip.progress.offset()),
            },
        };
        let begin = self.at;
        if self.item == 0 {
            self.frame = begin;
            self.at = frame_end.max(begin);
        }
        self.item += 1;
        (Position { frame: self.frame, item: self.item - 1 }, begin..self.at)
    }

    /// Handles an array that ends early.
    fn cut_short(&mut self, header: &Header) -> Result<()> {
        let length = self.skip_rest()?;
        let what = if self.gzip.is_some() { "uncompressed file" } else { "file" };
        let reason = self.with_fault(format!(
            "the {what} ends inside the array: expected {} bytes of elements, found {}",
            header.data_length(),
            length.saturating_sub(header.length())
        ));
        self.damage_to(self.file_end(), reason);
        self.notices();
        Ok(())
    }

    /// Handles what follows the last record.
    fn finish(&mut self, header: &Header) -> Result<()> {
        let begin = self.window.offset();
        let length = self.skip_rest()?;
        // If damaged records were skipped, the file may have ended before the array.
        if length < header.file_length() {
            return self.cut_short(header);
        }
        let end = self.file_end();
        let doubt = self.survey().and_then(|survey| Some(survey.reason(survey.doubt(&(begin..length))?)));
        let fault = self.with_survey(|survey| survey.fault.as_ref().map(|fault| fault.sentence()));
        match doubt.or(fault) {
            Some(reason) => self.damage_to(end, reason),
            None if end > self.at => {
                let span = self.at..end;
                self.at = end;
                self.queue.push_back(Event::Metadata(Metadata { span, content: Content::Filler }));
            }
            None => {}
        }
        if length > begin {
            self.queue.push_back(Event::Notice(left_over(begin, length - begin, self.gzip.is_some())));
        }
        self.notices();
        Ok(())
    }

    /// Queues notices about irregularities of a gzip file that lose no data.
    fn notices(&mut self) {
        let (trailing, odd_members) =
            self.with_survey(|survey| (survey.trailing.clone(), survey.odd_members));
        if let Some(Range { start, end }) = trailing {
            let bytes = end - start;
            let message = format!("{bytes} bytes after the gzip data are not gzip and are ignored");
            self.queue.push_back(Event::Notice(Notice::at(start, message)));
        }
        if odd_members > 0 {
            let message = format!("{odd_members} empty gzip members have a wrong checksum");
            self.queue.push_back(Event::Notice(Notice::new(message)));
        }
    }

    /// Reports damage from the accounted offset to `end`.
    fn damage_to(&mut self, end: u64, reason: String) {
        let damage = Damage { begin: self.at, end: end.max(self.at), record: self.intact, reason };
        self.at = damage.end;
        self.queue.push_back(Event::Damage(damage));
    }

    /// `reason`, with the reason why gzip ended if that is the cause.
    fn with_fault(&self, reason: String) -> String {
        match self.with_survey(|survey| survey.fault.as_ref().map(|fault| fault.sentence())) {
            Some(fault) if fault != reason => format!("{reason} ({fault})"),
            _ => reason,
        }
    }

    /// Length of the file, once the window has reached its end.
    fn file_end(&self) -> u64 {
        match &self.gzip {
            Some(_) => self.with_survey(|survey| survey.compressed),
            None => self.window.offset(),
        }
    }

    fn survey(&self) -> Option<&Survey> {
        self.gzip.as_ref()?.survey.as_ref()
    }

    /// Inspects the result of a complete pass over the gzip file.
    fn with_survey<T: Default>(&self, look: impl FnOnce(&Survey) -> T) -> T {
        match &self.gzip {
            Some(Gzip { survey: Some(survey), .. }) => look(survey),
            Some(gzip) => gzip.progress.with_survey(look),
            None => T::default(),
        }
    }

    /// The integrity of the record at `span` of the uncompressed file.
    fn integrity(&self, span: &Range<u64>) -> Integrity {
        match (&self.gzip, self.survey()) {
            (Some(_), Some(survey)) if span.end <= survey.complete => Integrity::Verified,
            (Some(_), None) => Integrity::Unchecked,
            _ => Integrity::Absent,
        }
    }

    /// Puts the uncompressed file under the window, after a first pass if checksums matter.
    fn open_gzip(&mut self) -> Result<()> {
        let name = self.window.name().to_owned();
        let nothing = Window::from_stream(name.clone(), std::io::empty());
        let mut compressed = std::mem::replace(&mut self.window, nothing);
        let length = compressed.remaining();
        let mut survey = None;
        if self.verify {
            let replay = Replay::of(compressed, &self.limits)?;
            survey = Some(Inflater::new(replay.window()?, true, &self.limits)?.finish()?);
            compressed = replay.window()?;
        }
        let (stream, progress) = GzipStream::new(Inflater::new(compressed, false, &self.limits)?);
        self.window = Window::from_stream(name, stream);
        self.gzip = Some(Gzip { survey, stretches: VecDeque::new(), length, progress });
        Ok(())
    }

    fn peek(&mut self, want: usize) -> Result<&[u8]> {
        match self.window.peek(want) {
            // Peek again, because the borrow of a failed call would last too long.
            Ok(_) => self.window.peek(want),
            Err(error) => Err(self.gzip.as_ref().and_then(|gzip| gzip.progress.error()).unwrap_or(error)),
        }
    }

    fn skip(&mut self, count: u64) -> Result<u64> {
        self.window
            .skip(count)
            .map_err(|error| self.gzip.as_ref().and_then(|gzip| gzip.progress.error()).unwrap_or(error))
    }

    /// Skips to the end of the uncompressed file, and returns its offset.
    fn skip_rest(&mut self) -> Result<u64> {
        self.skip(u64::MAX)?;
        Ok(self.window.offset())
    }
}

impl Scan for IdxScan {
    fn next_event(&mut self) -> Result<Event<'_>> {
        let pending = std::mem::take(&mut self.pending);
        self.skip(pending)?;
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(event);
            }
            // A stage that does not set another one is the last.
            match std::mem::replace(&mut self.stage, Stage::End) {
                Stage::Start => self.start()?,
                Stage::Records(header, count) => match self.look(&header, count)? {
                    Sight::Record(place, size) => {
                        let integrity = self.integrity(&place);
                        let (position, span) = self.account(&header, &place);
                        self.stage = Stage::Records(header, count);
                        self.next += 1;
                        self.intact += 1;
                        self.pending = size as u64;
                        let data = self.window.peek(size)?;
                        return Ok(Event::Record(ScannedRecord { position, span, integrity, data }));
                    }
                    Sight::Doubt => self.stage = Stage::Records(header, count),
                    Sight::Over => {}
                },
                Stage::End => return Ok(Event::End),
            }
        }
    }
}
