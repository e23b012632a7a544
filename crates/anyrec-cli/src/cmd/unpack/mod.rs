//! `anyrec unpack`: write records to files.

mod array;
pub mod faces;
mod labels;
mod records;
mod target;

use crate::arguments::Reading;
use crate::output::{Out, Outcome, tell};
use crate::term;
use anyhow::{Context, Result};
use anyrec::format::ffrecord::packed_folder::UnpackOptions;
use anyrec::format::ffrecord::{self, PackedFolder};
use anyrec::format::{Format, OpenOptions};
use anyrec::io::BadNames;
use anyrec::{Error, ErrorKind, RecordFile};
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use target::{Ledger, Target};

/// Write records to separate files
///
/// A packed folder (FFRecord) becomes the folder it was made from. From other files, every record
/// becomes a file named by its key, or else by its number, with an extension that matches its
/// content. Labelled images go into one folder per class, without their MXNet headers. The faces of
/// an InsightFace dataset go into one folder per person. Records of an IDX array become PNG images
/// if they are images of bytes (28x28, 32x32x3), .npy arrays otherwise.
///
/// DIR must be new or empty. Names from the file are not trusted: nothing is written outside DIR.
#[derive(Debug, Args)]
pub struct Unpack {
    /// A file, directory, glob pattern, or - for standard input
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The folder to write to; it must be new or empty
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Write one folder per class, by the first label (default for labelled images)
    #[arg(long)]
    by_class: bool,
    /// Write all files into one folder, whatever their labels
    #[arg(long, conflicts_with = "by_class")]
    flat: bool,
    /// IDX file with one label per record (default for IDX images: the labels beside them)
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Name files by record number even if records have keys
    #[arg(long)]
    by_number: bool,
    /// Escape unsafe names with % and digits instead of refusing them
    #[arg(long)]
    escape_names: bool,
    /// Skip damage instead of stopping at it
    #[arg(long)]
    skip_damage: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

impl Unpack {
    pub fn run(self) -> Result<Outcome> {
        let mut options = self.reading.options()?;
        options.skip_damage = self.skip_damage;
        let files = super::expand(std::slice::from_ref(&self.input))?;
        check_empty(&self.folder)?;
        let ledger = match self.unpack_folder(&files, &options)? {
            Tree::Unpacked(ledger) => ledger,
            tree => {
                let mut target = Target::open(&self.folder, self.bad_names())?;
                if let Tree::Lost(error) = tree {
                    target.ledger.damaged += 1;
                    target.ledger.skipped.push(format!("{error}; files are named by number"));
                }
                records::unpack(&self, &files, &options, &mut target)?;
                target.finish()?
            }
        };
        self.report(&ledger)
    }

    fn bad_names(&self) -> BadNames {
        if self.escape_names { BadNames::Escape } else { BadNames::Refuse }
    }

    /// Unpacks the input if it is a packed folder.
    fn unpack_folder(&self, files: &[PathBuf], options: &OpenOptions) -> Result<Tree> {
        let [file] = files else { return Ok(Tree::None) };
        if super::is_stdin(file) {
            return Ok(Tree::None);
        }
        let input = RecordFile::open(file, options)?;
        let Some(source) = input.source().filter(|_| input.format().id() == ffrecord::FORMAT.id()) else {
            return Ok(Tree::None);
        };
        let mut ledger = Ledger::default();
        let packed = match PackedFolder::open(source.clone(), options) {
            Ok(packed) => packed,
            Err(error) if error.kind() == ErrorKind::Invalid => return Ok(Tree::None),
            // Its records can still be written under their numbers.
            Err(error) if error.kind() == ErrorKind::Corrupt && self.skip_damage => {
                return Ok(Tree::Lost(error));
            }
            Err(error) => return Err(error.into()),
        };
        let mut unpacking = UnpackOptions::default();
        unpacking.bad_names = self.bad_names();
        unpacking.skip_damage = self.skip_damage;
        let unpacked = packed.unpack(&self.folder, &unpacking)?;
        (ledger.files, ledger.folders, ledger.bytes) = (unpacked.files, unpacked.folders, unpacked.bytes);
        ledger.damaged = unpacked.damaged;
        ledger.notices = unpacked.notices.into_iter().map(|notice| notice.message).collect();
        Ok(Tree::Unpacked(ledger))
    }

    fn report(&self, ledger: &Ledger) -> Result<Outcome> {
        let mut out = Out::new();
        if self.json {
            let refused: Vec<Value> = ledger
                .refused
                .iter()
                .map(|(name, reason, instead)| json!({"name": name, "reason": reason, "written_as": instead}))
                .collect();
            out.json(&json!({
                "path": crate::json::path(&self.folder),
                "files": ledger.files,
                "folders": ledger.folders,
                "bytes": ledger.bytes,
                "damaged": ledger.damaged,
                "skipped": ledger.skipped,
                "refused": refused,
                "notices": ledger.notices,
            }))?;
        } else {
            let damaged = match ledger.damaged {
                0 => String::new(),
                count => {
                    format!(", {}{} left out{}", term::RED, term::plural(count, "damaged place"), term::RESET)
                }
            };
            let folders = match ledger.folders {
                0 => String::new(),
                count => format!(" in {}", term::plural(count, "folder")),
            };
            out.line(format!(
                "{}wrote{}  {}{folders} ({}) to {}{damaged}",
                term::GREEN,
                term::RESET,
                term::plural(ledger.files, "file"),
                term::bytes(ledger.bytes),
                super::show(&self.folder)
            ))?;
        }
        out.finish()?;
        if !self.json {
            let tell = |style, word: &str, text: String| {
                tell(format!("{style}{word}:{} {}", term::RESET, term::clean(&text)))
            };
            for skipped in &ledger.skipped {
                tell(term::RED, "skipped", skipped.clone());
            }
            for (name, reason, instead) in &ledger.refused {
                tell(term::YELLOW, "refused", format!("the name {name:?}: {reason}; written as {instead}"));
            }
            for notice in &ledger.notices {
                tell(term::YELLOW, "note", notice.clone());
            }
        }
        Ok(if ledger.damaged == 0 { Outcome::Sound } else { Outcome::Damage })
    }
}

/// The state of a packed folder's tree.
enum Tree {
    /// The input has no tree.
    None,
    /// The tree cannot be read, and damage may be skipped.
    Lost(Error),
    /// Everything was unpacked.
    Unpacked(Ledger),
}

/// Refuses a folder that is not empty, so that nothing is mixed up or overwritten.
fn check_empty(folder: &Path) -> Result<()> {
    let shown = || super::show(folder);
    match folder.read_dir().map(|entries| entries.count()) {
        Ok(0) => Ok(()),
        Ok(_) => Err(Error::new(ErrorKind::Exists, "the folder is not empty")
            .in_file(shown())
            .with_hint("unpack into a new or empty folder")
            .into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot unpack into {}", shown())),
    }
}
