//! What scripts read.

use crate::session::Session;
use serde_json::Value;

fn objects(session: &Session, line: &str) -> Vec<Value> {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let output = session.command(&arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn has_fields(value: &Value, names: &[&str]) {
    for name in names {
        assert!(value.get(name).is_some(), "{name} is missing in {value}");
    }
}

const ROW: [&str; 9] = ["index", "offset", "item", "size", "key", "id", "id2", "label", "kind"];
const FILE: [&str; 10] =
    ["format", "version", "records", "bytes", "checksummed", "header", "trailer", "shape", "dtype", "damage"];

#[test]
fn ls_gives_one_object_a_record_with_the_promised_fields() {
    let session =
        Session::with(&["mxnet/im2rec_labels.rec", "mxnet/im2rec_labels.idx", "grail/v2_flush.grail-rio"]);
    for file in ["im2rec_labels.rec", "v2_flush.grail-rio"] {
        let plain = objects(&session, &format!("ls --json {file}"));
        assert!(plain.len() > 2);
        let with_digests = objects(&session, &format!("ls --json --sha256 {file}"));
        for (number, (row, digested)) in plain.iter().zip(&with_digests).enumerate() {
            has_fields(row, &ROW);
            assert!(row.get("sha256").is_none());
            assert_eq!(digested["sha256"].as_str().unwrap().len(), 64);
            assert_eq!(row["index"], number);
        }
    }
    let [second] = &objects(&session, "ls --json im2rec_labels.rec 1")[..] else { panic!() };
    assert_eq!((&second["key"], &second["id"], &second["id2"]), (&93.into(), &93.into(), &0.into()));
    assert_eq!((second["label"].to_string(), &second["kind"]), ("[1.0,1.125]".into(), &"png 28x33".into()));
}

#[test]
fn info_and_verify_give_one_object_a_file_with_the_promised_fields() {
    let session = Session::with(&[
        "mxnet/img_png.rec",
        "ffrecord/n1.ffr",
        "grail/v2_trailer_small.grail-rio",
        "idx/public-idx3-int",
    ]);
    for (file, format) in [
        ("img_png.rec", "mxnet"),
        ("n1.ffr", "ffrecord"),
        ("v2_trailer_small.grail-rio", "grail"),
        ("public-idx3-int", "idx"),
    ] {
        for command in ["info", "verify"] {
            let found = objects(&session, &format!("{command} --json {file}"));
            assert_eq!(found.len(), 1);
            has_fields(&found[0], &FILE);
            assert_eq!(found[0]["format"], format);
            assert_eq!(found[0]["bytes"], session.read(file).len());
            assert_eq!(found[0]["damage"], Value::Array(Vec::new()));
        }
    }
    let [array] = &objects(&session, "info --json public-idx3-int")[..] else { panic!() };
    assert_eq!(array["dtype"], "int32");
    assert_eq!(array["shape"].as_array().unwrap().len(), 3);
    let [trailed] = &objects(&session, "info --json v2_trailer_small.grail-rio")[..] else { panic!() };
    assert!(trailed["trailer"]["size"].as_u64().unwrap() > 0);
}

#[test]
fn info_counts_every_label_on_request() {
    let pair = ["idx/train-images-idx3-ubyte", "idx/train-labels-idx1-ubyte"];
    let session = Session::with(&[&pair[..], &["mxnet/im2rec_labels.rec"]].concat());
    for (file, classes) in [("train-images-idx3-ubyte", 8), ("im2rec_labels.rec", 6)] {
        let [short] = &objects(&session, &format!("info --json {file}"))[..] else { panic!() };
        assert!(short["labels"].get("counts").is_none());
        let [long] = &objects(&session, &format!("info --json --labels {file}"))[..] else { panic!() };
        let counts = long["labels"]["counts"].as_array().unwrap();
        assert_eq!(counts.len(), classes, "{counts:?}");
        let sum: u64 = counts.iter().map(|one| one["count"].as_u64().unwrap()).sum();
        assert_eq!(long["records"], sum);
        let labels: Vec<f64> = counts.iter().map(|one| one["label"].as_f64().unwrap()).collect();
        assert!(labels.is_sorted());
    }
}

#[test]
fn labels_beside_a_file_that_do_not_fit_it_are_noticed() {
    let session = Session::with(&["idx/train-images-idx3-ubyte"]);
    session.write("train-labels-idx1-ubyte", [0, 0, 8, 1, 0, 0, 0, 1, 7]);
    let [found] = &objects(&session, "info --json train-images-idx3-ubyte")[..] else { panic!() };
    assert_eq!((&found["labels"], &found["damage"]), (&Value::Null, &Value::Array(Vec::new())));
    assert!(found["notices"][0].as_str().unwrap().contains("the labels are not those of the images"));
}

#[test]
fn info_and_verify_notice_what_an_index_file_leaves_out() {
    let session = Session::with(&["mxnet/indexed_int.rec", "mxnet/indexed_int.idx"]);
    session.damage("indexed_int.idx", |text| {
        let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        lines.remove(1);
        *text = lines.concat();
    });
    for command in ["info", "verify"] {
        let [found] = &objects(&session, &format!("{command} --json indexed_int.rec"))[..] else { panic!() };
        let notices = found["notices"].to_string();
        assert!(notices.contains("indexed_int.idx leaves out 1 of"), "{command}: {notices}");
    }
}

#[test]
fn damage_is_listed_with_its_bytes_and_reason() {
    let session = Session::with(&["ffrecord/n1000.ffr"]);
    session.damage("n1000.ffr", |data| *data.last_mut().unwrap() ^= 1);
    for line in ["verify --json n1000.ffr", "repair --json n1000.ffr -o fixed.ffr"] {
        let found = &objects(&session, line)[0];
        has_fields(found, &FILE);
        let damage = &found["damage"][0];
        assert_eq!(damage["end"], session.read("n1000.ffr").len());
        assert!(damage["begin"].is_u64() && damage["record"] == 999, "{damage}");
        assert!(damage["reason"].as_str().unwrap().contains("checksum"), "{damage}");
        assert_eq!(found["sound"], false);
    }
}

#[test]
fn writing_commands_tell_what_they_wrote() {
    let mut session = Session::with(&["ffrecord/n1000.ffr", "mxnet/indexed_int.rec"]);
    for line in [
        "convert --json n1000.ffr out.rec",
        "shuffle --json n1000.ffr shuffled.ffr",
        "split --json n1000.ffr part.ffr --count 3",
        "merge --json n1000.ffr n1000.ffr twice.ffr",
        "index --json indexed_int.rec",
        "repair --json n1000.ffr -o whole.ffr",
        "verify --json n1000.ffr out.rec",
    ] {
        session.run(line);
    }
    insta::assert_snapshot!(session.transcript());
}

/// Names that a terminal must not see as they are, and one that is not UTF-8.
const AWKWARD: [&[u8]; 3] = [
    "a\u{9b}2J\u{85}\u{7f}\u{1b}[0m\u{202e}\u{200e}\u{200f}\u{61c}\u{2066}\u{2069}\u{2028}\u{2029}\u{feff}.ffr".as_bytes(),
    b"quote\"back\\slash\ttab\nline \xc3\xa9.ffr",
    b"caf\xe9 \xff\x80.ffr",
];

/// The path that a JSON object has under `key`, in bytes, as Python's `os.fsencode` has it.
fn path_of(line: &str, key: &str) -> Vec<u8> {
    // serde_json does not take lone surrogates: characters of a private area stand in for them.
    let value: Value = serde_json::from_str(&line.replace("\\udc", "\\ue0")).unwrap();
    let byte = |character: char| match u32::from(character) {
        stray @ 0xe080..=0xe0ff => vec![u8::try_from(stray - 0xe000).unwrap()],
        _ => character.to_string().into_bytes(),
    };
    value.pointer(key).unwrap().as_str().unwrap().chars().flat_map(byte).collect()
}

#[test]
fn paths_can_be_used_as_paths_and_nothing_misleads_a_terminal() {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::OsStrExt;
    for name in AWKWARD {
        let session = Session::with(&["ffrecord/n1.ffr"]);
        let name = OsStr::from_bytes(name);
        std::fs::copy(session.path("n1.ffr"), session.path(name)).unwrap();
        let beside = |prefix: &str| {
            let mut beside = OsString::from(prefix);
            beside.push(name);
            beside
        };
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let runs: [(Vec<OsString>, &[&str], OsString); 9] = [
            ([words(&["info", "--json"]), vec![name.into()]].concat(), &["/path"], name.into()),
            ([words(&["verify", "--json"]), vec![name.into()]].concat(), &["/path"], name.into()),
            (
                [words(&["repair", "--json"]), vec![name.into(), "-o".into(), beside("fixed")]].concat(),
                &["/output"],
                beside("fixed"),
            ),
            (
                [words(&["convert", "--json"]), vec![name.into(), beside("new")]].concat(),
                &["/outputs/0/path"],
                beside("new"),
            ),
            (
                [words(&["shuffle", "--json"]), vec![name.into(), beside("mixed")]].concat(),
                &["/outputs/0/path"],
                beside("mixed"),
            ),
            (
                [words(&["merge", "--json"]), vec![name.into(), name.into(), beside("both")]].concat(),
                &["/outputs/0/path"],
                beside("both"),
            ),
            (
                [words(&["unpack", "--json"]), vec![name.into(), beside("folder")]].concat(),
                &["/path"],
                beside("folder"),
            ),
            (
                [words(&["pack", "--json"]), vec![beside("folder"), beside("packed")]].concat(),
                &["/path"],
                beside("packed"),
            ),
            ([words(&["index", "--json"]), vec![name.into()]].concat(), &["/path"], beside("")),
        ];
        for (arguments, keys, expected) in runs {
            let output = session.command(&arguments).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
            let told = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
            assert!(told.chars().all(|c| c == '\n' || anyrec::is_harmless(c)), "{arguments:?}: {told:?}");
            for key in keys {
                let found = path_of(told.lines().next().unwrap(), key);
                let found = OsStr::from_bytes(&found);
                match arguments[0] == "index" {
                    // A table stands beside the file.
                    true => assert!(session.path(found).exists() && found != expected, "{found:?}"),
                    false => assert_eq!(found, expected, "{arguments:?}"),
                }
            }
        }
    }
}

#[test]
fn the_terminal_sees_no_mark_that_reorders_a_name() {
    let session = Session::with(&["ffrecord/n1.ffr"]);
    let name = "cod\u{202e}rff.exe\u{200f}.ffr";
    std::fs::copy(session.path("n1.ffr"), session.path(name)).unwrap();
    for command in ["info", "verify", "ls", "cat"] {
        for damaged in [false, true] {
            if damaged {
                session.damage(name, |data| data.truncate(17));
            }
            let output = session.command(&[command, name]).output().unwrap();
            let told = [output.stdout, output.stderr].concat();
            let told = String::from_utf8_lossy(&told);
            assert!(!told.contains(['\u{202e}', '\u{200f}']), "{command}: {told:?}");
        }
        std::fs::copy(session.path("n1.ffr"), session.path(name)).unwrap();
    }
}
