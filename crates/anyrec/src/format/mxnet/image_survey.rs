//! Decides whether records begin with image headers, and of which width.
//!
//! Nothing in a file says so, and any bytes can be read as a header. There are two answers: a guess
//! from a single record ([`guess_label_width`]), and a more reliable one from many records of a
//! file (`Survey`).

use super::image_header::{ImageHeader, LabelWidth};
use crate::base::{Label, Tags};

/// Whether a single record seems to begin with an image header of either width.
///
/// ```
/// use anyrec::Label;
/// use anyrec::format::mxnet::{ImageHeader, LabelWidth, looks_like_image_record};
///
/// let record = ImageHeader::new(Label::Scalar(3.0), 17).pack(b"\xff\xd8\xff\xe0...", LabelWidth::Narrow)?;
/// assert!(looks_like_image_record(&record));
/// assert!(!looks_like_image_record(b"some text that is long enough to hold a header"));
/// # Ok::<(), anyrec::Error>(())
/// ```
pub fn looks_like_image_record(record: &[u8]) -> bool {
    guess_label_width(record).is_some()
}

/// The width of the image header that a single record seems to begin with.
///
/// An encoded image (JPEG, PNG, WebP, GIF, BMP, TIFF) right after a header is enough. Without one
/// (raw arrays, label-only records) the header must be narrow and plausible: labels of everyday
/// size, not just a single 0, and `id2` 0. Text is never mistaken for a header: read as a label
/// count, its first four letters would need more bytes than any record has.
pub fn guess_label_width(record: &[u8]) -> Option<LabelWidth> {
    let clear = |&width: &LabelWidth| Evidence::of(record, width) == Evidence::Image;
    let fair =
        || (Evidence::of(record, LabelWidth::Narrow) == Evidence::Labels).then_some(LabelWidth::Narrow);
    LabelWidth::ALL.into_iter().find(clear).or_else(fair)
}

/// Label and ids of the image header that a single record seems to begin with.
pub fn guess_tags(record: &[u8]) -> Tags {
    guess_label_width(record).map_or_else(Tags::none, |width| ImageHeader::tags(record, width))
}

/// The second half of an id is nearly always 0. Up to this number it can still be one.
const RARE_ID2: u64 = u32::MAX as u64;

/// The evidence for an image header of a given width at the start of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    /// It cannot be a header.
    Against,
    /// Inconclusive: label 0, no label (NaN), all zeros, or an `id2` that headers rarely have.
    Nothing,
    /// The id is the record's number or key.
    Id,
    /// The labels are plausible.
    Labels,
    /// An encoded image follows it.
    Image,
}

impl Evidence {
    fn of(record: &[u8], width: LabelWidth) -> Self {
        let Ok((header, payload)) = ImageHeader::unpack(record, width) else { return Evidence::Against };
        let padded = width == LabelWidth::Narrow || record.get(4..8) == Some(&[0; 4]);
        if padded && is_encoded_image(payload) && header.labels().iter().all(|label| label.is_finite()) {
            Evidence::Image
        } else if !padded || header.id2 > RARE_ID2 || !header.labels().iter().copied().all(is_everyday) {
            Evidence::Against
        } else if header.id2 != 0
            || matches!(header.label, Label::Scalar(label) if label == 0.0 || label.is_nan())
        {
            Evidence::Nothing
        } else {
            Evidence::Labels
        }
    }
}

/// Whether the records of a file begin with image headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Headers {
    /// They do not.
    None,
    /// All of them do.
    All(LabelWidth),
    /// Some do and some cannot: one of each.
    Some { with: u64, without: u64 },
    /// Their first bytes can be headers, and nothing tells: this one, like all others.
    Unclear { example: u64 },
}

/// Decides from many records whether a file has image headers. Every record must be able to have
/// one, and at least one record must give positive evidence. This is more reliable than judging
/// records one by one: a record with label 0 and no image proves nothing, and arrays of integers
/// look much like it.
#[derive(Debug, Default)]
pub(super) struct Survey {
    narrow: Option<Seen>,
    wide: Option<Seen>,
}

/// The evidence collected for headers of one width.
#[derive(Debug, Clone, Copy)]
struct Seen {
    weakest: Evidence,
    strongest: Evidence,
    /// The numbers of these records.
    weakest_at: u64,
    strongest_at: u64,
    images: u64,
}

impl Survey {
    /// Adds a record to the survey. A header without a label, or with one of an unusual size, still tells
    /// by its id that it is one: `names` are what the id may be, the record's number or its key. (Beside a
    /// label of 0, an id of 0 does not tell, because arrays of zeros have both.)
    pub(super) fn add(&mut self, number: u64, record: &[u8], names: &[u64]) {
        for (width, seen) in [(LabelWidth::Narrow, &mut self.narrow), (LabelWidth::Wide, &mut self.wide)] {
            let mut evidence = Evidence::of(record, width);
            if evidence <= Evidence::Nothing
                && width == LabelWidth::Narrow
                && let Ok((header, _)) = ImageHeader::unpack(record, width)
                && header.id2 == 0
                && names.contains(&header.id)
            {
                let is_zero = header.label == Label::Scalar(0.0) || header.flag() > 0;
                evidence = if header.id == 0 && is_zero { Evidence::Nothing } else { Evidence::Id };
            }
            let one = Seen {
                weakest: evidence,
                strongest: evidence,
                weakest_at: number,
                strongest_at: number,
                images: 0,
            };
            let seen = seen.get_or_insert(one);
            if evidence < seen.weakest {
                (seen.weakest, seen.weakest_at) = (evidence, number);
            }
            if evidence > seen.strongest {
                (seen.strongest, seen.strongest_at) = (evidence, number);
            }
            seen.images += u64::from(evidence == Evidence::Image);
        }
    }

    /// What the records show.
    pub(super) fn headers(&self) -> Headers {
        if let Some(width) = self.verdict() {
            return Headers::All(width);
        }
        let wide = self.wide.filter(|wide| wide.images > 0);
        match wide.or(self.narrow) {
            Some(seen) if seen.strongest > Evidence::Nothing => {
                Headers::Some { with: seen.strongest_at, without: seen.weakest_at }
            }
            Some(seen) if seen.weakest == Evidence::Nothing => Headers::Unclear { example: seen.weakest_at },
            _ => Headers::None,
        }
    }

    /// Whether every record so far may have a header of that width.
    pub(super) fn allows(&self, width: LabelWidth) -> bool {
        let seen = match width {
            LabelWidth::Narrow => self.narrow,
            LabelWidth::Wide => self.wide,
        };
        seen.is_none_or(|seen| seen.weakest > Evidence::Against)
    }

    /// The width of the file's headers, if it has any.
    pub(super) fn verdict(&self) -> Option<LabelWidth> {
        let spoken_for = |seen: &Seen| seen.weakest > Evidence::Against && seen.strongest > Evidence::Nothing;
        let narrow = self.narrow.filter(spoken_for);
        // Labels alone are not evidence for the rare form: half of a wide label can look like a
        // label too.
        let wide = self.wide.filter(spoken_for).filter(|wide| wide.images > 0);
        match (narrow, wide) {
            (None, None) => None,
            (Some(narrow), Some(wide)) if narrow.images >= wide.images => Some(LabelWidth::Narrow),
            (Some(_), None) => Some(LabelWidth::Narrow),
            (_, Some(_)) => Some(LabelWidth::Wide),
        }
    }
}

/// The payload of a record of a file of image records; `None` if it cannot be one itself. A second id that no
/// header has shows that, unless an image follows.
pub(super) fn payload_in(record: &[u8], width: LabelWidth) -> Option<&[u8]> {
    let (header, payload) = ImageHeader::unpack(record, width).ok()?;
    (header.id2 <= RARE_ID2 || is_encoded_image(payload)).then_some(payload)
}

/// Whether a label is of a plausible size. Other bytes, read as a float, are mostly enormous or
/// tiny.
fn is_everyday(label: f64) -> bool {
    label == 0.0 || label.is_nan() || (1e-6..1e12).contains(&label.abs())
}

/// Whether the bytes begin like an image file.
fn is_encoded_image(bytes: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 6] =
        [b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"BM", b"II*\0", b"MM\0*"];
    BEGINNINGS.iter().any(|beginning| bytes.starts_with(beginning))
        || (bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_of_labels_only_look_like_image_records_and_zeros_do_not() {
        let meta = ImageHeader::new(Label::Array(vec![1.0, 5.0]), 0).to_bytes(LabelWidth::Narrow).unwrap();
        assert!(looks_like_image_record(&meta));
        assert!(!looks_like_image_record(&[0; 100]));
        assert!(!looks_like_image_record(b""));
    }

    #[test]
    fn a_wide_header_is_known_by_the_image_behind_it() {
        let header = ImageHeader::new(Label::Scalar(16_777_217.0), 3);
        let wide = header.pack(b"\xff\xd8\xff", LabelWidth::Wide).unwrap();
        assert_eq!(guess_label_width(&wide), Some(LabelWidth::Wide));
    }

    #[test]
    fn a_file_is_judged_by_many_records() {
        let verdict = |records: &[&[u8]]| {
            let mut survey = Survey::default();
            (0..).zip(records).for_each(|(number, record)| survey.add(number, record, &[number]));
            survey.headers()
        };
        let packed = |labels: &[f64], payload: &[u8], width| {
            let label = match labels {
                [label] => Label::Scalar(*label),
                labels => Label::Array(labels.to_vec()),
            };
            ImageHeader::new(label, 3).pack(payload, width).unwrap()
        };
        let raw_zero = packed(&[0.0], b"raw", LabelWidth::Narrow);
        let raw_one = packed(&[1.0], b"raw", LabelWidth::Narrow);
        let no_label = packed(&[f64::NAN], b"raw", LabelWidth::Narrow);
        let number_3 = [&[0; 100][..], &[0; 100], &[0; 100], &raw_zero];
        let wide_image = packed(&[0.0], b"\xff\xd8\xff", LabelWidth::Wide);
        let wide_range =
            ImageHeader::new(Label::Array(vec![4.0, 6.0]), 0).to_bytes(LabelWidth::Wide).unwrap();
        assert_eq!(verdict(&[]), Headers::None);
        assert_eq!(verdict(&[b"text, long enough to be a header"]), Headers::None);
        assert_eq!(verdict(&[&[0; 100], b"text"]), Headers::None);
        assert_eq!(verdict(&[&[0; 100]]), Headers::Unclear { example: 0 });
        assert_eq!(verdict(&[&raw_zero]), Headers::Unclear { example: 0 });
        assert_eq!(verdict(&number_3), Headers::All(LabelWidth::Narrow));
        assert_eq!(verdict(&[&raw_zero, &raw_one]), Headers::All(LabelWidth::Narrow));
        assert_eq!(verdict(&[&raw_one, &no_label]), Headers::All(LabelWidth::Narrow));
        // InsightFace's header record, as some writers make it, does not speak against the others.
        let range = ImageHeader { label: Label::Array(vec![4.0, 6.0]), id: 0, id2: 1 };
        let range = range.to_bytes(LabelWidth::Narrow).unwrap();
        let image = packed(&[0.0], b"\xff\xd8\xff", LabelWidth::Narrow);
        assert_eq!(verdict(&[&image, &range]), Headers::All(LabelWidth::Narrow));
        assert_eq!(verdict(&[&range]), Headers::Unclear { example: 0 });
        let mixed = [&raw_one[..], b"text, long enough to be a header"];
        assert_eq!(verdict(&mixed), Headers::Some { with: 0, without: 1 });
        assert_eq!(verdict(&[&wide_range, &wide_image]), Headers::All(LabelWidth::Wide));
    }

    proptest! {
        #[test]
        fn text_is_never_taken_for_an_image_record(text in "\\PC{0,200}") {
            prop_assert!(!looks_like_image_record(text.as_bytes()));
        }
    }
}
