//! A stranger's format: its folder (`toy/`) and one line (`register`) are all it takes.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod toy;

use anyrec::convert::{ConvertOptions, convert};
use anyrec::format::{self, Format, OpenOptions};
use anyrec::loader::{Loader, LoaderOptions, OnError, Plan, PlanOptions, Shuffle};
use anyrec::testkit;
use anyrec::{Dataset, ErrorKind, IndexOptions, RecordFile, RepairOptions, Tags};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn record(number: u64) -> Vec<u8> {
    let size = (number * 37 % 500) as usize;
    (0..size).map(|at| (at as u64 * 7 + number).to_le_bytes()[0]).collect()
}

/// A file of 60 records; the line is the first.
fn file(folder: &Path) -> PathBuf {
    format::register(&toy::FORMAT);
    let path = folder.join("some.toy");
    let mut writer = anyrec::create(&path).unwrap();
    for number in 0..60 {
        writer.append(&record(number), &Tags::none()).unwrap();
    }
    assert_eq!(writer.finish().unwrap().records, 60);
    path
}

#[test]
fn threads_that_register_it_at_once_register_it_once() {
    let all_ready = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                all_ready.wait();
                format::register(&toy::FORMAT);
            });
        }
    });
    assert_eq!(format::formats().filter(|format| format.id() == "toy").count(), 1);
}

#[test]
fn it_is_found_by_name_content_and_id() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path());
    assert_eq!(format::named("toy").unwrap().name(), "Toy records");
    let renamed = folder.path().join("renamed");
    std::fs::rename(&path, &renamed).unwrap();
    assert_eq!(anyrec::open(&renamed).unwrap().format().id(), "toy");
}

#[test]
fn every_way_of_reading_agrees_with_its_scan() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(file(folder.path())).unwrap();
    for (place, end) in
        [(0, bytes.len()), (3, bytes.len()), (90, bytes.len()), (4000, bytes.len()), (0, 3000)]
    {
        let mut bytes = bytes[..end].to_vec();
        if place > 0 {
            bytes[place] ^= 4;
        }
        let sources = testkit::memory_sources(&bytes);
        testkit::compare(&toy::FORMAT, &sources, &OpenOptions::default(), true).unwrap();
    }
}

#[test]
fn records_are_read_loaded_verified_and_indexed() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path());
    let dataset = Arc::new(anyrec::open(&path).unwrap());
    let batch = dataset.read_batch(&[59, 0, 7, 7]).unwrap();
    assert!(batch.iter().eq([record(59), record(0), record(7), record(7)]));
    assert!(dataset.iter().map(Result::unwrap).eq((0..60).map(record)));
    assert!(anyrec::verify(&path, &OpenOptions::default()).unwrap().is_sound());
    assert_eq!(anyrec::index(&path, &IndexOptions::default(), &mut |_| {}).unwrap().records, 60);

    let mut options = PlanOptions::default();
    (options.batch_size, options.shuffle) = (7, Shuffle::Full);
    let plan = Plan::new(60, &options).unwrap();
    let mut loader = Loader::new(dataset, plan, LoaderOptions::default()).unwrap();
    let mut seen = 0;
    for batch in loader.batches() {
        let batch = batch.unwrap();
        for (number, found) in batch.indices.iter().zip(&batch.records) {
            assert_eq!(found, record(*number));
            seen += 1;
        }
    }
    assert_eq!(seen, 60);
}

#[test]
fn damage_is_an_error_with_its_place_is_skipped_by_the_loader_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path());
    let offset = usize::try_from(anyrec::open(&path).unwrap().position(20).unwrap().frame).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[offset + 9] ^= 1;
    std::fs::write(&path, bytes).unwrap();

    let report = anyrec::verify(&path, &OpenOptions::default()).unwrap();
    assert_eq!((report.records, report.damage.len()), (59, 1));
    let error = anyrec::open(&path).unwrap().read(3).unwrap_err();
    assert_eq!(
        (error.kind(), error.offset(), error.path()),
        (ErrorKind::Corrupt, Some(offset as u64), Some(&*path))
    );

    let skipping = OpenOptions::default().with_skip_damage(true);
    let dataset = Arc::new(Dataset::open(&[&path], &skipping).unwrap());
    let mut options = LoaderOptions::default();
    options.on_error = OnError::Skip;
    let plan = Plan::new(59, &PlanOptions::default()).unwrap();
    assert_eq!(Loader::new(dataset, plan, options).unwrap().batches().count(), 59);

    let repaired = folder.path().join("repaired.toy");
    anyrec::repair(&path, &repaired, &RepairOptions::default(), &mut |_| {}).unwrap();
    assert!(anyrec::verify(&repaired, &OpenOptions::default()).unwrap().is_sound());
}

#[test]
fn it_converts_to_every_format_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path());
    for to in format::FORMATS.iter().filter(|to| !to.capabilities().fixed_size) {
        let there = folder.path().join(format!("there.{}", to.extensions()[0]));
        let back = folder.path().join(format!("back-{}.toy", to.id()));
        let settings = ConvertOptions::default();
        for (from, output, to) in [(&path, &there, *to), (&there, &back, &toy::FORMAT as &'static dyn Format)]
        {
            let input = RecordFile::open(from, &settings.open).unwrap();
            convert(vec![input], output, to, &settings, &mut |_| {}).unwrap();
        }
        assert_eq!(std::fs::read(&back).unwrap(), std::fs::read(&path).unwrap(), "{}", to.id());
    }
}
