//! Everything that reaches a terminal from a file passes through here.
//!
//! A record, key or name may contain escape sequences that rewrite the screen or the clipboard, or
//! characters that reverse the reading direction. [`escape`] and [`clean`] remove all of them.

use anstyle::{AnsiColor, Style};

pub const RED: Style = AnsiColor::Red.on_default().bold();
pub const GREEN: Style = AnsiColor::Green.on_default().bold();
pub const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
pub const CYAN: Style = AnsiColor::Cyan.on_default().bold();
pub const DIM: Style = Style::new().dimmed();
pub const RESET: anstyle::Reset = anstyle::Reset;

/// Bytes from a file as printable text. Control and invisible characters become `\n` or `\u{..}`,
/// and bytes that are not UTF-8 become `\xNN`.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if anyrec::is_harmless(character) {
                text.push(character);
            } else {
                text.extend(character.escape_default());
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Escapes text that may contain data from a file (such as a message). Line breaks are kept.
pub fn clean(text: &str) -> String {
    text.split('\n').map(|line| escape(line.as_bytes())).collect::<Vec<_>>().join("\n")
}

/// Truncates `text` to `width` characters, with a mark where something is missing.
pub fn shorten(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// A number of bytes in readable form: `1.5 MiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    // A size shown with three digits needs no more precision than `f64` has.
    #[allow(clippy::cast_precision_loss)]
    let mut size = count as f64;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    match UNITS.get(unit) {
        Some(name) if unit > 0 => format!("{size:.1} {name}"),
        _ => format!("{count} B"),
    }
}

/// A number with its thousands separated: `1 234 567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// "1 record", "2 records".
pub fn plural(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_the_cursor_or_the_eye_gets_through() {
        assert_eq!(escape(b"plain \xc3\xa9"), "plain é");
        assert_eq!(escape(b"\x1b[2J\r\n\x07"), "\\u{1b}[2J\\r\\n\\u{7}");
        assert_eq!(escape("a\u{202e}b\u{9b}c".as_bytes()), "a\\u{202e}b\\u{9b}c");
        assert_eq!(escape(b"\xff\xfe"), "\\xff\\xfe");
        assert_eq!(clean("two\nlines\x1b"), "two\nlines\\u{1b}");
    }

    #[test]
    fn sizes_and_counts_read_well() {
        assert_eq!((bytes(0), bytes(1023), bytes(1536)), ("0 B".into(), "1023 B".into(), "1.5 KiB".into()));
        assert_eq!((count(0), count(999), count(1_234_567)), ("0".into(), "999".into(), "1 234 567".into()));
        assert_eq!(shorten("abcdef", 4), "abc…");
    }
}
