//! The companion files of a `.rec` file: where the index file is, and whether it matches the data.

use super::index_file::{Index, LOST_OFFSET, show};
use super::options::{self as own, IndexFile};
use crate::base::{Error, ErrorKind, Hint, Position, PositionList, Result, shown};
use crate::format::{Notice, OpenOptions};
use crate::io::{Access, Source};
use std::path::{Path, PathBuf};

/// The path of the index file: the one named in the options, or the one beside the file if it
/// exists.
///
/// # Errors
/// The operating system's error if the named file does not exist.
pub(super) fn index_path(source: &dyn Source, options: &OpenOptions) -> Result<Option<PathBuf>> {
    match &options.own::<own::OpenOptions>().index_file {
        IndexFile::None => Ok(None),
        IndexFile::At(path) => match path.metadata() {
            Ok(_) => Ok(Some(path.clone())),
            Err(error) => Err(Error::io("cannot open the index file", error).in_file(name(path))),
        },
        IndexFile::Beside => {
            let beside = source.path().and_then(beside);
            Ok(beside.filter(|path| path.is_file()))
        }
    }
}

/// The name of the index file beside `path`, unless that is `path` itself.
pub(super) fn beside(path: &Path) -> Option<PathBuf> {
    let beside = path.with_extension("idx");
    (beside != path).then_some(beside)
}

/// A path as shown in messages.
pub(super) fn name(path: &Path) -> String {
    shown(path)
}

/// Loads the index file, provided the data file is still the one that is open: both may have been
/// replaced in the meantime.
pub(super) fn load(source: &dyn Source, path: &Path, access: Access) -> Result<Index> {
    let index = Index::load(path, access, None);
    // An index file is published after its data. If the data file is still in place now, the index
    // read above cannot be newer than it.
    source.check_still_named()?;
    index
}

/// Checks the index file against the actual positions of the records.
pub(super) fn check(
    source: &dyn Source,
    options: &OpenOptions,
    positions: &PositionList,
) -> Result<Vec<Notice>> {
    let Some(path) = index_path(source, options)? else { return Ok(Vec::new()) };
    let called = format!("index file {}", name(&path));
    let hint = Hint::rebuild_keys(source.name());
    let index = match load(source, &path, options.access) {
        Ok(index) => index,
        // Only an I/O failure is an error here. An index file that does not parse is a finding.
        Err(error)
            if error.io_error().is_some()
                || matches!(error.kind(), ErrorKind::Stale | ErrorKind::OutOfMemory) =>
        {
            return Err(error);
        }
        Err(error) => {
            return Ok(vec![Notice::new(format!("index file {error}")).with_hint(hint).stale()]);
        }
    };
    let mut notices = Vec::new();
    if let Some((line, key)) = index.first_text_key() {
        notices.push(Notice::new(format!("{called}: keys are read as text, as line {line} has key {key:?}")));
    }
    if let lost @ 1.. = index.lost() {
        notices.push(
            Notice::new(format!(
                "{called}: {lost} offsets are {LOST_OFFSET} (-1) because the writer did not know them"
            ))
            .with_hint(hint.clone())
            .stale(),
        );
    }
    let is_record = |offset: u64| positions.index_of(Position::of_frame(offset)).is_some();
    let mut wrong = index
        .offsets()
        .iter()
        .enumerate()
        .filter(|(_, offset)| **offset != LOST_OFFSET && !is_record(**offset));
    if let Some((entry, &offset)) = wrong.next() {
        let key = index.key(entry).map(|key| show(&key)).unwrap_or_default();
        let count = 1 + wrong.count();
        notices.push(Notice::at(
            offset,
            format!("{called} is stale: {count} of {} offsets are not those of records, the first is {offset} of key {key}", index.len()),
        )
        .with_hint(hint)
        .stale());
    }
    let indexed = index.sorted_offsets().into_iter().filter(|&offset| is_record(offset)).count() as u64;
    if let missing @ 1.. = positions.len().saturating_sub(indexed) {
        notices.push(Notice::new(format!("{called} leaves out {missing} of {} records", positions.len())));
    }
    let mut keys: Vec<_> = index.keys().collect();
    keys.sort_unstable();
    keys.dedup();
    if let repeated @ 1.. = index.len() - keys.len() {
        notices.push(Notice::new(format!(
            "{called}: {repeated} keys are repeated; the last line for a key is used"
        )));
    }
    Ok(notices)
}
