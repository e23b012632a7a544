//! Every entry of `testdata/grail/good/manifest.json`, and what the manifest cannot say.

mod damage;
mod errors;
mod files;
mod page;
mod properties;
mod rewrite;

use crate::manifest::{Entry, Manifest, digest};
use anyrec::Value;
use anyrec::format::grail::{self, FORMAT, Registry, Scanner, Transform, Transformer, WriteOptions};
use anyrec::format::{Content, Damage, Event, Format, Integrity, Notice, OpenOptions, RecordReader};
use anyrec::io::{MemorySource, Window};
use anyrec::{Error, Position, Result};
use std::ops::Range;
use std::sync::Arc;

/// The transformer of the golden files that is not built in: adds N to each byte.
struct Plus(u8);

impl Transformer for Plus {
    fn encode(&self, block: &[u8]) -> Result<Vec<u8>> {
        Ok(block.iter().map(|byte| byte.wrapping_add(self.0)).collect())
    }

    fn decode(&self, stored: &[u8], _limit: u64) -> Result<Vec<u8>> {
        Ok(stored.iter().map(|byte| byte.wrapping_sub(self.0)).collect())
    }
}

/// GRAIL's own options, as writers of any format take them.
fn common(own: &WriteOptions) -> anyrec::format::WriteOptions {
    anyrec::format::WriteOptions::default().with(own.clone())
}

pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.register("plus", |config| {
        let number = config.parse().map_err(|_| Error::invalid("plus takes a small number"))?;
        Ok(Arc::new(Plus(number)))
    });
    registry
}

fn options() -> OpenOptions {
    let own = grail::OpenOptions::default().with_registry(registry());
    OpenOptions::default().with(own)
}

fn skipping() -> OpenOptions {
    let mut options = options();
    options.skip_damage = true;
    options
}

fn source(name: &str, data: &[u8]) -> Arc<MemorySource> {
    Arc::new(MemorySource::new(name, data.to_vec()))
}

/// What a scan yields, kept.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Record { position: Position, span: Range<u64>, checksum: Integrity, data: Vec<u8> },
    Metadata { span: Range<u64>, content: Content },
    Damage(Damage),
    Notice(Notice),
}

fn try_scan(window: Window, options: &OpenOptions) -> Result<Vec<Seen>> {
    let mut scan = FORMAT.scan(window, options)?;
    let mut seen = Vec::new();
    loop {
        seen.push(match scan.next_event()? {
            Event::Record(record) => Seen::Record {
                position: record.position,
                span: record.span,
                checksum: record.integrity,
                data: record.data.to_vec(),
            },
            Event::Metadata(metadata) => Seen::Metadata { span: metadata.span, content: metadata.content },
            Event::Damage(damage) => Seen::Damage(damage),
            Event::Notice(notice) => Seen::Notice(notice),
            Event::End => break,
            other => panic!("an event nobody knows: {other:?}"),
        });
    }
    assert!(matches!(scan.next_event()?, Event::End), "the end stays the end");
    Ok(seen)
}

/// Scans bytes, checks that the events cover them, and that a stream gives the same events.
fn scan(name: &str, data: &[u8], options: &OpenOptions) -> Vec<Seen> {
    let seen = try_scan(Window::new(source(name, data)), options).unwrap();
    assert_covered(&seen, data.len() as u64);
    let stream = Window::from_stream(name, std::io::Cursor::new(data.to_vec()));
    assert_eq!(try_scan(stream, options).unwrap(), seen, "{name} as a stream");
    seen
}

/// Every byte lies in exactly one event, in order.
fn assert_covered(seen: &[Seen], length: u64) {
    let mut at = 0;
    let mut records = 0;
    for event in seen {
        let span = match event {
            Seen::Record { span, .. } => {
                records += 1;
                span.clone()
            }
            Seen::Metadata { span, .. } => span.clone(),
            Seen::Damage(damage) => {
                assert_eq!(damage.record, records, "records before {damage:?}");
                assert!(!damage.reason.is_empty());
                damage.begin..damage.end
            }
            Seen::Notice(_) => continue,
        };
        assert_eq!(span.start, at, "{event:?}");
        assert!(span.end >= span.start);
        at = span.end;
    }
    assert_eq!(at, length, "the end of the events");
}

fn records(seen: &[Seen]) -> Vec<Vec<u8>> {
    let data = |event: &Seen| match event {
        Seen::Record { data, .. } => Some(data.clone()),
        _ => None,
    };
    seen.iter().filter_map(data).collect()
}

fn positions(seen: &[Seen]) -> Vec<Position> {
    let position = |event: &Seen| match event {
        Seen::Record { position, .. } => Some(*position),
        _ => None,
    };
    seen.iter().filter_map(position).collect()
}

fn damages(seen: &[Seen]) -> Vec<Damage> {
    let damage = |event: &Seen| match event {
        Seen::Damage(damage) => Some(damage.clone()),
        _ => None,
    };
    seen.iter().filter_map(damage).collect()
}

/// All items a scanner gives, and the error it stops with.
fn drain(scanner: &mut Scanner) -> (Vec<Vec<u8>>, Option<Error>) {
    let mut items = Vec::new();
    loop {
        match scanner.next_item() {
            Ok(Some(item)) => items.push(item.to_vec()),
            Ok(None) => return (items, None),
            Err(error) => {
                assert!(scanner.next_item().unwrap().is_none(), "nothing comes after an error");
                return (items, Some(error));
            }
        }
    }
}

fn open(name: &str, data: &[u8], options: &OpenOptions) -> Result<Box<dyn RecordReader>> {
    FORMAT.open(source(name, data), options)
}

/// The records of a reader: one by one, as one batch backwards, and by the way of `decode`.
fn read_all(reader: &dyn RecordReader) -> Vec<Vec<u8>> {
    let count = reader.count().unwrap();
    let single: Vec<Vec<u8>> = (0..count).map(|index| reader.read(index).unwrap().to_vec()).collect();
    let backwards: Vec<u64> = (0..count).rev().chain(0..count.min(2)).collect();
    let batch = anyrec::read_batch(reader, &backwards).unwrap();
    for (at, &index) in backwards.iter().enumerate() {
        let index = usize::try_from(index).unwrap();
        assert_eq!(batch.get(at).unwrap(), single[index]);
        let location = reader.locate(index as u64).unwrap();
        let frame = reader.source().bytes(location.span.clone()).unwrap();
        assert_eq!(*reader.decode(index as u64, &location, &frame).unwrap(), single[index]);
    }
    single
}

/// The manifest's digest of a sequence of items.
fn sequence_digest(items: &[Vec<u8>]) -> String {
    let mut all = Vec::new();
    for item in items {
        all.extend((item.len() as u64).to_le_bytes());
        all.extend(item);
    }
    digest(&all).1
}

/// A number in the manifest: JSON number or decimal string.
fn value(entry: &Entry<'_>) -> (Vec<u8>, Value) {
    let parts = entry.items();
    let kind = parts[1].str();
    let value = match kind {
        "bool" => Value::Bool(parts[2].bool()),
        "string" => Value::Text(parts[2].str().into()),
        kind if kind.starts_with("uint") => Value::Uint(parts[2].str().parse().unwrap()),
        kind if kind.starts_with("int") => Value::Int(parts[2].str().parse().unwrap()),
        other => panic!("a header value of type {other}"),
    };
    (parts[0].str().into(), value)
}

fn is_null(entry: &Entry<'_>) -> bool {
    entry.json().is_null()
}

#[test]
fn the_manifest_has_no_section_that_nobody_looks_at() {
    let manifest = Manifest::load("grail");
    manifest.assert_sections(&[
        "estimates",
        "field_notes",
        "files",
        "format",
        "made_with",
        "mutations",
        "reader_errors",
        "seed",
        "set",
        "writer_errors",
    ]);
    assert_eq!(manifest.root().get("format").str(), "grail recordio");
    // How the files were made.
    for section in ["field_notes", "made_with", "seed", "set"] {
        manifest.root().get(section).informational();
    }
    manifest.finish(&["format", "field_notes", "made_with", "seed", "set"]);
}
