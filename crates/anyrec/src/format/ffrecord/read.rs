//! Reading samples by number, straight off the table.
//!
//! Where the offsets are in order, as every writer leaves them, a sample's own entry says where it is.
//! Where they are not, two entries can claim the same bytes: then the scan decides which samples there
//! are, so that a sample read by number is one that reading in order gives, too.

use super::FORMAT;
use super::layout::{HEADER, Table, TableState};
use super::scan::{FfRecordScan, Placed};
use crate::base::checksum::crc32;
use crate::base::{Checksum, Error, ErrorKind, Hint, Limits, Location, Plain, Position, Result};
use crate::format::{Format, Info, Notice, OpenOptions, RecordReader};
use crate::io::{Source, Window};
use crate::threads::fork::Once;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// The table's own checksum does not hold.
pub(super) fn table_mismatch(stored: u32, computed: u32) -> String {
    format!("checksum of metadata mismatched: expected {stored:#010x}, found {computed:#010x}")
}

/// The file ends inside the table.
pub(super) fn table_cut_short(table: &Table, length: u64) -> String {
    format!(
        "the table of {} samples takes {} bytes, and the file has only {length}",
        table.count(),
        table.length()
    )
}

/// Said of files whose metadata checksum is 0.
pub(super) const OLD_VERSION: &str =
    "written by an old version of FFRecord: the table has no checksum (samples do)";

/// Said of files that hold bytes but no samples, as a writer leaves them that was killed.
pub(super) const NEVER_FINISHED: &str =
    "the table is all zero but bytes follow it: the file was never finished by its writer";

/// A reader of one FFRecord file.
///
/// Opening reads the table (12 bytes a sample, lent from the mapped file where there is one) and
/// checks its checksum; each sample's checksum is checked when the sample is read. With
/// [`OpenOptions::verify`] false neither is checked; with [`OpenOptions::skip_damage`] a damaged
/// table is used as far as it goes, since every sample still has its own checksum.
///
/// ```
/// use anyrec::format::{OpenOptions, RecordReader, WriteOptions, ffrecord};
/// use anyrec::io::{Access, open_file};
///
/// # fn main() -> anyrec::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("two.ffr");
/// let mut writer = ffrecord::Writer::create(&path, &WriteOptions::default())?;
/// writer.append(b"first")?;
/// writer.append(b"second")?;
/// writer.finish()?;
///
/// let reader = ffrecord::Reader::open(open_file(&path, Access::Auto)?, &OpenOptions::default())?;
/// assert_eq!(reader.read(1)?, "second");
/// assert_eq!(reader.offsets()?, [36, 41, 47]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Reader {
    source: Arc<dyn Source>,
    table: Table,
    options: OpenOptions,
    notices: Vec<Notice>,
    places: Once<Places>,
}

/// Who says where the samples are.
#[derive(Debug)]
enum Places {
    /// The table, whose offsets are in order.
    Table,
    /// A scan, as they are not: these samples have a place.
    Scan(Placed),
    /// Nobody: the scan gave up.
    Unknown(ErrorKind, String),
}

impl Reader {
    /// Opens a file.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) where the header makes no sense, or the metadata
    /// checksum does not hold (unless `verify` is off or `skip_damage` on).
    pub fn open(source: Arc<dyn Source>, options: &OpenOptions) -> Result<Self> {
        let length = source.len();
        let header = source.bytes(0..length.min(HEADER))?;
        let (_, table_length) =
            Table::parse_header(&header).map_err(|reason| Error::corrupt(reason).in_file(source.name()))?;
        let bytes = source.view(0..length.min(table_length))?;
        let table = Table::parse(bytes).map_err(|reason| Error::corrupt(reason).in_file(source.name()))?;
        let mut reader =
            Reader { source, table, options: options.clone(), notices: Vec::new(), places: Once::new() };
        if reader.table.stored_checksum() == 0 {
            let never_finished = reader.table.count() == 0 && length > HEADER;
            reader.notices.push(Notice::at(0, if never_finished { NEVER_FINISHED } else { OLD_VERSION }));
        }
        if options.verify {
            match reader.validate() {
                Err(error) if options.skip_damage => {
                    reader.notices.push(Notice::at(0, error.message()));
                }
                other => other?,
            }
        }
        reader.source.check_unchanged()?;
        Ok(reader)
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.table.count()
    }

    /// Where each sample begins, and, last, the file's length: one more than there are samples.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) where the file ends inside the table or an offset
    /// is negative.
    pub fn offsets(&self) -> Result<Vec<u64>> {
        self.whole()?;
        let stored = |index| self.table.offset(index).and_then(|offset| u64::try_from(offset).ok());
        let mut offsets = (0..self.count())
            .map(|index| stored(index).ok_or_else(|| self.corrupt("the offset is negative").in_record(index)))
            .collect::<Result<Vec<u64>>>()?;
        offsets.push(self.source.len());
        Ok(offsets)
    }

    /// Each sample's CRC-32, as the table says.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) where the file ends inside the table.
    pub fn checksums(&self) -> Result<Vec<u32>> {
        self.whole()?;
        Ok((0..self.count()).filter_map(|index| self.table.checksum(index)).collect())
    }

    /// Checks the table against the metadata checksum. Files of the old version have none and
    /// pass.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) when it does not hold.
    pub fn validate(&self) -> Result<()> {
        match self.table.check() {
            TableState::Verified | TableState::Unprotected => Ok(()),
            TableState::Mismatch { stored, computed } => Err(self
                .corrupt("checksum of metadata mismatched")
                .expected_found(format!("{stored:#010x}"), format!("{computed:#010x}"))
                .at(0)),
            TableState::CutShort => {
                Err(self.corrupt(table_cut_short(&self.table, self.source.len())).at(self.source.len()))
            }
        }
    }

    /// Found out on first use: it takes a look at every offset, and a scan where they are out of order.
    fn places(&self) -> Result<&Places> {
        if let Some(places) = self.places.get() {
            return Ok(places);
        }
        let places = match self.table.is_in_order(self.source.len()) {
            true => Places::Table,
            false => {
                // Two threads may both scan; the first result stays, and both are the same.
                let window = Window::new(self.source.clone()).read_ahead();
                match FfRecordScan::new(window, &self.options).placed() {
                    Ok(placed) => Places::Scan(placed),
                    Err(error) if error.kind() == ErrorKind::Limit => {
                        Places::Unknown(error.kind(), error.message().to_owned())
                    }
                    // The next call may have better luck.
                    Err(error) => return Err(error),
                }
            }
        };
        Ok(self.places.get_or_init(|| places))
    }

    /// Fails where the file ends inside the table.
    fn whole(&self) -> Result<()> {
        match self.source.len() < self.table.length() {
            true => Err(self.corrupt(table_cut_short(&self.table, self.source.len()))),
            false => Ok(()),
        }
    }

    fn corrupt(&self, message: impl Into<String>) -> Error {
        let file = self.source.name();
        Error::corrupt(message).in_file(file).with_hint(Hint::damaged(file))
    }
}

impl RecordReader for Reader {
    fn format(&self) -> &'static dyn Format {
        &FORMAT
    }

    fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    fn info(&self) -> Result<Info> {
        let version = FORMAT.version(&self.table.stored_checksum().to_le_bytes()).to_owned();
        Ok(Info { version, notices: self.notices.clone(), ..Info::default() })
    }

    fn count(&self) -> Result<u64> {
        Ok(self.table.count())
    }

    fn locate(&self, index: u64) -> Result<Location> {
        if index >= self.table.count() {
            return Err(Error::no_such_record(index, self.table.count()).in_file(self.source.name()));
        }
        let span = self
            .table
            .span(index, self.source.len())
            .map_err(|reason| self.corrupt(reason).in_record(index))?;
        match self.places()? {
            Places::Table => {}
            Places::Scan(placed) if placed.contains(index) => {}
            Places::Scan(_) => {
                let reason =
                    format!("Sample {index} cannot be placed: its offset contradicts those around it");
                return Err(self.corrupt(reason).at(span.start).in_record(index));
            }
            Places::Unknown(kind, message) => {
                let error = Error::new(*kind, message.clone());
                return Err(error.in_file(self.source.name()).in_record(index));
            }
        }
        let size = span.end - span.start;
        if size > self.options.limits.record {
            let error = Limits::exceeded("sample of size", size, self.options.limits.record);
            return Err(error.in_file(self.source.name()).at(span.start).in_record(index));
        }
        let checksum = self.table.checksum(index).filter(|_| self.options.verify).map(Checksum::Crc32);
        let plain = Some(Plain { range: span.clone(), checksum });
        Ok(Location { position: Position::of_frame(span.start), span, plain })
    }

    fn approach(&self, index: u64) -> Option<Range<u64>> {
        self.table.approach(index);
        None
    }

    fn decode<'a>(&self, index: u64, location: &Location, frame: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        if self.options.verify {
            let computed = crc32(frame);
            let stored = self.table.checksum(index);
            if stored != Some(computed) {
                return Err(self
                    .corrupt(format!("Sample {index}: checksum mismatched"))
                    .expected_found(
                        format!("{:#010x}", stored.unwrap_or_default()),
                        format!("{computed:#010x}"),
                    )
                    .at(location.span.start)
                    .in_record(index));
            }
        }
        Ok(Cow::Borrowed(frame))
    }
}
