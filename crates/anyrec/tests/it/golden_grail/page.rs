//! The worked examples of `docs/formats/grail.md`.

use super::*;
use anyrec::format::grail::{LegacyPackedWriter, Writer};
use std::path::Path;

/// The bytes of the page's hex dumps, in the manner of `hexdump -C`: a line `*` stands for
/// repetitions of the line before it, the last line is the length.
fn dumps() -> Vec<Vec<u8>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/grail.md");
    let page = std::fs::read_to_string(page).unwrap();
    let dump = |block: &str| {
        let (mut data, mut repeats): (Vec<u8>, bool) = (Vec::new(), false);
        for line in block.lines().skip(1) {
            if line == "*" {
                repeats = true;
                continue;
            }
            let (offset, rest) = line.split_at(8);
            let offset = usize::from_str_radix(offset, 16).unwrap();
            let last = data.len().saturating_sub(16);
            while repeats && data.len() < offset {
                data.extend_from_within(last..last + 16);
            }
            repeats = false;
            assert_eq!(data.len(), offset, "{line}");
            let hex = rest.split('|').next().unwrap();
            data.extend(hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()));
        }
        data
    };
    page.split("```").filter(|block| block.starts_with("hexdump\n")).map(dump).collect()
}

#[test]
fn the_worked_examples_of_the_page_are_true() {
    let dumps = dumps();
    let mut options = WriteOptions::default();
    options.header = vec![("lot".into(), Value::Int(-3))];
    let mut output = Vec::new();
    let mut writer = Writer::new(&mut output, &options).unwrap();
    for item in [&b"hello"[..], b"", b"GRAIL"] {
        writer.append(item).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    assert!(dumps[0] == output, "the version 2 file");
    let seen = scan("page", &dumps[0], &super::options());
    assert_eq!(records(&seen), [&b"hello"[..], b"", b"GRAIL"]);

    let mut output = Vec::new();
    let mut writer = LegacyPackedWriter::new(&mut output, &WriteOptions::default()).unwrap();
    for item in [&b"hello"[..], b"", b"GRAIL"] {
        writer.write(item).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    assert_eq!(dumps[1], output, "the version 1 file");
    assert_eq!(records(&scan("page", &dumps[1], &super::options())), [&b"hello"[..], b"", b"GRAIL"]);
    assert_eq!(dumps.len(), 2);
}
