//! Section `inputsplit`.

use super::open_without_index;
use crate::manifest::{Entry, Manifest};
use anyrec::format::mxnet::{Index, split_by_bytes, split_by_records};
use anyrec::io::Access;

#[test]
fn parts_hold_the_records_that_the_original_gives_them() {
    let manifest = Manifest::load("mxnet");
    for entry in manifest.root().get("inputsplit").items() {
        let path = manifest.file(entry.get("file").str());
        let length = path.metadata().unwrap().len();
        let reader = open_without_index(&path);
        let positions = reader.positions().unwrap();
        let num_parts = entry.get("num_parts").u64();
        let records = entry.get("idx").json().as_str().map(|index| {
            let index = Index::load(&manifest.file(index), Access::Auto, None).unwrap();
            index.sorted_offsets().len() as u64
        });
        let parts = entry.get("parts").items();
        assert_eq!(parts.len() as u64, num_parts);
        for (part_index, part) in (0..).zip(parts) {
            let range = match records {
                Some(count) => split_by_records(count, part_index, num_parts).unwrap(),
                None => split_by_bytes(positions, length, part_index, num_parts).unwrap(),
            };
            let expected: Vec<u64> = part.items().iter().map(Entry::u64).collect();
            assert_eq!([range.start, range.end - range.start], expected[..], "{}", part.address);
        }
    }
    manifest.finish(&["inputsplit"]);
}

#[test]
fn a_part_that_is_not_there_is_refused() {
    assert!(split_by_records(10, 2, 2).is_err());
    assert!(split_by_records(10, 0, 0).is_err());
    assert_eq!(split_by_records(u64::MAX, 1, 2).unwrap(), (1 << 63)..u64::MAX);
}
