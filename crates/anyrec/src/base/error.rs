//! What went wrong, where, and what to do about it.
//!
//! Every failure of this library is an [`Error`]: a kind to match on, one sentence, and as much
//! of the place (file, byte offset, record number) as is known. The sentence never contains raw
//! record bytes: what comes from a file is escaped before it is put into a message.

use super::hint::Hint;
use super::text::shown;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// `std::result::Result` with this library's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The kinds of failure a caller may want to treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system's error; see [`Error::io_error`].
    Io,
    /// The bytes are not what the format promises.
    Corrupt,
    /// The bytes are fine, but nothing here reads or writes such a thing.
    Unsupported,
    /// A size taken from a file, or a record given to a writer, is over the configured limit.
    Limit,
    /// A record number, key or position that the file does not have.
    OutOfRange,
    /// The caller's arguments make no sense together.
    Invalid,
    /// The output exists already and overwriting was not asked for.
    Exists,
    /// A companion file (index file, table) belongs to other data.
    Stale,
    /// A bug in this library: a thread of it panicked.
    Internal,
    /// There is not enough memory. This says nothing about the file: it is never taken for damage,
    /// and no setting that skips damage skips it.
    OutOfMemory,
}

/// A failure: kind, sentence, place, and a hint where there is something to do about it.
///
/// `{}` prints one line; `{:#}` adds the hint on lines of its own.
///
/// ```
/// use anyrec::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Corrupt, "frame length 4096 exceeds the 12 bytes left in the file")
///     .in_file("train.rec").at(81920).in_record(1027)
///     .with_hint("fetch the file again");
/// assert_eq!(
///     error.to_string(),
///     "train.rec: frame length 4096 exceeds the 12 bytes left in the file (byte 81920, record 1027)",
/// );
/// assert_eq!(error.offset(), Some(81920));
/// ```
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    file: Option<FileName>,
    offset: Option<u64>,
    record: Option<u64>,
    expected: Option<String>,
    found: Option<String>,
    hint: Option<Hint>,
    source: Option<io::Error>,
}

impl Error {
    /// An error of the given kind with its sentence (no full stop, no place).
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            file: None,
            offset: None,
            record: None,
            expected: None,
            found: None,
            hint: None,
            source: None,
        }))
    }

    /// [`ErrorKind::Corrupt`] with a sentence.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// [`ErrorKind::Invalid`] with a sentence.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// [`ErrorKind::Unsupported`] with a sentence.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// [`ErrorKind::Unsupported`] for something that only a build with this Cargo feature can do.
    pub(crate) fn feature_is_off(what: &str, feature: &str) -> Self {
        Self::unsupported(format!("this build has no {what}: it was built without the feature `{feature}`"))
    }

    /// [`ErrorKind::OutOfRange`] for record `index` of a file with `count` records.
    pub fn no_such_record(index: u64, count: u64) -> Self {
        let held = match count {
            0 => "the file has no records".to_owned(),
            1 => "the file has one record, number 0".to_owned(),
            n => format!("the file has {n} records, numbers 0 to {}", n - 1),
        };
        Self::new(ErrorKind::OutOfRange, format!("there is no record {index}: {held}"))
    }

    /// [`ErrorKind::OutOfMemory`] for so many bytes that could not be had.
    pub fn out_of_memory(bytes: u64) -> Self {
        Self::new(ErrorKind::OutOfMemory, format!("out of memory: {bytes} more bytes were needed"))
    }

    /// [`ErrorKind::Io`] with what was being done when the operating system refused;
    /// [`ErrorKind::OutOfMemory`] where that is why.
    pub fn io(doing: impl Into<String>, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::OutOfMemory => ErrorKind::OutOfMemory,
            _ => ErrorKind::Io,
        };
        let mut error = Self::new(kind, format!("{}: {source}", doing.into()));
        error.0.source = Some(source);
        error
    }

    /// Names the file, unless an inner call named it already.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<FileName>) -> Self {
        self.0.file.get_or_insert_with(|| file.into());
        self
    }

    /// The byte offset, unless an inner call set it already.
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// The record number, unless an inner call set it already.
    pub fn in_record(mut self, record: u64) -> Self {
        self.0.record.get_or_insert(record);
        self
    }

    /// What is stored or promised, and what was computed or met instead.
    pub fn expected_found(mut self, expected: impl fmt::Display, found: impl fmt::Display) -> Self {
        self.0.expected = Some(expected.to_string());
        self.0.found = Some(found.to_string());
        self
    }

    /// What to do next.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Hint>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The same error once more: for another record that failed for the same reason. The operating
    /// system's error is in the message only.
    pub(crate) fn duplicate(&self) -> Self {
        let Inner { kind, message, file, offset, record, expected, found, hint, source: _ } = &*self.0;
        Error(Box::new(Inner {
            kind: *kind,
            message: message.clone(),
            file: file.clone(),
            offset: *offset,
            record: *record,
            expected: expected.clone(),
            found: found.clone(),
            hint: hint.clone(),
            source: None,
        }))
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The sentence alone, without the place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file, ready to be shown: odd characters of its name are escaped.
    pub fn file(&self) -> Option<&str> {
        self.0.file.as_ref().map(|file| file.shown.as_str())
    }

    /// The file's path.
    pub fn path(&self) -> Option<&Path> {
        self.0.file.as_ref().map(|file| file.path.as_path())
    }

    /// The byte offset in the file.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The record number.
    pub fn record(&self) -> Option<u64> {
        self.0.record
    }

    /// What the file promised, where the failure is a mismatch.
    pub fn expected(&self) -> Option<&str> {
        self.0.expected.as_deref()
    }

    /// What was found instead.
    pub fn found(&self) -> Option<&str> {
        self.0.found.as_deref()
    }

    /// What to do next.
    pub fn hint(&self) -> Option<&Hint> {
        self.0.hint.as_ref()
    }

    /// The operating system's error, if that is what this is.
    pub fn io_error(&self) -> Option<&io::Error> {
        self.0.source.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        if let Some(file) = &inner.file {
            write!(f, "{}: ", file.shown)?;
        }
        f.write_str(&inner.message)?;
        if let (Some(expected), Some(found)) = (&inner.expected, &inner.found) {
            write!(f, ": expected {expected}, found {found}")?;
        }
        match (inner.offset, inner.record) {
            (Some(offset), Some(record)) => write!(f, " (byte {offset}, record {record})")?,
            (Some(offset), None) => write!(f, " (byte {offset})")?,
            (None, Some(record)) => write!(f, " (record {record})")?,
            (None, None) => {}
        }
        match &inner.hint {
            Some(hint) if f.alternate() => write!(f, "\n\nhint: {hint}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self:#}", self.0.kind)
    }
}

/// The operating system's error is part of the message, so it is no `source`: reporters that print
/// the chain would print it twice. [`Error::io_error`] has it.
impl std::error::Error for Error {}

/// A file's name: its path, and how messages show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileName {
    shown: String,
    path: PathBuf,
}

impl From<&str> for FileName {
    fn from(name: &str) -> Self {
        FileName { shown: name.to_owned(), path: name.into() }
    }
}

impl From<&String> for FileName {
    fn from(name: &String) -> Self {
        name.as_str().into()
    }
}

impl From<String> for FileName {
    fn from(name: String) -> Self {
        FileName { path: PathBuf::from(&name), shown: name }
    }
}

impl From<&Path> for FileName {
    fn from(path: &Path) -> Self {
        FileName { shown: shown(path), path: path.to_owned() }
    }
}

impl From<&PathBuf> for FileName {
    fn from(path: &PathBuf) -> Self {
        path.as_path().into()
    }
}
