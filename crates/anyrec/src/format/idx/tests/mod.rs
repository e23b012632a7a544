//! What the format promises, one thing at a time. The golden files are read in `tests/it`.

use super::*;
use crate::base::{ElementType, ErrorKind, Label, Position, PositionList, Tags};
use crate::format::{Damage, Event, Integrity, Notice, WriteOptions};
use crate::io::{Access, open_file};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::ops::Range;

use crate::format::idx;

mod arrays;
mod gzip_files;
mod pairs;
mod writing;

fn own() -> idx::WriteOptions {
    idx::WriteOptions::default()
}

fn with(own: idx::WriteOptions) -> WriteOptions {
    WriteOptions::default().with(own)
}

#[derive(Debug, Default, PartialEq)]
struct Walk {
    records: Vec<(Position, Range<u64>, Integrity, Vec<u8>)>,
    damage: Vec<Damage>,
    notices: Vec<Notice>,
    end: u64,
}

/// Scans to the end; the events must follow each other without gaps.
fn walk_window(window: Window, options: &OpenOptions) -> Walk {
    let mut scan = FORMAT.scan(window, options).unwrap();
    let mut walk = Walk::default();
    let mut positions = PositionList::new();
    loop {
        let span = match scan.next_event().unwrap() {
            Event::Record(record) => {
                positions.push(record.position).unwrap();
                assert_eq!(record.position.item > 0, record.span.is_empty(), "{:?}", record.span);
                let data = record.data.to_vec();
                walk.records.push((record.position, record.span.clone(), record.integrity, data));
                record.span
            }
            Event::Metadata(metadata) => metadata.span,
            Event::Damage(damage) => {
                assert_eq!(damage.record, walk.records.len() as u64);
                walk.damage.push(damage.clone());
                damage.begin..damage.end
            }
            Event::Notice(notice) => {
                walk.notices.push(notice);
                continue;
            }
            Event::End => break,
        };
        assert_eq!(span.start, walk.end, "events follow each other");
        walk.end = span.end;
    }
    assert!(matches!(scan.next_event().unwrap(), Event::End));
    walk
}

/// Scans bytes as a source and as a stream, which must give the same; all bytes are covered.
fn walk(data: &[u8], options: &OpenOptions) -> Walk {
    let walked = walk_window(Window::new(source(data)), options);
    assert_eq!(walked.end, data.len() as u64, "every byte is accounted for");
    let stream = Window::from_stream("stream", std::io::Cursor::new(data.to_vec()));
    let streamed = walk_window(stream, options);
    assert_eq!(streamed.end, data.len() as u64);
    if options.verify || !is_gzip(data) {
        assert_eq!(streamed, walked);
    }
    walked
}

fn source(data: &[u8]) -> Arc<dyn Source> {
    Arc::new(MemorySource::new("memory", data.to_vec()))
}

fn open(data: &[u8], options: &OpenOptions) -> Reader {
    Reader::new(source(data), options).unwrap()
}

fn options(verify: bool, skip_damage: bool) -> OpenOptions {
    OpenOptions::default().with_verify(verify).with_skip_damage(skip_damage)
}

fn member(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Ten records of ten bytes, all different; header included.
fn plain() -> Vec<u8> {
    let mut file = Header::new(ElementType::U8, vec![10, 10]).unwrap().encode();
    file.extend((0..100u32).map(|at| (at * at % 251).to_be_bytes()[3]));
    file
}

fn record(file: &[u8], number: usize) -> &[u8] {
    &file[12 + 10 * number..][..10]
}

#[test]
fn names_in_use_are_recognised_and_index_files_are_not() {
    for name in [
        "train-images-idx3-ubyte",
        "train-images.idx3-ubyte",
        "train_images_idx3_ubyte",
        "t10k-labels-idx1-ubyte.gz",
        "emnist-letters-train-images-idx3-ubyte",
        "T10K-LABELS-IDX1-UBYTE.GZ",
        "x-idx3",
        "idx2-int",
        "a.b.idx1-double",
    ] {
        assert!(FORMAT.has_name(Path::new("some.folder").join(name).as_path()), "{name}");
    }
    for name in
        ["train.idx", "train.idx.gz", "x-idx", "x-idx3-word", "x-idx3-ubyte.zip", "midx3-ubyte", "x-idx300"]
    {
        assert!(!FORMAT.has_name(Path::new(name)), "{name}");
    }
}

#[test]
fn detection_weighs_header_and_length() {
    let file = plain();
    let length = file.len() as u64;
    assert_eq!(FORMAT.detect(&file, Some(length)), Likeness::Certain);
    assert_eq!(FORMAT.detect(&file[..20], Some(length)), Likeness::Certain);
    assert_eq!(FORMAT.detect(&file, None), Likeness::Certain);
    assert_eq!(FORMAT.detect(&file, Some(length + 1)), Likeness::Possible);
    assert_eq!(FORMAT.detect(&file[..7], Some(7)), Likeness::Possible);
    assert_eq!(FORMAT.detect(&[0, 0, 8, 3, 255, 255, 255, 255], None), Likeness::Possible);
    assert_eq!(FORMAT.detect(&[0, 0, 10, 0], Some(4)), Likeness::No);
    assert_eq!(FORMAT.detect(&[0; 64], Some(64)), Likeness::No);
    assert_eq!(FORMAT.detect(b"", Some(0)), Likeness::No);
    let gzip = member(&file);
    assert_eq!(FORMAT.detect(&gzip, Some(gzip.len() as u64)), Likeness::Certain);
    assert_eq!(FORMAT.detect(&member(b"text"), None), Likeness::No);
    assert_eq!(FORMAT.detect(&gzip[..8], None), Likeness::No);
}

#[test]
fn plain_elements_are_lent_where_the_file_is_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x-idx2-ubyte");
    std::fs::write(&path, plain()).unwrap();
    let source = open_file(&path, Access::Mapped).unwrap();
    let reader = Reader::new(source.clone(), &OpenOptions::default()).unwrap();
    let all = source.lendable().unwrap().as_ptr_range();
    assert!(all.contains(&reader.data().unwrap().as_ptr()));
    assert!(all.contains(&reader.view().unwrap().as_ptr()));
    assert_eq!(reader.view().unwrap().shape(), [10, 10]);
    let positional = Reader::open(&path, &OpenOptions::default().with_access(Access::Positional));
    assert_eq!(positional.unwrap().view().unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn missing_bytes_leave_the_whole_records_readable() {
    let file = plain();
    let cut = &file[..57];
    let reader = open(cut, &options(true, false));
    assert_eq!(reader.count().unwrap(), 10);
    assert_eq!(reader.read(3).unwrap(), record(&file, 3));
    let error = reader.read(4).unwrap_err();
    assert_eq!(
        error.to_string(),
        "memory: the file ends inside the array: expected 112 bytes, found 57 bytes (byte 52, record 4)"
    );
    assert!(error.hint().unwrap().to_string().contains("keeps the first 4 records"));
    assert_eq!(reader.array().unwrap_err().found(), Some("57 bytes"));
    assert_eq!(open(cut, &options(true, true)).count().unwrap(), 4);
    let walked = walk(cut, &OpenOptions::default());
    assert_eq!(walked.records.len(), 4);
    let reason = "the file ends inside the array: expected 100 bytes of elements, found 45".to_owned();
    assert_eq!(walked.damage, [Damage { begin: 52, end: 57, record: 4, reason }]);
}

#[test]
fn left_over_bytes_are_filler_and_a_notice() {
    let file = [plain(), vec![1, 2, 3]].concat();
    let walked = walk(&file, &OpenOptions::default());
    assert_eq!((walked.records.len(), walked.damage), (10, vec![]));
    assert_eq!(walked.notices, [Notice::at(112, "3 bytes lie behind the array and mean nothing")]);
    let gzip = member(&file);
    let walked = walk(&gzip, &OpenOptions::default());
    assert_eq!((walked.records.len(), walked.damage), (10, vec![]));
    assert_eq!(walked.notices, [Notice::new("3 bytes lie behind the array and mean nothing")]);
    let reader = open(&gzip, &OpenOptions::default());
    assert_eq!(reader.read(9).unwrap(), record(&file, 9));
    assert_eq!(reader.info().unwrap().notices, walked.notices);
    assert_eq!(reader.array_of::<u8>().unwrap().len(), 100);
}

#[test]
fn records_without_bytes_share_the_header_as_their_frame() {
    let file = Header::new(ElementType::F32, vec![3, 0, 7]).unwrap().encode();
    for (data, frame) in [(file.clone(), 4), (member(&file), 0)] {
        let walked = walk(&data, &OpenOptions::default());
        let positions: Vec<_> = walked.records.iter().map(|record| record.0).collect();
        assert_eq!(positions, [0, 1, 2].map(|item| Position { frame, item }));
        assert!(walked.records.iter().all(|record| record.3.is_empty()));
        let reader = open(&data, &OpenOptions::default());
        assert_eq!(reader.count().unwrap(), 3);
        assert_eq!(reader.locate(2).unwrap().position, positions[2]);
        assert_eq!(reader.read(2).unwrap(), b""[..]);
    }
}

#[test]
fn absurdly_many_empty_records_are_damage_but_an_array() {
    let file = Header::new(ElementType::U8, vec![1 << 31, 0]).unwrap().encode();
    for data in [file.clone(), member(&file)] {
        let walked = walk(&data, &OpenOptions::default());
        assert_eq!((walked.records.len(), walked.damage.len()), (0, 1));
        let reader = open(&data, &OpenOptions::default());
        assert_eq!(reader.count().unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(reader.array().unwrap().shape(), [1 << 31, 0]);
    }
}

#[test]
fn a_record_over_the_limit_is_an_error() {
    let mut options = OpenOptions::default();
    options.limits.record = 9;
    let error = open(&plain(), &options).read(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    let file = plain();
    let stream = Window::from_stream("stream", std::io::Cursor::new(file.clone()));
    for window in [Window::new(source(&file)), stream] {
        let mut scan = FORMAT.scan(window, &options).unwrap();
        assert!(matches!(scan.next_event().unwrap(), Event::Metadata(_)));
        assert_eq!(scan.next_event().unwrap_err().kind(), ErrorKind::Limit);
        assert!(matches!(scan.next_event().unwrap(), Event::End));
    }
}
