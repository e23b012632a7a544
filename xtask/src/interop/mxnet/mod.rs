//! MXNet RecordIO, exchanged with mxnet.

mod check;
mod make;
mod pictures;

use super::manifest::{Digest, Shard};
use super::random::Random;
use super::report::Report;
use super::{Exchange, compare_files};
use anyrec::Result;
use anyrec::format::mxnet::{self, ImageHeader, Index, IndexFile, KeyType, LabelWidth, Reader, Writer};
use anyrec::format::{OpenOptions, RecordReader, WriteOptions};
use anyrec::io::{Access, open_file};
use serde::{Deserialize, Serialize};
use std::path::Path;

pub struct Mxnet;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    file: String,
    kind: Kind,
    records: Vec<Digest>,
    offsets: Vec<u64>,
    index: Option<String>,
    key_type: Option<KeyKind>,
    keys: Option<Vec<Option<String>>>,
    headers: Option<Vec<Header>>,
    images: Option<Vec<Option<Image>>>,
    shards: Vec<Shard>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Plain,
    Indexed,
    Packed,
    Images,
    InsightFace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KeyKind {
    Int,
    Str,
}

impl KeyKind {
    fn key_type(self) -> KeyType {
        match self {
            KeyKind::Int => KeyType::Int,
            KeyKind::Str => KeyType::Text,
        }
    }
}

/// An image header. Labels are stored as hex of little-endian `f32`, so that bits are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    flag: u64,
    labels: String,
    id: u64,
    id2: u64,
    payload: Digest,
}

impl Header {
    fn of(record: &[u8]) -> Result<Self> {
        let (header, payload) = ImageHeader::unpack(record, LabelWidth::Narrow)?;
        Ok(Header {
            flag: header.flag(),
            labels: labels_in_hex(header.labels()),
            id: header.id,
            id2: header.id2,
            payload: Digest::of(payload),
        })
    }

    /// The labels, if they are what InsightFace stores: whole numbers.
    fn whole_labels(&self) -> Vec<u64> {
        let bytes = hex::decode(&self.labels).unwrap_or_default();
        let (labels, _) = bytes.as_chunks();
        labels.iter().map(|&label| f32::from_le_bytes(label) as u64).collect()
    }
}

fn labels_in_hex(labels: &[f64]) -> String {
    hex::encode(labels.iter().flat_map(|&label| (label as f32).to_le_bytes()).collect::<Vec<u8>>())
}

/// An image as OpenCV decodes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Image {
    encoding: String,
    depth: u8,
    shape: Vec<u64>,
    bgr_sha256: Option<String>,
}

fn open(path: &Path, options: &OpenOptions) -> Result<Reader> {
    Reader::open(open_file(path, Access::Auto)?, options)
}

impl Exchange for Mxnet {
    const FORMAT: &'static str = "mxnet";
    type Entry = Entry;

    fn file(entry: &Entry) -> &str {
        &entry.file
    }

    fn check(folder: &Path, entry: &Entry, report: &mut Report) -> Result<()> {
        check::check(folder, entry, report)
    }

    fn rewrite(folder: &Path, entry: &Entry, scratch: &Path, report: &mut Report) -> Result<bool> {
        let reader = open(&folder.join(&entry.file), &OpenOptions::default())?;
        let index = match (&entry.index, entry.key_type) {
            (Some(name), Some(kind)) => {
                Some(Index::load(&folder.join(name), Access::Auto, Some(kind.key_type()))?)
            }
            _ => None,
        };
        let index_file = if index.is_some() { IndexFile::Beside } else { IndexFile::None };
        let own = mxnet::WriteOptions::default().with_index_file(index_file);
        let options = WriteOptions::default().with(own);
        let mut writer = Writer::create(&scratch.join(&entry.file), &options)?;
        for number in 0..reader.count()? {
            let offset = reader.locate(number)?.position.frame;
            let record = reader.read(number)?;
            match index.as_ref().and_then(|index| index.key_at(offset)) {
                Some(key) => writer.write_with_key(&key, &record)?,
                None => writer.write(&record)?,
            };
        }
        writer.finish()?;
        for name in std::iter::once(&entry.file).chain(&entry.index) {
            compare_files(&folder.join(name), &scratch.join(name), report)?;
        }
        Ok(true)
    }

    fn write(folder: &Path, ordinal: u64, random: &mut Random) -> Result<Entry> {
        make::file(folder, ordinal, random)
    }
}
