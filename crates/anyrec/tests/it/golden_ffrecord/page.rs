//! The example in `docs/formats/ffrecord.md` is a file that this library writes and reads.

use super::{memory, scan, write};
use anyrec::format::ffrecord::Reader;
use anyrec::format::{OpenOptions, RecordReader, WriteOptions};

const PAGE: &str = include_str!("../../../../../docs/formats/ffrecord.md");

/// The bytes of the page's hex dump: offset, bytes, and what they are behind a bar.
fn example() -> Vec<u8> {
    let (_, dump) = PAGE.split_once("```hexdump\n").expect("the page has a hex dump");
    let (dump, _) = dump.split_once("```").unwrap();
    let mut data = Vec::new();
    for line in dump.lines() {
        let (offset, rest) = line.split_once("  ").unwrap();
        assert_eq!(usize::from_str_radix(offset, 16).unwrap(), data.len(), "{line}");
        let (bytes, _) = rest.split_once('|').unwrap();
        data.extend(bytes.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()));
    }
    data
}

#[test]
fn the_worked_example_is_what_is_written_and_read() {
    let data = example();
    let records = [b"abc".to_vec(), Vec::new(), b"de".to_vec()];
    assert_eq!(write(&records, &WriteOptions::default()), data);
    let reader = Reader::open(memory(&data), &OpenOptions::default()).unwrap();
    let read: Vec<_> = (0..3).map(|index| reader.read(index).unwrap()).collect();
    assert_eq!(read, records);
    assert_eq!(scan(&data, &OpenOptions::default()).records.len(), 3);
}
