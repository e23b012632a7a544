//! Standard input, pipes that close, terminals.

use crate::session::{Session, golden, text};
use insta::assert_snapshot;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Stdio;

#[test]
fn streamable_formats_are_read_from_standard_input() {
    let mut session = Session::new();
    for file in [
        "mxnet/im2rec_pass.rec",
        "grail/legacy_unpacked.grail-rio",
        "grail/v2_flush.grail-rio",
        "ffrecord/n1.ffr",
        "idx/public-idx3-int",
    ] {
        for line in ["info -", "verify -", "ls -"] {
            let mut command = session.command(&line.split(' ').collect::<Vec<_>>());
            let output = command.stdin(File::open(golden(file)).unwrap()).output().unwrap();
            session.note(&format!("{line} < {}", file.split_once('/').unwrap().1), &output);
        }
    }
    let stdin = || File::open(golden("grail/v2_flush.grail-rio")).unwrap();
    for line in ["convert - out.rec", "cat - 0", "ls - 0", "cat -"] {
        let output = session.command(&line.split(' ').collect::<Vec<_>>()).stdin(stdin()).output().unwrap();
        session.note(&format!("{line} < v2_flush.grail-rio"), &output);
    }
    assert_snapshot!(session.transcript());
}

#[test]
fn pipe_that_closes_ends_the_command_quietly() {
    let session = Session::with(&["ffrecord/n1000.ffr"]);
    // More than a pipe holds, so that the writer meets the closed end.
    let many = vec!["n1000.ffr"; 2000];
    let mut lines: Vec<Vec<&str>> = vec![vec!["ls", "--sha256", "n1000.ffr"], vec!["cat", "n1000.ffr"]];
    lines.push([&["verify"][..], &many].concat());
    lines.push([&["info"][..], &many[..400]].concat());
    lines.push(vec!["completions", "bash"]);
    for line in lines {
        let mut child = session.command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut first = [0];
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(text(&output.stderr), "", "{}", line[0]);
        assert_eq!(output.status.code(), Some(0), "{}", line[0]);
    }
}

/// Runs a command whose standard output and error are a terminal; gives what appears there.
fn on_terminal(session: &Session, arguments: &[&str]) -> (String, Option<i32>) {
    let (mut master, mut slave) = (0, 0);
    // SAFETY: both descriptors are written by the call, and the optional arguments may be null.
    let answer = unsafe {
        libc::openpty(&mut master, &mut slave, std::ptr::null_mut(), std::ptr::null(), std::ptr::null())
    };
    assert_eq!(answer, 0);
    // SAFETY: the call succeeded, so both are open and nobody else's.
    let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    let mut command = session.command(arguments);
    command.env("TERM", "xterm").stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = command.spawn().unwrap();
    // The command's copies of the terminal must close for the reading to end.
    drop(command);
    let mut seen = Vec::new();
    let mut master = File::from(master);
    let mut piece = [0; 4096];
    // At the end a terminal gives an error instead of nothing.
    while let Ok(count @ 1..) = master.read(&mut piece) {
        seen.extend_from_slice(&piece[..count]);
    }
    (text(&seen).replace('\r', ""), child.wait().unwrap().code())
}

#[test]
fn binary_is_not_sent_to_a_terminal() {
    let session = Session::with(&["mxnet/img_png.rec", "grail/v2_flush.grail-rio"]);
    let (seen, code) = on_terminal(&session, &["cat", "img_png.rec", "0"]);
    assert_eq!(code, Some(2));
    assert!(seen.contains("the record is binary and would garble the terminal"), "{seen}");
    assert!(!seen.contains("PNG"), "{seen}");
    let (seen, code) = on_terminal(&session, &["cat", "img_png.rec", "0", "--force"]);
    assert_eq!(code, Some(0));
    assert!(seen.contains("bytes that are not text"), "{seen}");
    let (seen, code) = on_terminal(&session, &["cat", "v2_flush.grail-rio", "0"]);
    assert_eq!((seen.is_empty(), code), (false, Some(0)));
}

#[test]
fn terminals_get_colours_and_progress_that_vanishes() {
    let session = Session::with(&["ffrecord/n1000.ffr"]);
    let (seen, code) = on_terminal(&session, &["verify", "n1000.ffr"]);
    assert_eq!(code, Some(0));
    assert!(seen.contains("␛[1m␛[32msound␛[0m"), "{seen:?}");
    let (seen, _) = on_terminal(&session, &["--color", "never", "verify", "n1000.ffr"]);
    assert!(!seen.contains("[32m"), "{seen:?}");
}

#[test]
fn escape_sequences_in_records_keys_and_names_do_not_reach_the_terminal() {
    let mut session = Session::new();
    let evil = "\x1b]0;owned\x07\x1b[2J";
    session.write(&format!("{evil}.rec"), std::fs::read(golden("mxnet/indexed_str.rec")).unwrap());
    session.write(&format!("{evil}.idx"), format!("{evil}\t0\n"));
    session.write(&format!("{evil}.txt"), evil);
    for line in ["info", "ls", "verify", "convert"] {
        for ending in ["rec", "txt"] {
            let name = format!("{evil}.{ending}");
            let mut arguments = vec![line, "--color", "never", &name];
            if line == "convert" {
                arguments.push("out.ffr");
            }
            let output = session.command(&arguments).output().unwrap();
            let shown = [output.stdout.as_slice(), &output.stderr].concat();
            assert!(!shown.contains(&0x1b) && !shown.contains(&7), "{line}: {}", text(&shown));
            session.note(&format!("{line} EVIL.{ending}"), &output);
        }
    }
    assert_snapshot!(session.transcript());
}

#[test]
fn input_that_ends_early_is_damage() {
    let session = Session::new();
    let data = std::fs::read(golden("mxnet/im2rec_pass.rec")).unwrap();
    let mut child =
        session.command(&["verify", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&data[..data.len() - 10]).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).starts_with("damage stdin:"), "{}", text(&output.stdout));
}

#[test]
fn standard_output_and_pipes_are_written_to_where_the_format_can_be_streamed() {
    let mut session = Session::with(&["mxnet/img_png.rec", "mxnet/indexed_int.rec", "mxnet/indexed_int.idx"]);
    session.run("convert img_png.rec out.grail-rio");
    let output =
        session.command(&["convert", "img_png.rec", "/dev/stdout", "--to", "grail"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(output.stdout, session.read("out.grail-rio"));
    assert!(text(&output.stderr).starts_with("wrote"), "{}", text(&output.stderr));
    // A file that standard output is appended to is written to, not replaced.
    session.write("log", "before ");
    let log = File::options().append(true).open(session.path("log")).unwrap();
    let status = session
        .command(&["convert", "img_png.rec", "/dev/stdout", "--to", "grail", "--force"])
        .stdout(log)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(session.read("log"), [b"before ", session.read("out.grail-rio").as_slice()].concat());
    // Keys have no place to go to, and other formats cannot be written this way.
    for line in [
        "convert indexed_int.rec /dev/null --to mxnet",
        "convert img_png.rec /dev/null --to ffrecord --force",
    ] {
        session.run(line);
    }
    assert_snapshot!(session.transcript());
}
