//! Reads a file that grailbio/base wrote.

use super::{Entry, as_location, describe_pairs, read_shard, scanner, transformers_of};
use crate::interop::manifest::{Digest, Shard};
use crate::interop::reading::{Scanned, check_records};
use crate::interop::report::Report;
use anyrec::format::{Content, RecordReader};
use anyrec::{Position, Result};
use std::path::Path;

/// Bounds the number of seeks in one file: each one decodes a whole block.
const SEEKS: usize = 40;

pub fn check(folder: &Path, entry: &Entry, report: &mut Report) -> Result<()> {
    let path = folder.join(&entry.file);
    let (scanned, reader) = check_records(&path, "grail", &entry.records, Some(&entry.locations), report)?;
    check_contents(entry, &scanned, report);
    check_info(entry, &*reader, report)?;
    check_scanner(&path, entry, report)?;
    for shard in &entry.shards {
        check_shard(&path, entry, shard, report)?;
    }
    Ok(())
}

fn check_contents(entry: &Entry, scanned: &Scanned, report: &mut Report) {
    let (mut header, mut trailer) = (Vec::new(), None);
    for content in &scanned.contents {
        match content {
            Content::Header(pairs) => header = describe_pairs(pairs),
            Content::Trailer(bytes) => trailer = Some(hex::encode(bytes)),
            other => report.differ("scan", "header and trailer only", other),
        }
    }
    report.compare_lists("scan: header", &entry.header, &header);
    report.compare("scan: trailer", &entry.trailer, &trailer);
}

fn check_info(entry: &Entry, reader: &dyn RecordReader, report: &mut Report) -> Result<()> {
    let info = reader.info()?;
    report.compare_lists("reader: header", &entry.header, &describe_pairs(&info.header));
    report.compare("reader: trailer", &entry.trailer, &info.trailer.map(hex::encode));
    let is_two = info.version.starts_with('2');
    report.compare("reader: version 2", &(entry.version == 2), &is_two);
    Ok(())
}

/// The scanner that matches the original's.
fn check_scanner(path: &Path, entry: &Entry, report: &mut Report) -> Result<()> {
    let mut scanner = scanner(path)?;
    // An empty file has no version.
    let is_empty = path.metadata().is_ok_and(|metadata| metadata.len() == 0);
    report.compare("version", &if is_empty { 0 } else { entry.version }, &scanner.version());
    let header = describe_pairs(scanner.header().pairs());
    report.compare_lists("header", &entry.header, &header);
    report.compare_lists("transformers", &entry.transformers, &transformers_of(&header));
    report.compare("trailer", &entry.trailer, &scanner.trailer()?.map(hex::encode));

    let (mut records, mut locations) = (Vec::new(), Vec::new());
    while let Some(item) = scanner.next_item()? {
        records.push(Digest::of(item));
        locations.extend(scanner.location().map(as_location));
    }
    report.compare_lists("scanner: records", &entry.records, &records);
    report.compare_lists("scanner: locations", &entry.locations, &locations);

    // From the last to the first, two items at each location.
    let places = entry.locations.iter().enumerate().rev();
    for (number, &(frame, item)) in places.step_by(entry.locations.len().div_ceil(SEEKS).max(1)) {
        scanner.seek(Position { frame, item })?;
        for at in [number, number + 1] {
            let found = scanner.next_item()?.map(Digest::of);
            let expected = entry.records.get(at).cloned();
            report.compare(format_args!("item {at} after a seek to ({frame}, {item})"), &expected, &found);
        }
    }
    Ok(())
}

fn check_shard(path: &Path, entry: &Entry, shard: &Shard, report: &mut Report) -> Result<()> {
    let what = format!("shards [{},{}) of {}", shard.start, shard.limit, shard.n);
    let (records, first) = read_shard(path, shard.start, shard.limit, shard.n)?;
    report.compare(format_args!("{what}: count"), &shard.count, &(records.len() as u64));
    let begin = usize::try_from(shard.first.unwrap_or(0)).unwrap_or(usize::MAX);
    let expected = entry.records.get(begin..).unwrap_or_default();
    let expected = expected.get(..records.len()).unwrap_or(expected);
    report.compare_lists(&what, expected, &records);
    let place = shard.first.and_then(|_| entry.locations.get(begin).copied());
    report.compare(format_args!("{what}: first"), &place, &first.map(as_location));
    Ok(())
}
