//! What a scan of a file yields.
//!
//! A scan is the one sequential parser of a format. Its events cover the file: every byte lies
//! in the span of exactly one record, metadata or damage event, in order and without gaps.
//! Where a frame holds several records, the first one's span is the whole frame and the others'
//! spans are empty, at the frame's end.

use crate::base::{Batch, Error, Hint, Position, Result};
use crate::base::{ElementType, Value};
use bstr::BString;
use std::ops::Range;

/// The one sequential parser of a format.
pub trait Scan: Send {
    /// The next event. After [`Event::End`] it is `End` again and again.
    ///
    /// # Errors
    /// Only when reading fails (the system's errors) or a limit is exceeded: damage is an event,
    /// not an error.
    fn next_event(&mut self) -> Result<Event<'_>>;

    /// Adds to a batch the records that follow, as long as there is nothing else to tell, until it
    /// has that many records or bytes: what [`next_event`](Scan::next_event) gives, with less ado for
    /// each. May stop anywhere, and does at once where a format has no faster way.
    ///
    /// # Errors
    /// As [`next_event`](Scan::next_event); the batch has the records before.
    fn fill(&mut self, _batch: &mut Batch, _records: usize, _bytes: usize) -> Result<()> {
        Ok(())
    }
}

/// A file cut into parts that can be scanned side by side.
///
/// The events of the parts' scans, in order, are those of a scan over the whole file, as long as
/// each part's events end where the next part begins. Where one does not (the parts could not be
/// told apart without reading them), the whole must be scanned from its beginning. A part counts
/// [`Damage::record`] from its own beginning.
pub trait Segments: Send + Sync {
    /// Where each part begins, in order, the first at 0.
    fn begins(&self) -> &[u64];

    /// Starts the scan of a part.
    ///
    /// # Errors
    /// As [`Format::scan`](super::Format::scan).
    fn scan(&self, part: usize) -> Result<Box<dyn Scan>>;
}

/// One step of a scan.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An intact record.
    Record(ScannedRecord<'a>),
    /// A stretch that describes the file or fills a gap.
    Metadata(Metadata),
    /// A stretch that is not what the format promises. Scanning goes on after it.
    Damage(Damage),
    /// Something odd that costs no data; covers no bytes.
    Notice(Notice),
    /// The end of the file.
    End,
}

/// An intact record met by a scan.
#[derive(Debug)]
#[non_exhaustive]
pub struct ScannedRecord<'a> {
    /// The record's address.
    pub position: Position,
    /// The bytes of the file this event accounts for (see the module's rule for shared frames).
    pub span: Range<u64>,
    /// What is known about its integrity.
    pub integrity: Integrity,
    /// The record.
    pub data: &'a [u8],
}

impl<'a> ScannedRecord<'a> {
    /// A record at a position, whose event accounts for the bytes of `span`.
    pub fn new(position: Position, span: Range<u64>, integrity: Integrity, data: &'a [u8]) -> Self {
        ScannedRecord { position, span, integrity, data }
    }
}

/// What is known about a record's integrity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Integrity {
    /// It was computed and holds.
    Verified,
    /// The format stores none for it.
    Absent,
    /// It was not computed, as the caller wished.
    Unchecked,
}

/// A stretch of file that describes or fills.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Metadata {
    /// The bytes.
    pub span: Range<u64>,
    /// What they say.
    pub content: Content,
}

impl Metadata {
    /// Bytes that say something.
    pub fn new(span: Range<u64>, content: Content) -> Self {
        Metadata { span, content }
    }
}

/// What a metadata stretch says.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Pairs of a file header, in order, reserved keys included.
    Header(Vec<(BString, Value)>),
    /// A trailer's bytes.
    Trailer(Vec<u8>),
    /// A table of that many records.
    Table {
        /// Records promised.
        records: u64,
    },
    /// An array's type and shape, as stored.
    Shape {
        /// Element type.
        dtype: ElementType,
        /// Dimensions, the first counts records.
        shape: Vec<u64>,
    },
    /// Bytes that mean nothing: a legal gap, an empty frame, bytes left over at the end.
    Filler,
}

/// A byte range that is not what the format promises.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// First byte.
    pub begin: u64,
    /// One past the last byte. Equal to `begin` where something is missing altogether.
    pub end: u64,
    /// Intact records before it.
    pub record: u64,
    /// Why, as one sentence without a place.
    pub reason: String,
}

impl Damage {
    /// Damage of the bytes of `span` behind so many intact records.
    pub fn new(span: Range<u64>, record: u64, reason: impl Into<String>) -> Self {
        Damage { begin: span.start, end: span.end, record, reason: reason.into() }
    }

    /// This damage as the error a reader gives that may not skip it.
    pub fn into_error(self, file: &str) -> Error {
        Error::corrupt(self.reason)
            .in_file(file)
            .at(self.begin)
            .in_record(self.record)
            .with_hint(Hint::damaged(file))
    }
}

/// Something odd that costs no data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// Where, if it is at a place.
    pub offset: Option<u64>,
    /// What, as one sentence.
    pub message: String,
    /// It is about a file beside this one that does not fit it: an index file that leads to no
    /// record, or a table of other data. The records are intact, but not all are found by it.
    pub is_stale: bool,
    /// What to do about it.
    pub hint: Option<Hint>,
}

impl Notice {
    /// A notice about the file as a whole.
    pub fn new(message: impl Into<String>) -> Self {
        Notice { offset: None, message: message.into(), is_stale: false, hint: None }
    }

    /// A notice about a place.
    pub fn at(offset: u64, message: impl Into<String>) -> Self {
        Notice { offset: Some(offset), ..Self::new(message) }
    }

    /// The same notice, with what to do about it.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<Hint>) -> Self {
        Notice { hint: Some(hint.into()), ..self }
    }

    /// The same notice, about a file beside this one that does not fit it.
    #[must_use]
    pub fn stale(self) -> Self {
        Notice { is_stale: true, ..self }
    }
}
