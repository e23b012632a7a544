//! Packed folders: the manifest's sections `packed` and `packed_queries`, packing and unpacking.

use super::{Digest, memory, verifying};
use crate::manifest::{Entry, Manifest, digest};
use anyrec::format::ffrecord::packed_folder::{ListOptions, UnpackOptions, pack_folder, retree};
use anyrec::format::ffrecord::{PackedFolder, Reader, Writer};
use anyrec::format::{OpenOptions, RecordReader, WriteOptions};
use anyrec::{BString, ErrorKind};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn open(data: &[u8]) -> PackedFolder {
    PackedFolder::open(memory(data), &OpenOptions::default()).unwrap()
}

fn listing(files: bool, folders: bool, recursive: bool) -> ListOptions {
    let mut options = ListOptions::default();
    (options.files, options.folders, options.recursive) = (files, folders, recursive);
    options
}

/// A name as the manifest shows it: one that is not Unicode is the Latin-1 view of its UTF-8
/// with surrogates, where `ED B2 80` to `ED B3 BF` stand for single bytes.
fn name(shown: &str) -> BString {
    let latin1: Option<Vec<u8>> = shown.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    let mut bytes = Vec::new();
    let mut escaped = false;
    let mut rest = latin1.as_deref().unwrap_or_default();
    while let [first, tail @ ..] = rest {
        if let [0xed, middle @ 0xb2..=0xb3, last @ 0x80..=0xbf, tail @ ..] = rest {
            bytes.push((middle & 3) << 6 | last & 0x3f);
            escaped = true;
            rest = tail;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    if escaped { bytes.into() } else { shown.into() }
}

fn paths(entry: &Entry) -> Vec<BString> {
    entry.items().iter().map(|path| name(path.str())).collect()
}

/// `[path, Python type]`: the type follows from the path's depth, and is Python's business.
fn typed_paths(entry: &Entry) -> Vec<BString> {
    let typed = |pair: &Entry| {
        let [path, kind] = pair.json().as_array().unwrap().as_slice() else { panic!() };
        let path = path.as_str().unwrap();
        assert_eq!(kind, if path.contains('/') { "Path" } else { "str" });
        name(path)
    };
    entry.items().iter().map(typed).collect()
}

/// Opcodes of a pickle by name and number of uses.
fn opcodes(pickle: &[u8]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let mut at = 0;
    while at < pickle.len() {
        let line = |from: usize| pickle[from..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let argument = at + 1;
        let (opcode, length) = match pickle[at] {
            0x80 => ("PROTO", 1),
            0x95 => ("FRAME", 8),
            b'c' => ("GLOBAL", line(argument) + line(argument + line(argument))),
            0x93 => ("STACK_GLOBAL", 0),
            b')' => ("EMPTY_TUPLE", 0),
            b'(' => ("MARK", 0),
            b't' => ("TUPLE", 0),
            b'R' => ("REDUCE", 0),
            b'}' => ("EMPTY_DICT", 0),
            b'd' => ("DICT", 0),
            0x94 => ("MEMOIZE", 0),
            b'p' => ("PUT", line(argument)),
            b'q' => ("BINPUT", 1),
            b'r' => ("LONG_BINPUT", 4),
            b'g' => ("GET", line(argument)),
            b'h' => ("BINGET", 1),
            b'j' => ("LONG_BINGET", 4),
            b'V' => ("UNICODE", line(argument)),
            0x8c => ("SHORT_BINUNICODE", 1 + usize::from(pickle[argument])),
            b'X' => {
                let length = u32::from_le_bytes(pickle[argument..argument + 4].try_into().unwrap());
                ("BINUNICODE", 4 + usize::try_from(length).unwrap())
            }
            b'I' => ("INT", line(argument)),
            b'J' => ("BININT", 4),
            b'K' => ("BININT1", 1),
            b'M' => ("BININT2", 2),
            0x8a => ("LONG1", 1 + usize::from(pickle[argument])),
            b's' => ("SETITEM", 0),
            b'u' => ("SETITEMS", 0),
            b'.' => ("STOP", 0),
            other => panic!("opcode {other:#x}"),
        };
        *counts.entry(opcode.to_owned()).or_default() += 1;
        at = argument + length;
    }
    counts
}

/// Makes the files and folders of a packed folder for real.
fn restore(packed: &PackedFolder, folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    for path in packed.list("", &listing(true, true, true)).unwrap() {
        let real = folder.join(OsStr::from_bytes(&path));
        match packed.is_folder(&path) {
            true => std::fs::create_dir(real).unwrap(),
            false => std::fs::write(real, packed.read_one(&path).unwrap()).unwrap(),
        }
    }
}

/// What packing a folder gives.
fn pack(folder: &Path) -> Vec<u8> {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("packed.ffr");
    pack_folder(folder, &file, &WriteOptions::default(), &mut |_| {}).unwrap();
    std::fs::read(file).unwrap()
}

/// The samples of a file, the tree not counted.
fn samples(packed: &PackedFolder) -> Vec<Digest> {
    (0..packed.num_files()).map(|sample| digest(&packed.reader().read(sample).unwrap())).collect()
}

#[test]
fn packed_folders_read_and_repack_as_the_original_says() {
    let manifest = Manifest::load("ffrecord");
    for entry in manifest.root().get("packed").items() {
        let file = entry.get("path").str();
        let data = std::fs::read(manifest.file(file)).unwrap();
        assert_eq!(digest(&data), (entry.get("size").u64(), entry.get("sha256").str().to_owned()), "{file}");
        entry.get("note").informational();
        if let Some(encoding) = entry.find("names_encoding") {
            encoding.informational();
        }
        let packed = open(&data);
        assert_eq!(packed.num_files(), entry.get("num_files").u64(), "{file}");
        let count = packed.reader().count();
        assert_eq!(count, entry.get("n").u64(), "{file}");

        let tree = packed.reader().read(count - 1).unwrap();
        let expected = (entry.get("meta_len").u64(), entry.get("meta_sha256").str().to_owned());
        assert_eq!(digest(&tree), expected, "{file}");
        let found = opcodes(&tree[9..]);
        assert_eq!(serde_json::to_value(found).unwrap(), *entry.get("pickle_opcodes").json(), "{file}");

        if let Some(entries) = entry.find("entries") {
            let all = packed.list("", &listing(true, true, true)).unwrap();
            let ours = all.into_iter().map(|path| {
                let sample = packed.is_file(&path).then(|| packed.sample(&path).unwrap());
                (path, sample)
            });
            let expected: Vec<(BString, Option<u64>)> = entries
                .items()
                .iter()
                .map(|pair| (name(pair.json()[0].as_str().unwrap()), pair.json()[1].as_u64()))
                .collect();
            assert_eq!(ours.collect::<Vec<_>>(), expected, "{file}");
        }
        if let Some(lists) = entry.find("list") {
            for (folder, _) in lists.json().as_object().unwrap() {
                let list = packed.list(name(folder), &ListOptions::default()).unwrap();
                assert_eq!(list, paths(&lists.get(folder)), "{file}: {folder}");
            }
            let cases = [("list_files_only", true, false), ("list_dirs_only", false, true)];
            for (key, files, folders) in cases {
                let list = packed.list(".", &listing(files, folders, false)).unwrap();
                assert_eq!(list, paths(&entry.get(key)), "{file}: {key}");
            }
            let cases = [
                ("list_recursive", true, true),
                ("list_recursive_files_only", true, false),
                ("list_recursive_dirs_only", false, true),
            ];
            for (key, files, folders) in cases {
                let list = packed.list("", &listing(files, folders, true)).unwrap();
                assert_eq!(list, typed_paths(&entry.get(key)), "{file}: {key}");
            }
        }
        for listed in entry.get("files").items() {
            let [path, sample, length, hash] = listed.json().as_array().unwrap().as_slice() else { panic!() };
            let path = name(path.as_str().unwrap());
            assert_eq!(packed.sample(&path).unwrap(), sample.as_u64().unwrap(), "{file}: {path:?}");
            let expected = (length.as_u64().unwrap(), hash.as_str().unwrap().to_owned());
            assert_eq!(digest(&packed.read_one(&path).unwrap()), expected, "{file}: {path:?}");
        }

        // Packed again: the bytes of Python 3.8 to 3.11 with their own protocol, 4. Older ones
        // had 3, newer ones share the strings of equal names.
        let temporary = tempfile::tempdir().unwrap();
        restore(&packed, temporary.path());
        let again = pack(temporary.path());
        let version: Vec<u64> =
            entry.get("python").str().split('.').take(2).map(|part| part.parse().unwrap()).collect();
        let forced = entry.get("how").str().contains("forced");
        if !forced && entry.get("pickle_protocol").u64() == 4 && (8..=11).contains(&version[1]) {
            assert_eq!(again, data, "{file}");
        } else {
            entry.get("pickle_protocol").informational();
            let again = open(&again);
            assert_eq!(samples(&again), samples(&packed), "{file}");
            let all = listing(true, true, true);
            assert_eq!(again.list("", &all).unwrap(), packed.list("", &all).unwrap(), "{file}");
        }

        // Unpacked by the library: the same folder.
        let target = temporary.path().join("unpacked");
        let unpacked = packed.unpack(&target, &UnpackOptions::default()).unwrap();
        assert_eq!(unpacked.files, packed.num_files(), "{file}");
        let repacked = open(&pack(&target));
        assert_eq!(samples(&repacked), samples(&packed), "{file}");
    }
    manifest.finish(&["packed"]);
}

/// Asserts an outcome of the manifest's: a value, or the original's message.
fn assert_outcome(outcome: &serde_json::Value, ours: anyrec::Result<serde_json::Value>, what: &str) {
    match outcome.get("ok") {
        Some(expected) => assert_eq!(ours.unwrap(), *expected, "{what}"),
        None => {
            let error = ours.expect_err(what);
            if outcome["exc"] == "AssertionError" {
                assert_eq!(error.message(), outcome["msg"].as_str().unwrap(), "{what}");
            } else {
                // A path through a file ends in a TypeError there; here it leads nowhere.
                assert!(error.message().ends_with("does not exist"), "{what}: {error}");
            }
        }
    }
}

#[test]
fn queries_are_answered_as_the_original_does() {
    let manifest = Manifest::load("ffrecord");
    let section = manifest.root().get("packed_queries");
    let packed = open(&std::fs::read(manifest.file(section.get("file").str())).unwrap());
    let queries = section.get("queries").items();
    let first = queries[0].get("path").str();
    for query in &queries {
        let path = query.get("path").str();
        let answers = [
            ("exists", packed.exists(path)),
            ("is_file", packed.is_file(path)),
            ("is_dir", packed.is_folder(path)),
        ];
        for (question, ours) in answers {
            let outcome = query.get(question).json();
            // Where the original fails with a TypeError (a path through a file): it is not there.
            assert_eq!(ours, outcome.get("ok").is_some_and(|ok| ok == true), "{path}: {question}");
            assert!(outcome.get("ok").is_some() || outcome["exc"] == "TypeError", "{path}: {question}");
        }
        let list = packed.list(path, &ListOptions::default());
        let list = list.map(|names| names.iter().map(|name| name.to_string()).collect());
        assert_outcome(query.get("list").json(), list, &format!("{path}: list"));
        let one = packed.read_one(path).map(|content| serde_json::to_value(digest(&content)).unwrap());
        assert_outcome(query.get("read_one").json(), one, &format!("{path}: read_one"));
        let both = packed.samples(&[path, first]).and_then(|both| anyrec::read_batch(packed.reader(), &both));
        let both =
            both.map(|batch| serde_json::to_value(batch.iter().map(digest).collect::<Vec<_>>()).unwrap());
        assert_outcome(query.get("read").json(), both, &format!("{path}: read"));
    }
    manifest.finish(&["packed_queries"]);
}

#[test]
fn links_are_followed_and_loops_refused() {
    let manifest = Manifest::load("ffrecord");
    let data = std::fs::read(manifest.file("packed_links.ffr")).unwrap();
    let packed = open(&data);
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    std::fs::create_dir(folder.join("real")).unwrap();
    std::fs::write(folder.join("real/f"), packed.read_one("real/f").unwrap()).unwrap();
    std::os::unix::fs::symlink("real", folder.join("linkdir")).unwrap();
    std::os::unix::fs::symlink("real/f", folder.join("linkfile")).unwrap();
    assert_eq!(pack(folder), data);

    let file = folder.join("out.ffr");
    std::os::unix::fs::symlink("..", folder.join("real/up")).unwrap();
    let error = pack_folder(folder, &file, &WriteOptions::default(), &mut |_| {}).unwrap_err();
    assert!(error.message().contains("an endless loop"), "{error}");
    std::fs::remove_file(folder.join("real/up")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.join("real/broken")).unwrap();
    assert_eq!(
        pack_folder(folder, &file, &WriteOptions::default(), &mut |_| {}).unwrap_err().kind(),
        ErrorKind::Io
    );
    std::fs::remove_file(folder.join("real/broken")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(folder.join("real/socket")).unwrap();
    let error = pack_folder(folder, &file, &WriteOptions::default(), &mut |_| {}).unwrap_err();
    assert!(error.message().contains("neither a file nor a folder"), "{error}");
    drop(socket);
    assert!(!file.exists());
}

#[test]
fn what_is_not_a_packed_folder_is_refused() {
    let manifest = Manifest::load("ffrecord");
    for file in ["n0.ffr", "n1.ffr", "first_last_empty.ffr"] {
        let data = std::fs::read(manifest.file(file)).unwrap();
        let error = PackedFolder::open(memory(&data), &OpenOptions::default()).unwrap_err();
        assert_eq!(error.message(), "is not a packed folder", "{file}");
    }
    // The marker alone is not enough; with a pickle that is no tree the reason is told.
    let data = super::write(&[b"piouhjgbr".to_vec()], &WriteOptions::default());
    let error = PackedFolder::open(memory(&data), &OpenOptions::default()).unwrap_err();
    assert_eq!(error.message(), "is not a packed folder");
    let data = super::write(&[b"piouhjgbrcos\nsystem\n(Vid\ntR.".to_vec()], &WriteOptions::default());
    let error = PackedFolder::open(memory(&data), &OpenOptions::default()).unwrap_err();
    assert!(error.message().contains("it asks for \"system\" of \"os\""), "{error}");
    assert_eq!(error.record(), Some(0));
}

#[test]
fn a_tree_is_rewritten_for_the_samples_that_are_left() {
    let manifest = Manifest::load("ffrecord");
    let data = std::fs::read(manifest.file("packed_py36.ffr")).unwrap();
    let packed = open(&data);
    let count = packed.reader().count();
    let lost = [0, 6, 15];
    let kept: Vec<u64> = (0..count - 1).filter(|sample| !lost.contains(sample)).collect();
    let tree = packed.reader().read(count - 1).unwrap();
    let mut records: Vec<Vec<u8>> =
        kept.iter().map(|sample| packed.reader().read(*sample).unwrap().to_vec()).collect();
    records.push(retree(&tree, &kept).unwrap().unwrap());
    let repaired = open(&super::write(&records, &WriteOptions::default()));
    let files = listing(true, false, true);
    let expected: Vec<BString> = packed
        .list("", &files)
        .unwrap()
        .into_iter()
        .filter(|path| !lost.contains(&packed.sample(path).unwrap()))
        .collect();
    assert_eq!(repaired.list("", &files).unwrap(), expected);
    for path in expected {
        assert_eq!(repaired.read_one(&path).unwrap(), packed.read_one(&path).unwrap());
    }
    let folders = listing(false, true, true);
    assert_eq!(repaired.list("", &folders).unwrap(), packed.list("", &folders).unwrap());

    // Nothing lost, the tree's own number among the kept ones: the tree of Python 3.11.
    let all: Vec<u64> = (0..count).collect();
    let newer = open(&std::fs::read(manifest.file("packed_py311.ffr")).unwrap());
    assert_eq!(retree(&tree, &all).unwrap().unwrap(), newer.reader().read(count - 1).unwrap());
    assert_eq!(retree(b"no tree", &all).unwrap(), None);
    assert_eq!(retree(b"", &[]).unwrap(), None);
    assert!(retree(b"piouhjgbrN.", &[]).is_err());
}

#[test]
fn damaged_files_stop_unpacking_unless_they_may_be_left_out() {
    let manifest = Manifest::load("ffrecord");
    let mut data = std::fs::read(manifest.file("packed_py311.ffr")).unwrap();
    let reader = Reader::open(memory(&data), &OpenOptions::default()).unwrap();
    let begin = reader.locate(1).unwrap().span.start;
    data[usize::try_from(begin).unwrap()] ^= 1;
    let packed = PackedFolder::open(memory(&data), &OpenOptions::default()).unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let error = packed.unpack(&temporary.path().join("a"), &UnpackOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.record()), (ErrorKind::Corrupt, Some(1)));
    let mut options = UnpackOptions::default();
    options.skip_damage = true;
    let unpacked = packed.unpack(&temporary.path().join("b"), &options).unwrap();
    assert_eq!((unpacked.files, unpacked.notices.len()), (21, 1));
    assert!(unpacked.notices[0].message.starts_with("the file \"001.txt\" was left out"));
    assert!(!temporary.path().join("b/001.txt").exists());
    // Without checksums the damaged content is what there is.
    let unchecked = PackedFolder::open(memory(&data), &verifying(false)).unwrap();
    assert!(unchecked.read_one("001.txt").is_ok());
}

#[test]
fn packing_is_streamed_into_the_counted_writer() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let large: Vec<u8> = (0..3_000_000u32).map(|i| i.to_le_bytes()[1]).collect();
    std::fs::write(folder.join("large"), &large).unwrap();
    let file = temporary.path().join("large.ffr");
    let written = pack_folder(&folder, &file, &WriteOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(written.records, 2);
    let packed = open(&std::fs::read(&file).unwrap());
    assert_eq!(packed.read_one("large").unwrap(), large);
    // The same samples through a writer that does not know their number.
    let other = temporary.path().join("other.ffr");
    let mut writer = Writer::create(&other, &WriteOptions::default()).unwrap();
    writer.append(&large).unwrap();
    writer.append(&packed.reader().read(1).unwrap()).unwrap();
    writer.finish().unwrap();
    assert_eq!(std::fs::read(&other).unwrap(), std::fs::read(&file).unwrap());
}
