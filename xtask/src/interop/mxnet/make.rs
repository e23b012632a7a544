//! Generated files for mxnet to read.

use super::pictures::{self, describe};
use super::{Entry, Header, Image, KeyKind, Kind, labels_in_hex, open};
use crate::interop::manifest::{Digest, Shard};
use crate::interop::random::Random;
use anyrec::Result;
use anyrec::format::mxnet::{
    self, FORMAT, ImageHeader, IndexFile, LabelWidth, MAGIC, Writer, split_by_bytes, split_by_records,
};
use anyrec::format::{Format, OpenOptions, RecordReader, WriteOptions};
use anyrec::{Key, Label, Tags};
use std::path::Path;

pub fn file(folder: &Path, ordinal: u64, random: &mut Random) -> Result<Entry> {
    match random.weighted(&[25, 30, 20, 17, 8]) {
        0 => plain_or_indexed(folder, ordinal, random, Kind::Plain),
        1 => plain_or_indexed(folder, ordinal, random, Kind::Indexed),
        2 => packed(folder, ordinal, random),
        3 => images(folder, ordinal, random),
        _ => insightface(folder, ordinal, random),
    }
}

/// A file being written, with its entry.
struct Making {
    writer: Writer,
    entry: Entry,
}

impl Making {
    fn begin(folder: &Path, ordinal: u64, kind: Kind, key_type: Option<KeyKind>) -> Result<Self> {
        let entry = empty_entry(ordinal, kind, key_type);
        let index_file = if key_type.is_some() { IndexFile::Beside } else { IndexFile::None };
        let own = mxnet::WriteOptions::default().with_index_file(index_file);
        let options = WriteOptions::default().with(own);
        Ok(Making { writer: Writer::create(&folder.join(&entry.file), &options)?, entry })
    }

    fn add(&mut self, key: Option<&Key>, record: &[u8]) -> Result<()> {
        let offset = match key {
            Some(key) => self.writer.write_with_key(key, record)?,
            None => self.writer.write(record)?,
        };
        self.entry.offsets.push(offset);
        self.entry.records.push(Digest::of(record));
        if let Some(keys) = &mut self.entry.keys {
            keys.push(key.map(Key::to_string));
        }
        Ok(())
    }

    /// Adds a record with an image header, and its expected result in mxnet to the entry.
    fn add_packed(
        &mut self,
        key: Option<&Key>,
        header: &ImageHeader,
        payload: &[u8],
        image: Option<Image>,
    ) -> Result<()> {
        self.add(key, &header.pack(payload, LabelWidth::Narrow)?)?;
        self.entry.headers.get_or_insert_default().push(expected_header(header, payload));
        if let Some(images) = &mut self.entry.images {
            images.push(image);
        }
        Ok(())
    }

    fn finish(self) -> Result<Entry> {
        self.writer.finish()?;
        Ok(self.entry)
    }
}

/// The entry of a file without records.
fn empty_entry(ordinal: u64, kind: Kind, key_type: Option<KeyKind>) -> Entry {
    Entry {
        file: format!("{ordinal:05}.rec"),
        kind,
        records: Vec::new(),
        offsets: Vec::new(),
        index: key_type.map(|_| format!("{ordinal:05}.idx")),
        key_type,
        keys: key_type.map(|_| Vec::new()),
        headers: None,
        images: None,
        shards: Vec::new(),
    }
}

fn expected_header(header: &ImageHeader, payload: &[u8]) -> Header {
    // An empty list of labels is written as the single label 0.
    let labels = if header.labels().is_empty() { &[0.0] } else { header.labels() };
    Header {
        flag: header.flag(),
        labels: labels_in_hex(labels),
        id: header.id,
        id2: header.id2,
        payload: Digest::of(payload),
    }
}

fn plain_or_indexed(folder: &Path, ordinal: u64, random: &mut Random, kind: Kind) -> Result<Entry> {
    let count = random.count();
    let (key_type, keys) = match kind {
        Kind::Plain => (None, vec![None; count]),
        _ => some_keys(random, count),
    };
    let mut making = Making::begin(folder, ordinal, kind, key_type)?;
    for key in &keys {
        let size = random.size(count);
        making.add(key.as_ref(), &random.payload(size, &[&MAGIC.to_le_bytes()]))?;
    }
    making.finish()
}

/// Keys of one type; a record without one gets no line in the index file.
fn some_keys(random: &mut Random, count: usize) -> (Option<KeyKind>, Vec<Option<Key>>) {
    let kind = random.choose(&[KeyKind::Int, KeyKind::Int, KeyKind::Str]);
    let mut keys: Vec<Key> = match kind {
        KeyKind::Int => integer_keys(random, count).into_iter().map(Key::Int).collect(),
        KeyKind::Str => (0..count).map(|number| Key::Text(text_key(random, number).into())).collect(),
    };
    let some_are_left_out = random.chance(15);
    let keys = keys.drain(..).map(|key| (!(some_are_left_out && random.chance(20))).then_some(key));
    (Some(kind), keys.collect())
}

fn integer_keys(random: &mut Random, count: usize) -> Vec<i128> {
    let mut keys: Vec<i128> = (0..count as i128).collect();
    match random.weighted(&[1, 1, 1, 1, 1]) {
        0 => {}
        1 => random.shuffle(&mut keys),
        2 => keys.iter_mut().for_each(|key| *key = *key * 1_000_003 + random.between(0..=1_000_002) as i128),
        3 => {
            let edges = [-1, i64::MIN.into(), 1 << 31, 1 << 32, 1 << 63, u64::MAX.into(), 10i128.pow(25)];
            for key in &mut keys {
                *key = if random.chance(30) { random.choose(&edges) } else { *key };
            }
        }
        _ => keys.iter_mut().for_each(|key| *key = random.between(0..=count / 2) as i128),
    }
    keys
}

fn text_key(random: &mut Random, number: usize) -> String {
    match random.weighted(&[1, 1, 1, 1, 1, 1]) {
        0 => format!("{number:08}"),
        1 => format!("val/{number}.png"),
        2 => format!("three small words {number}"),
        3 => format!("ключ-{number}-ß-鍵"),
        4 => random.between(0..=50).to_string(),
        _ => format!("-{number}"),
    }
}

fn packed(folder: &Path, ordinal: u64, random: &mut Random) -> Result<Entry> {
    let count = random.count();
    let (key_type, keys) =
        if random.chance(50) { some_keys(random, count) } else { (None, vec![None; count]) };
    let mut making = Making::begin(folder, ordinal, Kind::Packed, key_type)?;
    making.entry.headers = Some(Vec::new());
    for key in &keys {
        let mut header = ImageHeader::new(label(random), identifier(random));
        header.id2 = identifier(random);
        let size = random.size(count);
        let payload = random.payload(size, &[&MAGIC.to_le_bytes()]);
        making.add_packed(key.as_ref(), &header, &payload, None)?;
    }
    making.finish()
}

fn label(random: &mut Random) -> Label {
    let edges = [0.0, -0.0, 1.5, 3e38, 1e-45, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    match random.weighted(&[30, 20, 20, 20, 10]) {
        0 => Label::Scalar(random.choose(&edges)),
        1 => Label::Scalar(random.number()),
        2 => Label::Array((0..random.between(1..=12)).map(|number| number as f64).collect()),
        3 => Label::Array((0..random.between(1..=200)).map(|_| random.number()).collect()),
        _ => Label::Array(Vec::new()),
    }
}

fn identifier(random: &mut Random) -> u64 {
    let any = random.bits();
    random.choose(&[0, 1, any, 1 << 63, u64::MAX])
}

/// Images with their number as label, so that the labels of a part show which records it has.
fn images(folder: &Path, ordinal: u64, random: &mut Random) -> Result<Entry> {
    let count = random.between(1..=25);
    let indexed = random.chance(60);
    let key_type = indexed.then_some(KeyKind::Int);
    let pictures = (0..count).map(|_| pictures::random(random)).collect::<Result<Vec<_>>>()?;
    let mut entry = if random.chance(50) {
        images_by_tags(folder, ordinal, key_type, &pictures)?
    } else {
        let mut making = Making::begin(folder, ordinal, Kind::Images, key_type)?;
        making.entry.images = Some(Vec::new());
        for (number, picture) in pictures.iter().enumerate() {
            let header = ImageHeader::new(Label::Scalar(number as f64), identifier(random));
            let key = indexed.then_some(Key::Int(number as i128));
            making.add_packed(key.as_ref(), &header, picture, Some(describe(picture)?))?;
        }
        making.finish()?
    };
    entry.shards = shards(folder, &entry, random)?;
    Ok(entry)
}

/// The same through the interface that all formats share: the header is built from the tags.
fn images_by_tags(
    folder: &Path,
    ordinal: u64,
    key_type: Option<KeyKind>,
    pictures: &[Vec<u8>],
) -> Result<Entry> {
    let mut entry = empty_entry(ordinal, Kind::Images, key_type);
    let path = folder.join(&entry.file);
    let mut writer = FORMAT.create(&path, &WriteOptions::default())?;
    for (number, picture) in (0u32..).zip(pictures) {
        let label = Label::Scalar(number.into());
        let mut tags = Tags::none().with_label(label.clone());
        if let Some(keys) = &mut entry.keys {
            tags = tags.with_key(Key::Int(number.into()));
            keys.push(Some(number.to_string()));
        }
        writer.append(picture, &tags)?;
        let header = ImageHeader::new(label, number.into());
        entry.records.push(Digest::of(&header.pack(picture, LabelWidth::Narrow)?));
        entry.headers.get_or_insert_default().push(expected_header(&header, picture));
        entry.images.get_or_insert_default().push(Some(describe(picture)?));
    }
    writer.finish()?;
    let reader = open(&path, &OpenOptions::default())?;
    entry.offsets = (0..reader.count()?)
        .map(|number| Ok(reader.locate(number)?.position.frame))
        .collect::<Result<_>>()?;
    Ok(entry)
}

/// What our splitting gives each worker, for mxnet to confirm.
fn shards(folder: &Path, entry: &Entry, random: &mut Random) -> Result<Vec<Shard>> {
    let reader = open(&folder.join(&entry.file), &OpenOptions::default())?;
    let parts = random.choose(&[1, 2, 3, 5]);
    let mut shards = Vec::new();
    for indexed in [false, true] {
        if indexed && entry.index.is_none() {
            continue;
        }
        for part in 0..parts {
            let range = if indexed {
                split_by_records(entry.records.len() as u64, part, parts)?
            } else {
                split_by_bytes(reader.positions()?, reader.source().len(), part, parts)?
            };
            shards.push(Shard {
                n: parts,
                start: part,
                limit: part + 1,
                indexed: Some(indexed),
                first: (!range.is_empty()).then_some(range.start),
                count: range.end - range.start,
            });
        }
    }
    Ok(shards)
}

/// A training set like those of InsightFace's tools: images by person, a record for each person,
/// and the header with key 0, which some of the tools write last.
fn insightface(folder: &Path, ordinal: u64, random: &mut Random) -> Result<Entry> {
    let mut making = Making::begin(folder, ordinal, Kind::InsightFace, Some(KeyKind::Int))?;
    making.entry.images = Some(Vec::new());
    let persons: Vec<usize> = (0..random.between(1..=6)).map(|_| random.between(1..=5)).collect();
    let images_end = 1 + persons.iter().sum::<usize>();
    let header = range_header(images_end, images_end + persons.len(), 0);
    let header_first = random.chance(50);
    if header_first {
        making.add_packed(Some(&Key::Int(0)), &header, b"", None)?;
    }
    let mut key = 1;
    let mut ranges = Vec::new();
    for (person, &count) in persons.iter().enumerate() {
        ranges.push((key, key + count));
        for _ in 0..count {
            let class = person as f64;
            let label = if random.chance(50) { Label::Scalar(class) } else { Label::Array(vec![class, 1.0]) };
            let picture = pictures::random(random)?;
            let header = ImageHeader::new(label, key as u64);
            let image = Some(describe(&picture)?);
            making.add_packed(Some(&Key::Int(key as i128)), &header, &picture, image)?;
            key += 1;
        }
    }
    for (first, limit) in ranges {
        let header = range_header(first, limit, key as u64);
        making.add_packed(Some(&Key::Int(key as i128)), &header, b"", None)?;
        key += 1;
    }
    if !header_first {
        making.add_packed(Some(&Key::Int(0)), &header, b"", None)?;
    }
    making.finish()
}

fn range_header(first: usize, limit: usize, id: u64) -> ImageHeader {
    ImageHeader::new(Label::Array(vec![first as f64, limit as f64]), id)
}
