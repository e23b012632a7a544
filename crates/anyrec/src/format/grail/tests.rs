//! Unit tests of the layouts and of internals.

use super::block::{Decoder, Framing};
use super::cache::BlockCache;
use super::header::{Header, TRAILER_KEY};
use super::layout::*;
use super::legacy::{self, RecordKind, decode_record_header, encode_record_header, find_record_header};
use super::transform::{Registry, Transform};
use super::{Scanner, Writer};
use crate::base::checksum::crc32;
use crate::base::{ErrorKind, Value};
use crate::format::{OpenOptions, WriteOptions};
use bytes::Bytes;
use std::sync::Arc;

#[test]
fn uvarints_hold_64_bits_and_no_more() {
    for value in [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
        let mut bytes = Vec::new();
        put_uvarint(value, &mut bytes);
        assert_eq!(uvarint(&bytes), Some((value, bytes.len())));
        bytes.pop();
        assert_eq!(uvarint(&bytes), None, "{value} cut short");
    }
    assert_eq!(uvarint(&[0x80, 0x80, 0x00]), Some((0, 3)), "longer than needed");
    let mut eleven = vec![0xff; 10];
    eleven.push(0);
    assert_eq!(uvarint(&eleven), None);
    let mut over = vec![0xff; 9];
    over.push(2);
    assert_eq!(uvarint(&over), None, "65 bits");
}

#[test]
fn signed_numbers_survive_zigzag() {
    for value in [0, -1, 1, -3, i64::MIN, i64::MAX] {
        assert_eq!(unzigzag(zigzag(value)), value);
    }
    assert_eq!((zigzag(-3), zigzag(3)), (5, 6));
}

#[test]
fn blocks_are_cut_at_full_chunks() {
    for (size, chunks) in [(0, 1), (1, 1), (MAX_PAYLOAD, 1), (MAX_PAYLOAD + 1, 2), (2 * MAX_PAYLOAD, 2)] {
        let payload: Vec<u8> = (0..size).map(|at| at.to_le_bytes()[0]).collect();
        let mut out = Vec::new();
        encode_block(BlockKind::Trailer, &payload, &mut out).unwrap();
        assert_eq!(out.len(), chunks * CHUNK);
        let (kind, joined) = join_block(&out, true).unwrap();
        assert_eq!((kind, &joined[..]), (BlockKind::Trailer, &payload[..]));
        assert_eq!(decode_chunk(&out, true).unwrap().total as usize, chunks);
    }
}

#[test]
fn each_fault_of_a_chunk_has_its_reason() {
    let mut good = Vec::new();
    encode_block(BlockKind::Body, b"payload", &mut good).unwrap();
    let reason = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        join_block(&bytes, true).unwrap_err().to_string()
    };
    assert!(reason(&|bytes| bytes[0] ^= 1).starts_with("invalid magic number 2f 76"));
    assert!(reason(&|bytes| bytes[17] = 0xff).contains("is over 32740"));
    assert!(reason(&|bytes| bytes[30] ^= 1).contains("checksum does not match: expected "));
    assert!(reason(&|bytes| bytes.truncate(32767)).contains("only 32767 are left"));
    let resealed = |at: usize, value: u8| {
        reason(&|bytes| {
            bytes[at] = value;
            let checksum = crc32(&bytes[12..CHUNK_HEADER + 7]);
            bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
        })
    };
    assert!(resealed(20, 0).contains("0 chunks"));
    assert!(resealed(24, 3).contains("begin a block: expected 0, found 3"));
    assert!(resealed(20, 2).contains("1 of its 2 chunks"));
}

#[test]
fn the_chunks_of_a_block_must_agree() {
    let chunk = |kind, total, index| Chunk { kind, flag: 0, total, index, payload: b"" };
    let first = chunk(BlockKind::Body, 3, 0);
    let push = |next| ChunkRun::begin(&first).unwrap().push(&next).map_err(|error| error.to_string());
    assert!(push(chunk(BlockKind::Body, 3, 1)).is_ok());
    assert!(push(chunk(BlockKind::Body, 3, 2)).unwrap_err().contains("expected 1, found 2"));
    assert!(push(chunk(BlockKind::Body, 4, 1)).unwrap_err().contains("expected 3, found 4"));
    assert!(push(chunk(BlockKind::Trailer, 3, 1)).unwrap_err().contains("magic number changes"));
}

#[test]
fn items_are_found_by_number_and_in_turn() {
    let sizes: Vec<u64> = (0..300).map(|number| number * 37 % 150).collect();
    let mut block = Vec::new();
    put_item_list(&sizes, &mut block);
    let begin = block.len();
    block.extend(std::iter::repeat_n(1, usize::try_from(sizes.iter().sum::<u64>()).unwrap()));
    let items = Items::parse(&block).unwrap();
    assert_eq!(items.count(), 300);
    let (mut cursor, mut at) = (items.cursor(), begin);
    for (number, &size) in sizes.iter().enumerate() {
        let range = at..at + usize::try_from(size).unwrap();
        assert_eq!(items.range(&block, number as u64), Some(range.clone()));
        assert_eq!(cursor.next(&block), Some(range.clone()));
        at = range.end;
    }
    assert_eq!(items.range(&block, 300), None);
}

#[test]
fn lists_that_promise_too_much_are_refused_before_memory_is_taken() {
    let huge = |value: u64| {
        let mut bytes = Vec::new();
        put_uvarint(value, &mut bytes);
        bytes
    };
    for (block, reason) in [
        (vec![], "not readable"),
        (huge(u64::MAX), "do not fit in the 0 bytes"),
        (vec![5, 1, 1], "5 items do not fit in the 2 bytes"),
        (vec![2, 1, 0x80], "size of item 1 is not readable"),
        (vec![1, 9, 0], "expected 11, found 3"),
        (vec![0, 0], "expected 1, found 2"),
        ([vec![2], huge(u64::MAX), huge(2)].concat(), "more than 2^64"),
    ] {
        let error = Items::parse(&block).unwrap_err().to_string();
        assert!(error.contains(reason), "{block:?}: {error}");
    }
}

#[test]
fn header_values_that_are_not_whole_are_refused() {
    for (item, reason) in [
        (&b""[..], "ends within a value"),
        (b"\x02\x02", "number of header pairs is"),
        (b"\x03\x01", "1 pairs do not fit"),
        (b"\x03\x01\x03\x00\x01\x01\x01", "a header key is a string"),
        (b"\x03\x01\x04\x03\x00\x01", "do not fit in"),
        (b"\x03\x01\x04\x03\x00\x09\x01", "value type 9"),
        (b"\x03\x01\x04\x02\x00\x01\x01", "expected 3, found 2"),
        (b"\x03\x01\x04\x03\x7f\x01\x01", "a string of 127 bytes exceeds"),
        (b"\x03\x01\x04\x03\x00\x03\xff", "not readable"),
    ] {
        let error = Header::decode(item).unwrap_err().to_string();
        assert!(error.contains(reason), "{item:?}: {error}");
    }
    let mut many = vec![3];
    put_uvarint(1 << 18, &mut many);
    many.resize(many.len() + (5 << 18), 0);
    assert_eq!(Header::decode(&many).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn the_first_trailer_pair_decides_and_transformers_are_text() {
    let mut header = Header::default();
    header.push("trailer", Value::Bool(false));
    header.push("trailer", Value::Bool(true));
    assert!(!header.has_trailer());
    header.push("transformer", Value::Text("zstd 3".into()));
    assert_eq!(header.transformers().unwrap(), [Transform::from("zstd 3")]);
    header.push("transformer", Value::Uint(3));
    assert_eq!(header.transformers().unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn legacy_headers_are_checked_and_found() {
    let header = encode_record_header(RecordKind::Packed, 77);
    assert_eq!(decode_record_header(&header).unwrap(), (RecordKind::Packed, 77));
    let large = encode_record_header(RecordKind::Unpacked, (1 << 29) + 1);
    assert!(decode_record_header(&large).unwrap_err().message().contains("is over 536870912"));
    assert!(decode_record_header(&encode_record_header(RecordKind::Unpacked, 1 << 29)).is_ok());
    assert!(decode_record_header(&header[..19]).unwrap_err().message().contains("only 19"));
    // A magic alone is not a header.
    let mut bytes = legacy::UNPACKED_MAGIC.repeat(3);
    bytes.extend(header);
    assert_eq!(find_record_header(&bytes), Some(24));
    assert_eq!(find_record_header(&bytes[..43]), None);
}

#[test]
fn the_version_is_told_by_the_first_bytes() {
    let mut block = Vec::new();
    encode_block(BlockKind::Header, &[1, 2, 3, 0], &mut block).unwrap();
    assert_eq!(Framing::of(&block), Framing::Two);
    assert_eq!(Framing::of(&block[..8]), Framing::Two);
    block[2] ^= 1;
    assert_eq!(Framing::of(&block), Framing::Two, "a sound chunk under a damaged magic");
    block[30] ^= 1;
    assert_eq!(Framing::of(&block), Framing::Legacy);
    assert_eq!(Framing::of(&legacy::PACKED_MAGIC), Framing::Legacy);
    assert_eq!(Framing::of(b""), Framing::Legacy);
}

#[test]
fn the_cache_gives_up_what_was_used_longest_ago() {
    let decoder = Decoder::new(&OpenOptions::default(), "test").unwrap();
    let block = |size: usize| {
        let payload = Bytes::from(vec![0; size]);
        Arc::new(decoder.legacy_block(RecordKind::Unpacked, &payload).unwrap())
    };
    let cache = BlockCache::default();
    for frame in 0..3 {
        cache.put(frame, &block(10 << 20));
    }
    assert!(cache.get(0).is_some());
    cache.put(3, &block(10 << 20));
    assert!(cache.get(1).is_none(), "0 was used since");
    assert!(cache.get(0).is_some() && cache.get(2).is_some() && cache.get(3).is_some());
    cache.put(4, &block(64 << 20));
    assert!(cache.get(4).is_none(), "too large to keep");
}

#[test]
fn levels_are_read_as_the_original_reads_them() {
    let registry = Registry::default();
    let data = vec![3; 5000];
    for entry in ["zstd", "zstd -1", "zstd 0", "zstd 22", "zstd 99999999999", "flate", "flate -2", "flate +3"]
    {
        let transformer = registry.get(&entry.into()).unwrap();
        let stored = transformer.encode(&data).unwrap();
        assert!(stored.len() < data.len());
        assert_eq!(transformer.decode(&stored, 5000).unwrap(), data, "{entry}");
        assert_eq!(transformer.decode(&stored, 4999).unwrap_err().kind(), ErrorKind::Limit, "{entry}");
        let cut = &stored[..stored.len() - 1];
        assert_eq!(
            transformer.decode(cut, 5000).unwrap_err().kind(),
            ErrorKind::Corrupt,
            "{entry} cut short"
        );
    }
    assert_eq!(registry.get(&"zstd x".into()).err().unwrap().kind(), ErrorKind::Invalid);
    assert_eq!(registry.get(&"flate x".into()).err().unwrap().kind(), ErrorKind::Invalid);
    assert!(registry.decoders(&["flate x".into(), "zstd ?".into()]).is_ok(), "reading needs no level");
    for entry in ["flate 10", "flate -3"] {
        assert_eq!(
            registry.get(&entry.into()).unwrap().encode(&data).unwrap_err().kind(),
            ErrorKind::Invalid
        );
    }
}

#[test]
fn a_withdrawn_trailer_leaves_a_file_without_one() {
    for blocks in [0, 1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.grail-rio");
        let options = WriteOptions::default().with(super::WriteOptions::default().with_trailer(true));
        let mut writer = Writer::create(&path, &options).unwrap();
        for block in 0..blocks {
            writer.append(&[block]).unwrap();
            writer.flush().unwrap();
        }
        writer.withdraw_trailer().unwrap();
        writer.append(b"last").unwrap();
        assert_eq!(writer.finish().unwrap().notices, []);
        let report = crate::tasks::verify(&path, &OpenOptions::default()).unwrap();
        assert!(report.is_sound());
        let source = crate::io::open_file(&path, crate::io::Access::Auto).unwrap();
        let scanner = Scanner::new(source, &OpenOptions::default()).unwrap();
        assert_eq!(scanner.header().get(TRAILER_KEY), Some(&Value::Bool(false)));
        assert_eq!(scanner.trailer().unwrap(), None);
    }
}
