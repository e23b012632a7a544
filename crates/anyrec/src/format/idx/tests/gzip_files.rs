//! Gzip: members, checksums, damage, limits.

use super::*;

/// The records of a walk, without their positions.
fn data(walked: &Walk) -> Vec<&[u8]> {
    walked.records.iter().map(|record| &record.3[..]).collect()
}

#[test]
fn one_or_many_members_give_the_same_verified_records() {
    let file = plain();
    let (head, tail) = file.split_at(37);
    let single = member(&file);
    let several = [member(&file[..3]), member(b""), member(&file[3..37]), member(tail)].concat();
    assert_eq!([head, tail].concat(), file);
    for gzip in [single, several] {
        let walked = walk(&gzip, &OpenOptions::default());
        assert_eq!((&walked.damage, &walked.notices), (&vec![], &vec![]));
        assert_eq!(data(&walked).concat(), file[12..]);
        assert!(walked.records.iter().all(|record| record.2 == Integrity::Verified));
        assert_eq!(walked.records[0].1, 0..gzip.len() as u64);
        assert_eq!(walked.records[9].0, Position { frame: 0, item: 9 });
        let unverified = walk(&gzip, &options(false, false));
        assert_eq!(data(&unverified), data(&walked));
        assert!(unverified.records.iter().all(|record| record.2 == Integrity::Unchecked));
        let reader = open(&gzip, &OpenOptions::default());
        for (number, index) in [(9, 9), (0, 0), (5, 5)] {
            assert_eq!(reader.read(index).unwrap(), record(&file, number));
            let location = reader.locate(index).unwrap();
            assert_eq!(location.position, walked.records[number].0);
        }
        assert_eq!(reader.source().len(), file.len() as u64);
    }
}

#[test]
fn every_header_field_of_a_member_is_passed_over() {
    let mut encoder = flate2::GzBuilder::new()
        .extra(vec![7; 300])
        .filename("name")
        .comment("comment")
        .write(Vec::new(), Compression::default());
    encoder.write_all(&plain()).unwrap();
    let mut gzip = encoder.finish().unwrap();
    assert_eq!(walk(&gzip, &OpenOptions::default()).records.len(), 10);
    gzip[3] |= 2;
    let end = 10 + 2 + 300 + 5 + 8;
    gzip.splice(end..end, *b"CC");
    assert_eq!(walk(&gzip, &OpenOptions::default()).records.len(), 10);
    for length in 2..end + 2 {
        assert_eq!(walk(&gzip[..length], &OpenOptions::default()).damage.len(), 1);
    }
}

#[test]
fn a_wrong_checksum_of_the_only_member_is_damage_all_over() {
    let mut gzip = member(&plain());
    let at = gzip.len() - 8;
    gzip[at] ^= 1;
    let walked = walk(&gzip, &OpenOptions::default());
    assert_eq!((walked.records.len(), walked.damage.len()), (0, 1));
    assert_eq!((walked.damage[0].begin, walked.damage[0].end), (0, gzip.len() as u64));
    assert!(walked.damage[0].reason.contains("checksum of the uncompressed bytes 0 to 112 is wrong"));
    let reader = open(&gzip, &OpenOptions::default());
    assert_eq!(reader.count().unwrap(), 10);
    for error in [reader.read(0).unwrap_err(), reader.array().unwrap_err(), reader.data().unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
    let fresh = open(&gzip, &OpenOptions::default()).array();
    assert_eq!(fresh.unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(open(&gzip, &options(true, true)).count().unwrap(), 0);
    let trusting = options(false, false);
    assert_eq!(walk(&gzip, &trusting).records.len(), 10);
    assert_eq!(open(&gzip, &trusting).array_of::<u8>().unwrap().len(), 100);
}

#[test]
fn a_bad_member_in_the_middle_costs_the_records_it_touches() {
    let file = plain();
    // The second member holds the end of record 2, records 3 and 4, and the beginning of 5.
    let mut members = [member(&file[..40]), member(&file[40..65]), member(&file[65..])];
    let at = members[1].len() - 5;
    members[1][at] ^= 0x80;
    let gzip = members.concat();
    let walked = walk(&gzip, &OpenOptions::default());
    let expected: Vec<_> = [0, 1, 6, 7, 8, 9].iter().map(|&number| record(&file, number)).collect();
    assert_eq!(data(&walked), expected);
    assert!(walked.records.iter().all(|record| record.2 == Integrity::Verified));
    let (begin, end) = (members[0].len() as u64, (members[0].len() + members[1].len()) as u64);
    assert_eq!(walked.damage.len(), 1);
    assert_eq!((walked.damage[0].begin, walked.damage[0].end), (begin, end));
    assert_eq!(walked.records[2].0, Position { frame: end, item: 0 });

    let reader = open(&gzip, &OpenOptions::default());
    assert_eq!(reader.count().unwrap(), 10);
    assert_eq!(reader.read(6).unwrap(), record(&file, 6));
    let error = reader.read(5).unwrap_err();
    assert_eq!((error.kind(), error.record()), (ErrorKind::Corrupt, Some(5)));
    let skipping = open(&gzip, &options(true, true));
    assert_eq!(skipping.count().unwrap(), 6);
    for (index, (position, ..)) in walked.records.iter().enumerate() {
        assert_eq!(skipping.read(index as u64).unwrap(), expected[index]);
        assert_eq!(skipping.locate(index as u64).unwrap().position, *position);
    }
    assert_eq!(skipping.read(6).unwrap_err().kind(), ErrorKind::OutOfRange);
    assert_eq!(walk(&gzip, &options(false, false)).records.len(), 10);
}

#[test]
fn a_file_cut_short_anywhere_gives_a_prefix_and_says_so() {
    let file = plain();
    for gzip in [member(&file), [member(&file[..40]), member(&file[40..])].concat()] {
        for length in 2..gzip.len() {
            let cut = &gzip[..length];
            for verify in [true, false] {
                let walked = walk(cut, &options(verify, false));
                assert!(!walked.damage.is_empty(), "{length}");
                let expected: Vec<_> = (0..walked.records.len()).map(|at| record(&file, at)).collect();
                assert_eq!(data(&walked), expected);
                if let Ok(reader) = Reader::new(source(cut), &options(verify, true)) {
                    assert_eq!(reader.count().unwrap(), expected.len() as u64);
                    for (index, expected) in expected.iter().enumerate() {
                        assert_eq!(reader.read(index as u64).unwrap(), expected);
                    }
                    assert!(!verify || reader.array().is_err());
                }
            }
        }
    }
}

#[test]
fn a_record_of_a_cut_member_is_not_called_verified() {
    let file = plain();
    let first = member(&file[..40]);
    let gzip = [first, member(&file[40..])].concat();
    let walked = walk(&gzip[..gzip.len() - 6], &OpenOptions::default());
    let checksums: Vec<_> = walked.records.iter().map(|record| record.2).collect();
    assert_eq!(checksums[..2], [Integrity::Verified; 2]);
    assert_eq!(checksums[2..], [Integrity::Absent; 8]);
    assert!(walked.damage[0].reason.starts_with("the file ends inside a gzip checksum at byte"));
}

#[test]
fn no_flipped_bit_makes_a_wrong_record_verified() {
    let file = plain();
    let gzip = [member(&file[..40]), member(&file[40..65]), member(&file[65..])].concat();
    let right: Vec<_> = (0..10).map(|number| record(&file, number).to_vec()).collect();
    for bit in 0..gzip.len() * 8 {
        let mut flipped = gzip.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        for (_, _, checksum, data) in walk(&flipped, &OpenOptions::default()).records {
            assert!(checksum != Integrity::Verified || right.contains(&data), "bit {bit}");
        }
        if let Ok(array) = Reader::new(source(&flipped), &OpenOptions::default()).and_then(|it| it.array()) {
            assert_eq!(array, open(&file, &OpenOptions::default()).array().unwrap(), "bit {bit}");
        }
    }
}

#[test]
fn bytes_behind_the_gzip_data_are_a_notice() {
    let gzip = member(&plain());
    let padded = [&gzip[..], &[0; 20]].concat();
    let walked = walk(&padded, &OpenOptions::default());
    assert_eq!((walked.records.len(), walked.damage), (10, vec![]));
    assert_eq!(walked.notices[0].offset, Some(gzip.len() as u64));
    let broken = [&gzip[..], &[0x1f, 0x8b, 9, 0]].concat();
    assert_eq!(walk(&broken, &OpenOptions::default()).damage.len(), 1);
}

#[test]
fn an_empty_member_with_a_wrong_checksum_costs_nothing() {
    let mut odd = member(b"");
    let at = odd.len() - 8;
    odd[at] = 1;
    let walked = walk(&[member(&plain()), odd].concat(), &OpenOptions::default());
    assert_eq!((walked.records.len(), walked.damage), (10, vec![]));
    assert_eq!(walked.notices, [Notice::new("1 empty gzip members have a wrong checksum")]);
}

#[test]
fn a_bomb_is_stopped_at_the_limit() {
    let mut file = Header::new(ElementType::U8, vec![1 << 20, 64]).unwrap().encode();
    file.resize(64 << 20, 0);
    let gzip = member(&file);
    for verify in [true, false] {
        let mut options = options(verify, false);
        options.limits.decompressed = 1 << 20;
        let reader = open(&gzip, &options);
        assert_eq!(reader.read(0).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(reader.array().unwrap_err().kind(), ErrorKind::Limit);
        let mut scan = FORMAT.scan(Window::new(source(&gzip)), &options).unwrap();
        let error = loop {
            match scan.next_event() {
                Ok(Event::End) => panic!("no limit was met"),
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    }
}

#[test]
fn a_promise_alone_takes_no_memory() {
    let file = Header::new(ElementType::F64, vec![1 << 31, 1 << 20]).unwrap().encode();
    let reader = open(&member(&file), &OpenOptions::default());
    assert_eq!(reader.read(0).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(crate::engine::read_batch(&reader, &[0, 1]).unwrap_err().kind(), ErrorKind::Corrupt);
    let mut unlimited = OpenOptions::default();
    unlimited.limits.decompressed = u64::MAX;
    let error = open(&member(&file), &unlimited).array().unwrap_err();
    assert_eq!(error.found(), Some("12 bytes"));
}
