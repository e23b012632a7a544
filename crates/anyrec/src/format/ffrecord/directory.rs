//! Sets of files: a folder opened as one data set, and the parts that `dump` writes.

use super::python_text;
use crate::base::{Error, Result};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The files a folder stands for: all `*.ffr` directly in it, hidden ones too, sorted by name as
/// Python sorts strings (by code point).
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// for name in ["b.ffr", "B.ffr", ".a.ffr", "notes.txt"] {
///     std::fs::write(folder.path().join(name), "").unwrap();
/// }
/// let files = anyrec::format::ffrecord::directory_files(folder.path())?;
/// let names: Vec<_> = files.iter().filter_map(|file| file.file_name()).collect();
/// assert_eq!(names, [".a.ffr", "B.ffr", "b.ffr"]);
/// # Ok::<(), anyrec::Error>(())
/// ```
///
/// # Errors
/// What the system says.
pub fn directory_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| Error::io("cannot list the folder", error).in_file(folder);
    let mut names = Vec::new();
    for entry in folder.read_dir().map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name.as_bytes().ends_with(b".ffr") {
            names.push(name);
        }
    }
    names.sort_by(|one, other| python_text::compare(one.as_bytes(), other.as_bytes()));
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

/// How `ffrecord.utils.dump` splits `count` samples over `files` files: name and samples of each
/// part. All have ⌈count / files⌉ samples but the last, so there may be fewer parts than asked
/// for. With `files` = 1 the original gives the one file the caller's own name instead.
///
/// ```
/// let parts = anyrec::format::ffrecord::part_files(23, 5);
/// assert_eq!(parts.len(), 5);
/// assert_eq!(parts[4], ("PART_00004.ffr".to_owned(), 20..23));
/// assert_eq!(anyrec::format::ffrecord::part_files(4, 3).len(), 2);
/// ```
pub fn part_files(count: u64, files: u64) -> Vec<(String, Range<u64>)> {
    let size = count.div_ceil(files.max(1)).max(1);
    (0..count.div_ceil(size))
        .map(|part| {
            let begin = part * size;
            (format!("PART_{part:05}.ffr"), begin..count.min(begin.saturating_add(size)))
        })
        .collect()
}
