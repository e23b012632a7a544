//! `anyrec im2rec`: MXNet's tool of that name, on all cores.
//!
//! Two phases, as in the original: `--list` writes list files of the images in a folder; without
//! it every list file of that prefix becomes a `.rec` file with its `.idx`.

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

/// Make image lists and pack images into .rec files, as MXNet's im2rec.py does
///
/// First `anyrec im2rec --list --recursive PREFIX ROOT` writes PREFIX.lst, one line an image, and
/// prints which folder has which label. Then `anyrec im2rec PREFIX ROOT` packs every list file
/// that begins with PREFIX into a .rec file with its .idx. An image that cannot be read, decoded
/// or encoded is told, counted and left out; the exit code is then 1.
#[derive(Debug, Args)]
pub struct Im2rec {
    /// What the names of list and record files begin with, or the folder of the list files
    #[arg(value_name = "PREFIX")]
    prefix: PathBuf,
    /// The folder of the images
    #[arg(value_name = "ROOT")]
    root: PathBuf,
    /// Replace files that exist
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
    /// Endings of images' names, in lower or upper case
    #[arg(long, value_name = "EXT", num_args = 1.., action = ArgAction::Set, default_values = [".jpeg", ".jpg", ".png"])]
    exts: Vec<String>,
    /// Cut the list into that many files
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    chunks: u64,
    /// Share of the images that goes to PREFIX_train.lst
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = parse_share)]
    train_ratio: f64,
    /// Share of the images that goes to PREFIX_test.lst; what is left goes to PREFIX_val.lst
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = parse_share)]
    test_ratio: f64,
    /// Look into folders below ROOT too; each folder with images is a label
    #[arg(long)]
    recursive: bool,
    /// Keep the order of the names
    #[arg(long)]
    no_shuffle: bool,
}

/// How images are packed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Packing")]
pub struct Packing {
    /// Pack the files as they are, without decoding them
    #[arg(long)]
    pass_through: bool,
    /// Resize the shorter edge to that many pixels (0: leave the size alone)
    #[arg(long, value_name = "PIXELS", default_value_t = 0)]
    resize: u32,
    /// Cut out the square in the middle, before resizing
    #[arg(long)]
    center_crop: bool,
    /// JPEG quality, 1 to 100; or PNG compression, 1 to 9
    #[arg(long, value_name = "N", default_value_t = 95, value_parser = clap::value_parser!(u8).range(0..=100))]
    quality: u8,
    /// Threads that decode and encode (default: one a core); the order of the list is kept
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    num_thread: Option<u16>,
    /// How images are loaded: 1 in colour, 0 in gray, -1 as stored, opacity included. As elsewhere,
    /// auto, always and never choose the colours of the output
    // The program's own `--color` has this name too: one argument takes both kinds of words.
    #[arg(long, value_name = "MODE", default_value = "1", allow_hyphen_values = true,
          value_parser = ["-1", "0", "1", "auto", "always", "never"])]
    color: String,
    /// What images are encoded as
    #[arg(long, value_name = "EXT", default_value = ".jpg", value_parser = [".jpg", ".png"])]
    encoding: String,
    /// Pack all labels of a line, not the first alone
    #[arg(long)]
    pack_label: bool,
}

impl Packing {
    /// The flag that OpenCV has for `--color`.
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
