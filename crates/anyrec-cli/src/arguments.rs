//! The command-line arguments.

use crate::cmd;
use crate::settings::{self, OpenSettings};
use anyhow::Result;
use anyrec::format::{self, OpenOptions};
use clap::{Args, Parser, Subcommand};

/// One engine for record files: MXNet RecordIO, FFRecord, GRAIL recordio and IDX.
///
/// Exit codes: 0 sound, 1 damage found, 2 could not do it.
///
/// With --json, every line is one JSON object. Characters that could mislead a terminal are escaped
/// as \uXXXX. Paths are exact: each byte of a name that is not UTF-8 is written as \udcXX, which
/// Python's os.fsencode turns back into that byte.
#[derive(Debug, Parser)]
#[command(name = "anyrec", version, propagate_version = true, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,

    /// Colours: auto, always or never (NO_COLOR is honoured)
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", value_parser = ["auto", "always", "never"])]
    pub color: String,
}

/// One variant per command; each command has its own file.
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
    /// Read the input as this format instead of detecting it
    #[arg(long, value_name = "ID", value_parser = settings::formats())]
    pub format: Option<String>,

    #[command(flatten)]
    pub settings: OpenSettings,

    /// Limit how much of a file's data is held in memory: 512M, 2G
    ///
    /// This bounds a record, a block before and after decompression, an array and a batch. Threads
    /// that read parts of one file share the limit. Exceeding it is an error (exit code 2), never
    /// damage.
    #[arg(long, value_name = "SIZE", value_parser = cmd::convert::parse_size)]
    pub max_memory: Option<u64>,

    /// Refuse records larger than this [default: 4G]
    #[arg(long, value_name = "SIZE", value_parser = cmd::convert::parse_size)]
    pub max_record: Option<u64>,

    /// Refuse blocks that are larger than this when decompressed [default: 4G]
    #[arg(long, value_name = "SIZE", value_parser = cmd::convert::parse_size)]
    pub max_frame: Option<u64>,

    /// Refuse gzipped files that are larger than this when decompressed [default: 64G]
    #[arg(long, value_name = "SIZE", value_parser = cmd::convert::parse_size)]
    pub max_decompressed: Option<u64>,
}

/// The flags that raise the limits, for the hint of an error about one.
pub const LIMITS: &str =
    "`--max-record`, `--max-frame`, `--max-decompressed` or, where it was given, `--max-memory`";

impl Reading {
    /// Converts the arguments into the library's options.
    pub fn options(&self) -> Result<OpenOptions> {
        let mut options = OpenOptions::default();
        options.format = self.format.as_deref().map(format::named).transpose()?;
        self.settings.apply(&mut options)?;
        let limits = &mut options.limits;
        limits.record = self.max_record.unwrap_or(limits.record);
        limits.frame = self.max_frame.unwrap_or(limits.frame);
        limits.decompressed = self.max_decompressed.unwrap_or(limits.decompressed);
        if let Some(bytes) = self.max_memory {
            limits.hold_at_most(bytes);
        }
        Ok(options)
    }
}
