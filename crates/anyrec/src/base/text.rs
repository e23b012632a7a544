//! Text that is safe to display.

use bstr::ByteSlice;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether a character may appear unescaped in a message: it is neither a control character nor one
/// that hides or reorders the text around it (bidirectional marks, separators, zero-width and tag
/// characters).
///
/// ```
/// assert!(anyrec::is_harmless('é'));
/// assert!(!anyrec::is_harmless('\u{202e}'));
/// ```
pub fn is_harmless(character: char) -> bool {
    !character.is_control()
        && !matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A path as messages show it: characters that could mislead a terminal, and bytes that are not UTF-8,
/// are escaped.
pub(crate) fn shown(path: &Path) -> String {
    let mut name = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_harmless(character) {
                name.push(character);
            } else {
                name.extend(character.escape_default());
            }
        }
        for byte in chunk.invalid().bytes() {
            name.push_str(&format!("\\x{byte:02x}"));
        }
    }
    name
}
