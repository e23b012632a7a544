//! Scanning on several threads gives what scanning on one does.

use crate::conformance::{golden_files, options_for};
use anyrec::convert::{ConvertOptions, convert};
use anyrec::format::{Event, FORMATS, Format, OpenOptions, Scan, WriteOptions, grail};
use anyrec::io::{MemorySource, Source, Window};
use anyrec::{ErrorKind, RecordFile};
use anyrec::{Tags, format};
use std::path::Path;
use std::sync::Arc;

/// All events of a scan in words, `records` records after the beginning, and where they end.
fn events(scan: &mut dyn Scan, records: &mut u64, end: &mut u64) -> Result<Vec<String>, anyrec::Error> {
    let (mut all, before) = (Vec::new(), *records);
    loop {
        let event = scan.next_event()?;
        match &event {
            Event::Record(record) => {
                *records += 1;
                *end = (*end).max(record.span.end);
            }
            Event::Metadata(metadata) => *end = (*end).max(metadata.span.end),
            Event::Damage(damage) => *end = (*end).max(damage.end),
            Event::End => return Ok(all),
            _ => {}
        }
        all.push(match event {
            Event::Damage(mut damage) => {
                damage.record += before;
                format!("{damage:?}")
            }
            event => format!("{event:?}"),
        });
    }
}

/// What became of cutting a file.
#[derive(Default)]
struct Tally {
    joined: u64,
    gaps: u64,
    /// Not scanned to the end, not cut.
    given_up: u64,
    whole: u64,
}

fn compare(format: &dyn Format, data: Vec<u8>, options: &OpenOptions, what: &str, tally: &mut Tally) {
    let source: Arc<dyn Source> = Arc::new(MemorySource::new("memory", data));
    let whole = |mut scan: Box<dyn Scan>| events(&mut *scan, &mut 0, &mut 0);
    let Ok(expected) = format.scan(Window::new(source.clone()), options).and_then(whole) else {
        tally.given_up += 1;
        return;
    };
    for size in [1, 1000, 33_000, 100_000] {
        let Some(parts) = format.segments(&source, options, size).unwrap() else {
            tally.whole += 1;
            continue;
        };
        let begins = parts.begins().to_vec();
        let (mut found, mut records, mut joined) = (Vec::new(), 0, true);
        for part in 0..begins.len() {
            let mut end = begins[part];
            found.extend(events(&mut *parts.scan(part).unwrap(), &mut records, &mut end).unwrap());
            joined &= begins.get(part + 1).is_none_or(|&begin| begin == end);
        }
        if joined {
            assert_eq!(found, expected, "{what} in parts of {size} bytes at {begins:?}");
            tally.joined += u64::from(begins.len() > 1);
        } else {
            tally.gaps += 1;
        }
    }
}

#[test]
fn parts_that_join_give_the_events_of_the_whole() {
    let mut tally = Tally::default();
    for format in FORMATS {
        for path in golden_files(*format) {
            let data = std::fs::read(&path).unwrap();
            if data.len() > 2 << 20 {
                continue;
            }
            let options = options_for(&path);
            let name = path.display().to_string();
            compare(*format, data.clone(), &options, &name, &mut tally);
            for number in 0..24usize {
                let at = number * 7919 * 13 % data.len().max(1);
                let mut damaged = data.clone();
                let what = match number % 4 {
                    0 => {
                        damaged.truncate(at);
                        format!("{name} cut at {at}")
                    }
                    1 => {
                        damaged.extend_from_slice(&data);
                        format!("{name} twice")
                    }
                    _ => {
                        if let Some(byte) = damaged.get_mut(at) {
                            *byte ^= 0x10;
                        }
                        format!("{name} flipped at {at}")
                    }
                };
                compare(*format, damaged, &options, &what, &mut tally);
            }
        }
    }
    // Both ways must have come up, or this test shows nothing.
    assert!(tally.joined > 500, "{} files were cut", tally.joined);
    assert!(tally.gaps > 0, "no part ended early");
    assert!(tally.whole > 0, "no file is left whole");
    assert_eq!(tally.given_up, 0, "scans gave up");
}

/// 60 MB of records of changing sizes.
fn make_large(path: &Path, format: &str, transformers: &[&str]) {
    let mut options = WriteOptions::default();
    if !transformers.is_empty() {
        let mut own = grail::WriteOptions::default();
        own.transformers = transformers.iter().map(|name| (*name).into()).collect();
        options = options.with(own);
    }
    let mut writer = format::by_id(format).unwrap().create(path, &options).unwrap();
    let mut record = Vec::new();
    for number in 0..1200u32 {
        record.clear();
        record.extend((0..number % 100 * 1000).map(|at| ((at * number) >> 7).to_le_bytes()[0]));
        writer.append(&record, &Tags::none()).unwrap();
    }
    writer.finish().unwrap();
}

fn with_threads(threads: usize) -> OpenOptions {
    let mut options = OpenOptions::default();
    options.threads = threads;
    options
}

#[test]
fn verify_and_convert_do_not_depend_on_the_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let kinds: [(&str, &[&str]); 4] =
        [("ffrecord", &[]), ("grail", &[]), ("grail", &["zstd"]), ("mxnet", &[])];
    for (number, (format, transformers)) in kinds.into_iter().enumerate() {
        let path = folder.path().join(format!("{number}.{}", format::by_id(format).unwrap().extensions()[0]));
        make_large(&path, format, transformers);
        for damaged in [false, true] {
            if damaged {
                let mut data = std::fs::read(&path).unwrap();
                let middle = data.len() / 2;
                data[middle..middle + 300].fill(0x55);
                let end = data.len() - 100;
                data[end] ^= 1;
                std::fs::write(&path, data).unwrap();
            }
            let verified = |threads| {
                let mut offsets = Vec::new();
                let input = RecordFile::open(&path, &with_threads(threads)).unwrap();
                let report =
                    anyrec::verify_file(input, &with_threads(threads), &mut |offset| offsets.push(offset));
                let report = report.unwrap();
                assert!(offsets.is_sorted() && offsets.last() == Some(&report.bytes));
                assert_eq!(report.is_sound(), !damaged || format == "mxnet" && report.damage.is_empty());
                format!("{report:?}")
            };
            assert_eq!(verified(1), verified(3), "{path:?}");
            let converted = |threads: usize| {
                let output = folder.path().join(format!("out-{threads}.ffr"));
                let mut options = ConvertOptions::default();
                options.open = with_threads(threads);
                options.open.skip_damage = true;
                options.write.overwrite = true;
                let to = format::by_id("ffrecord").unwrap();
                let input = RecordFile::open(&path, &options.open).unwrap();
                let done = convert(vec![input], &output, to, &options, &mut |_| {}).unwrap();
                (std::fs::read(output).unwrap(), done.records, done.skipped)
            };
            assert!(converted(1) == converted(3), "{path:?}");
        }
    }
}

#[test]
fn trailer_in_the_middle_of_a_file_ends_it_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("joined.grail-rio");
    make_large(&path, "grail", &[]);
    let tail = std::fs::read(&path).unwrap();
    let trailer = crate::manifest::golden("grail").join("v2_trailer_small.grail-rio");
    let mut data = std::fs::read(trailer).unwrap();
    data.extend_from_slice(&tail);
    std::fs::write(&path, data).unwrap();
    let reports = [1, 3].map(|threads| anyrec::verify(&path, &with_threads(threads)).unwrap());
    assert!(reports[0].damage[0].reason.contains("follow the trailer"), "{:?}", reports[0].damage);
    assert_eq!(format!("{:?}", reports[0]), format!("{:?}", reports[1]));
    let to = format::by_id("ffrecord").unwrap();
    let failures = [1, 3].map(|threads| {
        let mut options = ConvertOptions::default();
        options.open = with_threads(threads);
        let input = RecordFile::open(&path, &options.open).unwrap();
        let error =
            convert(vec![input], &folder.path().join("out.ffr"), to, &options, &mut |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        error.to_string()
    });
    assert_eq!(failures[0], failures[1]);
}
