//! Keeping what is intact.
//!
//! Two passes: the first reads every byte and learns what is intact, the second writes that to a
//! new file with the format's own writer. The input is only ever read. As the writer is
//! deterministic, repairing twice gives the same bytes, and repairing a repaired file changes
//! nothing.

use crate::convert::append_scanned;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{self, Content, Format, Notice, OpenOptions, RecordReader, Written, ffrecord};
use crate::io::{ReadAt, Window, display_name, open_file};
use crate::verify::{Report, verify_source};
use std::path::Path;
use std::sync::Arc;

/// How a repair goes.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RepairOptions {
    /// How the input is opened.
    pub open: OpenOptions,
    /// An existing output may be replaced.
    pub overwrite: bool,
    /// FFRecord packed folders: rewrite the tree for the files that are left. Without this the
    /// tree is a record like any other, and a folder that lost files cannot be opened by it.
    pub rebuild_tree: bool,
}

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
    settings: &RepairOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Repair> {
    let (input, output, options) = (input.as_ref(), output.as_ref(), &settings.open);
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
    write_options.overwrite = settings.overwrite;
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
    let reader = unless_damaged(format.open(source.clone(), &reader_options))?;

    let mut writer = format.create(output, &write_options)?;
    let mut scan = format.scan(Window::new(source.clone()), options)?;
    let mut notices = Vec::new();
    let mut tree = None;
    if let Some(last) = lost_tree(&source, format, options, &report)? {
        if settings.rebuild_tree {
            tree = Some((report.records - 1, last));
            notices.push(Notice::new(
                "the packed folder's tree was rewritten: it names the files that are left",
            ));
        } else {
            notices.push(Notice::new(
                "this is a packed folder that lost files: its tree was kept as it is and no longer fits; \
                 repair with `--rebuild-tree` for a folder of the files that are left",
            ));
        }
    }
    append_scanned(&mut *scan, reader.as_deref(), &mut *writer, tree)?;
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

/// For a packed folder that lost files: its tree, rewritten for those that are left.
fn lost_tree(
    source: &Arc<dyn ReadAt>,
    format: &'static dyn Format,
    options: &OpenOptions,
    report: &Report,
) -> Result<Option<Vec<u8>>> {
    if format.id() != ffrecord::FORMAT.id() || report.is_sound() || report.records == 0 {
        return Ok(None);
    }
    let mut lenient = options.clone();
    lenient.skip_damage = true;
    let Some(reader) = unless_damaged(ffrecord::Reader::open(source.clone(), &lenient))? else {
        return Ok(None);
    };
    let Some(offsets) = unless_damaged(reader.offsets())? else { return Ok(None) };
    // Which samples the intact records were: the first that begins where the record does and has
    // not been met yet.
    let mut kept = Vec::new();
    let mut next = 0;
    for (frame, _) in report.positions.frames() {
        let Some(ahead) =
            offsets.get(next..).and_then(|rest| rest.iter().position(|&offset| offset == frame))
        else {
            return Ok(None);
        };
        next += ahead;
        kept.push(next as u64);
        next += 1;
    }
    let Some(last) = kept.pop() else { return Ok(None) };
    match unless_damaged(reader.read(last))? {
        Some(last) => ffrecord::packed_folder::retree(&last, &kept),
        None => Ok(None),
    }
}

/// Nothing where the file does not allow it; an error where there is not enough memory to tell.
fn unless_damaged<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::OutOfMemory => Err(error),
        Err(_) => Ok(None),
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}
