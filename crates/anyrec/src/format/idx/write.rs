//! Writes an IDX file record by record.

use super::deflate::Output;
use super::element::Element;
use super::layout::{Header, MAX_EMPTY_RECORDS};
use super::options as own;
use crate::base::{ElementType, Error, ErrorKind, Result, Tags};
use crate::format::writer::DroppedTags;
use crate::format::{RecordWriter, WriteOptions, Written};
use crate::io::{AtomicFile, FileSet};
use std::path::Path;

/// Writes records of a single shape to a new IDX file.
///
/// [`finish`](Writer::finish) publishes the file. It is gzipped if its name ends in `.gz`, unless
/// the options say otherwise. It always has at least one dimension, the number of records. Use
/// [`write_array`](super::write_array) to write an array without dimensions.
///
/// ```
/// use anyrec::format::{WriteOptions, idx};
/// use anyrec::ElementType;
///
/// # let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("points-idx2-float");
/// let options = WriteOptions::default().with(idx::WriteOptions::default().with_dtype(ElementType::F32));
/// let mut writer = idx::Writer::create(&path, &options)?;
/// writer.append_elements(&[0.5f32, 1.0])?;
/// writer.append_elements(&[2.5f32, -1.0])?;
/// assert!(writer.append_elements(&[1.0f32]).is_err());
/// assert_eq!(writer.finish()?.records, 2);
/// # #[cfg(feature = "ndarray")]
/// assert_eq!(idx::read_array::<f32>(&path, &Default::default())?[[1, 0]], 2.5);
/// # Ok::<(), anyrec::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer {
    sink: Output,
    dtype: ElementType,
    /// The header as it would be without further records; `None` until the first record determines
    /// the shape.
    header: Option<Header>,
    count: u64,
    dropped: DroppedTags,
    /// Buffer for converting elements to big-endian bytes.
    scratch: Vec<u8>,
}

impl Writer {
    /// Starts a file. `options.dtype` is the element type (default `uint8`), and
    /// `options.item_shape` is the shape of one record (default: one dimension, as long as the
    /// first record).
    ///
    /// # Errors
    /// A shape that IDX cannot hold, a setting it does not have, an existing file, or the operating
    /// system's error.
    pub fn create(path: impl AsRef<Path>, options: &WriteOptions) -> Result<Self> {
        let path = path.as_ref();
        let own: own::WriteOptions = options.only()?;
        let dtype = own.dtype.unwrap_or(ElementType::U8);
        let header = match &own.item_shape {
            Some(item_shape) => Some(header(dtype, 0, item_shape)?),
            None => None,
        };
        let mut sink = create_output(path, options)?;
        if let Some(header) = &header {
            sink.begin(&header.encode())?;
        }
        Ok(Writer { sink, dtype, header, count: 0, dropped: DroppedTags::default(), scratch: Vec::new() })
    }

    /// Appends a record, given as the big-endian bytes to store, and returns its number.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) for a record whose size differs from the others (it is not
    /// written, and the caller may continue), [`Limit`](ErrorKind::Limit) beyond 2^32-1 records
    /// (2^17 if they have no bytes), or the operating system's error.
    pub fn append(&mut self, record: &[u8]) -> Result<u64> {
        self.make_room(record.len() as u64)?;
        self.sink.append(record)?;
        self.count += 1;
        Ok(self.count - 1)
    }

    /// Appends a record given as numbers, and returns its number.
    ///
    /// # Errors
    /// Same as [`append`](Writer::append), and for elements whose type differs from the file's.
    pub fn append_elements<T: Element>(&mut self, elements: &[T]) -> Result<u64> {
        if T::TYPE != self.dtype {
            return Err(self.refuse("a record has elements of the wrong type", self.dtype, T::TYPE));
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        T::encode(elements, &mut scratch);
        let number = self.append(&scratch);
        self.scratch = scratch;
        number
    }

    /// Completes and publishes the file.
    ///
    /// # Errors
    /// The operating system's error. On error, the file is not published.
    pub fn finish(self) -> Result<Written> {
        let (written, files) = self.complete()?;
        files.publish()?;
        Ok(written)
    }

    pub(super) fn complete(mut self) -> Result<(Written, FileSet)> {
        let item_shape = match &self.header {
            Some(header) => header.item_shape().to_vec(),
            // No record determined the shape.
            None => {
                self.sink.begin(&header(self.dtype, 0, &[0])?.encode())?;
                vec![0]
            }
        };
        let header = header(self.dtype, self.count, &item_shape)?;
        let (bytes, files) = self.sink.complete(&header.encode())?;
        Ok((Written::new(self.count, bytes, self.dropped.notices("IDX")), files))
    }

    /// Checks that another record of `size` bytes fits. The first one may determine the shape.
    fn make_room(&mut self, size: u64) -> Result<()> {
        if self.header.is_none() {
            let elements = size / self.dtype.size();
            if elements * self.dtype.size() != size {
                let whole = format!("a multiple of {} bytes", self.dtype.size());
                return Err(self.refuse("a record is not a whole number of elements", whole, size));
            }
            let header = header(self.dtype, 0, &[elements])?;
            self.sink.begin(&header.encode())?;
            self.header = Some(header);
        }
        let expected = self.header.as_ref().map_or(0, Header::record_size);
        if size != expected {
            let found = format!("{size} bytes");
            return Err(self.refuse("a record has the wrong size", format!("{expected} bytes"), found));
        }
        let (most, what) = match size {
            // More than a reader accepts.
            0 => (MAX_EMPTY_RECORDS, "records without bytes"),
            _ => (u64::from(u32::MAX), "records"),
        };
        if self.count >= most {
            return Err(Error::new(ErrorKind::Limit, format!("an IDX file holds at most {most} {what}"))
                .in_file(self.sink.name()));
        }
        Ok(())
    }

    fn refuse(
        &self,
        message: &str,
        expected: impl std::fmt::Display,
        found: impl std::fmt::Display,
    ) -> Error {
        Error::invalid(message)
            .expected_found(expected, found)
            .in_file(self.sink.name())
            .in_record(self.count)
            .with_hint("all records of an IDX file have one type and one shape")
    }
}

impl RecordWriter for Writer {
    fn append(&mut self, record: &[u8], tags: &Tags) -> Result<u64> {
        let number = Writer::append(self, record)?;
        self.dropped.count(tags, false, false);
        Ok(number)
    }

    fn complete(self: Box<Self>) -> Result<(Written, FileSet)> {
        Writer::complete(*self)
    }
}

/// A header for `count` records of that shape.
fn header(dtype: ElementType, count: u64, item_shape: &[u64]) -> Result<Header> {
    let mut shape = vec![count];
    shape.extend_from_slice(item_shape);
    Header::new(dtype, shape)
}

/// Creates the file, gzipped if the options or else its name say so.
pub(super) fn create_output(path: &Path, options: &WriteOptions) -> Result<Output> {
    let named_gzip = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
    let file = AtomicFile::create(path, options.overwrite, options.durability)?;
    Output::new(file, options.only::<own::WriteOptions>()?.gzip.unwrap_or(named_gzip))
}
