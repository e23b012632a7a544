//! Every command on golden files and on damaged copies of them.

use crate::session::Session;
use insta::assert_snapshot;

/// What each of the listing and checking commands says about a file.
fn look_at(session: &mut Session, file: &str) {
    for command in ["info", "ls", "verify"] {
        session.run(&format!("{command} {file}"));
    }
}

#[test]
fn mxnet_files_are_described() {
    let mut session = Session::with(&[
        "mxnet/im2rec_labels.rec",
        "mxnet/im2rec_labels.idx",
        "mxnet/img_png.rec",
        "mxnet/indexed_str.rec",
        "mxnet/indexed_str.idx",
        "mxnet/no_records.rec",
    ]);
    for file in ["im2rec_labels.rec", "img_png.rec", "indexed_str.rec", "no_records.rec"] {
        look_at(&mut session, file);
    }
    assert_snapshot!(session.transcript());
}

#[test]
fn ffrecord_files_are_described() {
    let mut session =
        Session::with(&["ffrecord/bytearray_numpy.ffr", "ffrecord/old_version.ffr", "ffrecord/pickled.ffr"]);
    for file in ["bytearray_numpy.ffr", "old_version.ffr", "pickled.ffr"] {
        look_at(&mut session, file);
    }
    assert_snapshot!(session.transcript());
}

#[test]
fn grail_files_are_described() {
    let mut session = Session::with(&[
        "grail/v2_headers.grail-rio",
        "grail/v2_trailer_small.grail-rio",
        "grail/v2_maxitems.grail-rio",
        "grail/legacy_packed.grail-rpk",
        "grail/legacy_packed_flate.grail-rpk-gz",
    ]);
    for file in ["v2_headers.grail-rio", "v2_trailer_small.grail-rio", "legacy_packed.grail-rpk"] {
        look_at(&mut session, file);
    }
    session.run("ls v2_maxitems.grail-rio 3..8");
    session.run("info legacy_packed_flate.grail-rpk-gz");
    assert_snapshot!(session.transcript());
}

#[test]
fn idx_files_are_described() {
    let mut session =
        Session::with(&["idx/public-idx3-int", "idx/t10k-labels-idx1-ubyte.gz", "idx/rank0-int"]);
    for file in ["public-idx3-int", "rank0-int"] {
        look_at(&mut session, file);
    }
    session.run("info t10k-labels-idx1-ubyte.gz");
    session.run("ls t10k-labels-idx1-ubyte.gz ..3");
    assert_snapshot!(session.transcript());
}

/// Damaged copies of one file of each format.
fn damaged() -> Session {
    let session = Session::with(&[
        "mxnet/im2rec_labels.rec",
        "mxnet/im2rec_labels.idx",
        "ffrecord/bytearray_numpy.ffr",
        "grail/v2_maxitems.grail-rio",
        "idx/public-idx3-int",
    ]);
    // The frame of the third record.
    session.damage("im2rec_labels.rec", |data| data[1276..1280].fill(0));
    session.damage("bytearray_numpy.ffr", |data| *data.last_mut().unwrap() ^= 1);
    // In the second block.
    session.damage("v2_maxitems.grail-rio", |data| data[65_536 + 100] ^= 1);
    session.damage("public-idx3-int", |data| data.truncate(data.len() - 5));
    session
}

const DAMAGED: [&str; 4] =
    ["im2rec_labels.rec", "bytearray_numpy.ffr", "v2_maxitems.grail-rio", "public-idx3-int"];

#[test]
fn damage_is_told_by_every_command_that_reads() {
    let mut session = damaged();
    for file in DAMAGED {
        look_at(&mut session, file);
    }
    assert_snapshot!(session.transcript());
}

#[test]
fn damage_is_left_out_of_repaired_and_converted_files() {
    let mut session = damaged();
    for file in DAMAGED {
        let (stem, ending) = file.split_once('.').unwrap_or((file, ""));
        let fixed = if ending.is_empty() { format!("fixed-{stem}") } else { format!("fixed.{ending}") };
        session.run(&format!("repair {file} -o {fixed}"));
        session.run(&format!("verify {fixed}"));
        session.run(&format!("convert {file} out.ffr"));
        session.run(&format!("convert --skip-damage --force {file} out.ffr"));
        session.run(&format!("index {file}"));
    }
    session.run("index --skip-damage --force im2rec_labels.rec");
    session.run("repair fixed.ffr -o fixed-again.ffr");
    assert_eq!(session.read("fixed.ffr"), session.read("fixed-again.ffr"));
    assert_snapshot!(session.transcript());
}

#[test]
fn colours_mark_what_matters() {
    let mut session = damaged();
    std::fs::copy(crate::session::golden("ffrecord/n1.ffr"), session.path("sound.ffr")).unwrap();
    for line in [
        "info --color always sound.ffr",
        "ls --color always sound.ffr",
        "verify --color always sound.ffr bytearray_numpy.ffr",
        "ls --color always bytearray_numpy.ffr",
        "info --color always bytearray_numpy.ffr",
        "repair --color always bytearray_numpy.ffr -o fixed.ffr",
        "convert --color always sound.ffr out.rec",
        "convert --color always bytearray_numpy.ffr out2.rec",
        "index --color always out.rec",
        "verify --color never bytearray_numpy.ffr",
    ] {
        session.run(line);
    }
    assert_snapshot!(session.transcript());
}

#[test]
fn no_color_silences_colours_and_force_wakes_them() {
    let session = damaged();
    let run = |name: &str, value: &str| {
        let output = session.command(&["verify", "bytearray_numpy.ffr"]).env(name, value).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!run("NO_COLOR", "1").contains('\x1b'));
    assert!(run("CLICOLOR_FORCE", "1").contains("\x1b[1m\x1b[31mdamage"));
    let mut both = session.command(&["verify", "bytearray_numpy.ffr"]);
    both.env("NO_COLOR", "1").env("CLICOLOR_FORCE", "1");
    assert!(!String::from_utf8(both.output().unwrap().stdout).unwrap().contains('\x1b'));
}

#[test]
fn records_are_picked_shuffled_split_and_merged() {
    let mut session = Session::with(&[
        "mxnet/indexed_int.rec",
        "mxnet/indexed_int.idx",
        "ffrecord/first_last_empty.ffr",
        "grail/v2_flush.grail-rio",
    ]);
    for line in [
        "cat v2_flush.grail-rio 0 --separator \\n",
        "cat v2_flush.grail-rio -1 0..2 --separator \\n",
        "cat v2_flush.grail-rio 1000",
        "cat indexed_int.rec --key 3 --separator \\n",
        "cat indexed_int.rec --key nobody",
        "shuffle first_last_empty.ffr shuffled.ffr --seed 1",
        "shuffle first_last_empty.ffr shuffled-again.ffr --seed 1",
        "split first_last_empty.ffr part.ffr --count 2",
        "split first_last_empty.ffr piece.ffr --size 100",
        "split first_last_empty.ffr share.ffr --ratio 0.5,0.5 --names train,val",
        "split first_last_empty.ffr share.ffr --ratio 1,-1",
        "split first_last_empty.ffr share.ffr",
        "merge part-00000-of-00002.ffr part-00001-of-00002.ffr merged.ffr",
        "convert first_last_empty.ffr out.grail-rio --transformer zstd",
        "convert first_last_empty.ffr out.idx3-ubyte --to idx --shape 2,2",
        "convert indexed_int.rec keys.ffr",
        "convert first_last_empty.ffr nameless",
        "convert first_last_empty.ffr out.rec --shards 2",
    ] {
        session.run(line);
    }
    assert_eq!(session.read("shuffled.ffr"), session.read("shuffled-again.ffr"));
    assert_eq!(session.read("first_last_empty.ffr"), session.read("merged.ffr"));
    assert_snapshot!(session.transcript());
}

#[test]
fn indices_are_written_where_the_format_has_them() {
    let mut session =
        Session::with(&["mxnet/im2rec_labels.rec", "mxnet/indexed_int.rec", "grail/v2_flush.grail-rio"]);
    for line in [
        "info im2rec_labels.rec",
        "index im2rec_labels.rec",
        "index im2rec_labels.rec",
        "index indexed_int.rec",
        "index v2_flush.grail-rio",
        "info v2_flush.grail-rio",
        "index v2_flush.grail-rio -o elsewhere.idx",
    ] {
        session.run(line);
    }
    assert_eq!(
        session.read("im2rec_labels.idx"),
        std::fs::read(crate::session::golden("mxnet/im2rec_labels.idx")).unwrap()
    );
    assert_snapshot!(session.transcript());
}

#[test]
fn help_explains_every_command() {
    let mut session = Session::new();
    let commands =
        ["info", "ls", "cat", "verify", "repair", "index", "finish", "convert", "shuffle", "split", "merge"];
    for command in commands.into_iter().chain(["pack", "unpack", "im2rec", "completions", "man", "demo"]) {
        session.run(&format!("{command} --help"));
    }
    assert_snapshot!(session.transcript());
}

#[test]
fn completions_and_manual_pages_are_made() {
    let mut session = Session::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = session.command(&["completions", shell]).output().unwrap();
        assert!(output.status.success() && output.stdout.len() > 1000, "{shell}");
    }
    let page = session.command(&["man"]).output().unwrap();
    assert!(String::from_utf8(page.stdout).unwrap().contains(".TH anyrec 1"));
    session.run("man --output pages");
    let pages = crate::session::names_in(&session.path("pages"));
    assert!(
        pages.contains(&"anyrec.1".to_owned()) && pages.contains(&"anyrec-verify.1".to_owned()),
        "{pages:?}"
    );
}
