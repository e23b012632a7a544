//! The files that stand beside a `.rec` file: where the index file is, and whether it is right.

use super::index_file::{Index, LOST_OFFSET, show};
use super::options::{self as own, IndexFile};
use crate::base::{Error, ErrorKind, Hint, Position, PositionList, Result, shown};
use crate::format::{Notice, OpenOptions};
use crate::io::{Access, Source};
use std::path::{Path, PathBuf};

/// The index file's path: the one named in the options, or the one beside the file if there is.
///
/// # Errors
/// What the system says about a named file that is not there.
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

/// The name an index file beside `path` has, unless that is `path` itself.
pub(super) fn beside(path: &Path) -> Option<PathBuf> {
    let beside = path.with_extension("idx");
    (beside != path).then_some(beside)
}

/// A path as messages show it.
pub(super) fn name(path: &Path) -> String {
    shown(path)
}

/// The index file, if it belongs to the file that is open: both may have been replaced meanwhile.
pub(super) fn load(source: &dyn Source, path: &Path, access: Access) -> Result<Index> {
    let index = Index::load(path, access, None);
    // Index files get their names after their data: where the data still has its name now, the
    // index read before this is not a newer one.
    source.check_still_named()?;
    index
}

/// What is wrong with the index file, in the light of where the records are.
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
        // Only reading itself may fail here; a file full of nonsense is a finding.
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
                "{called}: {lost} offsets are {LOST_OFFSET} (-1), as the writer could not tell them"
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
            "{called}: {repeated} keys occur again; the last line of a key counts"
        )));
    }
    Ok(notices)
}
