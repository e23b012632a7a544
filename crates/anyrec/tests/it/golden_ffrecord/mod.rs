//! Every entry of `testdata/ffrecord/good/manifest.json`, and what the manifest cannot say.

mod hostile_names;
mod mutations;
mod packed;
mod page;
mod properties;

use crate::manifest::{Entry, Manifest, digest, golden};
use anyrec::format::ffrecord::{self, FORMAT, Reader, Writer, directory_files, part_files};
use anyrec::format::{
    Content, Event, Format, Integrity, Likeness, OpenOptions, RecordReader, SettingValue, WriteOptions,
    by_id, by_name, detect, idx, set_write,
};
use anyrec::io::{Access, MemorySource, Source, Window, open_file};
use anyrec::{Position, PositionList, Value};
use std::path::Path;
use std::sync::Arc;

type Digest = (u64, String);

fn memory(data: &[u8]) -> Arc<dyn Source> {
    Arc::new(MemorySource::new("memory", data.to_vec()))
}

fn verifying(verify: bool) -> OpenOptions {
    let mut options = OpenOptions::default();
    options.verify = verify;
    options
}

fn open(path: &Path) -> Reader {
    Reader::open(open_file(path, Access::Auto).unwrap(), &OpenOptions::default()).unwrap()
}

/// Everything a scan said.
#[derive(Debug, Default, PartialEq)]
struct Scanned {
    records: Vec<(Position, Vec<u8>)>,
    checksums: Vec<Integrity>,
    /// `(begin, end, reason)`.
    damage: Vec<(u64, u64, String)>,
    metadata: Vec<(u64, u64, Content)>,
    notices: Vec<String>,
}

/// Runs a scan to its end and checks that its events cover the file.
fn scan_window(window: Window, options: &OpenOptions, length: u64) -> Scanned {
    let mut scan = FORMAT.scan(window, options).unwrap();
    let mut scanned = Scanned::default();
    let mut positions = PositionList::new();
    let mut covered = 0;
    loop {
        let span = match scan.next_event().unwrap() {
            Event::Record(record) => {
                assert_eq!(record.span.end - record.span.start, record.data.len() as u64);
                positions.push(record.position).unwrap();
                scanned.records.push((record.position, record.data.to_vec()));
                scanned.checksums.push(record.integrity);
                record.span
            }
            Event::Damage(damage) => {
                assert_eq!(damage.record, scanned.records.len() as u64);
                assert!(!damage.reason.is_empty());
                scanned.damage.push((damage.begin, damage.end, damage.reason));
                damage.begin..damage.end
            }
            Event::Metadata(metadata) => {
                scanned.metadata.push((metadata.span.start, metadata.span.end, metadata.content));
                metadata.span
            }
            Event::Notice(notice) => {
                scanned.notices.push(notice.message);
                continue;
            }
            Event::End => break,
            other => panic!("unexpected {other:?}"),
        };
        assert_eq!(span.start, covered, "events are contiguous");
        covered = span.end;
    }
    assert_eq!(covered, length, "events cover the file");
    assert!(matches!(scan.next_event().unwrap(), Event::End));
    scanned
}

/// A scan over memory, over a file that is not mapped, and over a stream; all must agree.
fn scan(data: &[u8], options: &OpenOptions) -> Scanned {
    let length = data.len() as u64;
    let from_memory = scan_window(Window::new(memory(data)), options, length);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), data).unwrap();
    let source = open_file(file.path(), Access::Positional).unwrap();
    assert_eq!(scan_window(Window::new(source), options, length), from_memory);
    let stream = Window::from_stream("stream", std::io::Cursor::new(data.to_vec()));
    let from_stream = scan_window(stream, options, length);
    assert_eq!(from_stream.records, from_memory.records, "a stream gives the same records");
    from_memory
}

fn digests(entry: &Entry) -> Vec<Digest> {
    entry.items().iter().map(Entry::digest).collect()
}

fn numbers(entry: &Entry) -> Vec<u64> {
    entry.items().iter().map(Entry::u64).collect()
}

/// Writes records and gives back the file's bytes.
fn write(records: &[Vec<u8>], options: &WriteOptions) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("written.ffr");
    let mut writer = Writer::create(&path, options).unwrap();
    for (number, record) in records.iter().enumerate() {
        // Both ways of appending, one after the other.
        let appended = match number % 2 {
            0 => writer.append(record).unwrap(),
            _ => writer.append_from(record.as_slice()).unwrap(),
        };
        assert_eq!(appended, number as u64);
    }
    let written = writer.finish().unwrap();
    let data = std::fs::read(&path).unwrap();
    assert_eq!((written.records, written.bytes), (records.len() as u64, data.len() as u64));
    data
}

#[test]
fn the_tests_know_every_section() {
    let manifest = Manifest::load("ffrecord");
    manifest.assert_sections(&[
        "format",
        "set",
        "seed",
        "made_with",
        "field_notes",
        "files",
        "multi",
        "packed",
        "packed_queries",
        "mutations",
    ]);
    let root = manifest.root();
    assert_eq!(root.get("format").str(), FORMAT.id());
    for described in ["set", "seed", "made_with", "field_notes"] {
        root.get(described).informational();
    }
    manifest.finish(&["format", "set", "seed", "made_with", "field_notes"]);
}

#[test]
fn files_read_scan_and_rewrite_as_the_original_says() {
    let manifest = Manifest::load("ffrecord");
    for entry in manifest.root().get("files").items() {
        let name = entry.get("path").str();
        let data = std::fs::read(manifest.file(name)).unwrap();
        assert_eq!(data.len() as u64, entry.get("size").u64(), "{name}");
        assert_eq!(digest(&data).1, entry.get("sha256").str(), "{name}");
        entry.get("how").informational();
        let count = entry.get("n").u64();
        let expected = digests(&entry.get("records"));
        let checksum = entry.get("checksum_meta").u64();

        for access in [Access::Mapped, Access::Positional] {
            let source = open_file(&manifest.file(name), access).unwrap();
            let reader = Reader::open(source, &OpenOptions::default()).unwrap();
            assert_eq!(reader.count(), count, "{name}");
            assert_eq!(reader.offsets().unwrap(), numbers(&entry.get("offsets")), "{name}");
            let checksums: Vec<u64> = reader.checksums().unwrap().into_iter().map(u64::from).collect();
            assert_eq!(checksums, numbers(&entry.get("checksums")), "{name}");
            let read: Vec<Digest> = (0..count).map(|index| digest(&reader.read(index).unwrap())).collect();
            assert_eq!(read, expected, "{name}");
            let backwards: Vec<u64> = (0..count).rev().collect();
            let batch = anyrec::read_batch(&reader, &backwards).unwrap();
            assert!(batch.iter().map(digest).eq(expected.iter().rev().cloned()), "{name}");
            assert!(reader.validate().is_ok());
            let info = reader.info().unwrap();
            assert_eq!((info.version == "old", !info.notices.is_empty()), (checksum == 0, checksum == 0));
        }

        // The checksum as stored, and whether it holds: 0 is the old version's way to say nothing.
        assert_eq!(u64::from(u32::from_le_bytes(data[..4].try_into().unwrap())), checksum);
        let table_end = 12 + 12 * usize::try_from(count).unwrap();
        let holds = u64::from(crc32fast::hash(&data[4..table_end])) == checksum;
        assert_eq!(holds, entry.get("checksum_meta_valid").bool(), "{name}");

        let scanned = scan(&data, &OpenOptions::default());
        assert_eq!(scanned.damage, []);
        assert_eq!(scanned.metadata, [(0, table_end as u64, Content::Table { records: count })]);
        assert!(scanned.records.iter().map(|(_, data)| digest(data)).eq(expected.iter().cloned()), "{name}");
        assert!(scanned.checksums.iter().all(|checksum| *checksum == Integrity::Verified));
        assert_eq!(scanned.notices.len(), usize::from(checksum == 0), "{name}");
        let reader = open(&manifest.file(name));
        for (index, (position, _)) in scanned.records.iter().enumerate() {
            assert_eq!(reader.locate(index as u64).unwrap().position, *position, "{name}");
        }

        assert!(entry.get("byte_reproducible").bool());
        let records: Vec<Vec<u8>> = scanned.records.into_iter().map(|(_, data)| data).collect();
        let mut options = WriteOptions::default();
        if checksum == 0 {
            options = options.with(ffrecord::WriteOptions::default().with_version(ffrecord::Version::Old));
        }
        assert_eq!(write(&records, &options), data, "{name} without a count");
        options.count = Some(count);
        assert_eq!(write(&records, &options), data, "{name} with a count");

        let expected = if checksum == 0 || table_end > anyrec::format::HEAD {
            Likeness::Possible
        } else {
            Likeness::Certain
        };
        let head = &data[..data.len().min(anyrec::format::HEAD)];
        assert_eq!(FORMAT.detect(head, Some(data.len() as u64)), expected, "{name}");
        assert_eq!(FORMAT.detect(head, None), expected, "{name}");
    }
    manifest.finish(&["files"]);
}

/// Files numbered through, as the original does with a folder or a list.
fn numbered(manifest: &Manifest, files: &[String]) -> Vec<Digest> {
    let readers = files.iter().map(|file| open(&manifest.file(file)));
    readers.flat_map(|reader| (0..reader.count()).map(move |i| digest(&reader.read(i).unwrap()))).collect()
}

fn names(entry: &Entry) -> Vec<String> {
    entry.items().iter().map(|name| name.str().to_owned()).collect()
}

#[test]
fn folders_open_as_their_files_in_order() {
    let manifest = Manifest::load("ffrecord");
    for entry in manifest.root().get("multi").items() {
        let folder = entry.get("dir").str();
        let files = names(&entry.get("dir_file_order"));
        let found = directory_files(&manifest.file(folder)).unwrap();
        let expected: Vec<_> = files.iter().map(|file| manifest.file(file)).collect();
        assert_eq!(found, expected);

        let records = numbered(&manifest, &files);
        assert_eq!(records.len() as u64, entry.get("n").u64());
        assert_eq!(records, digests(&entry.get("records")));
        for (file, offsets) in files.iter().zip(entry.get("offsets_per_file").items()) {
            assert_eq!(open(&manifest.file(file)).offsets().unwrap(), numbers(&offsets));
        }
        let list = names(&entry.get("list_order"));
        let listed = numbered(&manifest, &list);
        assert_eq!(listed, digests(&entry.get("list_records")));
        // The batch was read from the list, not from the folder.
        let batch: Vec<Digest> = numbers(&entry.get("batch_indices"))
            .into_iter()
            .map(|index| listed[usize::try_from(index).unwrap()].clone())
            .collect();
        assert_eq!(batch, digests(&entry.get("batch")));

        // What `dump` wrote is what its parts' names and ranges give.
        let how = entry.get("how").str();
        if let Some((_, parts)) = how.split_once("nfiles=") {
            let parts =
                part_files(records.len() as u64, parts.trim_end_matches(')').parse().unwrap()).unwrap();
            let named: Vec<String> = parts.iter().map(|(name, _)| format!("{folder}/{name}")).collect();
            assert_eq!(named, files);
            for (file, (_, range)) in files.iter().zip(parts) {
                assert_eq!(open(&manifest.file(file)).count(), range.end - range.start);
            }
        }
    }
    manifest.finish(&["multi"]);
}

#[test]
fn a_writer_that_was_told_the_count_insists_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counted.ffr");
    let mut options = WriteOptions::default();
    options.count = Some(2);
    let mut writer = Writer::create(&path, &options).unwrap();
    writer.append(b"one").unwrap();
    let missing = "Number of samples mismatched! Wrote 1 samples but expected 2";
    assert_eq!(writer.check_complete().unwrap_err().message(), missing);
    writer.append(b"two").unwrap();
    let too_many = writer.append(b"three").unwrap_err();
    assert_eq!(too_many.message(), "Exceed total number of samples: 2");
    assert_eq!((writer.count(), writer.written()), (Some(2), 2));
    writer.finish().unwrap();
    assert_eq!(open(&path).read(1).unwrap(), "two");

    let other = folder.path().join("short.ffr");
    let mut writer = FORMAT.create(&other, &options).unwrap();
    writer.append(b"one", &Default::default()).unwrap();
    assert_eq!(writer.finish().unwrap_err().message(), missing);
    assert!(!other.exists());
}

#[test]
fn a_sample_that_cannot_be_read_spoils_the_file() {
    struct Failing;
    impl std::io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("gone"))
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spoiled.ffr");
    let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
    assert!(writer.append_from(Failing).unwrap_err().message().contains("gone"));
    assert!(writer.append(b"more").unwrap_err().message().contains("cannot be finished"));
    assert!(writer.finish().is_err());
    assert!(!path.exists());
}

#[test]
fn settings_of_other_formats_are_refused() {
    let path = Path::new("never.ffr");
    let options = WriteOptions::default().with(idx::WriteOptions::default().with_gzip(true));
    assert!(FORMAT.create(path, &options).err().unwrap().message().contains("IDX"));
    let mut options = WriteOptions::default();
    let three = SettingValue::One(Value::Text("3".into()));
    let error = set_write(&mut options, &FORMAT, "version", &three).unwrap_err();
    assert!(error.message().contains("version \"3\""), "{error}");
    let on = SettingValue::One(Value::Bool(true));
    let error = set_write(&mut options, &FORMAT, "gzip", &on).unwrap_err();
    assert!(error.message().contains("no setting `gzip`"), "{error}");
    let mut options = WriteOptions::default();
    options.count = Some(u64::MAX);
    assert!(FORMAT.create(path, &options).err().unwrap().message().contains("cannot hold"));
}

#[test]
fn tags_are_counted_as_dropped() {
    use anyrec::{Key, Label, Tags};
    let folder = tempfile::tempdir().unwrap();
    let mut writer = FORMAT.create(&folder.path().join("a.ffr"), &WriteOptions::default()).unwrap();
    writer.append(b"x", &Tags::none().with_key(Key::Int(1)).with_label(Label::Scalar(2.0))).unwrap();
    let notices = writer.finish().unwrap().notices;
    assert_eq!(notices.len(), 2);
    assert!(notices[0].message.contains("1 key not stored"));
}

#[test]
fn the_format_is_found_by_id_name_and_content() {
    assert_eq!(by_id("ffrecord").unwrap().id(), "ffrecord");
    assert_eq!(by_name(Path::new("train.FFR")).unwrap().id(), "ffrecord");
    let data = std::fs::read(golden("ffrecord").join("n1.ffr")).unwrap();
    assert_eq!(detect(&data, Some(61)).unwrap().id(), "ffrecord");
    let text = b"this is a text file and nothing else";
    assert_eq!(FORMAT.detect(text, Some(text.len() as u64)), Likeness::No);
    assert_eq!(FORMAT.detect(&data[..11], Some(61)), Likeness::No);
    // The table does not fit; the first sample would lie in the table; past the end.
    assert_eq!(FORMAT.detect(&data, Some(20)), Likeness::No);
    let mut edited = data.clone();
    edited[16] = 23;
    assert_eq!(FORMAT.detect(&edited, Some(61)), Likeness::No);
    edited[16] = 62;
    assert_eq!(FORMAT.detect(&edited, Some(61)), Likeness::No);
    assert_eq!(FORMAT.detect(&edited, None), Likeness::Possible);
}

#[test]
fn a_gap_behind_the_table_is_legal() {
    let mut data = write(&[b"one".to_vec(), b"three".to_vec()], &WriteOptions::default());
    data.splice(36..36, [7; 10]);
    for at in [20, 28] {
        data[at] += 10;
    }
    let checksum = crc32fast::hash(&data[4..36]).to_le_bytes();
    data[..4].copy_from_slice(&checksum);
    let reader = Reader::open(memory(&data), &OpenOptions::default()).unwrap();
    assert_eq!(reader.read(0).unwrap(), "one");
    let scanned = scan(&data, &OpenOptions::default());
    assert_eq!(scanned.metadata, [(0, 36, Content::Table { records: 2 }), (36, 46, Content::Filler)]);
    assert_eq!(scanned.records.len(), 2);
}

#[test]
fn limits_hold_for_readers_and_scans() {
    let data = write(&[vec![1; 10], vec![2; 100]], &WriteOptions::default());
    let mut options = OpenOptions::default();
    options.limits.record = 50;
    let reader = Reader::open(memory(&data), &options).unwrap();
    assert_eq!(reader.read(0).unwrap().len(), 10);
    assert_eq!(reader.read(1).unwrap_err().kind(), anyrec::ErrorKind::Limit);
    for window in
        [Window::new(memory(&data)), Window::from_stream("stream", std::io::Cursor::new(data.clone()))]
    {
        let mut scan = FORMAT.scan(window, &options).unwrap();
        assert!(matches!(scan.next_event(), Ok(Event::Metadata(_))));
        assert!(matches!(scan.next_event(), Ok(Event::Record(_))));
        assert_eq!(scan.next_event().unwrap_err().kind(), anyrec::ErrorKind::Limit);
        assert!(matches!(scan.next_event(), Ok(Event::End)));
    }
}
