//! Every road to a file's records, held against the plain scan.
//!
//! The plain scan ([`Format::scan`] over memory, event by event) says what is in a file, sound or
//! damaged: records and damage, in file order. What agreement means:
//!
//! * A road that reads **in order** gives the same records and the same damage, in the same order, with
//!   the same words and places. Where damage is skipped, the same records.
//! * A road **by number** gives a record or an error for each number. The records, in the order of their
//!   numbers, are those of the plain scan: none is missing, different or added. All roads by number
//!   agree on each number, errors and their words included.
//! * A file that cannot be opened or counted is one in which the plain scan found damage, or at which it
//!   gave up; if damage may be skipped, one in which it found no record.
//!
//! [`compare`] walks all of them over some sources of the same bytes, which have no companion files;
//! [`check_failing_disk`] over sources whose reads fail. An index file may leave out records and point to
//! anything: with one ([`compare_with_index_file`]), the roads by number agree with each other, and what
//! they give is the record that the plain scan finds at that place.

use super::faults::FaultySource;
use crate::batch::Batch;
use crate::dataset::Dataset;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Damage, Event, Format, OpenOptions, Scan, read_batch};
use crate::input::Input;
use crate::io::{Access, MemorySource, RangeRead, ReadAt, Window, open_file};
use crate::loader::{Loader, LoaderOptions, OnError, Plan, PlanOptions, Selection};
use crate::position::PositionList;
use crate::scan_ahead::scan_ahead_in_parts;
use crate::sequence::Records;
use crate::verify::verify_in_parts;
use bytes::Bytes;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Sizes of the parts that several threads take, so that small files have many. The library's own are
/// megabytes.
const PARTS: [u64; 2] = [256, 40_000];

/// Threads on the roads that use some.
const THREADS: usize = 3;

/// Records read by number beyond those of the plain scan, where a file claims more.
const CLAIMED: u64 = 64;

/// What was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Files.
    pub files: u64,
    /// Those in which the plain scan found damage, or at which it gave up.
    pub damaged: u64,
    /// Roads walked, over all sources of these files.
    pub roads: u64,
    /// Records that they gave.
    pub records: u64,
    /// Errors that they gave.
    pub errors: u64,
}

impl Tally {
    /// Adds the other's figures.
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

/// Walks every road over some sources of the same bytes. They have the same name, as errors hold it.
///
/// `threads`: also the roads with threads of their own, which take longest.
///
/// # Errors
/// The first disagreement, as a sentence.
pub fn compare(
    format: &'static dyn Format,
    sources: &[(&str, Arc<dyn ReadAt>)],
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
            // The roads by number are held against the first of them, too.
            let first = match road.kind {
                Kind::ByNumber => &mut by_number[0],
                Kind::ByNumberSkipping => &mut by_number[1],
                _ => continue,
            };
            let first = first.get_or_insert_with(|| walked.clone());
            equal(first, &walked).map_err(told)?;
        }
    }
    // Without a length to hold a damaged table against, a stream may give up earlier.
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

/// Walks the roads by number over a file with a companion that says where its records are.
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

/// The bytes in memory: looked at in place, as mapped files are; read in blocks, as an iteration that
/// copies reads mapped files; and by positional reads.
pub fn memory_sources(data: &[u8]) -> Vec<(&'static str, Arc<dyn ReadAt>)> {
    let inner = MemorySource::new("file", data.to_vec());
    vec![
        ("in memory", Arc::new(inner.clone())),
        ("in blocks", Arc::new(Disguised { inner: inner.clone(), in_memory: true })),
        ("positional", Arc::new(Disguised { inner, in_memory: false })),
    ]
}

/// A file as every kind of access reads it.
///
/// # Errors
/// What the system says.
pub fn file_sources(path: &Path) -> Result<Vec<(&'static str, Arc<dyn ReadAt>)>> {
    let kinds = [("mapped", Access::Mapped), ("auto", Access::Auto), ("positional", Access::Positional)];
    kinds.into_iter().map(|(called, access)| Ok((called, open_file(path, access)?))).collect()
}

/// Walks every road over a disk whose every read fails, and over ones that fail later. Each road gives
/// the disk's error, or all that it gives over a sound disk; over the first one, always the error.
///
/// Gives the number of walks that met the error.
///
/// # Errors
/// The first road that does not keep to this, as a sentence.
pub fn check_failing_disk(
    format: &'static dyn Format,
    data: &[u8],
    options: &OpenOptions,
) -> std::result::Result<u64, String> {
    let mut failed = 0;
    let sound: Arc<dyn ReadAt> = Arc::new(FaultySource::new(data.to_vec(), u64::MAX));
    let plain = Plain::of(format, &sound, options);
    for road in ROADS {
        // Each has a source of its own, as reads are counted.
        let walk = |fail_at| {
            let source: Arc<dyn ReadAt> = Arc::new(FaultySource::new(data.to_vec(), fail_at));
            (road.walk)(&Subject { format, source: &source, options, plain: &plain, indexed: false })
        };
        let whole = walk(u64::MAX);
        // Where there is nothing to read, nothing can fail.
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
                Some(step) => return Err(told(&format!("takes it for something else: {step:?}"))),
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

    /// A promise that was broken on the way, which no road may give.
    fn broken(promise: &str) -> Step {
        Step::Failed(ErrorKind::Invalid, format!("broken promise: {promise}"))
    }

    fn record(&self) -> Option<&Bytes> {
        match self {
            Step::Record(record) => Some(record),
            Step::Failed(..) => None,
        }
    }

    /// In few words.
    fn show(&self) -> String {
        match self {
            Step::Record(record) => {
                format!("a record of {} bytes ({:08x})", record.len(), crate::checksum::crc32(record))
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

/// What a road gave, or why the file cannot be opened or counted on it.
type Walked = std::result::Result<Vec<Step>, Step>;

/// What a road is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All steps of the plain scan.
    InOrder,
    /// Its records alone.
    Skipping,
    /// Its damage alone.
    Damage,
    /// Its records, and an error for each number that has none.
    ByNumber,
    /// The same, of a file opened with [`OpenOptions::skip_damage`].
    ByNumberSkipping,
    /// The same, where the positions of the records are given.
    Placed,
}

/// What the plain scan found.
struct Plain {
    steps: Vec<Step>,
    positions: PositionList,
    damage: Vec<Damage>,
    /// The scan gave up: a failing read, a limit, a transformer it does not know.
    gave_up: bool,
}

impl Plain {
    fn of(format: &dyn Format, source: &Arc<dyn ReadAt>, options: &OpenOptions) -> Plain {
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

    /// Holds a road against the plain scan.
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
        // The error that ended the plain scan ends the others, too.
        let last = self.steps.last().filter(|_| self.gave_up).cloned();
        let expected = match kind {
            Kind::InOrder => self.steps.clone(),
            Kind::Skipping => self.records().into_iter().chain(last).collect(),
            Kind::Damage => self.steps.iter().filter(|step| step.record().is_none()).cloned().collect(),
            Kind::ByNumber | Kind::ByNumberSkipping | Kind::Placed => {
                let expected = self.records();
                let found: Vec<Step> = steps.iter().filter(|step| step.record().is_some()).cloned().collect();
                no_broken_promise(steps)?;
                // Not all numbers were asked for where a file claims many more records than it has, and
                // a scan that gave up did not see all.
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

/// A way to read a file.
struct Road {
    name: &'static str,
    kind: Kind,
    /// It has threads of its own.
    threads: bool,
    walk: fn(&Subject<'_>) -> Walked,
}

const fn road(name: &'static str, kind: Kind, walk: fn(&Subject<'_>) -> Walked) -> Road {
    Road { name, kind, threads: false, walk }
}

const fn road_with_threads(name: &'static str, kind: Kind, walk: fn(&Subject<'_>) -> Walked) -> Road {
    Road { name, kind, threads: true, walk }
}

/// All ways there are. The first of each kind by number is what the others of that kind are held to.
const ROADS: &[Road] = &[
    road("scan", Kind::InOrder, |on| on.scan(true, |window| window, events)),
    road("scan without notices", Kind::InOrder, |on| on.scan(false, |window| window, events)),
    road("scan read ahead", Kind::InOrder, |on| on.scan(false, Window::read_ahead, events)),
    road("filling scan", Kind::InOrder, |on| on.scan(false, |window| window, filled)),
    road("filling scan read ahead", Kind::InOrder, |on| on.scan(false, Window::read_ahead, filled)),
    road_with_threads("scan in small parts", Kind::InOrder, |on| on.scan_parts(PARTS[0], events)),
    road_with_threads("scan in large parts", Kind::InOrder, |on| on.scan_parts(PARTS[1], events)),
    road_with_threads("filling scan in parts", Kind::InOrder, |on| on.scan_parts(PARTS[0], filled)),
    road("iteration", Kind::InOrder, |on| on.iterate(false, singly)),
    road("batches of 3", Kind::InOrder, |on| on.iterate(false, |records| in_batches(records, 3, 1 << 30))),
    road("batches of 2 KB", Kind::InOrder, |on| on.iterate(false, |records| in_batches(records, 999, 2000))),
    road("lent batches", Kind::InOrder, |on| on.iterate(false, |records| lent(records, 7))),
    road("batches, lent or not, and single steps", Kind::InOrder, |on| on.iterate(false, mixed)),
    road("iteration that skips damage", Kind::Skipping, |on| on.iterate(true, singly)),
    road("batches that skip damage", Kind::Skipping, |on| {
        on.iterate(true, |records| in_batches(records, 5, 9999))
    }),
    road("verify", Kind::Damage, |on| on.verify(1, PARTS[0])),
    road_with_threads("verify in small parts", Kind::Damage, |on| on.verify(THREADS, PARTS[0])),
    road_with_threads("verify in large parts", Kind::Damage, |on| on.verify(THREADS, PARTS[1])),
    road("single reads", Kind::ByNumber, |on| on.by_number(false, single_reads)),
    road("batches", Kind::ByNumber, |on| on.by_number(false, |data, all| batches(data, all, 1))),
    road_with_threads("batches on threads", Kind::ByNumber, |on| {
        on.by_number(false, |data, all| batches(data, all, THREADS))
    }),
    road("batches into a buffer", Kind::ByNumber, |on| on.by_number(false, into_buffer)),
    road("lent by number", Kind::ByNumber, |on| on.by_number(false, lent_by_number)),
    road("located and decoded", Kind::ByNumber, |on| on.by_number(false, decoded)),
    road_with_threads("loader", Kind::ByNumber, |on| on.by_number(false, loaded)),
    road("single reads past damage", Kind::ByNumberSkipping, |on| on.by_number(true, single_reads)),
    road("batches past damage", Kind::ByNumberSkipping, |on| {
        on.by_number(true, |data, all| batches(data, all, 1))
    }),
    road("lent by number past damage", Kind::ByNumberSkipping, |on| on.by_number(true, lent_by_number)),
    road_with_threads("loader past damage", Kind::ByNumberSkipping, |on| on.by_number(true, loaded)),
    road("single reads at given positions", Kind::Placed, |on| on.placed(single_reads)),
    road("batches at given positions", Kind::Placed, |on| on.placed(|data, all| batches(data, all, 1))),
];

/// What a road is walked over.
struct Subject<'a> {
    format: &'static dyn Format,
    source: &'a Arc<dyn ReadAt>,
    options: &'a OpenOptions,
    plain: &'a Plain,
    /// A companion file says where the records are.
    indexed: bool,
}

impl Subject<'_> {
    fn options(&self, skip_damage: bool) -> OpenOptions {
        OpenOptions { skip_damage, threads: 1, ..self.options.clone() }
    }

    fn scan(
        &self,
        notices: bool,
        look: fn(Window) -> Window,
        take: fn(Box<dyn Scan>, &str) -> Vec<Step>,
    ) -> Walked {
        let options = OpenOptions { notices, ..self.options.clone() };
        let scan = self.format.scan(look(Window::new(self.source.clone())), &options);
        // The plain scan gives up where it cannot begin.
        Ok(scan.map_or_else(|error| vec![error.into()], |scan| take(scan, self.source.name())))
    }

    fn scan_parts(&self, part: u64, take: fn(Box<dyn Scan>, &str) -> Vec<Step>) -> Walked {
        let options = OpenOptions { threads: THREADS, ..self.options.clone() };
        let scan = scan_ahead_in_parts(Input::over(self.source.clone(), self.format), &options, part);
        Ok(scan.map_or_else(|error| vec![error.into()], |scan| take(scan, self.source.name())))
    }

    fn open(&self, options: &OpenOptions) -> std::result::Result<Arc<Dataset>, Step> {
        Ok(Arc::new(Dataset::over(self.source.clone(), self.format, options)?))
    }

    fn iterate(&self, skip_damage: bool, take: fn(Records<&Dataset>) -> Vec<Step>) -> Walked {
        Ok(take(self.open(&self.options(skip_damage))?.iter()))
    }

    fn verify(&self, threads: usize, part: u64) -> Walked {
        let options = OpenOptions { threads, ..self.options.clone() };
        let report = match verify_in_parts(self.source, self.format, &options, part, &mut |_| {}) {
            Ok(report) => report,
            Err(error) => {
                // The damage before it is not told.
                let told = self.plain.steps.iter().filter(|step| step.record().is_none());
                let before = told.take(self.plain.damage.len()).cloned();
                return Ok(before.chain([error.into()]).collect());
            }
        };
        if report.damage != self.plain.damage {
            return Ok(vec![Step::broken(&format!("damage {:?}", report.damage))]);
        }
        let records = report.positions.len();
        if report.positions != self.plain.positions
            || report.records != records
            || report.sizes.count != records
        {
            return Ok(vec![Step::broken("other positions than those of the plain scan")]);
        }
        Ok(report.damage.into_iter().map(|damage| damage.into_error(self.source.name()).into()).collect())
    }

    fn by_number(&self, skip_damage: bool, read: fn(&Arc<Dataset>, &[u64]) -> Vec<Step>) -> Walked {
        self.read_all(&self.options(skip_damage), read)
    }

    fn placed(&self, read: fn(&Arc<Dataset>, &[u64]) -> Vec<Step>) -> Walked {
        let positions = Some(Arc::new(self.plain.positions.clone()));
        self.read_all(&OpenOptions { positions, ..self.options(true) }, read)
    }

    fn read_all(&self, options: &OpenOptions, read: fn(&Arc<Dataset>, &[u64]) -> Vec<Step>) -> Walked {
        let dataset = self.open(options)?;
        let count = dataset.len()?.min(self.plain.records().len() as u64 + CLAIMED);
        let numbers: Vec<u64> = (0..count).collect();
        let mut steps = read(&dataset, &numbers);
        let disk_failed = steps.iter().any(|step| matches!(step, Step::Failed(ErrorKind::Io, _)));
        if steps.len() != numbers.len() && !disk_failed {
            steps.push(Step::broken("not one step for each number"));
        }
        let wrong = self.misplaced(&dataset, &numbers, &steps);
        steps.extend(wrong);
        Ok(steps)
    }

    /// The first of the good records that is not where, or what, the plain scan says.
    fn misplaced(&self, dataset: &Dataset, numbers: &[u64], steps: &[Step]) -> Option<Step> {
        let records = self.plain.records();
        let good = numbers.iter().zip(steps).filter(|(_, step)| step.record().is_some());
        for ((&number, step), nth) in good.zip(0..) {
            let found = match dataset.position(number) {
                Ok(found) => found,
                Err(error) => return Some(error.into()),
            };
            let expected = if self.indexed { self.plain.positions.index_of(found) } else { Some(nth) };
            let at = expected.and_then(|record| self.plain.positions.get(record));
            let record = expected.and_then(|record| records.get(usize::try_from(record).ok()?));
            // Where a scan gave up, there are records that it did not see.
            if (at, record) != (Some(found), Some(step)) && !(at.is_none() && self.plain.gave_up) {
                let promise = format!("record {number} at {found:?} is not the plain scan's at {at:?}");
                return Some(Step::broken(&promise));
            }
        }
        None
    }
}

/// The steps of a scan, event by event.
fn events(mut scan: Box<dyn Scan>, name: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    while next_event(&mut *scan, name, &mut steps) {}
    steps
}

/// The steps of a scan that fills batches as far as it can.
fn filled(mut scan: Box<dyn Scan>, name: &str) -> Vec<Step> {
    let (mut steps, mut batch) = (Vec::new(), Batch::new());
    loop {
        batch.clear();
        let filled = scan.fill(&mut batch, 5, 5000);
        steps.extend(batch.iter().map(|record| Step::Record(Bytes::copy_from_slice(record))));
        match filled {
            Err(error) => {
                steps.push(error.into());
                return steps;
            }
            Ok(()) if batch.is_empty() && !next_event(&mut *scan, name, &mut steps) => return steps,
            Ok(()) => {}
        }
    }
}

/// Takes one event; false at the end.
fn next_event(scan: &mut dyn Scan, name: &str, steps: &mut Vec<Step>) -> bool {
    match scan.next_event() {
        Ok(Event::Record(record)) => steps.push(Step::Record(Bytes::copy_from_slice(record.data))),
        Ok(Event::Damage(damage)) => steps.push(damage.into_error(name).into()),
        Ok(Event::End) => return false,
        Ok(_) => {}
        Err(error) => {
            steps.push(error.into());
            return false;
        }
    }
    true
}

fn singly(records: Records<&Dataset>) -> Vec<Step> {
    records.map(Step::of).collect()
}

fn in_batches(mut records: Records<&Dataset>, count: usize, bytes: usize) -> Vec<Step> {
    let (mut steps, mut batch) = (Vec::new(), Batch::new());
    while fill(&mut records, &mut batch, count, bytes, &mut steps) {}
    steps
}

/// Fills one batch; false at the end.
fn fill(
    records: &mut Records<&Dataset>,
    batch: &mut Batch,
    count: usize,
    bytes: usize,
    steps: &mut Vec<Step>,
) -> bool {
    match records.fill(batch, count, bytes) {
        Ok(()) => steps.extend(batch.iter().map(|record| Step::Record(Bytes::copy_from_slice(record)))),
        Err(error) => {
            steps.push(error.into());
            return true;
        }
    }
    !batch.is_empty()
}

fn lent(mut records: Records<&Dataset>, count: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    loop {
        match records.lend(count, 1 << 20) {
            Ok(lent) if lent.is_empty() => return steps,
            Ok(lent) => steps.extend(lent.into_iter().map(Step::Record)),
            Err(error) => steps.push(error.into()),
        }
    }
}

fn mixed(mut records: Records<&Dataset>) -> Vec<Step> {
    let (mut steps, mut batch) = (Vec::new(), Batch::new());
    loop {
        if !fill(&mut records, &mut batch, 2, 1 << 20, &mut steps) {
            return steps;
        }
        match records.next() {
            Some(step) => steps.push(Step::of(step)),
            None => return steps,
        }
        match records.lend(2, 1 << 20) {
            Ok(lent) => steps.extend(lent.into_iter().map(Step::Record)),
            Err(error) => steps.push(error.into()),
        }
    }
}

fn single_reads(dataset: &Arc<Dataset>, numbers: &[u64]) -> Vec<Step> {
    numbers.iter().map(|&number| Step::of(dataset.read(number))).collect()
}

fn batches(dataset: &Arc<Dataset>, numbers: &[u64], threads: usize) -> Vec<Step> {
    let mut batch = Batch::new();
    together(numbers, |numbers| {
        dataset.read_batch_into(numbers, &mut batch, threads)?;
        Ok(batch.iter().map(Bytes::copy_from_slice).collect())
    })
}

fn into_buffer(dataset: &Arc<Dataset>, numbers: &[u64]) -> Vec<Step> {
    let mut buffer = Vec::new();
    together(numbers, |numbers| {
        let offsets = match dataset.read_into(numbers, &mut buffer, 1) {
            Err(error) if error.kind() == ErrorKind::Invalid => {
                let size: usize = dataset.read_batch(numbers)?.buffer().len();
                buffer.resize(size, 0);
                dataset.read_into(numbers, &mut buffer, 1)?
            }
            other => other?,
        };
        let record = |pair: &[u64]| match pair {
            &[begin, end] => {
                let range = usize::try_from(begin).ok().zip(usize::try_from(end).ok());
                let range = range.and_then(|(begin, end)| buffer.get(begin..end));
                range.map(Bytes::copy_from_slice).unwrap_or_default()
            }
            _ => Bytes::new(),
        };
        Ok(offsets.windows(2).map(record).collect())
    })
}

fn lent_by_number(dataset: &Arc<Dataset>, numbers: &[u64]) -> Vec<Step> {
    together(numbers, |numbers| dataset.lend(numbers))
}

/// Each record by the two steps that a reader does for a batch, and the batch of the reader alone.
fn decoded(dataset: &Arc<Dataset>, numbers: &[u64]) -> Vec<Step> {
    let Some(reader) = dataset.readers().next() else { return Vec::new() };
    together(numbers, |numbers| {
        let one = |&number: &u64| {
            let location = reader.locate(number)?;
            let frame = reader.source().bytes(location.span.clone())?;
            Ok(Bytes::copy_from_slice(&reader.decode(number, &location, &frame)?))
        };
        let records = numbers.iter().map(one).collect::<Result<Vec<Bytes>>>()?;
        match read_batch(reader, numbers)?.iter().eq(records.iter().map(|record| &record[..])) {
            true => Ok(records),
            false => Err(Error::invalid("broken promise: a batch differs from decoded records")),
        }
    })
}

fn loaded(dataset: &Arc<Dataset>, numbers: &[u64]) -> Vec<Step> {
    let load = |numbers: &[u64], on_error: OnError| {
        let selection = Selection::new(Arc::clone(dataset) as _, numbers.to_vec())?;
        let plan = Plan::new(
            numbers.len() as u64,
            &PlanOptions { batch_size: numbers.len().max(1) as u64, ..PlanOptions::default() },
        )?;
        let options = LoaderOptions { threads: 2, on_error, ..LoaderOptions::default() };
        let mut loader = Loader::new(Arc::new(selection), plan, options)?;
        let batch = loader.next_batch()?;
        Ok((batch, loader.failed()))
    };
    let steps = together(numbers, |numbers| {
        let (batch, _) = load(numbers, OnError::Raise)?;
        Ok(batch.iter().flat_map(|batch| batch.records.iter().map(Bytes::copy_from_slice)).collect())
    });
    // What is skipped is what fails by itself.
    let failed = steps.iter().filter(|step| step.record().is_none()).count() as u64;
    let good = steps.iter().filter_map(Step::record).map(|record| &record[..]);
    match load(numbers, OnError::Skip) {
        Ok((None, _)) if numbers.is_empty() => steps,
        Ok((Some(batch), skipped)) if skipped == failed && batch.records.iter().eq(good) => steps,
        Ok(_) => vec![Step::broken("a loader that skips gives other records")],
        // A batch without a good record fails as its first does.
        Err(error) => match Step::from(error) {
            step if failed == numbers.len() as u64 && steps.first() == Some(&step) => steps,
            step => vec![step],
        },
    }
}

/// One step for each number: all in one batch, out of order and with repeats; if that fails, each by
/// itself and then the good ones in one batch.
fn together(numbers: &[u64], mut read: impl FnMut(&[u64]) -> Result<Vec<Bytes>>) -> Vec<Step> {
    let failed = match in_one_batch(numbers, &mut read) {
        Ok(steps) => return steps,
        Err(error) => Step::from(error),
    };
    let single = |&number: &u64| match read(&[number]) {
        Ok(records) => {
            records.into_iter().next().map_or(Step::broken("no record and no error"), Step::Record)
        }
        Err(error) => error.into(),
    };
    let mut steps: Vec<Step> = numbers.iter().map(single).collect();
    let good = numbers.iter().zip(&steps).filter(|(_, step)| step.record().is_some());
    let good: Vec<u64> = good.map(|(number, _)| *number).collect();
    let again = in_one_batch(&good, &mut read);
    let expected = steps.iter().filter(|step| step.record().is_some());
    let wrong = match again {
        Err(error) => Some(error.into()),
        Ok(again) if !again.iter().eq(expected) => Some(Step::broken("records read together differ")),
        Ok(_) if steps.contains(&failed) => None,
        Ok(_) if matches!(failed, Step::Failed(ErrorKind::Io, _)) => Some(failed),
        Ok(_) => Some(Step::broken(&format!("no record fails as all of them together: {}", failed.show()))),
    };
    steps.extend(wrong);
    steps
}

fn in_one_batch(numbers: &[u64], read: &mut impl FnMut(&[u64]) -> Result<Vec<Bytes>>) -> Result<Vec<Step>> {
    let turned = numbers.iter().rev();
    let order: Vec<u64> = turned.clone().chain(turned.step_by(3)).copied().collect();
    let records = read(&order)?;
    let (once, again) = records.split_at_checked(numbers.len()).unwrap_or_default();
    if records.len() != order.len() || !once.iter().step_by(3).eq(again) {
        return Ok(vec![Step::broken("a record read twice differs")]);
    }
    Ok(once.iter().rev().cloned().map(Step::Record).collect())
}

/// Bytes in memory that give themselves out as a file: a mapped one that is faster read, or one that is
/// not mapped.
#[derive(Debug)]
struct Disguised {
    inner: MemorySource,
    in_memory: bool,
}

impl ReadAt for Disguised {
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

    fn is_read_faster(&self) -> bool {
        self.in_memory
    }

    fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        self.inner.bytes(range)
    }
}
