//! Index files that are right, wrong, stale, partial or missing.

use super::{options, tags_of, written};
use anyrec::Key;
use anyrec::format::mxnet::{FORMAT, Index, IndexFile, KeyType, Reader};
use anyrec::format::{Event, Format, OpenOptions, RecordReader, Scan};
use anyrec::io::{Access, open_file};
use anyrec::{ErrorKind, PositionList};
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

struct Pair {
    folder: tempfile::TempDir,
}

impl Pair {
    fn new(data: &[u8], index: &str) -> Self {
        let pair = Pair { folder: tempfile::tempdir().unwrap() };
        std::fs::write(pair.path(), data).unwrap();
        std::fs::write(pair.path().with_extension("idx"), index).unwrap();
        pair
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("x.rec")
    }

    fn open(&self, options: &OpenOptions) -> Reader {
        Reader::open(open_file(&self.path(), Access::Auto).unwrap(), options).unwrap()
    }

    fn notices(&self) -> Vec<String> {
        let reader = self.open(&options(|options| options.index_file = IndexFile::None));
        let positions = reader.positions().unwrap();
        let notices = FORMAT.check_companions(reader.source(), &OpenOptions::default(), positions).unwrap();
        let folder = format!("{}/", self.folder.path().display());
        notices.into_iter().map(|notice| notice.message.replace(&folder, "")).collect()
    }
}

/// Three records, at 0, 12 and 24.
fn three() -> Vec<u8> {
    written(&[b"a", b"bb", b"ccc"])
}

#[test]
fn numbers_follow_the_file_and_keys_follow_the_index() {
    let pair = Pair::new(&three(), "30\t24\n10\t0\n20\t12\n");
    let reader = pair.open(&OpenOptions::default());
    assert_eq!(reader.count().unwrap(), 3);
    assert_eq!(reader.read(2).unwrap(), "ccc");
    assert_eq!(tags_of(&reader, 2).key, Some(Key::Int(30)));
    assert_eq!(reader.number_of_key(&Key::Int(20)).unwrap(), 1);
    assert_eq!(reader.by_key(&Key::Text("10".into())).unwrap(), "a");
    let missing = reader.by_key(&Key::Int(11)).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::OutOfRange);
    assert!(missing.to_string().ends_with("x.idx: there is no key 11"), "{missing}");
    assert!(reader.info().unwrap().notices.is_empty());
    assert!(pair.notices().is_empty());
}

#[test]
fn an_index_that_leaves_out_records_does_not_hide_them() {
    for (index, reason) in [
        ("1\t12\n2\t24\n", "begins at byte 12, not 0"),
        ("0\t0\n2\t24\n", "leaves out the record at byte 12"),
        ("0\t0\n1\t12\n", "leaves out the record at byte 24"),
        ("0\t0\n1\t18446744073709551615\n2\t18446744073709551615\n", "lost the offsets of 2 records"),
        ("", "has no entries"),
    ] {
        let pair = Pair::new(&three(), index);
        let reader = pair.open(&OpenOptions::default());
        assert_eq!(reader.count().unwrap(), 3, "{index:?}");
        assert_eq!(reader.read(1).unwrap(), "bb");
        let notices = reader.info().unwrap().notices;
        assert!(notices[0].message.contains(reason), "{notices:?}");
        assert!(pair.notices().iter().any(|notice| notice.contains("leaves out")), "{index:?}");
    }
}

#[test]
fn a_large_index_is_sampled() {
    let records: Vec<Vec<u8>> = (0..5000u32).map(|number| number.to_le_bytes().to_vec()).collect();
    let data = written(&records.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let whole: String = (0..5000).map(|number| format!("{number}\t{}\n", number * 12)).collect();
    assert!(Pair::new(&data, &whole).open(&OpenOptions::default()).info().unwrap().notices.is_empty());
    let every_other: String =
        (0..5000).step_by(2).map(|number| format!("{number}\t{}\n", number * 12)).collect();
    let pair = Pair::new(&data, &every_other);
    let reader = pair.open(&OpenOptions::default());
    assert_eq!(reader.count().unwrap(), 5000);
    assert_eq!(reader.read(4999).unwrap(), records[4999]);
}

#[test]
fn a_stale_index_is_found_out_where_it_is_wrong() {
    let pair = Pair::new(&three(), "0\t0\n1\t16\n2\t400\n");
    let reader = pair.open(&OpenOptions::default());
    let error = reader.read(1).unwrap_err();
    assert_eq!((error.kind(), error.offset(), error.record()), (ErrorKind::Stale, Some(16), Some(1)));
    assert!(error.to_string().contains("x.idx"), "{error}");
    assert!(error.hint().unwrap().to_string().contains("`anyrec::index`"), "{error:#}");
    let error = reader.read(2).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Stale, Some(400)));
    assert!(error.message().contains("past the end of the file, which has 36 bytes"), "{error}");
    for key in [1, 2] {
        assert_eq!(reader.by_key(&Key::Int(key)).unwrap_err().kind(), ErrorKind::Stale);
    }
    assert_eq!(reader.by_key(&Key::Int(0)).unwrap(), "a");
    assert_eq!(
        pair.notices()[0],
        "index file x.idx is stale: 2 of 3 offsets are not those of records, the first is 16 of key 1"
    );
}

#[test]
fn a_lost_offset_is_explained() {
    let pair = Pair::new(&three(), "0\t0\n1\t18446744073709551615\n");
    let error = pair.open(&OpenOptions::default()).by_key(&Key::Int(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale);
    assert!(error.message().contains("18446744073709551615 (-1)"), "{error}");
    assert!(pair.notices()[0].contains("1 offsets are 18446744073709551615 (-1)"), "{:?}", pair.notices());
}

#[test]
fn intact_records_of_a_cut_file_are_read_by_their_index() {
    let pair = Pair::new(&three()[..20], "0\t0\n1\t12\n2\t24\n");
    let reader = pair.open(&OpenOptions::default());
    assert_eq!(reader.count().unwrap(), 3);
    assert_eq!(reader.read(0).unwrap(), "a");
    let error = reader.read(1).unwrap_err();
    assert_eq!((error.kind(), error.offset(), error.record()), (ErrorKind::Corrupt, Some(12), Some(1)));
    assert_eq!(reader.read(2).unwrap_err().kind(), ErrorKind::Stale);
}

#[test]
fn given_positions_number_the_records_and_the_index_gives_keys() {
    let pair = Pair::new(&three(), "20\t12\n");
    let mut positions = PositionList::new();
    positions.push_frame(12, 1).unwrap();
    positions.push_frame(24, 1).unwrap();
    let given = OpenOptions::default().with_positions(Arc::new(positions));
    let reader = pair.open(&given);
    assert_eq!(reader.count().unwrap(), 2);
    assert_eq!(reader.read(0).unwrap(), "bb");
    assert_eq!(tags_of(&reader, 0).key, Some(Key::Int(20)));
    assert_eq!(tags_of(&reader, 1).key, None);
}

#[test]
fn an_index_that_cannot_be_read_is_an_error_with_its_line() {
    let pair = Pair::new(&three(), "0\t0\nnonsense\n");
    let error = pair.open(&OpenOptions::default()).count().unwrap_err();
    assert!(error.to_string().ends_with("x.idx: line 2: no tab and byte offset in \"nonsense\""), "{error}");
    assert!(pair.notices()[0].contains("line 2"), "{:?}", pair.notices());
    let without = options(|options| options.index_file = IndexFile::None);
    assert_eq!(pair.open(&without).count().unwrap(), 3);
    let elsewhere = options(|options| options.index_file = IndexFile::At("not/there.idx".into()));
    let source = open_file(&pair.path(), Access::Auto).unwrap();
    assert_eq!(Reader::open(source, &elsewhere).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn repeated_keys_and_text_keys_are_reported() {
    let pair = Pair::new(&three(), "0\t0\nx\t12\n0\t24\n");
    let notices = pair.notices();
    assert_eq!(notices[0], "index file x.idx: keys are read as text, as line 2 has key \"x\"");
    assert_eq!(notices[1], "index file x.idx: 1 keys are repeated; the last line for a key is used");
}

#[test]
fn reading_goes_on_behind_a_record_found_by_its_key() {
    let pair = Pair::new(&three(), "0\t0\n1\t12\n2\t24\n");
    let reader = pair.open(&OpenOptions::default());
    let mut scan = reader.scan_from(reader.offset_of_key(&Key::Int(1)).unwrap()).unwrap();
    let mut next = || match scan.next_event().unwrap() {
        Event::Record(record) => Some((record.data.to_vec(), record.span.end)),
        _ => None,
    };
    assert_eq!(next(), Some((b"bb".to_vec(), 24)));
    assert_eq!(next(), Some((b"ccc".to_vec(), 36)));
    assert_eq!(next(), None);
    assert_eq!(scan.tell(), 36);
    assert_eq!(reader.scan_from(37).unwrap_err().kind(), ErrorKind::OutOfRange);
    assert_eq!(reader.read_at(24).unwrap(), "ccc");
    assert_eq!(reader.read_at(25).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_span_that_reaches_past_the_record_decodes() {
    let data = three();
    let reader = Reader::open(super::memory(&data), &OpenOptions::default()).unwrap();
    let location = anyrec::Location::framed(anyrec::Position::of_frame(0), 0..36);
    assert_eq!(&*reader.decode(0, &location, &data).unwrap(), b"a");
}

#[test]
fn a_long_stretch_is_not_fetched_for_a_short_record() {
    let mut data = three();
    data.extend(vec![0xee; 3 << 20]);
    let pair = Pair::new(&data, "0\t0\n1\t12\n2\t24\n");
    let source = open_file(&pair.path(), Access::Positional).unwrap();
    let reader = Reader::open(source, &OpenOptions::default()).unwrap();
    assert_eq!(reader.locate(2).unwrap().span, 24..36);
    assert_eq!(reader.read(2).unwrap(), "ccc");
}

/// 3,000 records, record 1,501 in three parts, with their offsets.
fn many() -> (Vec<Vec<u8>>, Vec<u8>, Vec<u64>) {
    let magic = 0xced7_230a_u32.to_le_bytes();
    let record = |number: u32| match number {
        1501 => [b"the first", &[0; 3][..], &magic, b"middle..", &magic, b"the last"].concat(),
        number => format!("record {number}").into_bytes(),
    };
    let records: Vec<Vec<u8>> = (0..3000).map(record).collect();
    let data = written(&records.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let offsets = super::scan(&data).offsets;
    assert_eq!(offsets.len(), records.len());
    (records, data, offsets)
}

fn index_text(offsets: impl IntoIterator<Item = (usize, u64)>) -> String {
    offsets.into_iter().map(|(key, offset)| format!("{key}\t{offset}\n")).collect()
}

/// Record `number`, or the kind of error, on every road by number.
fn on_every_road(pair: &Pair, number: u64) -> Vec<(String, Result<Vec<u8>, ErrorKind>)> {
    let mut roads = Vec::new();
    for access in [Access::Auto, Access::Mapped, Access::Positional] {
        let dataset =
            anyrec::Dataset::open(&[pair.path()], &OpenOptions::default().with_access(access)).unwrap();
        let mut buffer = [0; 100];
        let mut add = |road: &str, outcome: anyrec::Result<Vec<u8>>| {
            roads.push((format!("{road}, {access:?}"), outcome.map_err(|error| error.kind())));
        };
        add("read", dataset.read(number).map(Vec::from));
        add("batch", dataset.read_batch(&[number]).map(|batch| batch.get(0).unwrap().to_vec()));
        let into = dataset.read_into(&[number], &mut buffer);
        add("into", into.map(|offsets| buffer[..offsets[1] as usize].to_vec()));
        add("lend", dataset.lend(&[number]).map(|lent| lent[0].to_vec()));
        let source = open_file(&pair.path(), access).unwrap();
        let reader = Reader::open(source, &OpenOptions::default()).unwrap();
        let key = tags_of_number(&reader, number);
        add("key", reader.by_key(&key).map(Vec::from));
        let found = dataset.find_key(&key).and_then(|number| dataset.read(number.unwrap()));
        add("find_key", found.map(Vec::from));
        let dataset = Arc::new(dataset);
        let selection = anyrec::Selection::new(dataset, vec![number]).unwrap();
        let plan = anyrec::loader::Plan::new(1, &anyrec::loader::PlanOptions::default()).unwrap();
        let loader = anyrec::loader::Loader::new(Arc::new(selection), plan, Default::default());
        let loaded = loader.and_then(|mut loader| loader.next_batch());
        add("loader", loaded.map(|loaded| loaded.unwrap().records.get(0).unwrap().to_vec()));
    }
    roads
}

/// The key that the index file has for a record.
fn tags_of_number(reader: &Reader, number: u64) -> Key {
    let offset = reader.positions().unwrap().get(number).unwrap().frame;
    reader.index().unwrap().unwrap().key_at(offset).unwrap()
}

#[test]
fn a_record_ends_with_its_last_part_though_the_index_leaves_out_the_next() {
    let (records, data, offsets) = many();
    let without = offsets.iter().copied().enumerate().filter(|(number, _)| *number != 1502);
    let pair = Pair::new(&data, &index_text(without));
    // Only samples of the index are looked at, and the gap is not among them.
    let reader = pair.open(&OpenOptions::default());
    assert_eq!(reader.count().unwrap(), 2999);
    for (road, record) in on_every_road(&pair, 1501) {
        assert_eq!(record.as_ref(), Ok(&records[1501]), "{road}");
    }
    for (road, record) in on_every_road(&pair, 1502) {
        assert_eq!(record.as_ref(), Ok(&records[1503]), "{road}");
    }
    let told = format!("leaves out the record at byte {}:", offsets[1502]);
    let notices = reader.info().unwrap().notices;
    assert!(notices.iter().any(|notice| notice.message.contains(&told)), "{notices:?}");
    let report = anyrec::verify(pair.path(), &OpenOptions::default()).unwrap();
    assert!(report.notices.iter().any(|notice| notice.message.contains("leaves out 1 of 3000 records")));
}

#[test]
fn an_index_entry_inside_a_record_never_gives_half_of_it() {
    let (_, data, offsets) = many();
    let begin = offsets[1501];
    // The middle part, and the last one.
    for inside in [begin + 8 + 12, begin + 8 + 12 + 8 + 8] {
        let mut entries: Vec<(usize, u64)> = offsets.iter().copied().enumerate().collect();
        entries[1501].1 = inside;
        let pair = Pair::new(&data, &index_text(entries.iter().copied()));
        for (road, record) in on_every_road(&pair, 1501) {
            assert_eq!(record, Err(ErrorKind::Stale), "{road}");
        }
        // Where the record is in the index too, its own bytes contradict the entry behind it.
        entries[1501].1 = begin;
        entries.insert(1502, (9999, inside));
        let pair = Pair::new(&data, &index_text(entries));
        for number in [1501, 1502] {
            for (road, record) in on_every_road(&pair, number) {
                assert_eq!(record, Err(ErrorKind::Stale), "record {number}: {road}");
            }
        }
        let reader = pair.open(&OpenOptions::default());
        assert_eq!(reader.read_at(inside).unwrap_err().kind(), ErrorKind::Corrupt);
        let mut scan = reader.scan_from(inside).unwrap();
        let Event::Damage(damage) = scan.next_event().unwrap() else { panic!("half a record") };
        assert!(damage.reason.contains("where a record should begin"), "{}", damage.reason);
        assert_eq!((damage.begin, damage.end), (inside, offsets[1502]));
        assert_eq!(scan.original_message().as_deref(), Some("Invalid RecordIO File"));
        assert!(matches!(scan.next_event().unwrap(), Event::Record(_)));
    }
}

proptest! {
    #[test]
    fn index_files_come_back(entries in prop::collection::vec((any::<i128>(), any::<u64>()), 0..50)) {
        let mut index = Index::new(KeyType::Int);
        for (key, offset) in &entries {
            index.push(&Key::Int(*key), *offset).unwrap();
        }
        let read = Index::parse("x.idx", &index.to_bytes().unwrap(), None).unwrap();
        prop_assert_eq!(&read, &index);
        for (key, _) in &entries {
            let last = entries.iter().rev().find(|(other, _)| other == key).unwrap();
            prop_assert_eq!(read.get(&Key::Int(*key)), Some(last.1));
        }
    }

    #[test]
    fn text_keys_come_back(keys in prop::collection::vec("[^\\s\\x1c-\\x1f][^\\t\\n\\r]{0,8}", 1..20)) {
        let mut index = Index::new(KeyType::Text);
        for (offset, key) in (0..).zip(&keys) {
            index.push(&Key::Text(key.as_str().into()), offset).unwrap();
        }
        let read = Index::parse("x.idx", &index.to_bytes().unwrap(), Some(KeyType::Text)).unwrap();
        prop_assert_eq!(read, index);
    }

    #[test]
    fn any_bytes_are_an_index_file_or_an_error(bytes: Vec<u8>) {
        let _ = Index::parse("x.idx", &bytes, None);
    }
}
