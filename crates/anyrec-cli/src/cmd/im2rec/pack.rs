//! Packs the images of a list file into a `.rec` file.
//!
//! Each thread takes every n-th line and sends its records through its own bounded channel. The
//! writer receives from the channels in turn. Records are therefore written in the order of the
//! list without being collected first, and memory does not grow with the list.

use super::Packing;
use crate::output::tell;
use crate::progress::Progress;
use crate::term;
use anyhow::{Context, Result};
use anyrec::format::mxnet::{self, ImageHeader, IndexFile, LabelWidth, ListEntry, Writer, list_lines};
use anyrec::format::{WriteOptions, Written};
use anyrec::{Error, ErrorKind};
use anyrec::{Key, Label};
use anyrec_image::{self as image, DecodeOptions, Filter, Kind};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};

/// The capacity of a thread's channel, in records.
const WAITING: usize = 16;

/// A `.rec` file that was written.
#[derive(Debug)]
pub struct Packed {
    pub list: PathBuf,
    pub path: PathBuf,
    pub written: Written,
    /// Lines and images that were left out, and why.
    pub failed: Vec<String>,
    pub notices: Vec<String>,
}

/// Packs the images of a list file.
pub fn pack(list: &Path, root: &Path, packing: &Packing, force: bool) -> Result<Packed> {
    let shown = crate::cmd::show(list);
    let text = std::fs::read(list).with_context(|| format!("cannot read {shown}"))?;
    let mut failures = Failures::default();
    let mut entries = Vec::new();
    for line in list_lines(&shown, &text) {
        match line {
            Ok(entry) => entries.push(entry),
            Err(error) => failures.add(error.to_string()),
        }
    }
    let path = list.with_extension("rec");
    let own = mxnet::WriteOptions::default().with_index_file(IndexFile::Beside);
    let options = WriteOptions::default().with_overwrite(force).with(own);
    let mut writer = Writer::create(&path, &options)?;
    let progress = Progress::records("im2rec", entries.len() as u64);
    let encoder = Encoder::new(root, packing)?;
    let mut strangers = 0u64;
    let threads = packing.threads().min(entries.len()).max(1);
    std::thread::scope(|scope| -> Result<()> {
        let channels: Vec<_> = (0..threads)
            .map(|first| {
                let (sender, receiver) = sync_channel(WAITING);
                let (encoder, entries) = (&encoder, &entries);
                scope.spawn(move || encoder.encode_every(entries, first, threads, &sender));
                receiver
            })
            .collect();
        for (entry, channel) in entries.iter().zip(channels.iter().cycle()) {
            let record = channel.recv().context("an encoding thread has stopped")?;
            let record = record.and_then(|record| {
                let written = writer.write_with_key(&Key::Int(entry.index), &record.bytes);
                match written {
                    Err(error) if error.kind() == ErrorKind::Limit => Err(Failure::Image(error)),
                    Err(error) => Err(Failure::Output(error)),
                    Ok(_) => Ok(record.is_image),
                }
            });
            match record {
                Ok(is_image) => strangers += u64::from(!is_image),
                Err(Failure::Image(error)) => failures.add(error.in_file(encoder.name(entry)).to_string()),
                Err(Failure::Output(error)) => return Err(error.into()),
            }
            progress.add(1);
        }
        Ok(())
    })?;
    drop(progress);
    let mut notices = Vec::new();
    if strangers > 0 {
        notices.push(format!(
            "{} packed with --pass-through do not look like images",
            term::plural(strangers, "file")
        ));
    }
    let written = writer.finish()?;
    Ok(Packed { list: list.to_owned(), path, written, failed: failures.told, notices })
}

/// Collects what could not be packed, and reports each failure at once, because packing may take hours.
#[derive(Default)]
struct Failures {
    told: Vec<String>,
}

impl Failures {
    fn add(&mut self, message: String) {
        tell(format!("{}failed:{} {}", term::RED, term::RESET, term::clean(&message)));
        self.told.push(message);
    }
}

/// A record ready to be written.
struct Record {
    bytes: Vec<u8>,
    is_image: bool,
}

enum Failure {
    /// This image is left out.
    Image(Error),
    /// Nothing more can be written.
    Output(Error),
}

/// Turns images into records.
struct Encoder<'a> {
    root: &'a Path,
    packing: &'a Packing,
    decoding: DecodeOptions,
}

impl<'a> Encoder<'a> {
    fn new(root: &'a Path, packing: &'a Packing) -> Result<Self> {
        Ok(Encoder { root, packing, decoding: DecodeOptions::opencv(packing.color_flag())? })
    }

    /// Encodes the entries `first`, `first + step`, and so on, until the receiver is dropped.
    fn encode_every(
        &self,
        entries: &[ListEntry],
        first: usize,
        step: usize,
        sender: &SyncSender<Result<Record, Failure>>,
    ) {
        for entry in entries.iter().skip(first).step_by(step) {
            if sender.send(self.encode(entry).map_err(Failure::Image)).is_err() {
                return;
            }
        }
    }

    fn path(&self, entry: &ListEntry) -> PathBuf {
        self.root.join(OsStr::from_bytes(&entry.path))
    }

    fn name(&self, entry: &ListEntry) -> String {
        crate::cmd::show(&self.path(entry))
    }

    fn encode(&self, entry: &ListEntry) -> anyrec::Result<Record> {
        let id = u64::try_from(entry.index).map_err(|_| {
            Error::invalid(format!(
                "index {} cannot be an image id: ids range from 0 to 2^64 - 1",
                entry.index
            ))
        })?;
        let label = match entry.labels.as_slice() {
            [first, _, ..] if !self.packing.pack_label => Label::Scalar(*first),
            [label] => Label::Scalar(*label),
            labels => Label::Array(labels.to_vec()),
        };
        let mut bytes = ImageHeader::new(label, id).to_bytes(LabelWidth::Narrow)?;
        let file = std::fs::read(self.path(entry)).map_err(|error| Error::io("cannot read", error))?;
        if self.packing.pass_through {
            bytes.extend_from_slice(&file);
            return Ok(Record { bytes, is_image: matches!(image::sniff(&file), Kind::Image { .. }) });
        }
        bytes.extend_from_slice(&self.transform(&file)?);
        Ok(Record { bytes, is_image: true })
    }

    /// Decodes an image, crops and resizes it as requested, and encodes it again.
    fn transform(&self, file: &[u8]) -> anyrec::Result<Vec<u8>> {
        let mut picture = image::decode(file, &self.decoding)?;
        if self.packing.center_crop {
            let side = picture.width().min(picture.height());
            picture = image::centre_crop(&picture, side, side)?;
        }
        if self.packing.resize > 0 {
            picture = image::resize_shorter_edge(&picture, self.packing.resize, Filter::Bilinear)?;
        }
        // Out-of-range values are clamped, as in OpenCV.
        match self.packing.encoding.as_str() {
            ".png" => image::encode_png(&picture, self.packing.quality.min(9)),
            _ => image::encode_jpeg(&picture.into_8bit(), self.packing.quality.clamp(1, 100)),
        }
    }
}
