//! The whole file as an array of numbers in this machine's byte order.
//!
//! The elements are converted once, on their way from the file (mapped, read or inflated) into
//! the array: nothing holds a second copy of them.

use super::element::Element;
use super::layout::Header;
use super::options as own;
use super::read::Reader;
use super::write::create_output;
use crate::base::memory::{reserve, zeroed};
use crate::base::{ElementType, Error, Limits, Result};
use crate::format::{OpenOptions, RecordReader, WriteOptions, Written};
use crate::io::RangeRead;
use ndarray::{ArrayD, ArrayRef, ArrayViewD, Dimension, IxDyn};
use std::path::Path;

/// Bytes converted at a time where the file does not lie in memory: small enough to stay in the
/// cache, a multiple of every element's size.
const CHUNK: usize = 1 << 18;

/// A whole IDX file, whatever its type.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Array {
    /// Unsigned bytes (type 08).
    U8(ArrayD<u8>),
    /// Signed bytes (type 09).
    I8(ArrayD<i8>),
    /// 16-bit integers (type 0B).
    I16(ArrayD<i16>),
    /// 32-bit integers (type 0C).
    I32(ArrayD<i32>),
    /// 32-bit floats (type 0D).
    F32(ArrayD<f32>),
    /// 64-bit floats (type 0E).
    F64(ArrayD<f64>),
}

/// Evaluates an expression for whichever array is inside.
macro_rules! each {
    ($array:expr, $inner:ident => $body:expr) => {
        match $array {
            Array::U8($inner) => $body,
            Array::I8($inner) => $body,
            Array::I16($inner) => $body,
            Array::I32($inner) => $body,
            Array::F32($inner) => $body,
            Array::F64($inner) => $body,
        }
    };
}

impl Array {
    /// Reads a file.
    ///
    /// # Errors
    /// As [`read_array`], except that any type is fine.
    pub fn read(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        Reader::open(path, options)?.array()
    }

    /// Writes a file.
    ///
    /// # Errors
    /// As [`write_array`].
    pub fn write(&self, path: impl AsRef<Path>, options: &WriteOptions) -> Result<Written> {
        each!(self, array => write_array(path, array, options))
    }

    /// Type of the elements.
    pub fn dtype(&self) -> ElementType {
        match self {
            Array::U8(_) => ElementType::U8,
            Array::I8(_) => ElementType::I8,
            Array::I16(_) => ElementType::I16,
            Array::I32(_) => ElementType::I32,
            Array::F32(_) => ElementType::F32,
            Array::F64(_) => ElementType::F64,
        }
    }

    /// Dimensions.
    pub fn shape(&self) -> &[usize] {
        each!(self, array => array.shape())
    }
}

/// Reads a whole file whose elements are of type `T`.
///
/// ```
/// use anyrec::format::idx::{read_array, write_array};
/// use ndarray::array;
///
/// # let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("x-idx2-int.gz");
/// write_array(&path, &array![[1, -2], [3, 4], [5, 6]], &Default::default())?;
/// let array = read_array::<i32>(&path, &Default::default())?;
/// assert_eq!(array.shape(), [3, 2]);
/// assert_eq!(array[[0, 1]], -2);
/// # Ok::<(), anyrec::Error>(())
/// ```
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) where the elements have another type,
/// [`Corrupt`](crate::ErrorKind::Corrupt) where bytes are missing or fail their checksum,
/// [`Limit`](crate::ErrorKind::Limit) where a gzipped file is too large, or what the system says.
pub fn read_array<T: Element>(path: impl AsRef<Path>, options: &OpenOptions) -> Result<ArrayD<T>> {
    Reader::open(path, options)?.array_of()
}

/// Writes an array, whatever its order in memory, row-major as the format asks. Any shape that
/// the format can express is fine: empty ones, and none at all (one element).
///
/// # Errors
/// A shape that IDX cannot hold, a setting it does not have (type and shape are the array's
/// own), an existing file, or what the system says.
pub fn write_array<T: Element, D: Dimension>(
    path: impl AsRef<Path>,
    array: &ArrayRef<T, D>,
    options: &WriteOptions,
) -> Result<Written> {
    let own: own::WriteOptions = options.only()?;
    if own.dtype.is_some() || own.item_shape.is_some() {
        return Err(Error::invalid("type and shape are those of the array"));
    }
    let shape = array.shape().iter().map(|&dimension| dimension as u64).collect();
    let header = Header::new(T::TYPE, shape)?;
    let mut sink = create_output(path.as_ref(), options)?;
    sink.begin(&header.encode())?;
    let mut bytes = Vec::with_capacity(CHUNK);
    let mut write = |elements: &[T]| {
        bytes.clear();
        T::encode(elements, &mut bytes);
        sink.append(&bytes)
    };
    let count = CHUNK / size_of::<T>();
    match array.as_slice() {
        Some(elements) => elements.chunks(count).try_for_each(&mut write)?,
        None => {
            let mut elements = array.iter().copied();
            let mut row = Vec::with_capacity(count);
            loop {
                row.clear();
                row.extend(elements.by_ref().take(count));
                if row.is_empty() {
                    break;
                }
                write(&row)?;
            }
        }
    }
    let (bytes, files) = sink.complete(&header.encode())?;
    files.publish()?;
    let records = header.shape().first().copied().unwrap_or(1);
    Ok(Written::new(records, bytes, Vec::new()))
}

impl Reader {
    /// The whole file, whatever its type.
    ///
    /// # Errors
    /// As [`read_array`].
    pub fn array(&self) -> Result<Array> {
        match self.header().dtype() {
            ElementType::U8 => self.array_of_bytes().map(Array::U8),
            ElementType::I8 => self.array_of().map(Array::I8),
            ElementType::I16 => self.array_of().map(Array::I16),
            ElementType::I32 => self.array_of().map(Array::I32),
            ElementType::F32 => self.array_of().map(Array::F32),
            ElementType::F64 => self.array_of().map(Array::F64),
        }
    }

    /// The whole file, whose elements are of type `T`.
    ///
    /// # Errors
    /// As [`read_array`].
    pub fn array_of<T: Element>(&self) -> Result<ArrayD<T>> {
        self.check_type(T::TYPE)?;
        let elements = self.elements()?;
        ArrayD::from_shape_vec(self.array_shape()?, elements).map_err(|error| self.not_an_array(error))
    }

    /// [`array_of`](Reader::array_of) for bytes, which need no decoding: read straight into the array.
    fn array_of_bytes(&self) -> Result<ArrayD<u8>> {
        if self.is_gzip() {
            return self.array_of();
        }
        self.source().check_unchanged()?;
        self.check_whole()?;
        let (offset, length) = (self.header().length(), self.header().data_length());
        let size = Limits::check("array size", length, self.source().len() - offset, self.limits().memory)?;
        let mut bytes = zeroed(size).map_err(|error| error.in_file(self.source().name()))?;
        self.source().read_ranges(&mut [RangeRead { offset, buffer: &mut bytes }])?;
        ArrayD::from_shape_vec(self.array_shape()?, bytes).map_err(|error| self.not_an_array(error))
    }

    /// The bytes of a `uint8` file as an array, without a copy: where the file is mapped this
    /// reads nothing but the header.
    ///
    /// # Errors
    /// As [`read_array`], and [`Unsupported`](crate::ErrorKind::Unsupported) where the file is read at
    /// positions and so does not lie in memory.
    pub fn view(&self) -> Result<ArrayViewD<'_, u8>> {
        self.check_type(ElementType::U8)?;
        self.source().check_unchanged()?;
        self.check_whole()?;
        let lent = self.source().lendable().and_then(|all| self.elements_in(all));
        let elements = lent.ok_or_else(|| {
            Error::unsupported("the file does not lie in memory, so no view of it can be given")
                .in_file(self.source().name())
                .with_hint("open it mapped, or read it as an array")
        })?;
        ArrayViewD::from_shape(self.array_shape()?, elements).map_err(|error| self.not_an_array(error))
    }

    fn check_type(&self, wanted: ElementType) -> Result<()> {
        let dtype = self.header().dtype();
        if dtype != wanted {
            return Err(Error::invalid(format!("the elements are {dtype}, not {wanted}"))
                .in_file(self.source().name()));
        }
        Ok(())
    }

    fn array_shape(&self) -> Result<IxDyn> {
        let dimensions: std::result::Result<Vec<usize>, _> =
            self.header().shape().iter().map(|&dimension| usize::try_from(dimension)).collect();
        dimensions.map(|dimensions| IxDyn(&dimensions)).map_err(|error| self.not_an_array(error))
    }

    fn not_an_array(&self, error: impl std::fmt::Display) -> Error {
        let shape = self.header().shape();
        Error::unsupported(format!("this machine cannot hold an array of shape {shape:?}: {error}"))
            .in_file(self.source().name())
    }

    /// The elements' bytes in `all`, the file.
    fn elements_in<'a>(&self, all: &'a [u8]) -> Option<&'a [u8]> {
        let begin = usize::try_from(self.header().length()).ok()?;
        let end = usize::try_from(self.header().file_length()).ok()?;
        all.get(begin..end)
    }

    /// Every element, in order.
    fn elements<T: Element>(&self) -> Result<Vec<T>> {
        match self.inflated() {
            Some(inflated) if inflated.known().is_none() => return self.inflated_elements(),
            _ => {}
        }
        self.source().check_unchanged()?;
        self.check_whole()?;
        let (begin, length) = (self.header().length(), self.header().data_length());
        // `check_whole` found all of them in the file.
        let size = Limits::check("array size", length, self.source().len() - begin, self.limits().memory)?;
        let mut elements = Vec::new();
        let count = size / size_of::<T>();
        reserve(&mut elements, count).map_err(|error| error.in_file(self.source().name()))?;
        if let Some(bytes) = self.source().as_slice().and_then(|all| self.elements_in(all)) {
            T::decode(bytes, &mut elements);
            self.source().check_unchanged()?;
            return Ok(elements);
        }
        let mut buffer = zeroed(CHUNK.min(size))?;
        let mut done = 0;
        while done < size {
            let buffer = buffer.get_mut(..CHUNK.min(size - done)).unwrap_or_default();
            let count = buffer.len();
            self.source().read_ranges(&mut [RangeRead { offset: begin + done as u64, buffer }])?;
            T::decode(buffer, &mut elements);
            done += count;
        }
        Ok(elements)
    }

    /// The elements of a gzipped file, straight out of the decompressor. The array grows with
    /// what arrives, whatever the header promises.
    fn inflated_elements<T: Element>(&self) -> Result<Vec<T>> {
        let mut elements = Vec::new();
        let Some(inflated) = self.inflated() else { return Ok(elements) };
        let (begin, length) = (self.header().length(), self.header().data_length());
        let limit = self.limits().decompressed.min(self.limits().memory);
        if length > limit {
            return Err(Limits::exceeded("array size", length, limit).in_file(self.source().name()));
        }
        let mut inflater = inflated.inflater()?;
        let mut buffer = zeroed(CHUNK)?;
        let header = usize::try_from(begin).ok().and_then(|begin| buffer.get_mut(..begin));
        inflater.fill(header.unwrap_or_default())?;
        let mut left = length;
        while left > 0 {
            let want = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
            let found = inflater.fill(buffer.get_mut(..want).unwrap_or_default())?;
            reserve(&mut elements, found / size_of::<T>())?;
            T::decode(buffer.get(..found).unwrap_or_default(), &mut elements);
            left -= found as u64;
            if found < want {
                break;
            }
        }
        // To the end of the last member, where its checksum is.
        let survey = inflater.finish()?;
        let name = self.source().name();
        if let Some(doubt) = survey.doubt(&(0..self.header().file_length())) {
            return Err(Error::corrupt(survey.reason(doubt)).in_file(name).at(doubt.span.start));
        }
        if left > 0 {
            return Err(self.missing(begin + length - left));
        }
        match &survey.fault {
            Some(fault) if self.verifies() => Err(Error::corrupt(fault.sentence()).in_file(name)),
            _ => Ok(elements),
        }
    }
}
