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
