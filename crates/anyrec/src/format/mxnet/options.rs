//! The options specific to MXNet RecordIO.

use super::FORMAT;
use crate::base::{Error, Result};
use crate::format::{self, Format, FormatOptions, Setting, SettingValue};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Where a file's index file (`.idx`) is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum IndexFile {
    /// Reading: the `.idx` beside the file, if it exists. Writing: a new one beside the file.
    #[default]
    Beside,
    /// The given file.
    At(PathBuf),
    /// No index file is read or written.
    None,
}

/// How `.rec` files are opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// The index file.
    pub index_file: IndexFile,
}

impl OpenOptions {
    /// Sets [`index_file`](OpenOptions::index_file).
    #[must_use]
    pub fn with_index_file(mut self, index_file: IndexFile) -> Self {
        self.index_file = index_file;
        self
    }
}

impl FormatOptions for OpenOptions {
    fn format() -> &'static dyn Format {
        &FORMAT
    }
}

/// How `.rec` files are written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The index file. If not set, one is written beside the file if any record has a key.
    pub index_file: Option<IndexFile>,
    /// Labels are written as `f64` (header `IdQQ`, some forks) instead of `f32`.
    pub wide_labels: bool,
}

impl WriteOptions {
    /// Sets [`index_file`](WriteOptions::index_file).
    #[must_use]
    pub fn with_index_file(mut self, index_file: IndexFile) -> Self {
        self.index_file = Some(index_file);
        self
    }

    /// Sets [`wide_labels`](WriteOptions::wide_labels).
    #[must_use]
    pub fn with_wide_labels(mut self, wide_labels: bool) -> Self {
        self.wide_labels = wide_labels;
        self
    }
}

impl FormatOptions for WriteOptions {
    fn format() -> &'static dyn Format {
        &FORMAT
    }
}

pub(super) const OPEN: &[Setting] =
    &[Setting::new("index_file", "FILE", "the index file (default: the .idx beside the file)")
        .with_flag("index-file")];

pub(super) const WRITE: &[Setting] = &[
    Setting::new("index_file", "FILE", "the index file (default: beside the file if a record has a key)"),
    Setting::new("wide_labels", "", "write labels as 64-bit floats"),
];

pub(super) fn set_open(options: &mut format::OpenOptions, name: &str, value: &SettingValue) -> Result<()> {
    let mut own: OpenOptions = options.own();
    match name {
        "index_file" => own.index_file = index_file(value)?,
        _ => return Err(Error::invalid("no such setting")),
    }
    options.set(own);
    Ok(())
}

pub(super) fn set_write(options: &mut format::WriteOptions, name: &str, value: &SettingValue) -> Result<()> {
    let mut own: WriteOptions = options.own();
    match name {
        "index_file" => own.index_file = Some(index_file(value)?),
        "wide_labels" => own.wide_labels = value.flag()?,
        _ => return Err(Error::invalid("no such setting")),
    }
    options.set(own);
    Ok(())
}

/// Parses a path, or a boolean for the index file beside the data.
fn index_file(value: &SettingValue) -> Result<IndexFile> {
    match value.flag() {
        Ok(true) => Ok(IndexFile::Beside),
        Ok(false) => Ok(IndexFile::None),
        Err(_) => {
            let path = value.text().map_err(|_| Error::invalid("expected a path, true or false"))?;
            Ok(IndexFile::At(OsString::from_vec(path.to_vec()).into()))
        }
    }
}
