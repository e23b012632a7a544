//! Reads records by number: a record is a slice along the first dimension.
//!
//! The header determines where every record is, so nothing is scanned. A plain file in memory
//! (mapped) lends its records. A gzipped file is inflated completely when the first record is
//! requested, and spans refer to the uncompressed file.
//!
//! The labels of images are in a separate file, which is opened when the first label is requested.

use super::gzip::{Inflater, Stretch, is_gzip};
use super::inflated::Inflated;
use super::layout::{FIXED, Header, MAX_HEADER};
use super::pair;
use crate::base::{ElementType, Error, ErrorKind, Hint, Label, Limits, Location, Plain, Position, Result};
use crate::format::{Format, Info, Notice, OpenOptions, RecordReader};
use crate::io::{Access, Source, Window, open_file};
use crate::threads::fork::Once;
use bytes::Bytes;
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// An open IDX file, plain or gzipped.
///
/// Records are the slices along the first dimension, as the big-endian bytes of the file.
/// [`array`](Reader::array) returns the complete file as numbers in native byte order.
///
/// ```
/// use anyrec::format::{OpenOptions, RecordReader, idx::Reader};
/// use anyrec::io::MemorySource;
/// use std::sync::Arc;
///
/// let file = [0, 0, 0x0b, 2, 0, 0, 0, 2, 0, 0, 0, 1, 0xff, 0xfe, 0x01, 0x00];
/// let reader = Reader::new(Arc::new(MemorySource::new("x-idx2-short", file.to_vec())), &OpenOptions::default())?;
/// assert_eq!(reader.count()?, 2);
/// assert_eq!(&reader.read(1)?[..], [0x01, 0x00]);
/// # #[cfg(feature = "ndarray")]
/// assert_eq!(reader.array_of::<i16>()?[[0, 0]], -2);
/// # Ok::<(), anyrec::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    /// The plain file, or the uncompressed form of a gzipped one.
    source: Arc<dyn Source>,
    /// The same, if the file is gzipped.
    inflated: Option<Arc<Inflated>>,
    header: Header,
    access: Access,
    verify: bool,
    skip_damage: bool,
    limits: Limits,
    /// The records that are returned.
    runs: Once<Vec<Range<u64>>>,
    /// The status of the records of a gzipped file after inflating.
    stretches: Once<Vec<Stretch>>,
    /// The labels beside the file, if there are any.
    labels: Once<Option<Box<Reader>>>,
}

impl Reader {
    /// Opens a file on disk.
    ///
    /// # Errors
    /// The operating system's error, or [`Corrupt`](crate::ErrorKind::Corrupt) if the header
    /// is damaged.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        Self::new(open_file(path.as_ref(), options.access)?, options)
    }

    /// Opens a source. Reads only the header: whether all elements are present is checked when they
    /// are requested.
    ///
    /// # Errors
    /// The operating system's error, or [`Corrupt`](crate::ErrorKind::Corrupt) if the header
    /// is damaged.
    pub fn new(source: Arc<dyn Source>, options: &OpenOptions) -> Result<Self> {
        let (header, compressed) = read_header(&source, &options.limits)?;
        let inflated = compressed
            .then(|| Arc::new(Inflated::new(source.clone(), &header, options.verify, &options.limits)));
        Ok(Reader {
            source: inflated.clone().map_or(source, |inflated| inflated),
            inflated,
            header,
            access: options.access,
            verify: options.verify,
            skip_damage: options.skip_damage,
            limits: options.limits.clone(),
            runs: Once::new(),
            stretches: Once::new(),
            labels: Once::new(),
        })
    }

    /// Type and shape.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether the file is gzipped.
    pub fn is_gzip(&self) -> bool {
        self.inflated.is_some()
    }

    /// All elements as stored, big-endian and row-major; lent if the file is mapped, see
    /// [`Dataset::lend`](crate::Dataset::lend).
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if bytes are missing or do not match their
    /// checksum.
    pub fn data(&self) -> Result<Bytes> {
        self.source.check_unchanged()?;
        self.check_whole()?;
        self.source.lend(self.header.length()..self.header.file_length())
    }

    /// Fails unless every element is present and, in a gzipped file, every checksum matches.
    pub(super) fn check_whole(&self) -> Result<()> {
        self.check_span(0..self.header.file_length())?;
        match self.inflated.as_ref().map(|inflated| inflated.content()).transpose()? {
            Some(content) if self.verify => match &content.survey.fault {
                Some(fault) => Err(Error::corrupt(fault.sentence()).in_file(self.source.name())),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Fails unless these bytes are present and can be trusted.
    fn check_span(&self, span: Range<u64>) -> Result<()> {
        if let Some(inflated) = &self.inflated {
            let survey = &inflated.content()?.survey;
            let doubt = survey.doubt(&(0..self.header.length())).or_else(|| survey.doubt(&span));
            if let Some(doubt) = doubt {
                return Err(Error::corrupt(survey.reason(doubt))
                    .in_file(self.source.name())
                    .at(span.start)
                    .with_hint("open the file without verification to read its bytes unchecked"));
            }
        }
        let found = self.available()?;
        if span.end > found {
            return Err(self.missing(found).at(span.start));
        }
        Ok(())
    }

    /// The error for a truncated array.
    pub(super) fn missing(&self, found: u64) -> Error {
        let name = self.source.name();
        let kept = self.header.whole_records(found);
        let message = match self.is_gzip() {
            true => "the uncompressed file ends inside the array",
            false => "the file ends inside the array",
        };
        Error::corrupt(message)
            .expected_found(format!("{} bytes", self.header.file_length()), format!("{found} bytes"))
            .in_file(name)
            .with_hint(Hint::Repair { file: name.to_owned(), records: kept })
    }

    /// Number of bytes available, which may be fewer or more than the header declares.
    fn available(&self) -> Result<u64> {
        match &self.inflated {
            Some(inflated) => Ok(inflated.content()?.data.len() as u64),
            None => Ok(self.source.len()),
        }
    }

    /// The records that are returned, as runs of their numbers in the file.
    fn runs(&self) -> Result<&[Range<u64>]> {
        if let Some(runs) = self.runs.get() {
            return Ok(runs);
        }
        let count = self.header.record_count().map_err(|error| error.in_file(self.source.name()))?;
        let mut runs = Vec::new();
        if !self.skip_damage {
            runs.push(0..count);
        } else if self.has_sound_header()? {
            match self.stretches()? {
                Some(stretches) => {
                    let sound = stretches.iter().filter(|stretch| stretch.reason.is_none());
                    runs.extend(sound.map(|stretch| stretch.numbers.clone()));
                }
                None => runs.push(0..self.header.whole_records(self.source.len())),
            }
        }
        runs.retain(|run| !run.is_empty());
        Ok(self.runs.get_or_init(|| runs))
    }

    /// Whether the bytes of the header can be trusted.
    fn has_sound_header(&self) -> Result<bool> {
        match self.check_span(0..self.header.length()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The status of the records of a gzipped file.
    fn stretches(&self) -> Result<Option<&[Stretch]>> {
        let Some(inflated) = &self.inflated else { return Ok(None) };
        let survey = &inflated.content()?.survey;
        Ok(Some(self.stretches.get_or_init(|| survey.stretches(&self.header))))
    }

    /// Position of a record, as in the scan: records without bytes are items of one frame, and so
    /// are those of a gzipped file.
    fn position(&self, number: u64) -> Result<Position> {
        if let Some(stretches) = self.stretches()? {
            let at = stretches.partition_point(|stretch| stretch.numbers.end <= number);
            let (frame, first) =
                stretches.get(at).map_or((0, 0), |stretch| (stretch.compressed.start, stretch.numbers.start));
            return Ok(Position { frame, item: number.saturating_sub(first) });
        }
        Ok(match self.header.record_size() {
            0 => Position { frame: FIXED as u64, item: number },
            _ => Position::of_frame(self.header.span(number).start),
        })
    }

    /// The labels beside the file, if there are any.
    fn labels(&self) -> Result<Option<&Reader>> {
        if self.labels.get().is_none() {
            let opened = self.source.path().and_then(pair::labels_beside).map(|path| {
                let options = OpenOptions::default()
                    .with_access(self.access)
                    .with_verify(self.verify)
                    .with_limits(self.limits.clone());
                let labels = Reader::open(path, &options)?;
                let images = self.header.record_count().map_err(|error| error.in_file(self.source.name()))?;
                pair::check_belongs(&labels, images)?;
                Ok(Box::new(labels))
            });
            let opened = opened.transpose()?;
            self.labels.get_or_init(|| opened);
        }
        Ok(self.labels.get().and_then(Option::as_deref))
    }

    /// Number in the file of the record returned as `index`.
    fn number(&self, index: u64) -> Result<u64> {
        let mut left = index;
        for run in self.runs()? {
            let length = run.end - run.start;
            if left < length {
                return Ok(run.start + left);
            }
            left -= length;
        }
        Err(Error::no_such_record(index, self.count()?).in_file(self.source.name()))
    }
}

/// For reading as an array.
#[cfg(feature = "ndarray")]
impl Reader {
    pub(super) fn inflated(&self) -> Option<&Arc<Inflated>> {
        self.inflated.as_ref()
    }

    pub(super) fn verifies(&self) -> bool {
        self.verify
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }
}

/// Reads a header, through gzip if needed, and returns whether it was gzipped.
fn read_header(source: &Arc<dyn Source>, limits: &Limits) -> Result<(Header, bool)> {
    let mut window = Window::new(source.clone());
    let head = window.peek(MAX_HEADER)?;
    let compressed = is_gzip(head);
    let header = if compressed {
        let mut inflater = Inflater::new(window, false, limits)?;
        let mut head = [0; MAX_HEADER];
        let length = inflater.fill(&mut head)?;
        Header::parse(head.get(..length).unwrap_or_default()).map_err(|error| {
            match &inflater.survey().fault {
                Some(fault) => Error::corrupt(fault.sentence()),
                None => error,
            }
        })
    } else {
        Header::parse(head)
    };
    header.map(|header| (header, compressed)).map_err(|error| error.in_file(source.name()).at(0))
}

impl RecordReader for Reader {
    fn format(&self) -> &'static dyn Format {
        &super::FORMAT
    }

    /// The plain file, or the uncompressed form of a gzipped one (with the length that the header
    /// declares).
    fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// Shape and type. Extra bytes in a gzipped file are reported once it has been inflated.
    fn info(&self) -> Result<Info> {
        let mut info = Info {
            shape: Some(self.header.shape().to_vec()),
            dtype: Some(self.header.dtype()),
            ..Info::default()
        };
        let promised = self.header.file_length();
        let length = match &self.inflated {
            Some(inflated) => inflated.known().map_or(promised, |content| content.survey.length),
            None => self.source.len(),
        };
        if length > promised {
            info.notices.push(left_over(promised, length - promised, self.is_gzip()));
        }
        Ok(info)
    }

    fn count(&self) -> Result<u64> {
        Ok(self.runs()?.iter().map(|run| run.end - run.start).sum())
    }

    /// The span refers to [`source`](Reader::source), and so to the uncompressed file.
    fn locate(&self, index: u64) -> Result<Location> {
        let number = self.number(index)?;
        let span = self.header.span(number);
        self.check_span(span.clone()).map_err(|error| error.in_record(number))?;
        let size = self.header.record_size();
        Limits::check("record size", size, size, self.limits.record)
            .map_err(|error| error.in_file(self.source.name()).at(span.start).in_record(number))?;
        let plain = Some(Plain { range: span.clone(), checksum: None });
        Ok(Location { position: self.position(number)?, span, plain })
    }

    fn decode<'a>(&self, index: u64, location: &Location, frame: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        if frame.len() as u64 != self.header.record_size() {
            return Err(Error::corrupt("a record has the wrong size")
                .expected_found(
                    format!("{} bytes", self.header.record_size()),
                    format!("{} bytes", frame.len()),
                )
                .in_file(self.source.name())
                .at(location.span.start)
                .in_record(index));
        }
        Ok(Cow::Borrowed(frame))
    }

    fn item(&self) -> Option<(ElementType, &[u64])> {
        Some((self.header.dtype(), self.header.item_shape()))
    }

    fn label_beside(&self, index: u64) -> Result<Option<Label>> {
        let number = self.number(index)?;
        self.labels()?.map(|labels| pair::label_of(labels, number)).transpose()
    }
}

/// The notice for bytes after the array, the first of which is at `offset` of the uncompressed
/// file.
pub(super) fn left_over(offset: u64, count: u64, gzip: bool) -> Notice {
    let bytes = if count == 1 { "byte follows the array and is" } else { "bytes follow the array and are" };
    let message = format!("{count} {bytes} ignored");
    match gzip {
        true => Notice::new(message),
        false => Notice::at(offset, message),
    }
}
