//! Expands paths, directories and patterns into files.

use crate::base::{Error, Result, shown};
use crate::format;
use std::path::{Path, PathBuf};

/// Expands paths, directories (every record file directly inside, by name) and glob patterns into
/// files. The list is never empty.
///
/// # Errors
/// A path that does not exist; a directory or pattern without a record file.
pub fn expand(paths: &[impl AsRef<Path>]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        let path = path.as_ref();
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => files.extend(files_of_directory(path)?),
            Ok(_) => files.push(path.to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                files.extend(files_of_pattern(path)?)
            }
            Err(error) => {
                return Err(Error::io("cannot open", error).in_file(path));
            }
        }
    }
    if files.is_empty() {
        return Err(Error::invalid("no file was named"));
    }
    Ok(files)
}

fn files_of_directory(path: &Path) -> Result<Vec<PathBuf>> {
    let name = shown(path);
    let io_error = |error| Error::io("cannot list", error).in_file(name.clone());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io_error)? {
        let entry = entry.map_err(io_error)?.path();
        if entry.is_file() && format::by_name(&entry).is_some() {
            files.push(entry);
        }
    }
    if files.is_empty() {
        return Err(Error::invalid("the directory has no record files in it")
            .in_file(name)
            .with_hint("files are taken by their names there; name other files one by one"));
    }
    files.sort();
    Ok(files)
}

fn files_of_pattern(path: &Path) -> Result<Vec<PathBuf>> {
    let name = shown(path);
    let missing =
        || Error::io("cannot open", std::io::Error::from_raw_os_error(libc::ENOENT)).in_file(name.clone());
    let pattern = path.to_str().filter(|text| text.contains(['*', '?', '['])).ok_or_else(missing)?;
    let matches = glob::glob(pattern).map_err(|error| {
        Error::invalid(format!("not a glob pattern: {}", error.msg)).in_file(name.clone())
    })?;
    let mut files: Vec<PathBuf> =
        matches.filter_map(|entry| entry.ok()).filter(|path| path.is_file()).collect();
    if files.is_empty() {
        return Err(Error::invalid("no file matches the pattern").in_file(name));
    }
    files.sort();
    Ok(files)
}
