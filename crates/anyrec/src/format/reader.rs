//! Reading records by number.

use super::{Content, Format, Notice};
use crate::base::{Batch, Location, Position, Result};
use crate::base::{ElementType, Key, Label, Tags, Value};
use crate::io::Source;
use bstr::BString;
use bytes::Bytes;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of frames in memory at once while records are decoded for a batch (one frame at least).
const FETCHED_TOGETHER: u64 = 32 << 20;

/// What a file says about itself.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Info {
    /// Version of the format, as its people call it; empty where there is only one.
    pub version: String,
    /// Header pairs (GRAIL).
    pub header: Vec<(BString, Value)>,
    /// Trailer (GRAIL).
    pub trailer: Option<Vec<u8>>,
    /// The whole array's shape (IDX).
    pub shape: Option<Vec<u64>>,
    /// Element type (IDX).
    pub dtype: Option<ElementType>,
    /// Oddities met while opening.
    pub notices: Vec<Notice>,
}

impl Info {
    /// The same as the metadata a scan would meet.
    pub fn contents(&self) -> Vec<Content> {
        let mut contents = Vec::new();
        if !self.header.is_empty() {
            contents.push(Content::Header(self.header.clone()));
        }
        if let (Some(dtype), Some(shape)) = (self.dtype, &self.shape) {
            contents.push(Content::Shape { dtype, shape: shape.clone() });
        }
        if let Some(trailer) = &self.trailer {
            contents.push(Content::Trailer(trailer.clone()));
        }
        contents
    }
}

/// What is known of a file's index file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexState {
    /// The format has none.
    Unknown,
    /// There is none.
    Missing,
    /// It is there.
    Present {
        /// Where.
        path: PathBuf,
        /// Keys in it.
        keys: u64,
    },
}

/// Reads records of one file by number. Shared between threads.
///
/// Records are numbered from 0 in file order.
pub trait RecordReader: Send + Sync + fmt::Debug {
    /// The file's format.
    fn format(&self) -> &'static dyn Format;

    /// Where the bytes come from.
    fn source(&self) -> &Arc<dyn Source>;

    /// What the file says about itself.
    ///
    /// # Errors
    /// When reading it needs more than was read at opening, and that fails.
    fn info(&self) -> Result<Info>;

    /// Number of records.
    ///
    /// # Errors
    /// Where counting needs a scan: when that fails or meets damage.
    fn count(&self) -> Result<u64>;

    /// Where record `index` is.
    ///
    /// # Errors
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange), or as [`count`](RecordReader::count).
    fn locate(&self, index: u64) -> Result<Location>;

    /// Brings what [`locate`](RecordReader::locate) will look at near the processor, without waiting
    /// for it: given for many records first, their waits overlap. Says where in the file that is, if
    /// it must be read for it.
    fn approach(&self, _index: u64) -> Option<Range<u64>> {
        None
    }

    /// Whether records are stored compressed, or otherwise not as they are.
    fn is_transformed(&self) -> bool {
        false
    }

    /// The record in `frame`, the bytes of `location.span`; checksums are verified here.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) with the place.
    fn decode<'a>(&self, index: u64, location: &Location, frame: &'a [u8]) -> Result<Cow<'a, [u8]>>;

    /// Record `index`.
    ///
    /// # Errors
    /// As [`locate`](RecordReader::locate) and [`decode`](RecordReader::decode).
    fn read(&self, index: u64) -> Result<Bytes> {
        self.source().guard()?;
        let read = || {
            let location = self.locate(index)?;
            let frame = self.source().bytes(location.span.clone())?;
            Ok(match self.decode(index, &location, &frame)? {
                Cow::Borrowed(record) => frame.slice_ref(record),
                Cow::Owned(record) => record.into(),
            })
        };
        // Where a file was cut short, that is what is wrong, whatever it looks like.
        read().map_err(|error| self.source().check_unchanged().err().unwrap_or(error))
    }

    /// Adds records that do not lie in the file as they are ([`Location::plain`] says so) to a
    /// batch. Their numbers ascend.
    ///
    /// # Errors
    /// As [`read`](RecordReader::read), for the first record that fails.
    fn read_decoded(&self, indices: &[u64], batch: &mut Batch) -> Result<()> {
        let source = self.source();
        let mut rest = indices;
        while !rest.is_empty() {
            let mut locations = Vec::new();
            let mut together = 0;
            for &index in rest {
                let location = self.locate(index)?;
                together += location.span.end.saturating_sub(location.span.start);
                if together > FETCHED_TOGETHER && !locations.is_empty() {
                    break;
                }
                locations.push(location);
            }
            let (now, later) = rest.split_at(locations.len());
            let spans: Vec<Range<u64>> = locations.iter().map(|location| location.span.clone()).collect();
            for ((&index, location), frame) in now.iter().zip(&locations).zip(source.many_bytes(&spans)?) {
                batch.try_push(&self.decode(index, location, &frame)?)?;
            }
            rest = later;
        }
        Ok(())
    }

    /// The format's own index file beside this one.
    ///
    /// # Errors
    /// When it cannot be read.
    fn index_file(&self) -> Result<IndexState> {
        Ok(IndexState::Unknown)
    }

    /// The key of the record at a position, where it has one.
    ///
    /// # Errors
    /// When the companion file that holds the keys cannot be read.
    fn key(&self, _position: Position) -> Result<Option<Key>> {
        Ok(None)
    }

    /// Number of the record with that key (the last one, where a key stands twice), if there is one.
    ///
    /// # Errors
    /// When the companion file that holds the keys cannot be read.
    fn find_key(&self, _key: &Key) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Key and label of a record that was read or scanned: its number, where it is, its bytes.
    ///
    /// # Errors
    /// When a companion file that holds them cannot be read.
    fn tags(&self, _index: u64, _position: Position, _record: &[u8]) -> Result<Tags> {
        Ok(Tags::none())
    }

    /// The payload of a record: what follows the header that holds its label, where the format has such
    /// headers.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where not all records of the file can be split, which the
    /// error names; nothing is guessed.
    fn payload<'a>(&self, record: &'a [u8]) -> Result<&'a [u8]> {
        Ok(record)
    }

    /// Whether the records have their numbers in the order of a scan, so that the `n`th record that a scan
    /// meets is record `n`.
    ///
    /// # Errors
    /// As [`count`](RecordReader::count).
    fn is_numbered_in_order(&self) -> Result<bool> {
        Ok(true)
    }

    /// The element type and the shape of every record, where the file declares them (IDX). Elements
    /// of several bytes are big-endian.
    fn item(&self) -> Option<(ElementType, &[u64])> {
        None
    }

    /// The label that a file beside this one has for a record, where the format keeps labels apart
    /// (IDX). [`tags`](RecordReader::tags) has what the record's own file holds.
    ///
    /// # Errors
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange); [`Stale`](crate::ErrorKind::Stale) where the
    /// labels are not as many as the records; or when they cannot be read.
    fn label_beside(&self, _index: u64) -> Result<Option<Label>> {
        Ok(None)
    }
}
