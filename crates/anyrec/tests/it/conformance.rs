//! What holds for every format, on every golden file.

use crate::manifest::golden;
use anyrec::Tags;
use anyrec::format::{FORMATS, Format, OpenOptions, grail};
use anyrec::io::{Access, MemorySource, Window, open_file};
use anyrec::testkit::{FaultySource, Walk, WalkError, check_reader, walk};
use anyrec::{ErrorKind, PositionList};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options under which every golden file of a format opens.
pub fn options() -> OpenOptions {
    OpenOptions::default().with(grail::OpenOptions::default().with_registry(crate::golden_grail::registry()))
}

/// A format's golden record files (not its index files, lists and notes).
pub fn golden_files(format: &dyn Format) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![golden(format.id())];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !["json", "idx", "lst", "txt"]
                .iter()
                .any(|other| path.extension().is_some_and(|e| e == *other))
            {
                files.push(path);
            }
        }
    }
    files.sort();
    assert!(files.len() > 10, "{} golden files of {}", files.len(), format.id());
    files
}

/// Walks a golden file, which must be sound.
pub fn walk_file(format: &dyn Format, path: &Path) -> Walk {
    let source = open_file(path, Access::Auto).unwrap();
    let walked = walk(format, Window::new(source), &options_for(path))
        .unwrap_or_else(|error| panic!("{path:?}: {error}"));
    assert_eq!(walked.damage, [], "{path:?}");
    walked
}

/// [`options`], with what only the name tells about a file that is looked at without its name.
pub fn options_for(path: &Path) -> OpenOptions {
    let mut options = options();
    if path.extension().is_some_and(|extension| extension == "grail-rpk-gz") {
        let own: grail::OpenOptions = options.own();
        options.set(own.with_legacy_transform(grail::Transform::flate()));
    }
    options
}

fn for_every_golden(check: impl Fn(&'static dyn Format, &Path)) {
    for format in FORMATS {
        for path in golden_files(*format) {
            check(*format, &path);
        }
    }
}

#[test]
fn every_golden_is_detected_by_content_alone() {
    for_every_golden(|format, path| {
        let data = std::fs::read(path).unwrap();
        let head = &data[..data.len().min(anyrec::format::HEAD)];
        match anyrec::format::detect(head, Some(data.len() as u64)) {
            Some(found) => assert_eq!(found.id(), format.id(), "{path:?}"),
            None => assert!(data.is_empty(), "{path:?} is not recognised"),
        }
        let source = open_file(path, Access::Auto).unwrap();
        assert_eq!(anyrec::format::identify(&*source, None).unwrap().id(), format.id(), "{path:?}");
    });
}

#[test]
fn memory_file_and_stream_scan_alike() {
    let streamed = std::cell::Cell::new(0);
    for_every_golden(|format, path| {
        let options = options_for(path);
        let mapped = walk_file(format, path);
        let positional = open_file(path, Access::Positional).unwrap();
        assert_eq!(walk(format, Window::new(positional), &options).unwrap(), mapped, "{path:?}");
        if format.capabilities().streamable {
            let file = std::fs::File::open(path).unwrap();
            let stream = walk(format, Window::from_stream("stream", file), &options).unwrap();
            assert_eq!(stream, mapped, "{path:?}");
            streamed.set(streamed.get() + 1);
        }
    });
    assert!(streamed.get() > 100, "{} streams", streamed.get());
}

#[test]
fn readers_agree_with_the_scan() {
    for_every_golden(|format, path| {
        let walked = walk_file(format, path);
        for access in [Access::Mapped, Access::Positional] {
            let source = open_file(path, access).unwrap();
            let reader = format.open(source, &options_for(path)).unwrap();
            check_reader(&*reader, &walked).unwrap_or_else(|error| panic!("{path:?} ({access:?}): {error}"));
        }
    });
}

#[test]
fn positions_known_beforehand_give_the_same_records() {
    for_every_golden(|format, path| {
        let walked = walk_file(format, path);
        let mut positions = PositionList::new();
        for record in &walked.records {
            positions.push(record.position).unwrap();
        }
        let mut options = options_for(path);
        options.positions = Some(Arc::new(positions));
        let reader = format.open(open_file(path, Access::Auto).unwrap(), &options).unwrap();
        check_reader(&*reader, &walked).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    });
}

#[test]
fn datasets_iterate_the_same_records_as_they_index() {
    for_every_golden(|format, path| {
        let mut options = options_for(path);
        options.format = Some(format);
        let dataset = anyrec::Dataset::open(&[path], &options).unwrap();
        let iterated: Vec<_> = dataset.iter().map(|record| record.unwrap()).collect();
        assert_eq!(iterated.len() as u64, dataset.len().unwrap(), "{path:?}");
        for (index, record) in iterated.iter().enumerate() {
            assert_eq!(dataset.read(index as u64).unwrap(), *record);
            dataset.tags(index as u64).unwrap();
        }
    });
}

#[test]
fn a_failing_disk_is_an_error_and_never_damage() {
    let failed = std::cell::Cell::new(0);
    for_every_golden(|format, path| {
        let data = std::fs::read(path).unwrap();
        let options = options_for(path);
        let whole = Arc::new(FaultySource::new(data.clone(), u64::MAX));
        let sound = walk(format, Window::new(whole.clone()), &options).unwrap();
        assert_eq!(sound.damage, []);
        for fail_at in 0..whole.reads().min(20) {
            let faulty = Arc::new(FaultySource::new(data.clone(), fail_at));
            let error = walk(format, Window::new(faulty), &options).unwrap_err();
            let WalkError::Scan(error) = error else { panic!("{path:?}: {error}") };
            assert_eq!(error.kind(), ErrorKind::Io, "{path:?}: {error}");
        }
        let empty = data.is_empty();
        let read =
            format.open(Arc::new(FaultySource::new(data, 0)), &options).and_then(|reader| reader.read(0));
        let Err(error) = read else { panic!("{path:?}: a record off a broken disk") };
        assert!(error.kind() == ErrorKind::Io || empty, "{path:?}: {error}");
        failed.set(failed.get() + 1);
    });
    assert!(failed.get() > 100, "{} files", failed.get());
}

#[test]
fn an_unfinished_writer_leaves_nothing() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("x.{}", format.extensions()[0]));
        let mut writer = format.create(&path, &Default::default()).unwrap();
        writer.append(b"record", &Tags::none()).unwrap();
        drop(writer);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{}", format.id());
    }
}

#[test]
fn written_records_read_back_through_every_road() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("a name with spaces.{}", format.extensions()[0]));
        let sizes = if format.capabilities().fixed_size {
            vec![7; 100]
        } else {
            (0..300).chain([70_000, 0]).collect::<Vec<usize>>()
        };
        let records: Vec<Vec<u8>> = sizes
            .iter()
            .enumerate()
            .map(|(i, &size)| (0..size).map(|j| (i * 31 + j) as u8).collect())
            .collect();
        let mut writer = format.create(&path, &Default::default()).unwrap();
        for (index, record) in records.iter().enumerate() {
            assert_eq!(writer.append(record, &Tags::none()).unwrap(), index as u64);
        }
        let written = writer.finish().unwrap();
        assert_eq!(written.records, records.len() as u64);
        assert_eq!(written.bytes, std::fs::metadata(&path).unwrap().len(), "{}", format.id());
        let walked = walk_file(*format, &path);
        assert!(
            walked.data().iter().zip(&records).all(|(a, b)| a == b) && walked.records.len() == records.len()
        );
        let again = format.create(&path, &Default::default());
        assert_eq!(again.err().unwrap().kind(), ErrorKind::Exists);
    }
}

#[test]
fn a_file_cut_short_while_open_is_an_error() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("x.{}", format.extensions()[0]));
        let mut writer = format.create(&path, &Default::default()).unwrap();
        for _ in 0..100 {
            writer.append(&[7; 1000], &Tags::none()).unwrap();
        }
        writer.finish().unwrap();
        let dataset = anyrec::open(&path).unwrap();
        assert_eq!(dataset.len().unwrap(), 100);
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(5000).unwrap();
        let error = dataset.read_batch(&[99]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{}", format.id());
        assert!(error.to_string().contains("cut short"), "{error}");
    }
}

#[test]
fn unknown_files_are_named_for_what_they_are() {
    let source = MemorySource::new("page", b"<!DOCTYPE html><html>404</html>".to_vec());
    let error = anyrec::format::identify(&source, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("HTML"), "{error}");
}
