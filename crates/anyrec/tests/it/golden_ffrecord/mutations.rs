//! Damaged files: what the original makes of them, and what the scan saves.

use super::{Digest, Scanned, memory, scan, verifying};
use crate::manifest::{Entry, Manifest, digest};
use anyrec::ErrorKind;
use anyrec::format::ffrecord::Reader;
use anyrec::format::{Integrity, OpenOptions, RecordReader};

fn index(value: &serde_json::Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// The manifest's edits, in order.
fn edited(mut data: Vec<u8>, edits: &[Entry]) -> Vec<u8> {
    for edit in edits {
        let edit = edit.json().as_array().unwrap();
        let bytes = |at: usize| hex::decode(edit[at].as_str().unwrap()).unwrap();
        match edit[0].as_str().unwrap() {
            "xor" => data[index(&edit[1])] ^= u8::try_from(index(&edit[2])).unwrap(),
            "set" => {
                let at = index(&edit[1]);
                let new = bytes(2);
                data[at..at + new.len()].copy_from_slice(&new);
            }
            "append" => data.extend(bytes(1)),
            "truncate" => data.truncate(index(&edit[1])),
            "fixmeta" => {
                let count = usize::try_from(u64::from_le_bytes(data[4..12].try_into().unwrap())).unwrap();
                let checksum = crc32fast::hash(&data[4..12 + 12 * count]);
                data[..4].copy_from_slice(&checksum.to_le_bytes());
            }
            other => panic!("unknown edit {other}"),
        }
    }
    data
}

/// The samples whose own checksum holds, found without the library: the table's entries as they
/// are, taken where offsets rise and lie in the file.
fn intact(data: &[u8]) -> Vec<Vec<u8>> {
    let u32_at = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
    let u64_at = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
    let count = match data.len() {
        12.. => usize::try_from(u64_at(4)).unwrap(),
        _ => return Vec::new(),
    };
    if count.checked_mul(12).and_then(|size| size.checked_add(12)).is_none_or(|size| size > data.len()) {
        return Vec::new();
    }
    let mut ends: Vec<u64> = (0..count).map(|i| u64_at(12 + 4 * count + 8 * i)).collect();
    ends.push(data.len() as u64);
    (0..count)
        .filter_map(|i| {
            let begin = usize::try_from(ends[i]).ok().filter(|&begin| begin >= 12 + 12 * count)?;
            let sample = data.get(begin..usize::try_from(ends[i + 1]).ok()?)?;
            (crc32fast::hash(sample) == u32_at(12 + 4 * i)).then(|| sample.to_vec())
        })
        .collect()
}

/// Asserts that a result is what the original's was: these records, or a failure like its.
fn assert_outcome(outcome: &serde_json::Value, ours: anyrec::Result<Vec<Digest>>, what: &str) {
    if let Some(expected) = outcome.get("ok") {
        let one = expected.get(0).is_some_and(serde_json::Value::is_u64);
        let expected = if one { serde_json::json!([expected]) } else { expected.clone() };
        assert_eq!(serde_json::to_value(ours.unwrap()).unwrap(), expected, "{what}");
        return;
    }
    let message = outcome["msg"].as_str().unwrap();
    let error = ours.expect_err(what);
    let (kind, phrase) = match message {
        _ if message.contains("checksum of metadata") => (ErrorKind::Corrupt, None),
        _ if message.contains("index >= number of samples") => (ErrorKind::OutOfRange, None),
        _ => {
            let (_, sample) = message.split_once("Sample ").expect(message);
            (ErrorKind::Corrupt, Some(format!("Sample {}", sample.split_once("mismached").unwrap().0)))
        }
    };
    assert_eq!(error.kind(), kind, "{what}: {error}");
    assert!(error.message().contains(&phrase.unwrap_or_default()), "{what}: {error}");
}

#[test]
fn mutated_files_read_as_the_original_reads_them() {
    let manifest = Manifest::load("ffrecord");
    for mutation in manifest.root().get("mutations").items() {
        let name = mutation.get("name").str();
        let base = std::fs::read(manifest.file(mutation.get("base").str())).unwrap();
        let data = edited(base, &mutation.get("edits").items());
        assert_eq!(digest(&data).1, mutation.get("result_sha256").str(), "{name}");

        for result in mutation.get("result").items() {
            let options = verifying(result.get("check_data").bool());
            let opened = Reader::open(memory(&data), &options);
            let outcome = result.get("open").json();
            let reads = result.get("reads").items();
            let Some(count) = outcome.get("ok") else {
                assert_outcome(outcome, opened.map(|_| Vec::new()), name);
                assert!(reads.is_empty());
                continue;
            };
            let reader = opened.unwrap();
            assert_eq!(reader.count(), count.as_u64().unwrap(), "{name}");
            for read in reads {
                let [which, outcome] = read.json().as_array().unwrap().as_slice() else { panic!("{name}") };
                let ours = match which.as_array() {
                    None => reader.read(which.as_u64().unwrap()).map(|sample| vec![digest(&sample)]),
                    Some(which) => {
                        let which: Vec<u64> = which.iter().map(|index| index.as_u64().unwrap()).collect();
                        anyrec::read_batch(&reader, &which).map(|batch| batch.iter().map(digest).collect())
                    }
                };
                assert_outcome(outcome, ours, &format!("{name}, {which}"));
            }
            let validated = reader.validate();
            let outcome = result.get("validate").json();
            match outcome.get("ok") {
                Some(_) => assert!(validated.is_ok(), "{name}"),
                None => assert_outcome(outcome, validated.map(|()| Vec::new()), name),
            }
        }

        // The scan gives the samples whose checksums hold, even where the original refuses to
        // open the file, and calls the rest damage.
        let scanned = scan(&data, &OpenOptions::default());
        let records: Vec<Vec<u8>> = scanned.records.into_iter().map(|(_, data)| data).collect();
        assert_eq!(records, intact(&data), "{name}");
        let sound = Reader::open(memory(&data), &OpenOptions::default())
            .is_ok_and(|reader| (0..reader.count()).all(|index| reader.read(index).is_ok()));
        assert_eq!(scanned.damage.is_empty(), sound, "{name}: {:?}", scanned.damage);
    }
    manifest.finish(&["mutations"]);
}

/// Every cut and every flipped bit of the small golden files: the events cover the file (checked
/// by `scan`), and no sample is delivered that was not in the file.
#[test]
fn every_cut_and_every_flipped_bit_is_accounted_for() {
    let manifest = Manifest::load("ffrecord");
    let check = |data: &[u8], original: &Scanned, what: &str| {
        let scanned = super::scan_window(
            anyrec::io::Window::new(memory(data)),
            &OpenOptions::default(),
            data.len() as u64,
        );
        for (_, record) in &scanned.records {
            assert!(original.records.iter().any(|(_, other)| other == record), "{what}");
        }
        let stream = anyrec::io::Window::from_stream("stream", std::io::Cursor::new(data.to_vec()));
        super::scan_window(stream, &OpenOptions::default(), data.len() as u64);
        super::scan_window(anyrec::io::Window::new(memory(data)), &verifying(false), data.len() as u64);
        // Whatever can be opened can be read or refuses to.
        if let Ok(reader) = Reader::open(memory(data), &verifying(false)) {
            for index in 0..reader.count().min(100) {
                drop(reader.read(index));
            }
        }
        scanned
    };
    for name in
        ["n0.ffr", "n1.ffr", "n1_empty.ffr", "all_empty.ffr", "first_last_empty.ffr", "old_version.ffr"]
    {
        let data = std::fs::read(manifest.file(name)).unwrap();
        let original = scan(&data, &OpenOptions::default());
        for cut in 0..data.len() {
            let scanned = check(&data[..cut], &original, &format!("{name} cut at {cut}"));
            assert!(!scanned.damage.is_empty(), "{name} cut at {cut}");
        }
        for bit in 0..data.len() * 8 {
            let mut flipped = data.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let scanned = check(&flipped, &original, &format!("{name} with bit {bit} flipped"));
            let old = original.notices.len() == 1;
            assert!(!scanned.damage.is_empty() || old, "{name} with bit {bit} flipped");
        }
    }
}

#[test]
fn one_flipped_offset_costs_two_samples_at_most() {
    let manifest = Manifest::load("ffrecord");
    let data = std::fs::read(manifest.file("n1000.ffr")).unwrap();
    for sample in [1, 2, 17, 499, 997] {
        for bit in 0..64 {
            let mut flipped = data.clone();
            flipped[12 + 4 * 1000 + 8 * sample + bit / 8] ^= 1 << (bit % 8);
            let options = OpenOptions::default();
            let window = anyrec::io::Window::new(memory(&flipped));
            let scanned = super::scan_window(window, &options, flipped.len() as u64);
            assert!(scanned.records.len() >= 998, "bit {bit} of offset {sample}: {:?}", scanned.damage);
        }
    }
}

#[test]
fn without_verifying_damaged_samples_are_delivered_unchecked() {
    let manifest = Manifest::load("ffrecord");
    let mut data = std::fs::read(manifest.file("n1.ffr")).unwrap();
    *data.last_mut().unwrap() ^= 1;
    let scanned = scan(&data, &verifying(false));
    assert_eq!(scanned.checksums, [Integrity::Unchecked]);
    assert_eq!(scanned.damage, []);
}

#[test]
fn a_damaged_table_is_used_as_far_as_it_goes_when_damage_may_be_skipped() {
    let manifest = Manifest::load("ffrecord");
    let mut data = std::fs::read(manifest.file("first_last_empty.ffr")).unwrap();
    data[16] ^= 1;
    let mut options = OpenOptions::default();
    let error = Reader::open(memory(&data), &options).unwrap_err();
    assert!(error.message().contains("checksum of metadata"), "{error}");
    assert_eq!(error.expected(), Some("0x64d9c84c"));
    assert!(error.hint().unwrap().to_string().contains("anyrec::repair"));
    options.skip_damage = true;
    let reader = Reader::open(memory(&data), &options).unwrap();
    assert_eq!(reader.info().unwrap().notices.len(), 1);
    let read: Vec<bool> = (0..6).map(|index| reader.read(index).is_ok()).collect();
    assert_eq!(read, [true, false, true, true, true, true]);
    let error = reader.read(1).unwrap_err();
    assert_eq!((error.offset(), error.record()), (Some(84), Some(1)));
}

#[test]
fn a_file_of_a_killed_writer_is_damage_and_opens_as_empty() {
    let data = [&[0; 36][..], b"samples without a table"].concat();
    let reader = Reader::open(memory(&data), &OpenOptions::default()).unwrap();
    assert_eq!(reader.count(), 0);
    assert!(reader.info().unwrap().notices[0].message.contains("never finished"));
    let scanned = scan(&data, &OpenOptions::default());
    assert_eq!(scanned.damage.len(), 1);
    assert!(scanned.damage[0].2.contains("never finished"));
}

#[test]
fn reasons_say_what_is_wrong() {
    let manifest = Manifest::load("ffrecord");
    let base = std::fs::read(manifest.file("first_last_empty.ffr")).unwrap();
    let reasons = |data: &[u8]| -> Vec<(u64, u64, String)> { scan(data, &OpenOptions::default()).damage };
    assert_eq!(
        reasons(&base[..90]),
        [(89, 90, "Samples 4 to 5 are cut off by the end of the file at byte 90".to_owned())]
    );
    assert_eq!(
        reasons(&base[..40]),
        [(0, 40, "the table of 6 samples takes 84 bytes, and the file has only 40".to_owned())]
    );
    assert_eq!(reasons(&base[..3]), [(0, 3, "the file has 3 bytes, fewer than a header's 12".to_owned())]);
    let mut bad = base.clone();
    bad[85] ^= 1;
    let [(84, 89, reason)] = &reasons(&bad)[..] else { panic!() };
    assert!(reason.starts_with("Sample 1: checksum mismatched: expected 0x024982ba, found 0x"), "{reason}");
    let mut bad = base.clone();
    bad[11] = 0x80;
    let [(0, 98, reason)] = &reasons(&bad)[..] else { panic!() };
    assert!(reason.starts_with("the number of samples is negative"), "{reason}");
}

/// Offsets that alternate between the ends of the file, so that each contradicts the next: read
/// without a bound, every other sample would be a pass over the whole file.
#[test]
fn contradicting_offsets_do_not_multiply_the_work() {
    let count = 40_000u64;
    let begin = 12 + 12 * count;
    let end = begin + 4_000_000;
    let mut data = [&1u32.to_le_bytes()[..], &count.to_le_bytes()].concat();
    data.resize(data.len() + 4 * 40_000, 1);
    for sample in 0..count {
        data.extend(if sample % 2 == 0 { begin } else { end }.to_le_bytes());
    }
    data.resize(usize::try_from(end).unwrap(), 7);
    let window = anyrec::io::Window::new(memory(&data));
    let scanned = super::scan_window(window, &OpenOptions::default(), end);
    assert_eq!(scanned.records, []);
    assert!(scanned.damage.len() < 2000, "{}", scanned.damage.len());
}
