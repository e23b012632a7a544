//! Rewrites a file of grailbio/base from what we read.
//!
//! Blocks end where they ended in the original; headers, trailer and items follow. Compressed files
//! are skipped: two correct compressors write different bytes.

use super::{Entry, Kind, scanner};
use crate::interop::compare_files;
use crate::interop::report::Report;
use anyrec::format::grail::legacy::RecordKind;
use anyrec::format::grail::{LegacyPackedWriter, LegacyWriter, Scanner, WriteOptions, Writer};
use anyrec::{Error, Position, Result};
use std::path::Path;

/// Large enough that no block ends by itself.
const NO_LIMIT: u64 = 10 << 20;

pub fn rewrite(folder: &Path, entry: &Entry, scratch: &Path, report: &mut Report) -> Result<bool> {
    let path = folder.join(&entry.file);
    let scanner = scanner(&path)?;
    let output = match entry.kind {
        Kind::V2 if entry.transformers.is_empty() => version_two(scanner)?,
        Kind::Unpacked | Kind::Packed | Kind::Mixed => legacy(scanner, &path)?,
        Kind::V2 | Kind::PackedFlate => return Ok(false),
    };
    let rewritten = scratch.join(&entry.file);
    std::fs::write(&rewritten, output).map_err(|error| Error::io("cannot write", error))?;
    compare_files(&path, &rewritten, report)?;
    Ok(true)
}

fn version_two(mut scanner: Scanner) -> Result<Vec<u8>> {
    let options = WriteOptions::default().with_max_items(NO_LIMIT);
    let mut output = Vec::new();
    let mut writer = Writer::new(&mut output, &options)?;
    for (key, value) in scanner.header().pairs() {
        writer.add_header(key.clone(), value.clone())?;
    }
    let trailer = scanner.trailer()?;
    for (position, item) in items(&mut scanner)? {
        if position.item == 0 {
            writer.flush()?;
        }
        writer.append(&item)?;
    }
    if let Some(trailer) = trailer {
        writer.set_trailer(&trailer)?;
    }
    writer.finish()?;
    drop(writer);
    Ok(output)
}

/// Records of either kind, as they are stored in the file.
fn legacy(mut scanner: Scanner, path: &Path) -> Result<Vec<u8>> {
    let file = std::fs::read(path).map_err(|error| Error::io("cannot read", error))?;
    let options = WriteOptions::default().with_max_items(NO_LIMIT);
    let mut output = Vec::new();
    let items = items(&mut scanner)?;
    for record in items.chunk_by(|(one, _), (next, _)| one.frame == next.frame) {
        let magic = record.first().and_then(|(position, _)| {
            file.get(usize::try_from(position.frame).ok()?..)?.first_chunk().copied()
        });
        match magic.and_then(RecordKind::from_magic) {
            Some(RecordKind::Unpacked) => {
                let mut writer = LegacyWriter::new(&mut output);
                for (_, item) in record {
                    writer.write(item)?;
                }
                writer.finish()?;
            }
            Some(RecordKind::Packed) => {
                let mut writer = LegacyPackedWriter::new(&mut output, &options)?;
                for (_, item) in record {
                    writer.write(item)?;
                }
                writer.finish()?;
            }
            None => return Err(Error::invalid("a record does not begin with its magic")),
        }
    }
    Ok(output)
}

fn items(scanner: &mut Scanner) -> Result<Vec<(Position, Vec<u8>)>> {
    let mut items = Vec::new();
    while let Some(item) = scanner.next_item()? {
        let item = item.to_vec();
        let position = scanner.location().ok_or_else(|| Error::invalid("an item has no location"))?;
        items.push((position, item));
    }
    Ok(items)
}
