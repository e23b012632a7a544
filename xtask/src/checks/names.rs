//! Formats are named in their own folder, and elsewhere only if [`ALLOWED`] gives a reason.
//!
//! This keeps the cost of a fifth format at one folder and one line. Comments, documentation and
//! tests may name any format.

use crate::checks::source::{self, Source, line};
use crate::run::{Failure, root};
use proc_macro2::TokenTree;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// How a format is named.
struct Name {
    /// The format's folder below `crates/anyrec/src/format`.
    folder: &'static str,
    /// Matched in identifiers and text, also as part of a word, case-insensitively.
    anywhere: &'static [&'static str],
    /// Matched in identifiers and text as a whole word.
    words: &'static [&'static str],
    /// Matched in text: file name extensions.
    endings: &'static [&'static str],
}

const NAMES: [Name; 4] = [
    Name { folder: "mxnet", anywhere: &["mxnet"], words: &[], endings: &[".rec", ".idx", ".lst"] },
    Name { folder: "ffrecord", anywhere: &["ffrecord"], words: &["ffr"], endings: &[".ffr"] },
    Name { folder: "grail", anywhere: &["grail"], words: &[], endings: &[] },
    Name { folder: "idx", anywhere: &[], words: &["idx"], endings: &[] },
];

/// A file or (with `/` at its end) a folder that may name formats.
struct Allowed {
    path: &'static str,
    /// Which formats; empty means all.
    formats: &'static [&'static str],
    reason: &'static str,
}

const ALLOWED: &[Allowed] = &[
    Allowed {
        path: "crates/anyrec/src/format/foreign.rs",
        formats: &["mxnet"],
        reason: "an index file given in place of its data is named for what it is",
    },
    Allowed {
        path: "python/src/transformers.rs",
        formats: &["grail"],
        reason: "transformers written in Python are GRAIL's",
    },
    Allowed {
        path: "python/src/hints.rs",
        formats: &["grail"],
        reason: "the function that registers a transformer is in the package's module for GRAIL",
    },
    Allowed {
        path: "crates/anyrec/src/format/mod.rs",
        formats: &[],
        reason: "FORMATS, the list that everything else reads, and the modules",
    },
    Allowed {
        path: "crates/anyrec/src/format/mxnet/",
        formats: &["idx"],
        reason: "its index files end with .idx",
    },
    Allowed {
        path: "crates/anyrec-image/src/jpeg/encode.rs",
        formats: &["idx"],
        reason: "a constant of libjpeg",
    },
    Allowed {
        path: "crates/anyrec-image/src/recipe/",
        formats: &["mxnet"],
        reason: "whose pixels a recipe reproduces, not which files it reads",
    },
    Allowed {
        path: "crates/anyrec-cli/src/cmd/demo/",
        formats: &[],
        reason: "the demonstration shows every format by name",
    },
    Allowed {
        path: "crates/anyrec-cli/src/cmd/im2rec/",
        formats: &["mxnet"],
        reason: "im2rec is MXNet's tool, with its options and files",
    },
    Allowed {
        path: "crates/anyrec-cli/src/cmd/pack.rs",
        formats: &["ffrecord", "mxnet"],
        reason: "packed folders are FFRecord's; im2rec is named for the rest",
    },
    Allowed {
        path: "crates/anyrec-cli/src/cmd/unpack/",
        formats: &[],
        reason: "unpack makes what a format's own tools make of its records",
    },
    Allowed {
        path: "python/src/lib.rs",
        formats: &[],
        reason: "the list of the module's classes and functions",
    },
    Allowed { path: "python/src/ff_reader.rs", formats: &["ffrecord"], reason: "drop-in for ffrecord" },
    Allowed { path: "python/src/ff_writer.rs", formats: &["ffrecord"], reason: "drop-in for ffrecord" },
    Allowed { path: "python/src/packed_folder.rs", formats: &["ffrecord"], reason: "drop-in for ffrecord" },
    Allowed { path: "python/src/mx_reader.rs", formats: &["mxnet"], reason: "drop-in for mxnet.recordio" },
    Allowed { path: "python/src/mx_writer.rs", formats: &["mxnet"], reason: "drop-in for mxnet.recordio" },
    Allowed { path: "python/src/mxnet.rs", formats: &["mxnet"], reason: "drop-in for mxnet.recordio" },
    Allowed {
        path: "python/src/grail_scanner.rs",
        formats: &["grail"],
        reason: "drop-in for GRAIL's scanner",
    },
    Allowed { path: "python/src/grail_writer.rs", formats: &["grail"], reason: "drop-in for GRAIL's writer" },
    Allowed { path: "python/src/idx.rs", formats: &["idx"], reason: "the functions of anyrec.idx" },
    Allowed {
        path: "python/src/recipe.rs",
        formats: &["mxnet"],
        reason: "whose pixels a recipe reproduces, not which files it reads",
    },
];

/// The folder of the formats.
const FORMATS: &str = "crates/anyrec/src/format/";

/// A format named in a place where it is not allowed.
struct Mention {
    path: String,
    line: usize,
    token: String,
    format: &'static str,
}

impl fmt::Display for Mention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mention { path, line, token, format } = self;
        write!(f, "{path}:{line}: {token} names the format {format} outside of its folder")
    }
}

/// Checks the library's crates, the command line and the bindings.
pub fn run() -> Result<(), Failure> {
    let mut sources = Vec::new();
    for folder in folders()? {
        for source in source::read(&root().join(&folder))? {
            sources.push(Source { path: format!("{folder}/{}", source.path), ..source });
        }
    }
    let problems = problems(&sources, ALLOWED);
    for problem in &problems {
        println!("{problem}");
    }
    println!("format names: {} files, {} problems", sources.len(), problems.len());
    match problems.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!(
            "{count} problems with the names of formats: read the format's properties instead, \
             or add a reason to ALLOWED in xtask/src/checks/names.rs"
        ))),
    }
}

/// The source folders that are checked.
fn folders() -> Result<Vec<String>, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("cannot read crates: {error}"));
    let mut folders = vec!["python/src".to_owned()];
    for entry in std::fs::read_dir(root().join("crates")).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if root().join("crates").join(&name).join("src").is_dir() {
            folders.push(format!("crates/{name}/src"));
        }
    }
    folders.sort();
    Ok(folders)
}

/// Mentions that are not allowed, entries that allow nothing, and formats without a name.
fn problems(sources: &[Source], allowed: &[Allowed]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut used = BTreeSet::new();
    for mention in sources.iter().flat_map(mentions) {
        match allowed.iter().position(|entry| allows(entry, &mention)) {
            Some(entry) => {
                used.insert(entry);
            }
            None => problems.push(mention.to_string()),
        }
    }
    for (number, entry) in allowed.iter().enumerate() {
        if !used.contains(&number) {
            problems.push(format!("{} ({}): the entry in ALLOWED allows nothing", entry.path, entry.reason));
        }
    }
    let layouts = sources.iter().filter_map(|source| folder_of(&source.path, "/layout.rs"));
    for folder in layouts.filter(|folder| !NAMES.iter().any(|name| name.folder == *folder)) {
        problems.push(format!("{FORMATS}{folder} has no entry in NAMES"));
    }
    problems
}

/// The folder of the format that a path belongs to.
fn folder_of<'a>(path: &'a str, end: &str) -> Option<&'a str> {
    let inside = path.strip_prefix(FORMATS).filter(|path| path.ends_with(end))?;
    Path::new(inside).iter().next().filter(|_| inside.contains('/'))?.to_str()
}

fn allows(entry: &Allowed, mention: &Mention) -> bool {
    let is_there = match entry.path.strip_suffix('/') {
        Some(_) => mention.path.starts_with(entry.path),
        None => mention.path == entry.path,
    };
    is_there && (entry.formats.is_empty() || entry.formats.contains(&mention.format))
}

/// Where a file names formats other than that of its own folder.
fn mentions(source: &Source) -> Vec<Mention> {
    let own = folder_of(&source.path, "");
    let mut found = Vec::new();
    let mut waiting = vec![source.tokens.clone()];
    while let Some(tokens) = waiting.pop() {
        for token in tokens {
            if let TokenTree::Group(group) = &token {
                waiting.push(group.stream().into_iter().collect());
                continue;
            }
            let shown = token.to_string();
            let formats = match &token {
                TokenTree::Ident(_) => named(&shown, false),
                TokenTree::Literal(_) if shown.contains('"') => named(&shown, true),
                _ => continue,
            };
            for format in formats.into_iter().filter(|format| own != Some(format)) {
                found.push(Mention {
                    path: source.path.clone(),
                    line: line(&token),
                    token: shown.clone(),
                    format,
                });
            }
        }
    }
    found.sort_by_key(|mention| mention.line);
    found
}

/// The formats that an identifier or a text names.
fn named(shown: &str, is_text: bool) -> Vec<&'static str> {
    let lower = shown.to_lowercase();
    let words = words(shown);
    let names = |name: &&Name| {
        name.anywhere.iter().any(|part| lower.contains(part))
            || name.words.iter().any(|word| words.contains(*word))
            || (is_text && name.endings.iter().any(|ending| has_ending(&lower, ending)))
    };
    NAMES.iter().filter(names).map(|name| name.folder).collect()
}

/// Whether an extension occurs at the end of a word.
fn has_ending(text: &str, ending: &str) -> bool {
    text.match_indices(ending).any(|(at, _)| {
        let next = text.get(at + ending.len()..).and_then(|rest| rest.chars().next());
        !next.is_some_and(|next| next.is_alphanumeric() || next == '_')
    })
}

/// The words of an identifier or a text, in lower case. What follows a dot is an extension instead.
fn words(shown: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut word = String::new();
    let (mut previous, mut is_ending) = (' ', false);
    for next in shown.chars().chain([' ']) {
        let is_hump = next.is_uppercase() && previous.is_lowercase();
        if !next.is_alphabetic() || is_hump {
            let whole = std::mem::take(&mut word);
            if !whole.is_empty() && !is_ending {
                words.insert(whole);
            }
            is_ending = next == '.';
        }
        if next.is_alphabetic() {
            word.extend(next.to_lowercase());
        }
        previous = next;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::source::tree;

    const NOTHING: [&str; 0] = [];

    #[test]
    fn names_of_formats_are_found_in_identifiers() {
        for (shown, format) in [
            ("mxnet", "mxnet"),
            ("MxnetOptions", "mxnet"),
            ("MXNET", "mxnet"),
            ("read_ffrecord", "ffrecord"),
            ("FFRecord", "ffrecord"),
            ("grail_block", "grail"),
            ("idx", "idx"),
            ("IdxArray", "idx"),
            ("write_idx", "idx"),
        ] {
            assert_eq!(named(shown, false), [format], "{shown}");
        }
        for shown in ["index", "midx", "record", "rec", "Plan", "identity"] {
            assert_eq!(named(shown, false), NOTHING, "{shown}");
        }
    }

    #[test]
    fn names_and_endings_are_found_in_text() {
        for (shown, format) in [
            ("\"mxnet\"", "mxnet"),
            ("\"train.rec\"", "mxnet"),
            ("\"{stem}.idx\"", "mxnet"),
            ("\"MXNet's header\"", "mxnet"),
            ("\"a.ffr, b\"", "ffrecord"),
            ("\"an idx file\"", "idx"),
            ("\"train-idx3-ubyte\"", "idx"),
        ] {
            assert_eq!(named(shown, true), [format], "{shown}");
        }
        for shown in ["\"some.record\"", "\"index\"", "\"a.recipe\"", "\"record\""] {
            assert_eq!(named(shown, true), NOTHING, "{shown}");
        }
    }

    #[test]
    fn a_name_outside_of_its_folder_is_reported_with_its_line() {
        let sources = tree(&[
            ("crates/anyrec/src/format/mxnet/layout.rs", "fn mxnet() { f(\".rec\") }"),
            ("crates/anyrec/src/format/mxnet/read.rs", "use crate::format::\n grail::Block;"),
            (
                "crates/anyrec/src/tasks/verify.rs",
                "// mxnet\n/// `.rec`\nfn f() {\n match id { \"idx\" => 1 } }",
            ),
        ]);
        assert_eq!(
            problems(&sources, &[]),
            [
                "crates/anyrec/src/format/mxnet/read.rs:2: grail names the format grail outside of its folder",
                "crates/anyrec/src/tasks/verify.rs:4: \"idx\" names the format idx outside of its folder",
            ]
        );
    }

    #[test]
    fn an_entry_allows_its_file_and_formats_only() {
        let sources = tree(&[("cli/a.rs", "mxnet; grail;"), ("cli/b.rs", "mxnet"), ("other/c.rs", "mxnet")]);
        let file = Allowed { path: "cli/a.rs", formats: &["mxnet"], reason: "one" };
        let folder = Allowed { path: "other/", formats: &[], reason: "two" };
        let found = problems(&sources, &[file, folder]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.concat().contains("cli/a.rs:1: grail") && found.concat().contains("cli/b.rs:1: mxnet"));
    }

    #[test]
    fn an_entry_that_allows_nothing_is_reported() {
        let entry = Allowed { path: "a.rs", formats: &[], reason: "gone" };
        assert_eq!(problems(&[], &[entry]), ["a.rs (gone): the entry in ALLOWED allows nothing"]);
    }

    #[test]
    fn a_format_without_a_name_is_reported() {
        let sources = tree(&[("crates/anyrec/src/format/fifth/layout.rs", "")]);
        assert_eq!(problems(&sources, &[]), ["crates/anyrec/src/format/fifth has no entry in NAMES"]);
    }
}
