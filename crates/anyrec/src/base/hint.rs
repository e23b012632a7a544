//! Commands to type, as hints name them: ready to be pasted into a shell.

use std::borrow::Cow;

/// What to do about a limit; the command line and Python add how theirs are called.
pub const LIMIT: &str = "raise the limit if the file is trusted";

/// `` `anyrec VERB FILE` ``.
///
/// ```
/// use anyrec::hint;
///
/// assert_eq!(hint::command("index", "train.rec"), "`anyrec index train.rec`");
/// assert_eq!(hint::command("index", "my photos.rec"), "`anyrec index 'my photos.rec'`");
/// ```
pub fn command(verb: &str, file: &str) -> String {
    format!("`anyrec {verb} {}`", shell_word(file))
}

/// `` `anyrec repair FILE -o OUT` ``.
pub fn repair(file: &str) -> String {
    format!("`anyrec repair {} -o OUT`", shell_word(file))
}

/// What to do about an index file that is missing or does not fit, and which keys that gives.
pub(crate) fn reindex(file: &str) -> String {
    format!(
        "{} makes one whose keys are the ids of the image headers where all differ, else record numbers; other \
         keys cannot be recovered from the data",
        command("index", file)
    )
}

/// What to do about a damaged file that is to be indexed.
pub(crate) fn index_damaged(file: &str) -> String {
    format!("skip the damage to index the intact records, or make a sound file first: {}", repair(file))
}

/// What to do about a damaged file.
pub(crate) fn damaged(file: &str) -> String {
    format!("{} lists all damage, {} keeps the intact records", command("verify", file), repair(file))
}

/// A file's name as one word of a command line: in single quotes where a shell would take it apart,
/// and behind `./` where it would look like an option.
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
    fn only_names_that_a_shell_would_take_apart_are_quoted() {
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
