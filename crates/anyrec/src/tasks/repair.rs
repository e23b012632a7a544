//! Repairs files by keeping what is intact.
//!
//! There are two passes. The first reads every byte and finds what is intact; the second writes
//! that to a new file with the format's own writer. The input is only read. The writer is
//! deterministic, so repairing twice gives the same bytes, and repairing a repaired file changes
//! nothing.

use super::verify::{Report, verify_source};
use crate::base::{Error, ErrorKind, Result};
use crate::format::{self, Content, Mended, Notice, OpenOptions, Written};
use crate::io::{Window, open_file};
use crate::tasks::convert::append_scanned;
use std::path::Path;
use std::sync::Arc;

/// The options for a repair.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RepairOptions {
    /// How to open the input.
    pub open: OpenOptions,
    /// Replace an existing output.
    pub overwrite: bool,
    /// Packed folders: rewrite the tree for the remaining files. Without this, the tree is a record
    /// like any other, and a folder that lost files cannot be opened with it.
    pub rebuild_tree: bool,
}

/// What a repair kept and what it lost.
#[derive(Debug)]
#[non_exhaustive]
pub struct Repair {
    /// The result of the first pass: intact records, all damage, every byte accounted for.
    pub report: Report,
    /// What was written.
    pub written: Written,
}

/// Writes the intact records of `input` to `output`, in the same format and order.
///
/// # Errors
/// If the input cannot be read, the output exists and `overwrite` is false, input and output are
/// the same file, or the damage leaves nothing to write a file from (an IDX header).
pub fn repair(
    input: impl AsRef<Path>,
    output: impl AsRef<Path>,
    settings: &RepairOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Repair> {
    let (input, output, options) = (input.as_ref(), output.as_ref(), &settings.open);
    if same_file(input, output) {
        return Err(Error::invalid("a repair never writes over its input").in_file(output).with_hint(
            "give another name, and replace the old file yourself once you have seen the result",
        ));
    }
    let source = open_file(input, options.access)?;
    let format = format::identify(&*source, options.format)?;
    let report = verify_source(&source, format, options, progress)?;

    if format.capabilities().fixed_size
        && !report.contents.iter().any(|content| matches!(content, Content::Shape { .. }))
    {
        let reason = report.damage.first().map_or("there is no header", |damage| &damage.reason);
        return Err(Error::corrupt(format!("without its header the file has no records to keep: {reason}"))
            .in_file(source.name())
            .at(0));
    }
    let head = source.bytes(0..source.len().min(format::HEAD as u64))?;
    let write_options =
        format.options_like(&head, &report.contents, options).with_overwrite(settings.overwrite);
    let mut reader_options = options.clone();
    reader_options.positions = Some(Arc::new(report.positions.clone()));
    reader_options.skip_damage = true;
    // Keys come from the reader, if it opens. If the table or header is too damaged for that, there
    // are no keys.
    let reader = unless_damaged(format.open(source.clone(), &reader_options))?;

    let mut writer = format.create(output, &write_options)?;
    let mut scan = format.scan(Window::new(source.clone()), options)?;
    let mended = match report.damage.is_empty() {
        true => Mended::default(),
        false => format.mend(&source, options, &report.positions, settings.rebuild_tree)?,
    };
    let mut notices = mended.notices;
    append_scanned(&mut *scan, reader.as_deref(), &mut *writer, mended.record)?;
    source.check_unchanged()?;
    for content in &report.contents {
        if let Content::Trailer(trailer) = content {
            writer.set_trailer(trailer)?;
            if !report.damage.is_empty() {
                notices.push(Notice::new(
                    "the trailer was kept as it is: if it is an index of positions, it fits the damaged file only",
                ));
            }
        }
    }
    let mut written = writer.finish()?;
    written.notices.extend(notices);
    Ok(Repair { report, written })
}

/// Returns what could be read, or `None` if damage prevents it. A disk error or too little memory
/// is not damage: intact data must not be dropped because of it.
fn unless_damaged<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
        Err(error) => Err(error),
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}
