//! Checks for every format: the file is recognised, and scan, stream and reader return the same
//! records at the same positions.

use super::manifest::Digest;
use super::report::Report;
use anyrec::format::{Content, Event, OpenOptions, RecordReader};
use anyrec::io::Access;
use anyrec::{Error, RecordFile, Result};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The result of scanning a file.
#[derive(Debug, Default)]
pub struct Scanned {
    pub records: Vec<Digest>,
    /// Frame and item of each record.
    pub positions: Vec<(u64, u64)>,
    /// Header, shape, trailer.
    pub contents: Vec<Content>,
}

/// Scans an input to its end. Damage and notices are differences, because the originals wrote sound
/// files.
pub fn scan(input: RecordFile, options: &OpenOptions, report: &mut Report) -> Result<Scanned> {
    let mut scan = input.scan(options)?;
    let mut scanned = Scanned::default();
    loop {
        match scan.next_event()? {
            Event::Record(record) => {
                scanned.records.push(Digest::of(record.data));
                scanned.positions.push((record.position.frame, record.position.item));
            }
            Event::Metadata(metadata) => scanned.contents.push(metadata.content),
            Event::Damage(damage) => report.differ("scan", "no damage", damage),
            Event::Notice(notice) => report.differ("scan", "nothing odd", notice),
            Event::End => return Ok(scanned),
            _ => report.differ("scan", "a known event", "another"),
        }
    }
}

/// Reads a file in every way that all formats support and compares records and positions, if the
/// manifest has them. Returns the scan and the reader, for checks specific to the format.
pub fn check_records(
    path: &Path,
    format: &str,
    records: &[Digest],
    positions: Option<&[(u64, u64)]>,
    report: &mut Report,
) -> Result<(Scanned, Arc<dyn RecordReader>)> {
    let options = OpenOptions::default();
    let input = RecordFile::open(path, &options)?;
    report.compare("format", format, input.format().id());
    let scanned = scan(input, &options, report)?;
    report.compare_lists("scan: records", records, &scanned.records);
    let positions = positions.unwrap_or(&scanned.positions);
    report.compare_lists("scan: positions", positions, &scanned.positions);

    // An empty stream has no name to detect its format from.
    let named = OpenOptions::default().with_format(anyrec::format::named(format)?);
    let name = path.to_string_lossy();
    let file = File::open(path).map_err(|error| Error::io("cannot open", error).in_file(name.as_ref()))?;
    let streamed = scan(RecordFile::stream(&name, file, &named)?, &named, report)?;
    report.compare_lists("stream: records", records, &streamed.records);
    report.compare_lists("stream: positions", positions, &streamed.positions);

    for access in [Access::Positional, Access::Mapped] {
        let mut options = OpenOptions::default();
        options.access = access;
        let reader = open_reader(path, &options)?;
        check_reader(&*reader, access, records, positions, report)?;
    }
    Ok((scanned, open_reader(path, &options)?))
}

fn open_reader(path: &Path, options: &OpenOptions) -> Result<Arc<dyn RecordReader>> {
    let opened = RecordFile::open(path, options)?.reader(options)?;
    opened.map(|opened| opened.reader).ok_or_else(|| Error::invalid("a file has no reader"))
}

fn check_reader(
    reader: &dyn RecordReader,
    access: Access,
    records: &[Digest],
    positions: &[(u64, u64)],
    report: &mut Report,
) -> Result<()> {
    let count = reader.count()?;
    report.compare(format_args!("{access:?} reader: count"), &(records.len() as u64), &count);
    let (mut found, mut found_positions) = (Vec::new(), Vec::new());
    for number in 0..count {
        found.push(Digest::of(&reader.read(number)?));
        let position = reader.locate(number)?.position;
        found_positions.push((position.frame, position.item));
    }
    report.compare_lists(format_args!("{access:?} reader: records"), records, &found);
    report.compare_lists(format_args!("{access:?} reader: positions"), positions, &found_positions);
    // Backwards, so that the requested order differs from the order in the file.
    let backwards: Vec<u64> = (0..count).rev().collect();
    let batch = anyrec::read_batch(reader, &backwards)?;
    let mut found: Vec<Digest> = batch.iter().map(Digest::of).collect();
    found.reverse();
    report.compare_lists(format_args!("{access:?} reader: batch"), records, &found);
    if reader.read(count).is_ok() {
        report.differ("record past the last", "an error", "a record");
    }
    Ok(())
}
