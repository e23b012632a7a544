//! `anyrec man`: print the manual pages.

use crate::arguments::Arguments;
use crate::output::Outcome;
use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use std::io::Write;
use std::path::PathBuf;

/// Print the manual page, or write one page per command into a folder
#[derive(Debug, Args)]
pub struct Man {
    /// Write anyrec.1, anyrec-ls.1, ... into this folder
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Man {
    pub fn run(self) -> Result<Outcome> {
        let command = Arguments::command();
        match self.output {
            Some(folder) => {
                std::fs::create_dir_all(&folder)
                    .with_context(|| format!("cannot create {}", super::show(&folder)))?;
                clap_mangen::generate_to(command, &folder)?;
            }
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(command).render(&mut page)?;
                std::io::stdout().write_all(&page)?;
            }
        }
        Ok(Outcome::Sound)
    }
}
