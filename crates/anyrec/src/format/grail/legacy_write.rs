//! Writes version 1 files, for readers that do not support version 2.

use super::legacy::{self, MAX_RECORD, RECORD_HEADER, RecordKind};
use super::options::{self as own, Version};
use super::output::Output;
use super::transform::Chain;
use super::transform::Transform;
use crate::base::memory::reserve;
use crate::base::{Error, ErrorKind, Result, Tags};
use crate::format::writer::DroppedTags;
use crate::format::{Notice, RecordWriter, WriteOptions, Written};
use crate::io::{AtomicFile, FileSet};
use std::fmt;
use std::io::Write;
use std::path::Path;

/// Default number of items per packed record.
const DEFAULT_MAX_ITEMS: u64 = 16 << 10;
/// The largest number that can be requested.
const LARGEST_MAX_ITEMS: u64 = 10 << 20;
/// Default limit on the total size of a packed record's items.
const DEFAULT_MAX_BYTES: u64 = 16 << 20;

/// Called with (offset, length) of every record.
type IndexCallback<'a> = Box<dyn FnMut(u64, u64) -> Result<()> + Send + 'a>;
type PackedCallback<'a> = Box<dyn FnMut(PackedEvent) -> Result<()> + Send + 'a>;

/// Writes records of both kinds with their headers.
struct Records<'a> {
    sink: Option<Output<'a>>,
    offset: u64,
}

impl Records<'_> {
    /// Writes a record of these pieces and returns its offset and length.
    fn write(&mut self, kind: RecordKind, pieces: &[&[u8]]) -> Result<(u64, u64)> {
        let length = pieces.iter().map(|piece| piece.len() as u64).sum();
        if length > MAX_RECORD {
            let message =
                format!("a legacy record of {length} bytes is over the {MAX_RECORD} that can be read");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let sink = self.sink.as_mut().ok_or_else(|| Error::invalid("the file is already finished"))?;
        sink.append(&legacy::encode_record_header(kind, length))?;
        for piece in pieces {
            sink.append(piece)?;
        }
        let begin = self.offset;
        let size = RECORD_HEADER as u64 + length;
        self.offset += size;
        Ok((begin, size))
    }

    fn complete(&mut self) -> Result<FileSet> {
        self.sink.take().ok_or_else(|| Error::invalid("the file is already finished"))?.complete()
    }
}

/// Writes unpacked version 1 records: one item each, without a checksum over it.
///
/// ```
/// use anyrec::format::grail::LegacyWriter;
///
/// let mut file = Vec::new();
/// let mut writer = LegacyWriter::new(&mut file);
/// writer.write(b"item")?;
/// writer.finish()?;
/// drop(writer);
/// assert_eq!(file.len(), 20 + 4);
/// # Ok::<(), anyrec::Error>(())
/// ```
pub struct LegacyWriter<'a> {
    records: Records<'a>,
    index: Option<IndexCallback<'a>>,
    written: u64,
}

impl LegacyWriter<'static> {
    /// Creates a writer for the file `path`, which [`finish`](LegacyWriter::finish) publishes.
    ///
    /// # Errors
    /// A setting that these files do not have, an existing file, or the operating system's error.
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        options.only::<own::WriteOptions>()?.check_for(Version::LegacyUnpacked)?;
        let file = AtomicFile::create_or_stream(path, options.overwrite, options.durability)?;
        Ok(Self::over(Output::File(file)))
    }
}

impl<'a> LegacyWriter<'a> {
    /// Creates a writer to a stream.
    pub fn new(stream: impl Write + Send + 'a) -> Self {
        Self::over(Output::stream(stream))
    }

    fn over(sink: Output<'a>) -> Self {
        LegacyWriter { records: Records { sink: Some(sink), offset: 0 }, index: None, written: 0 }
    }

    /// Sets a callback that receives (offset, length) of every record. The length is that of the
    /// complete record, header included.
    pub fn on_index(&mut self, callback: impl FnMut(u64, u64) -> Result<()> + Send + 'a) {
        self.index = Some(Box::new(callback));
    }

    /// Writes an item.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) over 2^29 bytes; errors of the operating system or the callback.
    pub fn write(&mut self, item: &[u8]) -> Result<()> {
        self.write_slices(&[item])
    }

    /// Writes an item given in pieces.
    ///
    /// # Errors
    /// Same as [`write`](LegacyWriter::write).
    pub fn write_slices(&mut self, pieces: &[&[u8]]) -> Result<()> {
        let (offset, length) = self.records.write(RecordKind::Unpacked, pieces)?;
        self.written += 1;
        match &mut self.index {
            Some(callback) => callback(offset, length),
            None => Ok(()),
        }
    }

    /// Completes the output.
    ///
    /// # Errors
    /// The operating system's error, or a second call.
    pub fn finish(&mut self) -> Result<Written> {
        let (written, files) = self.complete()?;
        files.publish()?;
        Ok(written)
    }

    fn complete(&mut self) -> Result<(Written, FileSet)> {
        let files = self.records.complete()?;
        Ok((Written::new(self.written, self.records.offset, Vec::new()), files))
    }
}

/// What a [`LegacyPackedWriter`] reports to its callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PackedEvent {
    /// A record was written.
    Record {
        /// Its offset.
        offset: u64,
        /// Its length, header included.
        length: u64,
        /// Number of items in it.
        items: u64,
    },
    /// An item of that record; with a transformer, all of them as one.
    Item {
        /// Its offset, relative to the first item.
        offset: u64,
        /// Its length.
        length: u64,
    },
    /// The record has been reported completely.
    Flushed,
}

/// Writes packed version 1 records: many items each.
///
/// A record ends before the item that would exceed the limits, and at
/// [`flush`](LegacyPackedWriter::flush).
pub struct LegacyPackedWriter<'a> {
    records: Records<'a>,
    transform: Chain,
    max_items: u64,
    max_bytes: u64,
    callback: Option<PackedCallback<'a>>,
    sizes: Vec<u64>,
    data: Vec<u8>,
    appended: u64,
    notices: Vec<Notice>,
}

impl LegacyPackedWriter<'static> {
    /// Creates a writer for the file `path`, which [`finish`](LegacyPackedWriter::finish)
    /// publishes. If the name ends in `.grail-rpk-gz`, the items are deflated, because readers rely
    /// on that.
    ///
    /// # Errors
    /// A setting that these files do not have, an existing file, or the operating system's error.
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        let name = path.to_string_lossy().to_ascii_lowercase();
        let by_name = name.ends_with(".grail-rpk-gz").then(Transform::flate);
        let mut own: own::WriteOptions = options.only()?;
        if own.transformers.is_empty() {
            own.transformers.extend(by_name);
        }
        let mut writer = Self::over(None, &own)?;
        if !own.transformers.is_empty() && !name.ends_with(".grail-rpk-gz") {
            let notice = "the file does not name its transformer: readers must specify it";
            writer.notices.push(Notice::new(notice));
        }
        let file = AtomicFile::create_or_stream(path, options.overwrite, options.durability)?;
        writer.records.sink = Some(Output::File(file));
        Ok(writer)
    }
}

impl<'a> LegacyPackedWriter<'a> {
    /// Creates a writer to a stream. It uses the options `max_items` and `transformers` (at most
    /// one, which the file does not record).
    ///
    /// # Errors
    /// A setting that these files do not have, or an unknown transformer.
    pub fn new(stream: impl Write + Send + 'a, options: &own::WriteOptions) -> Result<Self> {
        Self::over(Some(Output::stream(stream)), options)
    }

    fn over(sink: Option<Output<'a>>, options: &own::WriteOptions) -> Result<Self> {
        options.check_for(Version::LegacyPacked)?;
        if options.transformers.len() > 1 {
            return Err(Error::invalid("a legacy packed file takes at most one transformer"));
        }
        let max_items = match options.max_items {
            None | Some(0) => DEFAULT_MAX_ITEMS,
            Some(items) => items.min(LARGEST_MAX_ITEMS),
        };
        Ok(LegacyPackedWriter {
            records: Records { sink, offset: 0 },
            transform: options.registry.encoders(&options.transformers)?,
            max_items,
            max_bytes: DEFAULT_MAX_BYTES,
            callback: None,
            sizes: Vec::new(),
            data: Vec::new(),
            appended: 0,
            notices: Vec::new(),
        })
    }

    /// Sets the maximum total size of a record's items (16 MiB if not called, or 0).
    pub fn set_max_bytes(&mut self, max_bytes: u64) {
        self.max_bytes = if max_bytes == 0 { DEFAULT_MAX_BYTES } else { max_bytes };
    }

    /// Sets a callback that receives everything that is written, in order.
    pub fn on_index(&mut self, callback: impl FnMut(PackedEvent) -> Result<()> + Send + 'a) {
        self.callback = Some(Box::new(callback));
    }

    /// Appends an item.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) for an item that does not fit in a record; errors of the
    /// operating system, the transformer or the callback.
    pub fn write(&mut self, item: &[u8]) -> Result<()> {
        let size = item.len() as u64;
        if size > self.max_bytes {
            let message =
                format!("an item of {size} bytes is over the {} of a packed record", self.max_bytes);
            return Err(Error::new(ErrorKind::Limit, message));
        }
        if self.data.len() as u64 + size > self.max_bytes || self.sizes.len() as u64 + 1 > self.max_items {
            self.flush()?;
        }
        reserve(&mut self.data, item.len())?;
        self.sizes.push(size);
        self.data.extend_from_slice(item);
        self.appended += 1;
        Ok(())
    }

    /// Ends the record. Does nothing if no item was added since the last one.
    ///
    /// # Errors
    /// Same as [`write`](LegacyPackedWriter::write).
    pub fn flush(&mut self) -> Result<()> {
        if self.sizes.is_empty() {
            return Ok(());
        }
        let sizes = std::mem::take(&mut self.sizes);
        let data = std::mem::take(&mut self.data);
        let stored = self.transform.encode(data)?;
        let mut list = Vec::new();
        legacy::put_packed_list(&sizes, &mut list);
        let (offset, length) = self.records.write(RecordKind::Packed, &[&list, &stored])?;
        let Some(callback) = &mut self.callback else { return Ok(()) };
        callback(PackedEvent::Record { offset, length, items: sizes.len() as u64 })?;
        let whole = [stored.len() as u64];
        let mut begin = 0;
        for &length in if self.transform.is_empty() { &sizes[..] } else { &whole } {
            callback(PackedEvent::Item { offset: begin, length })?;
            begin += length;
        }
        callback(PackedEvent::Flushed)
    }

    /// Ends the record and completes the output.
    ///
    /// # Errors
    /// Same as [`write`](LegacyPackedWriter::write), or a second call.
    pub fn finish(&mut self) -> Result<Written> {
        let (written, files) = self.complete()?;
        files.publish()?;
        Ok(written)
    }

    fn complete(&mut self) -> Result<(Written, FileSet)> {
        self.flush()?;
        let files = self.records.complete()?;
        let notices = std::mem::take(&mut self.notices);
        Ok((Written::new(self.appended, self.records.offset, notices), files))
    }
}

/// A version 1 writer behind the interface shared by all formats.
pub(super) struct LegacyFileWriter {
    writer: Kind,
    dropped: DroppedTags,
    records: u64,
}

enum Kind {
    Unpacked(LegacyWriter<'static>),
    Packed(LegacyPackedWriter<'static>),
}

impl LegacyFileWriter {
    pub(super) fn create(kind: RecordKind, path: &Path, options: &WriteOptions) -> Result<Self> {
        let writer = match kind {
            RecordKind::Unpacked => Kind::Unpacked(LegacyWriter::create(path, options)?),
            RecordKind::Packed => Kind::Packed(LegacyPackedWriter::create(path, options)?),
        };
        Ok(LegacyFileWriter { writer, dropped: DroppedTags::default(), records: 0 })
    }
}

impl RecordWriter for LegacyFileWriter {
    fn append(&mut self, record: &[u8], tags: &Tags) -> Result<u64> {
        self.dropped.count(tags, false, false);
        match &mut self.writer {
            Kind::Unpacked(writer) => writer.write(record)?,
            Kind::Packed(writer) => writer.write(record)?,
        }
        self.records += 1;
        Ok(self.records - 1)
    }

    fn complete(mut self: Box<Self>) -> Result<(Written, FileSet)> {
        let (mut written, files) = match &mut self.writer {
            Kind::Unpacked(writer) => writer.complete()?,
            Kind::Packed(writer) => writer.complete()?,
        };
        written.notices.extend(self.dropped.notices("GRAIL"));
        Ok((written, files))
    }
}

impl fmt::Debug for LegacyPackedWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LegacyPackedWriter").field("appended", &self.appended).finish_non_exhaustive()
    }
}

impl fmt::Debug for LegacyWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LegacyWriter").field("written", &self.written).finish_non_exhaustive()
    }
}
