//! `anyrec split`: split a dataset into several files by count, size or ratio.

use super::convert::{Writing, parse_size, report, run};
use crate::arguments::Reading;
use crate::output::Outcome;
use crate::progress::Progress;
use anyhow::{Result, bail};
use anyrec::Dataset;
use anyrec::convert::{ConvertOptions, Shards, select_parts};
use clap::{ArgGroup, Args};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Split records into several files
///
/// OUT.rec becomes OUT-00000-of-00004.rec and so on. With --ratio it becomes OUT-0.rec, OUT-1.rec,
/// or the names given with --names. Records keep their order: shuffle first for a random split.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("how").required(true).args(["count", "size", "ratio"])))]
pub struct Split {
    /// Files, directories or glob patterns
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    /// The base name of the files to write
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Split into N files with equal numbers of records
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Split into files of at most this many bytes of records (512M, 2G, ...)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,
    /// Split into files of these shares, e.g. 0.8,0.1,0.1
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    ratio: Vec<f64>,
    /// With --ratio: the names of the files, e.g. train,val,test
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', requires = "ratio")]
    names: Vec<String>,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    writing: Writing,
    #[command(flatten)]
    reading: Reading,
}

impl Split {
    pub fn run(self) -> Result<Outcome> {
        let to = self.writing.format(&self.output)?;
        let mut options = ConvertOptions::default();
        options.open = self.reading.options()?;
        self.writing.apply(to, &mut options)?;
        let conversion = if self.ratio.is_empty() {
            options.shards =
                self.count.map(Shards::Count).or(self.size.map(Shards::Bytes)).unwrap_or_default();
            run(&self.inputs, &self.output, to, &options)?
        } else {
            if !self.names.is_empty() && self.names.len() != self.ratio.len() {
                bail!("--names has {} names for {} shares", self.names.len(), self.ratio.len());
            }
            let dataset = Dataset::open(&self.inputs, &options.open)?;
            let bounds = bounds(&self.ratio, dataset.len()?)?;
            let progress = Progress::records("split", dataset.len()?);
            let mut parts = Vec::new();
            for (number, range) in bounds.windows(2).enumerate() {
                let &[begin, end] = range else { continue };
                let name = self.names.get(number).cloned().unwrap_or_else(|| number.to_string());
                let numbers = (0..usize::try_from(end - begin)?).map(move |offset| begin + offset as u64);
                parts.push((with_suffix(&self.output, &name), numbers));
            }
            select_parts(&dataset, parts, to, &options, &mut |done| progress.at(done))?
        };
        report(&conversion, self.json)
    }
}

/// The boundaries of the shares, from 0 to `count`. Shares need not add up to 1.
fn bounds(shares: &[f64], count: u64) -> Result<Vec<u64>> {
    let sum: f64 = shares.iter().sum();
    if !shares.iter().all(|share| share.is_finite() && *share >= 0.0) || sum <= 0.0 {
        bail!("shares must be non-negative numbers, and at least one must be above 0");
    }
    let mut bounds = vec![0];
    let mut so_far = 0.0;
    for share in shares {
        so_far += share;
        // A share of a count lies between 0 and the count.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let bound = (so_far / sum * count as f64).round() as u64;
        bounds.push(bound.min(count));
    }
    if let Some(last) = bounds.last_mut() {
        *last = count;
    }
    Ok(bounds)
}

/// Turns `out.rec` and `train` into `out-train.rec`.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push("-");
    name.push(suffix);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_everything_once() {
        assert_eq!(bounds(&[0.8, 0.1, 0.1], 10).unwrap(), [0, 8, 9, 10]);
        assert_eq!(bounds(&[1.0, 1.0, 1.0], 10).unwrap(), [0, 3, 7, 10]);
        assert_eq!(bounds(&[1.0], 0).unwrap(), [0, 0]);
        assert!(bounds(&[-1.0, 2.0], 5).is_err());
        assert!(bounds(&[f64::NAN], 5).is_err());
    }
}
