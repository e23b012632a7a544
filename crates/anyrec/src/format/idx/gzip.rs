//! Undoing gzip, member by member, with an account of what was checked.
//!
//! A gzip file is one or more members, each deflated bytes with a CRC-32 and a length behind
//! them; their contents are joined. The checksum of a member comes after its bytes, so whoever
//! must not hand out unchecked bytes has to inflate first and look afterwards: the [`Survey`]
//! that an [`Inflater`] leaves behind says which bytes can be trusted, and which records
//! ([`Stretch`]).
//!
//! This does not use flate2's own gzip reader because that tells a wrong checksum, broken deflate
//! data and a file cut short apart only by their wording, and does not say where members begin.
//! Nothing here holds more than one chunk of output: how much is kept is the caller's business.

use super::layout::Header;
use crate::base::deflate::{self, Decompress, FlushDecompress, Status};
use crate::base::memory::zeroed;
use crate::base::{Limits, Result};
use crate::io::Window;
use crate::threads::interrupt::go_on;
use std::ops::Range;

/// Compressed bytes given to the decompressor at a time.
const INPUT: usize = 1 << 16;

/// Bytes to be unpacked before the caller is asked again whether to go on.
const PIECE: usize = 1 << 20;

/// Stretches of bad members told apart. In a file with more of them whatever lies between the
/// rest is given up as well, so that its bad members cannot fill the memory.
const MAX_DOUBTS: usize = 1 << 14;

/// Whether a file that begins like this is gzip.
pub(super) fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(&[0x1f, 0x8b])
}

/// What became of a gzip file. Offsets are those of the uncompressed bytes unless it says
/// otherwise.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Bytes that came out.
    pub(super) length: u64,
    /// Length of the compressed file.
    pub(super) compressed: u64,
    /// Up to here the bytes belong to members that were read to their end.
    pub(super) complete: u64,
    /// Stretches that cannot be trusted, in order and apart.
    pub(super) doubts: Vec<Doubt>,
    /// Empty members with a wrong checksum: odd, but nothing is lost with them.
    pub(super) odd_members: u64,
    /// Why the end was not reached.
    pub(super) fault: Option<Fault>,
    /// Bytes of the compressed file behind the last member, which are not gzip.
    pub(super) trailing: Option<Range<u64>>,
}

/// A stretch of one or more members whose content is not what was compressed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Doubt {
    pub(super) span: Range<u64>,
    /// The members in the compressed file.
    compressed: Range<u64>,
    /// CRC-32 as stored and as computed, of the first such member; `None` where broken deflate
    /// data hid the end of the member.
    checksum: Option<(u32, u32)>,
}

/// Records that follow each other and share a fate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Their numbers in the file; never none.
    pub(super) numbers: Range<u64>,
    /// The bytes of the compressed file that account for them. Stretches follow each other there
    /// without gaps, from the beginning of the file on.
    pub(super) compressed: Range<u64>,
    /// Why they cannot be trusted, if they cannot.
    pub(super) reason: Option<String>,
}

/// The place in the compressed file where inflating came to its end, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    offset: u64,
    reason: &'static str,
}

impl Survey {
    /// The doubtful stretch that `span` touches.
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
            (None, None) => "the gzip data are broken".to_owned(),
        }
    }

    /// Which of the records that the header promises came out whole, and which cannot be trusted.
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

/// Reads what a gzip file holds.
#[derive(Debug)]
pub(super) struct Inflater {
    window: Window,
    verify: bool,
    limit: u64,
    stage: Stage,
    decompress: Decompress,
    checksum: crc32fast::Hasher,
    /// Where the present member's content begins, and where the member begins in the file.
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

/// How a step inside a member failed.
enum Broken {
    /// The input ends.
    CutShort(&'static str),
    /// The input is not gzip.
    Invalid(&'static str),
}

impl Inflater {
    /// Reads through `window`, computing checksums if `verify` says so. More than
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

    /// How far the compressed file has been read.
    pub(super) fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// What is known so far; all there is to know once [`read`](Inflater::read) gave 0.
    pub(super) fn survey(&self) -> &Survey {
        &self.survey
    }

    /// The account, once [`read`](Inflater::read) gave 0.
    pub(super) fn take_survey(&mut self) -> Survey {
        std::mem::take(&mut self.survey)
    }

    /// The next bytes, at least one unless there are no more (or `buffer` is empty). Broken or
    /// missing input ends the bytes and is told in the survey.
    ///
    /// # Errors
    /// Only when reading itself fails, or past the limit.
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
    /// As [`read`](Inflater::read).
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

    /// Inflates to the end without keeping anything, and gives the account of the whole file.
    ///
    /// # Errors
    /// As [`read`](Inflater::read).
    pub(super) fn finish(mut self) -> Result<Survey> {
        let mut scratch = zeroed(INPUT)?;
        while self.read(&mut scratch)? > 0 {
            go_on()?;
        }
        Ok(self.survey)
    }

    /// Ends the bytes, and goes to the end of the input to know its length.
    fn give_up(&mut self, broken: Broken) -> Result<()> {
        let (reason, invalid) = match broken {
            Broken::CutShort(reason) => (reason, false),
            Broken::Invalid(reason) => (reason, true),
        };
        self.survey.fault = Some(Fault { offset: self.window.offset(), reason });
        self.end()?;
        // Where the input merely ends, what came before is as good as in a plain file cut short.
        // Broken deflate data, however, are often noticed long after they went wrong.
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
            return Ok(Err(Broken::Invalid("a gzip header asks for something unknown")));
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
        // Nothing the header says is used, and the content has a checksum of its own.
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

    /// Inflates once. What came out before the input broke is still given.
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
                self.give_up(Broken::CutShort("the gzip data end too soon"))?;
            }
            Ok(_) => {}
            Err(_) => self.give_up(Broken::Invalid("the gzip data are broken"))?,
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
            // With a length that is wrong, nobody knows where the next member's bytes belong.
            return Ok(Err(Broken::Invalid("the length stored behind the gzip data is wrong")));
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

    /// Skips `count` bytes; false where there are fewer.
    fn pass(&mut self, count: u64) -> Result<bool> {
        Ok(self.window.skip(count)? == count)
    }
}
