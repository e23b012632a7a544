//! InsightFace sets in all their layouts, written here.

use super::open;
use anyrec::ErrorKind;
use anyrec::format::mxnet::{
    self, ImageHeader, IndexFile, InsightFace, KeySource, LabelWidth, Property, Writer,
};
use anyrec::{Key, Label};
use std::path::PathBuf;

const JPEG: &[u8] = b"\xff\xd8\xff\xe0 not much of a face";

/// A set in a folder of its own: (key, labels, payload), in the order of writing.
fn set(
    records: &[(u64, &[f64], &[u8])],
    change: impl FnOnce(&mut mxnet::WriteOptions),
) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.rec");
    let options = super::write_options(change);
    let own: mxnet::WriteOptions = options.own();
    let width = if own.wide_labels { LabelWidth::Wide } else { LabelWidth::Narrow };
    let indexed = own.index_file != Some(IndexFile::None);
    let mut writer = Writer::create(&path, &options).unwrap();
    for (key, labels, payload) in records {
        let label = match labels {
            [label] => Label::Scalar(*label),
            labels => Label::Array(labels.to_vec()),
        };
        let record = ImageHeader::new(label, *key).pack(payload, width).unwrap();
        match indexed {
            true => writer.write_with_key(&Key::Int((*key).into()), &record).unwrap(),
            false => writer.write(&record).unwrap(),
        };
    }
    writer.finish().unwrap();
    (folder, path)
}

/// Two persons with two and one images, two labels an image; record 0 last.
const USUAL: [(u64, &[f64], &[u8]); 6] = [
    (1, &[0.0, 1.0], JPEG),
    (2, &[0.0, 0.0], JPEG),
    (3, &[1.0, 1.0], JPEG),
    (4, &[1.0, 3.0], b""),
    (5, &[3.0, 4.0], b""),
    (0, &[4.0, 6.0], b""),
];

fn check_usual(faces: &InsightFace<'_>) {
    assert!(faces.has_header());
    assert_eq!(faces.image_count(), 3);
    assert!(faces.image_keys().eq([1, 2, 3].map(Key::Int)));
    let identities: Vec<_> = faces.identities().map(|identity| identity.unwrap()).collect();
    assert_eq!(identities.iter().map(|identity| identity.images.clone()).collect::<Vec<_>>(), [1..3, 3..4]);
    assert_eq!(identities[1].key, 5);
    let image = faces.image(&Key::Int(3)).unwrap();
    assert_eq!((image.class(), &image.payload[..]), (Some(1), JPEG));
    assert_eq!(image.header.flag(), 2);
}

#[test]
fn a_set_with_its_header_last_is_read_by_keys() {
    let (folder, path) = set(&USUAL, |_| {});
    std::fs::write(folder.path().join("property"), "2,112,112\n").unwrap();
    let reader = open(&path);
    let faces = InsightFace::open(&reader).unwrap();
    check_usual(&faces);
    assert_eq!(faces.property(), Some(Property { classes: 2, height: 112, width: 112 }));
    assert_eq!(faces.property().unwrap().to_string(), "2,112,112");
    assert!(faces.notices().is_empty());
}

#[test]
fn a_set_without_its_index_file_is_read_by_the_ids_of_its_records() {
    let (_folder, path) = set(&USUAL, |options| options.index_file = Some(IndexFile::None));
    let reader = open(&path);
    let rebuilt =
        anyrec::format::mxnet::Index::rebuild(&mut reader.scan_from(0).unwrap(), &mut |_| {}).unwrap();
    assert_eq!(rebuilt.key_source, KeySource::ImageIds);
    assert_eq!(rebuilt.index.key(5), Some(Key::Int(0)));
    let faces = InsightFace::open(&reader).unwrap();
    check_usual(&faces);
    assert!(faces.notices()[0].message.contains("there is no index file"));
    assert_eq!(faces.image(&Key::Int(9)).unwrap_err().kind(), ErrorKind::OutOfRange);
}

#[test]
fn equal_ids_make_a_rebuilt_index_count() {
    let (_folder, path) = set(&[(7, &[0.0], JPEG), (8, &[0.0], JPEG), (7, &[0.0], JPEG)], |options| {
        options.index_file = Some(IndexFile::None);
    });
    let rebuilt =
        anyrec::format::mxnet::Index::rebuild(&mut open(&path).scan_from(0).unwrap(), &mut |_| {}).unwrap();
    assert_eq!(rebuilt.key_source, KeySource::Ordinals);
    assert_eq!(rebuilt.reason, "keys are record numbers, as records 0 and 2 have the same id 7");
    assert!(rebuilt.index.keys().eq([0, 1, 2].map(Key::Int)));
}

#[test]
fn every_key_of_a_set_without_a_header_is_an_image() {
    // Two labels at key 0, but a payload too: an image, not a header.
    for first in [&[3.0][..], &[3.0, 1.0]] {
        let (_folder, path) = set(&[(0, first, JPEG), (1, &[4.0], JPEG)], |_| {});
        let reader = open(&path);
        let faces = InsightFace::open(&reader).unwrap();
        assert!(!faces.has_header());
        assert_eq!(faces.image_count(), 2);
        assert!(faces.image_keys().eq([0, 1].map(Key::Int)));
        assert_eq!(faces.identities().count(), 0);
        assert_eq!(faces.image(&Key::Int(0)).unwrap().class(), Some(3));
    }
}

#[test]
fn wide_labels_are_recognised() {
    let (_folder, path) = set(&[(0, &[16_777_217.0], JPEG)], |options| options.wide_labels = true);
    let reader = open(&path);
    let faces = InsightFace::open(&reader).unwrap();
    assert_eq!(faces.label_width(), LabelWidth::Wide);
    assert_eq!(faces.image(&Key::Int(0)).unwrap().class(), Some(16_777_217));
}

#[test]
fn nonsense_in_headers_is_an_error() {
    for labels in [&[0.0, 5.0][..], &[5.0, 4.0], &[1.5, 4.0]] {
        let (_folder, path) = set(&[(1, &[0.0], JPEG), (0, labels, b"")], |_| {});
        let error = InsightFace::open(&open(&path)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{labels:?}");
    }
    let (_folder, path) = set(&[(1, &[0.0], JPEG), (2, &[1.0, 9.0], b""), (0, &[2.0, 3.0], b"")], |_| {});
    let reader = open(&path);
    let error = InsightFace::open(&reader).unwrap().identity(2).unwrap_err();
    assert!(error.message().contains("identity 2"), "{error}");
}

#[test]
fn ranges_past_what_a_float_holds_are_told() {
    let (folder, path) = set(&[(0, &[16_777_300.0, 16_777_400.0], b"")], |_| {});
    std::fs::write(folder.path().join("property"), "7,112,112").unwrap();
    let reader = open(&path);
    let faces = InsightFace::open(&reader).unwrap();
    assert_eq!(faces.notices().len(), 2);
    assert!(faces.notices()[0].message.contains("over 2^24"));
    assert!(faces.notices()[1].message.contains("7 classes, but there are 100 identities"));
    assert!(Property::parse("property", b"1,2").is_err());
}
