//! `anyrec merge`: join several files into one.

use super::convert::{Writing, report, run};
use crate::arguments::Reading;
use crate::output::Outcome;
use anyhow::Result;
use anyrec::convert::ConvertOptions;
use clap::Args;
use std::path::PathBuf;

/// Join files in the given order
///
/// The output's format is inferred from its name, or else is that of the inputs.
#[derive(Debug, Args)]
pub struct Merge {
    /// Files, directories or glob patterns
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    /// The file to write
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Skip damage instead of stopping at it
    #[arg(long)]
    skip_damage: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    writing: Writing,
    #[command(flatten)]
    reading: Reading,
}

impl Merge {
    pub fn run(self) -> Result<Outcome> {
        let to = self.writing.format(&self.output)?;
        let mut options = ConvertOptions::default();
        options.open = self.reading.options()?;
        options.open.skip_damage = self.skip_damage;
        self.writing.apply(to, &mut options)?;
        report(&run(&self.inputs, &self.output, to, &options)?, self.json)
    }
}
