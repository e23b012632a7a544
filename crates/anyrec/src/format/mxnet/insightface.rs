//! InsightFace training sets: face images, grouped by person, in one `.rec` file.
//!
//! The record with key 0 has labels only: `[images_end, identities_end]`. Keys `1..images_end` are
//! images. Keys `images_end..identities_end` are label-only records, one per person, each with the
//! range `[first, last)` of that person's image keys. In the file, the images come first and record
//! 0 comes last. A text file named `property` is beside it: `classes,height,width`.
//!
//! Some files have no record 0; every key of such a file is an image. A record 0 with more than one
//! label is not necessarily a header, since images may have two labels (`[class, aligned]`). A
//! header has no payload.

use super::image_header::{ImageHeader, LabelWidth};
use super::index_file::{Index, parse_int, shortened, show, strip};
use super::read::Reader;
use crate::base::{Error, Key, Result};
use crate::format::{Notice, RecordReader};
use crate::io::{Access, open_file};
use bytes::Bytes;
use std::ops::Range;
use std::path::Path;

/// A face image with its labels.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FaceImage {
    /// Labels and id. The first label is the person's number.
    pub header: ImageHeader,
    /// The encoded image.
    pub payload: Bytes,
}

impl FaceImage {
    /// The person's number, if the first label is a whole number.
    pub fn class(&self) -> Option<u64> {
        self.header.labels().first().copied().and_then(whole)
    }
}

/// A person: the record that lists the keys of their images.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// Key of the record.
    pub key: u64,
    /// Keys of the person's images.
    pub images: Range<u64>,
}

/// The contents of the `property` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Property {
    /// Number of persons.
    pub classes: u64,
    /// Height of the images.
    pub height: u64,
    /// Width of the images.
    pub width: u64,
}

impl Property {
    /// Parses the text of a `property` file; `name` is used in messages.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) unless it is three numbers separated by commas.
    pub fn parse(name: &str, text: &[u8]) -> Result<Self> {
        let line = strip(text);
        let numbers: Option<Vec<u64>> =
            line.split(|&byte| byte == b',').map(|number| u64::try_from(parse_int(number)?).ok()).collect();
        match numbers.as_deref() {
            Some(&[classes, height, width]) => Ok(Property { classes, height, width }),
            _ => Err(Error::corrupt("is not a property file")
                .expected_found("classes,height,width", format_args!("{:?}", shortened(line)))
                .in_file(name)),
        }
    }

    /// The `property` file beside `path`, if there is one.
    ///
    /// # Errors
    /// Same as [`Property::parse`], or the operating system's error.
    pub fn beside(path: &Path) -> Result<Option<Self>> {
        let path = path.with_file_name("property");
        if !path.is_file() {
            return Ok(None);
        }
        let source = open_file(&path, Access::Positional)?;
        // Three numbers fit easily. A larger file of that name is something else.
        let text = source.bytes(0..source.len().min(1024))?;
        Self::parse(source.name(), &text).map(Some)
    }
}

impl std::fmt::Display for Property {
    /// The text of the file.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{},{}", self.classes, self.height, self.width)
    }
}

/// An InsightFace training set.
///
/// ```
/// use anyrec::format::mxnet::{ImageHeader, InsightFace, LabelWidth, Reader, Writer};
/// use anyrec::format::{OpenOptions, WriteOptions};
/// use anyrec::{Key, Label};
/// use anyrec::io::{Access, open_file};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("train.rec");
/// let mut writer = Writer::create(&path, &WriteOptions::default())?;
/// let mut add = |key: u64, label, payload: &[u8]| {
///     let record = ImageHeader::new(label, key).pack(payload, LabelWidth::Narrow)?;
///     writer.write_with_key(&Key::Int(key.into()), &record)
/// };
/// add(1, Label::Scalar(0.0), b"\xff\xd8\xff first face")?;
/// add(2, Label::Scalar(0.0), b"\xff\xd8\xff second face")?;
/// add(3, Label::Array(vec![1.0, 3.0]), b"")?;
/// add(0, Label::Array(vec![3.0, 4.0]), b"")?;
/// writer.finish()?;
///
/// let reader = Reader::open(open_file(&path, Access::Auto)?, &OpenOptions::default())?;
/// let faces = InsightFace::open(&reader)?;
/// assert_eq!(faces.image_count(), 2);
/// assert_eq!(faces.identities().next().unwrap()?.images, 1..3);
/// assert_eq!(faces.image(&Key::Int(2))?.class(), Some(0));
/// # Ok::<(), anyrec::Error>(())
/// ```
#[derive(Debug)]
pub struct InsightFace<'r> {
    reader: &'r Reader,
    /// Built from the records if there is no index file.
    rebuilt: Option<Index>,
    ranges: Option<Ranges>,
    label_width: LabelWidth,
    property: Option<Property>,
    notices: Vec<Notice>,
}

/// The ranges in record 0: where the keys of images and of identities end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ranges {
    images_end: u64,
    identities_end: u64,
}

impl<'r> InsightFace<'r> {
    /// Reads record 0 and the `property` file. Without an index file, the keys are found by a scan.
    ///
    /// # Errors
    /// A read error, or [`Corrupt`](crate::ErrorKind::Corrupt) if record 0 is not an image
    /// record or is a header with impossible ranges.
    pub fn open(reader: &'r Reader) -> Result<Self> {
        let mut notices = Vec::new();
        let rebuilt = match reader.index()? {
            Some(_) => None,
            None => {
                let rebuilt = Index::rebuild(&mut reader.scan_from(0)?, &mut |_| {})?;
                notices.push(Notice::new(format!("there is no index file; {}", rebuilt.reason)));
                Some(rebuilt.index)
            }
        };
        let property = reader.source().path().map(Property::beside).transpose()?.flatten();
        let label_width = reader.label_width()?.unwrap_or_default();
        let mut faces = InsightFace { reader, rebuilt, ranges: None, label_width, property, notices };
        if let Some(offset) = faces.index()?.get(&Key::Int(0)) {
            let record = reader.read_at(offset)?;
            let place = |error: Error| error.in_file(reader.source().name()).at(offset);
            let (header, payload) = ImageHeader::unpack(&record, faces.label_width).map_err(place)?;
            if header.flag() > 0 && payload.is_empty() {
                faces.ranges = Some(Ranges::of(&header).map_err(place)?);
            }
        }
        faces.look_for_oddities();
        Ok(faces)
    }

    fn look_for_oddities(&mut self) {
        let Some(ranges) = self.ranges else { return };
        if self.label_width == LabelWidth::Narrow && ranges.identities_end > 1 << 24 {
            self.notices.push(Notice::new(format!(
                "key {} is over 2^24: the header's 32-bit floats cannot hold all such keys, ranges may be off",
                ranges.identities_end
            )));
        }
        let identities = ranges.identities_end - ranges.images_end;
        if let Some(property) =
            self.property.filter(|property| identities > 0 && property.classes != identities)
        {
            self.notices.push(Notice::new(format!(
                "the property file says {} classes, but there are {identities} identities",
                property.classes
            )));
        }
    }

    fn index(&self) -> Result<&Index> {
        match (&self.rebuilt, self.reader.index()?) {
            (Some(index), _) | (None, Some(index)) => Ok(index),
            (None, None) => {
                Err(Error::unsupported("records have no keys").in_file(self.reader.source().name()))
            }
        }
    }

    /// Whether record 0 is a header.
    pub fn has_header(&self) -> bool {
        self.ranges.is_some()
    }

    /// Irregularities found in the set.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The contents of the `property` file, if there is one.
    pub fn property(&self) -> Option<Property> {
        self.property
    }

    /// How labels are stored.
    pub fn label_width(&self) -> LabelWidth {
        self.label_width
    }

    /// Number of images.
    pub fn image_count(&self) -> u64 {
        match self.ranges {
            Some(ranges) => ranges.images_end - 1,
            None => self.index().map_or(0, |index| index.len() as u64),
        }
    }

    /// Keys of the images: `1..images_end`, or every key of a file without a header.
    pub fn image_keys(&self) -> impl Iterator<Item = Key> {
        let range = self.ranges.map_or(0..0, |ranges| 1..ranges.images_end);
        let every = if self.ranges.is_some() { None } else { self.index().ok() };
        range.map(|key| Key::Int(key.into())).chain(every.into_iter().flat_map(Index::keys))
    }

    /// Keys of the records that list a person's images; empty without a header.
    pub fn identity_keys(&self) -> Range<u64> {
        self.ranges.map_or(0..0, |ranges| ranges.images_end..ranges.identities_end)
    }

    /// The persons, in key order.
    pub fn identities(&self) -> impl Iterator<Item = Result<Identity>> {
        self.identity_keys().map(|key| self.identity(key))
    }

    /// The person whose record has that key.
    ///
    /// # Errors
    /// Same as [`InsightFace::image`]; [`Corrupt`](crate::ErrorKind::Corrupt) if the record's
    /// labels are not a range of image keys.
    pub fn identity(&self, key: u64) -> Result<Identity> {
        let (header, _) = self.record(&Key::Int(key.into()))?;
        let images_end = self.ranges.map_or(u64::MAX, |ranges| ranges.images_end);
        match header.labels() {
            &[first, last, ..] => whole(first).zip(whole(last)),
            _ => None,
        }
        .filter(|&(first, last)| first >= 1 && first <= last && last <= images_end)
        .map(|(first, last)| Identity { key, images: first..last })
        .ok_or_else(|| {
            Error::corrupt(format!("the record of identity {key} does not hold a range of image keys"))
                .expected_found(
                    format_args!("labels within 1 to {images_end}"),
                    format_args!("{:?}", header.labels()),
                )
                .in_file(self.reader.source().name())
        })
    }

    /// The image with that key.
    ///
    /// # Errors
    /// Same as [`Reader::by_key`]; [`Corrupt`](crate::ErrorKind::Corrupt) if it is not an
    /// image record.
    pub fn image(&self, key: &Key) -> Result<FaceImage> {
        let (header, payload) = self.record(key)?;
        Ok(FaceImage { header, payload })
    }

    fn record(&self, key: &Key) -> Result<(ImageHeader, Bytes)> {
        let record = match &self.rebuilt {
            None => self.reader.by_key(key)?,
            Some(index) => {
                let offset = index.get(key).ok_or_else(|| {
                    Error::new(crate::ErrorKind::OutOfRange, format!("there is no key {}", show(key)))
                        .in_file(self.reader.source().name())
                })?;
                self.reader.read_at(offset)?
            }
        };
        let (header, payload) = ImageHeader::unpack(&record, self.label_width)
            .map_err(|error| error.in_file(self.reader.source().name()))?;
        let payload = record.slice_ref(payload);
        Ok((header, payload))
    }
}

impl Ranges {
    fn of(header: &ImageHeader) -> Result<Self> {
        match header.labels() {
            &[images, identities, ..] => whole(images).zip(whole(identities)),
            _ => None,
        }
        .filter(|&(images_end, identities_end)| images_end >= 1 && images_end <= identities_end)
        .map(|(images_end, identities_end)| Ranges { images_end, identities_end })
        .ok_or_else(|| {
            Error::corrupt("record 0 is a header without sensible ranges").expected_found(
                "labels [images_end, identities_end], increasing from 1",
                format_args!("{:?}", header.labels()),
            )
        })
    }
}

/// Converts a label to an integer, if it is a whole number.
fn whole(label: f64) -> Option<u64> {
    const TOO_LARGE: f64 = 9_007_199_254_740_992.0;
    let is_whole = label.fract() == 0.0 && (0.0..TOO_LARGE).contains(&label);
    // Checked above to be whole and within 0 to 2^53.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    is_whole.then_some(label as u64)
}
