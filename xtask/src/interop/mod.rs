//! `cargo xtask interop`: exchanges files with the original implementations, in both directions,
//! and compares everything that both sides report about them.
//!
//! A *peer* (see `interop/README.md`) is an original behind two commands. For each format:
//!
//! 1. the peer writes files and reports what its own reader finds in them; our reader reads them;
//! 2. our writers rewrite the same files, to the same bytes where the bytes are determined;
//! 3. our writers write generated files; the peer reads them.
//!
//! Then both sides read Debian's Fashion-MNIST. FFRecord has no released package to exchange files
//! with.

mod fashion_mnist;
mod grail;
mod idx;
mod im2rec;
mod manifest;
mod mxnet;
mod peer;
mod random;
mod reading;
mod report;
pub mod setup;
#[cfg(test)]
mod tests;

use crate::run::Failure;
use peer::Peer;
use random::Random;
use report::Report;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Files per format and direction.
const FILES: u64 = 200;

/// The default seed of the files.
pub const SEED: u64 = 20_261;

/// A format, as far as the exchange is concerned.
trait Exchange {
    /// The format's id.
    const FORMAT: &'static str;
    /// One line of the manifest.
    type Entry: Serialize + DeserializeOwned;

    /// The file's name.
    fn file(entry: &Self::Entry) -> &str;

    /// Reads a file with our library and compares it with its entry.
    fn check(folder: &Path, entry: &Self::Entry, report: &mut Report) -> anyrec::Result<()>;

    /// Writes what our library reads from a file into `scratch` and compares the bytes. Returns
    /// whether such a file has determined bytes at all (compressed files do not).
    fn rewrite(
        folder: &Path,
        entry: &Self::Entry,
        scratch: &Path,
        report: &mut Report,
    ) -> anyrec::Result<bool>;

    /// Writes a generated file, and returns a description of its contents.
    fn write(folder: &Path, ordinal: u64, random: &mut Random) -> anyrec::Result<Self::Entry>;
}

/// The numbers of files that agreed and that differed.
#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
}

impl Tally {
    /// Reports the result of one direction.
    fn add(&mut self, format: &str, what: &str, report: &Report) {
        println!("interop {format}: {what}: {} differences", report.differences());
        for line in report.shown() {
            println!("{line}");
        }
        self.failed += report.failed();
        self.passed += report.files().saturating_sub(report.failed());
    }
}

/// Runs the whole exchange with files generated from this seed.
pub fn run_all(seed: u64) -> Result<(), Failure> {
    setup::packages()?;
    let mxnet_python = setup::mxnet_python()?;
    im2rec::run(&mxnet_python)?;
    let mxnet = Peer::script(&["mxnet 1.9.1"], mxnet_python, "mxnet_peer.py");
    let grail = Peer::program(&["grailbio/base v0.0.11"], setup::grail_peer()?);
    let idx_libraries = &["idx2numpy 1.2.3", "torchvision 0.15.2"];
    let idx = Peer::script(idx_libraries, setup::idx_python()?, "idx_peer.py");

    let mut tally = Tally::default();
    exchange::<mxnet::Mxnet>(&mxnet, seed, &mut tally)?;
    exchange::<grail::Grail>(&grail, seed, &mut tally)?;
    exchange::<idx::Idx>(&idx, seed, &mut tally)?;
    fashion_mnist::check(&idx, &mut tally)?;
    println!("{} passed, {} failed", tally.passed, tally.failed);
    match tally.failed {
        0 => Ok(()),
        failed => Err(Failure::new(format!("{failed} files differ between anyrec and an original"))),
    }
}

fn exchange<X: Exchange>(peer: &Peer, seed: u64, tally: &mut Tally) -> Result<(), Failure> {
    let writer = peer.writer();
    let theirs = empty_folder(&format!("{}/theirs", X::FORMAT))?;
    peer.write(&theirs, seed, FILES)?;
    let entries: Vec<X::Entry> = manifest::load(&theirs)?;
    let report = read_theirs::<X>(&theirs, &entries);
    tally.add(X::FORMAT, &format!("we read {} files of {writer}", report.files()), &report);

    let scratch = empty_folder(&format!("{}/rewritten", X::FORMAT))?;
    let (report, settled) = rewrite_theirs::<X>(&theirs, &entries, &scratch);
    let what = format!("we rewrite {settled} files of {writer} to the same bytes");
    tally.add(X::FORMAT, &what, &report);

    let ours = empty_folder(&format!("{}/ours", X::FORMAT))?;
    let mut report = Report::default();
    let entries = write_ours::<X>(&ours, seed, FILES, &mut report)?;
    manifest::save(&ours, &entries)?;
    peer.read(&ours, FILES, &mut report)?;
    let what = format!("{} read {} files of ours", peer.readers(), report.files());
    tally.add(X::FORMAT, &what, &report);
    Ok(())
}

fn read_theirs<X: Exchange>(folder: &Path, entries: &[X::Entry]) -> Report {
    let mut report = Report::default();
    for entry in entries {
        report.begin(X::file(entry));
        let outcome = X::check(folder, entry, &mut report);
        report.attempt("read", outcome);
    }
    report
}

fn rewrite_theirs<X: Exchange>(folder: &Path, entries: &[X::Entry], scratch: &Path) -> (Report, u64) {
    let mut report = Report::default();
    let mut settled = 0;
    for entry in entries {
        let mut rewriting = Report::default();
        rewriting.begin(X::file(entry));
        match X::rewrite(folder, entry, scratch, &mut rewriting) {
            Ok(false) => continue,
            Ok(true) => {}
            Err(error) => rewriting.differ("rewrite", "no error", error.to_string()),
        }
        settled += 1;
        report.join(rewriting);
    }
    (report, settled)
}

fn write_ours<X: Exchange>(
    folder: &Path,
    seed: u64,
    count: u64,
    report: &mut Report,
) -> Result<Vec<X::Entry>, Failure> {
    let mut entries = Vec::new();
    for ordinal in 0..count {
        let entry = X::write(folder, ordinal, &mut Random::new(seed, ordinal))
            .map_err(|error| Failure::new(format!("{} file {ordinal}: {error}", X::FORMAT)))?;
        report.begin(X::file(&entry));
        entries.push(entry);
    }
    Ok(entries)
}

/// A folder below that of the exchange, without files of an earlier run.
fn empty_folder(name: &str) -> Result<PathBuf, Failure> {
    let folder = setup::folder().join(name);
    let failed = |error: std::io::Error| Failure::new(format!("{}: {error}", folder.display()));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(failed)?;
    }
    std::fs::create_dir_all(&folder).map_err(failed)?;
    Ok(folder)
}

/// Compares two files byte by byte.
fn compare_files(expected: &Path, found: &Path, report: &mut Report) -> anyrec::Result<()> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| anyrec::Error::io("cannot read", error).in_file(path))
    };
    let (expected_bytes, found_bytes) = (read(expected)?, read(found)?);
    let name = found.file_name().unwrap_or_default().to_string_lossy();
    report.compare(format_args!("rewritten {name}: length"), &expected_bytes.len(), &found_bytes.len());
    let different = |(_, (one, other)): &(usize, (&u8, &u8))| one != other;
    if let Some((at, (one, other))) = expected_bytes.iter().zip(&found_bytes).enumerate().find(different) {
        report.differ(format_args!("rewritten {name}: byte {at}"), one, other);
    }
    Ok(())
}
