//! The example in `docs/formats/mxnet.md` is what our writer writes and our reader reads.

use super::{open, scan};
use anyrec::Key;
use anyrec::format::mxnet::Writer;
use anyrec::format::{RecordReader, WriteOptions};

fn block<'a>(page: &'a str, kind: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("```{kind}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_example_of_the_page_is_true() {
    let page = include_str!("../../../../../docs/formats/mxnet.md");
    let mut bytes = Vec::new();
    for line in block(page, "hex").lines() {
        let (offset, rest) = line.split_once(':').unwrap();
        assert_eq!(usize::from_str_radix(offset, 16).unwrap(), bytes.len());
        let (digits, _) = rest.split_once(';').unwrap();
        bytes.extend(hex::decode(digits.replace(' ', "")).unwrap());
    }
    let records: [&[u8]; 3] = [b"cat", b"head\x0a\x23\xd7\xcex", b""];
    assert_eq!(scan(&bytes).records, records);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("example.rec");
    let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
    for (key, record) in [7, 5, 6].into_iter().zip(records) {
        writer.write_with_key(&Key::Int(key), record).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(std::fs::read(path.with_extension("idx")).unwrap(), block(page, "idx").as_bytes());
    assert_eq!(open(&path).by_key(&Key::Int(5)).unwrap(), records[1]);
    assert_eq!(open(&path).read(2).unwrap(), records[2]);
}
