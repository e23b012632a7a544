//! `anyrec demo`: try every feature on a generated dataset.

mod ledger;
mod pictures;
mod rounds;

use crate::output::{Out, Outcome};
use crate::{interrupt, term};
use anyhow::{Context, Result, bail};
use clap::Args;
use rounds::Rounds;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Demonstrate anyrec on a small generated dataset
///
/// Draws labelled images, writes them in all four formats and verifies them. Converts them from
/// format to format and back to the same records. Damages a file and repairs it, and loads a
/// shuffled epoch. Exits with 0 only if everything matched.
#[derive(Debug, Args)]
pub struct Demo {
    /// Keep the files in this folder, which must be new or empty
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// How many images to draw
    #[arg(long, value_name = "N", default_value_t = 1600, value_parser = clap::value_parser!(u64).range(100..=100_000))]
    pictures: u64,
}

impl Demo {
    pub fn run(self) -> Result<Outcome> {
        let begun = Instant::now();
        let mut out = Out::new();
        match &self.keep {
            Some(folder) => {
                prepare(folder)?;
                perform(&mut out, folder, self.pictures)?;
            }
            None => {
                let folder = interrupt::TemporaryFolder::new().context("cannot create a temporary folder")?;
                perform(&mut out, folder.path(), self.pictures)?;
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        out.line(format!("\n{}Everything matched{}, in {seconds:.1} s.", term::GREEN, term::RESET))?;
        out.line(match &self.keep {
            Some(folder) => {
                let folder = super::show(folder);
                let photos = format!("{folder}/photos.rec");
                format!("The files are in {folder}: try {}.", crate::hints::command("info", &photos))
            }
            None => "The files were removed; --keep DIR keeps them.".to_owned(),
        })?;
        out.finish()?;
        Ok(Outcome::Sound)
    }
}

fn perform(out: &mut Out, folder: &Path, count: u64) -> Result<()> {
    let mut rounds = Rounds::draw(folder, count)?;
    rounds.write()?;
    rounds.verify()?;
    rounds.convert_around()?;
    let losses = rounds.damage_and_repair()?;
    rounds.load()?;
    rounds.ledger.print(out)?;
    out.line("\nWhat the repair reports about the damaged file:")?;
    losses.iter().try_for_each(|line| out.line(format!("  {line}")))
}

/// Creates the folder, or checks that it is empty.
fn prepare(folder: &Path) -> Result<()> {
    let shown = super::show(folder);
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {shown}"))?;
    if std::fs::read_dir(folder).with_context(|| format!("cannot list {shown}"))?.next().is_some() {
        bail!("{shown} is not empty: name a new folder");
    }
    Ok(())
}
