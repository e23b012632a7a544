//! Keeping what is intact.
//!
//! Two passes: the first reads every byte and learns what is intact, the second writes that to a
//! new file with the format's own writer. The input is only ever read. As the writer is
//! deterministic, repairing twice gives the same bytes, and repairing a repaired file changes
//! nothing.

use crate::convert::append_scanned;
use crate::error::{Error, Result};
use crate::format::{self, Content, Notice, OpenOptions, Written};
use crate::io::{Window, display_name, open_file};
use crate::verify::{Report, verify_source};
use std::path::Path;
use std::sync::Arc;

/// What a repair kept and what it left behind.
#[derive(Debug)]
#[non_exhaustive]
pub struct Repair {
    /// What the first pass found: intact records, all damage, every byte accounted for.
    pub report: Report,
    /// What was written.
    pub written: Written,
}

/// Writes the intact records of `input` to `output`, in the same format and order.
///
/// # Errors
/// When the input cannot be read, the output exists and `overwrite` is false, input and output
/// are one file, or the damage leaves nothing to make a file from (an IDX header).
pub fn repair(
    input: impl AsRef<Path>,
    output: impl AsRef<Path>,
    options: &OpenOptions,
    overwrite: bool,
    progress: &mut dyn FnMut(u64),
) -> Result<Repair> {
    let (input, output) = (input.as_ref(), output.as_ref());
    if same_file(input, output) {
        return Err(Error::invalid("a repair never writes over its input")
            .in_file(display_name(output))
            .with_hint("give another name with `-o`, and replace the old file yourself once you have seen the result"));
    }
    let source = open_file(input, options.access)?;
    let format = format::identify(&*source, options.format.as_deref())?;
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
    let mut write_options = format.options_like(&head, &report.contents);
    write_options.overwrite = overwrite;
    write_options.registry = options.transformers.clone();
    if let (Some("1-packed"), Some(transform)) = (write_options.version.as_deref(), &options.legacy_transform)
    {
        write_options.transformers = vec![transform.clone()];
    }
    let mut reader_options = options.clone();
    reader_options.positions = Some(Arc::new(report.positions.clone()));
    reader_options.skip_damage = true;
    // Keys come from the reader where one can be had; a table or header too damaged to open has
    // none to give.
    let reader = format.open(source.clone(), &reader_options).ok();

    let mut writer = format.create(output, &write_options)?;
    let mut scan = format.scan(Window::new(source.clone()), options)?;
    append_scanned(&mut *scan, reader.as_deref(), &mut *writer)?;
    let mut notices = Vec::new();
    for content in &report.contents {
        if let Content::Trailer(trailer) = content {
            writer.set_trailer(trailer)?;
            if !report.is_sound() {
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

fn same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}
