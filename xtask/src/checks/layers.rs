//! The layers of the library: which folder may import from which.
//!
//! The layers are folders in an order. A file may import from its own folder and from those before
//! it, so that there is no cycle between folders. Within `format/`, every folder with a `layout.rs`
//! is a format, and formats do not import from each other. A `layout.rs` does no I/O and creates no
//! thread.

use crate::checks::source::{self, Source, is_path_separator, line};
use crate::run::{Failure, root};
use proc_macro2::{Delimiter, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Lowest first.
const LAYERS: [&str; 9] =
    ["base", "threads", "io", "format", "engine", "dataset", "tasks", "loader", "testkit"];

/// What a `layout.rs` must not import, from this crate and from the standard library.
const NOT_IN_LAYOUT: [&[&str]; 6] = [
    &["crate", "io"],
    &["crate", "threads"],
    &["std", "fs"],
    &["std", "io"],
    &["std", "net"],
    &["std", "thread"],
];

/// A file or an import that violates the order.
#[derive(Debug, PartialEq)]
struct Violation {
    file: String,
    line: usize,
    what: String,
    why: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.what, self.why)
    }
}

/// Checks `crates/anyrec/src`.
pub fn run() -> Result<(), Failure> {
    let folder = "crates/anyrec/src";
    let sources = source::read(&root().join(folder))?;
    let found = violations(&sources);
    for violation in &found {
        println!("{folder}/{violation}");
    }
    println!("layers: {} files, {} violations", sources.len(), found.len());
    match found.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!("{count} violations of the order {}", LAYERS.join(" < ")))),
    }
}

fn violations(sources: &[Source]) -> Vec<Violation> {
    let formats: BTreeSet<&str> = sources.iter().filter_map(|source| format_of(&source.path)).collect();
    let names = re_exports(sources);
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.path != "lib.rs") {
        let Some(layer) = source.module.first().and_then(|folder| position(folder)) else {
            let why = format!("every file but lib.rs is in one of the folders {}", LAYERS.join(", "));
            found.push(Violation {
                file: source.path.clone(),
                line: 1,
                what: "is in no layer".to_owned(),
                why,
            });
            continue;
        };
        for import in imports(source) {
            if let Some(why) = why_not(source, layer, &import, &formats, &names) {
                let what = format!("`{}`", import.shown());
                found.push(Violation { file: source.path.clone(), line: import.line, what, why });
            }
        }
    }
    found
}

/// The folder's position in the order.
fn position(folder: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| *layer == folder)
}

/// The format that a `layout.rs` belongs to.
fn format_of(path: &str) -> Option<&str> {
    let format = path.strip_prefix("format/")?.strip_suffix("/layout.rs")?;
    (!format.contains('/')).then_some(format)
}

/// Why an import is not allowed, if it is not.
fn why_not(
    source: &Source,
    layer: usize,
    import: &Import,
    formats: &BTreeSet<&str>,
    names: &BTreeMap<String, Vec<String>>,
) -> Option<String> {
    let is_layout = source.path.ends_with("/layout.rs");
    let starts =
        |forbidden: &&[&str]| import.path.iter().zip(*forbidden).filter(|(a, b)| a == *b).count() == 2;
    if is_layout && NOT_IN_LAYOUT.iter().any(starts) {
        return Some("a layout.rs does no I/O and creates no thread: bytes in, meaning out".to_owned());
    }
    let mut path = import.path.strip_prefix(&["crate".to_owned()])?;
    let mut folder = path.first()?.as_str();
    if position(folder).is_none() {
        // A name in lib.rs is one that lib.rs re-exports.
        match names.get(folder) {
            Some(target) => path = target,
            None => {
                return Some(format!("lib.rs re-exports no such name: import {folder} from its layer"));
            }
        }
        folder = path.first()?.as_str();
        // From another crate.
        position(folder)?;
    }
    let own = LAYERS.get(layer)?;
    if position(folder)? > layer {
        return Some(format!("{own} comes before {folder}, so it does not import from it"));
    }
    let (here, there) = (source.module.get(1)?.as_str(), path.get(1)?.as_str());
    let is_sibling = *own == "format" && folder == "format" && here != there;
    if is_sibling && formats.contains(here) && formats.contains(there) {
        return Some(format!("{here} and {there} are formats, and formats do not import from each other"));
    }
    None
}

/// What lib.rs re-exports: name and path.
fn re_exports(sources: &[Source]) -> BTreeMap<String, Vec<String>> {
    let mut names = BTreeMap::new();
    for source in sources.iter().filter(|source| source.path == "lib.rs") {
        let mut tokens = source.tokens.iter().peekable();
        while let Some(token) = tokens.next() {
            if matches!(token, TokenTree::Ident(word) if word == "use") {
                let tree: Vec<TokenTree> = tokens
                    .by_ref()
                    .take_while(|token| !matches!(token, TokenTree::Punct(mark) if mark.as_char() == ';'))
                    .cloned()
                    .collect();
                for (mut path, name) in leaves(&tree, &[]) {
                    path.retain(|part| part != "crate" && part != "self");
                    names.insert(name, path);
                }
            }
        }
    }
    names
}

/// A path to another part of this crate, or to the standard library.
#[derive(Debug, PartialEq)]
struct Import {
    line: usize,
    /// Starts with `crate` or the crate's name.
    path: Vec<String>,
}

impl Import {
    fn shown(&self) -> String {
        self.path.join("::")
    }
}

/// Every import in a file: in a `use` or in other code.
fn imports(source: &Source) -> Vec<Import> {
    let mut found = Vec::new();
    collect(&source.tokens, &source.module, &mut found);
    found
}

fn collect(tokens: &[TokenTree], module: &[String], found: &mut Vec<Import>) {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Ident(word) if word == "mod" => {
                // The module's braces are read with its own name, for `super`.
                if let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) =
                    (tokens.get(at + 1), tokens.get(at + 2))
                {
                    let inner: Vec<TokenTree> = body.stream().into_iter().collect();
                    collect(&inner, &[module, &[name.to_string()]].concat(), found);
                    at += 3;
                    continue;
                }
            }
            TokenTree::Ident(word) => {
                let begins = !is_path_separator(before(tokens, at, 2), before(tokens, at, 1));
                let is_start = matches!(
                    word.to_string().as_str(),
                    "crate" | "super" | "self" | "std" | "core" | "alloc"
                );
                if begins && is_start && is_path_separator(tokens.get(at + 1), tokens.get(at + 2)) {
                    let length = path_length(tokens, at);
                    let path = tokens.get(at..at + length).unwrap_or_default();
                    for (path, _) in leaves(path, &[]) {
                        if let Some(path) = absolute(path, module) {
                            found.push(Import { line: line(token), path });
                        }
                    }
                    at += length;
                    continue;
                }
            }
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                collect(&inner, module, found);
            }
            _ => {}
        }
        at += 1;
    }
}

fn before(tokens: &[TokenTree], at: usize, by: usize) -> Option<&TokenTree> {
    tokens.get(at.checked_sub(by)?)
}

/// The number of tokens in a path, including the braces of a `use` at its end.
fn path_length(tokens: &[TokenTree], start: usize) -> usize {
    let mut at = start + 1;
    while is_path_separator(tokens.get(at), tokens.get(at + 1)) {
        match tokens.get(at + 2) {
            Some(TokenTree::Ident(_)) => at += 3,
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                at += 3;
                break;
            }
            _ => break,
        }
    }
    at - start
}

/// The paths of a `use` tree, each with the name it binds.
fn leaves(tree: &[TokenTree], prefix: &[String]) -> Vec<(Vec<String>, String)> {
    let mut path = prefix.to_vec();
    let mut name = String::new();
    let mut tokens = tree.iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if word == "as" => {
                name = tokens.next().map(ToString::to_string).unwrap_or_default();
            }
            TokenTree::Ident(word) => {
                name = word.to_string();
                if name != "self" || path.is_empty() {
                    path.push(name.clone());
                } else {
                    // `{self, ...}`: the module itself.
                    name = path.last().cloned().unwrap_or_default();
                }
            }
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let is_comma =
                    |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ',');
                return inner
                    .split(is_comma)
                    .filter(|part| !part.is_empty())
                    .flat_map(|part| leaves(part, &path))
                    .collect();
            }
            _ => {}
        }
    }
    vec![(path, name)]
}

/// A path from the crate's root, given the module it appears in.
fn absolute(path: Vec<String>, module: &[String]) -> Option<Vec<String>> {
    let mut above = module.to_vec();
    let mut parts = path.iter().peekable();
    match parts.peek()?.as_str() {
        "crate" => {
            parts.next();
            above.clear();
        }
        "self" => {
            parts.next();
        }
        "super" => {}
        _ => return Some(path),
    }
    while parts.peek().is_some_and(|part| *part == "super") {
        parts.next();
        above.pop();
    }
    let rest: Vec<String> = parts.cloned().collect();
    Some([&["crate".to_owned()], &above[..], &rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::source::tree;

    /// The violations of a file, in a tree that also has lib.rs and two formats.
    fn wrong(path: &str, text: &str) -> Vec<String> {
        let sources = tree(&[
            ("lib.rs", "pub use base::error::{Error, Result}; pub use loader::Loader; pub use bytes::Bytes;"),
            ("format/mxnet/layout.rs", ""),
            ("format/idx/layout.rs", ""),
            (path, text),
        ]);
        violations(&sources).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn imports_of_the_own_and_of_lower_folders_pass() {
        let text = "use crate::{base::Error, io::{self, Source}}; use super::reader::Reader;\n\
                    fn f() -> crate::Result<crate::Bytes> { crate::threads::pool() }";
        assert_eq!(wrong("format/scan.rs", text), [""; 0]);
    }

    #[test]
    fn import_of_a_higher_folder_is_named_with_its_line() {
        let found = wrong("io/file.rs", "use crate::base::Error;\n\nuse crate::dataset::Dataset;");
        let expected =
            "io/file.rs:3: `crate::dataset::Dataset`: io comes before dataset, so it does not import from it";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn every_spelling_of_an_import_is_seen() {
        for text in [
            "use crate::{base::Error, loader::Loader};",
            "use crate::{base::Error, loader::{Plan as Order}};",
            "use crate::loader::*;",
            "use crate::Loader;",
            "use super::loader::Loader;",
            "mod inner { use super::super::loader::Loader; }",
            "fn f() { g(crate::loader::load()) }",
            "fn f(a: &crate::loader::Plan) {}",
            "fn f(a: Vec<crate::loader::Plan>) {}",
            "macro_rules! m { () => { $crate::loader::load() } }",
            "use crate::loader;",
        ] {
            assert_eq!(wrong("engine/mod.rs", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_name_that_lib_rs_does_not_have_is_reported() {
        let found = wrong("engine/mod.rs", "use crate::Elsewhere;");
        assert!(found.len() == 1 && found.concat().contains("import Elsewhere from its layer"), "{found:?}");
    }

    #[test]
    fn tests_import_what_they_want() {
        let text = "#[cfg(test)] mod tests { use crate::loader::Loader; use crate::testkit::check; }";
        assert_eq!(wrong("base/error.rs", text), [""; 0]);
    }

    #[test]
    fn comments_and_text_import_nothing() {
        let text = "//! See [`crate::loader`].\n// crate::loader::x\nconst A: &str = \"crate::loader::x\";";
        assert_eq!(wrong("base/error.rs", text), [""; 0]);
    }

    #[test]
    fn visibility_is_no_import() {
        let text = "pub(crate) fn f() {} pub(in crate::engine) fn g() {} pub(super) struct S;";
        assert_eq!(wrong("engine/one/two.rs", text), [""; 0]);
    }

    #[test]
    fn formats_do_not_import_from_each_other() {
        for text in [
            "use crate::format::idx::read;",
            "use super::super::idx::read;",
            "use crate::format::{idx, Scan};",
        ] {
            let found = wrong("format/mxnet/read/mod.rs", text);
            assert!(
                found.len() == 1 && found.concat().contains("mxnet and idx are formats"),
                "{text}: {found:?}"
            );
        }
        let own = "use crate::format::mxnet::scan; use crate::format::Scan; use super::layout::Head;";
        assert_eq!(wrong("format/mxnet/read.rs", own), [""; 0]);
        assert_eq!(wrong("format/mod.rs", "use crate::format::idx::Idx; use self::mxnet::Mxnet;"), [""; 0]);
    }

    #[test]
    fn layouts_do_no_io() {
        for text in ["use crate::io::Source;", "use std::{fs, mem};", "fn f() { std::thread::yield_now() }"] {
            let found = wrong("format/grail/layout.rs", text);
            assert!(
                found.len() == 1 && found.concat().contains("bytes in, meaning out"),
                "{text}: {found:?}"
            );
        }
        assert_eq!(wrong("format/grail/layout.rs", "use crate::base::Limits; use std::ops::Range;"), [""; 0]);
    }

    #[test]
    fn a_file_outside_of_the_layers_is_reported() {
        for path in ["verify.rs", "image/mod.rs"] {
            let found = wrong(path, "");
            assert!(found.len() == 1 && found.concat().contains("is in no layer"), "{found:?}");
        }
    }

    #[test]
    fn the_testkit_imports_all_and_nothing_imports_it() {
        assert_eq!(wrong("testkit/mod.rs", "use crate::{base::Error, loader::Loader};"), [""; 0]);
        assert_eq!(wrong("loader/mod.rs", "use crate::testkit::check;").len(), 1);
    }
}
