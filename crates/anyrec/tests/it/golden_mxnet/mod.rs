//! Every entry of `testdata/mxnet/good/manifest.json`, and what no manifest can say.

// Numbers of golden files are small.
#![allow(clippy::cast_possible_truncation)]

mod files;
mod index;
mod insightface;
mod malformed;
mod page;
mod pixels;
mod split;
mod writing;

use crate::manifest::Manifest;
use anyrec::Tags;
use anyrec::format::mxnet::{self, FORMAT, IndexFile, Reader};
use anyrec::format::{Damage, Event, Format, Notice, OpenOptions, RecordReader, Scan, WriteOptions};
use anyrec::io::{Access, MemorySource, Source, Window, open_file};
use std::path::Path;
use std::sync::Arc;

/// What a scan yielded, with the check that its events cover the file.
#[derive(Debug, Default, PartialEq)]
struct Scanned {
    records: Vec<Vec<u8>>,
    offsets: Vec<u64>,
    damage: Vec<Damage>,
    notices: Vec<Notice>,
}

fn collect(scan: &mut dyn Scan, length: u64) -> Scanned {
    let mut found = Scanned::default();
    let mut covered = 0;
    loop {
        match scan.next_event().unwrap() {
            Event::Record(record) => {
                assert_eq!(record.span.start, covered);
                assert_eq!(record.position.frame, covered);
                assert!(record.span.end > covered);
                covered = record.span.end;
                found.offsets.push(record.position.frame);
                found.records.push(record.data.to_vec());
            }
            Event::Damage(damage) => {
                assert_eq!(damage.begin, covered);
                assert!(damage.end > covered);
                assert_eq!(damage.record, found.records.len() as u64);
                covered = damage.end;
                found.damage.push(damage);
            }
            Event::Notice(notice) => found.notices.push(notice),
            Event::End => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(scan.next_event().unwrap(), Event::End));
    assert_eq!(covered, length, "every byte lies in an event");
    found
}

fn scan_window(window: Window, length: usize) -> Scanned {
    collect(&mut *FORMAT.scan(window, &OpenOptions::default()).unwrap(), length as u64)
}

fn scan(data: &[u8]) -> Scanned {
    scan_window(Window::new(memory(data)), data.len())
}

fn memory(data: &[u8]) -> Arc<dyn Source> {
    Arc::new(MemorySource::new("x.rec", data.to_vec()))
}

fn options(change: impl FnOnce(&mut mxnet::OpenOptions)) -> OpenOptions {
    let mut own = mxnet::OpenOptions::default();
    change(&mut own);
    OpenOptions::default().with(own)
}

fn write_options(change: impl FnOnce(&mut mxnet::WriteOptions)) -> WriteOptions {
    let mut own = mxnet::WriteOptions::default();
    change(&mut own);
    WriteOptions::default().with(own)
}

fn open(path: &Path) -> Reader {
    Reader::open(open_file(path, Access::Auto).unwrap(), &OpenOptions::default()).unwrap()
}

fn open_without_index(path: &Path) -> Reader {
    let options = options(|options| options.index_file = IndexFile::None);
    Reader::open(open_file(path, Access::Auto).unwrap(), &options).unwrap()
}

/// A file of these records, written by us.
fn written(records: &[&[u8]]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    let mut writer = FORMAT.create(&path, &WriteOptions::default()).unwrap();
    for record in records {
        writer.append(record, &Tags::none()).unwrap();
    }
    writer.finish().unwrap();
    std::fs::read(&path).unwrap()
}

#[test]
fn the_manifest_has_the_sections_that_are_tested() {
    let manifest = Manifest::load("mxnet");
    manifest.assert_sections(&[
        "format",
        "set",
        "seed",
        "made_with",
        "field_notes",
        "files",
        "malformed",
        "inputsplit",
    ]);
    assert_eq!(manifest.root().get("format").str(), "mxnet recordio");
}

/// Key and label of a record, as a reader of it by number sees them.
pub fn tags_of(reader: &dyn RecordReader, number: u64) -> Tags {
    let position = reader.locate(number).unwrap().position;
    reader.tags(number, position, &reader.read(number).unwrap()).unwrap()
}
