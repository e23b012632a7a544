//! `anyrec completions`: shell completions.

use crate::arguments::Arguments;
use crate::output::Outcome;
use anyhow::Result;
use clap::{Args, CommandFactory};
use std::io::Write;

/// Print a completion script for a shell
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell to complete for
    shell: clap_complete::Shell,
}

impl Completions {
    pub fn run(self) -> Result<Outcome> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "anyrec", &mut script);
        std::io::stdout().write_all(&script)?;
        Ok(Outcome::Sound)
    }
}
