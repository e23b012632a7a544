//! The public API of every published library, recorded beside it as text: `public-api.txt`.
//!
//! CI fails if the API changes and the text does not. Items that are hidden from the documentation
//! are not included, nor are the impls that every type has (blanket impls and auto traits).

use crate::checks::packages::{Metadata, Package};
use crate::run::{Failure, command, on_ci, root};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The version of rustdoc's JSON that the crate public-api reads. Rust 1.93 to 1.95 write it. With
/// another Rust, use the matching version of public-api.
const FORMAT: u32 = 57;

/// The only part of rustdoc's JSON that is the same in every version.
#[derive(Deserialize)]
struct Head {
    format_version: u32,
}

/// Compares the texts, or rewrites them.
pub fn run(bless: bool) -> Result<(), Failure> {
    let rustdoc = unlocked_rustdoc()?;
    let mut changed = Vec::new();
    for package in Metadata::load()?.published() {
        let Some(library) = package.library() else { continue };
        let Some(found) = list(package, library, &rustdoc)? else { continue };
        let kept = package.folder().join("public-api.txt");
        if bless {
            std::fs::write(&kept, found)
                .map_err(|error| Failure::new(format!("cannot write {}: {error}", kept.display())))?;
            println!("public API of {}: written", package.name);
            continue;
        }
        let expected = std::fs::read_to_string(&kept).map_err(|error| {
            Failure::new(format!("{}: {error} (`cargo xtask public-api --bless` writes it)", kept.display()))
        })?;
        let difference = difference(&expected, &found);
        println!("public API of {}: {} lines differ", package.name, difference.len());
        if !difference.is_empty() {
            changed.push(format!("--- {}\n{}", package.name, difference.join("\n")));
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    println!("{}", changed.join("\n"));
    Err(Failure::new("the public API changed: if that is intended, run `cargo xtask public-api --bless`"))
}

/// The lines that occur more often in one of two lists than in the other.
fn difference(expected: &str, found: &str) -> Vec<String> {
    let mut surplus: BTreeMap<&str, isize> = BTreeMap::new();
    for line in found.lines() {
        *surplus.entry(line).or_default() += 1;
    }
    for line in expected.lines() {
        *surplus.entry(line).or_default() -= 1;
    }
    let signed = |(line, count): (&str, isize)| {
        let sign = if count < 0 { '-' } else { '+' };
        vec![format!("{sign}{line}"); count.unsigned_abs()]
    };
    surplus.into_iter().flat_map(signed).collect()
}

/// A rustdoc that accepts unstable options. Setting the variable for all of cargo would rebuild the
/// dependencies.
fn unlocked_rustdoc() -> Result<String, Failure> {
    let script = root().join("target/tools/rustdoc-unlocked");
    let failed = |error: std::io::Error| Failure::new(format!("cannot write {}: {error}", script.display()));
    std::fs::create_dir_all(root().join("target/tools")).map_err(failed)?;
    std::fs::write(&script, "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n").map_err(failed)?;
    command("chmod", &["+x".as_ref(), script.as_os_str()]).run()?;
    Ok(script.to_string_lossy().into_owned())
}

/// The public API as text; `None` if the output of this Rust's rustdoc cannot be read, which is an
/// error in CI.
fn list(package: &Package, library: &str, rustdoc: &str) -> Result<Option<String>, Failure> {
    let arguments = [
        "rustdoc",
        "--package",
        &package.name,
        "--lib",
        "--all-features",
        "--target-dir",
        "target",
        "--",
        "-Zunstable-options",
        "--output-format=json",
    ];
    command("cargo", &arguments).env("RUSTDOC", rustdoc).run()?;
    let json = root().join(format!("target/doc/{library}.json"));
    let unreadable = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", json.display()));
    let text = std::fs::read_to_string(&json).map_err(|error| unreadable(&error))?;
    let head: Head = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    if head.format_version != FORMAT {
        let why = format!("this rustdoc writes format {}, and {FORMAT} is read", head.format_version);
        if on_ci() {
            return Err(Failure::new(format!("public API of {}: {why}", package.name)));
        }
        eprintln!("xtask: SKIPPED the public API of {}: {why}", package.name);
        return Ok(None);
    }
    read(&json).map(Some).map_err(|error| unreadable(&error))
}

fn read(json: &Path) -> Result<String, public_api::Error> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()?;
    Ok(api.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_one_side_has_more_often_differ() {
        assert_eq!(difference("a\nb\nd\n", "a\nc\nd\n"), ["-b", "+c"]);
        assert_eq!(difference("a\na\n", "a\n"), ["-a"]);
        assert!(difference("a\nb\n", "a\nb\n").is_empty());
    }
}
