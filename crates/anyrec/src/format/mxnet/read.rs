//! Reads records by number, by key and from an offset onwards.
//!
//! Records are numbered in file order. The numbers come from the first available of:
//!
//! 1. positions given in the options;
//! 2. the index file's offsets, sorted;
//! 3. a scan of the part headers.
//!
//! An index file that omits records (its writer mixed records with and without keys, or lost its
//! position) must not hide them. The numbers come from a scan instead if the first offset is not 0,
//! if an offset is missing, or if the range between two consecutive offsets holds more than one
//! record. In a small index file all ranges are checked; in a larger one, [`SAMPLES`] of them. The
//! decision is made once, so that a record never changes its number. The index file still provides
//! the keys.
//!
//! An index file whose offsets are not those of records belongs to other data, or the data was
//! truncated. It still numbers the records, so that the intact ones can be read. Reading a record
//! that is not where the index file says is an error of kind
//! [`Stale`](crate::ErrorKind::Stale).
//!
//! A record ends where its own last part ends, never at the next position. Positions only say where
//! records begin, and something else may lie before the next one (a record that the index file
//! omits, or damage). A record that extends past the next position of an index file contradicts the
//! index file; this is also an error of kind [`Stale`](crate::ErrorKind::Stale).

use super::image_header::{ImageHeader, LabelWidth};
use super::image_survey::{Headers, Survey, payload_in};
use super::index_file::{Index, LOST_OFFSET, show};
use super::layout::{self, Fault, FaultKind, PartHeader, PartKind, RecordParser};
use super::scan::{RecordScan, Step};
use super::{FORMAT, companions};
use crate::base::verified_copy::prefetch;
use crate::base::{
    Error, ErrorKind, Hint, Key, Limits, Location, Plain, Position, PositionList, Result, Tags,
};
use crate::format::{Damage, Format, IndexState, Info, Notice, OpenOptions, RecordReader};
use crate::io::{RangeRead, Source, Window};
use crate::threads::fork::{Lock, Once};
use crate::threads::interrupt::go_on_at;
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of ranges sampled in an index file with more than [`CHECK_ALL`] offsets.
const SAMPLES: u64 = 64;

/// Every range is checked in an index file of up to this many offsets.
const CHECK_ALL: usize = 1024;

/// Number of records examined to decide whether records have image headers.
const SURVEYED: u64 = 32;

/// [`RecordReader::info`] checks every range in an index file of up to this many offsets. For
/// larger ones use `verify`, which reads everything.
const EXAMINE_ALL: usize = 1 << 16;

/// A range longer than this is not fetched before the record's true end is known.
const LONG_STRETCH: u64 = 1 << 20;

/// Reads a `.rec` file.
///
/// ```
/// use anyrec::format::mxnet::{Reader, Writer};
/// use anyrec::format::{OpenOptions, RecordReader, WriteOptions};
/// use anyrec::Key;
/// use anyrec::io::{Access, open_file};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pets.rec");
/// let mut writer = Writer::create(&path, &WriteOptions::default())?;
/// writer.write_with_key(&Key::Int(7), b"cat")?;
/// writer.write_with_key(&Key::Int(5), b"dog")?;
/// writer.finish()?;
///
/// let reader = Reader::open(open_file(&path, Access::Auto)?, &OpenOptions::default())?;
/// assert_eq!(reader.count()?, 2);
/// assert_eq!(reader.read(1)?, "dog");
/// assert_eq!(reader.by_key(&Key::Int(7))?, "cat");
/// # Ok::<(), anyrec::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    source: Arc<dyn Source>,
    options: OpenOptions,
    index_path: Option<PathBuf>,
    index: Once<Option<Index>>,
    /// Why the index file does not number the records, if so.
    distrust: Once<Option<String>>,
    /// Offsets of records that the index file omits although it numbers the others.
    left_out: Once<Vec<u64>>,
    numbering: Once<std::result::Result<Numbering, Damage>>,
    headers: Once<Headers>,
    /// Held while one of the above is computed; otherwise two threads would both scan.
    making: Lock<()>,
}

/// The positions of the records.
#[derive(Debug)]
struct Numbering {
    positions: Arc<PositionList>,
    /// Ends of the records that the next record does not directly follow, because of damage between
    /// them.
    ends: BTreeMap<u64, u64>,
    from_index: bool,
}

/// The authority for the claim that a record begins at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Authority {
    /// A scan, or a table made by one. It walked the file as the original reader does.
    Scan,
    IndexFile,
    Caller,
}

impl Reader {
    /// Opens a file. Nothing is read yet.
    ///
    /// # Errors
    /// If an index file was named that does not exist.
    pub fn open(source: Arc<dyn Source>, options: &OpenOptions) -> Result<Self> {
        let index_path = companions::index_path(source.as_ref(), options)?;
        Ok(Reader {
            source,
            options: options.clone(),
            index_path,
            index: Once::new(),
            distrust: Once::new(),
            left_out: Once::new(),
            numbering: Once::new(),
            headers: Once::new(),
            making: Lock::new(),
        })
    }

    /// The path of the index file, if there is one.
    pub fn index_path(&self) -> Option<&Path> {
        self.index_path.as_deref()
    }

    /// The index file, loaded on first use; `None` if there is none.
    ///
    /// # Errors
    /// Same as [`Index::load`].
    pub fn index(&self) -> Result<Option<&Index>> {
        once(&self.index, &self.making, || {
            let load = |path: &PathBuf| companions::load(&*self.source, path, self.options.access);
            self.index_path.as_ref().map(load).transpose()
        })
        .map(Option::as_ref)
    }

    /// The positions of all records.
    ///
    /// # Errors
    /// Same as [`count`](RecordReader::count).
    pub fn positions(&self) -> Result<&PositionList> {
        self.numbering().map(|numbering| numbering.positions.as_ref())
    }

    /// Byte offset of the record with that key.
    ///
    /// # Errors
    /// [`OutOfRange`](ErrorKind::OutOfRange) for a key that is not in the index file,
    /// [`Stale`](ErrorKind::Stale) if the index file lost the record's offset,
    /// [`Unsupported`](ErrorKind::Unsupported) without an index file.
    pub fn offset_of_key(&self, key: &Key) -> Result<u64> {
        let index = self.index()?.ok_or_else(|| {
            Error::unsupported("records have no keys, as there is no index file")
                .in_file(self.source.name())
                .with_hint(Hint::rebuild_keys(self.source.name()))
        })?;
        match index.get(key) {
            Some(LOST_OFFSET) => Err(self.stale(format!(
                "the index file says {LOST_OFFSET} (-1) for key {}: its writer did not know the offset",
                show(key)
            ))),
            Some(offset) => Ok(offset),
            None => Err(Error::new(ErrorKind::OutOfRange, format!("there is no key {}", show(key)))
                .in_file(self.index_name())),
        }
    }

    /// Number of the record with that key.
    ///
    /// # Errors
    /// Same as [`Reader::offset_of_key`] and [`count`](RecordReader::count);
    /// [`Stale`](ErrorKind::Stale) if no record begins at the key's offset.
    pub fn number_of_key(&self, key: &Key) -> Result<u64> {
        let offset = self.offset_of_key(key)?;
        self.positions()?.index_of(Position::of_frame(offset)).ok_or_else(|| {
            self.stale(format!("the index file puts key {} where no record begins", show(key))).at(offset)
        })
    }

    /// The record with that key. This needs no record numbers, and so no scan.
    ///
    /// # Errors
    /// Same as [`Reader::offset_of_key`]; [`Stale`](ErrorKind::Stale) if no record begins there;
    /// [`Corrupt`](ErrorKind::Corrupt) if it is damaged.
    pub fn by_key(&self, key: &Key) -> Result<Bytes> {
        self.record_at(self.offset_of_key(key)?, Authority::IndexFile)
    }

    /// The record that begins at `offset`.
    ///
    /// # Errors
    /// [`OutOfRange`](ErrorKind::OutOfRange) past the end of the file,
    /// [`Corrupt`](ErrorKind::Corrupt) if no intact record begins there.
    pub fn read_at(&self, offset: u64) -> Result<Bytes> {
        self.record_at(offset, Authority::Caller)
    }

    fn record_at(&self, begin: u64, authority: Authority) -> Result<Bytes> {
        let length = self.source.len();
        let from_index = authority == Authority::IndexFile;
        if begin >= length {
            return Err(if from_index { self.past_end(begin) } else { self.out_of_range(begin) });
        }
        let mut end = self.end_of_record(begin)?.unwrap_or(length);
        if from_index && let Some(next) = self.index()?.and_then(|index| index.offset_after(begin)) {
            // The same bound as in a read by number.
            end = end.min(next);
        }
        // Without an end, the range is the rest of the file. A view does not copy it.
        let frame = self.source.view(begin..end)?;
        let record = self.record_in(&frame, begin, end, authority).map(|record| match record {
            Cow::Borrowed(record) => Bytes::copy_from_slice(record),
            Cow::Owned(record) => record.into(),
        });
        self.source.check_unchanged().and(record)
    }

    /// How the records' image headers store labels; `None` if the records have no such headers,
    /// judging by 32 of them. Decided on first use.
    ///
    /// # Errors
    /// Same as [`count`](RecordReader::count). Damaged records are skipped.
    pub fn label_width(&self) -> Result<Option<LabelWidth>> {
        Ok(match self.headers()? {
            Headers::All(width) => Some(width),
            _ => None,
        })
    }

    fn headers(&self) -> Result<Headers> {
        if let Some(headers) = self.headers.get() {
            return Ok(*headers);
        }
        let count = self.count()?;
        let mut survey = Survey::default();
        let sample = SURVEYED.min(count);
        for number in (0..sample).map(|number| spread(number, sample, count)) {
            match self.read(number) {
                Ok(record) => {
                    let key = self.key(self.locate(number)?.position)?;
                    let key = key.and_then(|key| match key {
                        Key::Int(key) => u64::try_from(key).ok(),
                        Key::Text(_) => None,
                    });
                    survey.add(number, &record, &[number, key.unwrap_or(number)]);
                }
                Err(error) if error.io_error().is_some() || error.kind() == ErrorKind::OutOfMemory => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        Ok(*self.headers.get_or_init(|| survey.headers()))
    }

    /// Starts a scan at `offset`, which should be the beginning of a record. A middle or last part
    /// there is damage, unless it is at the beginning of the file. [`RecordScan::tell`] returns the
    /// scan's position.
    ///
    /// # Errors
    /// [`OutOfRange`](ErrorKind::OutOfRange) past the end of the file.
    pub fn scan_from(&self, offset: u64) -> Result<RecordScan> {
        if offset > self.source.len() {
            return Err(self.out_of_range(offset));
        }
        let window = Window::starting_at(Arc::clone(&self.source), offset).read_ahead();
        let scan = RecordScan::new(window, &self.options);
        Ok(if offset == 0 { scan } else { scan.where_a_record_begins() })
    }

    fn numbering(&self) -> Result<&Numbering> {
        // Before taking the lock, because these calls take it themselves.
        let index = match self.options.positions {
            Some(_) => None,
            None => self.trusted_index()?,
        };
        let made = once(&self.numbering, &self.making, || match (&self.options.positions, index) {
            (Some(positions), _) => Ok(Ok(Numbering::of(Arc::clone(positions), false))),
            (None, Some(index)) => {
                let positions = PositionList::of_single_records(index.sorted_offsets())?;
                Ok(Ok(Numbering::of(Arc::new(positions), true)))
            }
            (None, None) => self.number_by_scan(),
        })?;
        made.as_ref().map_err(|damage| damage.clone().into_error(self.source.name()))
    }

    fn number_by_scan(&self) -> Result<std::result::Result<Numbering, Damage>> {
        let mut positions = PositionList::new();
        let mut ends = BTreeMap::new();
        let mut scan = self.scan_from(0)?.headers_only();
        // Begin and end of the previous record.
        let mut before = None;
        for at in 0.. {
            go_on_at(at)?;
            let begin = scan.tell();
            match scan.step()? {
                Step::Record(_) => {
                    if let Some((previous, end)) = before.filter(|&(_, end)| end != begin) {
                        ends.insert(previous, end);
                    }
                    positions.push_frame(begin, 1)?;
                    before = Some((begin, scan.tell()));
                }
                Step::Damage(_) if self.options.skip_damage => {}
                Step::Damage(damage) => return Ok(Err(damage)),
                Step::End => break,
            }
        }
        ends.extend(before);
        Ok(Ok(Numbering { positions: Arc::new(positions), ends, from_index: false }))
    }

    /// The index file, if it can be trusted to number the records.
    fn trusted_index(&self) -> Result<Option<&Index>> {
        let Some(index) = self.index()? else { return Ok(None) };
        let distrust = once(&self.distrust, &self.making, || self.judge_index(index))?;
        Ok(distrust.is_none().then_some(index))
    }

    /// Why the index file must not number the records, if so.
    fn judge_index(&self, index: &Index) -> Result<Option<String>> {
        let offsets = index.sorted_offsets();
        match (offsets.first(), index.lost()) {
            (None, _) if self.source.is_empty() => return Ok(None),
            (None, _) => return Ok(Some("has no entries".to_owned())),
            (Some(_), lost @ 1..) => return Ok(Some(format!("lost the offsets of {lost} records"))),
            (Some(_), 0) => {}
        }
        let chosen: Vec<usize> = match offsets.len() {
            count @ 0..=CHECK_ALL => (0..count).collect(),
            count => {
                let place = |sample| usize::try_from(spread(sample, SAMPLES, count as u64)).ok();
                (0..SAMPLES).filter_map(place).collect()
            }
        };
        let stretches: Vec<Range<u64>> = chosen.iter().filter_map(|&at| self.stretch(&offsets, at)).collect();
        let begins: Vec<u64> = stretches.iter().map(|stretch| stretch.start).collect();
        if self.part_headers(&begins)?.contains(&None) {
            // The index belongs to other data, or the data was truncated. Reading the record
            // reports it.
            return Ok(None);
        }
        if let Some(first) = offsets.first().filter(|&&first| first != 0) {
            return Ok(Some(format!("begins at byte {first}, not 0")));
        }
        let hidden = self.left_out(&stretches)?;
        Ok(hidden.first().map(|offset| format!("leaves out the record at byte {offset}")))
    }

    /// The range from one offset of an index file to the next.
    fn stretch(&self, offsets: &[u64], at: usize) -> Option<Range<u64>> {
        let length = self.source.len();
        let end = offsets.get(at + 1).copied().unwrap_or(length).min(length);
        offsets.get(at).map(|&begin| begin..end)
    }

    /// Offsets of records that no entry points to: those after the first record of a range.
    fn left_out(&self, stretches: &[Range<u64>]) -> Result<Vec<u64>> {
        let ends = self.ends_of_records(stretches)?;
        let behind: Vec<u64> = stretches
            .iter()
            .zip(ends)
            .filter_map(|(stretch, end)| end.filter(|&end| end < stretch.end))
            .collect();
        // Bytes after a record may also be damage or filler. The magic identifies records.
        let parts = self.part_headers(&behind)?;
        Ok(parts.into_iter().zip(behind).filter_map(|(part, offset)| part.map(|_| offset)).collect())
    }

    /// Offsets of records that an index file omits although it numbers the others. So far it was
    /// only sampled; this checks all of it, reading one header per record.
    fn examine(&self, index: &Index) -> Result<&[u64]> {
        match (CHECK_ALL..EXAMINE_ALL).contains(&index.len()) {
            true => self.examine_all(index),
            false => Ok(&[]),
        }
    }

    /// Like [`examine`](Reader::examine), however long it takes.
    fn examine_all(&self, index: &Index) -> Result<&[u64]> {
        let left_out = once(&self.left_out, &self.making, || {
            let offsets = index.sorted_offsets();
            let stretches: Vec<Range<u64>> =
                (0..offsets.len()).filter_map(|at| self.stretch(&offsets, at)).collect();
            self.left_out(&stretches)
        })?;
        Ok(left_out)
    }

    /// The headers of the parts at these offsets, fetched together; `None` past the end of the file
    /// or where no part begins.
    fn part_headers(&self, offsets: &[u64]) -> Result<Vec<Option<PartHeader>>> {
        let size = PartHeader::SIZE as u64;
        let within = |offset: u64| offset.checked_add(size).is_some_and(|end| end <= self.source.len());
        let mut headers = vec![[0; PartHeader::SIZE]; offsets.len()];
        let mut reads: Vec<RangeRead<'_>> = headers
            .iter_mut()
            .zip(offsets)
            .filter(|(_, offset)| within(**offset))
            .map(|(buffer, &offset)| RangeRead { offset, buffer })
            .collect();
        let ranges: Vec<Range<u64>> = reads.iter().map(|read| read.offset..read.offset + size).collect();
        self.source.expect(&ranges);
        self.source.read_ranges(&mut reads)?;
        Ok(headers.into_iter().map(PartHeader::parse).collect())
    }

    /// The ends of the records at the start of these ranges, according to their part headers;
    /// `None` for a record that does not end within its range.
    fn ends_of_records(&self, stretches: &[Range<u64>]) -> Result<Vec<Option<u64>>> {
        let mut ends = vec![None; stretches.len()];
        let mut walks: Vec<(usize, u64)> =
            stretches.iter().map(|stretch| stretch.start).enumerate().collect();
        // Each round fetches the next part header of every unfinished record.
        while !walks.is_empty() {
            let places: Vec<u64> = walks.iter().map(|&(_, place)| place).collect();
            let mut going_on = Vec::new();
            for ((at, place), part) in walks.into_iter().zip(self.part_headers(&places)?) {
                let Some((part, stretch)) = part.zip(stretches.get(at)) else { continue };
                let next = place.saturating_add(part.size());
                match (next <= stretch.end, part.kind.ends_record(), ends.get_mut(at)) {
                    (true, true, Some(end)) => *end = Some(next),
                    (true, false, _) => going_on.push((at, next)),
                    _ => {}
                }
            }
            walks = going_on;
        }
        Ok(ends)
    }

    /// The end of the record at `begin`, if its parts determine it and it is within the file.
    fn end_of_record(&self, begin: u64) -> Result<Option<u64>> {
        let stretch = begin..self.source.len();
        Ok(self.ends_of_records(std::slice::from_ref(&stretch))?.into_iter().next().flatten())
    }

    /// The record at the start of a span, if the span is in memory and the record is a single part.
    /// (A lone last part is left to [`record_in`](Reader::record_in).)
    fn plain(&self, span: Range<u64>) -> Option<Plain> {
        let ahead = self.source.as_slice()?.get(usize::try_from(span.start).ok()?..)?;
        let part = PartHeader::at_start_of(ahead).filter(|part| part.kind == PartKind::Whole)?;
        let begin = span.start + PartHeader::SIZE as u64;
        let fits =
            part.size() <= span.end - span.start && u64::from(part.length) <= self.options.limits.record;
        fits.then(|| Plain { range: begin..begin + u64::from(part.length), checksum: None })
    }

    /// The record at the start of `frame`, which holds the bytes `begin..end`.
    fn record_in<'a>(
        &self,
        frame: &'a [u8],
        begin: u64,
        end: u64,
        authority: Authority,
    ) -> Result<Cow<'a, [u8]>> {
        let walk = match authority {
            Authority::Scan => RecordParser::new(),
            Authority::IndexFile | Authority::Caller => RecordParser::where_a_record_begins(),
        };
        let outline = match walk.finish(frame) {
            Ok(outline) => outline,
            Err(fault) => return Err(self.not_a_record(&fault, begin, end, authority)),
        };
        if outline.length > self.options.limits.record {
            return Err(Limits::exceeded("record length", outline.length, self.options.limits.record)
                .in_file(self.source.name())
                .at(begin));
        }
        layout::join(frame, &outline).map_err(|error| error.in_file(self.source.name()).at(begin))
    }

    fn not_a_record(&self, fault: &Fault, begin: u64, end: u64, authority: Authority) -> Error {
        let from_index = authority == Authority::IndexFile;
        let begins = fault.parts > 0 || !matches!(fault.kind, FaultKind::Magic(_) | FaultKind::Inside(_));
        if from_index && !begins {
            return self.stale(format!("the index file puts a record where none begins: {fault}")).at(begin);
        }
        if from_index && end < self.source.len() {
            let what = format!(
                "the record extends past byte {end}, where the index file puts the next one: {fault}"
            );
            return self.stale(what).at(begin);
        }
        Error::corrupt(fault.to_string())
            .in_file(self.source.name())
            .at(begin)
            .with_hint(Hint::damaged(self.source.name()))
    }

    /// An error about the index file, with an offset in the data file.
    fn stale(&self, message: String) -> Error {
        let name = self.source.name();
        let message = format!(
            "{message} ({}): the index file belongs to other data, or the data was changed or damaged since",
            self.index_name()
        );
        Error::new(ErrorKind::Stale, message).in_file(name).with_hint(Hint::rebuild_keys(name))
    }

    fn past_end(&self, begin: u64) -> Error {
        let length = self.source.len();
        self.stale(format!("the index file puts a record past the end of the file, which has {length} bytes"))
            .at(begin)
    }

    fn out_of_range(&self, offset: u64) -> Error {
        let message = format!("the file ends at byte {}", self.source.len());
        Error::new(ErrorKind::OutOfRange, message).in_file(self.source.name()).at(offset)
    }

    fn index_name(&self) -> String {
        self.index_path.as_deref().map(companions::name).unwrap_or_default()
    }
}

impl Numbering {
    fn of(positions: Arc<PositionList>, from_index: bool) -> Self {
        Numbering { positions, ends: BTreeMap::new(), from_index }
    }
}

/// Sample `sample` of `samples` out of `count`, evenly spaced, first and last included.
fn spread(sample: u64, samples: u64, count: u64) -> u64 {
    let place = u128::from(sample) * u128::from(count.saturating_sub(1)) / u128::from(samples.max(2) - 1);
    u64::try_from(place).unwrap_or(count)
}

/// The cell's value, computed under the lock if not yet set. Failures are not stored.
fn once<'a, T>(cell: &'a Once<T>, making: &Lock<()>, make: impl FnOnce() -> Result<T>) -> Result<&'a T> {
    if let Some(made) = cell.get() {
        return Ok(made);
    }
    let _guard = making.lock();
    match cell.get() {
        Some(made) => Ok(made),
        None => {
            let made = make()?;
            Ok(cell.get_or_init(|| made))
        }
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
        let mut info = Info::default();
        if let Some(index) = self.trusted_index()?
            && let [first, more @ ..] = self.examine(index)?
        {
            let places = match more.len() {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            info.notices.push(
                Notice::at(
                    *first,
                    format!(
                        "the index file {} leaves out the record at byte {first}{places}: such records have \
                     no number and are returned only when the file is read in order",
                        self.index_name(),
                    ),
                )
                .with_hint(Hint::index(self.source.name())),
            );
        }
        if let Some(Some(reason)) = self.distrust.get() {
            info.notices.push(Notice::new(format!(
                "the index file {} {reason}; records are numbered by a scan instead",
                self.index_name()
            )));
        }
        Ok(info)
    }

    fn count(&self) -> Result<u64> {
        self.numbering().map(|numbering| numbering.positions.len())
    }

    fn locate(&self, index: u64) -> Result<Location> {
        let Numbering { positions, ends, from_index } = self.numbering()?;
        let (position, next) = positions
            .get_with_next(index)
            .ok_or_else(|| Error::no_such_record(index, positions.len()).in_file(self.source.name()))?;
        let begin = position.frame;
        let length = self.source.len();
        if begin >= length {
            let error = match from_index {
                true => self.past_end(begin),
                false => Error::corrupt(format!("the file has only {length} bytes"))
                    .in_file(self.source.name())
                    .at(begin),
            };
            return Err(error.in_record(index));
        }
        let mut end = ends.get(&begin).copied().unwrap_or_else(|| next.unwrap_or(length).min(length));
        if end - begin > LONG_STRETCH {
            // Positions only say where records begin. Do not fetch what lies after this one.
            end = self.end_of_record(begin)?.map_or(end, |true_end| true_end.min(end));
        }
        Ok(Location { position, span: begin..end, plain: self.plain(begin..end) })
    }

    fn approach(&self, index: u64) -> Option<Range<u64>> {
        let Some(Ok(numbering)) = self.numbering.get() else { return None };
        let (position, next) = numbering.positions.get_with_next(index)?;
        let begin = usize::try_from(position.frame).ok()?;
        prefetch(self.source.as_slice()?.get(begin..)?, 1);
        let length = self.source.len();
        Some(position.frame..next.unwrap_or(length).min(length))
    }

    fn decode<'a>(&self, index: u64, location: &Location, frame: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        let authority = match self.numbering.get() {
            Some(Ok(numbering)) if numbering.from_index => Authority::IndexFile,
            _ => Authority::Scan,
        };
        self.record_in(frame, location.span.start, location.span.end, authority)
            .map_err(|error| error.in_record(index))
    }

    fn find_key(&self, key: &Key) -> Result<Option<u64>> {
        match self.index()?.and_then(|index| index.find(key)) {
            Some(_) => self.number_of_key(key).map(Some),
            None => Ok(None),
        }
    }

    fn index_file(&self) -> Result<IndexState> {
        Ok(match self.index_path.as_ref().zip(self.index()?) {
            Some((path, index)) => IndexState::Present { path: path.clone(), keys: index.len() as u64 },
            None => IndexState::Missing,
        })
    }

    fn key(&self, position: Position) -> Result<Option<Key>> {
        Ok(self.index()?.and_then(|index| index.key_at(position.frame)))
    }

    fn tags(&self, _index: u64, position: Position, record: &[u8]) -> Result<Tags> {
        let mut tags = match self.label_width()? {
            Some(width) if payload_in(record, width).is_some() => ImageHeader::tags(record, width),
            _ => Tags::none(),
        };
        tags.key = self.key(position)?;
        Ok(tags)
    }

    fn payload<'a>(&self, record: &'a [u8]) -> Result<&'a [u8]> {
        let refused = |what: String| {
            Err(Error::invalid(what).in_file(self.source.name()).with_hint(Hint::ReadWholeRecords))
        };
        match self.headers()? {
            Headers::None => Ok(record),
            Headers::All(width) => match payload_in(record, width) {
                Some(payload) => Ok(payload),
                None => refused("the record has no image header, but others of its file do".to_owned()),
            },
            Headers::Some { with, without } => refused(format!(
                "record {without} has no image header and record {with} does: the file's records cannot all \
                 be split into header and payload"
            )),
            Headers::Unclear { example } => refused(format!(
                "nothing tells whether record {example}, like all others that were looked at, begins with an \
                 image header: the file's records cannot be split into header and payload"
            )),
        }
    }

    fn is_numbered_in_order(&self) -> Result<bool> {
        Ok(match self.numbering()?.from_index {
            // An index file can leave records out, and damage is skipped in order only.
            true => match self.index()? {
                Some(index) => !self.options.skip_damage && self.examine_all(index)?.is_empty(),
                None => true,
            },
            false => true,
        })
    }
}
