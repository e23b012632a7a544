//! The bytes of an IDX file's header, and what they determine.
//!
//! ```text
//! 00 00  type  rank  dimension 1 (u32)  ...  dimension `rank` (u32)  elements
//! ```
//!
//! All numbers are big-endian. The elements are row-major without gaps, so the header alone
//! determines where every record is. No I/O happens here.

use crate::base::{ElementType, Error, Result};
use std::ops::Range;

/// Size of the longest header: 255 dimensions.
pub(super) const MAX_HEADER: usize = 4 + 4 * 255;

/// Size of the header before the first dimension.
pub(super) const FIXED: usize = 4;

/// Maximum number of records without bytes.
///
/// Such records take no space in the file, so twelve bytes could declare four billion of them and
/// keep a caller that lists them busy for minutes. Reading such a file as an array is fine, and no
/// writer produces one record by record.
pub(super) const MAX_EMPTY_RECORDS: u64 = 1 << 17;

/// Type and shape of an IDX file.
///
/// ```
/// use anyrec::format::idx::Header;
/// use anyrec::ElementType;
///
/// let header = Header::new(ElementType::I16, vec![60000, 28, 28])?;
/// assert_eq!(header.record_size(), 28 * 28 * 2);
/// assert_eq!(header.file_length(), 16 + 60000 * 28 * 28 * 2);
/// assert_eq!(Header::parse(&header.encode())?, header);
/// # Ok::<(), anyrec::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    dtype: ElementType,
    shape: Vec<u64>,
    record_size: u64,
}

impl Header {
    /// Creates a header with that type and shape.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for more than 255 dimensions, a dimension over
    /// 2^32-1, or a shape whose nonzero dimensions multiply to more than 2^63-1 bytes. Such a shape
    /// is rejected even if a 0 among the dimensions leaves nothing to store: NumPy cannot hold it
    /// either, and no partial size may overflow.
    pub fn new(dtype: ElementType, shape: Vec<u64>) -> Result<Self> {
        if shape.len() > 255 {
            return Err(
                Error::invalid("too many dimensions for IDX").expected_found("at most 255", shape.len())
            );
        }
        if let Some(dimension) = shape.iter().find(|&&dimension| u32::try_from(dimension).is_err()) {
            return Err(Error::invalid("a dimension is too large for IDX")
                .expected_found("at most 4294967295", dimension));
        }
        let size = |dimensions: &[u64]| {
            dimensions
                .iter()
                .filter(|&&dimension| dimension > 0)
                .try_fold(dtype.size(), |size, &dimension| size.checked_mul(dimension))
                .filter(|&size| i64::try_from(size).is_ok())
        };
        if size(&shape).is_none() {
            return Err(Error::invalid(format!(
                "the dimensions {shape:?} of {dtype} multiply to more than 2^63-1 bytes"
            )));
        }
        let item = shape.get(1..).unwrap_or_default();
        let record_size = if item.contains(&0) { 0 } else { size(item).unwrap_or(0) };
        Ok(Header { dtype, shape, record_size })
    }

    /// Parses the header at the beginning of `bytes`, which may continue after it.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if `bytes` is too short, or is not the header
    /// of a possible array.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let ends = |expected: usize| {
            Error::corrupt("the file ends inside the header")
                .expected_found(format!("{expected} bytes"), format!("{} bytes", bytes.len()))
        };
        let Some((&[zero, also_zero, code, rank], rest)) = bytes.split_first_chunk::<FIXED>() else {
            return Err(ends(FIXED));
        };
        if (zero, also_zero) != (0, 0) {
            return Err(Error::corrupt("the file does not begin like an IDX file")
                .expected_found("00 00", format!("{zero:02x} {also_zero:02x}")));
        }
        let dtype = element_type(code).ok_or_else(|| {
            Error::corrupt("the element type is not an IDX type")
                .expected_found("08, 09, 0b, 0c, 0d or 0e", format!("{code:02x}"))
        })?;
        let rank = usize::from(rank);
        let (dimensions, _) = rest.as_chunks::<4>();
        let dimensions = dimensions.get(..rank).ok_or_else(|| ends(FIXED + 4 * rank))?;
        let shape = dimensions.iter().map(|&dimension| u64::from(u32::from_be_bytes(dimension))).collect();
        Self::new(dtype, shape).map_err(|error| Error::corrupt(error.message()))
    }

    /// The encoded header.
    pub fn encode(&self) -> Vec<u8> {
        let rank = u8::try_from(self.shape.len()).unwrap_or(u8::MAX);
        let mut bytes = vec![0, 0, type_code(self.dtype), rank];
        for &dimension in &self.shape {
            bytes.extend(u32::try_from(dimension).unwrap_or(u32::MAX).to_be_bytes());
        }
        bytes
    }

    /// Type of the elements.
    pub fn dtype(&self) -> ElementType {
        self.dtype
    }

    /// Dimensions of the array. The first one is the number of records.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Dimensions of one record.
    pub fn item_shape(&self) -> &[u64] {
        self.shape.get(1..).unwrap_or_default()
    }

    /// Size of one record in bytes.
    pub fn record_size(&self) -> u64 {
        self.record_size
    }

    /// Number of records: the first dimension, or one if there are no dimensions (the array is then
    /// a single element).
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) for more than 2^17 records that have no bytes.
    pub fn record_count(&self) -> Result<u64> {
        let count = self.slices();
        if self.record_size == 0 && count > MAX_EMPTY_RECORDS {
            return Err(Error::corrupt("the header declares too many records without bytes")
                .expected_found(format!("at most {MAX_EMPTY_RECORDS}"), count));
        }
        Ok(count)
    }

    /// Length of the header in bytes.
    pub fn length(&self) -> u64 {
        (FIXED + 4 * self.shape.len()) as u64
    }

    /// Length of all elements in bytes.
    pub fn data_length(&self) -> u64 {
        // The constructor checked that neither overflows.
        self.slices().saturating_mul(self.record_size)
    }

    /// Length of header and elements: the length of the (uncompressed) file.
    pub fn file_length(&self) -> u64 {
        self.length().saturating_add(self.data_length())
    }

    /// The byte range of record `index` in the (uncompressed) file.
    pub(super) fn span(&self, index: u64) -> Range<u64> {
        let begin = self.length().saturating_add(index.saturating_mul(self.record_size));
        begin..begin.saturating_add(self.record_size)
    }

    /// Number of records that are complete in a file of `length` bytes.
    pub(super) fn whole_records(&self, length: u64) -> u64 {
        match length.saturating_sub(self.length()).checked_div(self.record_size) {
            Some(whole) => whole.min(self.slices()),
            None => self.slices(),
        }
    }

    /// Numbers of the records that have bytes in `span` of the (uncompressed) file.
    pub(super) fn records_touching(&self, span: &Range<u64>) -> Range<u64> {
        let size = self.record_size.max(1);
        let record = |offset: u64| offset.saturating_sub(self.length());
        let end = record(span.end).div_ceil(size).min(self.slices());
        let begin = (record(span.start) / size).min(end);
        if self.record_size == 0 { 0..0 } else { begin..end }
    }

    fn slices(&self) -> u64 {
        self.shape.first().copied().unwrap_or(1)
    }
}

/// The code of a type in the third byte.
pub fn type_code(dtype: ElementType) -> u8 {
    match dtype {
        ElementType::U8 => 0x08,
        ElementType::I8 => 0x09,
        ElementType::I16 => 0x0b,
        ElementType::I32 => 0x0c,
        ElementType::F32 => 0x0d,
        ElementType::F64 => 0x0e,
    }
}

/// The type with this code.
pub fn element_type(code: u8) -> Option<ElementType> {
    ElementType::ALL.into_iter().find(|&dtype| type_code(dtype) == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_past_63_bits_is_refused_wherever_a_zero_stands() {
        let huge = u64::from(u32::MAX);
        for shape in [vec![huge; 3], vec![0, huge, huge], vec![huge, huge, 0], vec![1 << 31, 1 << 31, 2]] {
            assert!(Header::new(ElementType::U8, shape).is_err());
        }
        let largest = Header::new(ElementType::U8, vec![1 << 31, huge]).unwrap();
        assert_eq!(largest.data_length(), (1 << 31) * huge);
        assert!(Header::new(ElementType::F64, vec![1 << 31, 1 << 29]).is_err());
        assert!(Header::new(ElementType::F64, vec![1 << 31, 0, 1 << 28]).is_ok());
    }

    #[test]
    fn dimensions_that_the_header_cannot_hold_are_refused() {
        assert!(Header::new(ElementType::U8, vec![1; 255]).is_ok());
        assert!(Header::new(ElementType::U8, vec![1; 256]).is_err());
        assert!(Header::new(ElementType::U8, vec![1 << 32]).is_err());
    }

    #[test]
    fn no_dimensions_are_one_record_and_a_zero_is_none_or_empty_ones() {
        let sizes = |shape: &[u64]| {
            let header = Header::new(ElementType::I32, shape.to_vec()).unwrap();
            (header.record_count().unwrap(), header.record_size(), header.file_length())
        };
        assert_eq!(sizes(&[]), (1, 4, 8));
        assert_eq!(sizes(&[0]), (0, 4, 8));
        assert_eq!(sizes(&[0, 3]), (0, 12, 12));
        assert_eq!(sizes(&[4, 0, 3]), (4, 0, 16));
    }

    #[test]
    fn records_that_touch_a_stretch_are_found() {
        let header = Header::new(ElementType::U8, vec![5, 10]).unwrap();
        assert_eq!(header.length(), 12);
        assert_eq!(header.records_touching(&(0..12)), 0..0);
        assert_eq!(header.records_touching(&(0..13)), 0..1);
        assert_eq!(header.records_touching(&(21..23)), 0..2);
        assert_eq!(header.records_touching(&(22..32)), 1..2);
        assert_eq!(header.records_touching(&(60..90)), 4..5);
        assert_eq!(header.records_touching(&(62..90)), 5..5);
        assert_eq!(header.whole_records(41), 2);
        assert_eq!(header.whole_records(90), 5);
    }

    #[test]
    fn millions_of_records_without_bytes_are_not_believed() {
        let header = Header::new(ElementType::U8, vec![(1 << 17) + 1, 0]).unwrap();
        assert!(header.record_count().is_err());
    }

    #[test]
    fn a_cut_header_names_expected_and_found() {
        let bytes = Header::new(ElementType::U8, vec![1, 2]).unwrap().encode();
        for end in 0..bytes.len() {
            let error = Header::parse(&bytes[..end]).unwrap_err();
            assert_eq!(error.expected(), Some(if end < 4 { "4 bytes" } else { "12 bytes" }));
            assert_eq!(error.found(), Some(format!("{end} bytes").as_str()));
        }
    }
}
