//! The public API of every published library, kept as text beside it: `public-api.txt`.
//!
//! CI fails when it changes and the text does not. Items that are hidden from the documentation are no
//! part of it, nor are the impls that every type gets (blanket impls and auto traits).

use crate::checks::packages::{Metadata, Package};
use crate::run::{Failure, command, on_ci, root};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// rustdoc's JSON, as the crate public-api reads it. Rust 1.93 to 1.95 write it: with another Rust, take
/// the version of public-api that fits.
const FORMAT: u32 = 57;

/// The only part of rustdoc's JSON that is the same in every version.
#[derive(Deserialize)]
struct Head {
    format_version: u32,
}

/// Compares, or writes the texts anew.
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
    Err(Failure::new("the public API changed: if it is meant to, `cargo xtask public-api --bless`"))
}

/// The lines that one of two lists has more often than the other.
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

/// A rustdoc that takes unstable options. Setting the variable for all of cargo would make it build the
/// dependencies once more.
fn unlocked_rustdoc() -> Result<String, Failure> {
    let script = root().join("target/tools/rustdoc-unlocked");
    let failed = |error: std::io::Error| Failure::new(format!("cannot write {}: {error}", script.display()));
    std::fs::create_dir_all(root().join("target/tools")).map_err(failed)?;
    std::fs::write(&script, "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n").map_err(failed)?;
    command("chmod", &["+x".as_ref(), script.as_os_str()]).run()?;
    Ok(script.to_string_lossy().into_owned())
}

/// The public API as text; nothing where this Rust's rustdoc cannot be read, which CI does not let pass.
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
        eprintln!("xtask: SKIPPED is the public API of {}: {why}", package.name);
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
