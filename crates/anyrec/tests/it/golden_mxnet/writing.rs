//! Writing: round trips, index files, image headers, and what is refused.

use super::{open, scan, tags_of, write_options, written};
use anyrec::ErrorKind;
use anyrec::format::mxnet::{FORMAT, ImageHeader, IndexFile, LabelWidth, MAX_RECORD, Writer};
use anyrec::format::{Format, OpenOptions, RecordReader, WriteOptions, Written, idx};
use anyrec::{Key, Label, Tags};
use proptest::prelude::*;
use std::path::Path;

const JPEG: &[u8] = b"\xff\xd8\xff\xe0 pixels";

fn write_tagged(path: &Path, options: &WriteOptions, records: &[(&[u8], Tags)]) -> Written {
    let mut writer = FORMAT.create(path, options).unwrap();
    for (number, (record, tags)) in (0..).zip(records) {
        assert_eq!(writer.append(record, tags).unwrap(), number);
    }
    writer.finish().unwrap()
}

fn keyed(key: i128) -> Tags {
    Tags::none().with_key(Key::Int(key))
}

#[test]
fn an_index_file_is_written_when_asked_for_or_when_there_are_keys() {
    let plain: &[(&[u8], Tags)] = &[(b"a", Tags::none()), (b"b", Tags::none())];
    let mixed: &[(&[u8], Tags)] = &[(b"a", Tags::none()), (b"b", keyed(9))];
    for (setting, records, expected, notices) in [
        (None, plain, None, 0),
        (None, mixed, Some("9\t12\n"), 1),
        (Some(IndexFile::Beside), plain, Some("0\t0\n1\t12\n"), 0),
        (Some(IndexFile::Beside), mixed, Some("0\t0\n9\t12\n"), 0),
        (Some(IndexFile::None), mixed, None, 1),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.rec");
        let options = write_options(|options| options.index_file = setting.clone());
        let written = write_tagged(&path, &options, records);
        assert_eq!((written.records, written.bytes, written.notices.len()), (2, 24, notices), "{setting:?}");
        let index = std::fs::read_to_string(path.with_extension("idx")).ok();
        assert_eq!(index.as_deref(), expected, "{setting:?}");
    }
}

#[test]
fn a_label_puts_an_image_header_in_front() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    let label = Label::Array(vec![1.0, 0.5]);
    let records: &[(&[u8], Tags)] =
        &[(JPEG, keyed(40).with_label(Label::Scalar(3.0))), (JPEG, Tags::none().with_label(label.clone()))];
    write_tagged(&path, &WriteOptions::default(), records);
    let reader = open(&path);
    let record = reader.read(0).unwrap();
    let (header, payload) = ImageHeader::unpack(&record, LabelWidth::Narrow).unwrap();
    assert_eq!((header, payload), (ImageHeader::new(Label::Scalar(3.0), 40), JPEG));
    let record = reader.read(1).unwrap();
    assert_eq!(ImageHeader::unpack(&record, LabelWidth::Narrow).unwrap().0, ImageHeader::new(label, 1));
}

#[test]
fn a_record_that_has_its_header_already_gets_no_second_one() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("1.rec"), folder.path().join("2.rec"));
    let records: &[(&[u8], Tags)] = &[(JPEG, keyed(4).with_label(Label::Scalar(3.0)))];
    write_tagged(&first, &WriteOptions::default(), records);
    let reader = open(&first);
    let copied: &[(&[u8], Tags)] = &[(&reader.read(0).unwrap(), tags_of(&reader, 0))];
    write_tagged(&second, &WriteOptions::default(), copied);
    assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
}

#[test]
fn payloads_come_back_from_a_file_of_labels_however_they_look() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    let inner = ImageHeader::new(Label::Scalar(3.0), 0).pack(b"inside", LabelWidth::Narrow).unwrap();
    let payloads: [&[u8]; 4] = [&inner, b"", &[0; 50], JPEG];
    let label = |number: usize| match number {
        0 => Tags::none().with_label(Label::Scalar(3.0)),
        1 => Tags::none().with_label(Label::Scalar(0.0)),
        // In a file with labels, these get a header too.
        _ => Tags::none(),
    };
    let records: Vec<(&[u8], Tags)> =
        payloads.iter().enumerate().map(|(at, &one)| (one, label(at))).collect();
    write_tagged(&path, &WriteOptions::default(), &records);
    let dataset = anyrec::open(&path).unwrap();
    for (index, payload) in payloads.iter().enumerate() {
        let record = dataset.read(index as u64).unwrap();
        assert_eq!(dataset.payload_of(index as u64, &record).unwrap(), *payload);
    }
    assert!(dataset.iter().with_payloads().map(Result::unwrap).eq(payloads.iter().copied()));
    let mut batch = anyrec::Batch::new();
    dataset.iter().with_payloads().fill(&mut batch, 9, usize::MAX).unwrap();
    assert!(batch.iter().eq(payloads.iter().copied()));
    let set: &dyn anyrec::RecordSet = &dataset;
    let mut batch = dataset.read_batch(&[3, 0]).unwrap();
    set.strip(&[3, 0], &mut batch).unwrap();
    assert!(batch.iter().eq([JPEG, &inner]));
    assert!(matches!(dataset.tags(2).unwrap().label, Some(Label::Scalar(label)) if label.is_nan()));
}

#[test]
fn a_label_after_records_without_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = anyrec::create(folder.path().join("x.rec")).unwrap();
    writer.append(b"first", &Tags::none()).unwrap();
    let error = writer.append(b"second", &Tags::none().with_label(Label::Scalar(1.0))).unwrap_err();
    assert_eq!((error.kind(), error.record()), (ErrorKind::Invalid, Some(1)));
    writer.append(b"third", &Tags::none()).unwrap();
    assert_eq!(writer.finish().unwrap().records, 2);
}

#[test]
fn wide_labels_are_written_on_request_and_need_no_warning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    let records: &[(&[u8], Tags)] = &[(JPEG, keyed(16_777_217).with_label(Label::Scalar(16_777_217.0)))];
    let narrow = write_tagged(&path, &WriteOptions::default(), records);
    let messages: Vec<_> = narrow.notices.iter().map(|notice| notice.message.as_str()).collect();
    assert_eq!(messages.len(), 2);
    assert!(
        messages[0].starts_with("1 labels are rounded") && messages[0].ends_with("(the first is 16777217)")
    );
    assert!(messages[1].starts_with("1 ids are over 2^24"));
    assert_eq!(tags_of(&open(&path), 0).label, Some(Label::Scalar(16_777_216.0)));

    let wide = write_options(|options| options.wide_labels = true).with_overwrite(true);
    assert!(write_tagged(&path, &wide, records).notices.is_empty());
    assert_eq!(tags_of(&open(&path), 0).label, Some(Label::Scalar(16_777_217.0)));
}

#[test]
fn what_cannot_be_written_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
    let too_long = vec![0; usize::try_from(MAX_RECORD).unwrap() + 1];
    let error = writer.write(&too_long).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.message().contains("RecordIO only accept record less than 2^29 bytes"), "{error}");
    assert_eq!(writer.tell(), 0);
    assert_eq!(writer.write_with_key(&Key::Text("a\tb".into()), b"").unwrap_err().kind(), ErrorKind::Invalid);
    let negative = keyed(-1).with_label(Label::Scalar(0.0));
    let error = anyrec::format::RecordWriter::append(&mut writer, b"x", &negative).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!((writer.tell(), writer.count()), (0, 0));
    drop(writer);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    let gzip = idx::WriteOptions::default().with_gzip(true);
    let gzip = WriteOptions::default().with(gzip);
    assert_eq!(Writer::create(&path, &gzip).unwrap_err().kind(), ErrorKind::Invalid);
    let same = write_options(|options| options.index_file = Some(IndexFile::At(path.clone())));
    assert_eq!(Writer::create(&path, &same).unwrap_err().kind(), ErrorKind::Invalid);
    let no_index = write_options(|options| options.index_file = Some(IndexFile::None));
    let mut writer = Writer::create(&path, &no_index).unwrap();
    assert_eq!(writer.write_with_key(&Key::Int(1), b"").unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn existing_files_are_kept_unless_overwriting_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    std::fs::write(path.with_extension("idx"), "0\t0\n").unwrap();
    let refused = Writer::create(&path, &WriteOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Exists);
    assert!(refused.to_string().contains("would be taken for the index of"), "{refused}");
    std::fs::remove_file(path.with_extension("idx")).unwrap();
    let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
    writer.write(b"").unwrap();
    writer.finish().unwrap();
    assert_eq!(Writer::create(&path, &WriteOptions::default()).unwrap_err().kind(), ErrorKind::Exists);
}

/// Bytes in which the magic is frequent, whole or in part, aligned or not.
fn tricky() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        3 => Just(vec![0x0a, 0x23, 0xd7, 0xce]),
        1 => Just(vec![0x0a, 0x23]),
        2 => prop::collection::vec(any::<u8>(), 0..9),
        1 => Just(vec![0; 4]),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn records_come_back(records in prop::collection::vec(tricky(), 0..12)) {
        let slices: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        let found = scan(&written(&slices));
        prop_assert_eq!(found.records, records);
        prop_assert!(found.damage.is_empty() && found.notices.is_empty());
    }

    #[test]
    fn any_bytes_scan_and_agree_with_the_reader(pieces in prop::collection::vec(tricky(), 0..8)) {
        let data = pieces.concat();
        let found = scan(&data);
        let lenient = OpenOptions::default().with_skip_damage(true);
        let reader = FORMAT.open(super::memory(&data), &lenient).unwrap();
        prop_assert_eq!(reader.count().unwrap(), found.records.len() as u64);
        for (number, record) in (0..).zip(&found.records) {
            prop_assert_eq!(&reader.read(number).unwrap()[..], &record[..]);
        }
    }
}
