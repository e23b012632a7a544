//! File names as Python sees them.
//!
//! Python decodes the bytes of a file name with `surrogateescape`: valid UTF-8 is decoded, and
//! every other byte `0x80..=0xff` becomes a lone surrogate `U+DC80..=U+DCFF`. A pickle stores such
//! strings in UTF-8 with `surrogatepass`: a lone surrogate becomes the three bytes it would have if
//! it were a character. Names are bytes here, as in the operating system, and these functions
//! convert between the two.

use bstr::BString;
use std::cmp::Ordering;

/// The first surrogate that represents a byte, minus the first such byte.
const ESCAPE: u32 = 0xdc00;

/// The name as a pickled string: UTF-8 with `surrogatepass`.
pub(super) fn to_pickled(name: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        text.extend_from_slice(chunk.valid().as_bytes());
        for &byte in chunk.invalid() {
            push_code_point(&mut text, ESCAPE + u32::from(byte));
        }
    }
    text
}

/// Decodes the name in a pickled string.
///
/// # Errors
/// A sentence: not UTF-8, or a string that Python never produces from a file name (a surrogate that
/// represents no byte, or escaped bytes that form valid UTF-8). Accepting those would give one name
/// two spellings.
pub(super) fn from_pickled(text: &[u8]) -> Result<BString, &'static str> {
    let mut name = Vec::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let valid = match std::str::from_utf8(rest) {
            Ok(_) => rest.len(),
            Err(error) => error.valid_up_to(),
        };
        let (text, invalid) = rest.split_at_checked(valid).unwrap_or((rest, b""));
        name.extend_from_slice(text);
        rest = match invalid {
            [] => break,
            [0xed, middle @ 0xa0..=0xbf, last @ 0x80..=0xbf, rest @ ..] => {
                let surrogate = 0xd000 | u32::from(middle & 0x3f) << 6 | u32::from(last & 0x3f);
                match surrogate.checked_sub(ESCAPE).map(u8::try_from) {
                    Some(Ok(byte @ 0x80..)) => name.push(byte),
                    _ => return Err("a name holds a surrogate that represents no byte"),
                }
                rest
            }
            _ => return Err("a name is not UTF-8"),
        };
    }
    if name != text && to_pickled(&name) != text {
        return Err("a name escapes bytes that need no escape");
    }
    Ok(name.into())
}

/// Appends a code point in UTF-8, surrogates included (`surrogatepass`).
pub(super) fn push_code_point(text: &mut Vec<u8>, code_point: u32) {
    match char::from_u32(code_point) {
        Some(character) => text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        None => {
            let six = |shift: u32| 0x80 | (code_point >> shift & 0x3f).to_le_bytes()[0];
            text.extend_from_slice(&[0xed, six(6), six(0)]);
        }
    }
}

/// Compares names as Python compares their strings: by code point.
pub(super) fn compare(one: &[u8], other: &[u8]) -> Ordering {
    // UTF-8 bytes sort like code points, and `surrogatepass` preserves that.
    to_pickled(one).cmp(&to_pickled(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_way_to_a_string_and_back() {
        for name in [&b""[..], b"plain", "é😀".as_bytes(), b"bad\xff\xfename", b"\xed\xb3\xbf", b"\xc3"] {
            assert_eq!(from_pickled(&to_pickled(name)).unwrap(), name);
        }
        assert_eq!(to_pickled(b"\xff"), b"\xed\xb3\xbf");
    }

    #[test]
    fn strings_of_no_file_name_are_refused() {
        let cases: [(&[u8], &str); 5] = [
            (b"\xff", "not UTF-8"),
            (b"\xed\xa0\x80", "represents no byte"),
            (b"\xed\xb1\xbf", "represents no byte"),
            (b"\xed\xb4\x80", "represents no byte"),
            (b"\xed\xb3\x83\xed\xb2\xa9", "need no escape"),
        ];
        for (text, reason) in cases {
            let refusal = from_pickled(text).unwrap_err();
            assert!(refusal.contains(reason), "{text:x?}: {refusal}");
        }
    }

    #[test]
    fn names_sort_by_code_point() {
        let mut names = ["😀".as_bytes(), b"\xff", "\u{e000}".as_bytes(), b"a", "\u{d7ff}".as_bytes(), b"B"];
        names.sort_by(|one, other| compare(one, other));
        assert_eq!(
            names,
            [b"B", b"a", "\u{d7ff}".as_bytes(), b"\xff", "\u{e000}".as_bytes(), "😀".as_bytes()]
        );
    }
}
