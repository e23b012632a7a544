//! `anyrec repair`: write every intact record to a new file.

use crate::arguments::Reading;
use crate::cmd::verify::{damage_json, to_json};
use crate::output::{Out, Outcome, tell_notices};
use crate::progress::Progress;
use crate::term;
use anyhow::Result;
use anyrec::format::Damage;
use anyrec::{RepairOptions, Report};
use clap::Args;
use std::path::PathBuf;

/// Write every intact record to a new file and report what was lost
///
/// The input is only read. The result verifies clean. Exit code 0: nothing was lost; 1: the output
/// is complete, and the ledger lists what it is missing.
#[derive(Debug, Args)]
pub struct Repair {
    /// The damaged file
    #[arg(value_name = "PATH")]
    input: PathBuf,
    /// The file to write
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    /// FFRecord packed folders: rewrite the tree for the remaining files
    #[arg(long)]
    rebuild_tree: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

impl Repair {
    pub fn run(self) -> Result<Outcome> {
        let mut settings = RepairOptions::default();
        settings.open = self.reading.options()?;
        settings.overwrite = self.force;
        settings.rebuild_tree = self.rebuild_tree;
        let length = std::fs::metadata(&self.input).map_or(0, |metadata| metadata.len());
        let progress = Progress::new("repair", length);
        let repair = anyrec::repair(&self.input, &self.output, &settings, &mut |offset| progress.at(offset))?;
        drop(progress);
        let (report, written) = (&repair.report, &repair.written);
        let mut out = Out::about(&self.output);
        if self.json {
            let mut value = to_json(report);
            if let Some(object) = value.as_object_mut() {
                object.insert("output".into(), crate::json::path(&self.output));
                object.insert("kept".into(), written.records.into());
                object.insert("output_bytes".into(), written.bytes.into());
                object.insert("lost".into(), report.damage.iter().map(damage_json).collect());
            }
            out.json(&value)?;
        } else {
            out.line(format!(
                "{}kept{}   {} ({}) in {}",
                term::GREEN,
                term::RESET,
                term::plural(written.records, "record"),
                term::bytes(written.bytes),
                super::show(&self.output)
            ))?;
            for damage in &report.damage {
                out.line(format!("{}lost{}   {}", term::RED, term::RESET, describe(damage)))?;
            }
            if report.unlisted_damage > 0 {
                out.line(format!("       and {} more", term::plural(report.unlisted_damage, "place")))?;
            }
            out.line(format!("ledger {}", sum(report)))?;
        }
        out.finish()?;
        tell_notices(&report.file, &report.notices);
        tell_notices("", &written.notices);
        Ok(if report.damage.is_empty() { Outcome::Sound } else { Outcome::Damage })
    }
}

/// Describes a range of damage.
pub fn describe(damage: &Damage) -> String {
    let after = term::plural(damage.record, "record");
    let reason = term::escape(damage.reason.as_bytes());
    format!("bytes {}..{} after {after}: {reason}", damage.begin, damage.end)
}

/// Accounts for every byte of a file.
pub fn sum(report: &Report) -> String {
    let Report { record_bytes, metadata_bytes, damage_bytes, bytes, .. } = report;
    format!(
        "{} in records + {} in metadata + {} damaged = all {} bytes",
        term::count(*record_bytes),
        term::count(*metadata_bytes),
        term::count(*damage_bytes),
        term::count(*bytes)
    )
}
