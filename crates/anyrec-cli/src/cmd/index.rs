//! `anyrec index`: write MXNet's `.idx`, or a table for formats that have no index file.

use crate::arguments::Reading;
use crate::output::{Out, Outcome, tell};
use crate::progress::Progress;
use crate::term;
use anyhow::Result;
use anyrec::{IndexOptions, Indexed};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Write a file's index
///
/// MXNet: the .idx file, keyed by the ids in the image headers if every record has one and all
/// differ, by record number otherwise. Other formats: a table (NAME.anyrec-table), which locates
/// records without a scan.
#[derive(Debug, Args)]
pub struct Index {
    /// The data file
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// MXNet: where to write the index file (default: the .idx beside the file)
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// MXNet: write a table instead of an index file
    #[arg(long, conflicts_with = "output")]
    table: bool,
    /// Replace an existing index file
    #[arg(long)]
    force: bool,
    /// Index the intact records of a damaged file
    #[arg(long)]
    skip_damage: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

impl Index {
    pub fn run(self) -> Result<Outcome> {
        let mut options = IndexOptions::default();
        options.open = self.reading.options()?;
        options.open.skip_damage = self.skip_damage;
        options.table = self.table;
        options.overwrite = self.force;
        options.output = self.output;
        let length = std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        let progress = Progress::new("index", length);
        let Indexed { path, records, reason, damaged, .. } =
            anyrec::index(&self.path, &options, &mut |offset| progress.at(offset))?;
        drop(progress);
        let mut out = Out::about(&path);
        if self.json {
            out.json(&json!({"path": crate::json::path(&path), "records": records, "reason": reason}))?;
        } else {
            let records = term::plural(records, "record");
            out.line(format!("{}wrote{}  {} ({records})", term::GREEN, term::RESET, super::show(&path)))?;
            tell(format!("{}note:{} {}", term::YELLOW, term::RESET, term::clean(&reason)));
        }
        out.finish()?;
        Ok(if damaged { Outcome::Damage } else { Outcome::Sound })
    }
}
