//! Writes an index: the format's own index file, or a table of positions.

use super::verify::verify_source;
use crate::base::{Error, Hint, Result};
use crate::dataset::{RecordFile, Table};
use crate::format::OpenOptions;
use crate::io::{AtomicFile, Durability};
use std::path::{Path, PathBuf};

/// The options for indexing a file.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct IndexOptions {
    /// How to open the file. With `skip_damage`, the intact records of a damaged file are indexed.
    pub open: OpenOptions,
    /// Where to write the index file (default: beside the file).
    pub output: Option<PathBuf>,
    /// Write a table even if the format has its own index file.
    pub table: bool,
    /// Replace an existing index file. A table is always replaced.
    pub overwrite: bool,
}

/// What was written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Indexed {
    /// The index file or table.
    pub path: PathBuf,
    /// The number of records it lists.
    pub records: u64,
    /// The kind of index, as one sentence.
    pub reason: String,
    /// Whether damage was skipped.
    pub damaged: bool,
}

/// Writes a file's index: its format's index file if there is one, else a [`Table`].
///
/// # Errors
/// Damage, unless `options.open.skip_damage`; an existing index file, unless `options.overwrite`; the
/// operating system's error.
pub fn index(
    path: impl AsRef<Path>,
    options: &IndexOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Indexed> {
    let path = path.as_ref();
    let file = RecordFile::open(path, &options.open)?;
    let format = file.format();
    let own = if options.table { None } else { format.index_file_for(path) };
    let Some(beside) = own else {
        if options.output.is_some() {
            return Err(Error::invalid("a table always stands beside its file, as NAME.anyrec-table"));
        }
        let table = build_table(&file, path, &options.open, progress)?;
        let reason = "a table of positions, used whenever the file is opened".to_owned();
        let records = table.positions().len();
        return Ok(Indexed { path: table.save(path)?, records, reason, damaged: false });
    };
    let name = file.name().to_owned();
    let output = options.output.clone().unwrap_or(beside);
    let built = format.build_index(&mut *file.scan(&options.open)?, &output, &options.open, progress)?;
    if built.damaged_stretches > 0 && !options.open.skip_damage {
        let places = match built.damaged_stretches {
            1 => "1 place".to_owned(),
            count => format!("{count} places"),
        };
        return Err(Error::corrupt(format!("the file is damaged in {places}"))
            .in_file(&name)
            .with_hint(Hint::IndexDamaged { file: name.clone() }));
    }
    let mut file = AtomicFile::create_or_stream(&output, options.overwrite, Durability::Machine)?;
    file.append(&built.bytes)?;
    file.commit()?;
    let damaged = built.damaged_stretches > 0;
    Ok(Indexed { path: output, records: built.records, reason: built.reason, damaged })
}

/// Scans a data file and creates its table. Nothing is written.
fn build_table(
    file: &RecordFile,
    path: &Path,
    options: &OpenOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Table> {
    let source = file.source().ok_or_else(|| Error::invalid("a stream has no table"))?;
    let report = verify_source(source, file.format(), options, progress)?;
    match report.damage.first() {
        Some(damage) if !options.skip_damage => Err(damage.clone().into_error(source.name())),
        _ => Table::of(source, path, file.format(), report.positions, progress),
    }
}
