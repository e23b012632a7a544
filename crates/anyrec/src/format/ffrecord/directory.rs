//! Sets of files: a folder opened as one data set, and the part files that `dump` writes.

use super::python_text;
use crate::base::memory::check_available;
use crate::base::{Error, Result};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Memory per part file for its name and range, also as Python objects.
const PER_PART: usize = 256;

/// The files of a folder opened as a data set: all `*.ffr` directly in it, including hidden ones,
/// sorted by name as Python sorts strings (by code point).
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
/// The operating system's error.
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

/// How `ffrecord.utils.dump` divides `count` samples among `files` files: the name and samples of
/// each part. Every part but the last has ⌈count / files⌉ samples, so there may be fewer parts than
/// requested. With `files` = 1 the original instead uses the caller's own name for the single file.
///
/// ```
/// # fn main() -> anyrec::Result<()> {
/// let parts = anyrec::format::ffrecord::part_files(23, 5)?;
/// assert_eq!(parts.len(), 5);
/// assert_eq!(parts[4], ("PART_00004.ffr".to_owned(), 20..23));
/// assert_eq!(anyrec::format::ffrecord::part_files(4, 3)?.len(), 2);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`OutOfMemory`](crate::ErrorKind::OutOfMemory) if there are too many parts to list.
pub fn part_files(count: u64, files: u64) -> Result<Vec<(String, Range<u64>)>> {
    let size = count.div_ceil(files.max(1)).max(1);
    let parts = count.div_ceil(size);
    check_available(usize::try_from(parts).unwrap_or(usize::MAX).saturating_mul(PER_PART))?;
    let part = |part: u64| {
        let begin = part * size;
        (format!("PART_{part:05}.ffr"), begin..count.min(begin.saturating_add(size)))
    };
    Ok((0..parts).map(part).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn more_parts_than_memory_is_an_error() {
        assert_eq!(part_files(1 << 60, 1 << 60).unwrap_err().kind(), ErrorKind::OutOfMemory);
    }
}
