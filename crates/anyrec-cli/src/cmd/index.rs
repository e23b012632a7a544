//! `anyrec index`: MXNet's `.idx`, or our table for formats that have no index file.

use crate::arguments::Reading;
use crate::output::{Out, Outcome, tell};
use crate::progress::Progress;
use crate::term;
use anyhow::{Result, bail};
use anyrec::format::mxnet::Index as IndexFile;
use anyrec::io::{AtomicFile, Durability};
use anyrec::{RecordFile, Table};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Write a file's index
///
/// MXNet: the .idx file, keyed by the ids of the image headers where every record has one and all
/// differ, by record number otherwise. Other formats: a table (NAME.anyrec-table) with which
/// records are found without a scan.
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
    /// Replace an index file that exists
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
        let mut options = self.reading.options()?;
        options.skip_damage = self.skip_damage;
        let input = RecordFile::open(&self.path, &options)?;
        let progress = Progress::new("index", input.length().unwrap_or(0));
        let mut at = |offset| progress.at(offset);
        let (path, entries, reason, damaged) = if input.format().id() == "mxnet" && !self.table {
            let name = input.name().to_owned();
            let rebuilt = IndexFile::rebuild(&mut *input.scan(&options)?, &mut at)?;
            if rebuilt.damaged_stretches > 0 && !self.skip_damage {
                let places = term::plural(rebuilt.damaged_stretches, "place");
                return Err(anyrec::Error::corrupt(format!("the file is damaged in {places}"))
                    .in_file(name)
                    .with_hint(
                        "--skip-damage indexes the intact records; `anyrec repair` makes a sound file first",
                    )
                    .into());
            }
            let path = self.output.unwrap_or_else(|| self.path.with_extension("idx"));
            let mut file = AtomicFile::create_or_stream(&path, self.force, Durability::Machine)?;
            let mut reason = rebuilt.reason;
            // What cannot be read has no keys to compare.
            let old = path.is_file().then(|| IndexFile::load(&path, options.access, None).ok()).flatten();
            if let Some(changed @ 1..) = old.map(|old| rebuilt.index.keys_unlike(&old)) {
                let records = term::plural(changed, "record");
                reason.push_str(&format!("; {records} had another key in the index file that was replaced"));
            }
            file.append(&rebuilt.index.to_bytes()?)?;
            file.commit()?;
            (path, rebuilt.index.len() as u64, reason, rebuilt.damaged_stretches > 0)
        } else {
            if self.output.is_some() {
                bail!("--output is for MXNet's index files: a table always stands beside its file");
            }
            let table = Table::build(&self.path, &options, &mut at)?;
            let reason = "a table of positions, used whenever the file is opened".to_owned();
            (table.save(&self.path)?, table.positions().len(), reason, false)
        };
        drop(progress);
        let mut out = Out::about(&path);
        if self.json {
            out.json(&json!({"path": crate::json::path(&path), "records": entries, "reason": reason}))?;
        } else {
            let entries = term::plural(entries, "record");
            out.line(format!("{}wrote{}  {} ({entries})", term::GREEN, term::RESET, super::show(&path)))?;
            tell(format!("{}note:{} {}", term::YELLOW, term::RESET, term::clean(&reason)));
        }
        out.finish()?;
        Ok(if damaged { Outcome::Damage } else { Outcome::Sound })
    }
}
