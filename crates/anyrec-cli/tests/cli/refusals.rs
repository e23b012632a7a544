//! What is never done without being asked for.

use crate::session::Session;
use insta::assert_snapshot;

#[test]
fn files_that_exist_are_replaced_only_with_force() {
    let mut session = Session::with(&["ffrecord/n1.ffr", "mxnet/indexed_int.rec", "mxnet/indexed_int.idx"]);
    let writing = [
        "convert n1.ffr out.ffr",
        "repair n1.ffr -o out.ffr",
        "shuffle n1.ffr out.ffr",
        "merge n1.ffr out.ffr",
    ];
    for line in writing {
        session.write("out.ffr", "precious");
        assert_eq!(session.run(line).status.code(), Some(2));
        assert_eq!(session.read("out.ffr"), b"precious", "{line}");
        assert_eq!(session.run(&format!("{line} --force")).status.code(), Some(0));
        assert_eq!(session.read("out.ffr"), session.read("n1.ffr"), "{line}");
    }
    session.write("out-0.ffr", "precious");
    session.run("split n1.ffr out.ffr --ratio 1");
    assert_eq!(session.read("out-0.ffr"), b"precious");
    session.run("index indexed_int.rec");
    session.run("index indexed_int.rec --force");
    assert_snapshot!(session.transcript());
}

#[test]
fn inputs_are_never_written_over() {
    let mut session = Session::with(&["ffrecord/n1.ffr"]);
    let before = session.read("n1.ffr");
    for line in [
        "repair n1.ffr -o n1.ffr --force",
        "convert n1.ffr n1.ffr --force",
        "shuffle n1.ffr n1.ffr --force",
        "merge n1.ffr n1.ffr n1.ffr --force",
        "split n1.ffr n1.ffr --ratio 1 --names x --force",
    ] {
        session.run(line);
    }
    assert_eq!(session.read("n1.ffr"), before);
    assert_snapshot!(session.transcript());
}

#[test]
fn failed_conversion_leaves_nothing_behind() {
    let session = Session::with(&["ffrecord/n1000.ffr"]);
    session.damage("n1000.ffr", |data| *data.last_mut().unwrap() ^= 1);
    for line in [
        ["convert", "n1000.ffr", "out.rec"],
        ["convert", "n1000.ffr", "out.grail-rio"],
        ["merge", "n1000.ffr", "out.ffr"],
        ["shuffle", "n1000.ffr", "out.ffr"],
    ] {
        assert_eq!(session.command(&line).output().unwrap().status.code(), Some(1), "{line:?}");
        assert_eq!(session.files(), ["n1000.ffr"], "{line:?}");
    }
}
