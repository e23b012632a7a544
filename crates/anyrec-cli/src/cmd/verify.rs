//! `anyrec verify`: read every byte and report all damage.

use crate::arguments::Reading;
use crate::output::{Out, Outcome, tell_error, tell_hint, tell_notices};
use crate::progress::Progress;
use crate::term;
use anyhow::Result;
use anyrec::Report;
use clap::Args;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Read every byte and report all damage
///
/// Several files are read in parallel. Exit code 0: all sound; 1: damage, or an index file or table
/// that does not match its file (stale); 2: a file could not be read.
#[derive(Debug, Args)]
pub struct Verify {
    /// Files, directories, glob patterns, or - for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// One JSON object per file
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

impl Verify {
    pub fn run(self) -> Result<Outcome> {
        let mut options = self.reading.options()?;
        let mut outcome = Outcome::Sound;
        let files = super::expand_all(&self.paths, &mut outcome);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // A single file uses all cores; several share them.
        options.threads = cores / files.len().clamp(1, cores);
        let mut out = Out::new();
        let length =
            files.iter().filter_map(|path| path.metadata().ok()).map(|metadata| metadata.len()).sum();
        let progress = Progress::new("verify", length);
        // If the threads cannot be started, this thread does all the work.
        let pool = (files.len() > 1).then(|| rayon::ThreadPoolBuilder::new().build().ok()).flatten();
        // In the given order, a few at a time, so that a long list prints as it progresses.
        for group in files.chunks(cores) {
            let verify = |path: &PathBuf| -> Result<Report> {
                let mut last = 0;
                let mut advance = |offset: u64| {
                    progress.add(offset.saturating_sub(last));
                    last = offset;
                };
                Ok(anyrec::verify_file(super::open(path, &options)?, &options, &mut advance)?)
            };
            let reports: Vec<Result<Report>> = match &pool {
                Some(pool) => pool.install(|| group.par_iter().map(verify).collect()),
                None => group.iter().map(verify).collect(),
            };
            for report in reports {
                let report = match report {
                    Ok(report) => report,
                    // Continue with the other files.
                    Err(error) => {
                        outcome = outcome.max(tell_error(&error));
                        continue;
                    }
                };
                if self.json {
                    out.json(&to_json(&report))?;
                } else {
                    print(&mut out, &report)?;
                }
                if !report.is_sound() {
                    outcome = outcome.max(Outcome::Damage);
                }
            }
        }
        out.finish()?;
        Ok(outcome)
    }
}

fn print(out: &mut Out, report: &Report) -> Result<()> {
    let name = &report.file;
    let what = format!("{}, {}", term::plural(report.records, "record"), term::bytes(report.bytes));
    let proof = match (report.records, report.verified) {
        (0, _) => String::new(),
        (records, verified) if records == verified => ", every checksum holds".to_owned(),
        (_, 0) => ", framing checked (records have no checksums here)".to_owned(),
        (_, verified) => format!(", {} with checksums that hold", term::count(verified)),
    };
    if report.damage.is_empty() {
        let (colour, verdict) =
            if report.is_sound() { (term::GREEN, "sound") } else { (term::YELLOW, "stale") };
        out.line(format!(
            "{colour}{verdict}{}  {name}: {}, {what}{proof}",
            term::RESET,
            report.format.name()
        ))?;
    } else {
        let places = report.damage.len() as u64 + report.unlisted_damage;
        out.line(format!(
            "{}damage{} {name}: {}, {} intact, {} of {} damaged in {}",
            term::RED,
            term::RESET,
            report.format.name(),
            term::plural(report.records, "record"),
            term::bytes(report.damage_bytes),
            term::bytes(report.bytes),
            term::plural(places, "place"),
        ))?;
        for damage in &report.damage {
            out.line(format!("       {}", super::repair::describe(damage)))?;
        }
        if report.unlisted_damage > 0 {
            out.line(format!("       and {} more", term::plural(report.unlisted_damage, "place")))?;
        }
    }
    // Before what goes to stderr, which is not buffered.
    out.flush()?;
    tell_notices(name, &report.notices);
    if report.records > 0 && !report.damage.is_empty() && name != super::STDIN {
        let kept = term::plural(report.records, "record");
        tell_hint(&format!("{} keeps what is intact ({kept})", crate::hints::repair(name)));
    }
    Ok(())
}

/// A report as `info --json` and `verify --json` show it.
pub fn to_json(report: &Report) -> Value {
    let description = super::info::Description::from_contents(&report.contents);
    let damage: Vec<Value> = report.damage.iter().map(damage_json).collect();
    json!({
        "path": report.path.as_deref().map_or_else(|| report.file.as_str().into(), crate::json::path),
        "format": report.format.id(),
        "version": report.version,
        "records": report.records,
        "bytes": report.bytes,
        "checksummed": report.format.capabilities().checksummed,
        "verified": report.verified,
        "header": description.header,
        "trailer": description.trailer,
        "shape": description.shape,
        "dtype": description.dtype,
        "sound": report.is_sound(),
        "record_bytes": report.record_bytes,
        "metadata_bytes": report.metadata_bytes,
        "damage_bytes": report.damage_bytes,
        "damage": damage,
        "unlisted_damage": report.unlisted_damage,
        "notices": report.notices.iter().map(|notice| json!({"offset": notice.offset, "message": notice.message, "stale": notice.is_stale})).collect::<Vec<_>>(),
    })
}

/// A range of damage.
pub fn damage_json(damage: &anyrec::format::Damage) -> Value {
    json!({"begin": damage.begin, "end": damage.end, "record": damage.record, "reason": damage.reason})
}
