//! `anyrec pack`: pack a folder into one file.

use crate::output::{Out, Outcome, tell_notices};
use crate::progress::Progress;
use crate::term;
use anyhow::Result;
use anyrec::Error;
use anyrec::format::ffrecord::packed_folder::{folder_size, pack_folder};
use anyrec::format::{self, Format, WriteOptions, ffrecord};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Pack a folder and everything in it into one file
///
/// The file is an FFRecord packed folder, byte for byte as FFRecord's own pack_folder writes it:
/// one record per file, and the tree of names as the last record. Links are followed and empty
/// folders are kept. `anyrec unpack` restores the folder.
#[derive(Debug, Args)]
pub struct Pack {
    /// The folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The file to write
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl Pack {
    pub fn run(self) -> Result<Outcome> {
        if let Some(other) =
            format::by_name(&self.output).filter(|format| format.id() != ffrecord::FORMAT.id())
        {
            return Err(Error::invalid(format!(
                "folders can only be packed into FFRecord files, but the name implies {}",
                other.name()
            ))
            .in_file(super::show(&self.output))
            .with_hint("name it OUT.ffr; `anyrec im2rec` packs images into .rec files")
            .into());
        }
        if !self.folder.is_dir() {
            return Err(Error::invalid("is not a folder").in_file(super::show(&self.folder)).into());
        }
        let mut options = WriteOptions::default();
        options.overwrite = self.force;
        let progress = Progress::new("pack", folder_size(&self.folder)?);
        let written = pack_folder(&self.folder, &self.output, &options, &mut |done| progress.at(done))?;
        drop(progress);
        // The last record is the tree, not a file.
        let files = written.records.saturating_sub(1);
        let mut out = Out::about(&self.output);
        if self.json {
            out.json(
                &json!({"path": crate::json::path(&self.output), "files": files, "bytes": written.bytes}),
            )?;
        } else {
            out.line(format!(
                "{}wrote{}  {} ({}) to {}",
                term::GREEN,
                term::RESET,
                term::plural(files, "file"),
                term::bytes(written.bytes),
                super::show(&self.output)
            ))?;
        }
        out.finish()?;
        tell_notices("", &written.notices);
        Ok(Outcome::Sound)
    }
}
