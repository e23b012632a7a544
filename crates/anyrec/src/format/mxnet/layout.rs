//! The bytes of a `.rec` file, without I/O.
//!
//! A file is a sequence of *parts*, each on a 4-byte boundary:
//!
//! ```text
//! part   := magic (u32 le, 0xced7230a) lrec (u32 le) payload padding
//! lrec   := cflag << 29 | length          length < 2^29, padding up to a multiple of 4
//! record := whole(0) | first(1) middle(2)* last(3)
//! ```
//!
//! A record is split wherever the magic occurs in it at a multiple of 4. The four bytes are
//! dropped, and the reader puts them back between the parts. A payload therefore never contains an
//! aligned magic, and a reader that lost its position can search for the next one.
//!
//! [`RecordParser`] is the only code that follows the parts of a record. It is as lenient as the original
//! reader: whatever that reader accepts is a record here, with an [`Oddity`] for each broken rule.
//! What the original rejects is a [`Fault`]. Where an index file or the caller states that a record
//! begins ([`RecordParser::where_a_record_begins`]), a middle or last part is a fault too: otherwise the
//! tail of a record would be returned as a complete one.

use crate::base::memory::reserve;
use memchr::memmem::Finder;
use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

/// The word that every part begins with.
pub const MAGIC: u32 = 0xced7_230a;

/// The magic as stored in the file.
pub const MAGIC_BYTES: [u8; 4] = MAGIC.to_le_bytes();

/// Parts begin on multiples of this, and records are split at magics on multiples of this.
pub const ALIGNMENT: u64 = 4;

/// The longest record the format can hold: the length field has 29 bits.
pub const MAX_RECORD: u64 = (1 << 29) - 1;

/// The search table for the magic, built once.
static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(&MAGIC_BYTES));

/// The position of a part within its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartKind {
    /// A complete record (cflag 0).
    Whole,
    /// The first of several parts (cflag 1).
    First,
    /// Neither the first nor the last part (cflag 2).
    Middle,
    /// The last of several parts (cflag 3).
    Last,
    /// A cflag that no writer uses (4 to 7). The original treats it like a middle part.
    Reserved(u8),
}

impl PartKind {
    fn from_flag(flag: u8) -> Self {
        match flag {
            0 => PartKind::Whole,
            1 => PartKind::First,
            2 => PartKind::Middle,
            3 => PartKind::Last,
            other => PartKind::Reserved(other),
        }
    }

    /// The cflag in the file.
    pub fn flag(self) -> u8 {
        match self {
            PartKind::Whole => 0,
            PartKind::First => 1,
            PartKind::Middle => 2,
            PartKind::Last => 3,
            PartKind::Reserved(flag) => flag & 7,
        }
    }

    /// Whether a record may begin with this part.
    pub fn begins_record(self) -> bool {
        matches!(self, PartKind::Whole | PartKind::First)
    }

    /// Whether this part ends the record.
    pub fn ends_record(self) -> bool {
        matches!(self, PartKind::Whole | PartKind::Last)
    }
}

/// The eight bytes in front of a part's payload.
///
/// ```
/// use anyrec::format::mxnet::{PartHeader, PartKind};
///
/// let header = PartHeader { kind: PartKind::First, length: 5 };
/// assert_eq!(header.to_bytes(), [0x0a, 0x23, 0xd7, 0xce, 5, 0, 0, 0x20]);
/// assert_eq!(PartHeader::parse(header.to_bytes()), Some(header));
/// assert_eq!(header.padded_length(), 8);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartHeader {
    /// The part's place in its record.
    pub kind: PartKind,
    /// Length of the payload in bytes, without padding; less than 2^29.
    pub length: u32,
}

impl PartHeader {
    /// Size of a header in bytes.
    pub const SIZE: usize = 8;

    /// Parses a header, if the bytes begin with the magic.
    #[inline]
    pub fn parse(bytes: [u8; Self::SIZE]) -> Option<Self> {
        let word = u64::from_le_bytes(bytes);
        if word & 0xffff_ffff != u64::from(MAGIC) {
            return None;
        }
        let lrec = u32::try_from(word >> 32).ok()?;
        let flag = u8::try_from(lrec >> 29).ok()?;
        Some(PartHeader { kind: PartKind::from_flag(flag), length: lrec & 0x1fff_ffff })
    }

    /// Parses the header at the beginning of a slice, if there is one.
    #[inline]
    pub fn at_start_of(bytes: &[u8]) -> Option<Self> {
        Self::parse(*bytes.first_chunk()?)
    }

    /// The header as stored in the file.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let lrec = u32::from(self.kind.flag()) << 29 | (self.length & 0x1fff_ffff);
        (u64::from(lrec) << 32 | u64::from(MAGIC)).to_le_bytes()
    }

    /// The payload within the bytes of the part.
    #[inline]
    pub fn payload(self, part: &[u8]) -> Option<&[u8]> {
        part.get(Self::SIZE..)?.get(..usize::try_from(self.length).ok()?)
    }

    /// Length of payload and padding.
    pub fn padded_length(self) -> u64 {
        u64::from(self.length).next_multiple_of(ALIGNMENT)
    }

    /// Length of header, payload and padding.
    #[inline]
    pub fn size(self) -> u64 {
        Self::SIZE as u64 + self.padded_length()
    }
}

/// A broken rule that loses no data: the original accepts it, and so do we.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Oddity {
    /// The record begins with a middle or last part.
    BeginsInside,
    /// A part has cflag 4 to 7.
    ReservedFlag,
    /// A first part follows a part that was not the last.
    BeginsAgain,
    /// A whole record follows a part that was not the last. It is read as the last part.
    WholeInside,
    /// A part other than the last has a length that is not a multiple of 4.
    UnevenPart,
    /// Padding bytes are not zero.
    Padding,
    /// A payload contains the magic unescaped at an aligned offset.
    UnescapedMagic,
}

impl Oddity {
    /// All oddities, in the order of their numbers.
    pub const ALL: [Oddity; 7] = [
        Oddity::BeginsInside,
        Oddity::ReservedFlag,
        Oddity::BeginsAgain,
        Oddity::WholeInside,
        Oddity::UnevenPart,
        Oddity::Padding,
        Oddity::UnescapedMagic,
    ];
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Oddity::BeginsInside => "a record begins with a middle or last part (cflag 2 or 3)",
            Oddity::ReservedFlag => "a part has a cflag that no writer uses (4 to 7), read as a middle part",
            Oddity::BeginsAgain => "a first part (cflag 1) inside a split record, read as a middle part",
            Oddity::WholeInside => "a whole record (cflag 0) inside a split record, read as its last part",
            Oddity::UnevenPart => "a part that is not the last has a length that is not a multiple of 4",
            Oddity::Padding => "padding bytes are not zero",
            Oddity::UnescapedMagic => "a record contains the magic word unescaped",
        })
    }
}

/// The oddities of one record: the first place and the count of each kind, so that memory does not
/// grow with the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Oddities([Option<(u64, u64)>; Oddity::ALL.len()]);

impl Oddities {
    fn note(&mut self, kind: Oddity, place: u64) {
        if let Some(slot) = self.0.get_mut(kind as usize) {
            let (first, count) = slot.unwrap_or((place, 0));
            *slot = Some((first, count + 1));
        }
    }

    /// Kind, first place (relative to the record's first byte in the file) and count.
    pub fn iter(&self) -> impl Iterator<Item = (Oddity, u64, u64)> {
        Oddity::ALL
            .into_iter()
            .zip(self.0)
            .filter_map(|(kind, slot)| slot.map(|(at, count)| (kind, at, count)))
    }
}

/// The outline of a record, from its part headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outline {
    /// Bytes the record occupies in the file, padding included.
    pub span: u64,
    /// Length of the record itself.
    pub length: u64,
    /// Number of parts.
    pub parts: u64,
    /// The rules it breaks.
    pub oddities: Oddities,
}

/// Why bytes are not a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// Where, relative to the record's first byte in the file.
    pub place: u64,
    /// Number of intact parts of the record before it.
    pub parts: u64,
}

/// The ways a part can be invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// Something other than the magic.
    Magic([u8; 4]),
    /// The data ends within a header, after that many bytes.
    HeaderCut(u64),
    /// A payload (with padding) of `need` bytes where only `left` remain.
    PayloadCut {
        /// Length field of the part.
        length: u32,
        /// Bytes needed.
        need: u64,
        /// Bytes available.
        left: u64,
    },
    /// The data ends where another part must follow.
    PartMissing,
    /// A part with that cflag where a record should begin.
    Inside(u8),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FaultKind::Magic(found) => {
                write!(
                    f,
                    "part without its magic word: expected {MAGIC:08x}, found {:08x}",
                    u32::from_le_bytes(found)
                )?;
            }
            FaultKind::HeaderCut(found) => {
                write!(f, "part header cut short: expected {} bytes, found {found}", PartHeader::SIZE)?;
            }
            FaultKind::PayloadCut { length, need, left } => {
                write!(f, "part length {length} ({need} bytes with padding) exceeds the {left} bytes left")?;
            }
            FaultKind::PartMissing => {
                f.write_str("split record without its last part: expected another part, found the end")?
            }
            FaultKind::Inside(flag) => {
                write!(f, "part of a split record (cflag {flag}) where a record should begin")?;
            }
        }
        match self.parts {
            0 => Ok(()),
            before => write!(f, " (part {} of a split record)", before + 1),
        }
    }
}

/// The outcome of one step of a [`RecordParser`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// That many bytes from the record's beginning are needed to continue.
    Needs(u64),
    /// The record is complete.
    Complete(Outline),
    /// This is not a record.
    Broken(Fault),
}

/// Follows the parts of one record.
#[derive(Debug, Clone, Default)]
pub struct RecordParser {
    outline: Outline,
    /// The first part must be one that can begin a record.
    strict: bool,
}

impl RecordParser {
    /// Starts a walk at the beginning of a record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a walk at an offset where, according to an index file or the caller, a record begins.
    pub fn where_a_record_begins() -> Self {
        RecordParser { strict: true, ..Self::default() }
    }

    /// Advances as far as `ahead` allows. `ahead` always begins at the record's first byte and only
    /// grows between calls. `left` is the total number of bytes that can ever become available, if
    /// known.
    pub fn advance(&mut self, ahead: &[u8], left: Option<u64>) -> Progress {
        loop {
            let at = self.outline.span;
            let rest = usize::try_from(at).ok().and_then(|at| ahead.get(at..)).unwrap_or_default();
            let Some(header) = rest.first_chunk() else {
                match left {
                    Some(end) if end <= at && self.outline.parts > 0 => {
                        return self.broken(FaultKind::PartMissing);
                    }
                    Some(end) if end.saturating_sub(at) < PartHeader::SIZE as u64 => {
                        return self.broken(FaultKind::HeaderCut(end.saturating_sub(at)));
                    }
                    _ => return Progress::Needs(at + PartHeader::SIZE as u64),
                }
            };
            let Some(part) = PartHeader::parse(*header) else {
                let found = *header.first_chunk().unwrap_or(&[0; 4]);
                return self.broken(FaultKind::Magic(found));
            };
            if self.strict && self.outline.parts == 0 && !part.kind.begins_record() {
                return self.broken(FaultKind::Inside(part.kind.flag()));
            }
            let end = at + part.size();
            if let Some(total) = left.filter(|&total| end > total) {
                let left = total - at - PartHeader::SIZE as u64;
                let need = part.padded_length();
                return self.broken(FaultKind::PayloadCut { length: part.length, need, left });
            }
            let body = usize::try_from(part.size()).ok().and_then(|size| rest.get(PartHeader::SIZE..size));
            let Some(body) = body else { return Progress::Needs(end) };
            self.judge(part, body);
            self.outline.span = end;
            self.outline.parts += 1;
            self.outline.length += u64::from(part.length);
            if part.kind.ends_record() {
                return Progress::Complete(self.outline);
            }
            self.outline.length += MAGIC_BYTES.len() as u64;
        }
    }

    /// Same as [`advance`](RecordParser::advance), with all the data available.
    pub fn finish(mut self, all: &[u8]) -> Result<Outline, Fault> {
        match self.advance(all, Some(all.len() as u64)) {
            Progress::Complete(outline) => Ok(outline),
            Progress::Broken(fault) => Err(fault),
            // The length was passed to the walk, so it cannot need more.
            Progress::Needs(_) => Err(self.fault(FaultKind::PartMissing)),
        }
    }

    fn judge(&mut self, part: PartHeader, body: &[u8]) {
        let at = self.outline.span;
        let inside = self.outline.parts > 0;
        let oddities = &mut self.outline.oddities;
        match part.kind {
            PartKind::Reserved(_) => oddities.note(Oddity::ReservedFlag, at),
            PartKind::Middle | PartKind::Last if !inside => oddities.note(Oddity::BeginsInside, at),
            PartKind::First if inside => oddities.note(Oddity::BeginsAgain, at),
            PartKind::Whole if inside => oddities.note(Oddity::WholeInside, at),
            _ => {}
        }
        if !part.kind.ends_record() && !u64::from(part.length).is_multiple_of(ALIGNMENT) {
            oddities.note(Oddity::UnevenPart, at);
        }
        let padding =
            usize::try_from(part.length).ok().and_then(|length| body.get(length..)).unwrap_or_default();
        if padding.iter().any(|&byte| byte != 0) {
            oddities.note(Oddity::Padding, at + PartHeader::SIZE as u64 + u64::from(part.length));
        }
    }

    fn broken(&self, kind: FaultKind) -> Progress {
        Progress::Broken(self.fault(kind))
    }

    fn fault(&self, kind: FaultKind) -> Fault {
        Fault { kind, place: self.outline.span, parts: self.outline.parts }
    }
}

/// The payloads of the parts of the record at the start of `bytes`; anything after it is ignored.
fn payloads<'a>(bytes: &'a [u8], outline: &Outline) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let span = usize::try_from(outline.span).unwrap_or(usize::MAX);
    let mut bytes = bytes.get(..span).unwrap_or(bytes);
    std::iter::from_fn(move || {
        let part = PartHeader::at_start_of(bytes)?;
        let length = usize::try_from(part.length).ok()?;
        let payload = bytes.get(PartHeader::SIZE..)?.get(..length)?;
        bytes = usize::try_from(part.size()).ok().and_then(|size| bytes.get(size..)).unwrap_or_default();
        Some(payload)
    })
}

/// Notes the unescaped magics in the record at the start of `bytes`.
///
/// This is separate from the walk because it touches every byte: a walk may fail, and the same
/// bytes may be walked again.
pub fn note_unescaped_magics(bytes: &[u8], outline: &mut Outline) {
    let mut at = 0;
    for payload in payloads(bytes, outline) {
        for place in aligned_magics(payload) {
            outline.oddities.note(Oddity::UnescapedMagic, at + (PartHeader::SIZE + place) as u64);
        }
        at += (PartHeader::SIZE + payload.len()).next_multiple_of(MAGIC_BYTES.len()) as u64;
    }
}

/// The record with that outline at the start of `bytes`: borrowed if it is a single part, otherwise
/// joined into `scratch`. `bytes` may continue past the end of the record.
///
/// # Errors
/// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
pub fn join_into<'a>(
    bytes: &'a [u8],
    outline: &Outline,
    scratch: &'a mut Vec<u8>,
) -> crate::base::Result<&'a [u8]> {
    if outline.parts == 1 {
        return Ok(payloads(bytes, outline).next().unwrap_or_default());
    }
    scratch.clear();
    // The outline comes from walking these bytes, so its length cannot exceed theirs.
    reserve(scratch, usize::try_from(outline.length).unwrap_or(bytes.len()).min(bytes.len()))?;
    for (number, payload) in payloads(bytes, outline).enumerate() {
        if number > 0 {
            scratch.extend_from_slice(&MAGIC_BYTES);
        }
        scratch.extend_from_slice(payload);
    }
    Ok(scratch)
}

/// Same as [`join_into`], but allocates when parts must be joined.
///
/// # Errors
/// Same as [`join_into`].
pub fn join<'a>(bytes: &'a [u8], outline: &Outline) -> crate::base::Result<Cow<'a, [u8]>> {
    if outline.parts == 1 {
        return Ok(Cow::Borrowed(payloads(bytes, outline).next().unwrap_or_default()));
    }
    let mut record = Vec::new();
    join_into(bytes, outline, &mut record)?;
    Ok(Cow::Owned(record))
}

/// Offsets of the magic in `payload` at multiples of 4.
pub fn aligned_magics(payload: &[u8]) -> impl Iterator<Item = usize> {
    // The magic does not overlap with itself, so the search misses no occurrence.
    FINDER.find_iter(payload).filter(|place| place.is_multiple_of(MAGIC_BYTES.len()))
}

/// The parts a record is written as: headers and payloads, in order. Padding follows the last one.
///
/// The record must not be longer than [`MAX_RECORD`].
pub fn split(record: &[u8]) -> impl Iterator<Item = (PartHeader, &[u8])> {
    let mut magics = aligned_magics(record);
    let mut begin = Some(0);
    let mut number = 0u64;
    std::iter::from_fn(move || {
        let from = begin?;
        let cut = magics.next();
        let payload = record.get(from..cut.unwrap_or(record.len()))?;
        begin = cut.map(|cut| cut + MAGIC_BYTES.len());
        let kind = match (number, cut) {
            (0, None) => PartKind::Whole,
            (0, Some(_)) => PartKind::First,
            (_, Some(_)) => PartKind::Middle,
            (_, None) => PartKind::Last,
        };
        number += 1;
        Some((PartHeader { kind, length: u32::try_from(payload.len()).ok()? }, payload))
    })
}

/// The zero bytes that follow a payload of that length.
pub fn padding(length: u32) -> &'static [u8] {
    match length % 4 {
        0 => &[],
        1 => &[0; 3],
        2 => &[0; 2],
        _ => &[0; 1],
    }
}

/// The first offset in `bytes` at which a record may begin: an aligned magic whose part is whole or
/// the first. `bytes` begins at `offset` in the file.
pub fn find_record(bytes: &[u8], offset: u64) -> Option<usize> {
    FINDER.find_iter(bytes).find(|&place| {
        (offset + place as u64).is_multiple_of(ALIGNMENT)
            && bytes
                .get(place..)
                .and_then(PartHeader::at_start_of)
                .is_some_and(|part| part.kind.begins_record())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(record: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for (part, payload) in split(record) {
            out.extend_from_slice(&part.to_bytes());
            out.extend_from_slice(payload);
            out.extend_from_slice(padding(part.length));
        }
        out
    }

    #[test]
    fn a_magic_at_an_aligned_place_cuts_the_record_and_any_other_does_not() {
        let aligned = [b"abcd", &MAGIC_BYTES[..], b"e"].concat();
        let kinds: Vec<_> = split(&aligned).map(|(part, payload)| (part.kind, payload.to_vec())).collect();
        assert_eq!(kinds, [(PartKind::First, b"abcd".to_vec()), (PartKind::Last, b"e".to_vec())]);
        let unaligned = [b"abc", &MAGIC_BYTES[..]].concat();
        assert_eq!(split(&unaligned).count(), 1);
    }

    #[test]
    fn a_record_of_magics_only_comes_back() {
        for count in 0..4 {
            let record = MAGIC_BYTES.repeat(count);
            let bytes = written(&record);
            let outline = RecordParser::new().finish(&bytes).unwrap();
            assert_eq!(outline.span, bytes.len() as u64);
            assert_eq!(outline.parts, count as u64 + 1);
            assert_eq!(join(&bytes, &outline).unwrap(), record);
        }
    }

    #[test]
    fn a_record_ends_with_its_last_part_whatever_follows() {
        let record = [b"abcd", &MAGIC_BYTES[..], b"e"].concat();
        let bytes = [written(&record), written(b"next"), written(&record)].concat();
        let outline = RecordParser::new().finish(&bytes).unwrap();
        assert_eq!(outline.span, written(&record).len() as u64);
        assert_eq!(join(&bytes, &outline).unwrap(), record);
    }

    #[test]
    fn a_walk_asks_for_what_it_needs_and_no_more() {
        let bytes = written(&[b"abcd", &MAGIC_BYTES[..], b"e"].concat());
        let mut walk = RecordParser::new();
        let mut have = 0;
        let outline = loop {
            match walk.advance(&bytes[..have], None) {
                Progress::Needs(need) => have = usize::try_from(need).unwrap(),
                Progress::Complete(outline) => break outline,
                Progress::Broken(fault) => panic!("{fault}"),
            }
        };
        assert_eq!(have, bytes.len());
        assert_eq!(outline.length, 9);
    }

    #[test]
    fn a_length_past_the_end_is_a_fault_at_the_part() {
        let fault =
            RecordParser::new().finish(&[&MAGIC_BYTES[..], &[10, 0, 0, 0], b"abc"].concat()).unwrap_err();
        assert_eq!(fault.place, 0);
        assert_eq!(fault.to_string(), "part length 10 (12 bytes with padding) exceeds the 3 bytes left");
    }
}
