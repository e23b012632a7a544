//! Section `malformed`, and damage made on purpose.

use super::{Scanned, memory, options, scan, scan_window, written};
use crate::manifest::{Manifest, golden};
use anyrec::ErrorKind;
use anyrec::format::mxnet::{FORMAT, Reader};
use anyrec::format::{Format, OpenOptions, RecordReader};
use anyrec::io::Window;

const MAGIC: [u8; 4] = [0x0a, 0x23, 0xd7, 0xce];

#[test]
fn malformed_bytes_read_as_the_original_reads_them() {
    let manifest = Manifest::load("mxnet");
    for entry in manifest.root().get("malformed").items() {
        let name = entry.get("name").str();
        let data = entry.get("bytes_hex").hex();
        let reads = entry.get("reads").json().as_array().unwrap();
        let found = scan(&data);
        let stream = Window::from_stream("stream", std::io::Cursor::new(data.clone()));
        assert_eq!(scan_window(stream, data.len()), found, "{name}");

        let records: Vec<Vec<u8>> =
            reads.iter().filter_map(|read| read.as_str()).map(|read| hex::decode(read).unwrap()).collect();
        assert_eq!(found.records, records, "{name}");

        // Where the original fails, ours has damage, and for the same reason.
        let errors: Vec<&str> = reads
            .iter()
            .filter_map(|read| read.get("MXNetError"))
            .map(|error| error.as_str().unwrap())
            .collect();
        let dropped = usize::from(name == "multi-part cut after part 1");
        assert_eq!(found.damage.len(), errors.len() + dropped, "{name}: {:?}", found.damage);
        for (error, damage) in errors.iter().zip(&found.damage) {
            let reason = if let Some((_, size)) = error.split_once("upper_align=") {
                format!("({size} bytes with padding)")
            } else if error.contains("Inavlid") {
                "part header cut short: expected 8 bytes".to_owned()
            } else {
                assert!(error.contains("kMagic"), "{error}");
                "part without its magic word: expected ced7230a".to_owned()
            };
            assert!(damage.reason.contains(&reason), "{name}: {}", damage.reason);
        }
        assert_eq!(notices(&found), expected_notices(name), "{name}");
        check_reader(name, &data, &found);
    }
    manifest.finish(&["malformed"]);
}

fn notices(found: &Scanned) -> Vec<(u64, &str)> {
    found.notices.iter().map(|notice| (notice.offset.unwrap(), notice.message.as_str())).collect()
}

/// Place and words of the notices where the original is lax.
fn expected_notices(name: &str) -> Vec<(u64, &'static str)> {
    const BEGINS_INSIDE: &str = "a record begins with a middle or last part (cflag 2 or 3)";
    const RESERVED: &str = "a part has a cflag that no writer uses (4 to 7), read as a middle part";
    const WHOLE_INSIDE: &str = "a whole record (cflag 0) inside a split record, read as its last part";
    match name {
        "non-zero padding" => vec![(11, "padding bytes are not zero")],
        "multi-part part 1 then whole record" => vec![(12, WHOLE_INSIDE)],
        "starts with middle part" | "starts with end part" => vec![(0, BEGINS_INSIDE)],
        "cflag 4" => vec![(0, RESERVED)],
        "cflag 7" => vec![(0, RESERVED), (12, WHOLE_INSIDE)],
        "two starts" => vec![(12, "a first part (cflag 1) inside a split record, read as a middle part")],
        "part length not multiple of 4" => vec![
            (0, "a part that is not the last has a length that is not a multiple of 4"),
            (11, "padding bytes are not zero (2 times in record 0)"),
        ],
        "record holding raw aligned magic (foreign writer)" => vec![(
            8,
            "1 record holds the magic word unescaped, as protobuf RecordIO files of Amazon SageMaker do; \
             the records are read as they are",
        )],
        _ => vec![],
    }
}

/// The reader gives the scan's records; damage is an error unless it may be skipped.
fn check_reader(name: &str, data: &[u8], found: &Scanned) {
    let strict = Reader::open(memory(data), &options(|_| {})).unwrap();
    match found.damage.first() {
        None => assert_eq!(strict.count().unwrap(), found.records.len() as u64, "{name}"),
        Some(damage) => {
            for _ in 0..2 {
                let error = strict.count().unwrap_err();
                assert_eq!(
                    (error.kind(), error.offset()),
                    (ErrorKind::Corrupt, Some(damage.begin)),
                    "{name}"
                );
                assert_eq!(error.message(), damage.reason);
                assert!(error.hint().is_some());
            }
        }
    }
    let lenient = Reader::open(memory(data), &OpenOptions::default().with_skip_damage(true)).unwrap();
    assert_eq!(lenient.count().unwrap(), found.records.len() as u64, "{name}");
    for (number, record) in (0..).zip(&found.records) {
        assert_eq!(lenient.read(number).unwrap(), record, "{name}");
    }
}

#[test]
fn a_damaged_record_costs_itself_and_no_other() {
    let file = written(&[b"first", b"second, which is longer", b"third"]);
    for (what, damaged) in [
        ("magic", {
            let mut file = file.clone();
            file[16] ^= 1;
            file
        }),
        ("length, too long for the file", {
            let mut file = file.clone();
            file[23] = 0x1f;
            file
        }),
    ] {
        let found = scan(&damaged);
        assert_eq!(found.records, [&b"first"[..], b"third"], "{what}");
        assert_eq!(
            (found.damage[0].begin, found.damage[0].end, found.damage[0].record),
            (16, 48, 1),
            "{what}"
        );
    }
}

#[test]
fn a_wrong_length_that_fits_the_file_is_read_as_the_original_reads_it() {
    // Without checksums nothing tells such a record from a whole one; what follows it does not fit.
    let file = written(&[b"first", b"second, which is longer", b"third"]);
    let mut longer = file.clone();
    longer[20] += 12;
    let found = scan(&longer);
    assert_eq!(found.records, [b"first", &longer[24..59]]);
    assert_eq!((found.damage[0].begin, found.damage[0].end), (60, 64));
    assert!(found.notices.iter().any(|notice| notice.message.contains("unescaped")));
    let mut shorter = file;
    shorter[20] -= 8;
    let found = scan(&shorter);
    assert_eq!(found.records, [&b"first"[..], b"second, which i", b"third"]);
    assert_eq!((found.damage[0].begin, found.damage[0].end), (40, 48));
}

#[test]
fn parts_left_over_from_a_damaged_split_record_are_skipped() {
    let magics = [b"head", &MAGIC[..], b"body", &MAGIC, b"tail"].concat();
    let mut file = written(&[&magics, b"next"]);
    file[12] ^= 0xff;
    let found = scan(&file);
    assert_eq!(found.records, [b"next"]);
    assert_eq!((found.damage[0].begin, found.damage[0].end), (0, 36));
    assert!(found.damage[0].reason.ends_with("(part 2 of a split record)"), "{}", found.damage[0].reason);
}

#[test]
fn unescaped_magics_are_told_once_a_file() {
    let record = [&[8, 0, 0, 0], &MAGIC[..], b"abcd"].concat();
    let file = [&MAGIC[..], &record].concat().repeat(3);
    let found = scan(&file);
    assert_eq!(found.records.len(), 3);
    assert_eq!(found.notices.len(), 1);
    assert!(found.notices[0].message.starts_with("3 records hold the magic word unescaped"));
    assert_eq!(found.notices[0].offset, Some(8));
}

#[test]
fn a_file_of_first_parts_only_is_scanned_in_no_time() {
    // Each of them might begin a record that the end of the file cuts off.
    let file = [&MAGIC[..], &[0, 0, 0, 0x20]].concat().repeat(1 << 20);
    let begin = std::time::Instant::now();
    let found = scan(&file);
    assert!(found.records.is_empty());
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[test]
fn long_parts_that_lead_to_the_same_fault_are_searched_in_no_time() {
    // Each header says that its part reaches to the last word of the file, which is no header.
    let size = 8u32 << 20;
    let mut file = Vec::new();
    for offset in (0..size - 16).step_by(16) {
        file.extend_from_slice(&MAGIC);
        file.extend_from_slice(&(1 << 29 | (size - 16 - offset)).to_le_bytes());
        file.extend_from_slice(&[1; 8]);
    }
    file.extend_from_slice(&[2; 8]);
    let begin = std::time::Instant::now();
    assert!(scan(&file).records.is_empty());
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[test]
fn many_odd_parts_make_few_notices() {
    let mut file = [&MAGIC[..], &[0, 0, 0, 0x80]].concat().repeat(10_000);
    file.extend_from_slice(&[&MAGIC[..], &[0, 0, 0, 0x60]].concat());
    let found = scan(&file);
    assert_eq!((found.records.len(), found.notices.len()), (1, 1));
    assert!(found.notices[0].message.ends_with("(10000 times in record 0)"));
}

#[test]
fn every_truncation_and_every_flipped_bit_of_a_small_file_is_covered_by_events() {
    for name in ["magic.rec", "indexed_mixed.rec", "empty_records.rec", "pack_magic.rec"] {
        let whole = std::fs::read(golden("mxnet").join(name)).unwrap();
        let records = scan(&whole).records;
        for length in 0..whole.len() {
            let found = scan(&whole[..length]);
            assert_eq!(found.records, records[..found.records.len()], "{name} cut at {length}");
            assert!(found.damage.len() <= 1);
        }
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let found = scan(&flipped);
            let stream = Window::from_stream("stream", std::io::Cursor::new(flipped.clone()));
            assert_eq!(scan_window(stream, flipped.len()), found);
            // Numbering must agree with the scan.
            let lenient =
                FORMAT.open(memory(&flipped), &OpenOptions::default().with_skip_damage(true)).unwrap();
            assert_eq!(lenient.count().unwrap(), found.records.len() as u64);
            for (number, record) in (0..).zip(&found.records) {
                assert_eq!(lenient.read(number).unwrap(), record, "{name} bit {bit}");
            }
        }
    }
}

#[test]
fn a_record_over_the_limit_is_an_error_of_its_own_kind() {
    let file = written(&[b"small", &[1; 100], b"small"]);
    let mut limited = OpenOptions::default();
    limited.limits.record = 99;
    let reader = Reader::open(memory(&file), &limited).unwrap();
    assert_eq!(reader.read(2).unwrap(), "small");
    let error = reader.read(1).unwrap_err();
    assert_eq!((error.kind(), error.offset(), error.record()), (ErrorKind::Limit, Some(16), Some(1)));
    let mut scan = FORMAT.scan(Window::new(memory(&file)), &limited).unwrap();
    scan.next_event().unwrap();
    assert_eq!(scan.next_event().unwrap_err().kind(), ErrorKind::Limit);
}
