//! What would be published: every published crate is packed as by `cargo publish`, and the packages
//! must compile without the rest of the repository.

use crate::checks::packages::{Metadata, Package};
use crate::run::{Failure, cargo, command, root};
use std::fmt::Write;
use std::path::Path;

/// Files that every package contains, wherever the repository keeps them.
const IN_EVERY_PACKAGE: [&str; 2] = ["LICENSE", "README.md"];

/// The dev profile of this workspace, copied to the packages' workspace so that dependencies are
/// not rebuilt.
const PROFILE: &str = "[profile.dev]\nopt-level = 1\ndebug = \"line-tables-only\"\n";

pub fn run() -> Result<(), Failure> {
    let metadata = Metadata::load()?;
    let published = metadata.published();
    // Cargo's own verification builds every library once for itself and once for each dependent.
    let mut options = vec!["--no-verify", "--allow-dirty", "--target-dir", "target"];
    for package in &published {
        options.extend(["--package", &package.name]);
    }
    cargo(&[&["publish", "--dry-run"], &options[..]].concat())?;
    // A dry run leaves no packages behind.
    cargo(&[&["package"], &options[..]].concat())?;
    let folder = root().join("target/package/unpacked");
    unpack(&published, &folder)?;
    let manifest = folder.join("Cargo.toml");
    let manifest = manifest.to_string_lossy();
    cargo(&["check", "--workspace", "--manifest-path", &manifest, "--target-dir", "target"])
}

/// Unpacks the packages into a workspace in which they find each other.
fn unpack(published: &[&Package], folder: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("{}: {error}", folder.display()));
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(failed)?;
    }
    std::fs::create_dir_all(folder).map_err(failed)?;
    // The versions that everything else here is checked with.
    std::fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).map_err(failed)?;
    let (mut members, mut patches) = (String::new(), String::new());
    for Package { name, version, .. } in published {
        let stem = format!("{name}-{version}");
        let archive = root().join(format!("target/package/{stem}.crate"));
        let (archive, into) = (archive.to_string_lossy(), folder.to_string_lossy());
        command("tar", &["-xzf", &archive, "-C", &into]).run()?;
        for file in IN_EVERY_PACKAGE {
            if !folder.join(&stem).join(file).is_file() {
                return Err(Failure::new(format!("the package {name} has no {file}")));
            }
        }
        let written = write!(members, "{stem:?}, ").and(writeln!(patches, "{name} = {{ path = {stem:?} }}"));
        written.map_err(|error| Failure::new(error.to_string()))?;
    }
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{members}]\n\n[patch.crates-io]\n{patches}\n{PROFILE}"
    );
    std::fs::write(folder.join("Cargo.toml"), manifest).map_err(failed)
}
