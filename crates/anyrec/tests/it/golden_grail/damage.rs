//! The manifest's mutations, and damage of our own making.

use super::*;
use anyrec::ErrorKind;
use anyrec::format::grail::layout::{CHUNK, CHUNK_HEADER};

fn fix_checksum(data: &mut [u8], at: usize) {
    let size = u32::from_le_bytes(data[at + 16..at + 20].try_into().unwrap()) as usize;
    let end = (at + CHUNK_HEADER).saturating_add(size).min(at + CHUNK).min(data.len());
    let checksum = crc32fast::hash(&data[at + 12..end]).to_le_bytes();
    data[at + 8..at + 12].copy_from_slice(&checksum);
}

/// The base file with the entry's edits.
fn mutate(manifest: &Manifest, entry: &Entry<'_>) -> (Vec<u8>, Vec<u8>) {
    let base = std::fs::read(manifest.file(entry.get("base").str())).unwrap();
    let mut data = base.clone();
    for edit in entry.get("edits").items() {
        let edit = edit.items();
        let number = |at: usize| usize::try_from(edit[at].u64()).unwrap();
        match edit[0].str() {
            "xor" => data[number(1)] ^= u8::try_from(number(2)).unwrap(),
            "set" => {
                let bytes = edit[2].hex();
                data[number(1)..][..bytes.len()].copy_from_slice(&bytes);
            }
            "truncate" => data.truncate(number(1)),
            "append" => data.extend(edit[1].hex()),
            "append_file" => data.extend(std::fs::read(manifest.file(edit[1].str())).unwrap()),
            "fixcrc" => fix_checksum(&mut data, number(1)),
            other => panic!("edit {other}"),
        }
    }
    (base, data)
}

/// Whether a file of sound chunks ends within a chunk or within a block.
fn is_cut_short(data: &[u8]) -> bool {
    let mut at = 0;
    while at + CHUNK <= data.len() {
        at += u32::from_le_bytes(data[at + 20..at + 24].try_into().unwrap()) as usize * CHUNK;
    }
    at != data.len()
}

/// The numbers in a message of the original.
fn numbers(message: &str) -> Vec<u64> {
    message.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[test]
fn mutated_files_give_the_records_the_original_gives_and_an_error_where_it_does() {
    let manifest = Manifest::load("grail");
    for entry in manifest.root().get("mutations").items() {
        let name = entry.get("base").str();
        let what = entry.get("name").str();
        let (base, data) = mutate(&manifest, &entry);
        assert_eq!(digest(&data).1, entry.get("result_sha256").str(), "{what}: the same mutated file");
        let mut options = options();
        if entry.get("flate").bool() {
            options.set(options.own::<grail::OpenOptions>().with_legacy_transform(Transform::flate()));
        }
        let mut lenient = options.clone();
        lenient.skip_damage = true;
        let expected = entry.get("result");
        let text = |field: &str| expected.get(field).json().as_str();
        let count = expected.get("n_items").u64();
        let sequence = expected.get("seq_sha256").str();
        assert_eq!((text("panic"), text("trailer_panic")), (None, None));

        // Front to back: the original's items, then an error if it has one.
        let (items, error) = match Scanner::new(source(name, &data), &options) {
            Ok(mut scanner) => drain(&mut scanner),
            Err(error) => (Vec::new(), Some(error)),
        };
        assert_eq!((items.len() as u64, sequence_digest(&items).as_str()), (count, sequence), "{what}");
        let base_items = records(&scan(name, &base, &options));
        assert_eq!(base_items.starts_with(&items), expected.get("items_are_prefix_of_base").bool(), "{what}");
        if let Some(message) = text("scan_err").or(text("open_err")) {
            let error = error.as_ref().unwrap_or_else(|| panic!("{what}: no error, expected {message}"));
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}");
            if message.starts_with("Chunk checksum") {
                // The original calls the computed one expected and the stored one got.
                let [computed, stored] = numbers(message)[..] else { panic!("{message}") };
                let hex = |number: u64| format!("expected {:08x}, found {:08x}", stored, number);
                assert!(error.to_string().contains(&hex(computed)), "{error}, {message}");
            }
            if message.contains("invalid magic number") {
                assert!(error.message().contains("invalid magic number"), "{error}");
            }
        }

        // All events: what comes before the first damage is what the original gives.
        let seen = scan(name, &data, &options);
        let found = damages(&seen);
        let intact: Vec<Seen> =
            seen.iter().take_while(|event| !matches!(event, Seen::Damage(_))).cloned().collect();
        assert_eq!(sequence_digest(&records(&intact)), sequence, "{what}");
        let silent =
            text("scan_err").is_none() && text("open_err").is_none() && text("trailer_err").is_none();
        if silent {
            // What is cut off at the end goes unnoticed there, and not here.
            assert!(found.iter().all(|damage| damage.end == data.len() as u64), "{what}: {found:?}");
            let two = data.starts_with(&anyrec::format::grail::layout::HEADER_MAGIC);
            assert_eq!(!found.is_empty(), two && is_cut_short(&data), "{what}: {found:?}");
            assert_eq!(error.is_some(), !found.is_empty(), "{what}");
        } else {
            assert!(!found.is_empty(), "{what}");
        }

        // By number: all or nothing, unless damage may be skipped.
        let reader = open(name, &data, &options);
        let damaged = found.iter().any(|damage| damage.begin < damage.end);
        match reader.and_then(|reader| reader.count()) {
            Ok(count) => assert!(!damaged && count == items.len() as u64, "{what}"),
            Err(error) => assert!(damaged && error.hint().is_some(), "{what}: {error}"),
        }
        let reader = open(name, &data, &lenient).unwrap();
        assert_eq!(read_all(&*reader), records(&seen), "{what}");

        // The trailer, which needs a header.
        let trailer = expected.get("trailer");
        let trailer = (!is_null(&trailer)).then(|| trailer.digest());
        if let Ok(scanner) = Scanner::new(source(name, &data), &options) {
            match scanner.trailer() {
                Ok(found) => {
                    assert_eq!(
                        (found.as_deref().map(digest), text("trailer_err")),
                        (trailer, None),
                        "{what}"
                    );
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
                    assert!(text("trailer_err").is_some(), "{what}");
                }
            }
        } else {
            assert_eq!((text("trailer_err"), trailer), (None, None), "{what}");
        }
    }
    manifest.finish(&["mutations"]);
}

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(crate::manifest::golden("grail").join(name)).unwrap()
}

#[test]
fn a_bad_chunk_costs_its_block_and_no_other() {
    let mut data = golden("v2_large.grail-rio");
    let all = records(&scan("v2_large", &data, &options()));
    // Blocks of 1, 2, 2 and 4 chunks behind the header; the second chunk of the last one is hit.
    data[(1 + 1 + 2 + 2 + 1) * CHUNK + 5000] ^= 0x10;
    let seen = scan("v2_large", &data, &options());
    assert_eq!(records(&seen), all[..3]);
    let found = damages(&seen);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].begin, found[0].end, found[0].record), (6 * CHUNK as u64, 10 * CHUNK as u64, 3));
    assert!(found[0].reason.starts_with("chunk checksum does not match: expected "), "{}", found[0].reason);

    // And in the middle of the file.
    let mut data = golden("v2_large.grail-rio");
    data[3 * CHUNK + 9] ^= 1;
    let seen = scan("v2_large", &data, &options());
    assert_eq!(records(&seen), [&all[..1], &all[2..]].concat());
    assert_eq!((damages(&seen)[0].begin, damages(&seen)[0].end), (2 * CHUNK as u64, 4 * CHUNK as u64));
    // With a table the intact records have their numbers, and the damaged one an error.
    let mut numbered = anyrec::PositionList::new();
    for position in positions(&scan("v2_large", &golden("v2_large.grail-rio"), &options())) {
        numbered.push(position).unwrap();
    }
    let mut with_table = options();
    with_table.positions = Some(Arc::new(numbered));
    let reader = open("v2_large", &data, &with_table).unwrap();
    assert_eq!(reader.read(0).unwrap(), all[0]);
    assert_eq!(reader.read(5).unwrap(), all[5]);
    let error = reader.read(1).unwrap_err();
    assert_eq!((error.kind(), error.offset(), error.record()), (ErrorKind::Corrupt, Some(65536), Some(1)));
    assert!(error.expected().is_some() && error.hint().is_some(), "{error:?}");
}

#[test]
fn a_lost_header_does_not_cost_the_blocks_that_explain_themselves() {
    for name in ["v2_plain.grail-rio", "v2_zstd.grail-rio", "v2_flate.grail-rio"] {
        let all = records(&scan(name, &golden(name), &options()));
        // The payload, which the checksum covers, and the magic, which it does not.
        for at in [CHUNK_HEADER, 3] {
            let mut data = golden(name);
            data[at] ^= 1;
            let seen = scan(name, &data, &options());
            assert_eq!(damages(&seen).len(), 1, "{name}: {:?}", damages(&seen));
            assert_eq!(records(&seen), all, "{name}");
            assert!(open(name, &data, &options()).is_err());
            assert_eq!(read_all(&*open(name, &data, &skipping()).unwrap()), all, "{name}");
        }
    }
    let mut data = golden("v2_custom_plus.grail-rio");
    data[CHUNK_HEADER] ^= 1;
    let seen = scan("plus", &data, &options());
    assert_eq!(records(&seen), Vec::<Vec<u8>>::new());
    assert!(damages(&seen)[1].reason.contains("header is lost"), "{:?}", damages(&seen));
}

#[test]
fn bytes_after_the_trailer_are_damage_and_no_records() {
    let mut data = golden("v2_trailer_small.grail-rio");
    let all = records(&scan("trailer", &data, &options()));
    let length = data.len() as u64;
    data.extend(&golden("v2_plain.grail-rio")[CHUNK..]);
    let seen = scan("trailer", &data, &options());
    assert_eq!(records(&seen), all);
    let found = damages(&seen);
    assert_eq!((found.len(), found[0].begin, found[0].end), (1, length, data.len() as u64));
    assert!(found[0].reason.contains("follow the trailer"));
    // The scanner ends at the trailer, as the original's does.
    let mut scanner = Scanner::new(source("trailer", &data), &options()).unwrap();
    let (items, error) = drain(&mut scanner);
    assert_eq!((items, error.is_none()), (all, true));
}

#[test]
fn a_legacy_scan_goes_on_at_the_next_sound_record() {
    for name in ["legacy_unpacked.grail-rio", "legacy_packed.grail-rpk", "legacy_mixed.grail-rio"] {
        let data = golden(name);
        let all = scan(name, &data, &options());
        let second = all
            .iter()
            .find_map(|event| match event {
                Seen::Record { span, position, .. } if position.frame > 0 => Some(span.start),
                _ => None,
            })
            .unwrap();
        let rest: Vec<_> =
            all.iter().filter(|e| matches!(e, Seen::Record { position, .. } if position.frame > 0)).collect();
        for at in [0, 9, 17] {
            let mut data = data.clone();
            data[at] ^= 4;
            let seen = scan(name, &data, &options());
            assert_eq!((damages(&seen)[0].begin, damages(&seen)[0].end), (0, second), "{name}");
            assert_eq!(seen.iter().skip(1).collect::<Vec<_>>(), rest, "{name}");
        }
    }
}

#[test]
fn every_truncation_and_every_flipped_bit_is_covered_by_events() {
    let folder = crate::manifest::golden("grail");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with("json") {
            continue;
        }
        let data = std::fs::read(&path).unwrap();
        let whole = records(&scan(&name, &data, &options()));
        for length in (0..data.len()).filter(|_| data.len() <= 64 << 10) {
            let seen = try_scan(Window::new(source(&name, &data[..length])), &options()).unwrap();
            assert_covered(&seen, length as u64);
            assert!(whole.starts_with(&records(&seen)), "{name} cut to {length}");
        }
        let flips = (0..data.len() * 8).filter(|_| data.len() <= 8 << 10);
        // In larger files: every bit of the first body chunk's header and of the bytes behind it.
        let some = (0..(CHUNK_HEADER + 8) * 8).flat_map(|bit| [bit, CHUNK * 8 + bit]);
        for bit in flips.chain(some.filter(|bit| data.len() > 8 << 10 && bit / 8 < data.len())) {
            let mut data = data.clone();
            data[bit / 8] ^= 1 << (bit % 8);
            let seen = try_scan(Window::new(source(&name, &data)), &options()).unwrap();
            assert_covered(&seen, data.len() as u64);
            if name.starts_with("v2") {
                let found = records(&seen);
                let kept = found.iter().filter(|record| whole.contains(record)).count();
                assert_eq!(kept, found.len(), "{name}, bit {bit}: no record that was not there");
            }
        }
    }
}

#[test]
fn without_verification_a_flipped_item_byte_goes_unnoticed_and_says_so() {
    let mut data = golden("v2_plain.grail-rio");
    data[CHUNK + 3000] ^= 1;
    let mut unchecked = options();
    unchecked.verify = false;
    let seen = scan("plain", &data, &unchecked);
    assert_eq!(damages(&seen), []);
    assert!(seen.iter().any(|e| matches!(e, Seen::Record { checksum: Integrity::Unchecked, .. })));
    assert_eq!(records(&seen).len(), 100);
    assert_eq!(open("plain", &data, &unchecked).unwrap().count().unwrap(), 100);
}

#[test]
fn a_block_without_items_is_filler_and_a_flag_is_a_notice() {
    let mut data = golden("v2_plain.grail-rio");
    let end = data.len() as u64;
    anyrec::format::grail::layout::encode_block(
        anyrec::format::grail::layout::BlockKind::Body,
        &[0],
        &mut data,
    )
    .unwrap();
    let at = usize::try_from(end).unwrap();
    data[at + 12] = 9;
    fix_checksum(&mut data, at);
    let seen = scan("filler", &data, &options());
    assert_eq!(damages(&seen), []);
    let [.., Seen::Notice(notice), Seen::Metadata { span, content: Content::Filler }] = &seen[..] else {
        panic!("{seen:?}")
    };
    assert_eq!((notice.offset, span.clone()), (Some(end), end..data.len() as u64));
    assert_eq!(read_all(&*open("filler", &data, &options()).unwrap()).len(), 100);
}

#[test]
fn many_threads_read_one_reader() {
    let data = golden("v2_zstd.grail-rio");
    let all = records(&scan("threads", &data, &options()));
    let reader = open("threads", &data, &options()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (reader, all) = (&reader, &all);
            scope.spawn(move || {
                for step in 0..all.len() {
                    let index = (step * 7 + thread * 31) % all.len();
                    assert_eq!(reader.read(index as u64).unwrap(), all[index]);
                }
            });
        }
    });
}
