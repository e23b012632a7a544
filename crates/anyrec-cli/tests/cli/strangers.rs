//! Files that are none of ours are named for what they are.

use crate::session::Session;
use insta::assert_snapshot;

#[test]
fn strangers_are_named() {
    let mut session = Session::new();
    let mut tar = vec![0; 1024];
    tar[..15].copy_from_slice(b"images/0001.jpg");
    tar[257..262].copy_from_slice(b"ustar");
    // The length 3 and its masked CRC-32C, as TensorFlow writes them.
    let tf_record = b"\x03\0\0\0\0\0\0\0\xb0\x99\x49\x0eabc\0\0\0\0";
    let strangers: [(&str, &[u8]); 12] = [
        ("images.tar", &tar),
        ("images.zip", b"PK\x03\x04\x14\0\0\0"),
        ("train.tfrecord", tf_record),
        ("train.parquet", b"PAR1\x15\x04\x15"),
        ("train.h5", b"\x89HDF\r\n\x1a\n\0\0\0\0"),
        ("train.rec", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"),
        ("page.rec", b"<!DOCTYPE html>\n<html><head><title>404</title>"),
        ("error.ffr", b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>"),
        ("notes.txt", b"some text\n"),
        ("array.npy", b"\x93NUMPY\x01\0"),
        ("train.idx", b"0\t0\n1\t128\n"),
        ("empty", b""),
    ];
    for (name, data) in strangers {
        session.write(name, data);
        session.run(&format!("info {name}"));
    }
    session.run("verify images.tar");
    session.run("ls images.zip");
    session.run("cat train.parquet 0");
    session.run("convert train.h5 out.rec");
    session.run("repair train.tfrecord -o out.rec");
    session.run("index page.rec");
    assert_snapshot!(session.transcript());
}

#[test]
fn downloads_that_were_cut_short_are_told_from_strangers() {
    let mut session = Session::with(&[
        "mxnet/img_jpg.rec",
        "ffrecord/n1000.ffr",
        "grail/v2_plain.grail-rio",
        "idx/t10k-images-idx3-ubyte.gz",
        "idx/public-idx3-int",
    ]);
    session.write("empty.rec", "");
    session.write("empty.ffr", "");
    session.run("verify empty.rec");
    session.run("info empty.ffr");
    for (name, keep) in [
        ("img_jpg.rec", 2000),
        ("n1000.ffr", 5000),
        ("v2_plain.grail-rio", 40_000),
        ("t10k-images-idx3-ubyte.gz", 500),
        ("public-idx3-int", 30),
    ] {
        session.damage(name, |data| data.truncate(keep));
        session.run(&format!("verify {name}"));
        session.run(&format!("info {name}"));
    }
    assert_snapshot!(session.transcript());
}
