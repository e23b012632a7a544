//! `anyrec convert`: convert between formats.

use crate::arguments::Reading;
use crate::output::{Out, Outcome, tell, tell_notices};
use crate::progress::Progress;
use crate::settings::{self, WriteSettings};
use crate::term;
use anyhow::{Context, Result};
use anyrec::ElementType;
use anyrec::convert::{Conversion, ConvertOptions, Shards};
use anyrec::format::{self, Format, Labels};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Convert files from any format to any other
///
/// The output's format is inferred from its name unless --to is given. Several inputs are joined in
/// the given order. Keys and labels are kept if the output format can store them; what it cannot
/// store is reported.
#[derive(Debug, Args)]
pub struct Convert {
    /// Files, directories, glob patterns, or - for standard input
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    /// The file to write
    #[arg(value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    writing: Writing,
    /// Split the output into N files with equal numbers of records
    #[arg(long, value_name = "N", conflicts_with = "shard_size")]
    shards: Option<u64>,
    /// Split the output into files of at most this many bytes of records (512M, 2G, ...)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    shard_size: Option<u64>,
    /// Skip damage instead of stopping at it
    #[arg(long)]
    skip_damage: bool,
    /// MXNet image records: write the payload without its header
    #[arg(long)]
    strip_header: bool,
    /// IDX: the label file that belongs to the images, to read or to write
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
    /// IDX: element type of the label file to write (default uint8)
    #[arg(long, value_name = "TYPE", value_parser = parse_dtype)]
    label_dtype: Option<ElementType>,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

/// How outputs are written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Writing")]
pub struct Writing {
    /// The output's format
    #[arg(long, value_name = "ID", value_parser = settings::formats())]
    pub to: Option<String>,
    /// Replace the output if it exists
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub settings: WriteSettings,
}

impl Writing {
    /// The output's format: the one given, or the one inferred from the output's name.
    pub fn format(&self, output: &Path) -> Result<&'static dyn Format> {
        match &self.to {
            Some(id) => Ok(format::named(id)?),
            None => format::by_name(output).with_context(|| {
                format!(
                    "cannot infer a format from the name {}: use --to {}",
                    super::show(output),
                    format::known()
                )
            }),
        }
    }

    /// Applies these arguments to the library's options.
    pub fn apply(&self, to: &'static dyn Format, options: &mut ConvertOptions) -> Result<()> {
        // The key that decrypts the inputs also encrypts the output.
        options.write = to.options_for(&options.open);
        options.write.overwrite = self.force;
        Ok(self.settings.apply(&mut options.write, to)?)
    }
}

impl Convert {
    pub fn run(self) -> Result<Outcome> {
        let to = self.writing.format(&self.output)?;
        let mut options = ConvertOptions::default();
        options.open = self.reading.options()?;
        options.open.skip_damage = self.skip_damage;
        self.writing.apply(to, &mut options)?;
        options.strip_header = self.strip_header;
        options.shards = match (self.shards, self.shard_size) {
            (Some(count), _) => Shards::Count(count),
            (_, Some(size)) => Shards::Bytes(size),
            _ => Shards::One,
        };
        if let Some(pairs) = self.pairs {
            // If the output keeps its labels in a file beside it and the records are labelled, the
            // label file is written. Otherwise it is read.
            if to.capabilities().labels == Labels::Beside && self.strip_header {
                options.label_output = Some(pairs);
            } else {
                options.labels = Some(pairs);
            }
        }
        options.label_dtype = self.label_dtype;
        let conversion = run(&self.inputs, &self.output, to, &options)?;
        report(&conversion, self.json)
    }
}

/// Converts with a progress bar.
pub fn run(
    inputs: &[PathBuf],
    output: &Path,
    to: &'static dyn Format,
    options: &ConvertOptions,
) -> Result<Conversion> {
    let inputs = super::expand(inputs)?
        .iter()
        .map(|path| super::open(path, &options.open))
        .collect::<anyrec::Result<Vec<_>>>()?;
    let progress = Progress::new("convert", inputs.iter().filter_map(anyrec::RecordFile::length).sum());
    Ok(anyrec::convert::convert(inputs, output, to, options, &mut |done| progress.at(done))?)
}

/// Reports what was written.
pub fn report(conversion: &Conversion, as_json: bool) -> Result<Outcome> {
    let mut out = match conversion.outputs.first() {
        Some((path, _)) => Out::about(path),
        None => Out::new(),
    };
    if as_json {
        let outputs: Vec<_> = conversion
            .outputs
            .iter()
            .map(|(path, written)| json!({"path": crate::json::path(path), "records": written.records, "bytes": written.bytes}))
            .collect();
        let notices: Vec<_> = conversion.notices.iter().map(|notice| &notice.message).collect();
        out.json(&json!({"records": conversion.records, "outputs": outputs, "skipped": conversion.skipped, "notices": notices}))?;
    } else {
        for (path, written) in &conversion.outputs {
            out.line(format!(
                "{}wrote{}  {} ({}) to {}",
                term::GREEN,
                term::RESET,
                term::plural(written.records, "record"),
                term::bytes(written.bytes),
                super::show(path)
            ))?;
        }
    }
    out.finish()?;
    for skipped in &conversion.skipped {
        tell(format!("{}skipped:{} {}", term::RED, term::RESET, term::clean(skipped)));
    }
    tell_notices("", &conversion.notices);
    Ok(if conversion.skipped.is_empty() { Outcome::Sound } else { Outcome::Damage })
}

/// Parses `512M`, `2G`, `1000000`. Units are binary.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(format!("{text:?} is not a size: 1000, 64K, 512M, 2G")),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|&size| size > 0)
        .ok_or_else(|| format!("{text:?} is not a size: 1000, 64K, 512M, 2G"))
}

fn parse_dtype(text: &str) -> Result<ElementType, String> {
    ElementType::from_name(text).ok_or_else(|| {
        let names: Vec<_> = ElementType::ALL.iter().map(|element| element.name()).collect();
        format!("one of {}", names.join(", "))
    })
}
