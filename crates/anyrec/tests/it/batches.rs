//! Many records at once: the same as one by one, however they are read.

use anyrec::Tags;
use anyrec::format::{OpenOptions, WriteOptions, grail};
use anyrec::io::Access;
use anyrec::{Batch, Dataset, ErrorKind};
use std::path::{Path, PathBuf};

const ACCESSES: [Access; 3] = [Access::Mapped, Access::Positional, Access::Direct];

/// Records of many sizes: none, small, larger than what one thread takes at a time. Every fourth
/// holds the word that MXNet cuts records at.
fn record(number: u64) -> Vec<u8> {
    let size = match number % 7 {
        0 => 0,
        1 => 300_000 + number,
        _ => number * 37 % 900,
    };
    let mut record: Vec<u8> = (0..size).map(|at| (at * 31 + number * 17).to_le_bytes()[0]).collect();
    if number % 4 == 2 {
        record.extend_from_slice(&[0; 4]);
        record.resize(record.len().next_multiple_of(4), 0);
        record.extend_from_slice(&0xced7_230a_u32.to_le_bytes());
        record.extend_from_slice(b"behind it");
    }
    record
}

/// A file of `numbers` records, on a file system that takes direct reads.
fn write(folder: &Path, name: &str, numbers: std::ops::Range<u64>) -> PathBuf {
    let path = folder.join(name);
    let format = anyrec::format::by_name(&path).unwrap();
    let mut options = WriteOptions::default();
    if format.id() == "grail" {
        let own = grail::WriteOptions::default().with_transformer(grail::Transform::zstd_level(1));
        options = options.with(own.with_max_items(5));
    }
    let mut writer = format.create(&path, &options).unwrap();
    for number in numbers {
        writer.append(&record(number), &Tags::none()).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn with_access(access: Access, threads: usize) -> OpenOptions {
    let mut options = OpenOptions::default();
    (options.access, options.threads) = (access, threads);
    options
}

#[test]
fn batches_are_what_single_reads_are_in_any_way_of_reading() {
    let folder = folder();
    for name in ["a.ffr", "a.rec", "a.grail-rio"] {
        let one = write(folder.path(), name, 0..60);
        let other = write(folder.path(), &format!("b{name}"), 60..85);
        // Out of order, with repeats, across both files.
        let indices: Vec<u64> = (0..300).map(|i| i * 7919 % 85).chain([84, 84, 0, 1, 1]).collect();
        let wanted: Batch =
            indices.iter().map(|&i| record(i)).collect::<Vec<_>>().iter().map(Vec::as_slice).collect();
        for access in ACCESSES {
            for threads in [1, 2, 7] {
                let dataset = Dataset::open(&[&one, &other], &with_access(access, threads)).unwrap();
                assert_eq!(dataset.read_batch(&indices).unwrap(), wanted, "{name} {access:?} {threads}");
                // Into memory that held something else.
                let mut batch: Batch = [&[7; 9_000_000][..]].into_iter().collect();
                dataset.read_batch_into(&indices, &mut batch).unwrap();
                assert_eq!(batch, wanted);
                let mut buffer = vec![9; wanted.buffer().len() + 3];
                assert_eq!(dataset.read_into(&indices, &mut buffer).unwrap(), wanted.offsets());
                assert_eq!(&buffer[..wanted.buffer().len()], wanted.buffer());
                assert_eq!(buffer[wanted.buffer().len()..], [9; 3]);
                let lent = dataset.lend(&indices).unwrap();
                assert!(lent.iter().zip(wanted.iter()).all(|(lent, wanted)| lent == wanted));
                assert_eq!(lent.len(), indices.len());
            }
        }
    }
}

#[test]
fn a_buffer_that_is_too_small_is_refused_untouched() {
    let folder = folder();
    let dataset = anyrec::open(write(folder.path(), "a.ffr", 0..20)).unwrap();
    let mut buffer = vec![9; 10];
    let error = dataset.read_into(&[1, 2], &mut buffer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(buffer, [9; 10]);
}

#[test]
fn sequential_batches_hold_all_records_in_order() {
    let folder = folder();
    for name in ["a.ffr", "a.rec", "a.grail-rio"] {
        let files = [write(folder.path(), name, 0..60), write(folder.path(), &format!("b{name}"), 60..85)];
        for access in ACCESSES {
            for size in [1, 7, 60, 200] {
                let dataset = Dataset::open(&files, &with_access(access, 2)).unwrap();
                let mut records = dataset.iter();
                let mut batch = Batch::new();
                let mut next = 0;
                loop {
                    records.fill(&mut batch, size, usize::MAX).unwrap();
                    if batch.is_empty() {
                        break;
                    }
                    for found in batch.iter() {
                        assert_eq!(found, record(next), "{name} {access:?} {size}: {next}");
                        next += 1;
                    }
                }
                assert_eq!(next, 85);
            }
        }
    }
}

#[test]
fn damage_in_a_batch_names_its_record_and_sequential_batches_go_on_behind_it() {
    let folder = folder();
    let path = write(folder.path(), "a.ffr", 0..60);
    let offset = usize::try_from(anyrec::open(&path).unwrap().position(36).unwrap().frame).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[offset] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    for access in ACCESSES {
        let dataset = Dataset::open(&[&path], &with_access(access, 2)).unwrap();
        let mut batch: Batch = [&b"old"[..]].into_iter().collect();
        let indices: Vec<u64> = (0..60).rev().collect();
        for error in
            [dataset.read_batch_into(&indices, &mut batch).unwrap_err(), dataset.lend(&indices).unwrap_err()]
        {
            assert_eq!((error.kind(), error.record()), (ErrorKind::Corrupt, Some(36)), "{error}");
            assert_eq!(error.offset(), Some(offset as u64));
        }
        assert!(batch.is_empty());

        let mut records = dataset.iter();
        let (mut found, mut errors) = (Vec::new(), Vec::new());
        for _ in 0..60 {
            match records.fill(&mut batch, 10, usize::MAX) {
                Ok(()) if batch.is_empty() => break,
                Ok(()) => found.extend(batch.iter().map(<[u8]>::to_vec)),
                Err(_) => errors.push(found.len()),
            }
        }
        assert_eq!(errors, [36]);
        let intact: Vec<Vec<u8>> = (0..60).filter(|&number| number != 36).map(record).collect();
        assert!(found == intact);
    }
}

#[test]
fn a_mapped_file_that_was_cut_short_after_opening_is_an_error_once_and_no_crash() {
    let folder = folder();
    for name in ["a.rec", "a.ffr", "a.grail-rio"] {
        let path = write(folder.path(), name, 0..60);
        let dataset = Dataset::open(&[&path], &with_access(Access::Mapped, 1)).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(70_000).unwrap();
        let mut records = dataset.iter().skip_while(Result::is_ok);
        assert_eq!(records.next().unwrap().unwrap_err().kind(), ErrorKind::Corrupt, "{name}");
        assert!(records.next().is_none());
        // Counting a `.rec` or GRAIL file takes a scan, too.
        assert_eq!(dataset.read_batch(&[50]).unwrap_err().kind(), ErrorKind::Corrupt, "{name}");
    }
}

#[test]
fn batches_of_a_damaged_file_hold_what_single_steps_give_errors_included() {
    /// A record, or an error's words.
    type Step = Result<Vec<u8>, String>;
    let in_steps = |dataset: &Dataset| -> Vec<Step> {
        dataset.iter().map(|step| step.map(Vec::from).map_err(|error| error.to_string())).collect()
    };
    let in_batches = |dataset: &Dataset, size: usize| -> Vec<Step> {
        let (mut records, mut batch, mut steps) = (dataset.iter(), Batch::new(), Vec::new());
        loop {
            match records.fill(&mut batch, size, 2000) {
                Ok(()) if batch.is_empty() => return steps,
                Ok(()) => steps.extend(batch.iter().map(|record| Ok(record.to_vec()))),
                Err(error) => steps.push(Err(error.to_string())),
            }
        }
    };
    let folder = folder();
    let (mut compared, mut unopened) = (0, 0);
    // A small file, and one that is read block by block: 6 MB, in records of up to 120 KB.
    let files = [(40, 9, 600, 97), (100, 1_200, 0, 250_007)];
    let names = ["a.rec", "a.ffr", "a.grail-rio"].into_iter();
    for (name, (count, growth, first, step)) in names.flat_map(|name| files.map(|file| (name, file))) {
        let path = folder.path().join(name);
        let _ = std::fs::remove_file(&path);
        let mut writer = anyrec::create(&path).unwrap();
        for number in 0..count {
            writer.append(&vec![number; 60 + growth * usize::from(number)], &Tags::none()).unwrap();
        }
        writer.finish().unwrap();
        let intact = std::fs::read(&path).unwrap();
        let places = (0..first).chain((first..intact.len()).step_by(step));
        for place in places.filter(|&place| place < intact.len()) {
            let mut damaged = intact.clone();
            damaged[place] ^= 1 << (place % 8);
            std::fs::write(&path, damaged).unwrap();
            for skip_damage in [false, true] {
                let mut options = with_access(Access::Mapped, 1);
                options.skip_damage = skip_damage;
                let Ok(dataset) = Dataset::open(&[&path], &options) else {
                    unopened += 1;
                    continue;
                };
                compared += 1;
                let expected = in_steps(&dataset);
                assert!(in_batches(&dataset, 7) == expected, "{name}: byte {place}");
                assert!(in_batches(&dataset, 1000) == expected, "{name}: byte {place}");
            }
        }
    }
    assert!(compared > 1500 && unopened < compared, "{compared} files compared, {unopened} not opened");
}

#[test]
fn a_cold_file_gives_the_same_batch_and_the_same_error_as_a_warm_one() {
    let folder = folder();
    for name in ["a.ffr", "a.rec", "a.grail-rio"] {
        let path = write(folder.path(), name, 0..60);
        let indices: Vec<u64> = (0..60).rev().chain([3, 3]).collect();
        let dataset = Dataset::open(&[&path], &with_access(Access::Mapped, 2)).unwrap();
        let mut batch = Batch::new();
        for _ in 0..2 {
            drop_from_cache(&path);
            dataset.read_batch_into(&indices, &mut batch).unwrap();
            assert!(batch.iter().eq(indices.iter().map(|&number| record(number))), "{name}");
        }
    }
    // Two damaged records: the error is that of the first in the caller's order, not in the file's.
    let path = write(folder.path(), "b.ffr", 0..60);
    let dataset = anyrec::open(&path).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    for number in [17, 45] {
        bytes[usize::try_from(dataset.position(number).unwrap().frame).unwrap()] ^= 1;
    }
    std::fs::write(&path, bytes).unwrap();
    let dataset = Dataset::open(&[&path], &with_access(Access::Mapped, 1)).unwrap();
    drop_from_cache(&path);
    let error = dataset.read_batch(&(0..60).rev().collect::<Vec<_>>()).unwrap_err();
    assert_eq!(error.record(), Some(45));
}

/// Takes the file's pages out of the system's cache, where the system does that for us.
fn drop_from_cache(path: &Path) {
    use std::os::fd::AsRawFd;
    let file = std::fs::File::open(path).unwrap();
    file.sync_all().unwrap();
    // SAFETY: the descriptor is open; the call only advises.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}
