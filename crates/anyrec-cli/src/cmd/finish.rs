//! `anyrec finish`: complete an interrupted replacement.

use crate::output::{Out, Outcome};
use crate::term;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

/// Complete an interrupted replacement of files
///
/// Files that belong together (a .rec and its .idx, the shards of a conversion) are published only
/// when all of them are complete. If the process is killed while it publishes them, this command
/// publishes the rest. Any one of the files identifies the set.
#[derive(Debug, Args)]
pub struct Finish {
    /// One of the files
    #[arg(value_name = "PATH")]
    path: PathBuf,
}

impl Finish {
    pub fn run(self) -> Result<Outcome> {
        let done = anyrec::io::finish_interrupted(&self.path)?;
        let what = if done { "the new files are in place" } else { "nothing to do" };
        let mut out = Out::new();
        out.line(format!("{}done{}   {}: {what}", term::GREEN, term::RESET, super::show(&self.path)))?;
        out.finish()?;
        Ok(Outcome::Sound)
    }
}
