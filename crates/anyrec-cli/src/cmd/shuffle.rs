//! `anyrec shuffle`: write the same records in another order.

use super::convert::{Writing, report};
use crate::arguments::Reading;
use crate::output::Outcome;
use crate::progress::Progress;
use anyhow::Result;
use anyrec::Dataset;
use anyrec::convert::{ConvertOptions, select};
use anyrec::loader::Permutation;
use clap::Args;
use std::path::PathBuf;

/// Write the records in a random order determined by a seed
///
/// Writes every record exactly once, in bounded memory: the order is computed, not stored. The same
/// seed and number of records give the same order on every machine.
#[derive(Debug, Args)]
pub struct Shuffle {
    /// Files, directories or glob patterns, shuffled as one
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    /// The file to write
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// The seed that determines the order
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    writing: Writing,
    #[command(flatten)]
    reading: Reading,
}

impl Shuffle {
    pub fn run(self) -> Result<Outcome> {
        let mut options = ConvertOptions::default();
        options.open = self.reading.options()?;
        let dataset = Dataset::open(&self.inputs, &options.open)?;
        let to = match &self.writing.to {
            None if anyrec::format::by_name(&self.output).is_none() => dataset.format(),
            _ => self.writing.format(&self.output)?,
        };
        self.writing.apply(to, &mut options)?;
        let count = dataset.len()?;
        let order = Permutation::new(count, self.seed);
        let progress = Progress::records("shuffle", count);
        let numbers = (0..usize::try_from(count)?).map(|index| order.get(index as u64));
        let conversion =
            select(&dataset, numbers, &self.output, to, &options, &mut |done| progress.at(done))?;
        drop(progress);
        report(&conversion, self.json)
    }
}
