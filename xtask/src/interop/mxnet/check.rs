//! Reads a file that mxnet wrote.

use super::pictures::describe;
use super::{Entry, Header, Kind, open};
use crate::interop::manifest::{Digest, Shard};
use crate::interop::reading::check_records;
use crate::interop::report::Report;
use anyrec::Key;
use anyrec::format::mxnet::{
    self, ImageHeader, Index, IndexFile, InsightFace, KeyType, LabelWidth, Reader, split_by_bytes,
    split_by_records,
};
use anyrec::format::{OpenOptions, RecordReader};
use anyrec::io::Access;
use anyrec::{Bytes, Result};
use std::collections::BTreeMap;
use std::path::Path;

pub fn check(folder: &Path, entry: &Entry, report: &mut Report) -> Result<()> {
    let path = folder.join(&entry.file);
    let positions: Vec<(u64, u64)> = entry.offsets.iter().map(|&offset| (offset, 0)).collect();
    check_records(&path, "mxnet", &entry.records, Some(&positions), report)?;

    let reader = open(&path, &OpenOptions::default())?;
    report.compare("index file", &entry.index.is_some(), &reader.index_path().is_some());
    let found = entry.offsets.iter().map(|&offset| reader.read_at(offset).map(|record| Digest::of(&record)));
    report.compare_lists("records by offset", &entry.records, &found.collect::<Result<Vec<_>>>()?);

    let records = (0..reader.count()?).map(|number| reader.read(number)).collect::<Result<Vec<_>>>()?;
    check_without_index(&path, &records, report)?;
    if let (Some(index), Some(keys)) = (&entry.index, &entry.keys) {
        check_keys(&folder.join(index), entry, keys, &reader, report)?;
    }
    if let Some(headers) = &entry.headers {
        let found = records.iter().map(|record| Header::of(record)).collect::<Result<Vec<_>>>()?;
        report.compare_lists("headers", headers, &found);
    }
    check_images(entry, &records, report)?;
    for shard in &entry.shards {
        check_shard(entry, shard, &reader, report)?;
    }
    match entry.kind {
        Kind::Images => check_tags(entry, &reader, &records, report),
        Kind::InsightFace => {
            check_tags(entry, &reader, &records, report)?;
            check_faces(entry, &reader, report)
        }
        Kind::Plain | Kind::Indexed | Kind::Packed => Ok(()),
    }
}

/// The index file must not change the records' numbers.
fn check_without_index(path: &Path, records: &[Bytes], report: &mut Report) -> Result<()> {
    let own = mxnet::OpenOptions::default().with_index_file(IndexFile::None);
    let reader = open(path, &OpenOptions::default().with(own))?;
    let found = (0..reader.count()?).map(|number| reader.read(number)).collect::<Result<Vec<_>>>()?;
    report.compare_lists("records without the index file", records, &found);
    Ok(())
}

fn check_keys(
    path: &Path,
    entry: &Entry,
    keys: &[Option<String>],
    reader: &Reader,
    report: &mut Report,
) -> Result<()> {
    let lines: Vec<(&str, u64)> = keys
        .iter()
        .zip(&entry.offsets)
        .filter_map(|(key, &offset)| key.as_deref().map(|key| (key, offset)))
        .collect();
    // With the type of the keys given.
    let told = Index::load(path, Access::Auto, entry.key_type.map(|kind| kind.key_type()))?;
    check_index(&told, &lines, report)?;
    // With the type of the keys detected, as in the reader.
    let Some(index) = reader.index()? else { return Ok(()) };
    check_index(index, &lines, report)?;

    let number_at: BTreeMap<u64, usize> = entry.offsets.iter().copied().zip(0..).collect();
    for (key, offset) in last_of_each(index.key_type(), &lines)? {
        let Some(&number) = number_at.get(&offset) else { continue };
        let what = format!("key {key}");
        report.compare(
            format_args!("{what}: record"),
            &entry.records[number],
            &Digest::of(&reader.by_key(&key)?),
        );
        report.compare(format_args!("{what}: number"), &(number as u64), &reader.number_of_key(&key)?);
        report.compare(format_args!("{what}: found"), &Some(number as u64), &reader.find_key(&key)?);
    }
    for (number, key) in (0..).zip(keys) {
        let key = key.as_deref().map(|key| index.key_type().apply(&Key::Text(key.into()))).transpose()?;
        let position = reader.locate(number)?.position;
        let tags = reader.tags(number, position, &reader.read(number)?)?;
        report.compare(format_args!("key of record {number}"), &key, &tags.key);
    }
    if reader.by_key(&Key::Text("no such key".into())).is_ok() {
        report.differ("key that is not there", "an error", "a record");
    }
    Ok(())
}

/// The offset of each key; for a repeated key, that of the last line.
fn last_of_each(key_type: KeyType, lines: &[(&str, u64)]) -> Result<BTreeMap<Key, u64>> {
    lines.iter().map(|&(key, offset)| Ok((key_type.apply(&Key::Text(key.into()))?, offset))).collect()
}

fn check_index(index: &Index, lines: &[(&str, u64)], report: &mut Report) -> Result<()> {
    let as_key = |key: &str| index.key_type().apply(&Key::Text(key.into()));
    let expected =
        lines.iter().map(|&(key, offset)| Ok((as_key(key)?, offset))).collect::<Result<Vec<_>>>()?;
    let found: Vec<(Key, u64)> = index.keys().zip(index.offsets().iter().copied()).collect();
    report.compare_lists("lines of the index file", &expected, &found);
    for (key, offset) in last_of_each(index.key_type(), lines)? {
        report.compare(format_args!("offset of key {key}"), &Some(offset), &index.get(&key));
    }
    Ok(())
}

fn check_images(entry: &Entry, records: &[Bytes], report: &mut Report) -> Result<()> {
    for (number, (image, record)) in entry.images.iter().flatten().zip(records).enumerate() {
        let Some(expected) = image else { continue };
        let (_, payload) = ImageHeader::unpack(record, LabelWidth::Narrow)?;
        report.compare(format_args!("images[{number}]"), expected, &describe(payload)?);
    }
    Ok(())
}

fn check_shard(entry: &Entry, shard: &Shard, reader: &Reader, report: &mut Report) -> Result<()> {
    let indexed = shard.indexed.unwrap_or(false);
    let what = format!("shard {} of {}, indexed {indexed}", shard.start, shard.n);
    let range = if indexed {
        split_by_records(reader.index()?.map_or(0, Index::len) as u64, shard.start, shard.n)?
    } else {
        split_by_bytes(reader.positions()?, reader.source().len(), shard.start, shard.n)?
    };
    report.compare(format_args!("{what}: limit"), &shard.limit, &(shard.start + 1));
    report.compare(format_args!("{what}: count"), &shard.count, &(range.end - range.start));
    let first = (!range.is_empty()).then_some(range.start);
    report.compare(format_args!("{what}: first"), &shard.first, &first);
    report.compare(
        format_args!("{what}: within the file"),
        &true,
        &(range.end <= entry.records.len() as u64),
    );
    Ok(())
}

/// Labels and ids as every format's reader returns them.
fn check_tags(entry: &Entry, reader: &Reader, records: &[Bytes], report: &mut Report) -> Result<()> {
    report.compare("label width", &Some(LabelWidth::Narrow), &reader.label_width()?);
    for ((number, record), header) in (0..).zip(records).zip(entry.headers.iter().flatten()) {
        let tags = reader.tags(number, reader.locate(number)?.position, record)?;
        let (unpacked, payload) = ImageHeader::unpack(record, LabelWidth::Narrow)?;
        report.compare(format_args!("label of record {number}"), &Some(unpacked.label), &tags.label);
        report.compare(format_args!("ids of record {number}"), &Some([header.id, header.id2]), &tags.ids);
        let header_length = record.len() - payload.len();
        report.compare(format_args!("header of record {number}"), &header_length, &tags.header_length);
        report.compare(format_args!("payload of record {number}"), &header.payload, &Digest::of(payload));
    }
    Ok(())
}

/// The typed view of InsightFace datasets.
fn check_faces(entry: &Entry, reader: &Reader, report: &mut Report) -> Result<()> {
    let faces = InsightFace::open(reader)?;
    report.compare("InsightFace header", &true, &faces.has_header());
    let keys = entry.keys.iter().flatten().map(|key| key.as_deref().and_then(|key| key.parse::<u64>().ok()));
    let by_key: BTreeMap<u64, &Header> = keys
        .zip(entry.headers.iter().flatten())
        .filter_map(|(key, header)| key.map(|key| (key, header)))
        .collect();
    let labels = by_key.get(&0).map(|header| header.whole_labels()).unwrap_or_default();
    let [images_end, identities_end] = labels[..] else {
        report.differ("record of key 0", "two labels", labels);
        return Ok(());
    };
    report.compare("identity keys", &(images_end..identities_end), &faces.identity_keys());
    let expected: Vec<_> = (images_end..identities_end)
        .map(|key| (key, by_key.get(&key).map(|header| header.whole_labels())))
        .collect();
    let mut found = Vec::new();
    for identity in faces.identities() {
        let identity = identity?;
        found.push((identity.key, Some(vec![identity.images.start, identity.images.end])));
    }
    report.compare_lists("identities", &expected, &found);
    let image_keys: Vec<Key> = faces.image_keys().collect();
    let expected: Vec<Key> = (1..images_end).map(|key| Key::Int(key.into())).collect();
    report.compare_lists("image keys", &expected, &image_keys);
    for (key, number) in image_keys.iter().zip(1..) {
        let image = faces.image(key)?;
        let Some(header) = by_key.get(&number) else { continue };
        report.compare(format_args!("face {number}: payload"), &header.payload, &Digest::of(&image.payload));
        let class = header.whole_labels().first().copied();
        report.compare(format_args!("face {number}: class"), &class, &image.class());
    }
    Ok(())
}
