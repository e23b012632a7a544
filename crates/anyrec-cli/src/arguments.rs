//! The command line's words.

use crate::cmd;
use anyhow::{Context, Result};
use anyrec::format::{IndexFile, OpenOptions};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// One engine for record files: MXNet RecordIO, FFRecord, GRAIL recordio and IDX.
///
/// Exit codes: 0 sound, 1 damage found, 2 could not do it.
#[derive(Debug, Parser)]
#[command(name = "anyrec", version, propagate_version = true, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,

    /// Colours: auto, always or never (NO_COLOR is honoured)
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", value_parser = ["auto", "always", "never"])]
    pub color: String,
}

/// One variant a command, one file a command.
#[derive(Debug, Subcommand)]
pub enum Command {
    Demo(cmd::demo::Demo),
    Info(cmd::info::Info),
    Ls(cmd::ls::Ls),
    Cat(cmd::cat::Cat),
    Verify(cmd::verify::Verify),
    Repair(cmd::repair::Repair),
    Index(cmd::index::Index),
    Finish(cmd::finish::Finish),
    Convert(cmd::convert::Convert),
    Shuffle(cmd::shuffle::Shuffle),
    Split(cmd::split::Split),
    Merge(cmd::merge::Merge),
    Pack(cmd::pack::Pack),
    Unpack(cmd::unpack::Unpack),
    #[command(name = "im2rec")]
    Im2rec(cmd::im2rec::Im2rec),
    Completions(cmd::completions::Completions),
    Man(cmd::man::Man),
}

/// How inputs are opened.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reading")]
pub struct Reading {
    /// Take the input for this format instead of detecting it: mxnet, ffrecord, grail or idx
    #[arg(long, value_name = "ID")]
    pub format: Option<String>,

    /// MXNet: the index file (default: the .idx beside the file)
    #[arg(long, value_name = "FILE")]
    pub index_file: Option<PathBuf>,

    /// GRAIL, first version: the transformer, which the file does not name (flate)
    #[arg(long, value_name = "NAME")]
    pub legacy_transform: Option<String>,

    /// GRAIL: file with the 32-byte key (raw or 64 hex digits) of encrypted files
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

impl Reading {
    /// The library's options for these words.
    pub fn options(&self) -> Result<OpenOptions> {
        let mut options = OpenOptions::default();
        options.format.clone_from(&self.format);
        options.legacy_transform.clone_from(&self.legacy_transform);
        if let Some(path) = &self.index_file {
            options.index_file = IndexFile::At(path.clone());
        }
        if let Some(path) = &self.key_file {
            options.transformers = cmd::registry_with_key(path).context("the key file")?;
        }
        Ok(options)
    }
}
