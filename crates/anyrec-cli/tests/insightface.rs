//! An InsightFace training set from end to end: made as its authors make it, looked at, unpacked,
//! its lost index file made again.
#![allow(clippy::unwrap_used, clippy::panic)]

mod tool;

use anyrec::format::WriteOptions;
use anyrec::format::mxnet::{ImageHeader, LabelWidth, Writer};
use anyrec::{Key, Label};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tool::anyrec;

/// Images of three persons: how many each has.
const PERSONS: [u64; 3] = [3, 1, 2];

/// How a set is made.
#[derive(Clone, Copy)]
struct Variant {
    /// Images have two labels, `[person, aligned]`.
    two_labels: bool,
    /// With record 0 and the persons' records behind the images.
    header: bool,
}

/// Bytes that begin like a JPEG.
fn face(key: u64) -> Vec<u8> {
    [&b"\xff\xd8\xff\xe0"[..], format!("face of key {key}").as_bytes()].concat()
}

/// Writes `train.rec`, `train.idx` and `property`.
fn make(folder: &Path, variant: Variant) -> PathBuf {
    let path = folder.join("train.rec");
    let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
    let mut add = |key: u64, label: Label, payload: &[u8]| {
        let record = ImageHeader::new(label, key).pack(payload, LabelWidth::Narrow).unwrap();
        writer.write_with_key(&Key::Int(key.into()), &record).unwrap();
    };
    let number = |number: u64| f64::from(u32::try_from(number).unwrap());
    let mut key = 1;
    let mut ranges = Vec::new();
    for (person, images) in (0..).zip(PERSONS) {
        ranges.push((key, key + images));
        for _ in 0..images {
            let label = match variant.two_labels {
                true => Label::Array(vec![number(person), 1.0]),
                false => Label::Scalar(number(person)),
            };
            add(key, label, &face(key));
            key += 1;
        }
    }
    if variant.header {
        let images_end = key;
        for (first, last) in ranges {
            add(key, Label::Array(vec![number(first), number(last)]), b"");
            key += 1;
        }
        add(0, Label::Array(vec![number(images_end), number(key)]), b"");
    }
    writer.finish().unwrap();
    std::fs::write(folder.join("property"), "3,112,112\n").unwrap();
    path
}

fn set(variant: Variant) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), variant);
    (folder, path)
}

/// Every file below a folder with its content, by name.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for person in std::fs::read_dir(folder).unwrap() {
        let person = person.unwrap();
        for file in std::fs::read_dir(person.path()).unwrap() {
            let file = file.unwrap();
            let name = [person.file_name(), file.file_name()].map(|name| name.into_string().unwrap());
            found.push((name.join("/"), std::fs::read(file.path()).unwrap()));
        }
    }
    found.sort();
    found
}

fn expected() -> Vec<(String, Vec<u8>)> {
    [(0, 1), (0, 2), (0, 3), (1, 4), (2, 5), (2, 6)]
        .map(|(person, key)| (format!("{person}/{key}.jpg"), face(key)))
        .to_vec()
}

const VARIANTS: [Variant; 4] = [
    Variant { two_labels: false, header: true },
    Variant { two_labels: true, header: true },
    Variant { two_labels: false, header: false },
    Variant { two_labels: true, header: false },
];

#[test]
fn every_variant_unpacks_to_one_folder_a_person() {
    for variant in VARIANTS {
        let (folder, path) = set(variant);
        let target = folder.path().join("out of the set");
        let ran = anyrec(&[&"unpack", &path, &target]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.starts_with("wrote  6 files in 3 folders ("), "{}", ran.stdout);
        assert_eq!(ran.stderr.contains("4 records hold only labels"), variant.header, "{}", ran.stderr);
        assert_eq!(files(&target), expected());
    }
}

#[test]
fn a_set_without_its_index_file_unpacks_the_same() {
    let (folder, path) = set(VARIANTS[1]);
    std::fs::remove_file(path.with_extension("idx")).unwrap();
    let target = folder.path().join("out");
    let ran = anyrec(&[&"unpack", &path, &target]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("there is no index file"), "{}", ran.stderr);
    assert_eq!(files(&target), expected());
}

#[test]
fn info_says_what_the_set_is() {
    for (variant, says) in [
        (VARIANTS[0], "InsightFace  6 images of 3 identities, 3 classes of 112x112 in `property`\n"),
        (VARIANTS[1], "InsightFace  6 images of 3 identities, 3 classes of 112x112 in `property`\n"),
        (
            VARIANTS[2],
            "InsightFace  6 images, no header record: every key is an image, 3 classes of 112x112 in `property`\n",
        ),
    ] {
        let (_folder, path) = set(variant);
        let ran = anyrec(&[&"info", &path]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.contains(says), "{}", ran.stdout);
        assert!(ran.stdout.contains("6 records labelled, 3 classes"), "{}", ran.stdout);
    }
}

#[test]
fn a_lost_index_file_is_made_again_to_the_byte() {
    for variant in VARIANTS {
        let (_folder, path) = set(variant);
        let index = path.with_extension("idx");
        let before = std::fs::read(&index).unwrap();
        assert_eq!(anyrec(&[&"index", &path]).code, Some(2), "an index file that is there is kept");
        std::fs::remove_file(&index).unwrap();
        let ran = anyrec(&[&"index", &path]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("keys are the ids of the image headers"), "{}", ran.stderr);
        assert_eq!(std::fs::read(&index).unwrap(), before);
    }
}

#[test]
fn damage_stops_unpacking_unless_it_may_be_skipped() {
    let (folder, path) = set(VARIANTS[0]);
    let mut bytes = std::fs::read(&path).unwrap();
    // The magic of the second record.
    let index = std::fs::read_to_string(path.with_extension("idx")).unwrap();
    let offset: usize = index.lines().nth(1).unwrap().split('\t').nth(1).unwrap().parse().unwrap();
    bytes[offset] ^= 0xff;
    std::fs::write(&path, bytes).unwrap();
    let ran = anyrec(&[&"unpack", &path, &folder.path().join("strict")]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("hint: `anyrec verify"), "{}", ran.stderr);
    let target = folder.path().join("lenient");
    let ran = anyrec(&[&"unpack", &"--skip-damage", &path, &target]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("wrote  5 files in 3 folders"), "{}", ran.stdout);
    assert!(ran.stderr.contains("skipped: "), "{}", ran.stderr);
    let intact: Vec<_> = expected().into_iter().filter(|(name, _)| name != "0/2.jpg").collect();
    assert_eq!(files(&target), intact);
}

#[test]
fn labels_that_contradict_the_identity_records_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.rec");
    let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
    for (key, label, payload) in [
        (1u64, Label::Scalar(0.0), &b"\xff\xd8\xff one"[..]),
        (2, Label::Scalar(5.0), b"\xff\xd8\xff two"),
        (3, Label::Array(vec![1.0, 3.0]), b""),
        (0, Label::Array(vec![3.0, 4.0]), b""),
    ] {
        let record = ImageHeader::new(label, key).pack(payload, LabelWidth::Narrow).unwrap();
        writer.write_with_key(&Key::Int(key.into()), &record).unwrap();
    }
    writer.finish().unwrap();
    let target = folder.path().join("out");
    let ran = anyrec(&[&"unpack", &path, &target]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("the labels of 1 images differ from the identity records"), "{}", ran.stderr);
    assert!(target.join("0/1.jpg").is_file() && target.join("5/2.jpg").is_file());
}
