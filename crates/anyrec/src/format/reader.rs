//! Reading records by number.

use super::value::{ElementType, Key, Label, Tags, Value};
use super::{Content, Format, Notice};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::io::{RangeRead, ReadAt};
use crate::position::{Location, Position};
use bstr::BString;
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::Arc;

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

/// Reads records of one file by number. Shared between threads.
///
/// Records are numbered from 0 in file order. A record comes as [`Bytes`]: a slice of the mapped
/// file where the record lies there in one piece, memory of its own otherwise.
pub trait RecordReader: Send + Sync {
    /// The file's format.
    fn format(&self) -> &'static dyn Format;

    /// Where the bytes come from.
    fn source(&self) -> &Arc<dyn ReadAt>;

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
        self.source().check_unchanged()?;
        let location = self.locate(index)?;
        let frame = self.source().bytes(location.span.clone())?;
        Ok(match self.decode(index, &location, &frame)? {
            Cow::Borrowed(record) => frame.slice_ref(record),
            Cow::Owned(record) => record.into(),
        })
    }

    /// The records of these numbers, in this order, repeats kept.
    ///
    /// # Errors
    /// As [`read`](RecordReader::read), for the first record that fails.
    fn read_batch(&self, indices: &[u64]) -> Result<Batch> {
        let source = self.source();
        source.check_unchanged()?;
        let locations = indices.iter().map(|&index| self.locate(index)).collect::<Result<Vec<_>>>()?;
        let mut batch = Batch::new();
        if let Some(all) = source.as_slice() {
            for (&index, location) in indices.iter().zip(&locations) {
                let frame = usize::try_from(location.span.start)
                    .ok()
                    .zip(usize::try_from(location.span.end).ok())
                    .and_then(|(begin, end)| all.get(begin..end))
                    .ok_or_else(|| Error::no_such_record(index, 0))?;
                batch.push(&self.decode(index, location, frame)?);
            }
            return Ok(batch);
        }
        let mut in_file_order: Vec<usize> = (0..locations.len()).collect();
        in_file_order.sort_by_key(|&at| locations.get(at).map(|location| location.span.start));
        let mut frames: Vec<Vec<u8>> = locations
            .iter()
            .map(|location| {
                let size = location.span.end.saturating_sub(location.span.start);
                usize::try_from(size).map(|size| vec![0; size]).unwrap_or_default()
            })
            .collect();
        let mut slots: Vec<Option<&mut Vec<u8>>> = frames.iter_mut().map(Some).collect();
        let mut reads: Vec<RangeRead<'_>> = in_file_order
            .iter()
            .filter_map(|&at| {
                let buffer = slots.get_mut(at)?.take()?;
                Some(RangeRead { offset: locations.get(at)?.span.start, buffer })
            })
            .collect();
        source.read_ranges(&mut reads)?;
        for ((&index, location), frame) in indices.iter().zip(&locations).zip(&frames) {
            batch.push(&self.decode(index, location, frame)?);
        }
        Ok(batch)
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
