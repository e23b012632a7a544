//! Running out of memory, and numbers of a file that would make it happen.

use crate::allocation::{peak_of, with_failure};
use anyrec::Tags;
use anyrec::format::{Event, OpenOptions, WriteOptions, by_id, grail};
use anyrec::io::Access;
use anyrec::loader::{Loader, LoaderOptions, OnError, Plan, PlanOptions};
use anyrec::{Batch, Dataset, Error, ErrorKind, Limits, RepairOptions};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const RECORDS: u64 = 5;
const SIZE: usize = 300 << 10;
/// Allocations that fail have at least this size, more than any buffer of a small fixed size: what is
/// asked for before a decompressor is made is a little more.
const LARGE: usize = 70 << 10;

fn record(number: u64) -> Vec<u8> {
    let byte = |i: usize| ((i / 11).wrapping_mul(number as usize * 2 + 3) >> 3) as u8;
    let mut record: Vec<u8> = (0..SIZE).map(byte).collect();
    // A record of several parts, in MXNet.
    record[SIZE / 2..SIZE / 2 + 4].copy_from_slice(&0xced7_230a_u32.to_le_bytes());
    record
}

/// A sound file of each format and compression.
fn files(folder: &Path) -> Vec<PathBuf> {
    let own = |entry: &str| grail::WriteOptions::default().with_transformer(entry).with_max_items(2);
    let legacy = own("flate").with_version(grail::Version::LegacyPacked);
    let legacy = WriteOptions::default().with(legacy);
    let grail = |entry: &str| WriteOptions::default().with(own(entry));
    let plain = WriteOptions::default;
    let kinds = [
        ("a.rec", "mxnet", plain()),
        ("a.ffr", "ffrecord", plain()),
        ("a.grail-rio", "grail", plain()),
        ("zstd.grail-rio", "grail", grail("zstd")),
        ("flate.grail-rio", "grail", grail("flate")),
        ("a.grail-rpk-gz", "grail", legacy),
        ("a-idx2-ubyte", "idx", plain()),
        ("b-idx2-ubyte.gz", "idx", plain()),
    ];
    let write = |(name, format, options): (&str, &str, WriteOptions)| {
        let path = folder.join(name);
        let mut writer = by_id(format).unwrap().create(&path, &options).unwrap();
        for number in 0..RECORDS {
            writer.append(&record(number), &Tags::none()).unwrap();
        }
        writer.finish().unwrap();
        path
    };
    kinds.into_iter().map(write).collect()
}

fn options(access: Access) -> OpenOptions {
    let mut options = OpenOptions::default();
    (options.access, options.threads, options.skip_damage) = (access, 1, true);
    options
}

/// Stands for a record: a copy would be one of the allocations that fail.
fn digest(record: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(record);
    hasher.finish()
}

/// The ways of reading a file, each giving all records' digests.
type Road = (&'static str, fn(&Path, &OpenOptions) -> Result<Vec<u64>, Error>);

const ROADS: [Road; 5] = [
    ("iteration", |path, options| {
        let dataset = Dataset::open(&[path], options)?;
        dataset.iter().map(|record| record.map(|record| digest(&record))).collect()
    }),
    ("fill", |path, options| {
        let dataset = Dataset::open(&[path], options)?;
        let (mut records, mut batch, mut all) = (dataset.iter(), Batch::new(), Vec::new());
        loop {
            records.fill(&mut batch, 2, usize::MAX)?;
            if batch.is_empty() {
                return Ok(all);
            }
            all.extend(batch.iter().map(digest));
        }
    }),
    ("one by one", |path, options| {
        let dataset = Dataset::open(&[path], options)?;
        (0..dataset.len()?).map(|index| dataset.read(index).map(|record| digest(&record))).collect()
    }),
    ("batch", |path, options| {
        let dataset = Dataset::open(&[path], options)?;
        let batch = dataset.numbers(0..dataset.len()?).and_then(|numbers| dataset.read_batch(&numbers))?;
        Ok(batch.iter().map(digest).collect())
    }),
    ("scan", |path, options| {
        let mut scan = anyrec::RecordFile::open(path, options)?.scan(options)?;
        let mut all = Vec::new();
        loop {
            match scan.next_event()? {
                Event::Record(record) => all.push(digest(record.data)),
                Event::Damage(damage) => panic!("a sound file has damage: {damage:?}"),
                Event::End => return Ok(all),
                _ => {}
            }
        }
    }),
];

#[test]
fn an_allocation_that_fails_is_an_error_of_its_own_and_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let expected: Vec<u64> = (0..RECORDS).map(|number| digest(&record(number))).collect();
    let mut failures = 0;
    for path in files(folder.path()) {
        for access in [Access::Mapped, Access::Positional, Access::Direct] {
            for (road, read) in ROADS {
                let place = format!("{} {access:?} {road}", path.display());
                for nth in 0.. {
                    let (outcome, failed) = with_failure(LARGE, nth, || read(&path, &options(access)));
                    match outcome {
                        Ok(records) => assert!(records == expected, "{place}: other records"),
                        Err(error) if access == Access::Direct && error.io_error().is_some() => break,
                        Err(error) => {
                            failures += 1;
                            assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{place}: {error}");
                        }
                    }
                    if !failed {
                        break;
                    }
                }
            }
        }
    }
    assert!(failures > 100, "{failures}");
}

#[test]
fn an_iteration_that_ran_out_of_memory_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let paths = files(folder.path());
    let dataset = Dataset::open(&[&paths[3], &paths[4]], &options(Access::Mapped)).unwrap();
    let mut records = dataset.iter();
    let (first, failed) = with_failure(SIZE, 0, || records.next());
    assert!(failed && first.unwrap().unwrap_err().kind() == ErrorKind::OutOfMemory);
    assert!(records.next().is_none());
}

#[test]
fn verify_and_repair_under_failing_allocations_report_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    for path in files(folder.path()) {
        let whole = anyrec::verify(&path, &options(Access::Auto)).unwrap();
        assert!(whole.is_sound());
        for nth in 0..40 {
            let (outcome, failed) =
                with_failure(SIZE, nth, || anyrec::verify(&path, &options(Access::Positional)));
            match outcome {
                Ok(report) => assert!(report.is_sound() && report.records == RECORDS, "{}", path.display()),
                Err(error) => assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}"),
            }
            let mut settings = RepairOptions::default();
            (settings.open, settings.overwrite) = (options(Access::Positional), true);
            let output = folder.path().join("out");
            let (outcome, failed_too) =
                with_failure(SIZE, nth, || anyrec::repair(&path, &output, &settings, &mut |_| {}));
            match outcome {
                Ok(repair) => assert_eq!(repair.written.records, RECORDS, "{}", path.display()),
                Err(error) => assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}"),
            }
            if !failed && !failed_too {
                break;
            }
        }
    }
}

#[test]
fn a_loader_that_skips_or_replaces_raises_where_memory_is_short() {
    struct NoMemory;
    impl anyrec::loader::Decode for NoMemory {
        fn size(&self) -> usize {
            8
        }
        fn decode(&self, sample: &anyrec::loader::Sample, _: &[u8], _: &mut [u8]) -> Result<(), Error> {
            if sample.record == 3 { Err(Error::out_of_memory(8)) } else { Ok(()) }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = &files(folder.path())[1];
    for on_error in [OnError::Raise, OnError::Skip, OnError::Replace, OnError::Blank] {
        let dataset = Arc::new(anyrec::open(path).unwrap());
        let mut settings = PlanOptions::default();
        settings.batch_size = RECORDS;
        let plan = Plan::new(RECORDS, &settings).unwrap();
        let mut options = LoaderOptions::default();
        options.on_error = on_error;
        options.decode = Some(Arc::new(NoMemory));
        let mut loader = Loader::new(dataset, plan, options).unwrap();
        assert_eq!(loader.next_batch().unwrap_err().kind(), ErrorKind::OutOfMemory, "{on_error:?}");
        assert_eq!(loader.failed(), 0);
    }
}

/// 20 bytes that promise 2^32-1 records of one byte, gzipped or not.
fn promises(folder: &Path) -> [PathBuf; 2] {
    let mut header = vec![0, 0, 8, 4];
    header.extend([u32::MAX, 1, 1, 1].into_iter().flat_map(u32::to_be_bytes));
    let plain = folder.join("huge-idx4-ubyte");
    std::fs::write(&plain, &header).unwrap();
    let gzipped = folder.join("packed-idx4-ubyte.gz");
    let mut member = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1];
    member.extend([20, 0, 235, 255]);
    member.extend(&header);
    member.extend(crc32(&header).to_le_bytes());
    member.extend(20u32.to_le_bytes());
    std::fs::write(&gzipped, member).unwrap();
    [plain, gzipped]
}

fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xedb8_8320 },
        )
    }) ^ u32::MAX
}

#[test]
fn a_header_that_promises_billions_of_records_takes_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    for path in promises(folder.path()) {
        let dataset = Arc::new(anyrec::open(&path).unwrap());
        let count = dataset.len().unwrap();
        assert_eq!(count, u64::from(u32::MAX));
        let (outcome, peak) =
            peak_of(|| dataset.numbers(0..count).and_then(|numbers| dataset.read_batch(&numbers)));
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), error.record()), (ErrorKind::Corrupt, Some(0)), "{error}");
        assert!(peak < 1 << 20, "{peak}");
        for on_error in [OnError::Raise, OnError::Skip] {
            let mut settings = PlanOptions::default();
            settings.batch_size = 1 << 31;
            let mut options = LoaderOptions::default();
            options.on_error = on_error;
            let plan = Plan::new(count, &settings).unwrap();
            let mut loader = Loader::new(dataset.clone(), plan, options).unwrap();
            assert_eq!(loader.next_batch().unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }
}

#[test]
fn a_range_is_missing_from_its_first_missing_record_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut-idx1-ubyte");
    std::fs::write(&path, [&[0, 0, 8, 1, 0, 0, 0, 9][..], b"abcd"].concat()).unwrap();
    let dataset = anyrec::open(&path).unwrap();
    assert_eq!(
        dataset.numbers(0..4).and_then(|numbers| dataset.read_batch(&numbers)).unwrap().buffer(),
        b"abcd"
    );
    assert_eq!(
        dataset.numbers(2..9).and_then(|numbers| dataset.read_batch(&numbers)).unwrap_err().record(),
        Some(4)
    );
    dataset.check_range(&(0..4)).unwrap();
    dataset.check_range(&(9..9)).unwrap();
}

#[test]
fn data_over_the_memory_that_was_allowed_is_over_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    for path in files(folder.path()) {
        for (road, read) in ROADS {
            let mut limited = options(Access::Auto);
            limited.limits = Limits::default();
            limited.limits.hold_at_most(SIZE as u64 - 1);
            let error = read(&path, &limited).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit, "{} {road}: {error}", path.display());
        }
    }
    // Two records fit, and a batch of all does not.
    let dataset_of = |bytes: u64| {
        let mut limited = options(Access::Auto);
        limited.limits.hold_at_most(bytes);
        Dataset::open(&[folder.path().join("a.ffr")], &limited).unwrap()
    };
    let dataset = dataset_of(SIZE as u64 * 2);
    assert_eq!(dataset.read_batch(&[0, 1]).unwrap().len(), 2);
    assert_eq!(
        dataset.numbers(0..RECORDS).and_then(|numbers| dataset.read_batch(&numbers)).unwrap_err().kind(),
        ErrorKind::Limit
    );
}
