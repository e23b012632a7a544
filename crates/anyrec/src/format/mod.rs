//! The formats, and what they have in common.
//!
//! [`FORMATS`] is the one list of formats: detection, the command line, the conformance suite and
//! the fuzz targets read it. A format is a stateless [`Format`]; it opens a [`RecordReader`],
//! creates a [`RecordWriter`] and starts a [`Scan`].

pub mod ffrecord;
mod foreign;
pub mod grail;
pub mod idx;
pub mod mxnet;
mod options;
mod reader;
mod registry;
mod scan;
mod scan_ahead;
mod settings;
mod writer;

pub(crate) use idx::{LabelReader, LabelWriter};
pub use options::{FormatOptions, OpenOptions, WriteOptions};
pub use reader::{IndexState, Info, RecordReader};
pub use registry::{formats, register};
pub use scan::{Content, Damage, Event, Integrity, Metadata, Notice, Scan, ScannedRecord, Segments};
#[cfg(feature = "testkit")]
pub(crate) use scan_ahead::scan_ahead_in_segments;
pub(crate) use scan_ahead::{scan_ahead, segments};
pub use settings::{Setting, SettingValue, set_open, set_write};
pub use writer::{RecordWriter, Written};

use crate::base::{Error, Hint, PositionList, Result, Tags};
use crate::io::{Source, Window};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Every format this library has, in the order in which detection asks them. [`formats`] has those
/// that were registered, too.
pub static FORMATS: &[&dyn Format] = &[&mxnet::FORMAT, &grail::FORMAT, &idx::FORMAT, &ffrecord::FORMAT];

/// How sure a format is that some bytes are its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Likeness {
    /// They are not.
    No,
    /// Nothing speaks against it (formats without a magic number).
    Possible,
    /// They are.
    Certain,
}

/// Where a format's records have their labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Labels {
    /// They have none.
    None,
    /// Inside, in a header before the payload: they go wherever the record goes.
    InRecord,
    /// In a file beside theirs.
    Beside,
}

/// An index file made from the records.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BuiltIndex {
    /// The file.
    pub bytes: Vec<u8>,
    /// Records it finds.
    pub records: u64,
    /// What kind of index it is, and where its keys come from, as one sentence.
    pub reason: String,
    /// How many stretches of the data hold no intact record.
    pub damaged_stretches: u64,
}

impl BuiltIndex {
    /// An index file of that content.
    pub fn new(bytes: Vec<u8>, records: u64, reason: String, damaged_stretches: u64) -> Self {
        BuiltIndex { bytes, records, reason, damaged_stretches }
    }
}

/// What a repair does to keep a record that describes the others true.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Mended {
    /// The number of the record, among those that are kept, and its new bytes.
    pub record: Option<(u64, Vec<u8>)>,
    /// What to say about it.
    pub notices: Vec<Notice>,
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
    /// Where records have their labels.
    pub labels: Labels,
    /// Files are written in one pass only if the number of records is known beforehand.
    pub wants_count: bool,
    /// All records have one size.
    pub fixed_size: bool,
    /// Largest record.
    pub max_record: u64,
}

impl Default for Capabilities {
    /// A format that can be read from its beginning to its end.
    fn default() -> Self {
        Capabilities {
            checksummed: false,
            random_access: false,
            streamable: true,
            keys: false,
            labels: Labels::None,
            wants_count: false,
            fixed_size: false,
            max_record: u64::MAX,
        }
    }
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
    fn open(&self, source: Arc<dyn Source>, options: &OpenOptions) -> Result<Box<dyn RecordReader>>;

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

    /// Cuts a file into segments of about `size` bytes that can be scanned side by side; `None` where
    /// the format, or this file, can only be read from front to back.
    ///
    /// # Errors
    /// Only when reading itself fails.
    fn segments(
        &self,
        _source: &Arc<dyn Source>,
        _options: &OpenOptions,
        _size: u64,
    ) -> Result<Option<Box<dyn Segments>>> {
        Ok(None)
    }

    /// The version of a file, from its first bytes; empty where there is only one.
    fn version(&self, _head: &[u8]) -> &'static str {
        ""
    }

    /// The options with which a writer makes a file like this one (repair), from its first bytes and the
    /// metadata a scan met. `open` says how it was opened.
    fn options_like(&self, _head: &[u8], _contents: &[Content], _open: &OpenOptions) -> WriteOptions {
        WriteOptions::default()
    }

    /// The options for a file that is written from files opened with `open`: what both need, such as
    /// keys.
    fn options_for(&self, _open: &OpenOptions) -> WriteOptions {
        WriteOptions::default()
    }

    /// Takes over from `like` what describes the records and was left at its default (conversion within
    /// the format).
    fn inherit(&self, _options: &mut WriteOptions, _like: &WriteOptions) {}

    /// The settings that [`set_open`](Format::set_open) takes.
    fn open_settings(&self) -> &'static [Setting] {
        &[]
    }

    /// Sets one of the format's own options for opening, by name.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a value that makes no sense.
    fn set_open(&self, _options: &mut OpenOptions, _name: &str, _value: &SettingValue) -> Result<()> {
        Err(Error::invalid("no such setting"))
    }

    /// The settings that [`set_write`](Format::set_write) takes.
    fn write_settings(&self) -> &'static [Setting] {
        &[]
    }

    /// Sets one of the format's own options for writing, by name.
    ///
    /// # Errors
    /// As [`set_open`](Format::set_open).
    fn set_write(&self, _options: &mut WriteOptions, _name: &str, _value: &SettingValue) -> Result<()> {
        Err(Error::invalid("no such setting"))
    }

    /// The tags that a record's own bytes have, where one record is enough to tell (streams). A reader,
    /// which sees all records, knows better.
    fn tags(&self, _record: &[u8]) -> Tags {
        Tags::none()
    }

    /// Where the index file of a data file is, for formats that have one.
    fn index_file_for(&self, _data: &Path) -> Option<PathBuf> {
        None
    }

    /// Makes an index file from the records of a scan; `output` is where it will be. Tells `progress` the
    /// offset reached.
    ///
    /// # Errors
    /// As the scan's. Damage is counted in the result.
    fn build_index(
        &self,
        _scan: &mut dyn Scan,
        _output: &Path,
        _options: &OpenOptions,
        _progress: &mut dyn FnMut(u64),
    ) -> Result<BuiltIndex> {
        Err(Error::unsupported(format!("{} has no index file", self.name())))
    }

    /// For the repair of a file that lost records: what a record that describes the others must become.
    /// `positions` are those of the records that are kept; without `rewrite` the record stays as it is.
    ///
    /// # Errors
    /// Only when reading itself fails.
    fn mend(
        &self,
        _source: &Arc<dyn Source>,
        _options: &OpenOptions,
        _positions: &PositionList,
        _rewrite: bool,
    ) -> Result<Mended> {
        Ok(Mended::default())
    }

    /// Looks at companion files in the light of the true positions.
    ///
    /// # Errors
    /// Only when reading itself fails.
    fn check_companions(
        &self,
        _source: &Arc<dyn Source>,
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
    formats().find(|format| format.id() == id)
}

/// The format whose names look like this path.
pub fn by_name(path: &Path) -> Option<&'static dyn Format> {
    formats().find(|format| format.has_name(path))
}

/// The format of the bytes: the surest one, the earlier in [`FORMATS`] among equals.
pub fn detect(head: &[u8], length: Option<u64>) -> Option<&'static dyn Format> {
    let mut best = (Likeness::No, None);
    for format in formats() {
        let likeness = format.detect(head, length);
        if likeness > best.0 {
            best = (likeness, Some(format));
        }
    }
    best.1
}

/// The format that a path's name suggests.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported).
pub fn infer(path: &Path) -> Result<&'static dyn Format> {
    by_name(path).ok_or_else(|| {
        Error::unsupported("cannot infer a format from the file name")
            .in_file(path)
            .with_hint(format!("name the format: {}", known()))
    })
}

/// The format of a file: the one asked for, else by content, else (a damaged or empty file) by
/// name.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported), saying what the file looks like instead.
pub fn identify(source: &dyn Source, wanted: Option<&'static dyn Format>) -> Result<&'static dyn Format> {
    if let Some(format) = wanted {
        return Ok(format);
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
pub fn identify_stream(head: &[u8], wanted: Option<&'static dyn Format>) -> Result<&'static dyn Format> {
    wanted.or_else(|| detect(head, None)).ok_or_else(|| not_a_record_file(head))
}

/// The format with that id, or an error that lists them.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported).
pub fn named(id: &str) -> Result<&'static dyn Format> {
    by_id(id).ok_or_else(|| {
        Error::unsupported(format!("there is no format {id:?}")).with_hint(format!("one of {}", known()))
    })
}

/// The ids of all formats, for people.
pub fn known() -> String {
    let ids: Vec<_> = formats().map(|format| format.id()).collect();
    ids.join(", ")
}

fn not_a_record_file(head: &[u8]) -> Error {
    if head.is_empty() {
        return Error::unsupported("the file is empty")
            .with_hint("an interrupted download? Name the format if an empty file is meant");
    }
    match foreign::recognise(head) {
        Some((what, hint)) => Error::unsupported(format!("this is {what}")).with_hint(hint),
        None => Error::unsupported("none of the known formats begins like this").with_hint(Hint::NameFormat),
    }
}
