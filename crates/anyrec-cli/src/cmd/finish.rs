//! `anyrec finish`: the rest of a replacement that was interrupted.

use crate::output::{Out, Outcome};
use crate::term;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

/// Put files in place whose replacement was interrupted
///
/// Files that belong together (a .rec and its .idx, the files a conversion was cut into) are complete
/// before the first gets its name. If the process is killed while they get their names, this gives
/// the rest of them theirs. Any one of the files will do.
#[derive(Debug, Args)]
pub struct Finish {
    /// One of the files
    #[arg(value_name = "PATH")]
    path: PathBuf,
}

impl Finish {
    pub fn run(self) -> Result<Outcome> {
        let done = anyrec::io::finish_interrupted(&self.path)?;
        let what = if done { "the new files are in place" } else { "nothing was left to do" };
        let mut out = Out::new();
        out.line(format!("{}done{}   {}: {what}", term::GREEN, term::RESET, super::show(&self.path)))?;
        out.finish()?;
        Ok(Outcome::Sound)
    }
}
