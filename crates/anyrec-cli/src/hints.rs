//! The wording of hints for the command line: what to type next.

use anyrec::Hint;
use anyrec::hint::REBUILT_KEYS;
use std::borrow::Cow;

/// What to type next, for a hint from the library.
pub fn words(hint: &Hint) -> String {
    match hint {
        Hint::Damaged { file } => {
            format!("{} lists all damage, {} keeps the intact records", command("verify", file), repair(file))
        }
        Hint::Repair { file, records } => format!("{} keeps the first {records} records", repair(file)),
        Hint::Index { file } => format!("{} writes it again", command("index", file)),
        Hint::RebuildKeys { file } => format!("{} {REBUILT_KEYS}", command("index", file)),
        Hint::IndexDamaged { file } => {
            format!("--skip-damage indexes the intact records; {} makes a sound file", repair(file))
        }
        Hint::Finish { file } => {
            format!("{} publishes the new files, which are complete", command("finish", file))
        }
        Hint::RaiseLimit => format!("raise the limit if the file is trusted: {}", crate::arguments::LIMITS),
        Hint::AllowOverwrite => "choose another name, or allow overwriting with `--force`".to_owned(),
        Hint::NameFormat => {
            "name the format if you know it with `--format`; the file may be damaged at its beginning"
                .to_owned()
        }
        Hint::EscapeNames => "`--escape-names` writes such names escaped".to_owned(),
        Hint::RebuildTree => {
            "if this file was repaired: `anyrec repair --rebuild-tree` makes a tree that fits".to_owned()
        }
        Hint::RewriteTree => "repair with `--rebuild-tree` to rewrite it for the remaining files".to_owned(),
        Hint::WiderLabels => "choose a wider type for the label file with `--label-dtype`".to_owned(),
        Hint::RegisterTransformer => {
            "files with transformers of your own are read by the Python package or the Rust library"
                .to_owned()
        }
        Hint::ConvertLabels => "name their file with `--pairs`".to_owned(),
        Hint::ReadWholeRecords => "read whole records instead of payloads".to_owned(),
        Hint::GiveKey => "give it with `--key-file`: keys are not stored in files".to_owned(),
        Hint::PackImages => "pack a folder of images with `anyrec im2rec`".to_owned(),
        other => other.to_string(),
    }
}

/// `` `anyrec VERB FILE` ``, ready to be pasted into a shell.
pub fn command(verb: &str, file: &str) -> String {
    format!("`anyrec {verb} {}`", shell_word(file))
}

/// `` `anyrec repair FILE -o OUT` ``.
pub fn repair(file: &str) -> String {
    format!("`anyrec repair {} -o OUT`", shell_word(file))
}

/// A file name as one word of a command line: in single quotes if a shell would split it, and
/// prefixed with `./` if it would look like an option.
fn shell_word(file: &str) -> Cow<'_, str> {
    let plain = |character: char| character.is_alphanumeric() || "%+,-./:=@_".contains(character);
    let file: Cow<'_, str> =
        if file.starts_with('-') { format!("./{file}").into() } else { Cow::Borrowed(file) };
    if !file.is_empty() && file.chars().all(plain) {
        return file;
    }
    format!("'{}'", file.replace('\'', r"'\''")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_hint_names_what_only_python_or_rust_has() {
        for hint in Hint::examples() {
            let words = words(&hint);
            for foreign in ["::", "()", "=True", "=...", "Options", "anyrec.", "keyword"] {
                assert!(!words.contains(foreign), "{hint:?}: {words}");
            }
        }
    }

    #[test]
    fn only_names_that_a_shell_would_split_are_quoted() {
        for (file, word) in [
            ("train.rec", "train.rec"),
            ("data/größe_1+2.ffr", "data/größe_1+2.ffr"),
            ("a b.ffr", "'a b.ffr'"),
            ("it's.ffr", r"'it'\''s.ffr'"),
            ("$HOME.rec", "'$HOME.rec'"),
            ("`ls`;*.rec", "'`ls`;*.rec'"),
            ("~/x.rec", "'~/x.rec'"),
            ("-o.rec", "./-o.rec"),
            ("- x.rec", "'./- x.rec'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(file), word);
        }
    }
}
