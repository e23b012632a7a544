//! Decompresses gzip, member by member, and reports what was checked.
//!
//! A gzip file consists of one or more members, each with deflated bytes followed by a CRC-32 and a
//! length; their contents are concatenated. Because the checksum follows the bytes, a caller that
//! must not return unchecked bytes has to inflate first and check afterwards. The [`Survey`] of an
//! [`Inflater`] says which bytes can be trusted, and which records ([`Stretch`]).
//!
//! This module does not use flate2's gzip reader: that distinguishes a wrong checksum, broken
//! deflate data and a truncated file only by message text, and does not report where members begin.
//! At most one chunk of output is held here; the caller decides how much to keep.

use super::layout::Header;
use crate::base::deflate::{self, Decompress, FlushDecompress, Status};
use crate::base::memory::zeroed;
use crate::base::{Limits, Result};
use crate::io::Window;
use crate::threads::interrupt::go_on;
use std::ops::Range;

/// Compressed bytes passed to the decompressor at a time.
const INPUT: usize = 1 << 16;

/// Bytes inflated before checking again whether to continue.
const PIECE: usize = 1 << 20;

/// Maximum number of separate ranges of bad members. In a file with more, everything between the
/// remaining ones is treated as bad too, so that bad members cannot fill the memory.
const MAX_DOUBTS: usize = 1 << 14;

/// Whether a file that begins with these bytes is gzip.
pub(super) fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(&[0x1f, 0x8b])
}

/// The result of inflating a gzip file. Offsets refer to the uncompressed bytes unless stated
/// otherwise.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Number of uncompressed bytes.
    pub(super) length: u64,
    /// Length of the compressed file.
    pub(super) compressed: u64,
    /// The bytes up to this offset belong to members that were read to their end.
    pub(super) complete: u64,
    /// Ranges that cannot be trusted, in order and disjoint.
    pub(super) doubts: Vec<Doubt>,
    /// Empty members with a wrong checksum. They are odd, but no data is lost.
    pub(super) odd_members: u64,
    /// Why the end was not reached.
    pub(super) fault: Option<Fault>,
    /// Bytes of the compressed file after the last member that are not gzip.
    pub(super) trailing: Option<Range<u64>>,
}

/// A range of one or more members whose content is not what was compressed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Doubt {
    pub(super) span: Range<u64>,
    /// The range of the members in the compressed file.
    compressed: Range<u64>,
    /// Stored and computed CRC-32 of the first such member; `None` if broken deflate data hides the
    /// end of the member.
    checksum: Option<(u32, u32)>,
}

/// Consecutive records with the same status.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Their numbers in the file; never empty.
    pub(super) numbers: Range<u64>,
    /// The range of the compressed file that accounts for them. These ranges are contiguous,
    /// starting at the beginning of the file.
    pub(super) compressed: Range<u64>,
    /// Why they cannot be trusted, if so.
    pub(super) reason: Option<String>,
}

/// Where in the compressed file inflating stopped, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    offset: u64,
    reason: &'static str,
}

impl Survey {
    /// The untrusted range that overlaps `span`.
    pub(super) fn doubt(&self, span: &Range<u64>) -> Option<&Doubt> {
        let first = self.doubts.partition_point(|doubt| doubt.span.end <= span.start);
        self.doubts.get(first).filter(|doubt| doubt.span.start < span.end)
    }

    /// Why the bytes of `doubt` are not trusted, as one sentence.
    pub(super) fn reason(&self, doubt: &Doubt) -> String {
        let Range { start, end } = doubt.span;
        match (doubt.checksum, &self.fault) {
            (Some((stored, computed)), _) => format!(
                "the gzip checksum of the uncompressed bytes {start} to {end} is wrong: \
                 expected {stored:08x}, found {computed:08x}"
            ),
            (None, Some(fault)) => fault.sentence(),
            (None, None) => "the gzip data is corrupt".to_owned(),
        }
    }

    /// Which of the records that the header declares are complete, and which cannot be trusted.
    pub(super) fn stretches(&self, header: &Header) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        let (mut next, mut offset) = (0, 0);
        for doubt in &self.doubts {
            let lost = header.records_touching(&doubt.span);
            if lost.end <= next {
                continue;
            }
            if lost.start > next {
                let compressed = offset..doubt.compressed.start;
                stretches.push(Stretch { numbers: next..lost.start, compressed, reason: None });
                offset = doubt.compressed.start;
            }
            let (numbers, compressed) = (lost.start.max(next)..lost.end, offset..doubt.compressed.end);
            (next, offset) = (numbers.end, compressed.end);
            stretches.push(Stretch { numbers, compressed, reason: Some(self.reason(doubt)) });
        }
        let numbers = next..header.whole_records(self.length);
        if !numbers.is_empty() {
            stretches.push(Stretch { numbers, compressed: offset..self.compressed, reason: None });
        }
        stretches
    }

    fn add_doubt(&mut self, start: u64, compressed: Range<u64>, checksum: Option<(u32, u32)>) {
        let span = start..self.length;
        let full = self.doubts.len() >= MAX_DOUBTS;
        match self.doubts.last_mut() {
            _ if span.is_empty() => self.odd_members += 1,
            Some(last) if last.span.end == start || full => {
                last.span.end = span.end;
                last.compressed.end = compressed.end;
            }
            _ => self.doubts.push(Doubt { span, compressed, checksum }),
        }
    }
}

impl Fault {
    /// What happened and where, as one sentence.
    pub(super) fn sentence(&self) -> String {
        format!("{} at byte {} of the compressed file", self.reason, self.offset)
    }
}

/// Decompresses a gzip file.
#[derive(Debug)]
pub(super) struct Inflater {
    window: Window,
    verify: bool,
    limit: u64,
    stage: Stage,
    decompress: Decompress,
    checksum: crc32fast::Hasher,
    /// Where the current member's content begins, and where the member begins in the file.
    member: u64,
    member_offset: u64,
    survey: Survey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Header,
    Content,
    Trailer,
    Ended,
}

/// How a step within a member failed.
enum Broken {
    /// The input ends.
    CutShort(&'static str),
    /// The input is not gzip.
    Invalid(&'static str),
}

impl Inflater {
    /// Reads through `window` and computes checksums if `verify` is true. More than
    /// `limits.decompressed` bytes are an error.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub(super) fn new(window: Window, verify: bool, limits: &Limits) -> Result<Self> {
        let decompress = deflate::decompressor().map_err(|error| error.in_file(window.name()))?;
        Ok(Inflater {
            window,
            verify,
            limit: limits.decompressed,
            stage: Stage::Header,
            decompress,
            checksum: crc32fast::Hasher::new(),
            member: 0,
            member_offset: 0,
            survey: Survey::default(),
        })
    }

    /// The current offset in the compressed file.
    pub(super) fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// The survey so far; complete once [`read`](Inflater::read) returned 0.
    pub(super) fn survey(&self) -> &Survey {
        &self.survey
    }

    /// Takes the survey, once [`read`](Inflater::read) returned 0.
    pub(super) fn take_survey(&mut self) -> Survey {
        std::mem::take(&mut self.survey)
    }

    /// Reads the next bytes, at least one unless the end is reached (or `buffer` is empty). Broken
    /// or missing input ends the bytes and is reported in the survey.
    ///
    /// # Errors
    /// Only if reading itself fails, or beyond the limit.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            let step = match self.stage {
                Stage::Header => self.member_header()?,
                Stage::Content => match self.content(buffer)? {
                    0 if !buffer.is_empty() => Ok(()),
                    count => return Ok(count),
                },
                Stage::Trailer => self.trailer()?,
                Stage::Ended => return Ok(0),
            };
            if let Err(broken) = step {
                self.give_up(broken)?;
            }
        }
    }

    /// Fills `buffer` as far as there are bytes.
    ///
    /// # Errors
    /// Same as [`read`](Inflater::read).
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            go_on()?;
            let piece = rest.len().min(PIECE);
            match self.read(rest.get_mut(..piece).unwrap_or_default())? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(filled)
    }

    /// Inflates to the end, discarding the output, and returns the survey of the entire file.
    ///
    /// # Errors
    /// Same as [`read`](Inflater::read).
    pub(super) fn finish(mut self) -> Result<Survey> {
        let mut scratch = zeroed(INPUT)?;
        while self.read(&mut scratch)? > 0 {
            go_on()?;
        }
        Ok(self.survey)
    }

    /// Ends the output, and skips to the end of the input to learn its length.
    fn give_up(&mut self, broken: Broken) -> Result<()> {
        let (reason, invalid) = match broken {
            Broken::CutShort(reason) => (reason, false),
            Broken::Invalid(reason) => (reason, true),
        };
        self.survey.fault = Some(Fault { offset: self.window.offset(), reason });
        self.end()?;
        // If the input merely ends, the bytes before it are as good as in a truncated plain file.
        // Broken deflate data, however, is often detected long after the actual error.
        if invalid && self.verify && self.survey.length > self.survey.complete {
            self.survey.add_doubt(self.member, self.member_offset..self.survey.compressed, None);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.window.skip(u64::MAX)?;
        self.survey.compressed = self.window.offset();
        self.stage = Stage::Ended;
        Ok(())
    }

    fn member_header(&mut self) -> Result<std::result::Result<(), Broken>> {
        const CHECKSUM: u8 = 1 << 1;
        const EXTRA: u8 = 1 << 2;
        const NAME: u8 = 1 << 3;
        const COMMENT: u8 = 1 << 4;
        const RESERVED: u8 = 0b1110_0000;
        let cut = Ok(Err(Broken::CutShort("the file ends inside a gzip header")));

        let begin = self.window.offset();
        let head = self.window.peek(10)?;
        if begin > 0 && !is_gzip(head) {
            self.end()?;
            let end = self.survey.compressed;
            self.survey.trailing = (end > begin).then_some(begin..end);
            return Ok(Ok(()));
        }
        let &[_, _, method, flags, ..] = head else { return cut };
        if method != 8 || flags & RESERVED != 0 {
            return Ok(Err(Broken::Invalid("a gzip header uses an unknown feature")));
        }
        if !self.pass(10)? {
            return cut;
        }
        if flags & EXTRA != 0 {
            let Some(&length) = self.window.peek(2)?.first_chunk::<2>() else { return cut };
            if !self.pass(2 + u64::from(u16::from_le_bytes(length)))? {
                return cut;
            }
        }
        for flag in [NAME, COMMENT] {
            let mut inside = flags & flag != 0;
            while inside {
                let Some(&byte) = self.window.peek(1)?.first() else { return cut };
                self.window.skip(1)?;
                inside = byte != 0;
            }
        }
        // No header field is used, and the content has its own checksum.
        if flags & CHECKSUM != 0 && !self.pass(2)? {
            return cut;
        }
        self.decompress.reset(false);
        self.checksum.reset();
        self.member = self.survey.length;
        self.member_offset = begin;
        self.stage = Stage::Content;
        Ok(Ok(()))
    }

    /// Inflates one step. Output produced before the input broke is still returned.
    fn content(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let input = self.window.peek(INPUT)?;
        let (consumed, produced) = (self.decompress.total_in(), self.decompress.total_out());
        let status = self.decompress.decompress(input, buffer, FlushDecompress::None);
        let consumed = self.decompress.total_in() - consumed;
        let produced = self.decompress.total_out() - produced;
        self.window.skip(consumed)?;
        self.survey.length += produced;
        if self.survey.length > self.limit {
            return Err(Limits::exceeded("uncompressed size", self.survey.length, self.limit)
                .in_file(self.window.name()));
        }
        let count = usize::try_from(produced).unwrap_or(buffer.len());
        if self.verify {
            self.checksum.update(buffer.get(..count).unwrap_or_default());
        }
        match status {
            Ok(Status::StreamEnd) => self.stage = Stage::Trailer,
            Ok(_) if consumed == 0 && count == 0 && !buffer.is_empty() => {
                self.give_up(Broken::CutShort("the gzip data is truncated"))?;
            }
            Ok(_) => {}
            Err(_) => self.give_up(Broken::Invalid("the gzip data is corrupt"))?,
        }
        Ok(count)
    }

    fn trailer(&mut self) -> Result<std::result::Result<(), Broken>> {
        let Some(&trailer) = self.window.peek(8)?.first_chunk::<8>() else {
            return Ok(Err(Broken::CutShort("the file ends inside a gzip checksum")));
        };
        let [c0, c1, c2, c3, l0, l1, l2, l3] = trailer;
        let stored = u32::from_le_bytes([c0, c1, c2, c3]);
        let length = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
        if (self.survey.length - self.member) & u64::from(u32::MAX) != length {
            // With a wrong length, the position of the next member's bytes is unknown.
            return Ok(Err(Broken::Invalid("the length stored after the gzip data is wrong")));
        }
        self.window.skip(8)?;
        let computed = self.checksum.clone().finalize();
        if self.verify && computed != stored {
            let members = self.member_offset..self.window.offset();
            self.survey.add_doubt(self.member, members, Some((stored, computed)));
        }
        self.survey.complete = self.survey.length;
        self.stage = Stage::Header;
        Ok(Ok(()))
    }

    /// Skips `count` bytes; returns false if there are fewer.
    fn pass(&mut self, count: u64) -> Result<bool> {
        Ok(self.window.skip(count)? == count)
    }
}
