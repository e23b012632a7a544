//! `anyrec im2rec`: MXNet's im2rec.py, on all cores.
//!
//! There are two phases, as in the original. `--list` writes list files for the images in a folder.
//! Without `--list`, every list file with that prefix becomes a `.rec` file with its `.idx`.

mod list;
mod pack;
mod python_random;

use crate::output::{Out, Outcome, tell};
use crate::term;
use anyhow::Result;
use clap::{ArgAction, Args};
use pack::Packed;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Create image lists and pack images into .rec files, like MXNet's im2rec.py
///
/// First, `anyrec im2rec --list --recursive PREFIX ROOT` writes PREFIX.lst, one line per image, and
/// prints the label of each folder. Then, `anyrec im2rec PREFIX ROOT` packs every list file that
/// begins with PREFIX into a .rec file with its .idx. An image that cannot be read, decoded or
/// encoded is reported, counted and skipped; the exit code is then 1.
#[derive(Debug, Args)]
pub struct Im2rec {
    /// The prefix of list and record file names, or the folder of the list files
    #[arg(value_name = "PREFIX")]
    prefix: PathBuf,
    /// The folder of images
    #[arg(value_name = "ROOT")]
    root: PathBuf,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    listing: Listing,
    #[command(flatten)]
    packing: Packing,
}

/// How list files are made.
#[derive(Debug, Args)]
#[command(next_help_heading = "Making lists")]
pub struct Listing {
    /// Write list files of the images in ROOT instead of packing them
    #[arg(long)]
    list: bool,
    /// File name extensions of images, in lower or upper case
    #[arg(long, value_name = "EXT", num_args = 1.., action = ArgAction::Set, default_values = [".jpeg", ".jpg", ".png"])]
    exts: Vec<String>,
    /// Split the list into N files
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    chunks: u64,
    /// The share of images that goes to PREFIX_train.lst
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = parse_share)]
    train_ratio: f64,
    /// The share of images that goes to PREFIX_test.lst; the rest goes to PREFIX_val.lst
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = parse_share)]
    test_ratio: f64,
    /// Descend into the folders below ROOT; each folder with images gets its own label
    #[arg(long)]
    recursive: bool,
    /// Keep the images sorted by name instead of shuffling them
    #[arg(long)]
    no_shuffle: bool,
}

/// How images are packed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Packing")]
pub struct Packing {
    /// Pack the files unchanged, without decoding them
    #[arg(long)]
    pass_through: bool,
    /// Resize the shorter edge to this many pixels (0: keep the size)
    #[arg(long, value_name = "PIXELS", default_value_t = 0)]
    resize: u32,
    /// Crop the centre square before resizing
    #[arg(long)]
    center_crop: bool,
    /// JPEG quality, 1 to 100; or PNG compression, 1 to 9
    #[arg(long, value_name = "N", default_value_t = 95, value_parser = clap::value_parser!(u8).range(0..=100))]
    quality: u8,
    /// Number of threads that decode and encode (default: one per core); the order of the list is
    /// kept
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    num_thread: Option<u16>,
    /// How to load images: 1 in colour, 0 in gray, -1 as stored, including transparency. The values
    /// auto, always and never set the colours of the output, as in other commands
    // The global `--color` has the same name, so this argument takes both kinds of values.
    #[arg(long, value_name = "MODE", default_value = "1", allow_hyphen_values = true,
          value_parser = ["-1", "0", "1", "auto", "always", "never"])]
    color: String,
    /// The format to encode images in
    #[arg(long, value_name = "EXT", default_value = ".jpg", value_parser = [".jpg", ".png"])]
    encoding: String,
    /// Pack all labels of a line, not just the first
    #[arg(long)]
    pack_label: bool,
}

impl Packing {
    /// OpenCV's flag for `--color`.
    fn color_flag(&self) -> i32 {
        self.color.parse().unwrap_or(1)
    }

    fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.num_thread.map_or_else(cores, usize::from)
    }
}

impl Im2rec {
    pub fn run(self) -> Result<Outcome> {
        if self.listing.list { self.make_lists() } else { self.pack_lists() }
    }

    fn make_lists(&self) -> Result<Outcome> {
        let listed = list::make(&self.prefix, &self.root, &self.listing, self.force)?;
        let mut out = Out::new();
        if self.json {
            let labels: Vec<Value> = listed
                .labels
                .iter()
                .zip(0u64..)
                .map(|(folder, label)| json!({"folder": crate::json::path(folder), "label": label}))
                .collect();
            let files: Vec<Value> = listed
                .files
                .iter()
                .map(|(path, count)| json!({"path": crate::json::path(path), "images": count}))
                .collect();
            out.json(&json!({"outputs": files, "labels": labels, "notices": listed.notices}))?;
        } else {
            for (folder, label) in listed.labels.iter().zip(0u64..) {
                out.line(format!("{} {label}", super::show(folder)))?;
            }
        }
        out.finish()?;
        if !self.json {
            for (path, count) in &listed.files {
                let images = term::plural(*count, "image");
                tell(format!("{}wrote{}  {images} to {}", term::GREEN, term::RESET, super::show(path)));
            }
            tell_all("note", &listed.notices);
        }
        Ok(Outcome::Sound)
    }

    fn pack_lists(&self) -> Result<Outcome> {
        let mut out = Out::new();
        let mut all = Vec::new();
        for list in list::find(&self.prefix)? {
            let packed = pack::pack(&list, &self.root, &self.packing, self.force)?;
            if !self.json {
                print(&mut out, &packed)?;
            }
            all.push(packed);
        }
        if self.json {
            let outputs: Vec<Value> = all.iter().map(to_json).collect();
            out.json(&json!({"outputs": outputs}))?;
        }
        out.finish()?;
        let sound = all.iter().all(|packed| packed.failed.is_empty());
        Ok(if sound { Outcome::Sound } else { Outcome::Damage })
    }
}

fn print(out: &mut Out, packed: &Packed) -> Result<()> {
    let failed = match packed.failed.len() {
        0 => String::new(),
        count => format!(", {}{count} failed{}", term::RED, term::RESET),
    };
    out.line(format!(
        "{}wrote{}  {} ({}) to {}{failed}",
        term::GREEN,
        term::RESET,
        term::plural(packed.written.records, "record"),
        term::bytes(packed.written.bytes),
        super::show(&packed.path)
    ))?;
    let notices: Vec<&String> = packed.written.notices.iter().map(|notice| &notice.message).collect();
    tell_all("note", &notices);
    tell_all("note", &packed.notices);
    Ok(())
}

fn to_json(packed: &Packed) -> Value {
    let notices: Vec<&String> =
        packed.written.notices.iter().map(|notice| &notice.message).chain(&packed.notices).collect();
    json!({
        "path": crate::json::path(&packed.path),
        "list": crate::json::path(&packed.list),
        "records": packed.written.records,
        "bytes": packed.written.bytes,
        "failed": packed.failed,
        "notices": notices,
    })
}

fn tell_all(word: &str, messages: &[impl AsRef<str>]) {
    for message in messages {
        tell(format!("{}{word}:{} {}", term::YELLOW, term::RESET, term::clean(message.as_ref())));
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}
