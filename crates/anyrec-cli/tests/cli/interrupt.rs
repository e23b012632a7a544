//! Ctrl-C leaves nothing half-written.

use crate::session::{Session, golden, names_in};
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn interrupt(child: &Child) {
    // SAFETY: sends a signal to a child that was not waited for yet, so the number is its own.
    let answer = unsafe { libc::kill(i32::try_from(child.id()).unwrap(), libc::SIGINT) };
    assert_eq!(answer, 0);
}

#[test]
fn interrupted_conversion_leaves_the_old_file_and_no_other() {
    for (arguments, output) in [
        (&["convert", "-", "out.ffr"][..], "out.ffr"),
        (&["convert", "--force", "-", "old.ffr"], "old.ffr"),
        (&["convert", "--force", "--transformer", "zstd", "-", "old.grail-rio"], "old.grail-rio"),
    ] {
        let session = Session::new();
        session.write("old.ffr", "old");
        session.write("old.grail-rio", "old");
        let mut child = session.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        // As much as shows that it is at work; it goes on waiting for more.
        let record = std::fs::read(golden("mxnet/img_png.rec")).unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut sent = 0;
        while sent < 8 << 20 {
            stdin.write_all(&record).unwrap();
            sent += record.len();
        }
        assert!(child.try_wait().unwrap().is_none(), "{output} was given up early");
        interrupt(&child);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(session.files(), ["old.ffr", "old.grail-rio"]);
        assert_eq!(session.read("old.ffr"), b"old");
        assert_eq!(session.read("old.grail-rio"), b"old");
    }
}

#[test]
fn interrupted_demonstration_removes_its_folder() {
    let session = Session::new();
    let temporary = session.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut child = session
        .command(&["demo", "--pictures", "20000"])
        .env("TMPDIR", &temporary)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while names_in(&temporary).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no folder was made");
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(names_in(&temporary), [""; 0]);
}

#[test]
fn interrupt_while_files_get_their_names_leaves_no_hidden_file() {
    let session = Session::new();
    std::fs::copy(golden("mxnet/indexed_int.rec"), session.path("in.rec")).unwrap();
    std::fs::copy(golden("mxnet/indexed_int.idx"), session.path("in.idx")).unwrap();
    let mut interrupted = 0;
    for round in 0..150 {
        let mut child = session
            .command(&["convert", "in.rec", "out.rec", "--force", "--shards", "4"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // From before it begins until after it has ended.
        std::thread::sleep(Duration::from_micros(round * 200));
        interrupt(&child);
        interrupted += u64::from(child.wait().unwrap().code() != Some(0));
        let hidden: Vec<String> = session.files().into_iter().filter(|name| name.starts_with('.')).collect();
        assert_eq!(hidden, [""; 0], "round {round}");
    }
    assert!(interrupted > 10, "only {interrupted} were interrupted");
}
