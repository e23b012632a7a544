//! Writes `.rec` files and their index files.
//!
//! The output is identical to the original writer's, byte for byte: a record is split at each
//! aligned magic, and the last part is padded with zeros. Data and index file are each written
//! through an [`AtomicFile`] and published together, so an index file is never beside data it was
//! not made for. This includes an existing index file: it is removed when the data is replaced, and
//! if overwriting is not allowed, no data is published beside it.

use super::companions;
use super::image_header::{ImageHeader, LabelWidth};
use super::index_file::{append_line, looks_like_index};
use super::layout::{self, MAX_RECORD, PartHeader};
use super::options::{self as own, IndexFile};
use crate::base::memory::reserve;
use crate::base::{Error, ErrorKind, Hint, Key, Label, Result, Tags, shown};
use crate::format::{Notice, RecordWriter, WriteOptions, Written};
use crate::io::{AtomicFile, FileSet, Obsolete};
use std::path::{Path, PathBuf};

/// An `f32` represents every integer up to this one.
const EXACT_IN_F32: f64 = 16_777_216.0;

/// Writes a `.rec` file.
///
/// ```
/// use anyrec::format::mxnet::Writer;
/// use anyrec::format::WriteOptions;
/// use anyrec::Key;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pets.rec");
/// let mut writer = Writer::create(&path, &WriteOptions::default())?;
/// assert_eq!(writer.write_with_key(&Key::Int(7), b"cat")?, 0);
/// assert_eq!(writer.tell(), 12);
/// writer.finish()?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"\x0a\x23\xd7\xce\x03\0\0\0cat\0");
/// assert_eq!(std::fs::read(path.with_extension("idx")).unwrap(), b"7\t0\n");
/// # Ok::<(), anyrec::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer {
    file: AtomicFile,
    offset: u64,
    records: u64,
    index: IndexOutput,
    /// The index file beside the file that is being replaced.
    old_index: Option<Obsolete>,
    label_width: LabelWidth,
    options: WriteOptions,
    /// Reused for index file lines and for records with a prepended header.
    line: Vec<u8>,
    packed: Vec<u8>,
    unkeyed: u64,
    /// Records with a header, and without one.
    labelled: u64,
    unlabelled: u64,
    dropped_keys: u64,
    rounded_labels: Rounded,
    rounded_ids: Rounded,
}

/// The index file under construction.
#[derive(Debug)]
enum IndexOutput {
    /// No index file is written.
    None,
    /// An index file is started with the first key.
    WithFirstKey(PathBuf),
    /// An index file was requested: a record without a key gets its number as the key.
    All(AtomicFile),
    /// An index file was started by a key.
    Keyed(AtomicFile),
}

/// Numbers that a 32-bit float cannot represent: the count, and the first.
#[derive(Debug, Default)]
struct Rounded {
    count: u64,
    first: f64,
}

impl Rounded {
    fn count(&mut self, value: f64) {
        if value.is_finite() && value.abs() > EXACT_IN_F32 && LabelWidth::Narrow.round(value) != value {
            if self.count == 0 {
                self.first = value;
            }
            self.count += 1;
        }
    }
}

impl Writer {
    /// Starts a file. [`Writer::finish`] publishes it.
    ///
    /// `options.index_file` says where the index file is. By default (`None`) it is beside the
    /// file, and written only if a record has a key. With [`IndexFile::Beside`] or
    /// [`IndexFile::At`] it is always written.
    ///
    /// # Errors
    /// [`Exists`](ErrorKind::Exists), a setting of another format, or the operating system's error.
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        let own: own::WriteOptions = options.only()?;
        let file = AtomicFile::create_or_stream(path, options.overwrite, options.durability)?;
        let beside = || {
            companions::beside(path).ok_or_else(|| {
                Error::invalid("a data file cannot have the name of its index file").in_file(file.name())
            })
        };
        let all = |index: &Path| Self::index_output(index, path, options).map(IndexOutput::All);
        let index = match &own.index_file {
            Some(IndexFile::Beside) if file.is_stream() => {
                return Err(Error::invalid("is a device or a pipe: it cannot have an index file beside it")
                    .in_file(file.name()));
            }
            Some(IndexFile::Beside) => all(&beside()?)?,
            Some(IndexFile::At(index)) => all(index)?,
            Some(IndexFile::None) => IndexOutput::None,
            None if file.is_stream() => IndexOutput::None,
            None => IndexOutput::WithFirstKey(beside()?),
        };
        let old_index = match file.is_stream() {
            true => None,
            false => Self::find_old_index(path, options)?,
        };
        let label_width = if own.wide_labels { LabelWidth::Wide } else { LabelWidth::Narrow };
        Ok(Writer {
            file,
            offset: 0,
            records: 0,
            index,
            old_index,
            label_width,
            options: options.clone(),
            line: Vec::new(),
            packed: Vec::new(),
            unkeyed: 0,
            labelled: 0,
            unlabelled: 0,
            dropped_keys: 0,
            rounded_labels: Rounded::default(),
            rounded_ids: Rounded::default(),
        })
    }

    /// The existing index file beside `path`. Readers would take it for the new data's index.
    fn find_old_index(path: &Path, options: &WriteOptions) -> Result<Option<Obsolete>> {
        let Some(beside) = companions::beside(path).filter(|beside| looks_like_index(beside)) else {
            return Ok(None);
        };
        match Obsolete::find(&beside) {
            Some(_) if !options.overwrite => Err(Error::new(
                ErrorKind::Exists,
                format!("already exists, and would be taken for the index of {}", shown(path)),
            )
            .in_file(shown(&beside))
            .with_hint(Hint::AllowOverwrite)),
            found => Ok(found),
        }
    }

    fn index_output(index: &Path, data: &Path, options: &WriteOptions) -> Result<AtomicFile> {
        if index == data {
            return Err(Error::invalid("data and index file have the same name").in_file(shown(data)));
        }
        AtomicFile::create_or_stream(index, options.overwrite, options.durability)
    }

    /// Offset at which the next record will begin.
    pub fn tell(&self) -> u64 {
        self.offset
    }

    /// Number of records so far.
    pub fn count(&self) -> u64 {
        self.records
    }

    /// Appends a record without a key and returns its offset. It gets no line in the index file.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) for a record of 2^29 bytes or more, or the operating system's
    /// error.
    pub fn write(&mut self, record: &[u8]) -> Result<u64> {
        let length = record.len() as u64;
        if length > MAX_RECORD {
            return Err(Error::new(
                ErrorKind::Limit,
                format!(
                    "a record of {length} bytes is too long: RecordIO only accept record less than 2^29 bytes"
                ),
            )
            .in_file(self.file.name())
            .in_record(self.records));
        }
        let offset = self.offset;
        for (part, payload) in layout::split(record) {
            let padding = layout::padding(part.length);
            self.file.append_all([&part.to_bytes(), payload, padding])?;
            self.offset += (PartHeader::SIZE + payload.len() + padding.len()) as u64;
        }
        self.records += 1;
        Ok(offset)
    }

    /// Appends a record and its line in the index file, and returns the record's offset.
    ///
    /// # Errors
    /// Same as [`Writer::write`]; [`Invalid`](ErrorKind::Invalid) for a key that an index file
    /// cannot hold, or if the options disable the index file.
    pub fn write_with_key(&mut self, key: &Key, record: &[u8]) -> Result<u64> {
        // Check the key first: a key that cannot be written must not leave a record without one.
        match &self.index {
            IndexOutput::All(_) | IndexOutput::Keyed(_) => {}
            IndexOutput::WithFirstKey(path) => {
                let index = Self::index_output(path, self.file.target(), &self.options)?;
                self.index = IndexOutput::Keyed(index);
            }
            IndexOutput::None => {
                return Err(
                    Error::invalid("a key was given, but no index file is written").in_file(self.file.name())
                );
            }
        }
        self.line.clear();
        append_line(&mut self.line, key, self.offset)?;
        let offset = self.write(record)?;
        if let IndexOutput::All(index) | IndexOutput::Keyed(index) = &mut self.index {
            index.append(&self.line)?;
        }
        Ok(offset)
    }

    /// Completes and publishes the files.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn finish(self) -> Result<Written> {
        let (written, files) = self.complete()?;
        files.publish()?;
        Ok(written)
    }

    fn complete(self) -> Result<(Written, FileSet)> {
        let mut notices = self.notices();
        let mut files = FileSet::of(self.file.complete()?);
        let index = match self.index {
            IndexOutput::All(index) | IndexOutput::Keyed(index) => Some(index),
            IndexOutput::None | IndexOutput::WithFirstKey(_) => None,
        };
        if let Some(old) = self.old_index {
            let place = |path: &Path| path.canonicalize().ok();
            if index.as_ref().is_none_or(|index| place(index.target()) != place(old.path())) {
                notices.push(Notice::new(format!(
                    "{} was removed, as it was the index of the file that was replaced",
                    shown(old.path())
                )));
                files.remove(old);
            }
        }
        if let Some(index) = index {
            files.add_index(index.complete()?);
        }
        Ok((Written::new(self.records, self.offset, notices), files))
    }

    fn notices(&self) -> Vec<Notice> {
        let mut notices = Vec::new();
        if self.dropped_keys > 0 {
            notices.push(Notice::new(format!(
                "{} keys not stored: no index file is written",
                self.dropped_keys
            )));
        }
        if self.unkeyed > 0 && matches!(self.index, IndexOutput::Keyed(_)) {
            notices.push(Notice::new(format!(
                "{} records have no key and are not in the index file",
                self.unkeyed
            )));
        }
        let rounded = [
            (&self.rounded_labels, "labels are rounded: a 32-bit float holds whole numbers up to 2^24 only"),
            (
                &self.rounded_ids,
                "ids are over 2^24: stored as they are, but labels made of them would be rounded",
            ),
        ];
        for (Rounded { count, first }, what) in rounded {
            if *count > 0 {
                notices.push(Notice::new(format!("{count} {what} (the first is {first})")));
            }
        }
        notices
    }

    /// `record` with an image header in front.
    fn with_header<'a>(
        &mut self,
        record: &[u8],
        label: &Label,
        tags: &Tags,
        packed: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        if self.unlabelled > 0 {
            return Err(Error::invalid(
                "the record has a label and those before it have none: either all records of a file have a \
                 header for it, or none",
            )
            .in_file(self.file.name())
            .in_record(self.records)
            .with_hint("give the first record a label (NaN if it is not known); later ones may have none"));
        }
        let [id, id2] = match (tags.ids, &tags.key) {
            (Some(ids), _) => ids,
            (None, Some(Key::Int(number))) => {
                let id = u64::try_from(*number).map_err(|_| {
                    Error::invalid(format!(
                        "key {number} cannot be the id of an image header: ids are 0 to 2^64 - 1"
                    ))
                    .in_file(self.file.name())
                    .in_record(self.records)
                })?;
                [id, 0]
            }
            (None, Some(Key::Text(_)) | None) => [self.records, 0],
        };
        let header = ImageHeader { label: label.clone(), id, id2 };
        let bytes = header
            .to_bytes(self.label_width)
            .map_err(|error| error.in_file(self.file.name()).in_record(self.records))?;
        if self.label_width == LabelWidth::Narrow {
            header.labels().iter().for_each(|&label| self.rounded_labels.count(label));
            #[allow(clippy::cast_precision_loss)]
            self.rounded_ids.count(id as f64);
        }
        packed.clear();
        reserve(packed, bytes.len().saturating_add(record.len()))?;
        packed.extend_from_slice(&bytes);
        packed.extend_from_slice(record);
        Ok(packed)
    }
}

impl RecordWriter for Writer {
    /// A record with a label gets an image header. Unless its ids are given, the id is the key if that is
    /// an integer, otherwise the record's number. With a [`Tags::header_length`] the record has its
    /// header already. In a file with labels, a record without one gets a header with the
    /// label NaN: readers could not tell otherwise where its payload begins.
    fn append(&mut self, record: &[u8], tags: &Tags) -> Result<u64> {
        let number = self.records;
        let mut packed = std::mem::take(&mut self.packed);
        let label = tags.label.clone().or((self.labelled > 0).then_some(Label::Scalar(f64::NAN)));
        let record = match &label {
            // Copied from another file, with its header.
            Some(_) if tags.header_length > 0 => record,
            Some(label) => self.with_header(record, label, tags, &mut packed)?,
            None => record,
        };
        match (&self.index, &tags.key) {
            (IndexOutput::None, key) => {
                self.dropped_keys += u64::from(key.is_some());
                self.write(record)?;
            }
            (_, Some(key)) => {
                self.write_with_key(key, record)?;
            }
            (IndexOutput::All(_), None) => {
                self.write_with_key(&Key::Int(number.into()), record)?;
            }
            (_, None) => {
                self.unkeyed += 1;
                self.write(record)?;
            }
        }
        self.packed = packed;
        self.labelled += u64::from(label.is_some());
        self.unlabelled += u64::from(label.is_none());
        Ok(number)
    }

    fn has_room(&self, size: usize) -> bool {
        /// Room for headers and a typical index file line.
        const MORE: usize = 256;
        let line = match &self.index {
            IndexOutput::All(index) | IndexOutput::Keyed(index) => MORE < index.free(),
            IndexOutput::WithFirstKey(_) => false,
            IndexOutput::None => true,
        };
        // Split at every fourth byte, a record grows to three times its size.
        line && size.saturating_mul(3).saturating_add(MORE) < self.file.free()
    }

    fn complete(self: Box<Self>) -> Result<(Written, FileSet)> {
        Writer::complete(*self)
    }
}
