//! The commands, one file each, and the helpers they share.

pub mod cat;
pub mod completions;
pub mod convert;
pub mod demo;
pub mod finish;
pub mod im2rec;
pub mod index;
pub mod info;
pub mod ls;
pub mod man;
pub mod merge;
pub mod pack;
pub mod repair;
pub mod shuffle;
pub mod split;
pub mod unpack;
pub mod verify;

use crate::arguments::{Arguments, Command};
use crate::output::{Outcome, tell_error};
use crate::term;
use anyhow::Result;
use anyrec::RecordFile;
use anyrec::format::OpenOptions;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Runs the requested command.
pub fn run(arguments: Arguments) -> Result<Outcome> {
    match arguments.color.as_str() {
        "always" => anstream::ColorChoice::Always,
        "never" => anstream::ColorChoice::Never,
        _ => anstream::ColorChoice::Auto,
    }
    .write_global();
    match arguments.command {
        Command::Demo(command) => command.run(),
        Command::Info(command) => command.run(),
        Command::Ls(command) => command.run(),
        Command::Cat(command) => command.run(),
        Command::Verify(command) => command.run(),
        Command::Repair(command) => command.run(),
        Command::Index(command) => command.run(),
        Command::Finish(command) => command.run(),
        Command::Convert(command) => command.run(),
        Command::Shuffle(command) => command.run(),
        Command::Split(command) => command.run(),
        Command::Merge(command) => command.run(),
        Command::Pack(command) => command.run(),
        Command::Unpack(command) => command.run(),
        Command::Im2rec(command) => command.run(),
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(),
    }
}

/// Whether a path stands for standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Expands directories and glob patterns into files. `-` is kept.
pub fn expand(paths: &[PathBuf]) -> anyrec::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if is_stdin(path) {
            files.push(path.clone());
        } else {
            files.extend(anyrec::expand(&[path])?);
        }
    }
    Ok(files)
}

/// Like [`expand`], path by path. A path that cannot be expanded is reported, and the rest
/// continue.
pub fn expand_all(paths: &[PathBuf], outcome: &mut Outcome) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in paths {
        match expand(std::slice::from_ref(path)) {
            Ok(found) => files.extend(found),
            Err(error) => *outcome = (*outcome).max(tell_error(&error.into())),
        }
    }
    files
}

/// The name of standard input in messages.
pub const STDIN: &str = "stdin";

/// Opens a file, or standard input for `-`.
pub fn open(path: &Path, options: &OpenOptions) -> anyrec::Result<RecordFile> {
    if is_stdin(path) {
        RecordFile::stream(STDIN, std::io::stdin(), options)
    } else {
        RecordFile::open(path, options)
    }
}

/// A path as printable text.
pub fn show(path: &Path) -> String {
    term::escape(path.as_os_str().as_bytes())
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 as hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    hex(&sha2::Sha256::digest(bytes))
}
