//! The image record header (`IRHeader`): label and ids in front of a record's payload.
//!
//! ```text
//! narrow := flag u32, label f32,                    id u64, id2 u64   24 bytes, struct "IfQQ"
//! wide   := flag u32, 4 zero bytes, label f64,      id u64, id2 u64   32 bytes, struct "IdQQ"
//! record := header  flag more labels (f32 or f64)  payload
//! ```
//!
//! `flag` is 0 for one label, which stands in the header; else it counts the labels that follow
//! it, and the header's own label is 0. The wide form is that of forks which ran out of integers:
//! an `f32` holds them exactly only up to 2^24. Nothing in a file says that there are headers at
//! all, or which form: that is for the image survey to judge.

use crate::base::{Error, Label, Result, Tags};

/// How labels are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum LabelWidth {
    /// As `f32`: what MXNet reads and writes.
    #[default]
    Narrow,
    /// As `f64`: some forks.
    Wide,
}

impl LabelWidth {
    /// Both.
    pub const ALL: [LabelWidth; 2] = [LabelWidth::Narrow, LabelWidth::Wide];

    /// Bytes of the header without the labels that follow it.
    pub fn header_size(self) -> usize {
        match self {
            LabelWidth::Narrow => 24,
            LabelWidth::Wide => 32,
        }
    }

    /// Bytes of a label.
    pub fn label_size(self) -> usize {
        match self {
            LabelWidth::Narrow => 4,
            LabelWidth::Wide => 8,
        }
    }

    /// `label` as it will be read back.
    pub fn round(self, label: f64) -> f64 {
        match self {
            LabelWidth::Narrow => f64::from(narrowed(label)),
            LabelWidth::Wide => label,
        }
    }
}

/// Rounding to the nearest `f32`, infinity past its range, is what the format does to labels.
fn narrowed(label: f64) -> f32 {
    #[allow(clippy::cast_possible_truncation)]
    let label = label as f32;
    label
}

/// Label and ids of an image record.
///
/// ```
/// use anyrec::Label;
/// use anyrec::format::mxnet::{ImageHeader, LabelWidth};
///
/// let header = ImageHeader::new(Label::Array(vec![4.0, 5.5]), 7);
/// let record = header.pack(b"payload", LabelWidth::Narrow)?;
/// let (read, payload) = ImageHeader::unpack(&record, LabelWidth::Narrow)?;
/// assert_eq!((read.flag(), read, payload), (2, header, &b"payload"[..]));
/// # Ok::<(), anyrec::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ImageHeader {
    /// One label or several. An array of none is written, and read back, as the number 0.
    pub label: Label,
    /// The record's id, usually its key.
    pub id: u64,
    /// The rest of a longer id; nearly always 0.
    pub id2: u64,
}

impl ImageHeader {
    /// A header with that label and id.
    pub fn new(label: Label, id: u64) -> Self {
        ImageHeader { label, id, id2: 0 }
    }

    /// The number that says how many labels follow: 0 for a single one, in the header.
    pub fn flag(&self) -> u64 {
        match &self.label {
            Label::Scalar(_) => 0,
            Label::Array(labels) => labels.len() as u64,
        }
    }

    /// The labels, one or several.
    pub fn labels(&self) -> &[f64] {
        match &self.label {
            Label::Scalar(label) => std::slice::from_ref(label),
            Label::Array(labels) => labels,
        }
    }

    /// The header and its labels, as they stand in front of a payload.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a single finite label past the range of `f32`
    /// (an array's would become infinite, as in the original), or more than 2^32 - 1 labels.
    pub fn to_bytes(&self, width: LabelWidth) -> Result<Vec<u8>> {
        let (scalar, array) = match &self.label {
            Label::Scalar(label) => (*label, &[][..]),
            Label::Array(labels) => (0.0, labels.as_slice()),
        };
        if scalar.is_finite() && width.round(scalar).is_infinite() {
            return Err(Error::invalid(format!("label {scalar:e} is too large for a 32-bit float")));
        }
        let flag = u32::try_from(array.len()).map_err(|_| {
            Error::invalid(format!("{} labels are more than a header can count", array.len()))
        })?;
        let mut bytes = flag.to_le_bytes().to_vec();
        let push = |bytes: &mut Vec<u8>, label: f64| match width {
            LabelWidth::Narrow => bytes.extend_from_slice(&narrowed(label).to_le_bytes()),
            LabelWidth::Wide => bytes.extend_from_slice(&label.to_le_bytes()),
        };
        if width == LabelWidth::Wide {
            bytes.extend_from_slice(&[0; 4]);
        }
        push(&mut bytes, scalar);
        bytes.extend_from_slice(&self.id.to_le_bytes());
        bytes.extend_from_slice(&self.id2.to_le_bytes());
        for &label in array {
            push(&mut bytes, label);
        }
        Ok(bytes)
    }

    /// A record: header, labels, payload.
    ///
    /// # Errors
    /// As [`ImageHeader::to_bytes`].
    pub fn pack(&self, payload: &[u8], width: LabelWidth) -> Result<Vec<u8>> {
        let mut record = self.to_bytes(width)?;
        record.extend_from_slice(payload);
        Ok(record)
    }

    /// Label, ids and length of the header in front of a record; no tags if it has none.
    pub(super) fn tags(record: &[u8], width: LabelWidth) -> Tags {
        match Self::unpack(record, width) {
            Ok((header, payload)) => Tags {
                key: None,
                label: Some(header.label),
                ids: Some([header.id, header.id2]),
                header_length: record.len() - payload.len(),
            },
            Err(_) => Tags::none(),
        }
    }

    /// Header and payload of a record.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) when the record is shorter than a header and the
    /// labels it promises.
    pub fn unpack(record: &[u8], width: LabelWidth) -> Result<(Self, &[u8])> {
        let Some((flag, rest)) = record.split_at_checked(width.header_size()).and_then(|(header, rest)| {
            let flag = u32::from_le_bytes(*header.first_chunk()?);
            Some((flag, rest))
        }) else {
            return Err(Error::corrupt("record too short for an image header")
                .expected_found(format_args!("{} bytes", width.header_size()), record.len()));
        };
        let wanted = u64::from(flag) * width.label_size() as u64;
        let Some((labels, payload)) =
            usize::try_from(wanted).ok().and_then(|size| rest.split_at_checked(size))
        else {
            return Err(Error::corrupt(format!(
                "image header promises {flag} labels, more than the record holds"
            ))
            .expected_found(format_args!("{wanted} bytes"), rest.len()));
        };
        let label = match flag {
            0 => Label::Scalar(label_at(record, width.header_size() - 16 - width.label_size(), width)),
            _ => Label::Array(
                (0..labels.len()).step_by(width.label_size()).map(|at| label_at(labels, at, width)).collect(),
            ),
        };
        let ids = width.header_size() - 16;
        Ok((ImageHeader { label, id: u64_at(record, ids), id2: u64_at(record, ids + 8) }, payload))
    }
}

/// The label at `at`; callers have checked that it is there.
fn label_at(bytes: &[u8], at: usize, width: LabelWidth) -> f64 {
    let rest = bytes.get(at..).unwrap_or_default();
    match width {
        LabelWidth::Narrow => rest.first_chunk().map_or(0.0, |label| f64::from(f32::from_le_bytes(*label))),
        LabelWidth::Wide => rest.first_chunk().map_or(0.0, |label| f64::from_le_bytes(*label)),
    }
}

/// The number at `at`; callers have checked that it is there.
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |number| u64::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_too_short_for_its_header_or_labels_is_an_error() {
        let short = ImageHeader::unpack(&[0; 23], LabelWidth::Narrow).unwrap_err();
        assert_eq!(short.to_string(), "record too short for an image header: expected 24 bytes, found 23");
        let mut promises = vec![0; 30];
        promises[0] = 2;
        let error = ImageHeader::unpack(&promises, LabelWidth::Narrow).unwrap_err();
        assert_eq!(
            error.to_string(),
            "image header promises 2 labels, more than the record holds: expected 8 bytes, found 6"
        );
    }

    #[test]
    fn a_single_label_out_of_range_is_refused_and_one_in_an_array_becomes_infinite() {
        assert!(ImageHeader::new(Label::Scalar(1e300), 0).to_bytes(LabelWidth::Narrow).is_err());
        let array = ImageHeader::new(Label::Array(vec![1e300]), 0).to_bytes(LabelWidth::Narrow).unwrap();
        assert_eq!(array[24..], f32::INFINITY.to_le_bytes());
    }

    #[test]
    fn a_wide_header_keeps_what_a_narrow_one_rounds() {
        let header = ImageHeader::new(Label::Scalar(16_777_217.0), 3);
        let wide = header.pack(b"\xff\xd8\xff", LabelWidth::Wide).unwrap();
        assert_eq!(wide.len(), 35);
        assert_eq!(ImageHeader::unpack(&wide, LabelWidth::Wide).unwrap().0, header);
        let narrow = header.pack(b"", LabelWidth::Narrow).unwrap();
        assert_eq!(
            ImageHeader::unpack(&narrow, LabelWidth::Narrow).unwrap().0.label,
            Label::Scalar(16_777_216.0)
        );
    }

    proptest! {
        #[test]
        fn headers_come_back(labels in prop::collection::vec(-1e9f32..1e9, 0..9), id: u64, id2: u64, wide: bool) {
            let width = if wide { LabelWidth::Wide } else { LabelWidth::Narrow };
            let labels: Vec<f64> = labels.into_iter().map(f64::from).collect();
            let label = match labels.as_slice() {
                [] => Label::Scalar(0.5),
                _ => Label::Array(labels),
            };
            let header = ImageHeader { label, id, id2 };
            let record = header.pack(b"payload", width).unwrap();
            prop_assert_eq!(ImageHeader::unpack(&record, width).unwrap(), (header, &b"payload"[..]));
        }
    }
}
