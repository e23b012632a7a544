//! A data file and its index file are replaced together, and an index file is trusted with no other
//! data than its own.

use anyrec::Key;
use anyrec::format::mxnet::{self, IndexFile, Reader, Writer};
use anyrec::format::{OpenOptions, WriteOptions};
use anyrec::io::{Access, finish_interrupted, open_file};
use anyrec::{ErrorKind, verify};
use std::path::{Path, PathBuf};

fn options(overwrite: bool, index_file: Option<IndexFile>) -> WriteOptions {
    let mut own = mxnet::WriteOptions::default();
    own.index_file = index_file;
    WriteOptions::default().with_overwrite(overwrite).with(own)
}

/// Three records under these keys; all files have the same offsets.
fn start(path: &Path, word: &str, keys: [i128; 3]) -> Writer {
    let mut writer = Writer::create(path, &options(true, None)).unwrap();
    for key in keys {
        writer.write_with_key(&Key::Int(key), format!("{word} {key}").as_bytes()).unwrap();
    }
    writer
}

fn pair() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    start(&path, "old", [1, 2, 3]).finish().unwrap();
    (folder, path)
}

fn open(path: &Path) -> anyrec::Result<Reader> {
    Reader::open(open_file(path, Access::Auto)?, &OpenOptions::default())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn data_written_without_keys_over_data_with_an_index_file_removes_that() {
    for index_file in [None, Some(IndexFile::None)] {
        let (folder, path) = pair();
        let mut writer = Writer::create(&path, &options(true, index_file)).unwrap();
        writer.write(b"new 1").unwrap();
        let written = writer.finish().unwrap();
        assert_eq!(names(folder.path()), ["x.rec"]);
        assert!(written.notices[0].message.contains("x.idx was removed"), "{:?}", written.notices);
    }
}

#[test]
fn index_file_that_somebody_else_writes_meanwhile_stays() {
    let (folder, path) = pair();
    let index = path.with_extension("idx");
    let mut writer = Writer::create(&path, &options(true, Some(IndexFile::None))).unwrap();
    writer.write(b"new 1").unwrap();
    std::fs::write(&index, "1\t0\n").unwrap();
    writer.finish().unwrap();
    assert_eq!(names(folder.path()), ["x.idx", "x.rec"]);
    assert_eq!(open(&path).unwrap().by_key(&Key::Int(1)).unwrap(), "new 1");
}

#[test]
fn no_data_is_put_beside_an_index_file_that_may_not_be_replaced() {
    let (_folder, path) = pair();
    std::fs::remove_file(&path).unwrap();
    for index_file in [None, Some(IndexFile::None), Some(IndexFile::Beside)] {
        let refused = Writer::create(&path, &options(false, index_file)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Exists, "{refused}");
    }
}

#[test]
fn idx_file_that_is_no_index_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    let images = path.with_extension("idx");
    std::fs::write(&images, b"\0\0\x08\x01\0\0\0\x02ab").unwrap();
    let mut writer = Writer::create(&path, &options(true, Some(IndexFile::None))).unwrap();
    writer.write(b"new").unwrap();
    writer.finish().unwrap();
    assert_eq!(std::fs::read(&images).unwrap(), b"\0\0\x08\x01\0\0\0\x02ab");
}

#[test]
fn replacement_that_fails_in_the_middle_is_said_and_can_be_finished() {
    let (folder, path) = pair();
    let index = path.with_extension("idx");
    let writer = start(&path, "new", [7, 8, 9]);
    // A folder cannot be removed as if it were a file.
    std::fs::remove_file(&index).unwrap();
    std::fs::create_dir(&index).unwrap();
    let failed = writer.finish().unwrap_err();
    assert!(failed.hint().unwrap().to_string().contains("finish_interrupted"), "{failed:#}");
    for refused in [open(&path).unwrap_err(), verify(&path, &OpenOptions::default()).unwrap_err()] {
        assert_eq!(refused.kind(), ErrorKind::Stale);
        assert_eq!(
            refused.message(),
            "the replacement of this file and those that belong to it was interrupted: \
             in place are none; still to come are x.rec, x.idx"
        );
        assert!(refused.hint().unwrap().to_string().contains("finish_interrupted"), "{refused:#}");
    }
    std::fs::remove_dir(&index).unwrap();
    assert!(finish_interrupted(&path).unwrap());
    assert!(!finish_interrupted(&path).unwrap());
    assert_eq!(names(folder.path()), ["x.idx", "x.rec"]);
    assert_eq!(open(&path).unwrap().by_key(&Key::Int(8)).unwrap(), "new 8");
}

#[test]
fn next_writer_finishes_what_another_left_in_the_middle() {
    let (folder, path) = pair();
    let index = path.with_extension("idx");
    let writer = start(&path, "new", [7, 8, 9]);
    std::fs::remove_file(&index).unwrap();
    std::fs::create_dir(&index).unwrap();
    writer.finish().unwrap_err();
    std::fs::remove_dir(&index).unwrap();
    start(&path, "newer", [4, 5, 6]).finish().unwrap();
    assert_eq!(names(folder.path()), ["x.idx", "x.rec"]);
    assert_eq!(open(&path).unwrap().by_key(&Key::Int(5)).unwrap(), "newer 5");
}

#[test]
fn marker_that_was_never_complete_changes_nothing() {
    let (folder, path) = pair();
    let before = names(folder.path());
    let writer = start(&path, "new", [7, 8, 9]);
    let index = path.with_extension("idx");
    let old_index = std::fs::read(&index).unwrap();
    std::fs::remove_file(&index).unwrap();
    std::fs::create_dir(&index).unwrap();
    writer.finish().unwrap_err();
    std::fs::remove_dir(&index).unwrap();
    std::fs::write(&index, old_index).unwrap();
    let marker = names(folder.path()).into_iter().find(|name| name.ends_with(".replacing")).unwrap();
    let marker = folder.path().join(marker);
    let text = std::fs::read(&marker).unwrap();
    for kept in 0..text.len() {
        std::fs::write(&marker, &text[..kept]).unwrap();
        assert_eq!(open(&path).unwrap().by_key(&Key::Int(2)).unwrap(), "old 2");
    }
    // Nor does one that leads out of its folder.
    std::fs::write(&marker, String::from_utf8(text).unwrap().replace("x.rec", "../x.rec")).unwrap();
    assert_eq!(open(&path).unwrap().by_key(&Key::Int(2)).unwrap(), "old 2");
    start(&path, "new", [7, 8, 9]).finish().unwrap();
    assert_eq!(names(folder.path()), before);
    assert_eq!(open(&path).unwrap().by_key(&Key::Int(8)).unwrap(), "new 8");
}

#[test]
fn marker_that_somebody_else_made_removes_and_replaces_nothing() {
    let (folder, path) = pair();
    let writer = start(&path, "new", [7, 8, 9]);
    let index = path.with_extension("idx");
    std::fs::remove_file(&index).unwrap();
    std::fs::create_dir(&index).unwrap();
    writer.finish().unwrap_err();
    std::fs::remove_dir(&index).unwrap();
    // As an archive would bring it along: the same names, other files.
    let other = tempfile::tempdir().unwrap();
    for name in names(folder.path()) {
        std::fs::copy(folder.path().join(&name), other.path().join(&name)).unwrap();
    }
    let (path, before) = (other.path().join("x.rec"), std::fs::read(&path).unwrap());
    assert_eq!(open(&path).unwrap_err().kind(), ErrorKind::Stale);
    let refused = finish_interrupted(&path).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(names(other.path()), names(folder.path()));
}

#[test]
fn index_file_of_newer_data_is_not_used_with_the_data_that_was_opened() {
    let (_folder, path) = pair();
    let reader = open(&path).unwrap();
    start(&path, "new", [3, 1, 2]).finish().unwrap();
    let refused = reader.by_key(&Key::Int(1)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Stale, "{refused}");
    assert_eq!(open(&path).unwrap().by_key(&Key::Int(1)).unwrap(), "new 1");
    assert!(reader.index().is_err());
}

#[test]
fn every_entry_of_an_index_file_is_verified() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    let mut writer = Writer::create(&path, &options(true, None)).unwrap();
    for key in 0..5000 {
        writer.write_with_key(&Key::Int(key), format!("record {key:04}").as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    let sound = std::fs::read_to_string(path.with_extension("idx")).unwrap();
    let check = |text: &str| {
        std::fs::write(path.with_extension("idx"), text).unwrap();
        let report = verify(&path, &OpenOptions::default()).unwrap();
        (report.is_sound(), report.notices.into_iter().map(|notice| notice.message).collect::<String>())
    };
    assert_eq!(check(&sound), (true, String::new()));
    let line = |key: usize| sound.lines().nth(key).unwrap().to_owned() + "\n";
    let (is_sound, notices) = check(&sound.replace(&line(3001), "3001\t4\n"));
    assert!(!is_sound && notices.contains("1 of 5000 offsets are not those of records"), "{notices}");
    let (is_sound, notices) = check(&sound.replace(&line(3001), ""));
    assert!(is_sound && notices.contains("leaves out 1 of 5000 records"), "{notices}");
    let (is_sound, notices) = check(&(sound.clone() + &line(3001)));
    assert!(is_sound && notices.contains("1 keys occur again"), "{notices}");
}
