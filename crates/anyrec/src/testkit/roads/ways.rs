//! The roads themselves: each gives one step per record, or per number.

use super::{CLAIMED, Kind, Plain, Step, Walked};
use crate::base::{Batch, Error, ErrorKind, Result};
use crate::dataset::{Dataset, RecordFile, Selection};
use crate::engine::{Records, read_batch};
use crate::format::{Event, Format, OpenOptions, Scan, scan_ahead_in_segments};
use crate::io::{Source, Window};
use crate::loader::{Loader, LoaderOptions, OnError, Plan, PlanOptions};
use crate::tasks::verify_in_segments;
use bytes::Bytes;
use std::sync::Arc;

/// Sizes of the parts for several threads, so that small files have many. The library's own parts
/// are megabytes.
const PARTS: [u64; 2] = [256, 40_000];

/// Number of threads on the roads that use them.
const THREADS: usize = 3;

/// A way to read a file.
pub(super) struct Road {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Whether it uses threads.
    pub(super) threads: bool,
    pub(super) walk: fn(&Subject<'_>) -> Walked,
}

const fn road(name: &'static str, kind: Kind, walk: fn(&Subject<'_>) -> Walked) -> Road {
    Road { name, kind, threads: false, walk }
}

const fn road_with_threads(name: &'static str, kind: Kind, walk: fn(&Subject<'_>) -> Walked) -> Road {
    Road { name, kind, threads: true, walk }
}

/// All ways. The first of each kind by number is the reference for the others of that kind.
pub(super) const ROADS: &[Road] = &[
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

/// What a road is taken over.
pub(super) struct Subject<'a> {
    pub(super) format: &'static dyn Format,
    pub(super) source: &'a Arc<dyn Source>,
    pub(super) options: &'a OpenOptions,
    pub(super) plain: &'a Plain,
    /// Whether a companion file says where the records are.
    pub(super) indexed: bool,
}

impl Subject<'_> {
    fn options(&self, skip_damage: bool) -> OpenOptions {
        self.options.clone().with_skip_damage(skip_damage).with_threads(1)
    }

    fn scan(
        &self,
        notices: bool,
        look: fn(Window) -> Window,
        take: fn(Box<dyn Scan>, &str) -> Vec<Step>,
    ) -> Walked {
        let options = self.options.clone().with_notices(notices);
        let scan = self.format.scan(look(Window::new(self.source.clone())), &options);
        // The plain scan fails if it cannot begin.
        Ok(scan.map_or_else(|error| vec![error.into()], |scan| take(scan, self.source.name())))
    }

    fn scan_parts(&self, part: u64, take: fn(Box<dyn Scan>, &str) -> Vec<Step>) -> Walked {
        let options = self.options.clone().with_threads(THREADS);
        let scan = scan_ahead_in_segments(self.format, Window::new(self.source.clone()), &options, part);
        Ok(scan.map_or_else(|error| vec![error.into()], |scan| take(scan, self.source.name())))
    }

    fn open(&self, options: &OpenOptions) -> std::result::Result<Arc<Dataset>, Step> {
        Ok(Arc::new(Dataset::of(vec![RecordFile::over(self.source.clone(), self.format)], options)?))
    }

    fn iterate(&self, skip_damage: bool, take: fn(Records) -> Vec<Step>) -> Walked {
        Ok(take(self.open(&self.options(skip_damage))?.iter()))
    }

    fn verify(&self, threads: usize, part: u64) -> Walked {
        let options = self.options.clone().with_threads(threads);
        let report = match verify_in_segments(self.source, self.format, &options, part, &mut |_| {}) {
            Ok(report) => report,
            Err(error) => {
                // The damage before it is not reported.
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
        let positions = Arc::new(self.plain.positions.clone());
        self.read_all(&self.options(true).with_positions(positions), read)
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

    /// The first good record that differs from the plain scan in position or content.
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
            // If the plain scan failed, there are records that it did not see.
            if (at, record) != (Some(found), Some(step)) && !(at.is_none() && self.plain.gave_up) {
                let promise = format!("record {number} at {found:?} is not the plain scan's at {at:?}");
                return Some(Step::broken(&promise));
            }
        }
        None
    }
}

/// The steps of a scan, event by event.
pub(super) fn events(mut scan: Box<dyn Scan>, name: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    while next_event(&mut *scan, name, &mut steps) {}
    steps
}

/// The steps of a scan that fills batches as far as possible.
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

/// Takes one event; returns false at the end.
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

fn singly(records: Records) -> Vec<Step> {
    records.map(Step::of).collect()
}

fn in_batches(mut records: Records, count: usize, bytes: usize) -> Vec<Step> {
    let (mut steps, mut batch) = (Vec::new(), Batch::new());
    while fill(&mut records, &mut batch, count, bytes, &mut steps) {}
    steps
}

/// Fills one batch; returns false at the end.
fn fill(records: &mut Records, batch: &mut Batch, count: usize, bytes: usize, steps: &mut Vec<Step>) -> bool {
    match records.fill(batch, count, bytes) {
        Ok(()) => steps.extend(batch.iter().map(|record| Step::Record(Bytes::copy_from_slice(record)))),
        Err(error) => {
            steps.push(error.into());
            return true;
        }
    }
    !batch.is_empty()
}

fn lent(mut records: Records, count: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    loop {
        match records.lend(count, 1 << 20) {
            Ok(lent) if lent.is_empty() => return steps,
            Ok(lent) => steps.extend(lent.into_iter().map(Step::Record)),
            Err(error) => steps.push(error.into()),
        }
    }
}

fn mixed(mut records: Records) -> Vec<Step> {
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
        batch.clear();
        crate::engine::append(&**dataset, numbers, &mut batch, threads)?;
        Ok(batch.iter().map(Bytes::copy_from_slice).collect())
    })
}

fn into_buffer(dataset: &Arc<Dataset>, numbers: &[u64]) -> Vec<Step> {
    let mut buffer = Vec::new();
    together(numbers, |numbers| {
        let offsets = match dataset.read_into(numbers, &mut buffer) {
            Err(error) if error.kind() == ErrorKind::Invalid => {
                let size: usize = dataset.read_batch(numbers)?.buffer().len();
                buffer.resize(size, 0);
                dataset.read_into(numbers, &mut buffer)?
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

/// Each record in the two steps that a reader uses for a batch, and the batch of the reader alone.
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
    // Exactly the records that fail on their own are skipped.
    let failed = steps.iter().filter(|step| step.record().is_none()).count() as u64;
    let good = steps.iter().filter_map(Step::record).map(|record| &record[..]);
    match load(numbers, OnError::Skip) {
        Ok((None, _)) if numbers.is_empty() => steps,
        Ok((Some(batch), skipped)) if skipped == failed && batch.records.iter().eq(good) => steps,
        Ok(_) => vec![Step::broken("a loader that skips gives other records")],
        // A batch without a good record fails like its first record.
        Err(error) => match Step::from(error) {
            step if failed == numbers.len() as u64 && steps.first() == Some(&step) => steps,
            step => vec![step],
        },
    }
}

/// One step per number: all in one batch, out of order and with repeats; if that fails, each alone
/// and then the good ones in one batch.
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
