//! Rust source as the checks see it: tokens with their lines, without comments, documentation and
//! tests.
//!
//! Nothing is resolved and no macro is expanded. The arguments of a macro are read like other code.

use crate::run::Failure;
use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::Path;

/// A file that is not only compiled for tests.
pub struct Source {
    /// Relative to the folder that was read, separated by `/`.
    pub path: String,
    /// The module of the file; empty for `lib.rs`.
    pub module: Vec<String>,
    pub tokens: Vec<TokenTree>,
}

/// Reads a folder of Rust source.
pub fn read(folder: &Path) -> Result<Vec<Source>, Failure> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let failed = |error: std::io::Error| Failure::new(format!("cannot read {}: {error}", next.display()));
        for entry in std::fs::read_dir(&next).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).map_err(failed)?;
                let relative = path.strip_prefix(folder).unwrap_or(&path);
                files.push((relative.to_string_lossy().replace('\\', "/"), text));
            }
        }
    }
    if files.is_empty() {
        return Err(Failure::new(format!("{} has no Rust source", folder.display())));
    }
    files.sort();
    parse(&files)
}

/// Parses files, given as (path, text), and omits those that are only compiled for tests.
pub fn parse(files: &[(String, String)]) -> Result<Vec<Source>, Failure> {
    let mut tests = BTreeSet::new();
    let mut sources = Vec::new();
    for (path, text) in files {
        let stream: TokenStream =
            text.parse().map_err(|error| Failure::new(format!("cannot parse {path}: {error}")))?;
        let module = module_of(path);
        let tokens = without_tests(stream, &module, &mut tests);
        sources.push(Source { path: path.clone(), module, tokens });
    }
    sources.retain(|source| !tests.iter().any(|test| source.module.starts_with(test)));
    Ok(sources)
}

/// The module of a file, derived from its path.
fn module_of(path: &str) -> Vec<String> {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let mut module: Vec<String> = stem.split('/').map(str::to_owned).collect();
    let is_folder = module.last().is_some_and(|name| name == "mod");
    let is_crate = module.len() == 1 && matches!(stem, "lib" | "main");
    if is_folder || is_crate {
        module.pop();
    }
    module
}

/// Removes documentation and what is only compiled for tests; collects the test modules that are
/// files.
fn without_tests(
    stream: TokenStream,
    module: &[String],
    tests: &mut BTreeSet<Vec<String>>,
) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut tokens = stream.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(ref mark) if mark.as_char() == '#' => {
                let is_inner = matches!(tokens.peek(), Some(TokenTree::Punct(mark)) if mark.as_char() == '!');
                if is_inner {
                    tokens.next();
                }
                let Some(TokenTree::Group(attribute)) = tokens.peek() else {
                    kept.push(token);
                    continue;
                };
                if is_for_tests(attribute) {
                    if is_inner {
                        return Vec::new();
                    }
                    tokens.next();
                    skip_item(&mut tokens, module, tests);
                } else if !is_documentation(attribute) {
                    kept.push(token);
                } else {
                    tokens.next();
                }
            }
            TokenTree::Group(group) => {
                let inner: TokenStream = without_tests(group.stream(), module, tests).into_iter().collect();
                let mut stripped = Group::new(group.delimiter(), inner);
                stripped.set_span(group.span());
                kept.push(TokenTree::Group(stripped));
            }
            other => kept.push(other),
        }
    }
    kept
}

/// Whether an attribute is `cfg(test)` or `cfg(all(test, ...))`.
fn is_for_tests(attribute: &Group) -> bool {
    let words: Vec<TokenTree> = attribute.stream().into_iter().collect();
    let [TokenTree::Ident(name), TokenTree::Group(condition)] = &words[..] else {
        return false;
    };
    if name != "cfg" {
        return false;
    }
    let condition: Vec<TokenTree> = condition.stream().into_iter().collect();
    let is_test = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == "test");
    match &condition[..] {
        [only] => is_test(only),
        [TokenTree::Ident(all), TokenTree::Group(parts)] if all == "all" => {
            parts.stream().into_iter().any(|part| is_test(&part))
        }
        _ => false,
    }
}

fn is_documentation(attribute: &Group) -> bool {
    matches!(attribute.stream().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc")
}

/// The words that distinguish an item, whose generics may contain commas, from a field or a match
/// arm.
const ITEMS: [&str; 11] =
    ["const", "enum", "fn", "impl", "mod", "static", "struct", "trait", "type", "union", "use"];

/// Skips the rest of an item or a field, up to its `;` or comma, or to its closing braces.
fn skip_item(
    tokens: &mut impl Iterator<Item = TokenTree>,
    module: &[String],
    tests: &mut BTreeSet<Vec<String>>,
) {
    let mut module_name = None;
    let mut after_mod = false;
    let mut is_field = true;
    for token in tokens {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == ';' => {
                if let Some(name) = module_name {
                    tests.insert([module, &[name]].concat());
                }
                return;
            }
            TokenTree::Punct(mark) if mark.as_char() == ',' && is_field => return,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return,
            TokenTree::Ident(word) => {
                if after_mod {
                    module_name = Some(word.to_string());
                }
                after_mod = word == "mod";
                is_field &= !ITEMS.contains(&word.to_string().as_str());
            }
            _ => {}
        }
    }
}

/// The line that a token begins on.
pub fn line(token: &TokenTree) -> usize {
    token.span().start().line
}

/// Whether these two tokens are `::`.
pub fn is_path_separator(first: Option<&TokenTree>, second: Option<&TokenTree>) -> bool {
    let is_colon = |token: Option<&TokenTree>| match token {
        Some(TokenTree::Punct(mark)) if mark.as_char() == ':' => Some(mark.spacing()),
        _ => None,
    };
    is_colon(first) == Some(Spacing::Joint) && is_colon(second).is_some()
}

/// A generated tree, for tests.
#[cfg(test)]
pub fn tree(files: &[(&str, &str)]) -> Vec<Source> {
    let owned: Vec<(String, String)> =
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    parse(&owned).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(files: &[(&str, &str)]) -> Vec<(String, String)> {
        tree(files)
            .into_iter()
            .map(|source| (source.path, source.tokens.into_iter().collect::<TokenStream>().to_string()))
            .collect()
    }

    fn code(text: &str) -> String {
        shown(&[("lib.rs", text)]).pop().unwrap().1
    }

    #[test]
    fn comments_and_documentation_are_left_out() {
        let text = "//! a\n/// b\n#[doc = \"c\"] #[inline] fn f() { /* d */ g() // e\n }";
        assert_eq!(code(text), "# [inline] fn f () { g () }");
    }

    #[test]
    fn test_items_are_left_out() {
        let text = "#[cfg(test)] mod tests { use super::*; } #[cfg(all(test, unix))] #[inline] fn f(a: u8) {} \
                    #[cfg(test)] use a::b; #[cfg(test)] impl<A, B> C<A, B> { fn g() {} } const A: u8 = 1;";
        assert_eq!(code(text), "const A : u8 = 1 ;");
    }

    #[test]
    fn a_test_field_is_left_out() {
        assert_eq!(code("struct S { #[cfg(test)] a: u8, b: u8 }"), "struct S { b : u8 }");
    }

    #[test]
    fn a_test_file_is_left_out() {
        assert_eq!(code("#![cfg(test)] fn f() {}"), "");
    }

    #[test]
    fn other_conditions_stay() {
        let text = "#[cfg(any(test, feature = \"x\"))] fn f () { } #[cfg(not(test))] fn g () { }";
        assert!(code(text).contains("fn f") && code(text).contains("fn g"), "{}", code(text));
    }

    #[test]
    fn files_of_test_modules_are_left_out() {
        let paths: Vec<String> = shown(&[
            ("lib.rs", "mod io; mod format;"),
            ("io/mod.rs", "#[cfg(test)] mod tests;"),
            ("io/tests.rs", "one"),
            ("format/mod.rs", "mod scan;"),
            ("format/scan.rs", "#[cfg(test)] mod tests;"),
            ("format/scan/tests/mod.rs", "two"),
            ("format/scan/tests/more.rs", "three"),
        ])
        .into_iter()
        .map(|(path, _)| path)
        .collect();
        assert_eq!(paths, ["lib.rs", "io/mod.rs", "format/mod.rs", "format/scan.rs"]);
    }
}
