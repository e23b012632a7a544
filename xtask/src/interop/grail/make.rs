//! Generated files for grailbio/base to read.

use super::{Entry, Kind, Pair, as_location, describe_pairs, read_shard, scanner};
use crate::interop::manifest::{Digest, Shard};
use crate::interop::random::Random;
use anyrec::format::grail::{
    FORMAT, LegacyPackedWriter, LegacyWriter, PackedEvent, TRAILER_KEY, TRANSFORMER_KEY, Transform, Version,
    WriteOptions, Writer, layout, legacy,
};
use anyrec::format::{self, Format};
use anyrec::{BString, Error, Result};
use anyrec::{Tags, Value};
use std::path::Path;

/// What blocks and legacy records begin with: inside an item these are plain bytes.
const MAGICS: [&[u8]; 4] =
    [&layout::HEADER_MAGIC, &layout::BODY_MAGIC, &layout::TRAILER_MAGIC, &legacy::PACKED_MAGIC];

pub fn file(folder: &Path, ordinal: u64, random: &mut Random) -> Result<Entry> {
    let items = items(random);
    let (kind, extension) = match random.weighted(&[60, 12, 12, 12, 4]) {
        0 => (Kind::V2, "grail-rio"),
        1 => (Kind::Unpacked, "grail-rio"),
        2 => (Kind::Packed, "grail-rpk"),
        3 => (Kind::PackedFlate, "grail-rpk-gz"),
        _ => (Kind::Mixed, "grail-rio"),
    };
    let mut entry = Entry {
        file: format!("{ordinal:05}.{extension}"),
        version: if kind == Kind::V2 { 2 } else { 1 },
        kind,
        transformers: Vec::new(),
        header: Vec::new(),
        trailer: None,
        records: items.iter().map(|item| Digest::of(item)).collect(),
        locations: Vec::new(),
        shards: Vec::new(),
    };
    let path = folder.join(&entry.file);
    if random.chance(25) && kind != Kind::Mixed {
        through_format(&path, &items, &mut entry, random)?;
    } else {
        let output = match kind {
            Kind::V2 => version_two(&items, &mut entry, random)?,
            Kind::Unpacked => unpacked(&items, &mut entry, random)?,
            Kind::Packed | Kind::PackedFlate => packed(&items, &mut entry, random)?,
            Kind::Mixed => mixed(&items, &mut entry)?,
        };
        std::fs::write(&path, output).map_err(|error| Error::io("cannot write", error))?;
    }
    if kind == Kind::V2 {
        entry.shards = shards(&path, &entry, random)?;
    }
    Ok(entry)
}

fn items(random: &mut Random) -> Vec<Vec<u8>> {
    // Sometimes more than the default number of items in a block.
    let count = if random.chance(4) { random.between(16_300..=17_000) } else { random.count() };
    (0..count)
        .map(|_| {
            let size = random.size(count);
            random.payload(size, &MAGICS)
        })
        .collect()
}

fn transformers(random: &mut Random) -> Vec<String> {
    let zstd = ["zstd", "zstd -1", "zstd 0", "zstd 1", "zstd 3", "zstd 9", "zstd 22"];
    let flate = ["flate", "flate -1", "flate -2", "flate 0", "flate 1", "flate 5", "flate 9"];
    let count = random.weighted(&[30, 50, 14, 6]);
    (0..count)
        .map(|_| if random.chance(55) { random.choose(&zstd) } else { random.choose(&flate) }.to_owned())
        .collect()
}

fn pairs(random: &mut Random) -> Vec<(BString, Value)> {
    let many = random.between(1..=20);
    let count = random.choose(&[0, 0, 1, 3, many]);
    (0..count)
        .map(|number| {
            let numbered = format!("key{number}");
            let key = random.choose(&["", "name", "ключ", "a key with spaces", &numbered]);
            (key.into(), value(random))
        })
        .collect()
}

fn value(random: &mut Random) -> Value {
    let bits = random.bits();
    match random.weighted(&[1, 2, 2, 2]) {
        0 => Value::Bool(bits & 1 == 1),
        1 => {
            let any = bits.cast_signed();
            Value::Int(random.choose(&[any, any >> 50, -1, 0, i64::MIN, i64::MAX]))
        }
        2 => Value::Uint(random.choose(&[bits, bits >> 50, 0, u64::MAX])),
        _ => {
            // Long values make the header block larger than one chunk.
            let long = random.between(1..=50_000);
            let length = random.choose(&[0, 1, 50, 200, long]);
            Value::Text(random.choose(&["x", "é", "値"]).repeat(length).into())
        }
    }
}

fn trailer(random: &mut Random) -> Vec<u8> {
    let sizes = [0, random.between(1..=500), random.between(1..=70_000)];
    let size = random.choose(&sizes);
    random.payload(size, &MAGICS)
}

fn options(entry: &mut Entry, item_count: usize, random: &mut Random) -> WriteOptions {
    let mut options = WriteOptions::default();
    entry.transformers = transformers(random);
    options.transformers = entry.transformers.iter().map(|name| Transform::from(name.as_str())).collect();
    if random.chance(50) {
        options.max_items = Some((item_count / 20).max(random.between(1..=40)) as u64);
    }
    options.parallelism = random.choose(&[None, Some(1), Some(3)]);
    options
}

/// The pairs that a writer puts before the others.
fn reserved_pairs(options: &WriteOptions) -> Vec<Pair> {
    let named = |name: &Transform| (BString::from(TRANSFORMER_KEY), Value::Text(name.to_string().into()));
    let mut pairs: Vec<_> = options.transformers.iter().map(named).collect();
    if options.trailer {
        pairs.push((TRAILER_KEY.into(), Value::Bool(true)));
    }
    describe_pairs(&pairs)
}

fn version_two(items: &[Vec<u8>], entry: &mut Entry, random: &mut Random) -> Result<Vec<u8>> {
    let mut options = options(entry, items.len(), random);
    let trailer = random.chance(40).then(|| trailer(random));
    // Declared by the option, or by a pair that the caller adds.
    options.trailer = trailer.is_some() && random.chance(50);
    let mut header = pairs(random);
    if trailer.is_some() && !options.trailer {
        header.insert(0, (TRAILER_KEY.into(), Value::Bool(true)));
    }
    entry.header = reserved_pairs(&options);
    entry.header.extend(describe_pairs(&header));
    entry.trailer = trailer.as_ref().map(hex::encode);
    let flush_percent = if items.len() <= 300 { random.choose(&[0, 0, 5, 20]) } else { 0 };
    // A second writer may continue where the first one ended.
    let cut =
        if items.len() > 1 && random.chance(10) { random.between(1..=items.len() - 1) } else { items.len() };
    let (first, second) = items.split_at(cut);

    let mut output = Vec::new();
    let mut locations = Vec::new();
    let mut writer = Writer::new(&mut output, &options)?;
    writer.on_index(|_, position| {
        locations.push(as_location(position));
        Ok(())
    })?;
    for (key, value) in header {
        writer.add_header(key, value)?;
    }
    append(&mut writer, first, flush_percent, random)?;
    if let (true, Some(trailer)) = (second.is_empty(), &trailer) {
        writer.set_trailer(trailer)?;
    }
    writer.finish()?;
    drop(writer);

    if !second.is_empty() {
        let begin = output.len() as u64;
        options.trailer = trailer.is_some();
        let mut writer = Writer::new(&mut output, &options)?;
        writer.skip_header()?;
        writer.on_index(|_, position| {
            locations.push((begin + position.frame, position.item));
            Ok(())
        })?;
        append(&mut writer, second, flush_percent, random)?;
        if let Some(trailer) = &trailer {
            writer.set_trailer(trailer)?;
        }
        writer.finish()?;
    }
    entry.locations = locations;
    Ok(output)
}

fn append(writer: &mut Writer<'_>, items: &[Vec<u8>], flush_percent: u32, random: &mut Random) -> Result<()> {
    for item in items {
        writer.append(item)?;
        if random.chance(flush_percent) {
            writer.flush()?;
            if random.chance(20) {
                writer.wait()?;
            }
        }
    }
    Ok(())
}

fn unpacked(items: &[Vec<u8>], entry: &mut Entry, random: &mut Random) -> Result<Vec<u8>> {
    let mut output = Vec::new();
    let mut writer = LegacyWriter::new(&mut output);
    writer.on_index(|offset, _| {
        entry.locations.push((offset, 0));
        Ok(())
    });
    for item in items {
        if random.chance(50) {
            writer.write(item)?;
        } else {
            let (one, other) = item.split_at(random.between(0..=item.len()));
            writer.write_slices(&[one, other])?;
        }
    }
    writer.finish()?;
    drop(writer);
    Ok(output)
}

fn packed(items: &[Vec<u8>], entry: &mut Entry, random: &mut Random) -> Result<Vec<u8>> {
    let mut options = WriteOptions::default();
    if entry.kind == Kind::PackedFlate {
        let level = random.choose(&[-2, -1, 0, 1, 5, 9]);
        options.transformers = vec![Transform::flate_level(level)];
    }
    if random.chance(40) {
        options.max_items = Some(random.between(1..=30) as u64);
    }
    let largest = items.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let max_bytes = if random.chance(40) { largest * random.between(1..=4) } else { 0 };
    let flush_percent = random.choose(&[0, 0, 5, 30]);
    let mut output = Vec::new();
    let mut writer = LegacyPackedWriter::new(&mut output, &options)?;
    writer.set_max_bytes(max_bytes as u64);
    writer.on_index(|event| {
        if let PackedEvent::Record { offset, items, .. } = event {
            entry.locations.extend((0..items).map(|item| (offset, item)));
        }
        Ok(())
    });
    for item in items {
        writer.write(item)?;
        if random.chance(flush_percent) {
            writer.flush()?;
        }
    }
    writer.finish()?;
    drop(writer);
    Ok(output)
}

/// One item unpacked, then up to three packed, and so on.
fn mixed(items: &[Vec<u8>], entry: &mut Entry) -> Result<Vec<u8>> {
    let mut output = Vec::new();
    for group in items.chunks(4) {
        let Some((first, rest)) = group.split_first() else { continue };
        entry.locations.push((output.len() as u64, 0));
        let mut writer = LegacyWriter::new(&mut output);
        writer.write(first)?;
        writer.finish()?;
        drop(writer);
        entry.locations.extend((0..rest.len() as u64).map(|item| (output.len() as u64, item)));
        let mut writer = LegacyPackedWriter::new(&mut output, &WriteOptions::default())?;
        for item in rest {
            writer.write(item)?;
        }
        writer.finish()?;
    }
    Ok(output)
}

/// The same through the interface that all formats share, to a file.
fn through_format(path: &Path, items: &[Vec<u8>], entry: &mut Entry, random: &mut Random) -> Result<()> {
    let mut options = match entry.kind {
        Kind::V2 => options(entry, items.len(), random),
        _ => WriteOptions::default(),
    };
    let mut trailer_bytes = None;
    options.version = match entry.kind {
        Kind::V2 => {
            trailer_bytes = random.chance(40).then(|| trailer(random));
            options.trailer = trailer_bytes.is_some();
            options.header = pairs(random);
            entry.header = reserved_pairs(&options);
            entry.header.extend(describe_pairs(&options.header));
            Version::Two
        }
        Kind::Unpacked => Version::LegacyUnpacked,
        _ => Version::LegacyPacked,
    };
    let mut writer = FORMAT.create(path, &format::WriteOptions::default().with(options))?;
    for item in items {
        writer.append(item, &Tags::none())?;
    }
    if let Some(trailer) = &trailer_bytes {
        writer.set_trailer(trailer)?;
    }
    entry.trailer = trailer_bytes.map(hex::encode);
    writer.finish()?;
    // This interface returns no positions, but the scan does.
    let mut scanner = scanner(path)?;
    while scanner.next_item()?.is_some() {
        entry.locations.extend(scanner.location().map(as_location));
    }
    Ok(())
}

/// The result of our sharded scan, for the original to confirm. With two or more transformers, the
/// original cannot scan from one block to the next.
fn shards(path: &Path, entry: &Entry, random: &mut Random) -> Result<Vec<Shard>> {
    let mut blocks: Vec<u64> = entry.locations.iter().map(|(block, _)| *block).collect();
    blocks.dedup();
    if entry.transformers.len() > 1 && blocks.len() > 1 {
        return Ok(Vec::new());
    }
    let n = random.choose(&[1, 2, 3, 4, 7, 16]);
    let mut shards = Vec::new();
    for _ in 0..n.min(4) {
        let start = random.between(0..=n - 1);
        let limit = random.between(start + 1..=n);
        let (start, limit, n) = (start as u64, limit as u64, n as u64);
        let (records, first) = read_shard(path, start, limit, n)?;
        let first = first
            .and_then(|first| entry.locations.iter().position(|&location| location == as_location(first)));
        shards.push(Shard {
            n,
            start,
            limit,
            indexed: None,
            first: first.map(|first| first as u64),
            count: records.len() as u64,
        });
    }
    Ok(shards)
}
