//! The golden files: everything the original reads from them, ours reads too; written anew they
//! are the same, byte for byte where the bytes are not a compressor's.

use super::*;
use crate::golden_grail::rewrite::{rewrite_legacy, rewrite_two};
use anyrec::format::grail::layout::{self, BlockKind, CHUNK};
use anyrec::format::grail::legacy;

/// What was read from a golden file, checked against its entry.
pub struct Golden<'a> {
    pub entry: Entry<'a>,
    pub name: &'a str,
    pub data: Vec<u8>,
    pub items: Vec<Vec<u8>>,
    pub positions: Vec<Position>,
    pub trailer: Option<Vec<u8>>,
}

#[test]
fn every_golden_file_reads_and_writes_as_the_manifest_says() {
    let manifest = Manifest::load("grail");
    for entry in manifest.root().get("files").items() {
        let golden = check_reading(&manifest, entry);
        match golden.entry.get("format_version").u64() {
            2 => {
                check_blocks(&golden);
                check_shards(&golden);
                rewrite_two(&golden);
            }
            1 => rewrite_legacy(&golden),
            other => panic!("version {other}"),
        }
        for field in ["how", "note", "how_read"] {
            if let Some(text) = golden.entry.find(field) {
                text.informational();
            }
        }
    }
    manifest.finish(&["files"]);
}

fn check_reading<'a>(manifest: &'a Manifest, entry: Entry<'a>) -> Golden<'a> {
    let name = entry.get("path").str();
    let data = std::fs::read(manifest.file(name)).unwrap();
    assert_eq!(
        (data.len() as u64, digest(&data).1),
        (entry.get("size").u64(), entry.get("sha256").str().into())
    );

    let seen = scan(name, &data, &options());
    assert_eq!(damages(&seen), [], "{name}");
    let expected: Vec<_> = entry.find("items").map_or_else(Vec::new, |items| items.items());
    let items = records(&seen);
    assert_eq!(items.len(), expected.len(), "{name}");
    for (item, expected) in items.iter().zip(&expected) {
        assert_eq!(digest(item), expected.digest(), "{name}");
    }
    let found = positions(&seen);
    if let Some(index) = entry.find("index") {
        let expected: Vec<(u64, u64)> = serde_json::from_value(index.json().clone()).unwrap();
        let found: Vec<_> = found.iter().map(|position| (position.frame, position.item)).collect();
        assert_eq!(found, expected, "{name}");
    }

    let header = entry.find("header").map_or_else(Vec::new, |header| header.items());
    let header: Vec<_> = header.iter().map(value).collect();
    let trailer = entry.find("trailer").filter(|trailer| !is_null(trailer)).map(|trailer| trailer.digest());
    let in_scan: Vec<_> = seen
        .iter()
        .filter_map(|event| match event {
            Seen::Metadata { content, .. } => Some(content.clone()),
            _ => None,
        })
        .collect();
    let two = entry.get("format_version").u64() == 2;
    assert_eq!(in_scan.len(), usize::from(two) + usize::from(trailer.is_some()), "{name}: {in_scan:?}");
    if two {
        let Content::Header(pairs) = &in_scan[0] else { panic!("{name}: {in_scan:?}") };
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (key.to_vec(), value.clone())).collect();
        assert_eq!(pairs, header, "{name}");
    }
    let checksum = if two { Integrity::Verified } else { Integrity::Absent };
    assert!(seen.iter().all(|event| match event {
        Seen::Record { checksum: found, .. } => *found == checksum,
        _ => true,
    }));

    let mut scanner = Scanner::new(source(name, &data), &options()).unwrap();
    // An empty file has no version; the entry says so in words only.
    assert_eq!(
        u64::from(scanner.version()),
        entry.find("version").map_or(0, |version| version.u64()),
        "{name}"
    );
    let pairs: Vec<_> =
        scanner.header().pairs().iter().map(|(key, value)| (key.to_vec(), value.clone())).collect();
    assert_eq!(pairs, header, "{name}");
    for (item, position) in items.iter().zip(&found) {
        assert_eq!(scanner.next_item().unwrap(), Some(&item[..]), "{name}");
        assert_eq!(scanner.location(), Some(*position), "{name}");
    }
    assert_eq!(scanner.next_item().unwrap(), None, "{name}");
    for (item, position) in items.iter().zip(&found).rev().step_by(7) {
        scanner.seek(*position).unwrap();
        assert_eq!(scanner.next_item().unwrap(), Some(&item[..]), "{name} {position:?}");
    }
    let read_trailer = scanner.trailer().unwrap().map(|trailer| trailer.to_vec());
    assert_eq!(read_trailer.as_deref().map(digest), trailer, "{name}");
    if let Some(trailer) = &read_trailer {
        assert_eq!(in_scan.last(), Some(&Content::Trailer(trailer.clone())), "{name}");
    }

    let reader = open(name, &data, &options()).unwrap();
    assert_eq!(read_all(&*reader), items, "{name}");
    let info = reader.info().unwrap();
    assert_eq!(info.trailer, read_trailer, "{name}");
    assert_eq!(info.version.starts_with('2'), two, "{name}");
    let located: Vec<_> = (0..items.len() as u64).map(|at| reader.locate(at).unwrap().position).collect();
    assert_eq!(located, found, "{name}");
    let positional = anyrec::io::open_file(&manifest.file(name), anyrec::io::Access::Positional).unwrap();
    assert_eq!(try_scan(Window::new(Arc::clone(&positional)), &options()).unwrap(), seen, "{name}");
    assert_eq!(read_all(&*FORMAT.open(positional, &options()).unwrap()), items, "{name}");
    // Where the original stumbles over its own buffers, all items are read all the same.
    if let Some(bug) = entry.find("reference_scan_bug") {
        assert!(bug.get("n_items_before_failure").u64() < items.len() as u64);
        assert!(bug.get("items_right").bool());
        bug.get("scan_err").informational();
        bug.get("why").informational();
    }
    Golden { entry, name, data, items, positions: found, trailer: read_trailer }
}

/// The chunks, one by one, against the list of blocks.
fn check_blocks(golden: &Golden<'_>) {
    let mut found = Vec::new();
    let mut at = 0;
    while at < golden.data.len() {
        let first = layout::decode_chunk(&golden.data[at..], true).unwrap();
        let (kind, stored) = layout::join_block(&golden.data[at..], true).unwrap();
        let kind = match kind {
            BlockKind::Header => "header",
            BlockKind::Body => "body",
            BlockKind::Trailer => "trailer",
        };
        found.push((at as u64, u64::from(first.total), kind.to_owned(), stored.len() as u64));
        at += first.total as usize * CHUNK;
    }
    let blocks = golden.entry.get("blocks");
    let expected: Vec<(u64, u64, String, u64)> = serde_json::from_value(blocks.json().clone()).unwrap();
    assert_eq!(found, expected, "{}", golden.name);
}

fn check_shards(golden: &Golden<'_>) {
    let Some(shards) = golden.entry.find("shards") else { return };
    for shard in shards.items() {
        let number = |field: &str| shard.get(field).json().as_i64().unwrap();
        let (start, limit, of) = (number("start"), number("limit"), number("nshard"));
        let scanner = Scanner::new_shard(source(golden.name, &golden.data), &options(), start, limit, of);
        let expected = shard.get("err").json().as_str();
        assert_eq!(
            scanner.as_ref().err().map(|error| error.message()),
            expected,
            "[{start},{limit}) of {of}"
        );
        let items = scanner.map_or_else(
            |_| Vec::new(),
            |mut scanner| match drain(&mut scanner) {
                (items, None) => items,
                (_, Some(error)) => panic!("[{start},{limit}) of {of}: {error}"),
            },
        );
        assert_eq!(items.len() as u64, shard.get("n_items").u64(), "[{start},{limit}) of {of}");
        assert_eq!(sequence_digest(&items), shard.get("seq_sha256").str(), "[{start},{limit}) of {of}");
        match shard.get("first_item").json().as_u64() {
            Some(first) => assert_eq!(items[0], golden.items[usize::try_from(first).unwrap()]),
            None => assert!(items.is_empty()),
        }
    }
}

#[test]
fn estimates_are_those_of_the_original() {
    let manifest = Manifest::load("grail");
    for entry in manifest.root().get("estimates").items() {
        let sizes: Vec<u64> = serde_json::from_value(entry.get("item_sizes").json().clone()).unwrap();
        let space = anyrec::format::grail::required_space(&sizes, entry.get("record_size").u64());
        assert_eq!(space.unwrap(), entry.get("expected").u64(), "{}", entry.address);
    }
    manifest.finish(&["estimates"]);
}

#[test]
fn detection_knows_both_versions_and_nothing_else() {
    use anyrec::format::Likeness;
    let mut head = layout::HEADER_MAGIC.to_vec();
    assert_eq!(FORMAT.detect(&head, Some(32768)), Likeness::Certain);
    head[3] ^= 1;
    assert_eq!(FORMAT.detect(&head, Some(32768)), Likeness::No);
    assert_eq!(FORMAT.detect(&legacy::UNPACKED_MAGIC, None), Likeness::Certain);
    assert_eq!(FORMAT.detect(&legacy::PACKED_MAGIC, None), Likeness::Certain);
    assert_eq!(FORMAT.detect(b"", Some(0)), Likeness::No);
    assert_eq!(anyrec::format::by_name("a.grail-rpk-gz".as_ref()).unwrap().id(), "grail");
}
