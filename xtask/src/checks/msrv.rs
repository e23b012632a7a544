//! The minimum Rust version that `rust-version` declares.
//!
//! Three things are checked: no dependency requires a newer Rust (here, in the lock file), no
//! function of the standard library is newer (clippy's `incompatible_msrv`, denied in the
//! workspace's lints), and the code compiles with exactly that Rust (here). The last check needs a
//! toolchain that rustup downloads. If that fails, the first two checks still apply, but a newer
//! *language* feature would go unnoticed, so a message says so.

use crate::checks::packages::{Metadata, Package};
use crate::run::{Failure, command, root};
use std::collections::BTreeSet;

pub fn run() -> Result<(), Failure> {
    let metadata = Metadata::load()?;
    let promising: Vec<&Package> =
        metadata.members().filter(|member| member.rust_version.is_some()).collect();
    let oldest = promising
        .iter()
        .filter_map(|member| {
            Some((version(member.rust_version.as_deref()?)?, member.rust_version.as_deref()?))
        })
        .min()
        .map(|(_, shown)| shown)
        .ok_or_else(|| Failure::new("no member of the workspace has a rust-version"))?;
    check_dependencies(&metadata, &promising)?;
    compile(oldest, &promising)
}

/// Major, minor and patch.
fn version(shown: &str) -> Option<(u64, u64, u64)> {
    let mut parts = shown.split('.').map(str::parse);
    let mut next = || parts.next().unwrap_or(Ok(0)).ok();
    Some((next()?, next()?, next()?))
}

/// Checks that what a member needs to be built (not tested) requires no newer Rust than the member
/// itself.
fn check_dependencies(metadata: &Metadata, promising: &[&Package]) -> Result<(), Failure> {
    let mut newer = Vec::new();
    for member in promising {
        let promised = member.rust_version.as_deref().and_then(version);
        let needed = needed(metadata, &member.id);
        for package in metadata.packages.iter().filter(|package| needed.contains(package.id.as_str())) {
            let asked = package.rust_version.as_deref().and_then(version);
            if asked > promised {
                let (name, asks) = (&package.name, package.rust_version.as_deref().unwrap_or_default());
                newer.push(format!(
                    "{} needs {name} {}, which needs Rust {asks}",
                    member.name, package.version
                ));
            }
        }
        println!("rust-version of {}: {} packages ask for no more", member.name, needed.len());
    }
    match newer.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(newer.join("; "))),
    }
}

/// The packages that one is built from, including itself.
fn needed<'a>(metadata: &'a Metadata, id: &'a str) -> BTreeSet<&'a str> {
    let mut needed = BTreeSet::new();
    let mut waiting = vec![id];
    while let Some(id) = waiting.pop() {
        if !needed.insert(id) {
            continue;
        }
        let edges = metadata.resolve.nodes.iter().filter(|node| node.id == id).flat_map(|node| &node.deps);
        let built = edges.filter(|edge| edge.dep_kinds.iter().any(|of| of.kind.as_deref() != Some("dev")));
        waiting.extend(built.map(|edge| edge.pkg.as_str()));
    }
    needed
}

/// Compiles the members with that Rust.
fn compile(oldest: &str, promising: &[&Package]) -> Result<(), Failure> {
    // Below target/, not among the user's toolchains.
    let home = root().join("target/tools/rustup");
    let install = ["toolchain", "install", oldest, "--profile", "minimal", "--no-self-update"];
    // Fails quickly on a machine that cannot reach the server.
    let install = command("rustup", &install).env("RUSTUP_HOME", &home).env("RUSTUP_MAX_RETRIES", "1");
    if let Err(failure) = install.run() {
        eprintln!(
            "xtask: SKIPPED compiling with Rust {oldest}, because rustup cannot install it: {failure}. \
             The lock file and the standard library's functions are still checked."
        );
        return Ok(());
    }
    let mut arguments = vec!["run", oldest, "cargo", "check", "--locked", "--lib", "--bins"];
    for member in promising {
        arguments.extend(["--package", &member.name]);
    }
    command("rustup", &arguments)
        .env("RUSTUP_HOME", &home)
        .env("CARGO_TARGET_DIR", root().join("target/msrv"))
        // Only its build scripts are run.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        .run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_their_numbers() {
        assert_eq!(version("1.89"), version("1.89.0"));
        assert!(version("1.100") > version("1.89.1"));
        assert_eq!(version("new"), None);
    }
}
