//! Characters that are safe to display.

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
