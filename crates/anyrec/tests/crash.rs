//! Writers killed at random moments: the final name holds the old file, the whole new one, or
//! nothing. A plain program, since the test starts itself again as the writer to be killed.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use anyrec::convert::{ConvertOptions, Shards, convert};
use anyrec::format::{FORMATS, WriteOptions};
use anyrec::io::{Durability, finish_interrupted};
use anyrec::{Dataset, ErrorKind, RecordFile};
use anyrec::{Key, Tags};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const KILLS: u64 = 200;
const NEW_RECORDS: u64 = 300;
const OLD_RECORD: &[u8] = b"the old file's only record";
const CHILD: &str = "ANYREC_CRASH_CHILD";

fn main() {
    if let Ok(path) = std::env::var(CHILD) {
        let id = std::env::var("ANYREC_CRASH_FORMAT").unwrap();
        match std::env::var_os("ANYREC_CRASH_SET") {
            Some(_) => convert_for_ever(&id, Path::new(&path)),
            None => write_for_ever(&id, Path::new(&path)),
        }
    }
    let mut passed = 0;
    for format in FORMATS {
        kill_writers(format.id());
        println!("test killed_{}_writers_leave_old_or_new_or_nothing ... ok", format.id());
        passed += 1;
    }
    for id in ["mxnet", "ffrecord"] {
        kill_conversions(id);
        println!("test killed_{id}_conversions_leave_the_old_set_or_the_new_one ... ok");
        passed += 1;
    }
    println!("\ntest result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
}

/// Files that a conversion is cut into, and the generations that take turns in them.
const SHARDS: u64 = 3;
const SET_RECORDS: u64 = 30;
const SET_KILLS: u64 = 150;

/// The child: replaces a set of files by one of the next generation, over and over.
fn convert_for_ever(id: &str, folder: &Path) -> ! {
    for generation in 1.. {
        write_set(id, folder, generation);
    }
    unreachable!("generations do not end")
}

/// The records of each generation are as long as those of the others, so that an index file of one
/// would lead to records in all of them.
fn set_record(generation: u64, number: u64) -> Vec<u8> {
    format!("{generation:08} {number:08}").into_bytes().repeat(20)
}

/// Keys differ between generations, and are those of the records.
fn set_key(generation: u64, number: u64) -> Key {
    Key::Int((generation * 1_000_000 + (number * 7) % SET_RECORDS).into())
}

fn write_set(id: &str, folder: &Path, generation: u64) {
    let source = folder.join("source.rec");
    let mut options = WriteOptions::default();
    options.overwrite = true;
    // Nobody looks at the source after a kill.
    options.durability = Durability::Process;
    let mut writer = anyrec::format::mxnet::Writer::create(&source, &options).unwrap();
    for number in 0..SET_RECORDS {
        writer.write_with_key(&set_key(generation, number), &set_record(generation, number)).unwrap();
    }
    writer.finish().unwrap();
    let mut options = ConvertOptions::default();
    options.write.overwrite = true;
    options.shards = Shards::Count(SHARDS);
    let format = anyrec::format::by_id(id).unwrap();
    let output = folder.join(format!("set.{}", format.extensions()[0]));
    let input = RecordFile::open(&source, &options.open).unwrap();
    convert(vec![input], &output, format, &options, &mut |_| {}).unwrap();
}

fn kill_conversions(id: &str) {
    let (mut interrupted, mut replaced) = (0, 0);
    for round in 0..SET_KILLS {
        let folder = tempfile::tempdir().unwrap();
        write_set(id, folder.path(), 0);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(CHILD, folder.path())
            .env("ANYREC_CRASH_FORMAT", id)
            .env("ANYREC_CRASH_SET", "1")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(2000 + (round * 7919) % 40_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let extension = anyrec::format::by_id(id).unwrap().extensions()[0];
        let paths: Vec<PathBuf> = (0..SHARDS)
            .map(|shard| folder.path().join(format!("set-{shard:05}-of-{SHARDS:05}.{extension}")))
            .collect();
        // Even before anything is finished, a key leads to its own record or to an error.
        for path in paths.iter().filter(|path| path.with_extension("idx").exists()) {
            check_index(path);
        }
        let dataset = match Dataset::open(&paths, &Default::default()) {
            Ok(dataset) => dataset,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Stale, "{error}");
                interrupted += 1;
                assert!(paths.iter().any(|path| finish_interrupted(path).unwrap()), "{error}");
                Dataset::open(&paths, &Default::default()).unwrap()
            }
        };
        assert_eq!(dataset.len().unwrap(), SET_RECORDS);
        let generation: u64 = std::str::from_utf8(&dataset.read(0).unwrap()[..8]).unwrap().parse().unwrap();
        replaced += u64::from(generation > 0);
        for number in 0..SET_RECORDS {
            assert_eq!(dataset.read(number).unwrap(), set_record(generation, number), "round {round}");
            if id == "mxnet" {
                let found = dataset.find_key(&set_key(generation, number)).unwrap();
                assert_eq!(found, Some(number), "round {round}");
            }
        }
    }
    println!("{id}: {replaced} sets replaced, {interrupted} to be finished, after {SET_KILLS} kills");
    assert!(
        replaced > 0,
        "no set of {id} was replaced before its writer was killed: the test proves nothing"
    );
}

/// Looks at a data file and its index file as MXNet would, which knows nothing of markers.
fn check_index(path: &Path) {
    let data = std::fs::read(path).unwrap();
    let index = std::fs::read_to_string(path.with_extension("idx")).unwrap();
    for line in index.lines() {
        let (key, offset) = line.split_once('\t').unwrap();
        let (key, offset): (u64, usize) = (key.parse().unwrap(), offset.parse().unwrap());
        let record = std::str::from_utf8(&data[offset + 8..][..17]).unwrap();
        let (generation, number) = record.split_once(' ').unwrap();
        let (generation, number) = (generation.parse().unwrap(), number.parse().unwrap());
        assert_eq!(
            Key::Int(key.into()),
            set_key(generation, number),
            "{path:?} has an index that is not its own"
        );
    }
}

fn new_record(number: u64) -> Vec<u8> {
    // All of one size, as IDX wants it.
    format!("{number:08}").into_bytes().repeat(500)
}

/// The child: writes the same new file over and over until it is killed.
fn write_for_ever(id: &str, path: &Path) -> ! {
    let format = anyrec::format::by_id(id).unwrap();
    let mut options = WriteOptions::default();
    options.overwrite = true;
    loop {
        let mut writer = format.create(path, &options).unwrap();
        for number in 0..NEW_RECORDS {
            writer.append(&new_record(number), &Tags::none()).unwrap();
        }
        writer.finish().unwrap();
    }
}

fn kill_writers(id: &str) {
    let format = anyrec::format::by_id(id).unwrap();
    let mut outcomes = [0u64; 3];
    for round in 0..KILLS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("x.{}", format.extensions()[0]));
        let starts_with_old = round % 2 == 0;
        if starts_with_old {
            let mut writer = format.create(&path, &WriteOptions::default()).unwrap();
            writer.append(OLD_RECORD, &Tags::none()).unwrap();
            writer.finish().unwrap();
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(CHILD, &path)
            .env("ANYREC_CRASH_FORMAT", id)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Spread over the child's start, its first files and later ones.
        std::thread::sleep(Duration::from_micros(500 + (round * 7919) % 25_000));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert!(
            std::os::unix::process::ExitStatusExt::signal(&status) == Some(9),
            "the writer ended by itself: {status}"
        );
        outcomes[judge(id, &path, starts_with_old, round)] += 1;
    }
    println!("{id}: {} old, {} new, {} nothing after {KILLS} kills", outcomes[0], outcomes[1], outcomes[2]);
    assert!(outcomes[1] > 0, "no writer of {id} finished before it was killed: the test proves nothing");
}

fn judge(id: &str, path: &Path, started_with_old: bool, round: u64) -> usize {
    if !path.exists() {
        assert!(!started_with_old, "{id}: the old file is gone (round {round})");
        return 2;
    }
    let report = anyrec::verify(path, &Default::default()).unwrap();
    assert!(report.is_sound(), "{id}: {:?} (round {round})", report.damage);
    let dataset = anyrec::open(path).unwrap();
    if dataset.len().unwrap() == 1 {
        assert!(started_with_old);
        assert_eq!(&dataset.read(0).unwrap()[..], OLD_RECORD);
        return 0;
    }
    assert_eq!(dataset.len().unwrap(), NEW_RECORDS, "{id} (round {round})");
    for number in 0..NEW_RECORDS {
        assert_eq!(dataset.read(number).unwrap(), new_record(number));
    }
    1
}
