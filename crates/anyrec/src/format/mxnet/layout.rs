//! The bytes of a `.rec` file, without I/O.
//!
//! A file is a run of *parts*, each on a 4-byte boundary:
//!
//! ```text
//! part   := magic (u32 le, 0xced7230a) lrec (u32 le) payload padding
//! lrec   := cflag << 29 | length          length < 2^29, padding up to a multiple of 4
//! record := whole(0) | first(1) middle(2)* last(3)
//! ```
//!
//! A record is cut wherever the magic stands in it at a multiple of 4; the four bytes are left
//! out, and put back between the parts on reading. So no aligned magic lies inside a payload, and
//! a reader that lost its way looks for the next aligned magic.
//!
//! [`Walk`] follows the parts of one record and is the only code that does. It is as lax as the
//! original reader: whatever that one reads is a record here, with an [`Oddity`] for each rule
//! that was broken. What the original refuses is a [`Fault`]. Only where somebody else says that a
//! record begins ([`Walk::where_a_record_begins`]) is a middle or last part a fault too: it would
//! pass off the rest of a record as all of it.

use crate::base::memory::reserve;
use memchr::memmem::Finder;
use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

/// The word every part begins with.
pub const MAGIC: u32 = 0xced7_230a;

/// The same word as it stands in the file.
pub const MAGIC_BYTES: [u8; 4] = MAGIC.to_le_bytes();

/// Parts begin on multiples of this, and a record is cut at magics on multiples of this.
pub const ALIGNMENT: u64 = 4;

/// Longest record the format can hold: the length field has 29 bits.
pub const MAX_RECORD: u64 = (1 << 29) - 1;

/// Searching for the magic builds a table; once is enough.
static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(&MAGIC_BYTES));

/// What a part says about its place in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartKind {
    /// The record, whole (cflag 0).
    Whole,
    /// The first of several parts (1).
    First,
    /// Neither the first nor the last (2).
    Middle,
    /// The last of several (3).
    Last,
    /// A number no writer uses (4 to 7); the original reads on as after a middle part.
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

    /// The number in the file.
    pub fn flag(self) -> u8 {
        match self {
            PartKind::Whole => 0,
            PartKind::First => 1,
            PartKind::Middle => 2,
            PartKind::Last => 3,
            PartKind::Reserved(flag) => flag & 7,
        }
    }

    /// Whether a record may begin with such a part.
    pub fn begins_record(self) -> bool {
        matches!(self, PartKind::Whole | PartKind::First)
    }

    /// Whether the record ends with such a part.
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
    /// Bytes of payload, without the padding; below 2^29.
    pub length: u32,
}

impl PartHeader {
    /// Bytes a header takes.
    pub const SIZE: usize = 8;

    /// The header these bytes hold, if they begin with the magic.
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

    /// The header at the beginning of a slice, if there is one.
    #[inline]
    pub fn at_start_of(bytes: &[u8]) -> Option<Self> {
        Self::parse(*bytes.first_chunk()?)
    }

    /// The header as it stands in the file.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let lrec = u32::from(self.kind.flag()) << 29 | (self.length & 0x1fff_ffff);
        (u64::from(lrec) << 32 | u64::from(MAGIC)).to_le_bytes()
    }

    /// The payload in the bytes of the part.
    #[inline]
    pub fn payload(self, part: &[u8]) -> Option<&[u8]> {
        part.get(Self::SIZE..)?.get(..usize::try_from(self.length).ok()?)
    }

    /// Bytes of payload and padding.
    pub fn padded_length(self) -> u64 {
        u64::from(self.length).next_multiple_of(ALIGNMENT)
    }

    /// Bytes of header, payload and padding.
    #[inline]
    pub fn size(self) -> u64 {
        Self::SIZE as u64 + self.padded_length()
    }
}

/// A broken rule that costs no data: the original reads over it, and so do we.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Oddity {
    /// The record begins with a middle or last part.
    BeginsInside,
    /// A part has cflag 4 to 7.
    ReservedFlag,
    /// A first part follows a part that was not the last.
    BeginsAgain,
    /// A whole record follows a part that was not the last, and is taken as the last one.
    WholeInside,
    /// A part other than the last has a length that is no multiple of 4.
    UnevenPart,
    /// Padding bytes are not zero.
    Padding,
    /// The magic stands unescaped at an aligned place of a payload.
    UnescapedMagic,
}

impl Oddity {
    /// All of them, in the order of their numbers.
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
            Oddity::UnevenPart => "a part that is not the last has a length that is no multiple of 4",
            Oddity::Padding => "padding bytes are not zero",
            Oddity::UnescapedMagic => "the magic word stands unescaped in a record",
        })
    }
}

/// The oddities of one record: first place and number of each kind, so that their memory does not
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

    /// Kind, first place (counted from the record's first byte in the file), and how often.
    pub fn iter(&self) -> impl Iterator<Item = (Oddity, u64, u64)> {
        Oddity::ALL
            .into_iter()
            .zip(self.0)
            .filter_map(|(kind, slot)| slot.map(|(at, count)| (kind, at, count)))
    }
}

/// The outline of a record: what its part headers say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outline {
    /// Bytes of file it takes, padding included.
    pub span: u64,
    /// Bytes of the record itself.
    pub length: u64,
    /// Number of parts.
    pub parts: u64,
    /// Rules broken on the way.
    pub oddities: Oddities,
}

/// Why bytes are not a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// Where, counted from the record's first byte in the file.
    pub place: u64,
    /// Intact parts of the record before it.
    pub parts: u64,
}

/// What can be wrong with a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// Not the magic.
    Magic([u8; 4]),
    /// Some bytes of a header, then the end.
    HeaderCut(u64),
    /// A payload (with padding) of `need` bytes where `left` are left.
    PayloadCut {
        /// Length field of the part.
        length: u32,
        /// Bytes needed.
        need: u64,
        /// Bytes there.
        left: u64,
    },
    /// The end, where another part must follow.
    PartMissing,
    /// A part with that cflag where a record is said to begin.
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

/// What a step of a [`Walk`] came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// That many bytes from the record's beginning must be at hand to go on.
    Needs(u64),
    /// The record is complete.
    Complete(Outline),
    /// This is no record.
    Broken(Fault),
}

/// Follows the parts of one record.
#[derive(Debug, Clone, Default)]
pub struct Walk {
    outline: Outline,
    /// The first part must be one that a record begins with.
    strict: bool,
}

impl Walk {
    /// A walk at the beginning of a record.
    pub fn new() -> Self {
        Self::default()
    }

    /// A walk at a place of which an index file, or the caller, says that a record begins there.
    pub fn where_a_record_begins() -> Self {
        Walk { strict: true, ..Self::default() }
    }

    /// Goes on as far as `ahead` allows. `ahead` always begins at the record's first byte and
    /// only grows between calls; `left` is how many bytes there will ever be, where known.
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

    /// As [`advance`](Walk::advance) where all there is lies at hand.
    pub fn finish(mut self, all: &[u8]) -> Result<Outline, Fault> {
        match self.advance(all, Some(all.len() as u64)) {
            Progress::Complete(outline) => Ok(outline),
            Progress::Broken(fault) => Err(fault),
            // The walk was told that nothing more will come.
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

/// The payloads of the parts of a record, which begins `bytes`; what lies behind it is not looked at.
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

/// Notes the magics that stand unescaped in the record that begins `bytes`.
///
/// Apart from the walk, because it touches every byte: a walk may turn out to be in vain, and the
/// same bytes be walked again.
pub fn note_unescaped_magics(bytes: &[u8], outline: &mut Outline) {
    let mut at = 0;
    for payload in payloads(bytes, outline) {
        for place in aligned_magics(payload) {
            outline.oddities.note(Oddity::UnescapedMagic, at + (PartHeader::SIZE + place) as u64);
        }
        at += (PartHeader::SIZE + payload.len()).next_multiple_of(MAGIC_BYTES.len()) as u64;
    }
}

/// The record of that outline, which begins `bytes`: lent where it is one part, else joined into
/// `scratch`. More may follow it in `bytes`: it ends where its last part does.
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
    // The outline was walked over bytes at hand, so its length is bounded by theirs.
    reserve(scratch, usize::try_from(outline.length).unwrap_or(bytes.len()).min(bytes.len()))?;
    for (number, payload) in payloads(bytes, outline).enumerate() {
        if number > 0 {
            scratch.extend_from_slice(&MAGIC_BYTES);
        }
        scratch.extend_from_slice(payload);
    }
    Ok(scratch)
}

/// As [`join_into`], with memory of its own where parts must be joined.
///
/// # Errors
/// As [`join_into`].
pub fn join<'a>(bytes: &'a [u8], outline: &Outline) -> crate::base::Result<Cow<'a, [u8]>> {
    if outline.parts == 1 {
        return Ok(Cow::Borrowed(payloads(bytes, outline).next().unwrap_or_default()));
    }
    let mut record = Vec::new();
    join_into(bytes, outline, &mut record)?;
    Ok(Cow::Owned(record))
}

/// Places of the magic in `payload` at multiples of 4.
pub fn aligned_magics(payload: &[u8]) -> impl Iterator<Item = usize> {
    // The magic has no border, so occurrences never overlap and none is missed.
    FINDER.find_iter(payload).filter(|place| place.is_multiple_of(MAGIC_BYTES.len()))
}

/// The parts a record is written as: headers and payloads, in order; padding follows the last.
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

/// Zero bytes that follow a payload of that length.
pub fn padding(length: u32) -> &'static [u8] {
    match length % 4 {
        0 => &[],
        1 => &[0; 3],
        2 => &[0; 2],
        _ => &[0; 1],
    }
}

/// First place in `bytes` at which a record may begin, if `bytes` begins `offset` bytes into the
/// file: an aligned magic whose part is whole or the first.
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
            let outline = Walk::new().finish(&bytes).unwrap();
            assert_eq!(outline.span, bytes.len() as u64);
            assert_eq!(outline.parts, count as u64 + 1);
            assert_eq!(join(&bytes, &outline).unwrap(), record);
        }
    }

    #[test]
    fn a_record_ends_with_its_last_part_whatever_follows() {
        let record = [b"abcd", &MAGIC_BYTES[..], b"e"].concat();
        let bytes = [written(&record), written(b"next"), written(&record)].concat();
        let outline = Walk::new().finish(&bytes).unwrap();
        assert_eq!(outline.span, written(&record).len() as u64);
        assert_eq!(join(&bytes, &outline).unwrap(), record);
    }

    #[test]
    fn a_walk_asks_for_what_it_needs_and_no_more() {
        let bytes = written(&[b"abcd", &MAGIC_BYTES[..], b"e"].concat());
        let mut walk = Walk::new();
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
        let fault = Walk::new().finish(&[&MAGIC_BYTES[..], &[10, 0, 0, 0], b"abc"].concat()).unwrap_err();
        assert_eq!(fault.place, 0);
        assert_eq!(fault.to_string(), "part length 10 (12 bytes with padding) exceeds the 3 bytes left");
    }
}
