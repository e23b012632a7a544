//! Paths of every kind.

use crate::session::{Session, golden};
use insta::assert_snapshot;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

#[test]
fn directories_and_patterns_stand_for_their_files() {
    let mut session = Session::new();
    std::fs::create_dir(session.path("parts")).unwrap();
    std::fs::create_dir(session.path("empty")).unwrap();
    for number in 0..5 {
        let name = format!("PART_0000{number}.ffr");
        std::fs::copy(golden(&format!("ffrecord/dump5/{name}")), session.path("parts").join(name)).unwrap();
    }
    session.write("notes.txt", "not a record file");
    for line in [
        "verify parts",
        "verify parts/PART_0000[12].ffr",
        "ls parts/*3.ffr ..2",
        "ls parts 3..9",
        "convert parts joined.ffr",
        "verify empty",
        "verify nothing*.ffr",
        "verify nowhere.ffr",
        "verify nowhere.ffr parts",
        "convert parts",
    ] {
        session.run(line);
    }
    assert_snapshot!(session.transcript());
}

#[test]
fn names_with_spaces_and_without_a_character_set_work() {
    let mut session = Session::new();
    let odd = OsStr::from_bytes(b"caf\xe9 \xff.ffr").to_owned();
    std::fs::copy(golden("ffrecord/n1.ffr"), session.path(&odd)).unwrap();
    std::fs::copy(golden("ffrecord/n1.ffr"), session.path("two words.ffr")).unwrap();
    let fixed = OsStr::from_bytes(b"fixed \xff.ffr").to_owned();
    let runs: [(&str, Vec<OsString>); 6] = [
        ("info ODD", vec!["info".into(), odd.clone()]),
        ("verify ODD SPACED", vec!["verify".into(), odd.clone(), "two words.ffr".into()]),
        ("verify --json ODD", vec!["verify".into(), "--json".into(), odd.clone()]),
        ("repair ODD -o FIXED", vec!["repair".into(), odd.clone(), "-o".into(), fixed.clone()]),
        ("convert SPACED out dir/x", vec!["convert".into(), "two words.ffr".into(), "no such/x.rec".into()]),
        ("convert SPACED spaced", vec!["convert".into(), "two words.ffr".into(), "the output.rec".into()]),
    ];
    for (line, arguments) in runs {
        let output = session.command(&arguments).output().unwrap();
        session.note(line, &output);
    }
    assert!(session.path(&fixed).exists());
    assert_snapshot!(session.transcript());
}

#[test]
fn hints_quote_names_that_a_shell_would_take_apart() {
    let session = Session::new();
    let mut data = std::fs::read(golden("ffrecord/bytearray_numpy.ffr")).unwrap();
    *data.last_mut().unwrap() ^= 1;
    session.write("two words.ffr", &data);
    for command in ["verify", "cat"] {
        let output = session.command(&[command, "two words.ffr"]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("`anyrec repair 'two words.ffr' -o OUT`"), "{told}");
    }
}
