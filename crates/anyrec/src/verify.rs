//! Reading every byte of a file and saying what is wrong with it.

use crate::error::Result;
use crate::format::{self, Checksum, Content, Damage, Event, Format, Notice, OpenOptions};
use crate::input::Input;
use crate::io::{ReadAt, Window};
use crate::position::PositionList;
use crate::table::Table;
use std::path::Path;
use std::sync::Arc;

/// Stretches of damage listed one by one; what comes after is only counted, so that a file of noise
/// cannot fill the memory with reasons.
const LISTED_DAMAGE: usize = 10_000;

/// What a full read of a file found.
///
/// `record_bytes + metadata_bytes + damage_bytes` is the file's length.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// The file, as messages call it.
    pub file: String,
    /// Its format.
    pub format: &'static dyn Format,
    /// The format's version, see [`Format::version`].
    pub version: &'static str,
    /// Intact records.
    pub records: u64,
    /// Records whose checksum was computed and holds.
    pub verified: u64,
    /// Length of the input.
    pub bytes: u64,
    /// Bytes of intact records, framing included.
    pub record_bytes: u64,
    /// Bytes of headers, tables, trailers and legal gaps.
    pub metadata_bytes: u64,
    /// Bytes that are not what the format promises.
    pub damage_bytes: u64,
    /// All damage, in file order.
    pub damage: Vec<Damage>,
    /// Stretches of damage beyond those listed one by one.
    pub unlisted_damage: u64,
    /// Oddities that cost no data.
    pub notices: Vec<Notice>,
    /// What the metadata says, in file order.
    pub contents: Vec<Content>,
    /// Where the intact records are.
    pub positions: PositionList,
    /// Sizes of the intact records.
    pub sizes: Sizes,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

/// Sizes of records: extremes, sum, and how many have how many bits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sizes {
    /// Number of records.
    pub count: u64,
    /// Smallest record.
    pub min: u64,
    /// Largest record.
    pub max: u64,
    /// All records together.
    pub sum: u64,
    /// `histogram[b]` records have a size of `b` bits: 0, 1, 2..3, 4..7, ...
    pub histogram: Vec<u64>,
}

impl Sizes {
    /// Counts a record of that size.
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
}

/// Reads a whole file and reports its damage. The file is only read.
///
/// # Errors
/// Only when the file cannot be read or is none of the known formats: damage is in the report.
///
/// ```
/// # fn main() -> anyrec::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("some.rec");
/// let mut writer = anyrec::create(&path, "mxnet")?;
/// writer.append(b"a record", &anyrec::format::Tags::none())?;
/// writer.finish()?;
///
/// let report = anyrec::verify(&path, &Default::default())?;
/// assert!(report.is_sound());
/// assert_eq!(report.records, 1);
/// # Ok(())
/// # }
/// ```
pub fn verify(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Report> {
    verify_input(Input::open(path, options)?, options, &mut |_| {})
}

/// [`verify`] of an input, telling `progress` the offset reached.
///
/// # Errors
/// As [`verify`].
pub fn verify_input(input: Input, options: &OpenOptions, progress: &mut dyn FnMut(u64)) -> Result<Report> {
    let format = input.format();
    match input.source().cloned() {
        Some(source) => verify_source(&source, format, options, progress),
        None => verify_window(input.into_window(), format, options, progress),
    }
}

/// [`verify`] over an open source.
///
/// # Errors
/// As [`verify`].
pub(crate) fn verify_source(
    source: &Arc<dyn ReadAt>,
    format: &'static dyn Format,
    options: &OpenOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Report> {
    source.check_unchanged()?;
    let mut report = verify_window(Window::new(source.clone()), format, options, progress)?;
    let companions = format.check_companions(source, options, &report.positions)?;
    report.notices.extend(companions);
    if let Some(path) = source.path().filter(|path| Table::path_for(path).exists())
        && let Err(error) = Table::load(path)
    {
        report.notices.push(Notice::new(error.to_string()));
    }
    Ok(report)
}

/// [`verify`] of a stream: everything but what needs the file beside it.
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
    let mut report = Report {
        file: window.name().to_owned(),
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
    };
    let mut scan = format.scan(window, options)?;
    loop {
        let end = match scan.next_event()? {
            Event::Record(record) => {
                report.records += 1;
                report.verified += u64::from(record.checksum == Checksum::Verified);
                report.record_bytes += record.span.end - record.span.start;
                report.positions.push(record.position)?;
                report.sizes.add(record.data.len() as u64);
                record.span.end
            }
            Event::Metadata(metadata) => {
                report.metadata_bytes += metadata.span.end - metadata.span.start;
                report.contents.push(metadata.content);
                metadata.span.end
            }
            Event::Damage(damage) => {
                let end = damage.end;
                report.add_damage(damage);
                end
            }
            Event::Notice(notice) => {
                report.notices.push(notice);
                continue;
            }
            Event::End => break,
        };
        report.bytes = report.bytes.max(end);
        progress(report.bytes);
    }
    Ok(report)
}

impl Report {
    fn add_damage(&mut self, damage: Damage) {
        self.damage_bytes += damage.end - damage.begin;
        if self.damage.len() < LISTED_DAMAGE {
            self.damage.push(damage);
        } else {
            self.unlisted_damage += 1;
        }
    }
}
