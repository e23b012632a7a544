//! The pairs of a header block.
//!
//! ```text
//! header   value(unsigned: number of pairs) { value(string: key) value(any) }
//! value    01 byte | 02 varint | 03 uvarint | 04 03 uvarint(length) bytes
//!          bool      signed      unsigned     string
//! ```
//! Two keys are reserved: `trailer` (a bool: the file ends with a trailer block) and `transformer`
//! (a string, once per transformer, in order of application).

use super::layout::{put_uvarint, unzigzag, uvarint, zigzag};
use super::transform::Transform;
use crate::base::{Error, ErrorKind, Result, Value};
use bstr::{BStr, BString};

/// The key that says whether the file ends with a trailer block.
pub const TRAILER_KEY: &str = "trailer";
/// The key that names a transformer.
pub const TRANSFORMER_KEY: &str = "transformer";

/// More pairs than any real header has. A pair takes far more memory than it takes bytes in the
/// file.
const MAX_PAIRS: u64 = 1 << 16;
/// The size of a pair of an empty key and a bool.
const SMALLEST_PAIR: u64 = 5;

const BOOL: u8 = 1;
const SIGNED: u8 = 2;
const UNSIGNED: u8 = 3;
const STRING: u8 = 4;

/// The pairs of a file's header, in order. Keys may repeat.
///
/// ```
/// use anyrec::format::grail::Header;
/// use anyrec::Value;
///
/// let mut header = Header::default();
/// header.push("created by", Value::Text("a test".into()));
/// header.push("trailer", Value::Bool(true));
/// assert!(header.has_trailer());
/// assert_eq!(Header::decode(&header.encode())?, header);
/// # Ok::<(), anyrec::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    pairs: Vec<(BString, Value)>,
}

impl Header {
    /// Appends a pair. An existing pair with the same key is kept.
    pub fn push(&mut self, key: impl Into<BString>, value: Value) {
        self.pairs.push((key.into(), value));
    }

    /// The pairs, in order.
    pub fn pairs(&self) -> &[(BString, Value)] {
        &self.pairs
    }

    /// The first value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Whether the header declares a trailer. The first `trailer` pair decides.
    pub fn has_trailer(&self) -> bool {
        self.get(TRAILER_KEY) == Some(&Value::Bool(true))
    }

    /// Inverts the `trailer` declaration without changing the header's length.
    pub(super) fn withdraw_trailer(&mut self) {
        if let Some((_, value)) = self.pairs.iter_mut().find(|(key, _)| key == TRAILER_KEY) {
            *value = Value::Bool(false);
        }
    }

    /// The `transformer` entries, in order of application.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) for an entry that is not a UTF-8 string.
    pub fn transformers(&self) -> Result<Vec<Transform>> {
        let named = self.pairs.iter().filter(|(key, _)| key == TRANSFORMER_KEY);
        named
            .map(|(_, value)| match value {
                Value::Text(text) => std::str::from_utf8(text)
                    .map(Transform::from)
                    .map_err(|_| Error::corrupt(format!("transformer {text:?} is not UTF-8"))),
                other => Err(Error::corrupt(format!("a transformer's name is a string, not {other:?}"))),
            })
            .collect()
    }

    /// Encodes the header block's only item.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_unsigned(self.pairs.len() as u64, &mut out);
        for (key, value) in &self.pairs {
            put_string(key.as_ref(), &mut out);
            match value {
                Value::Bool(value) => out.extend([BOOL, u8::from(*value)]),
                Value::Int(value) => {
                    out.push(SIGNED);
                    put_uvarint(zigzag(*value), &mut out);
                }
                Value::Uint(value) => put_unsigned(*value, &mut out),
                Value::Text(value) => put_string(value.as_ref(), &mut out),
            }
        }
        out
    }

    /// Decodes the header block's only item. Bytes after the last pair are ignored, as in the
    /// original.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) for values that are truncated or of unknown
    /// type.
    pub fn decode(item: &[u8]) -> Result<Self> {
        let mut decoder = Decoder { rest: item };
        let count = match decoder.value()? {
            Value::Uint(count) => count,
            other => return Err(Error::corrupt(format!("the number of header pairs is {other:?}"))),
        };
        let left = decoder.rest.len() as u64;
        if count > left / SMALLEST_PAIR {
            return Err(Error::corrupt(format!(
                "{count} pairs do not fit in the {left} bytes of the header"
            )));
        }
        if count > MAX_PAIRS {
            let message = format!("{count} header pairs are over the limit of {MAX_PAIRS}");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let mut header = Header::default();
        for _ in 0..count {
            let key = match decoder.value()? {
                Value::Text(key) => key,
                other => return Err(Error::corrupt(format!("a header key is a string, not {other:?}"))),
            };
            header.pairs.push((key, decoder.value()?));
        }
        Ok(header)
    }
}

fn put_unsigned(value: u64, out: &mut Vec<u8>) {
    out.push(UNSIGNED);
    put_uvarint(value, out);
}

fn put_string(value: &BStr, out: &mut Vec<u8>) {
    out.push(STRING);
    put_unsigned(value.len() as u64, out);
    out.extend_from_slice(value);
}

struct Decoder<'a> {
    rest: &'a [u8],
}

impl Decoder<'_> {
    fn byte(&mut self) -> Result<u8> {
        let (&byte, rest) =
            self.rest.split_first().ok_or_else(|| Error::corrupt("the header ends within a value"))?;
        self.rest = rest;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64> {
        let (value, taken) =
            uvarint(self.rest).ok_or_else(|| Error::corrupt("a number in the header is not readable"))?;
        self.rest = self.rest.get(taken..).unwrap_or_default();
        Ok(value)
    }

    fn value(&mut self) -> Result<Value> {
        Ok(match self.byte()? {
            BOOL => Value::Bool(self.byte()? != 0),
            SIGNED => Value::Int(unzigzag(self.number()?)),
            UNSIGNED => Value::Uint(self.number()?),
            STRING => Value::Text(self.string()?),
            other => return Err(Error::corrupt(format!("header value type {other} is not known"))),
        })
    }

    fn string(&mut self) -> Result<BString> {
        match self.byte()? {
            UNSIGNED => {}
            other => {
                return Err(Error::corrupt("a string in the header begins with its length's type")
                    .expected_found(UNSIGNED, other));
            }
        }
        let length = self.number()?;
        let (text, rest) = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length))
            .ok_or_else(|| {
                Error::corrupt(format!("a string of {length} bytes exceeds the header's {}", self.rest.len()))
            })?;
        self.rest = rest;
        Ok(text.into())
    }
}
