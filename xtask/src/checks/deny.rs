//! Licences, duplicates and sources of the dependencies: cargo-deny with `deny.toml`.

use crate::run::{Failure, command, output_of, root};

/// Pinned, so that CI's result changes only with this repository.
const VERSION: &str = "0.20.2";

pub fn run() -> Result<(), Failure> {
    let folder = root().join("target/tools");
    let program = folder.join("bin/cargo-deny");
    if output_of(&program, &["--version"]) != Some(format!("cargo-deny {VERSION}")) {
        let folder = folder.to_string_lossy();
        // Without optimisation: it runs for a second and is built once.
        let arguments =
            ["install", "--locked", "--debug", "--root", &folder, "--version", VERSION, "cargo-deny"];
        command("cargo", &arguments).run()?;
    }
    let unused = ["-D", "unmatched-skip", "-D", "license-not-encountered"];
    let what = ["licenses", "bans", "sources"];
    command(&program, &[&["--workspace", "check"], &unused[..], &what[..]].concat()).run()
}
