//! Every entry of `testdata/idx/good/manifest.json`.

use crate::manifest::{Entry, Manifest, digest};
use anyrec::ErrorKind;
use anyrec::format::idx::{self, Array, Header, Pair, Reader, Writer, write_array};
use anyrec::format::{
    Content, Damage, Event, Format, Integrity, Likeness, Notice, OpenOptions, RecordReader, WriteOptions,
};
use anyrec::io::{Access, MemorySource, Window};
use anyrec::{ElementType, Label};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

/// What a scan yields, records by value.
#[derive(Debug, Default, PartialEq)]
struct Scanned {
    shape: Option<(ElementType, Vec<u64>)>,
    records: Vec<Vec<u8>>,
    checksums: Vec<Integrity>,
    damage: Vec<Damage>,
    notices: Vec<Notice>,
}

fn scan(window: Window, options: &OpenOptions) -> Scanned {
    let mut scan = idx::FORMAT.scan(window, options).unwrap();
    let mut scanned = Scanned::default();
    loop {
        match scan.next_event().unwrap() {
            Event::Record(record) => {
                scanned.records.push(record.data.to_vec());
                scanned.checksums.push(record.integrity);
            }
            Event::Metadata(metadata) => {
                if let Content::Shape { dtype, shape } = metadata.content {
                    scanned.shape = Some((dtype, shape));
                }
            }
            Event::Damage(damage) => scanned.damage.push(damage),
            Event::Notice(notice) => scanned.notices.push(notice),
            Event::End => return scanned,
            other => panic!("{other:?}"),
        }
    }
}

fn in_memory(data: &[u8]) -> Arc<MemorySource> {
    Arc::new(MemorySource::new("memory", data.to_vec()))
}

fn scan_bytes(data: &[u8]) -> Scanned {
    scan(Window::new(in_memory(data)), &OpenOptions::default())
}

fn sha256(data: &[u8]) -> String {
    digest(data).1
}

/// An array's elements as little-endian bytes, made without anyrec's conversions.
fn little_endian(array: &Array) -> Vec<u8> {
    match array {
        Array::U8(array) => array.iter().copied().collect(),
        Array::I8(array) => array.iter().flat_map(|element| element.to_le_bytes()).collect(),
        Array::I16(array) => array.iter().flat_map(|element| element.to_le_bytes()).collect(),
        Array::I32(array) => array.iter().flat_map(|element| element.to_le_bytes()).collect(),
        Array::F32(array) => array.iter().flat_map(|element| element.to_le_bytes()).collect(),
        Array::F64(array) => array.iter().flat_map(|element| element.to_le_bytes()).collect(),
        other => panic!("{other:?}"),
    }
}

/// Compares an array's first elements with the texts Python printed of them.
fn assert_first(array: &Array, texts: &[&str]) {
    macro_rules! texts_are {
        ($array:expr, $type:ty) => {
            for (element, text) in $array.iter().zip(texts) {
                let expected: $type = text.parse().unwrap();
                // Bytes, as a negative zero equals a positive one and no NaN equals itself.
                let is_nan = f64::from(*element).is_nan() && f64::from(expected).is_nan();
                assert!(element.to_be_bytes() == expected.to_be_bytes() || is_nan, "{element} for {text}");
            }
        };
    }
    assert_eq!(texts.len(), array.shape().iter().product::<usize>().min(4));
    match array {
        Array::U8(array) => texts_are!(array, u8),
        Array::I8(array) => texts_are!(array, i8),
        Array::I16(array) => texts_are!(array, i16),
        Array::I32(array) => texts_are!(array, i32),
        Array::F32(array) => texts_are!(array, f32),
        Array::F64(array) => texts_are!(array, f64),
        other => panic!("{other:?}"),
    }
}

fn write_options(header: &Header) -> WriteOptions {
    let own = idx::WriteOptions::default().with_dtype(header.dtype()).with_item_shape(header.item_shape());
    WriteOptions::default().with(own)
}

/// The file that these records make.
fn written(path: &Path, options: &WriteOptions, records: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = Writer::create(path, options).unwrap();
    for (number, record) in records.iter().enumerate() {
        assert_eq!(writer.append(record).unwrap(), number as u64);
    }
    let report = writer.finish().unwrap();
    let bytes = std::fs::read(path).unwrap();
    assert_eq!((report.records, report.bytes), (records.len() as u64, bytes.len() as u64));
    bytes
}

/// What a gzip file of exactly one member holds.
fn gunzip_one_member(data: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    let mut decoder = flate2::bufread::GzDecoder::new(data);
    decoder.read_to_end(&mut content).unwrap();
    assert!(decoder.into_inner().is_empty(), "one member");
    content
}

fn check_file(entry: &Entry<'_>, manifest: &Manifest) {
    let path = manifest.file(entry.get("path").str());
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, entry.get("size").u64());
    assert_eq!(sha256(&bytes), entry.get("sha256").str());
    entry.get("how").informational();
    entry.get("verified_by").informational();
    let gz = entry.get("gz").bool();
    let shape: Vec<u64> = entry.get("shape").items().iter().map(Entry::u64).collect();
    let dtype = ElementType::from_name(entry.get("dtype").str()).unwrap();
    let first: Vec<&str> = entry.get("first").items().iter().map(Entry::str).collect();
    let data_hash = entry.get("data_be_sha256").str();
    let little_endian_hash = entry.get("data_le_sha256").str();
    let uncompressed_hash = entry.get("uncompressed_sha256").str();
    assert_eq!(u64::from(idx::type_code(dtype)), entry.get("dtype_code").u64());
    assert_eq!(shape.len() as u64, entry.get("ndim").u64());
    assert_eq!(idx::FORMAT.detect(&bytes, Some(bytes.len() as u64)), Likeness::Certain, "{path:?}");

    let scanned = scan_bytes(&bytes);
    assert_eq!(scanned.shape, Some((dtype, shape.clone())));
    assert_eq!((&scanned.damage, &scanned.notices), (&vec![], &vec![]), "{path:?}");
    let checksum = if gz { Integrity::Verified } else { Integrity::Absent };
    assert!(scanned.checksums.iter().all(|other| *other == checksum));
    assert_eq!(sha256(&scanned.records.concat()), data_hash);
    let stream = Window::from_stream("stream", std::io::Cursor::new(bytes.clone()));
    assert_eq!(scan(stream, &OpenOptions::default()), scanned);

    let mut options = OpenOptions::default();
    for access in [Access::Mapped, Access::Positional] {
        options.access = access;
        let reader = Reader::open(&path, &options).unwrap();
        assert_eq!(reader.is_gzip(), gz);
        assert_eq!(reader.header().encode(), entry.get("header_hex").hex());
        let count = reader.count().unwrap();
        assert_eq!(count, shape.first().copied().unwrap_or(1));
        let records: Vec<_> = (0..count).map(|index| reader.read(index).unwrap()).collect();
        assert_eq!(records, scanned.records);
        let batch = anyrec::read_batch(&reader, &(0..count).rev().collect::<Vec<_>>()).unwrap();
        assert!(batch.iter().eq(records.iter().rev().map(|record| &record[..])));
        assert_eq!(reader.read(count).unwrap_err().kind(), ErrorKind::OutOfRange);
        assert_eq!(sha256(&reader.data().unwrap()), data_hash);
        let whole = [reader.header().encode(), reader.data().unwrap().to_vec()].concat();
        assert_eq!(sha256(&whole), uncompressed_hash);
        let info = reader.info().unwrap();
        assert_eq!((info.shape, info.dtype), (Some(shape.clone()), Some(dtype)));
        assert_eq!(info.notices, []);
        // Straight from the file, and from what the reader keeps by now.
        for array in [Array::read(&path, &options).unwrap(), reader.array().unwrap()] {
            let found: Vec<u64> = array.shape().iter().map(|&dimension| dimension as u64).collect();
            assert_eq!((array.dtype(), found), (dtype, shape.clone()));
            assert_eq!(sha256(&little_endian(&array)), little_endian_hash);
            assert_first(&array, &first);
        }
    }

    let folder = tempfile::tempdir().unwrap();
    let (by_record, by_array) = (folder.path().join("records"), folder.path().join("array"));
    let array = Array::read(&path, &OpenOptions::default()).unwrap();
    array.write(&by_array, &WriteOptions::default()).unwrap();
    let rewritten = std::fs::read(&by_array).unwrap();
    assert_eq!(sha256(&rewritten), uncompressed_hash);
    let header = Header::new(dtype, shape.clone()).unwrap();
    let mut options = write_options(&header);
    // A record writer always has a dimension that counts; only an array can have none.
    if !shape.is_empty() {
        assert_eq!(written(&by_record, &options, &scanned.records), rewritten);
    }
    if entry.get("byte_reproducible").bool() {
        assert_eq!(rewritten, bytes, "{path:?}");
    } else {
        assert!(gz, "only compressors may differ");
        options.set(options.own::<idx::WriteOptions>().with_gzip(true));
        options.overwrite = true;
        let ours = written(&by_record, &options, &scanned.records);
        assert_eq!(gunzip_one_member(&ours), rewritten);
        assert_eq!(scan_bytes(&ours), scanned);
    }
}

#[test]
fn files_read_and_write_as_the_original_does() {
    let manifest = Manifest::load("idx");
    for entry in manifest.root().get("files").items() {
        check_file(&entry, &manifest);
    }
    manifest.finish(&["files"]);
}

#[test]
fn the_manifest_has_no_unknown_sections() {
    let manifest = Manifest::load("idx");
    let root = manifest.root();
    assert_eq!(root.get("format").str(), idx::FORMAT.id());
    for section in ["set", "seed", "made_with"] {
        root.get(section).informational();
    }
    manifest.finish(&["format", "set", "seed", "made_with"]);
    manifest.assert_sections(&[
        "format",
        "set",
        "seed",
        "made_with",
        "files",
        "malformed",
        "writer_errors",
        "notes",
        "fashion_mnist",
    ]);
}

#[test]
fn malformed_files_give_what_they_promise_and_no_more() {
    let manifest = Manifest::load("idx");
    for entry in manifest.root().get("malformed").items() {
        let name = entry.get("name").str();
        let bytes = entry.get("bytes_hex").hex();
        let original = entry.get("idx2numpy");
        original.get("exc").informational();
        let message = original.get("msg").str();
        let scanned = scan_bytes(&bytes);
        let opened = Reader::new(in_memory(&bytes), &OpenOptions::default());
        let array = opened.as_ref().ok().map(Reader::array);

        if message.contains("Superfluous data") {
            // idx2numpy refuses bytes left over; here they are worth a notice, as nothing is lost.
            let reader = opened.unwrap();
            let header = reader.header().clone();
            assert_eq!(scanned.damage, [], "{name}");
            assert!(scanned.notices[0].message.contains("the array and"), "{name}: {scanned:?}");
            assert_eq!(scanned.notices[0].offset, Some(header.file_length()), "{name}");
            assert_eq!(reader.info().unwrap().notices, scanned.notices, "{name}");
            assert_eq!(scanned.records.len() as u64, header.record_count().unwrap(), "{name}");
            assert_eq!(reader.data().unwrap(), scanned.records.concat(), "{name}");
            assert!(array.unwrap().is_ok(), "{name}");
            continue;
        }
        assert_eq!(scanned.damage.len(), 1, "{name}: {scanned:?}");
        assert_eq!(scanned.damage[0].end, bytes.len() as u64, "{name}");
        match opened {
            // The header is no header: all of the file is damage, and it does not open.
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}");
                assert_eq!((scanned.damage[0].begin, &scanned.records), (0, &vec![]), "{name}");
                let reason = &scanned.damage[0].reason;
                assert!(error.to_string().contains(reason.as_str()), "{name}: {error} / {reason}");
            }
            // Elements are missing: idx2numpy gives nothing, here the whole records are given, and
            // the array, which is not whole, is refused with both sizes.
            Ok(reader) => {
                let header = reader.header().clone();
                let whole = (bytes.len() as u64 - header.length()) / header.record_size();
                assert_eq!(scanned.records.len() as u64, whole, "{name}");
                assert_eq!(scanned.damage[0].record, whole, "{name}");
                for (index, record) in scanned.records.iter().enumerate() {
                    assert_eq!(reader.read(index as u64).unwrap(), record, "{name}");
                }
                for error in [array.unwrap().unwrap_err(), reader.read(whole).unwrap_err()] {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}");
                    assert_eq!(error.expected(), Some(&*format!("{} bytes", header.file_length())), "{name}");
                    assert_eq!(error.found(), Some(&*format!("{} bytes", bytes.len())), "{name}");
                }
                let reason = &scanned.damage[0].reason;
                let expected = format!("expected {} bytes of elements", header.data_length());
                let found = format!("found {}", bytes.len() as u64 - header.length());
                assert!(reason.contains(&expected) && reason.contains(&found), "{name}: {reason}");
            }
        }
    }
    manifest.finish(&["malformed"]);
}

#[test]
fn writers_refuse_what_the_format_cannot_hold_and_only_that() {
    let manifest = Manifest::load("idx");
    let folder = tempfile::tempdir().unwrap();
    for entry in manifest.root().get("writer_errors").items() {
        entry.get("idx2numpy").informational();
        let path = folder.path().join("file");
        let mut options = WriteOptions::default();
        options.overwrite = true;
        match entry.get("name").str() {
            // idx2numpy reads these and refuses to write them; the format can hold them.
            "empty" => {
                let array = ndarray::Array2::<u8>::zeros((0, 3));
                write_array(&path, &array, &options).unwrap();
                assert_eq!(std::fs::read(&path).unwrap(), [0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 3]);
            }
            "0-d" => {
                write_array(&path, &ndarray::arr0(-5i32), &options).unwrap();
                assert_eq!(std::fs::read(&path).unwrap(), [0, 0, 12, 0, 255, 255, 255, 251]);
            }
            // No type code stands for these. A Rust array of them does not compile (`Element` is
            // sealed), and by name there is no such type.
            name => assert_eq!(ElementType::from_name(name), None, "{name}"),
        }
    }
    manifest.finish(&["writer_errors"]);
}

#[test]
fn elements_are_lent_big_endian_and_read_only() {
    let manifest = Manifest::load("idx");
    let notes = manifest.root().get("notes");
    // The file's own bytes, as NumPy sees them: `>i2` is big-endian.
    assert_eq!(notes.get("idx2numpy_read_dtype").str(), ">i2");
    // `Bytes` has no way to be written to.
    assert!(!notes.get("writeable").bool());
    let reader = Reader::open(manifest.file("public-idx1-short"), &OpenOptions::default()).unwrap();
    let numbers: Vec<i16> =
        reader.data().unwrap().chunks(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]])).collect();
    assert_eq!(reader.array_of::<i16>().unwrap().as_slice(), Some(&numbers[..]));
    manifest.finish(&["notes"]);
}

#[test]
fn fashion_mnist_reads_whole_and_in_pairs() {
    let manifest = Manifest::load("idx");
    for entry in manifest.root().get("fashion_mnist").items() {
        let path = Path::new(entry.get("path").str());
        if !path.exists() {
            let missing =
                format!("SKIPPED fashion_mnist: {path:?} is missing (Debian: dataset-fashion-mnist)");
            assert!(std::env::var_os("CI").is_none(), "{missing}");
            // Not by `eprintln!`, which the test runner hides where the test passes.
            std::io::stderr().write_all(format!("{missing}\n").as_bytes()).unwrap();
            entry.informational();
            continue;
        }
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(digest(&bytes), (entry.get("size").u64(), entry.get("sha256").str().to_owned()));
        let array = Array::read(path, &OpenOptions::default()).unwrap();
        let Array::U8(elements) = &array else { panic!("{:?}", array.dtype()) };
        let reader = Reader::open(path, &OpenOptions::default()).unwrap();
        assert_eq!(u64::from(idx::type_code(reader.header().dtype())), entry.get("dtype_code").u64());
        let shape: Vec<u64> = entry.get("shape").items().iter().map(Entry::u64).collect();
        assert_eq!(reader.header().shape(), shape);
        let data = reader.data().unwrap();
        assert_eq!(Some(&data[..]), elements.as_slice());
        assert_eq!(sha256(&data), entry.get("data_sha256").str());
        let whole = [reader.header().encode(), data.to_vec()].concat();
        assert_eq!(whole.len() as u64, entry.get("uncompressed_size").u64());
        assert_eq!(sha256(&whole), entry.get("uncompressed_sha256").str());
        assert_eq!(whole[..16], entry.get("first_bytes").hex());
        let sum: u64 = data.iter().map(|&byte| u64::from(byte)).sum();
        let mean = entry.get("mean").json().as_f64().unwrap();
        assert!((sum as f64 / data.len() as f64 - mean).abs() < 1e-6);
        let scanned = scan(Window::new(reader_source(path)), &OpenOptions::default());
        assert_eq!((scanned.records.len() as u64, scanned.damage), (shape[0], vec![]));
        assert!(scanned.checksums.iter().all(|checksum| *checksum == Integrity::Verified));
        assert_eq!(scanned.records.concat(), data);
        let pair = Pair::open(path, &OpenOptions::default()).unwrap();
        assert_eq!(pair.count().unwrap(), shape[0]);
        assert!(matches!(
            pair.tags(shape[0] - 1, Default::default(), b"").unwrap().label,
            Some(Label::Scalar(0.0..=9.0))
        ));
    }
    manifest.finish(&["fashion_mnist"]);
}

fn reader_source(path: &Path) -> Arc<dyn anyrec::io::Source> {
    anyrec::io::open_file(path, Access::Auto).unwrap()
}

#[test]
fn golden_images_and_labels_are_pairs() {
    let manifest = Manifest::load("idx");
    for name in ["train-images-idx3-ubyte", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz"] {
        let pair = Pair::open(manifest.file(name), &OpenOptions::default()).unwrap();
        let labels = pair.labels.array_of::<u8>().unwrap();
        assert_eq!(labels.len() as u64, pair.count().unwrap());
        for (index, &label) in labels.iter().enumerate() {
            assert_eq!(pair.label(index as u64).unwrap(), Label::Scalar(f64::from(label)));
        }
        assert_eq!(pair.read(3).unwrap().len(), 28 * 28);
    }
}

#[test]
fn the_documented_example_is_what_is_written_and_read() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/idx.md");
    let page = std::fs::read_to_string(page).unwrap();
    let dump = page.split("```hex\n").nth(1).unwrap().split("```").next().unwrap();
    let mut bytes = Vec::new();
    for line in dump.lines() {
        let (offset, hex) = line.split_once("  ").unwrap();
        assert_eq!(usize::from_str_radix(offset, 16).unwrap(), bytes.len());
        bytes.extend(hex::decode(hex.replace(' ', "")).unwrap());
    }
    let array = ndarray::array![[1i16, -2, 300], [0, 32767, -32768]];
    let reader = Reader::new(in_memory(&bytes), &OpenOptions::default()).unwrap();
    assert_eq!(reader.array_of::<i16>().unwrap(), array.clone().into_dyn());
    assert_eq!(reader.read(0).unwrap(), bytes[12..18]);
    assert_eq!(reader.read(1).unwrap(), bytes[18..24]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("example-idx2-short");
    write_array(&path, &array, &WriteOptions::default()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    let mut options = write_options(reader.header());
    options.overwrite = true;
    assert_eq!(written(&path, &options, &scan_bytes(&bytes).records), bytes);
}

/// Any type, a small shape of any rank up to 5, and bytes to fill it.
fn any_file() -> impl Strategy<Value = (Header, Vec<u8>)> {
    let shape = prop::collection::vec(0u64..5, 1..6);
    (prop::sample::select(ElementType::ALL.to_vec()), shape).prop_flat_map(|(dtype, shape)| {
        let header = Header::new(dtype, shape).unwrap();
        let length = usize::try_from(header.data_length()).unwrap();
        (Just(header), prop::collection::vec(any::<u8>(), length))
    })
}

fn slices(header: &Header, data: &[u8]) -> Vec<Vec<u8>> {
    let size = usize::try_from(header.record_size()).unwrap();
    let count = usize::try_from(header.record_count().unwrap()).unwrap();
    (0..count).map(|number| data[number * size..(number + 1) * size].to_vec()).collect()
}

proptest! {
    #[test]
    fn whatever_is_written_is_read((header, data) in any_file(), gzip: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut options = write_options(&header);
        options.set(options.own::<idx::WriteOptions>().with_gzip(gzip));
        let records = slices(&header, &data);
        let file = written(&path, &options, &records);
        let plain = [header.encode(), data].concat();
        prop_assert_eq!(if gzip { gunzip_one_member(&file) } else { file.clone() }, plain.clone());
        prop_assert_eq!(scan_bytes(&file).records, records);
        let array = Array::read(&path, &OpenOptions::default()).unwrap();
        let mut options = WriteOptions::default();
        options.overwrite = true;
        array.write(&path, &options).unwrap();
        prop_assert_eq!(std::fs::read(&path).unwrap(), plain);
    }

    #[test]
    fn a_file_cut_short_gives_its_whole_records((header, data) in any_file(), cut: prop::sample::Index) {
        prop_assume!(!data.is_empty());
        let records = slices(&header, &data);
        let file = [header.encode(), data.clone()].concat();
        let length = header.encode().len() + cut.index(data.len());
        let scanned = scan_bytes(&file[..length]);
        let whole = (length - header.encode().len()) / usize::try_from(header.record_size()).unwrap();
        prop_assert_eq!(&scanned.records[..], &records[..whole]);
        prop_assert_eq!(scanned.damage.len(), 1);
        let mut options = OpenOptions::default();
        options.skip_damage = true;
        let reader = Reader::new(in_memory(&file[..length]), &options).unwrap();
        prop_assert_eq!(reader.count().unwrap(), whole as u64);
    }

    #[test]
    fn mutated_gzip_scans_alike_from_memory_and_stream(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut: prop::sample::Index,
        verify: bool,
    ) {
        let mut file = std::fs::read(crate::manifest::golden("idx").join("cube-multimember-idx3-double.gz")).unwrap();
        for (at, byte) in changes {
            let at = at.index(file.len() - 2) + 2;
            file[at] = byte;
        }
        file.truncate(file.len() - cut.index(40));
        let mut options = OpenOptions::default();
        options.verify = verify;
        let scanned = scan(Window::new(in_memory(&file)), &options);
        let stream = Window::from_stream("memory", std::io::Cursor::new(file.clone()));
        let streamed = scan(stream, &options);
        prop_assert_eq!(&streamed.records, &scanned.records);
        prop_assert_eq!(&streamed.checksums, &scanned.checksums);
        options.skip_damage = true;
        // A reader cannot open what has no header; otherwise it gives what the scan gives.
        let opened = Reader::new(in_memory(&file), &options);
        let Ok((count, reader)) = opened.and_then(|reader| Ok((reader.count()?, reader))) else {
            prop_assert_eq!(scanned.records.len(), 0);
            return Ok(());
        };
        let read: Vec<_> = (0..count).map(|index| reader.read(index).unwrap().to_vec()).collect();
        prop_assert_eq!(read, scanned.records);
    }

    #[test]
    fn any_bytes_are_survived(mut data in prop::collection::vec(any::<u8>(), 0..200), header in any_file()) {
        scan_bytes(&data);
        let mut file = header.0.encode();
        file.append(&mut data);
        scan_bytes(&file);
        let Ok(reader) = Reader::new(in_memory(&file), &OpenOptions::default()) else { return Ok(()) };
        let _ = reader.array();
    }
}
