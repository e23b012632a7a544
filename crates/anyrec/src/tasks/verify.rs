//! Reads every byte of a file and reports all damage.

use crate::base::{ErrorKind, PositionList, Result};
use crate::dataset::{RecordFile, Table};
use crate::format;
use crate::format::{
    Content, Damage, Event, Format, Integrity, Notice, OpenOptions, Scan, Segments, segments,
};
use crate::io::{Source, Window};
use crate::threads::{Next, Ordered};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Damaged ranges that are listed. Further ranges are only counted, so that a file of noise cannot
/// fill the memory with reasons.
const LISTED_DAMAGE: usize = 10_000;

/// Bytes of a file that a thread takes at a time.
const SEGMENT: u64 = 8 << 20;

/// The result of reading a whole file.
///
/// `record_bytes + metadata_bytes + damage_bytes` is the file's length.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// The file's name in messages.
    pub file: String,
    /// The path, if it has one.
    pub path: Option<PathBuf>,
    /// The format.
    pub format: &'static dyn Format,
    /// The format's version, see [`Format::version`].
    pub version: &'static str,
    /// Intact records.
    pub records: u64,
    /// Records whose checksum was computed and matches.
    pub verified: u64,
    /// Length of the input.
    pub bytes: u64,
    /// Bytes of intact records, framing included.
    pub record_bytes: u64,
    /// Bytes of headers, tables, trailers and legal gaps.
    pub metadata_bytes: u64,
    /// Bytes that violate the format.
    pub damage_bytes: u64,
    /// All damage, in file order.
    pub damage: Vec<Damage>,
    /// The number of damaged ranges beyond those listed.
    pub unlisted_damage: u64,
    /// Notices that cost no data.
    pub notices: Vec<Notice>,
    /// The metadata, in file order.
    pub contents: Vec<Content>,
    /// The positions of the intact records.
    pub positions: PositionList,
    /// The sizes of the intact records.
    pub sizes: Sizes,
}

impl Report {
    /// Whether nothing is wrong with the file, its index file or its table.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty() && !self.notices.iter().any(|notice| notice.is_stale)
    }
}

/// Sizes of records: extremes, sum, and a histogram by number of bits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sizes {
    /// Number of records.
    pub count: u64,
    /// Smallest record.
    pub min: u64,
    /// Largest record.
    pub max: u64,
    /// The sum of all sizes.
    pub sum: u64,
    /// `histogram[b]` records have a size of `b` bits: 0, 1, 2..3, 4..7, ...
    pub histogram: Vec<u64>,
}

impl Sizes {
    /// Adds a record of this size.
    pub fn add(&mut self, size: u64) {
        self.min = if self.count == 0 { size } else { self.min.min(size) };
        self.max = self.max.max(size);
        self.count += 1;
        self.sum = self.sum.saturating_add(size);
        let bits = (u64::BITS - size.leading_zeros()) as usize;
        if self.histogram.len() <= bits {
            self.histogram.resize(bits + 1, 0);
        }
        if let Some(bin) = self.histogram.get_mut(bits) {
            *bin += 1;
        }
    }

    /// Adds the records of another summary.
    fn append(&mut self, other: &Sizes) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.histogram.resize(self.histogram.len().max(other.histogram.len()), 0);
        for (bin, count) in self.histogram.iter_mut().zip(&other.histogram) {
            *bin += count;
        }
    }
}

/// Reads a whole file and reports its damage. The file is only read.
///
/// # Errors
/// Only if the file cannot be read or has no known format: damage is part of the report.
///
/// ```
/// # fn main() -> anyrec::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("some.rec");
/// let mut writer = anyrec::create(&path)?;
/// writer.append(b"a record", &anyrec::Tags::none())?;
/// writer.finish()?;
///
/// let report = anyrec::verify(&path, &Default::default())?;
/// assert!(report.is_sound());
/// assert_eq!(report.records, 1);
/// # Ok(())
/// # }
/// ```
pub fn verify(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Report> {
    verify_file(RecordFile::open(path, options)?, options, &mut |_| {})
}

/// Like [`verify`], for an open file or stream. Reports the current offset to `progress`.
///
/// # Errors
/// As [`verify`].
pub fn verify_file(file: RecordFile, options: &OpenOptions, progress: &mut dyn FnMut(u64)) -> Result<Report> {
    let format = file.format();
    match file.source().cloned() {
        Some(source) => verify_source(&source, format, options, progress),
        None => verify_window(file.into_window(), format, options, progress),
    }
}

/// Like [`verify`], for an open source.
///
/// # Errors
/// As [`verify`].
pub(crate) fn verify_source(
    source: &Arc<dyn Source>,
    format: &'static dyn Format,
    options: &OpenOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Report> {
    verify_in_segments(source, format, options, SEGMENT, progress)
}

/// Like [`verify_source`], with about `size` bytes per thread at a time.
///
/// # Errors
/// As [`verify`].
pub(crate) fn verify_in_segments(
    source: &Arc<dyn Source>,
    format: &'static dyn Format,
    options: &OpenOptions,
    size: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<Report> {
    let threads = options.thread_count();
    let side_by_side = match segments(source, format, options, threads, size)? {
        Some(segments) => verify_segments(source, format, segments, threads, progress)?,
        None => None,
    };
    let mut report = match side_by_side {
        Some(report) => report,
        None => verify_window(Window::new(source.clone()).read_ahead(), format, options, progress)?,
    };
    // Checked afterwards: apparent damage in a file that is truncated in the meantime is not its
    // own.
    source.check_unchanged()?;
    report.path = source.path().map(Path::to_owned);
    let companions = format.check_companions(source, options, &report.positions)?;
    report.notices.extend(companions);
    if let Some(path) = source.path().filter(|path| Table::path_for(path).exists())
        && let Err(error) = Table::load(path)
    {
        if error.kind() == ErrorKind::OutOfMemory {
            return Err(error);
        }
        report.notices.push(Notice::new(error.to_string()).stale());
    }
    Ok(report)
}

/// Like [`verify`], for a stream: everything except checks that need files beside it.
///
/// # Errors
/// As [`verify`].
fn verify_window(
    mut window: Window,
    format: &'static dyn Format,
    options: &OpenOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Report> {
    let version = format.version(window.peek(format::HEAD)?);
    let mut report = Report::new(window.name(), format, version);
    report.read(&mut *format.scan(window, options)?, progress)?;
    Ok(report)
}

/// Like [`verify_window`], on several threads. `None` if the segments do not join, or one cannot be
/// read to its end: the sequential scan then reports the reason.
fn verify_segments(
    source: &Arc<dyn Source>,
    format: &'static dyn Format,
    segments: Arc<dyn Segments>,
    threads: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<Report>> {
    let version = format.version(&source.bytes(0..source.len().min(format::HEAD as u64))?);
    let empty = Report::new(source.name(), format, version);
    let mut whole = empty.clone();
    let mut begins = segments.begins().to_vec().into_iter().skip(1);
    let count = segments.begins().len();
    let reports = Ordered::start("anyrec-verify", threads, count, move |segment, emit| {
        let mut report = empty.clone();
        report.read(&mut *segments.scan(segment)?, &mut |_| {})?;
        emit(report);
        Ok(())
    });
    let Some(mut reports) = reports else { return Ok(None) };
    loop {
        match reports.next() {
            Next::Item(report) => whole.append(report)?,
            Next::EndOfPart if begins.next().is_some_and(|begin| begin != whole.bytes) => return Ok(None),
            Next::EndOfPart => progress(whole.bytes),
            Next::Failed(_) => return Ok(None),
            Next::End => return Ok(Some(whole)),
        }
    }
}

/// Reads every page of a record that nothing else has read: a verification should find a disk
/// error, whether there is a checksum or not.
fn touch(data: &[u8]) {
    const PAGE: usize = 4096;
    std::hint::black_box(data.iter().step_by(PAGE).fold(0, |all, byte| all ^ byte));
    std::hint::black_box(data.last());
}

impl Report {
    fn new(file: &str, format: &'static dyn Format, version: &'static str) -> Self {
        Report {
            file: file.to_owned(),
            path: None,
            format,
            version,
            records: 0,
            verified: 0,
            bytes: 0,
            record_bytes: 0,
            metadata_bytes: 0,
            damage_bytes: 0,
            damage: Vec::new(),
            unlisted_damage: 0,
            notices: Vec::new(),
            contents: Vec::new(),
            positions: PositionList::new(),
            sizes: Sizes::default(),
        }
    }

    /// Adds all events of a scan.
    fn read(&mut self, scan: &mut dyn Scan, progress: &mut dyn FnMut(u64)) -> Result<()> {
        loop {
            let end = match scan.next_event()? {
                Event::Record(record) => {
                    self.records += 1;
                    self.verified += u64::from(record.integrity == Integrity::Verified);
                    self.record_bytes += record.span.end - record.span.start;
                    self.positions.push(record.position)?;
                    self.sizes.add(record.data.len() as u64);
                    if record.integrity == Integrity::Absent {
                        touch(record.data);
                    }
                    record.span.end
                }
                Event::Metadata(metadata) => {
                    self.metadata_bytes += metadata.span.end - metadata.span.start;
                    self.contents.push(metadata.content);
                    metadata.span.end
                }
                Event::Damage(damage) => {
                    let end = damage.end;
                    self.damage_bytes += damage.end - damage.begin;
                    self.list_damage(damage);
                    end
                }
                Event::Notice(notice) => {
                    self.notices.push(notice);
                    continue;
                }
                Event::End => return Ok(()),
            };
            self.bytes = self.bytes.max(end);
            progress(self.bytes);
        }
    }

    /// Adds the report of the part of the file that follows.
    fn append(&mut self, part: Report) -> Result<()> {
        for mut damage in part.damage {
            damage.record += self.records;
            self.list_damage(damage);
        }
        self.unlisted_damage += part.unlisted_damage;
        self.records += part.records;
        self.verified += part.verified;
        self.bytes = self.bytes.max(part.bytes);
        self.record_bytes += part.record_bytes;
        self.metadata_bytes += part.metadata_bytes;
        self.damage_bytes += part.damage_bytes;
        self.notices.extend(part.notices);
        self.contents.extend(part.contents);
        self.positions.append(&part.positions)?;
        self.sizes.append(&part.sizes);
        Ok(())
    }

    fn list_damage(&mut self, damage: Damage) {
        if self.damage.len() < LISTED_DAMAGE {
            self.damage.push(damage);
        } else {
            self.unlisted_damage += 1;
        }
    }
}
