//! 0 sound, 1 damage, 2 could not: for every command.

use crate::session::Session;

/// A sound file, a damaged one, and none.
fn session() -> Session {
    let session = Session::with(&["mxnet/im2rec_labels.rec", "mxnet/im2rec_labels.idx"]);
    let sound = session.read("im2rec_labels.rec");
    session.write("sound.rec", &sound);
    session.write("damaged.rec", &sound);
    // The frame of the third record.
    session.damage("damaged.rec", |data| data[1276..1280].fill(0));
    session
}

fn code(session: &Session, line: &str) -> i32 {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    session.command(&arguments).output().unwrap().status.code().unwrap()
}

#[test]
fn every_command_says_by_its_exit_code_how_it_went() {
    for line in [
        "info FILE",
        "info --json FILE",
        "ls FILE",
        "ls --json FILE",
        "cat FILE",
        "verify FILE",
        "verify --json FILE",
        "repair FILE -o OUT.rec",
        "repair --json FILE -o OUT.rec",
        "index FILE",
        "index --table FILE",
        "convert FILE OUT.ffr",
        "convert --skip-damage FILE OUT.ffr",
        "shuffle FILE OUT.ffr",
        "split FILE OUT.ffr --count 2",
        "split FILE OUT.ffr --ratio 1,1",
        "merge FILE OUT.ffr",
        "merge --skip-damage FILE OUT.ffr",
    ] {
        for (file, expected) in [("sound.rec", 0), ("damaged.rec", 1), ("missing.rec", 2)] {
            let session = session();
            let line = line.replace("FILE", file).replace("OUT", "out");
            assert_eq!(code(&session, &line), expected, "{line}");
        }
    }
}

#[test]
fn damage_in_one_of_several_files_is_1_and_a_missing_one_is_2() {
    let session = session();
    assert_eq!(code(&session, "verify sound.rec damaged.rec"), 1);
    assert_eq!(code(&session, "info sound.rec damaged.rec"), 1);
    assert_eq!(code(&session, "verify damaged.rec missing.rec"), 2);
}

#[test]
fn command_lines_that_make_no_sense_are_2() {
    let session = session();
    for line in [
        "",
        "nonsense",
        "verify",
        "ls sound.rec x..y",
        "ls sound.rec 99999",
        "cat sound.rec --key nobody",
        "verify --format none sound.rec",
        "convert sound.rec out.ffr --shard-size lots",
        "convert sound.rec out.ffr --to none",
        "convert sound.rec out.ffr --dtype none",
        "convert sound.rec out.ffr --transformer zstd",
        "verify --color sometimes sound.rec",
        "split sound.rec out.ffr",
        "completions none",
    ] {
        assert_eq!(code(&session, line), 2, "{line}");
    }
}
