//! Every road to a file's records, checked against the plain scan.
//!
//! The plain scan ([`Format::scan`] over memory, event by event) defines what is in a file, sound
//! or damaged: records and damage, in file order. Agreement means:
//!
//! * A road that reads **in order** gives the same records and the same damage, in the same order,
//!   with the same messages and offsets. If it skips damage, the same records.
//! * A road **by number** gives a record or an error for each number. The records, in number order,
//!   are those of the plain scan: none is missing, different or added. All roads by number agree on
//!   each number, including errors and their messages.
//! * If a file cannot be opened or counted, the plain scan found damage in it or failed; if damage
//!   may be skipped, the plain scan found no record.
//!
//! [`compare`] takes all roads over several sources of the same bytes, which have no companion
//! files. [`check_failing_disk`] takes them over sources whose reads fail. An index file may omit
//! records and point anywhere: with one ([`compare_with_index_file`]), the roads by number agree
//! with each other, and each record they give is the one that the plain scan finds at that offset.

mod ways;

use super::faults::FaultySource;
use crate::base::{Error, ErrorKind, PositionList, Result};
use crate::format::{Damage, Event, Format, OpenOptions};
use crate::io::{Access, MemorySource, RangeRead, Source, Window, open_file};
use bytes::Bytes;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use ways::{ROADS, Subject, events};

/// Number of records read by number beyond those of the plain scan, if a file claims more.
const CLAIMED: u64 = 64;

/// What was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of files.
    pub files: u64,
    /// Number of files in which the plain scan found damage or failed.
    pub damaged: u64,
    /// Number of roads taken, over all sources of these files.
    pub roads: u64,
    /// Number of records they gave.
    pub records: u64,
    /// Number of errors they gave.
    pub errors: u64,
}

impl Tally {
    /// Adds another tally.
    pub fn add(&mut self, other: Tally) {
        self.files += other.files;
        self.damaged += other.damaged;
        self.roads += other.roads;
        self.records += other.records;
        self.errors += other.errors;
    }

    fn count(&mut self, walked: &Walked) {
        let steps = walked.as_deref().unwrap_or_default();
        let records = steps.iter().filter(|step| step.record().is_some()).count();
        self.roads += 1;
        self.records += records as u64;
        self.errors += (steps.len() - records) as u64 + u64::from(walked.is_err());
    }
}

/// Takes every road over several sources of the same bytes. The sources must have the same name,
/// because errors contain it.
///
/// `threads`: also take the roads that use threads, which take longest.
///
/// # Errors
/// The first disagreement, as a sentence.
pub fn compare(
    format: &'static dyn Format,
    sources: &[(&str, Arc<dyn Source>)],
    options: &OpenOptions,
    threads: bool,
) -> std::result::Result<Tally, String> {
    let Some((_, first)) = sources.first() else { return Ok(Tally::default()) };
    let plain = Plain::of(format, first, options);
    let mut tally = Tally { files: 1, damaged: u64::from(!plain.is_sound()), ..Tally::default() };
    for (called, source) in sources {
        let subject = Subject { format, source, options, plain: &plain, indexed: false };
        let mut by_number = [None, None];
        for road in ROADS.iter().filter(|road| threads || !road.threads) {
            let walked = (road.walk)(&subject);
            tally.count(&walked);
            let told = |difference: String| format!("{called}, {}: {difference}", road.name);
            plain.check(road.kind, &walked).map_err(told)?;
            // The roads by number are also checked against the first of them.
            let first = match road.kind {
                Kind::ByNumber => &mut by_number[0],
                Kind::ByNumberSkipping => &mut by_number[1],
                _ => continue,
            };
            let first = first.get_or_insert_with(|| walked.clone());
            equal(first, &walked).map_err(told)?;
        }
    }
    // A stream has no length to check a damaged table against, so it may fail earlier.
    if plain.is_sound()
        && format.capabilities().streamable
        && let Some(data) = first.as_slice()
    {
        let stream = Window::from_stream(first.name(), std::io::Cursor::new(data.to_vec()));
        let walked = format.scan(stream, options).map(|scan| events(scan, first.name())).map_err(Step::from);
        plain.check(Kind::InOrder, &walked).map_err(|difference| format!("stream: {difference}"))?;
        tally.roads += 1;
    }
    Ok(tally)
}

/// Takes the roads by number over a file with a companion that says where its records are.
///
/// # Errors
/// The first disagreement, as a sentence.
pub fn compare_with_index_file(
    format: &'static dyn Format,
    path: &Path,
    options: &OpenOptions,
) -> std::result::Result<Tally, String> {
    let sources = file_sources(path).map_err(|error| error.to_string())?;
    let Some((_, first)) = sources.first() else { return Ok(Tally::default()) };
    let plain = Plain::of(format, first, options);
    let mut tally = Tally { files: 1, damaged: u64::from(!plain.is_sound()), ..Tally::default() };
    let mut first = None;
    for (called, source) in &sources {
        let subject = Subject { format, source, options, plain: &plain, indexed: true };
        for road in ROADS.iter().filter(|road| road.kind == Kind::ByNumber) {
            let walked = (road.walk)(&subject);
            tally.count(&walked);
            let told = |difference: String| format!("{called}, {}: {difference}", road.name);
            no_broken_promise(walked.as_deref().unwrap_or_default()).map_err(told)?;
            equal(first.get_or_insert_with(|| walked.clone()), &walked).map_err(told)?;
        }
    }
    Ok(tally)
}

/// The bytes in memory: accessed in place, like mapped files; read in blocks, as an iteration that
/// copies reads mapped files; and with positional reads.
pub fn memory_sources(data: &[u8]) -> Vec<(&'static str, Arc<dyn Source>)> {
    let inner = MemorySource::new("file", data.to_vec());
    vec![
        ("in memory", Arc::new(inner.clone())),
        ("in blocks", Arc::new(Disguised { inner: inner.clone(), in_memory: true })),
        ("positional", Arc::new(Disguised { inner, in_memory: false })),
    ]
}

/// A file opened with every kind of access.
///
/// # Errors
/// The operating system's error.
pub fn file_sources(path: &Path) -> Result<Vec<(&'static str, Arc<dyn Source>)>> {
    let kinds = [("mapped", Access::Mapped), ("auto", Access::Auto), ("positional", Access::Positional)];
    kinds.into_iter().map(|(called, access)| Ok((called, open_file(path, access)?))).collect()
}

/// Takes every road over a disk whose every read fails, and over disks that fail later. Each road
/// returns the disk's error, or everything it returns over a sound disk. Over the first disk, it
/// always returns the error.
///
/// Returns the number of walks that ended with the error.
///
/// # Errors
/// The first road that violates this, as a sentence.
pub fn check_failing_disk(
    format: &'static dyn Format,
    data: &[u8],
    options: &OpenOptions,
) -> std::result::Result<u64, String> {
    let mut failed = 0;
    let sound: Arc<dyn Source> = Arc::new(FaultySource::new(data.to_vec(), u64::MAX));
    let plain = Plain::of(format, &sound, options);
    for road in ROADS {
        // Each walk has its own source, because reads are counted.
        let walk = |fail_at| {
            let source: Arc<dyn Source> = Arc::new(FaultySource::new(data.to_vec(), fail_at));
            (road.walk)(&Subject { format, source: &source, options, plain: &plain, indexed: false })
        };
        let whole = walk(u64::MAX);
        // If there is nothing to read, nothing can fail.
        let must_read = match road.kind {
            Kind::InOrder | Kind::Skipping | Kind::Damage => !data.is_empty(),
            Kind::ByNumber | Kind::ByNumberSkipping | Kind::Placed => !plain.records().is_empty(),
        };
        for fail_at in [0, 1, 2, 3, 5, 8, 13] {
            let walked = walk(fail_at);
            let steps = match &walked {
                Ok(steps) => &steps[..],
                Err(step) => std::slice::from_ref(step),
            };
            let met = steps.iter().any(|step| matches!(step, Step::Failed(ErrorKind::Io, _)));
            let other = steps.iter().find(|step| {
                let known = whole.as_deref().is_ok_and(|whole| whole.contains(step));
                matches!(step, Step::Failed(kind, _) if *kind != ErrorKind::Io) && !known
            });
            let told = |what: &str| format!("{}, disk fails at read {fail_at}: {what}", road.name);
            match other {
                Some(step) => return Err(told(&format!("reports something else: {step:?}"))),
                None if met => failed += 1,
                None if fail_at == 0 && must_read => return Err(told("success")),
                None if walked != whole => return Err(told("no error, and other records")),
                None => {}
            }
        }
    }
    Ok(failed)
}

/// A record, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Record(Bytes),
    Failed(ErrorKind, String),
}

impl Step {
    fn of(outcome: Result<impl Into<Bytes>>) -> Step {
        match outcome {
            Ok(record) => Step::Record(record.into()),
            Err(error) => error.into(),
        }
    }

    /// A violation found on the way, which no road may give.
    fn broken(promise: &str) -> Step {
        Step::Failed(ErrorKind::Invalid, format!("broken promise: {promise}"))
    }

    fn record(&self) -> Option<&Bytes> {
        match self {
            Step::Record(record) => Some(record),
            Step::Failed(..) => None,
        }
    }

    /// A short description.
    fn show(&self) -> String {
        match self {
            Step::Record(record) => {
                format!("a record of {} bytes ({:08x})", record.len(), crate::base::checksum::crc32(record))
            }
            Step::Failed(kind, text) => format!("{kind:?}, {text}"),
        }
    }
}

impl From<Error> for Step {
    fn from(error: Error) -> Step {
        Step::Failed(error.kind(), error.to_string())
    }
}

/// What a road returned, or why the file cannot be opened or counted on it.
type Walked = std::result::Result<Vec<Step>, Step>;

/// What a road is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All steps of the plain scan.
    InOrder,
    /// Only its records.
    Skipping,
    /// Only its damage.
    Damage,
    /// Its records, and an error for each number without one.
    ByNumber,
    /// The same, for a file opened with [`OpenOptions::skip_damage`].
    ByNumberSkipping,
    /// The same, with the positions of the records given.
    Placed,
}

/// The result of the plain scan.
struct Plain {
    steps: Vec<Step>,
    positions: PositionList,
    damage: Vec<Damage>,
    /// The scan failed: a failing read, a limit, an unknown transformer.
    gave_up: bool,
}

impl Plain {
    fn of(format: &dyn Format, source: &Arc<dyn Source>, options: &OpenOptions) -> Plain {
        let (steps, positions, damage) = (Vec::new(), PositionList::new(), Vec::new());
        let mut plain = Plain { steps, positions, damage, gave_up: false };
        let scan = format.scan(Window::new(source.clone()), options);
        let ended = scan.and_then(|mut scan| {
            loop {
                match scan.next_event()? {
                    Event::Record(record) => {
                        plain.steps.push(Step::Record(Bytes::copy_from_slice(record.data)));
                        plain.positions.push(record.position)?;
                    }
                    Event::Damage(damage) => {
                        plain.steps.push(damage.clone().into_error(source.name()).into());
                        plain.damage.push(damage);
                    }
                    Event::End => return Ok(()),
                    _ => {}
                }
            }
        });
        if let Err(error) = ended {
            plain.steps.push(error.into());
            plain.gave_up = true;
        }
        plain
    }

    fn is_sound(&self) -> bool {
        self.damage.is_empty() && !self.gave_up
    }

    fn records(&self) -> Vec<Step> {
        self.steps.iter().filter(|step| step.record().is_some()).cloned().collect()
    }

    /// Checks a road against the plain scan.
    fn check(&self, kind: Kind, walked: &Walked) -> std::result::Result<(), String> {
        let steps = match walked {
            Ok(steps) => steps,
            Err(failed) => {
                let may_fail = match kind {
                    Kind::InOrder | Kind::ByNumber => !self.is_sound(),
                    _ => self.gave_up || self.records().is_empty(),
                };
                let told = || format!("the file cannot be opened or counted: {}", failed.show());
                return if may_fail { Ok(()) } else { Err(told()) };
            }
        };
        // The error that ended the plain scan also ends the others.
        let last = self.steps.last().filter(|_| self.gave_up).cloned();
        let expected = match kind {
            Kind::InOrder => self.steps.clone(),
            Kind::Skipping => self.records().into_iter().chain(last).collect(),
            Kind::Damage => self.steps.iter().filter(|step| step.record().is_none()).cloned().collect(),
            Kind::ByNumber | Kind::ByNumberSkipping | Kind::Placed => {
                let expected = self.records();
                let found: Vec<Step> = steps.iter().filter(|step| step.record().is_some()).cloned().collect();
                no_broken_promise(steps)?;
                // If a file claims many more records than it has, not all numbers were requested. A
                // scan that failed did not see all records.
                let common = match (steps.len() as u64 >= expected.len() as u64 + CLAIMED, self.gave_up) {
                    (_, true) => found.len().min(expected.len()),
                    (true, _) => found.len(),
                    _ => return same(&expected, &found),
                };
                return same(
                    expected.get(..common).unwrap_or(&expected),
                    found.get(..common).unwrap_or(&found),
                );
            }
        };
        same(&expected, steps)
    }
}

fn no_broken_promise(steps: &[Step]) -> std::result::Result<(), String> {
    let broken = |step: &&Step| matches!(step, Step::Failed(_, text) if text.starts_with("broken promise"));
    steps.iter().find(broken).map_or(Ok(()), |broken| Err(broken.show()))
}

fn same(expected: &[Step], found: &[Step]) -> std::result::Result<(), String> {
    let differs = expected.iter().zip(found).position(|(expected, found)| expected != found);
    let at = differs.unwrap_or(expected.len().min(found.len()));
    let show = |steps: &[Step]| steps.get(at).map_or("nothing more".to_owned(), Step::show);
    match differs.is_none() && expected.len() == found.len() {
        true => Ok(()),
        false => Err(format!("step {at}: expected {}, found {}", show(expected), show(found))),
    }
}

fn equal(expected: &Walked, found: &Walked) -> std::result::Result<(), String> {
    match (expected, found) {
        (Ok(expected), Ok(found)) => same(expected, found),
        (Err(expected), Err(found)) => same(std::slice::from_ref(expected), std::slice::from_ref(found)),
        (Ok(_), Err(found)) => Err(format!("the file cannot be opened or counted: {}", found.show())),
        (Err(expected), Ok(_)) => {
            Err(format!("the file can be opened and counted, unlike: {}", expected.show()))
        }
    }
}

/// Bytes in memory that pose as a file, mapped or not.
#[derive(Debug)]
struct Disguised {
    inner: MemorySource,
    in_memory: bool,
}

impl Source for Disguised {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn read_ranges(&self, reads: &mut [RangeRead<'_>]) -> Result<()> {
        self.inner.read_ranges(reads)
    }

    fn as_slice(&self) -> Option<&[u8]> {
        self.inner.as_slice().filter(|_| self.in_memory)
    }

    fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        self.inner.bytes(range)
    }
}
