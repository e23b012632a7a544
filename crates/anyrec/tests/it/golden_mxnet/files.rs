//! Section `files`: records, offsets, keys, labels, and the same bytes from our writer.

use super::{open, open_without_index, pixels, scan_window, tags_of, write_options};
use crate::manifest::{Entry, Manifest, digest};
use anyrec::format::mxnet::{
    FORMAT, ImageHeader, Index, IndexFile, KeySource, KeyType, LabelWidth, PartHeader, Writer, parse_list,
    write_list,
};
use anyrec::format::{Format, Likeness, OpenOptions, RecordReader};
use anyrec::io::{Access, Window, open_file};
use anyrec::{Key, Label};
use std::collections::HashMap;

#[test]
fn every_file_reads_and_rewrites_as_the_manifest_says() {
    let manifest = Manifest::load("mxnet");
    for file in manifest.root().get("files").items() {
        file.get("how").informational();
        if let Some(note) = file.find("note") {
            note.informational();
        }
        check_bytes(&manifest, &file);
        match file.get("path").str().ends_with(".rec") {
            true => check_data_file(&manifest, &file),
            false => check_rebuilt_index(&manifest, file.get("path").str()),
        }
    }
    manifest.finish(&["files"]);
}

fn check_bytes(manifest: &Manifest, file: &Entry<'_>) {
    let data = std::fs::read(manifest.file(file.get("path").str())).unwrap();
    assert_eq!(digest(&data), (file.get("size").u64(), file.get("sha256").str().to_owned()));
}

/// `x.rec2idx.idx` is what the original's tool makes of `x.rec`.
fn check_rebuilt_index(manifest: &Manifest, path: &str) {
    let data = manifest.file(&path.replace(".rec2idx.idx", ".rec"));
    let window = Window::new(open_file(&data, Access::Auto).unwrap());
    let rebuilt =
        Index::rebuild(&mut *FORMAT.scan(window, &OpenOptions::default()).unwrap(), &mut |_| {}).unwrap();
    assert_eq!(rebuilt.key_source, KeySource::Ordinals);
    assert!(rebuilt.reason.contains("record numbers"), "{}", rebuilt.reason);
    assert_eq!(rebuilt.damaged_stretches, 0);
    assert_eq!(rebuilt.index.to_bytes().unwrap(), std::fs::read(manifest.file(path)).unwrap());
}

fn check_data_file(manifest: &Manifest, file: &Entry<'_>) {
    let path = manifest.file(file.get("path").str());
    let data = std::fs::read(&path).unwrap();
    let expected: Vec<_> = file.get("records").items().iter().map(Entry::digest).collect();
    let offsets: Vec<u64> = file.get("offsets").items().iter().map(Entry::u64).collect();

    // Through every kind of window.
    let stream = std::io::Cursor::new(data.clone());
    let mut scanned = Vec::new();
    for window in [
        Window::new(open_file(&path, Access::Mapped).unwrap()),
        Window::new(open_file(&path, Access::Positional).unwrap()),
        Window::from_stream("stream", stream),
    ] {
        scanned.push(scan_window(window, data.len()));
    }
    let records = &scanned[0].records;
    assert_eq!(records.iter().map(|record| digest(record)).collect::<Vec<_>>(), expected);
    assert_eq!(scanned[0].offsets, offsets);
    assert_eq!((&scanned[0].damage[..], &scanned[0].notices[..]), (&[][..], &[][..]));
    assert!(scanned.iter().all(|other| *other == scanned[0]));

    // By number: with and without the index file, mapped and not, one by one and as a batch.
    for access in [Access::Mapped, Access::Positional] {
        for index_file in [IndexFile::Beside, IndexFile::None] {
            let options = super::options(|options| options.index_file = index_file.clone());
            let reader = FORMAT.open(open_file(&path, access).unwrap(), &options).unwrap();
            assert_eq!(reader.count().unwrap(), records.len() as u64);
            for (number, record) in (0..).zip(records) {
                assert_eq!(reader.read(number).unwrap(), record);
                assert_eq!(reader.locate(number).unwrap().position.frame, offsets[number as usize]);
            }
            let backwards: Vec<u64> = (0..records.len() as u64).rev().collect();
            let batch = anyrec::read_batch(&*reader, &backwards).unwrap();
            assert!(batch.iter().eq(records.iter().rev().map(Vec::as_slice)));
            assert!(reader.read(records.len() as u64).is_err());
        }
    }

    let likeness = FORMAT.detect(&data[..data.len().min(anyrec::format::HEAD)], Some(data.len() as u64));
    assert_eq!(likeness, if data.is_empty() { Likeness::No } else { Likeness::Certain });

    check_parts(file, &data, &offsets);
    check_rewriting(file, &data, records);
    if let Some(index) = file.find("idx_file") {
        check_bytes(manifest, &index);
        check_index(manifest, file, records, &offsets);
    }
    if let Some(pack) = file.find("pack") {
        check_pack(&pack, records);
    }
    if let Some(images) = file.find("images") {
        check_images(&path, &images, records);
    }
    if let Some(list) = file.find("lst_file") {
        check_bytes(manifest, &list);
        check_im2rec(manifest, file, records);
    }
}

/// The cflags and lengths of the records that are split, and no others.
fn check_parts(file: &Entry<'_>, data: &[u8], offsets: &[u64]) {
    let expected: HashMap<String, Vec<(u8, u32)>> =
        serde_json::from_value(file.get("parts").json().clone()).unwrap();
    let mut found = HashMap::new();
    let ends = offsets.iter().skip(1).copied().chain([data.len() as u64]);
    for (number, (&begin, end)) in offsets.iter().zip(ends).enumerate() {
        let mut parts = Vec::new();
        let mut at = begin;
        while at < end {
            let part = PartHeader::at_start_of(&data[at as usize..]).unwrap();
            parts.push((part.kind.flag(), part.length));
            at += part.size();
        }
        if parts.len() > 1 {
            found.insert(number.to_string(), parts);
        }
    }
    assert_eq!(found, expected);
}

/// All golden files have a framing that is reproducible, and say so.
fn check_rewriting(file: &Entry<'_>, data: &[u8], records: &[Vec<u8>]) {
    let reproducible = file.get("byte_reproducible").json();
    assert!(*reproducible == true || reproducible.as_str().unwrap().contains("framing"));
    let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    assert_eq!(super::written(&records), data);
}

fn key(entry: &Entry<'_>) -> Key {
    match entry.json() {
        serde_json::Value::String(text) => Key::Text(text.as_str().into()),
        number => Key::Int(number.to_string().parse().unwrap()),
    }
}

fn check_index(manifest: &Manifest, file: &Entry<'_>, records: &[Vec<u8>], offsets: &[u64]) {
    let path = manifest.file(file.get("path").str());
    let index_path = manifest.file(file.get("idx_file").get("path").str());
    let text = std::fs::read(&index_path).unwrap();
    let key_type = match file.get("key_type").str() {
        "int" => KeyType::Int,
        "str" => KeyType::Text,
        other => panic!("{other}"),
    };
    let index = Index::load(&index_path, Access::Auto, Some(key_type)).unwrap();
    assert_eq!(index, Index::load(&index_path, Access::Auto, None).unwrap());
    let keys: Vec<Key> = file.get("keys").items().iter().map(key).collect();
    assert_eq!(index.keys().collect::<Vec<_>>(), keys);
    assert_eq!(index.to_bytes().unwrap(), text);
    for pair in file.get("idx").items() {
        let [pair_key, offset] = &pair.items()[..] else { panic!("{} is no pair", pair.address) };
        assert_eq!(index.get(&key(pair_key)), Some(offset.u64()));
    }

    let reader = open(&path);
    for (number, &offset) in (0..).zip(offsets) {
        assert_eq!(tags_of(&reader, number).key, index.key_at(offset));
    }
    let by_number = open_without_index(&path);
    assert_eq!(tags_of(&by_number, 0).key, None);
    for entry in file.find("read_idx").map(|entry| entry.items()).unwrap_or_default() {
        let [wanted, length, sha256] = &entry.items()[..] else { panic!("{}", entry.address) };
        let record = reader.by_key(&key(wanted)).unwrap();
        assert_eq!(digest(&record), (length.u64(), sha256.str().to_owned()));
        let number = reader.number_of_key(&key(wanted)).unwrap();
        assert_eq!(reader.read(number).unwrap(), record);
    }

    let notices = FORMAT
        .check_companions(reader.source(), &OpenOptions::default(), by_number.positions().unwrap())
        .unwrap();
    let unindexed = records.len() - index.sorted_offsets().len();
    let left_out = notices.iter().filter(|notice| notice.message.contains("leaves out")).count();
    assert_eq!(left_out, usize::from(unindexed > 0), "{notices:?}");
    assert!(!notices.iter().any(|notice| notice.message.contains("stale")), "{notices:?}");

    if file.find("ops").is_some() {
        replay(file, records, &path, &text);
    } else {
        // Image records: the ids are the keys, so the index can be made from the data alone.
        let window = Window::new(open_file(&path, Access::Auto).unwrap());
        let rebuilt =
            Index::rebuild(&mut *FORMAT.scan(window, &OpenOptions::default()).unwrap(), &mut |_| {}).unwrap();
        assert_eq!(rebuilt.key_source, KeySource::ImageIds);
        assert_eq!(rebuilt.index, index);
    }
}

/// The original writer's calls, made again.
fn replay(file: &Entry<'_>, records: &[Vec<u8>], path: &std::path::Path, index_text: &[u8]) {
    let contents: HashMap<_, _> = records.iter().map(|record| (digest(record), record)).collect();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.rec");
    let index_copy = folder.path().join("other name.idx");
    let options = write_options(|options| options.index_file = Some(IndexFile::At(index_copy.clone())));
    let mut writer = Writer::create(&copy, &options).unwrap();
    let keys: Vec<Key> = file.get("keys").items().iter().map(key).collect();
    let unindexed: Vec<(u64, (u64, String))> =
        serde_json::from_value(file.get("unindexed_before").json().clone()).unwrap();
    let mut tells = vec![writer.tell()];
    for (number, operation) in (0..).zip(file.get("ops").items()) {
        for (_, plain) in unindexed.iter().filter(|(before, _)| *before == number) {
            writer.write(contents[plain]).unwrap();
        }
        let [name, written_key, length, sha256] = &operation.items()[..] else {
            panic!("{}", operation.address)
        };
        assert_eq!(name.str(), "write_idx");
        let key = &keys[number as usize];
        let text = match key {
            Key::Int(number) => number.to_string(),
            Key::Text(text) => text.to_string(),
        };
        assert_eq!(written_key.str(), text);
        writer.write_with_key(key, contents[&(length.u64(), sha256.str().to_owned())]).unwrap();
        tells.push(writer.tell());
    }
    let expected: Vec<u64> = file.get("writer_tell").items().iter().map(Entry::u64).collect();
    assert_eq!(tells, expected);
    assert_eq!(writer.finish().unwrap().records, records.len() as u64);
    assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(path).unwrap());
    assert_eq!(std::fs::read(&index_copy).unwrap(), index_text);
}

/// The label that a Python expression stands for.
fn label_of(text: &str) -> Label {
    let number = |text: &str| match text.trim() {
        "True" => 1.0,
        "False" => 0.0,
        text => text.parse::<f64>().unwrap(),
    };
    let inner = text.strip_prefix("np.array(").map_or(text, |rest| &rest[..=rest.find(']').unwrap()]);
    match inner.strip_prefix(['[', '(']) {
        None => Label::Scalar(number(inner)),
        Some(list) => {
            let list = list.trim_end_matches([']', ')']);
            Label::Array(list.split(',').filter(|item| !item.trim().is_empty()).map(number).collect())
        }
    }
}

/// Flag, label bytes and ids of a header, as the manifest lists them.
fn check_header(entry: &Entry<'_>, header: &ImageHeader) {
    assert_eq!(header.flag(), entry.get("flag").u64());
    let labels: Vec<u8> = header.labels().iter().flat_map(|&label| (label as f32).to_le_bytes()).collect();
    assert_eq!(labels, entry.get("label_f32le_hex").hex());
    assert_eq!(header.id.to_string(), entry.get("id").str());
    assert_eq!(header.id2.to_string(), entry.get("id2").str());
}

fn check_pack(pack: &Entry<'_>, records: &[Vec<u8>]) {
    let entries = pack.items();
    assert_eq!(entries.len(), records.len());
    for (entry, record) in entries.iter().zip(records) {
        assert_eq!(digest(record), entry.get("packed").digest());
        let (header, payload) = ImageHeader::unpack(record, LabelWidth::Narrow).unwrap();
        assert_eq!(digest(payload), entry.get("payload").digest());
        check_header(&entry.get("out"), &header);
        let kind = match header.label {
            Label::Scalar(_) => "scalar",
            Label::Array(_) => "array",
        };
        assert_eq!(kind, entry.get("out").get("label_kind").str());

        let given = entry.get("in");
        // The original overwrites the flag it is given; ours cannot be given one.
        given.get("flag").informational();
        let given = ImageHeader {
            label: label_of(given.get("label").str()),
            id: given.get("id").str().parse().unwrap(),
            id2: given.get("id2").str().parse().unwrap(),
        };
        assert_eq!(given.pack(payload, LabelWidth::Narrow).unwrap(), *record);
    }
}

fn check_images(path: &std::path::Path, images: &Entry<'_>, records: &[Vec<u8>]) {
    let reader = open(path);
    let images = images.items();
    assert_eq!(images.len(), records.len());
    for (number, (image, record)) in images.iter().zip(records).enumerate() {
        assert_eq!(digest(record), image.get("packed").digest());
        let (header, payload) = ImageHeader::unpack(record, LabelWidth::Narrow).unwrap();
        assert_eq!(digest(payload), image.get("payload").digest());
        check_header(image, &header);
        assert_eq!(tags_of(&reader, number as u64).label, Some(header.label.clone()));
        assert_eq!(header.pack(payload, LabelWidth::Narrow).unwrap(), *record);
        pixels::check_image(image, payload);
    }
}

fn check_im2rec(manifest: &Manifest, file: &Entry<'_>, records: &[Vec<u8>]) {
    let text = std::fs::read(manifest.file(file.get("lst_file").get("path").str())).unwrap();
    let list = parse_list("x.lst", &text).unwrap();
    assert_eq!(write_list(&list).unwrap(), text);
    let sources: Vec<(String, u64, String)> =
        serde_json::from_value(file.get("source_tree").json().clone()).unwrap();
    let passed_through = file.get("how").str().contains("--pass-through");

    let reader = open(&manifest.file(file.get("path").str()));
    let entries = file.get("entries").items();
    assert_eq!((entries.len(), list.len()), (records.len(), records.len()));
    for (number, ((entry, record), line)) in entries.iter().zip(records).zip(&list).enumerate() {
        let entry_key = key(&entry.get("key"));
        assert_eq!(entry_key, Key::Int(line.index));
        assert_eq!(reader.by_key(&entry_key).unwrap(), record);
        let columns: Vec<String> = serde_json::from_value(entry.get("lst").json().clone()).unwrap();
        assert_eq!(write_list(std::slice::from_ref(line)).unwrap(), (columns.join("\t") + "\n").as_bytes());

        let (header, payload) = ImageHeader::unpack(record, LabelWidth::Narrow).unwrap();
        assert_eq!(digest(payload), entry.get("payload").digest());
        check_header(entry, &header);
        assert_eq!(header.labels(), line.labels);
        assert_eq!(i128::from(header.id), line.index);
        let tags = tags_of(&reader, number as u64);
        assert_eq!((tags.key, tags.label), (Some(entry_key), Some(header.label)));
        pixels::check_shape(&entry.get("decoded_shape"), payload);
        let (_, length, sha256) = sources.iter().find(|(path, ..)| line.path == path.as_str()).unwrap();
        assert_eq!(passed_through, digest(payload) == (*length, sha256.clone()));
    }
}
