//! JSON that is safe to show on a terminal and that preserves names exactly.
//!
//! Everything that could mislead a terminal (control characters, bidirectional marks and the like)
//! is written as `\uXXXX`, which a JSON parser turns back into the character. In a name that is not
//! UTF-8, each stray byte is written as `\udcXX`, a lone surrogate. Python's `os.fsencode` turns
//! that form back into the original bytes.

use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The key that marks an object as text with stray bytes. No other object uses this key.
const BYTES: &str = "\0bytes";

/// A path, preserved exactly.
pub fn path(path: &Path) -> Value {
    text(path.as_os_str().as_bytes())
}

/// Text that should be UTF-8 but may not be, preserved exactly.
pub fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => json!({ BYTES: bytes }),
    }
}

/// Appends a value to a line.
pub fn write(value: &Value, line: &mut String) {
    match value {
        Value::String(text) => write_text(text.as_bytes(), line),
        Value::Array(values) => {
            line.push('[');
            for (number, value) in values.iter().enumerate() {
                if number > 0 {
                    line.push(',');
                }
                write(value, line);
            }
            line.push(']');
        }
        Value::Object(object) => match stray_bytes(object) {
            Some(bytes) => write_text(&bytes, line),
            None => {
                line.push('{');
                for (number, (key, value)) in object.iter().enumerate() {
                    if number > 0 {
                        line.push(',');
                    }
                    write_text(key.as_bytes(), line);
                    line.push(':');
                    write(value, line);
                }
                line.push('}');
            }
        },
        // Writing to a string cannot fail.
        plain => {
            let _ = write!(line, "{plain}");
        }
    }
}

fn stray_bytes(object: &Map<String, Value>) -> Option<Vec<u8>> {
    let byte = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
    object.get(BYTES)?.as_array()?.iter().map(byte).collect()
}

fn write_text(bytes: &[u8], line: &mut String) {
    line.push('"');
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => line.push_str("\\\""),
                '\\' => line.push_str("\\\\"),
                '\n' => line.push_str("\\n"),
                '\r' => line.push_str("\\r"),
                '\t' => line.push_str("\\t"),
                harmless if anyrec::is_harmless(harmless) => line.push(harmless),
                other => {
                    for unit in other.encode_utf16(&mut [0; 2]) {
                        let _ = write!(line, "\\u{unit:04x}");
                    }
                }
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(line, "\\udc{byte:02x}");
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(value: &Value) -> String {
        let mut line = String::new();
        write(value, &mut line);
        line
    }

    #[test]
    fn nothing_that_misleads_a_terminal_gets_through_and_nothing_is_lost() {
        let awkward = "q\"b\\s/ \u{0}\u{1b}\u{7f}\u{85}\u{9b} \u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069} \u{2028}\u{2029}\u{feff} \u{e0001} é漢🙂\n\r\t";
        let value = json!({"a\u{202e}": [awkward, 1, -2.5, null, true, {}], "b": {"c": []}});
        let written = line(&value);
        assert!(written.chars().all(anyrec::is_harmless), "{written}");
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
        assert!(written.contains("é漢🙂") && written.contains("\\u202e") && written.contains("\\u009b"));
    }

    #[test]
    fn stray_bytes_are_lone_surrogates() {
        assert_eq!(line(&text(b"caf\xe9 \xff\x80.ffr")), r#""caf\udce9 \udcff\udc80.ffr""#);
        assert_eq!(line(&text("é\u{200e}".as_bytes())), r#""é\u200e""#);
    }
}
