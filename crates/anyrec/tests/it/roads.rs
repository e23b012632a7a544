//! What users run is what is tested: every road to the records gives what the plain scan gives, on sound
//! files, on damaged ones and over a disk that fails.

use crate::conformance::{golden_files, options_for};
use anyrec::Tags;
use anyrec::format::{FORMATS, Format, OpenOptions, WriteOptions, by_id, grail};
use anyrec::testkit::{
    Tally, check_failing_disk, compare, compare_with_index_file, file_sources, memory_sources,
};
use std::path::Path;

/// Golden files up to this size are damaged in many ways.
const SMALL: usize = 80 << 10;

fn check(
    format: &'static dyn Format,
    data: &[u8],
    options: &OpenOptions,
    threads: bool,
    what: &str,
) -> Tally {
    compare(format, &memory_sources(data), options, threads)
        .unwrap_or_else(|difference| panic!("{what}: {difference}"))
}

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// Damages some bytes in one way of many; says how.
fn mutate(data: &mut Vec<u8>, numbers: &mut Numbers) -> String {
    let length = data.len();
    let at = numbers.below(length);
    let most = numbers.below(length - at);
    let size = 1 + numbers.below(most);
    match numbers.below(9) {
        0 => {
            data.truncate(at);
            format!("cut at {at}")
        }
        1 | 2 => {
            let bit = numbers.below(8);
            data[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} flipped")
        }
        3 => {
            data[at..at + size].fill(0);
            format!("{size} bytes zeroed at {at}")
        }
        4 => {
            let other = numbers.below(length - size + 1);
            let moved = data[other..other + size].to_vec();
            data[at..at + size].copy_from_slice(&moved);
            format!("{size} bytes at {at} overwritten with those at {other}")
        }
        5 => {
            let other = numbers.below(length - size + 1);
            let (mut one, mut two) = (data[at..at + size].to_vec(), data[other..other + size].to_vec());
            data[at..at + size].swap_with_slice(&mut two);
            data[other..other + size].swap_with_slice(&mut one);
            format!("{size} bytes swapped between {at} and {other}")
        }
        6 => {
            let copy = data[at..at + size].to_vec();
            data.splice(at..at, copy);
            format!("{size} bytes doubled at {at}")
        }
        7 => {
            data.drain(at..at + size);
            format!("{size} bytes lost at {at}")
        }
        _ => {
            // A number such as lengths and offsets are.
            let value = [0, 1, 4, length as u32, u32::MAX, 0x7fff_ffff, numbers.below(2 * length) as u32]
                [numbers.below(7)];
            let at = at / 4 * 4;
            let end = length.min(at + 4);
            data[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
            format!("the number at {at} set to {value}")
        }
    }
}

/// Mutates every small golden file of a format, each as often as the others: at least so many files, damaged
/// files, records and errors must come of it.
fn mutate_goldens(id: &str, times: usize, at_least: [u64; 4]) {
    let format = by_id(id).unwrap();
    let mut total = Tally::default();
    let mut numbers = Numbers(0x5eed);
    for path in golden_files(format) {
        let data = std::fs::read(&path).unwrap();
        if data.is_empty() || data.len() > SMALL {
            continue;
        }
        for turn in 0..times {
            let mut damaged = data.clone();
            let mut what = format!("{}, {}", path.display(), mutate(&mut damaged, &mut numbers));
            if turn % 3 == 0 && !damaged.is_empty() {
                what.push_str(&format!(", then {}", mutate(&mut damaged, &mut numbers)));
            }
            let mut options = options_for(&path);
            options.verify = turn % 5 != 1;
            if turn % 7 == 2 {
                // Reading gives up at the first record that is larger, on every road.
                options.limits.record = 64;
                what.push_str(", with a limit");
            }
            total.add(check(format, &damaged, &options, turn % 8 == 0, &what));
        }
    }
    println!("{id}: {total:?}");
    // A test that compared nothing would pass as well.
    let enough = [total.files, total.damaged, total.records, total.errors];
    assert!(enough.iter().zip(at_least).all(|(found, least)| *found >= least), "{total:?}");
}

#[test]
fn mutated_mxnet_files_read_alike_on_every_road() {
    mutate_goldens("mxnet", 60, [1200, 750, 900_000, 35_000]);
}

#[test]
fn mutated_ffrecord_files_read_alike_on_every_road() {
    mutate_goldens("ffrecord", 60, [2000, 1600, 600_000, 300_000]);
}

#[test]
fn mutated_grail_files_read_alike_on_every_road() {
    mutate_goldens("grail", 60, [600, 400, 400_000, 20_000]);
}

#[test]
fn mutated_idx_files_read_alike_on_every_road() {
    mutate_goldens("idx", 40, [1900, 800, 3_000_000, 100_000]);
}

#[test]
fn golden_files_read_alike_on_every_road_and_access() {
    let mut total = Tally::default();
    for format in FORMATS {
        for path in golden_files(*format) {
            let options = options_for(&path);
            let data = std::fs::read(&path).unwrap();
            let what = path.display().to_string();
            total.add(check(*format, &data, &options, true, &what));
            // Beside the others there are index files, which is another test's matter.
            let folder = tempfile::tempdir().unwrap();
            let alone = folder.path().join(path.file_name().unwrap());
            std::fs::write(&alone, &data).unwrap();
            let compared = compare(*format, &file_sources(&alone).unwrap(), &options, true);
            total.add(compared.unwrap_or_else(|difference| panic!("{what}: {difference}")));
        }
    }
    println!("{total:?}");
    assert_eq!(total.damaged, 0);
    assert!(total.files > 200, "{total:?}");
}

#[test]
fn a_failing_disk_fails_on_every_road() {
    let (mut files, mut failed) = (0, 0);
    for format in FORMATS {
        for path in golden_files(*format) {
            let data = std::fs::read(&path).unwrap();
            if data.len() > SMALL {
                continue;
            }
            files += 1;
            failed += check_failing_disk(*format, &data, &options_for(&path))
                .unwrap_or_else(|broken| panic!("{}: {broken}", path.display()));
        }
    }
    println!("{files} files, {failed} failures");
    assert!(files > 100 && failed > 20 * files, "{files} files, {failed} failures");
}

/// A file larger than what is read at a time: blocks are read from 1 MB on, in pieces of 512 KB.
fn large(folder: &Path, id: &str, transformers: &[&str]) -> Vec<u8> {
    let format = by_id(id).unwrap();
    let path = folder.join(format!("large.{}", format.extensions()[0]));
    let mut options = WriteOptions::default();
    options.overwrite = true;
    if !transformers.is_empty() {
        let mut own = grail::WriteOptions::default();
        own.transformers = transformers.iter().map(|name| (*name).into()).collect();
        options = options.with(own);
    }
    let mut writer = format.create(&path, &options).unwrap();
    for number in 0..90usize {
        let size = match number % 13 {
            _ if id == "idx" => 25_000,
            0 => 140_000,
            1 => 0,
            2 => 7,
            _ => 16_000 + number,
        };
        let mut record: Vec<u8> = (0..size).map(|at| ((at * (number + 3)) >> 4) as u8).collect();
        if number % 5 == 0 && size > 100 {
            record[40..44].copy_from_slice(&0xced7_230a_u32.to_le_bytes());
        }
        writer.append(&record, &Tags::none()).unwrap();
    }
    writer.finish().unwrap();
    std::fs::read(&path).unwrap()
}

#[test]
fn files_larger_than_blocks_and_parts_read_alike_on_every_road_and_access() {
    let folder = tempfile::tempdir().unwrap();
    let mut total = Tally::default();
    let mut numbers = Numbers(0xb10c);
    for (id, transformers) in
        [("mxnet", &[][..]), ("ffrecord", &[]), ("grail", &[]), ("grail", &["zstd"]), ("idx", &[])]
    {
        let data = large(folder.path(), id, transformers);
        assert!(data.len() > 2_000_000 || !transformers.is_empty(), "{id}: {}", data.len());
        for turn in 0..4 {
            let mut damaged = data.clone();
            let what = match turn {
                0 => "intact".to_owned(),
                _ => mutate(&mut damaged, &mut numbers),
            };
            let what = format!("{id} {transformers:?}, {what}");
            let options = OpenOptions::default();
            let format = by_id(id).unwrap();
            total.add(check(format, &damaged, &options, turn % 2 == 0, &what));
            let path = folder.path().join("damaged");
            std::fs::write(&path, &damaged).unwrap();
            let compared = compare(format, &file_sources(&path).unwrap(), &options, turn % 2 == 1);
            total.add(compared.unwrap_or_else(|difference| panic!("{what}: {difference}")));
        }
    }
    println!("{total:?}");
    assert!(total.files == 40 && total.damaged > 15, "{total:?}");
}

/// An FFRecord file whose table puts each sample where its own two offsets say, with checksums that hold
/// there: nothing but the order of the offsets is wrong.
fn ffrecord_with_offsets(offsets: &[usize], content: &[u8]) -> Vec<u8> {
    let count = offsets.len();
    let begin = 12 + 12 * count;
    let ends = offsets.iter().skip(1).copied().chain([content.len()]);
    let checksum = |(from, to): (&usize, usize)| crc32fast::hash(content.get(*from..to).unwrap_or_default());
    let mut table = (count as u64).to_le_bytes().to_vec();
    table.extend(offsets.iter().zip(ends).flat_map(|span| checksum(span).to_le_bytes()));
    table.extend(offsets.iter().flat_map(|offset| ((begin + offset) as u64).to_le_bytes()));
    [&crc32fast::hash(&table).to_le_bytes()[..], &table, content].concat()
}

#[test]
fn ffrecord_offsets_in_any_order_read_alike_on_every_road() {
    let content: Vec<u8> = (0..200u8).collect();
    let format = by_id("ffrecord").unwrap();
    let options = OpenOptions::default();
    // Sample 1 would overlap what is before it.
    let data = ffrecord_with_offsets(&[0, 100, 20, 150], &content);
    check(format, &data, &options, true, "one offset out of order");
    let (mut total, mut numbers) = (Tally::default(), Numbers(0xff));
    for turn in 0..1500 {
        let count = 2 + numbers.below(10);
        let mut offsets: Vec<usize> = (0..count).map(|_| numbers.below(21) * 10).collect();
        if turn % 3 > 0 {
            offsets.sort_unstable();
            let (one, other) = (numbers.below(count), numbers.below(count));
            offsets.swap(one, other);
            offsets[one] = if turn % 3 == 1 { offsets[one] } else { numbers.below(210) };
        }
        let mut data = ffrecord_with_offsets(&offsets, &content);
        if turn % 5 == 0 {
            data[..4].fill(0);
        }
        let mut options = options.clone();
        options.verify = turn % 4 > 0;
        total.add(check(format, &data, &options, turn % 16 == 0, &format!("{offsets:?}, turn {turn}")));
    }
    println!("{total:?}");
    assert!(total.damaged > 700 && total.records > 20_000 && total.errors > 20_000, "{total:?}");
}

#[test]
fn index_files_that_lie_read_alike_on_every_road() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    let format = by_id("mxnet").unwrap();
    let magic = 0xced7_230a_u32.to_le_bytes();
    let (mut total, mut numbers) = (Tally::default(), Numbers(0x1d));
    // An index file of more than 1,024 entries is sampled, a smaller one looked at as a whole.
    for turn in 0..40 {
        let count = if turn % 2 == 0 { 40 } else { 1300 };
        let mut options = WriteOptions::default();
        options.overwrite = true;
        let mut writer = format.create(&path, &options).unwrap();
        for number in 0..count {
            let mut record = format!("record {number}").into_bytes();
            record.resize(12 + number % 3 * 4, 0);
            if number % 4 == 1 {
                record.extend([&magic[..], b"more", &magic, b"the end"].concat());
            }
            writer.append(&record, &Tags::none()).unwrap();
        }
        writer.finish().unwrap();
        let data = std::fs::read(&path).unwrap();
        let parts: Vec<usize> =
            (0..data.len()).step_by(4).filter(|&at| data[at..].starts_with(&magic)).collect();
        let mut offsets: Vec<usize> = parts.iter().copied().filter(|&at| data[at + 7] >> 5 < 2).collect();
        for _ in 0..1 + numbers.below(3) {
            let at = 1 + numbers.below(offsets.len() - 1);
            match numbers.below(5) {
                0 | 1 => drop(offsets.remove(at)),
                2 => offsets[at] = parts[numbers.below(parts.len())],
                3 => offsets.insert(at, parts[numbers.below(parts.len())]),
                _ => offsets[at] = numbers.below(data.len() + 100),
            }
        }
        let index: String =
            offsets.iter().enumerate().map(|(key, offset)| format!("{key}\t{offset}\n")).collect();
        std::fs::write(path.with_extension("idx"), index).unwrap();
        let compared = compare_with_index_file(format, &path, &OpenOptions::default());
        total.add(compared.unwrap_or_else(|difference| panic!("turn {turn}: {difference}")));
    }
    println!("{total:?}");
    assert!(total.files == 40 && total.damaged == 0 && total.errors > 100, "{total:?}");
}
