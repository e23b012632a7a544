//! Writers killed at random moments: the final name holds the old file, the whole new one, or
//! nothing. A plain program, since the test starts itself again as the writer to be killed.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use anyrec::format::{FORMATS, Tags, WriteOptions};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const KILLS: u64 = 200;
const NEW_RECORDS: u64 = 300;
const OLD_RECORD: &[u8] = b"the old file's only record";
const CHILD: &str = "ANYREC_CRASH_CHILD";

fn main() {
    if let Ok(path) = std::env::var(CHILD) {
        let id = std::env::var("ANYREC_CRASH_FORMAT").unwrap();
        write_for_ever(&id, Path::new(&path));
    }
    let mut passed = 0;
    for format in FORMATS {
        kill_writers(format.id());
        println!("test killed_{}_writers_leave_old_or_new_or_nothing ... ok", format.id());
        passed += 1;
    }
    println!("\ntest result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
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
