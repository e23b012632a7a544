//! Writing version 1 files, for readers that know nothing newer.

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

/// Items of a packed record unless told otherwise.
const DEFAULT_MAX_ITEMS: u64 = 16 << 10;
/// The most that can be asked for.
const LARGEST_MAX_ITEMS: u64 = 10 << 20;
/// Bytes of the items of a packed record unless told otherwise.
const DEFAULT_MAX_BYTES: u64 = 16 << 20;

/// Called with (offset, length) of every record.
type IndexCallback<'a> = Box<dyn FnMut(u64, u64) -> Result<()> + Send + 'a>;
type PackedCallback<'a> = Box<dyn FnMut(PackedEvent) -> Result<()> + Send + 'a>;

/// Records in their frames, both kinds.
struct Records<'a> {
    sink: Option<Output<'a>>,
    offset: u64,
}

impl Records<'_> {
    /// Writes a record of these pieces; says where it begins and how long it is.
    fn write(&mut self, kind: RecordKind, pieces: &[&[u8]]) -> Result<(u64, u64)> {
        let length = pieces.iter().map(|piece| piece.len() as u64).sum();
        if length > MAX_RECORD {
            let message =
                format!("a legacy record of {length} bytes is over the {MAX_RECORD} that can be read");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let sink = self.sink.as_mut().ok_or_else(|| Error::invalid("the file was finished already"))?;
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
        self.sink.take().ok_or_else(|| Error::invalid("the file was finished already"))?.complete()
    }
}

/// Writes unpacked version 1 records: one item each, no checksum over it.
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
    /// A writer of the file `path`, which appears in [`finish`](LegacyWriter::finish).
    ///
    /// # Errors
    /// A setting that these files do not have, an existing file, or what the system says.
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        options.only::<own::WriteOptions>()?.check_for(Version::LegacyUnpacked)?;
        let file = AtomicFile::create_or_stream(path, options.overwrite, options.durability)?;
        Ok(Self::over(Output::File(file)))
    }
}

impl<'a> LegacyWriter<'a> {
    /// A writer to a stream.
    pub fn new(stream: impl Write + Send + 'a) -> Self {
        Self::over(Output::stream(stream))
    }

    fn over(sink: Output<'a>) -> Self {
        LegacyWriter { records: Records { sink: Some(sink), offset: 0 }, index: None, written: 0 }
    }

    /// Has `callback` called with (offset, length) of every record; the length is that of the
    /// whole record, header included.
    pub fn on_index(&mut self, callback: impl FnMut(u64, u64) -> Result<()> + Send + 'a) {
        self.index = Some(Box::new(callback));
    }

    /// Writes an item.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) over 2^29 bytes; what the system or the callback says.
    pub fn write(&mut self, item: &[u8]) -> Result<()> {
        self.write_slices(&[item])
    }

    /// Writes an item that is given in pieces.
    ///
    /// # Errors
    /// As [`write`](LegacyWriter::write).
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
    /// What the system says; when called again.
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

/// What a [`LegacyPackedWriter`] tells its callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PackedEvent {
    /// A record was written.
    Record {
        /// Where it begins.
        offset: u64,
        /// How long it is, header included.
        length: u64,
        /// Items in it.
        items: u64,
    },
    /// An item of that record; with a transformer, all of them as one.
    Item {
        /// Where it begins, from the first item's beginning.
        offset: u64,
        /// How long it is.
        length: u64,
    },
    /// All of the record has been told.
    Flushed,
}

/// Writes packed version 1 records: many items each.
///
/// A record ends before the item that would make it longer than the limits allow, and at
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
    /// A writer of the file `path`, which appears in [`finish`](LegacyPackedWriter::finish). A
    /// name that ends in `.grail-rpk-gz` says that the items are deflated, so they are then.
    ///
    /// # Errors
    /// A setting that these files do not have, an existing file, or what the system says.
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        let name = path.to_string_lossy().to_ascii_lowercase();
        let by_name = name.ends_with(".grail-rpk-gz").then(Transform::flate);
        let mut own: own::WriteOptions = options.only()?;
        if own.transformers.is_empty() {
            own.transformers.extend(by_name);
        }
        let mut writer = Self::over(None, &own)?;
        if !own.transformers.is_empty() && !name.ends_with(".grail-rpk-gz") {
            let notice = "the file does not say that it is transformed: readers must be told";
            writer.notices.push(Notice::new(notice));
        }
        let file = AtomicFile::create_or_stream(path, options.overwrite, options.durability)?;
        writer.records.sink = Some(Output::File(file));
        Ok(writer)
    }
}

impl<'a> LegacyPackedWriter<'a> {
    /// A writer to a stream. Of the options, `max_items` and `transformers` (one at most, and the
    /// file keeps no trace of it) matter.
    ///
    /// # Errors
    /// A setting that these files do not have, or a transformer nobody registered.
    pub fn new(stream: impl Write + Send + 'a, options: &own::WriteOptions) -> Result<Self> {
        Self::over(Some(Output::stream(stream)), options)
    }

    fn over(sink: Option<Output<'a>>, options: &own::WriteOptions) -> Result<Self> {
        options.check_for(Version::LegacyPacked)?;
        if options.transformers.len() > 1 {
            return Err(Error::invalid("a legacy packed file takes one transformer at most"));
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

    /// Sets how many bytes of items a record holds at most (16 MiB if this is not called, or 0).
    pub fn set_max_bytes(&mut self, max_bytes: u64) {
        self.max_bytes = if max_bytes == 0 { DEFAULT_MAX_BYTES } else { max_bytes };
    }

    /// Has `callback` called with all that is written, in order.
    pub fn on_index(&mut self, callback: impl FnMut(PackedEvent) -> Result<()> + Send + 'a) {
        self.callback = Some(Box::new(callback));
    }

    /// Adds an item.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) for an item that no record has room for; what the system, the
    /// transformer or the callback says.
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

    /// Ends the record; without items since the last one nothing happens.
    ///
    /// # Errors
    /// As [`write`](LegacyPackedWriter::write).
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
    /// As [`write`](LegacyPackedWriter::write); when called again.
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

/// A version 1 writer as all formats' writers are used.
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
