//! The formats, and what they have in common.
//!
//! [`FORMATS`] is the one list of formats: detection, the command line, the conformance suite and
//! the fuzz targets read it. A format is a stateless [`Format`]; it opens a [`RecordReader`],
//! creates a [`RecordWriter`] and starts a [`Scan`].

pub(crate) mod fetch;
pub mod ffrecord;
mod foreign;
pub mod grail;
pub mod idx;
pub mod mxnet;
mod options;
mod reader;
mod scan;
mod value;
mod writer;

pub use fetch::read_batch;
pub use options::{IndexFile, OpenOptions, WriteOptions};
pub use reader::{Info, RecordReader};
pub use scan::{Checksum, Content, Damage, Event, Metadata, Notice, Parts, Scan, ScannedRecord};
pub use value::{ElementType, Key, Label, Tags, Value};
pub use writer::{RecordWriter, Written};

use crate::error::{Error, Result};
use crate::io::{ReadAt, Window};
use crate::position::PositionList;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Every format this library knows, in the order in which detection asks them.
pub static FORMATS: &[&dyn Format] = &[&mxnet::FORMAT, &grail::FORMAT, &idx::FORMAT, &ffrecord::FORMAT];

/// How sure a format is that some bytes are its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    /// They are not.
    No,
    /// Nothing speaks against it (formats without a magic number).
    Possible,
    /// They are.
    Certain,
}

/// What a format can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Records are covered by checksums.
    pub checksummed: bool,
    /// Records can be found without scanning the file first.
    pub random_access: bool,
    /// Files can be read from a stream.
    pub streamable: bool,
    /// Records can have keys.
    pub keys: bool,
    /// Records can have labels.
    pub labels: bool,
    /// All records have one size.
    pub fixed_size: bool,
    /// Records may be stored compressed, or otherwise not as they are.
    pub transformed: bool,
    /// Largest record.
    pub max_record: u64,
}

/// A record file format. Implementations hold no state.
pub trait Format: Send + Sync + fmt::Debug {
    /// Short name for options and messages: `mxnet`, `ffrecord`, `grail`, `idx`.
    fn id(&self) -> &'static str;

    /// Full name for people.
    fn name(&self) -> &'static str;

    /// Usual endings of file names, the preferred one first.
    fn extensions(&self) -> &'static [&'static str];

    /// Whether a file name looks like this format's.
    fn has_name(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        self.extensions()
            .iter()
            .any(|extension| name.strip_suffix(extension).is_some_and(|stem| stem.ends_with('.')))
    }

    /// What the format can do.
    fn capabilities(&self) -> Capabilities;

    /// Judges a file by its first bytes (up to [`HEAD`]) and its length, where that is known.
    fn detect(&self, head: &[u8], length: Option<u64>) -> Likeness;

    /// Opens a file for reading records by number. Cheap: what needs a scan happens on first use.
    ///
    /// # Errors
    /// When what must be read at once (a table, a header) is damaged or unsupported.
    fn open(&self, source: Arc<dyn ReadAt>, options: &OpenOptions) -> Result<Box<dyn RecordReader>>;

    /// Starts a file for writing.
    ///
    /// # Errors
    /// A setting the format does not have, an existing file, or what the system says.
    fn create(&self, path: &Path, options: &WriteOptions) -> Result<Box<dyn RecordWriter>>;

    /// Starts a scan at the window's place, which is the beginning of a file.
    ///
    /// # Errors
    /// Only when reading itself fails, or an option makes no sense: a file that is not of this
    /// format scans as damage.
    fn scan(&self, window: Window, options: &OpenOptions) -> Result<Box<dyn Scan>>;

    /// Cuts a file into parts of about `size` bytes that can be scanned side by side; `None` where
    /// the format, or this file, can only be read from front to back.
    ///
    /// # Errors
    /// Only when reading itself fails.
    fn cut(
        &self,
        _source: &Arc<dyn ReadAt>,
        _options: &OpenOptions,
        _size: u64,
    ) -> Result<Option<Box<dyn Parts>>> {
        Ok(None)
    }

    /// The version of a file, from its first bytes; empty where there is only one.
    fn version(&self, _head: &[u8]) -> &'static str {
        ""
    }

    /// The options with which a writer makes a file like this one (repair, same-format
    /// conversion), from its first bytes and the metadata a scan met.
    fn options_like(&self, _head: &[u8], _contents: &[Content]) -> WriteOptions {
        WriteOptions::default()
    }

    /// Looks at companion files in the light of the true positions.
    ///
    /// # Errors
    /// Only when reading itself fails.
    fn check_companions(
        &self,
        _source: &Arc<dyn ReadAt>,
        _options: &OpenOptions,
        _positions: &PositionList,
    ) -> Result<Vec<Notice>> {
        Ok(Vec::new())
    }
}

/// How many bytes from the beginning [`Format::detect`] is shown at most.
pub const HEAD: usize = 64 << 10;

/// The format with that id.
pub fn by_id(id: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| format.id() == id)
}

/// The format whose names look like this path.
pub fn by_name(path: &Path) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| format.has_name(path))
}

/// The format of the bytes: the surest one, the earlier in [`FORMATS`] among equals.
pub fn detect(head: &[u8], length: Option<u64>) -> Option<&'static dyn Format> {
    let mut best = (Likeness::No, None);
    for format in FORMATS.iter().copied() {
        let likeness = format.detect(head, length);
        if likeness > best.0 {
            best = (likeness, Some(format));
        }
    }
    best.1
}

/// The format of a file: the one asked for, else by content, else (a damaged or empty file) by
/// name.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported), saying what the file looks like instead.
pub fn identify(source: &dyn ReadAt, wanted: Option<&str>) -> Result<&'static dyn Format> {
    if let Some(id) = wanted {
        return by_id(id).ok_or_else(|| unknown_id(id));
    }
    let length = source.len();
    let head = source.bytes(0..length.min(HEAD as u64))?;
    detect(&head, Some(length))
        .or_else(|| match foreign::recognise(&head) {
            Some(_) => None,
            None => source.path().and_then(by_name),
        })
        .ok_or_else(|| not_a_record_file(&head).in_file(source.name()))
}

/// The format of a stream whose first bytes are `head`.
///
/// # Errors
/// As [`identify`].
pub fn identify_stream(head: &[u8], wanted: Option<&str>) -> Result<&'static dyn Format> {
    match wanted {
        Some(id) => by_id(id).ok_or_else(|| unknown_id(id)),
        None => detect(head, None).ok_or_else(|| not_a_record_file(head)),
    }
}

fn unknown_id(id: &str) -> Error {
    let known: Vec<_> = FORMATS.iter().map(|format| format.id()).collect();
    Error::unsupported(format!("there is no format {id:?}")).with_hint(format!("one of {}", known.join(", ")))
}

fn not_a_record_file(head: &[u8]) -> Error {
    if head.is_empty() {
        return Error::unsupported("the file is empty")
            .with_hint("an interrupted download? Name the format if an empty file is meant");
    }
    match foreign::recognise(head) {
        Some((what, hint)) => Error::unsupported(format!("this is {what}")).with_hint(hint),
        None => Error::unsupported("none of the known formats begins like this")
            .with_hint("name the format if you know it; the file may be damaged at its beginning"),
    }
}
