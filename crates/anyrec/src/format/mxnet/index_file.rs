//! The index file (`.idx`): which key is at which byte offset.
//!
//! ```text
//! line := key TAB offset LF
//! ```
//!
//! Read as the original reads it: white space around a line is stripped, columns are cut at
//! tabs and further ones ignored, numbers may have white space around them, CRLF and lone CR end
//! lines too, and the last line needs no end. A key may occur again: [`Index::keys`] keeps all of
//! them in the order of the lines, [`Index::get`] knows the last. Kinder than the original: blank
//! lines are passed over.
//!
//! Keys are whole numbers, or text for those who chose that. Offsets are not held against the
//! data file here; [`Index::get`] answers what the file says.

use crate::base::memory::check_available;
use crate::base::{Error, Key, Result};
use crate::io::{Access, open_file};
use crate::threads::fork::Once;
use bstr::{BStr, BString, ByteSlice};
use std::path::Path;

/// Bytes of memory that an entry takes while the file is read, and sorted afterwards, at most.
const ENTRY: usize = 96;

/// What a writer stores that could not find out where it was: -1, as an unsigned number.
pub const LOST_OFFSET: u64 = u64::MAX;

/// What keys of an index file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyType {
    /// Whole numbers (the original's default).
    Int,
    /// Text.
    Text,
}

impl KeyType {
    /// `key` as a key of this type, as the original converts it: `"7"` is the number 7 and the
    /// number 7 is the text `7`.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a text that is no number.
    pub fn apply(self, key: &Key) -> Result<Key> {
        match (self, key) {
            (KeyType::Int, Key::Text(text)) => parse_int(text)
                .map(Key::Int)
                .ok_or_else(|| Error::invalid(format!("key {text:?} is not a whole number"))),
            (KeyType::Text, Key::Int(number)) => Ok(Key::Text(number.to_string().into())),
            _ => Ok(key.clone()),
        }
    }
}

/// An index file, in memory.
///
/// ```
/// use anyrec::Key;
/// use anyrec::format::mxnet::Index;
///
/// let index = Index::parse("train.idx", b"0\t0\r\n7\t1548\n7\t4804", None)?;
/// assert_eq!(index.keys().collect::<Vec<_>>(), [Key::Int(0), Key::Int(7), Key::Int(7)]);
/// assert_eq!(index.get(&Key::Int(7)), Some(4804));
/// assert_eq!(index.to_bytes()?, b"0\t0\n7\t1548\n7\t4804\n");
/// # Ok::<(), anyrec::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Index {
    keys: Keys,
    offsets: Vec<u64>,
    /// Line and text of the first key that is no number, where the type was left open.
    first_text: Option<(u64, BString)>,
    /// Entries sorted by key, equal ones by line; empty if they are sorted already.
    by_key: Once<Vec<usize>>,
    /// Entries sorted by offset, equal ones by line.
    by_offset: Once<Vec<usize>>,
}

/// Keys in the order of the lines. Most files fit the first kind, at 8 bytes a key.
#[derive(Debug, Clone, PartialEq)]
enum Keys {
    Small(Vec<i64>),
    Large(Vec<i128>),
    Text { bytes: Vec<u8>, ends: Vec<usize> },
}

/// Two indexes are equal when they say the same, in the same order.
impl PartialEq for Index {
    fn eq(&self, other: &Self) -> bool {
        self.keys == other.keys && self.offsets == other.offsets
    }
}

/// Why a line cannot be read.
enum LineFault {
    Key,
    Other(Error),
}

impl Index {
    /// An index without entries.
    pub fn new(key_type: KeyType) -> Self {
        let keys = match key_type {
            KeyType::Int => Keys::Small(Vec::new()),
            KeyType::Text => Keys::Text { bytes: Vec::new(), ends: Vec::new() },
        };
        Index { keys, offsets: Vec::new(), first_text: None, by_key: Once::new(), by_offset: Once::new() }
    }

    /// Reads the text of an index file called `name` in messages. Without a key type the keys
    /// are numbers if all of them are, else text.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) with the number of the first line that cannot be
    /// read.
    pub fn parse(name: &str, text: &[u8], key_type: Option<KeyType>) -> Result<Self> {
        let failed = |(line, error): (u64, Error)| {
            Error::corrupt(format!("line {line}: {}", error.message())).in_file(name).with_hint(
                "the old index file is needed for its keys: one that is made from the data has image ids or record \
                 numbers",
            )
        };
        let first_try = key_type.unwrap_or(KeyType::Int);
        match Self::parse_as(text, first_try) {
            Ok(index) => Ok(index),
            Err((number, LineFault::Other(error), _)) => Err(failed((number, error))),
            Err((number, LineFault::Key, key)) if key_type.is_some() => {
                Err(failed((number, Error::corrupt(format!("key {key:?} is not a whole number")))))
            }
            Err((number, LineFault::Key, key)) => match Self::parse_as(text, KeyType::Text) {
                Ok(index) => Ok(Index { first_text: Some((number, key)), ..index }),
                Err((number, LineFault::Other(error), _)) => Err(failed((number, error))),
                Err((number, LineFault::Key, key)) => {
                    Err(failed((number, Error::corrupt(format!("key {key:?} cannot be read")))))
                }
            },
        }
    }

    /// Reads an index file.
    ///
    /// # Errors
    /// As [`Index::parse`], or what the system says.
    pub fn load(path: &Path, access: Access, key_type: Option<KeyType>) -> Result<Self> {
        let source = open_file(path, access)?;
        let text = source.view(0..source.len())?;
        let entries = memchr::memchr_iter(b'\n', &text).count();
        check_available(entries.saturating_mul(ENTRY)).map_err(|error| error.in_file(source.name()))?;
        let parsed = Self::parse(source.name(), &text, key_type);
        source.check_unchanged().and(parsed)
    }

    fn parse_as(text: &[u8], key_type: KeyType) -> std::result::Result<Self, (u64, LineFault, BString)> {
        let mut index = Index::new(key_type);
        let mut lines = Lines(text);
        for number in 1.. {
            if let Keys::Small(keys) = &mut index.keys
                && let Some((key, offset, rest)) = plain_line(lines.0)
            {
                keys.push(key);
                index.offsets.push(offset);
                lines.0 = rest;
                continue;
            }
            let Some(line) = lines.next() else { break };
            let line = strip(line);
            if line.is_empty() {
                continue;
            }
            let (key, rest) = match memchr::memchr(b'\t', line) {
                Some(tab) => (line.get(..tab).unwrap_or_default(), line.get(tab + 1..).unwrap_or_default()),
                None => (line, &[][..]),
            };
            let entry = match memchr::memchr(b'\t', rest) {
                Some(tab) => rest.get(..tab).unwrap_or_default(),
                None => rest,
            };
            let fault = |fault| (number, fault, BString::from(key));
            let offset = parse_offset(entry, line).map_err(|error| fault(LineFault::Other(error)))?;
            index.push_raw(key, offset).map_err(|()| fault(LineFault::Key))?;
        }
        index.offsets.shrink_to_fit();
        if let Keys::Small(keys) = &mut index.keys {
            keys.shrink_to_fit();
        }
        Ok(index)
    }

    /// Adds an entry read from a line; an error if the key is no number and should be one.
    fn push_raw(&mut self, key: &[u8], offset: u64) -> std::result::Result<(), ()> {
        match &mut self.keys {
            Keys::Text { bytes, ends } => {
                bytes.extend_from_slice(key);
                ends.push(bytes.len());
            }
            Keys::Small(keys) => match parse_small(key) {
                Some(number) => keys.push(number),
                None => self.push_int(parse_int(key).ok_or(())?),
            },
            Keys::Large(keys) => keys.push(parse_int(key).ok_or(())?),
        }
        self.offsets.push(offset);
        Ok(())
    }

    fn push_int(&mut self, number: i128) {
        match (&mut self.keys, i64::try_from(number)) {
            (Keys::Small(keys), Ok(number)) => keys.push(number),
            (Keys::Small(keys), Err(_)) => {
                let mut large: Vec<i128> = keys.iter().copied().map(i128::from).collect();
                large.push(number);
                self.keys = Keys::Large(large);
            }
            (Keys::Large(keys), _) => keys.push(number),
            (Keys::Text { bytes, ends }, _) => {
                bytes.extend_from_slice(number.to_string().as_bytes());
                ends.push(bytes.len());
            }
        }
    }

    /// Adds an entry at the end; the key is converted to the index's type.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a key that is not of the type, or that a line
    /// cannot hold.
    pub fn push(&mut self, key: &Key, offset: u64) -> Result<()> {
        match self.key_type().apply(key)? {
            Key::Int(number) => self.push_int(number),
            Key::Text(text) => {
                check_text(text.as_ref())?;
                if let Keys::Text { bytes, ends } = &mut self.keys {
                    bytes.extend_from_slice(&text);
                    ends.push(bytes.len());
                }
            }
        }
        self.offsets.push(offset);
        self.by_key = Once::new();
        self.by_offset = Once::new();
        Ok(())
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// What the keys are.
    pub fn key_type(&self) -> KeyType {
        match self.keys {
            Keys::Small(_) | Keys::Large(_) => KeyType::Int,
            Keys::Text { .. } => KeyType::Text,
        }
    }

    /// Line number and key that made all keys text, where the type was left open.
    pub fn first_text_key(&self) -> Option<(u64, &BStr)> {
        self.first_text.as_ref().map(|(line, key)| (*line, key.as_ref()))
    }

    /// Key of entry `entry`, in the order of the lines.
    pub fn key(&self, entry: usize) -> Option<Key> {
        match &self.keys {
            Keys::Small(keys) => keys.get(entry).map(|&key| Key::Int(key.into())),
            Keys::Large(keys) => keys.get(entry).copied().map(Key::Int),
            Keys::Text { .. } => self.text(entry).map(|key| Key::Text(key.into())),
        }
    }

    fn text(&self, entry: usize) -> Option<&[u8]> {
        let Keys::Text { bytes, ends } = &self.keys else { return None };
        let begin = entry.checked_sub(1).map_or(Some(0), |before| ends.get(before).copied())?;
        bytes.get(begin..*ends.get(entry)?)
    }

    /// The keys in the order of the lines, repeated ones included.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = Key> {
        (0..self.len()).map(|entry| self.key(entry).unwrap_or(Key::Int(0)))
    }

    /// The offsets in the order of the lines.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Entries whose offset is [`LOST_OFFSET`].
    pub fn lost(&self) -> usize {
        self.offsets.iter().filter(|&&offset| offset == LOST_OFFSET).count()
    }

    /// Offset of `key`: that of the last line with it. The key is converted to the index's type.
    pub fn get(&self, key: &Key) -> Option<u64> {
        self.find(key).and_then(|entry| self.offsets.get(entry).copied())
    }

    /// Last entry with that key.
    pub fn find(&self, key: &Key) -> Option<usize> {
        let order = self.by_key.get_or_init(|| match &self.keys {
            Keys::Small(keys) => order_of(keys.len(), |entry| keys.get(entry)),
            Keys::Large(keys) => order_of(keys.len(), |entry| keys.get(entry)),
            Keys::Text { ends, .. } => order_of(ends.len(), |entry| self.text(entry)),
        });
        let nth = |rank: usize| if order.is_empty() { Some(rank) } else { order.get(rank).copied() };
        match (&self.keys, self.key_type().apply(key).ok()?) {
            (Keys::Small(keys), Key::Int(number)) => {
                let number = i64::try_from(number).ok()?;
                last_equal(self.len(), &number, |rank| keys.get(nth(rank)?)).and_then(nth)
            }
            (Keys::Large(keys), Key::Int(number)) => {
                last_equal(self.len(), &number, |rank| keys.get(nth(rank)?)).and_then(nth)
            }
            (Keys::Text { .. }, Key::Text(text)) => {
                let text: &[u8] = text.as_ref();
                last_equal(self.len(), text, |rank| self.text(nth(rank)?)).and_then(nth)
            }
            _ => None,
        }
    }

    /// Key of the record at `offset`: that of the last line with it.
    pub fn key_at(&self, offset: u64) -> Option<Key> {
        let order = self.offset_order();
        let nth = |rank: usize| if order.is_empty() { Some(rank) } else { order.get(rank).copied() };
        let entry = last_equal(self.len(), &offset, |rank| self.offsets.get(nth(rank)?)).and_then(nth)?;
        self.key(entry)
    }

    /// The next offset in file order after `offset`.
    pub(super) fn offset_after(&self, offset: u64) -> Option<u64> {
        let order = self.offset_order();
        let nth = |rank: usize| match order.is_empty() {
            true => self.offsets.get(rank),
            false => order.get(rank).and_then(|&entry| self.offsets.get(entry)),
        };
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match nth(middle) {
                Some(&found) if found <= offset => low = middle + 1,
                _ => high = middle,
            }
        }
        nth(low).copied()
    }

    /// How many records have another key here than in the other index.
    pub fn keys_unlike(&self, other: &Index) -> u64 {
        let differs =
            |&offset: &u64| other.key_at(offset).is_some_and(|key| self.key_at(offset) != Some(key));
        self.sorted_offsets().iter().filter(|offset| differs(offset)).count() as u64
    }

    /// The offsets in file order, each once, lost ones left out.
    pub fn sorted_offsets(&self) -> Vec<u64> {
        let mut sorted = self.offsets.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.last() == Some(&LOST_OFFSET) {
            sorted.pop();
        }
        sorted
    }

    fn offset_order(&self) -> &[usize] {
        self.by_offset.get_or_init(|| order_of(self.len(), |entry| self.offsets.get(entry)))
    }

    /// The text of the file, byte for byte as the original writes it.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a key that a line cannot hold (possible only
    /// for one that was read from a file nobody could have written).
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        for (key, &offset) in self.keys().zip(&self.offsets) {
            append_line(&mut text, &key, offset)?;
        }
        Ok(text)
    }
}

/// Whether a file begins as index files do: with a line of a key, a tab and an offset. Any other
/// file may have that name too (IDX files do).
pub(super) fn looks_like_index(path: &Path) -> bool {
    use std::io::Read;
    let mut head = Vec::new();
    let opened =
        std::fs::metadata(path).is_ok_and(|found| found.is_file()).then(|| std::fs::File::open(path));
    let Some(Ok(file)) = opened else { return false };
    if file.take(4096).read_to_end(&mut head).is_err() {
        return false;
    }
    let Some(line) = Lines(&head).map(strip).find(|line| !line.is_empty()) else {
        // Nothing but white space: the index of a file without records.
        return true;
    };
    let mut fields = line.split(|&byte| byte == b'\t');
    fields.next().is_some_and(|key| !key.is_empty())
        && fields.next().is_some_and(|offset| parse_offset(offset, line).is_ok())
}

/// Adds the line of one record to the text of an index file.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) for a key that could not be read back.
pub fn append_line(text: &mut Vec<u8>, key: &Key, offset: u64) -> Result<()> {
    match key {
        Key::Int(number) => match u64::try_from(*number) {
            Ok(number) => append_digits(text, number),
            Err(_) => text.extend_from_slice(number.to_string().as_bytes()),
        },
        Key::Text(key) => {
            check_text(key.as_ref())?;
            text.extend_from_slice(key);
        }
    }
    text.push(b'\t');
    append_digits(text, offset);
    text.push(b'\n');
    Ok(())
}

/// Adds a number in decimal: a line for every record is written this way.
fn append_digits(text: &mut Vec<u8>, mut number: u64) {
    /// Digits of the largest number.
    const MOST: usize = 20;
    let mut digits = [0; MOST];
    let mut begin = MOST;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10).to_le_bytes()[0];
        number /= 10;
        begin -= 1;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(digits.get(begin..).unwrap_or_default());
}

/// Refuses keys that a reader of the line would not get back.
fn check_text(key: &BStr) -> Result<()> {
    let broken = if key.is_empty() {
        "is empty"
    } else if key.find_byteset(b"\t\n\r").is_some() {
        "holds a tab or a line end"
    } else if strip(key).first() != key.first() {
        "begins with white space"
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!("key {key:?} {broken}, which an index file cannot hold")))
}

/// The lines of a text; LF, CRLF and CR end one.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = memchr::memchr2(b'\n', b'\r', self.0).unwrap_or(self.0.len());
        let (line, rest) = self.0.split_at_checked(end).unwrap_or((self.0, &[]));
        self.0 = rest.strip_prefix(b"\r\n").or_else(|| rest.get(1..)).unwrap_or_default();
        Some(line)
    }
}

/// What Python's `str.strip` takes off both ends.
pub(super) fn strip(text: &[u8]) -> &[u8] {
    text.trim_with(|character| character.is_whitespace() || ('\x1c'..='\x1f').contains(&character))
}

/// Key, offset and what follows, of text that begins with a line as nearly all are: digits, a tab,
/// digits. The one pass over them is what opening a large index file costs.
fn plain_line(text: &[u8]) -> Option<(i64, u64, &[u8])> {
    let (key, rest) = leading_digits(text, b'\t')?;
    let (offset, rest) = leading_digits(rest, b'\n')?;
    Some((i64::try_from(key).ok()?, offset, rest))
}

/// The number that text begins with, up to the byte `end`, and what follows that.
fn leading_digits(text: &[u8], end: u8) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (at, &byte) in text.iter().take(19).enumerate() {
        match byte {
            b'0'..=b'9' if at < 18 => number = number * 10 + u64::from(byte - b'0'),
            _ if byte == end && at > 0 => return Some((number, text.get(at + 1..)?)),
            _ => return None,
        }
    }
    None
}

/// Plain digits with an optional minus, short enough for an `i64`: nearly every key there is.
fn parse_small(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut number = 0i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -number } else { number })
}

/// A whole number as Python's `int` reads it: white space around, a sign, single underscores
/// between digits.
pub(super) fn parse_int(text: &[u8]) -> Option<i128> {
    let text = strip(text);
    let (negative, digits) = match text.split_first()? {
        (b'-', digits) => (true, digits),
        (b'+', digits) => (false, digits),
        _ => (false, text),
    };
    let mut number = 0i128;
    let mut after_digit = false;
    for &byte in digits {
        match byte {
            b'0'..=b'9' => {
                let digit = i128::from(byte - b'0');
                let digit = if negative { -digit } else { digit };
                number = number.checked_mul(10)?.checked_add(digit)?;
                after_digit = true;
            }
            b'_' if after_digit => after_digit = false,
            _ => return None,
        }
    }
    after_digit.then_some(number)
}

/// The offset column of `line`.
fn parse_offset(column: &[u8], line: &[u8]) -> Result<u64> {
    if let Some(number) = parse_small(column).and_then(|number| u64::try_from(number).ok()) {
        return Ok(number);
    }
    if column.is_empty() {
        return Err(Error::corrupt(format!("no tab and byte offset in {:?}", shortened(line))));
    }
    match parse_int(column) {
        Some(number) => u64::try_from(number)
            .map_err(|_| Error::corrupt(format!("byte offset {number} is outside 0 to 2^64 - 1"))),
        None => Err(Error::corrupt(format!("byte offset {:?} is not a whole number", shortened(column)))),
    }
}

/// A key as messages show it.
pub(super) fn show(key: &Key) -> String {
    match key {
        Key::Int(number) => number.to_string(),
        Key::Text(text) => format!("{:?}", shortened(text)),
    }
}

/// As much of a file's text as a message can bear.
pub(super) fn shortened(text: &[u8]) -> BString {
    match text.get(..60) {
        Some(beginning) => BString::from([beginning, b"..."].concat()),
        None => BString::from(text),
    }
}

/// Entry numbers sorted by value, equal ones by number; empty where that is the order they have.
fn order_of<T: Ord>(count: usize, value: impl Fn(usize) -> Option<T>) -> Vec<usize> {
    if (1..count).all(|entry| value(entry - 1) <= value(entry)) {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&entry| value(entry));
    order
}

/// Last rank whose value equals `wanted`, in ranks sorted by value.
fn last_equal<'a, T: Ord + ?Sized + 'a>(
    count: usize,
    wanted: &T,
    value: impl Fn(usize) -> Option<&'a T>,
) -> Option<usize> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        match value(middle) {
            Some(found) if found <= wanted => low = middle + 1,
            _ => high = middle,
        }
    }
    let last = low.checked_sub(1)?;
    (value(last)? == wanted).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(text: &str) -> Vec<(i128, u64)> {
        let index = Index::parse("x.idx", text.as_bytes(), Some(KeyType::Int)).unwrap();
        let number = |key| match key {
            Key::Int(number) => number,
            Key::Text(text) => panic!("{text}"),
        };
        index.keys().map(number).zip(index.offsets().iter().copied()).collect()
    }

    #[test]
    fn lines_are_read_as_the_original_reads_them() {
        assert_eq!(ints(""), []);
        assert_eq!(ints("1\t2\r\n  3 \t 4 \t extra\n-5\t6"), [(1, 2), (3, 4), (-5, 6)]);
        assert_eq!(ints("1_0\t+8\r007\t12\n\n \t \n"), [(10, 8), (7, 12)]);
        let huge = "170141183460469231731687303715884105727";
        assert_eq!(
            ints(&format!("0\t0\n{huge}\t18446744073709551615\n")),
            [(0, 0), (i128::MAX, LOST_OFFSET)]
        );
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        for (text, message) in [
            ("0\t0\nabc\t4\n", "x.idx: line 2: key \"abc\" is not a whole number"),
            ("0\n", "x.idx: line 1: no tab and byte offset in \"0\""),
            ("0\t0\n\n1\tx\n", "x.idx: line 3: byte offset \"x\" is not a whole number"),
            ("0\t-1\n", "x.idx: line 1: byte offset -1 is outside 0 to 2^64 - 1"),
        ] {
            let error = Index::parse("x.idx", text.as_bytes(), Some(KeyType::Int)).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn keys_are_text_when_one_of_them_is() {
        let index = Index::parse("x.idx", b"7\t0\nx y\t8\n7\t16\n", None).unwrap();
        assert_eq!(index.key_type(), KeyType::Text);
        assert_eq!(index.first_text_key(), Some((2, "x y".into())));
        assert_eq!(index.get(&Key::Text("x y".into())), Some(8));
        assert_eq!(index.get(&Key::Int(7)), Some(16));
        assert_eq!(index.key_at(0), Some(Key::Text("7".into())));
    }

    #[test]
    fn keys_that_a_line_cannot_hold_are_refused() {
        let mut index = Index::new(KeyType::Text);
        for key in ["", "a\tb", "a\n", " a"] {
            assert!(index.push(&Key::Text(key.into()), 0).is_err(), "{key:?}");
        }
        index.push(&Key::Text("a ".into()), 0).unwrap();
        assert_eq!(index.to_bytes().unwrap(), b"a \t0\n");
    }

    #[test]
    fn lookups_work_in_any_order_with_the_last_of_equal_keys() {
        let index = Index::parse("x.idx", b"5\t40\n3\t8\n5\t0\n9223372036854775808\t16\n", None).unwrap();
        assert_eq!(index.get(&Key::Int(5)), Some(0));
        assert_eq!(index.get(&Key::Int(1 << 63)), Some(16));
        assert_eq!(index.get(&Key::Text("3".into())), Some(8));
        assert_eq!(index.get(&Key::Int(4)), None);
        assert_eq!(index.sorted_offsets(), [0, 8, 16, 40]);
        assert_eq!(index.key_at(8), Some(Key::Int(3)));
        assert_eq!(index.key_at(9), None);
        let after = [0, 7, 8, 16, 39, 40].map(|offset| index.offset_after(offset));
        assert_eq!(after, [Some(8), Some(8), Some(16), Some(40), Some(40), None]);
    }

    #[test]
    fn two_million_lines_take_no_time_to_speak_of() {
        let mut text = Vec::new();
        for key in 0..2_000_000u32 {
            append_line(&mut text, &Key::Int(key.into()), u64::from(key) * 10_000).unwrap();
        }
        let begin = std::time::Instant::now();
        let index = Index::parse("x.idx", &text, None).unwrap();
        assert_eq!(index.len(), 2_000_000);
        assert_eq!(index.get(&Key::Int(1_234_567)), Some(12_345_670_000));
        assert!(begin.elapsed() < std::time::Duration::from_secs(5), "{:?}", begin.elapsed());
    }
}
