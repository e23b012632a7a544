//! Golden files written anew from what was read from them.

use super::files::Golden;
use super::*;
use anyrec::Tags;
use anyrec::format::RecordWriter;
use anyrec::format::grail::{LegacyPackedWriter, LegacyWriter, PackedEvent, Writer};

/// The options of an entry's `writer`, and whether the header is left out.
fn write_options(writer: &Entry<'_>) -> (WriteOptions, bool) {
    let mut options = WriteOptions::default();
    options.registry = registry();
    options.trailer = writer.get("key_trailer").bool();
    options.max_items = writer.find("max_items").map(|items| items.u64());
    if let Some(transformers) = writer.find("transformers") {
        options.transformers = transformers.items().iter().map(|entry| entry.str().into()).collect();
    }
    (options, writer.find("skip_header").is_some_and(|skip| skip.bool()))
}

/// Does what `part` (an entry, or a part of one) says with the items at hand; gives the output
/// and the positions its index callback was told.
fn write_part(
    part: &Entry<'_>,
    items: &mut std::slice::Iter<'_, Vec<u8>>,
    trailer: Option<&[u8]>,
    parallelism: usize,
) -> (Vec<u8>, Vec<Position>) {
    let (mut output, mut told) = (Vec::new(), Vec::new());
    let (mut options, skip_header) = write_options(&part.get("writer"));
    options.parallelism = Some(parallelism);
    let mut writer = Writer::new(&mut output, &options).unwrap();
    if skip_header {
        writer.skip_header().unwrap();
    }
    writer
        .on_index(|number, position| {
            assert_eq!(number, told.len() as u64);
            told.push(position);
            Ok(())
        })
        .unwrap();
    for pair in part.find("add_header").map_or_else(Vec::new, |pairs| pairs.items()) {
        let (key, value) = value(&pair);
        writer.add_header(key, value).unwrap();
    }
    for operation in part.get("ops").items() {
        let operation = operation.items();
        match operation[0].str() {
            "append" => {
                for item in items.by_ref().take(usize::try_from(operation[1].u64()).unwrap()) {
                    writer.append(item).unwrap();
                }
            }
            "flush" => writer.flush().unwrap(),
            "wait" => writer.wait().unwrap(),
            other => panic!("operation {other}"),
        }
    }
    if let Some(trailer) = trailer {
        writer.set_trailer(trailer).unwrap();
    }
    let written = writer.finish().unwrap();
    drop(writer);
    assert_eq!((written.records, written.bytes), (told.len() as u64, output.len() as u64));
    (output, told)
}

/// Writes a version 2 file anew, with one thread and with several.
pub fn rewrite_two(golden: &Golden<'_>) {
    let reproducible = golden.entry.get("byte_reproducible").bool();
    for parallelism in [1, 4] {
        let mut items = golden.items.iter();
        let trailer = golden.trailer.as_deref();
        let (output, told) = match golden.entry.find("part1") {
            None => write_part(&golden.entry, &mut items, trailer, parallelism),
            Some(part) => {
                let (mut output, mut told) = write_part(&part, &mut items, None, parallelism);
                assert_eq!(output.len() as u64, golden.entry.get("part1_size").u64());
                let rest = write_part(&golden.entry.get("part2"), &mut items, trailer, parallelism);
                let moved = |position: &Position| Position {
                    frame: position.frame + output.len() as u64,
                    item: position.item,
                };
                told.extend(rest.1.iter().map(moved));
                output.extend(rest.0);
                (output, told)
            }
        };
        assert_eq!(items.len(), 0, "{}: all items written", golden.name);
        if reproducible {
            assert!(output == golden.data, "{}: the same bytes", golden.name);
            assert_eq!(told, golden.positions, "{}", golden.name);
        }
        // Compressed bytes are the compressor's own affair; what is in them is not.
        let seen = scan(golden.name, &output, &options());
        assert_eq!(damages(&seen), []);
        assert_eq!(records(&seen), golden.items, "{}", golden.name);
        assert_eq!(positions(&seen), told, "{}", golden.name);
        let items_of = |positions: &[Position]| positions.iter().map(|p| p.item).collect::<Vec<_>>();
        assert_eq!(items_of(&told), items_of(&golden.positions), "{}: the same blocks", golden.name);
        let reader = open(golden.name, &output, &options()).unwrap();
        assert_eq!(
            reader.info().unwrap(),
            open(golden.name, &golden.data, &options()).unwrap().info().unwrap()
        );
    }
    rewrite_through_the_format(golden);
}

/// The same through `Format::create`, where nothing but appending was done.
fn rewrite_through_the_format(golden: &Golden<'_>) {
    let only_appends = golden
        .entry
        .find("ops")
        .is_some_and(|ops| ops.items().iter().all(|operation| operation.items()[0].str() == "append"));
    if !only_appends {
        return;
    }
    let (mut options, _) = write_options(&golden.entry.get("writer"));
    let pairs = golden.entry.get("add_header").items();
    options.header = pairs.iter().map(value).map(|(key, value)| (key.into(), value)).collect();
    let output = write_file(golden, &options, golden.trailer.as_deref());
    if golden.entry.get("byte_reproducible").bool() {
        assert!(output == golden.data, "{}: the same bytes from a record writer", golden.name);
    }
    assert_eq!(records(&scan(golden.name, &output, &super::options())), golden.items);
}

fn write_file(golden: &Golden<'_>, options: &WriteOptions, trailer: Option<&[u8]>) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(golden.name);
    let mut writer: Box<dyn RecordWriter> = FORMAT.create(&path, &common(options)).unwrap();
    for (number, item) in golden.items.iter().enumerate() {
        assert_eq!(writer.append(item, &Tags::none()).unwrap(), number as u64);
    }
    if let Some(trailer) = trailer {
        writer.set_trailer(trailer).unwrap();
    }
    assert!(!path.exists(), "the file appears when it is finished");
    let written = writer.finish().unwrap();
    let output = std::fs::read(&path).unwrap();
    assert_eq!((written.records, written.bytes), (golden.items.len() as u64, output.len() as u64));
    output
}

pub fn rewrite_legacy(golden: &Golden<'_>) {
    let packed = golden.entry.get("packed").json();
    let output = match packed.as_bool() {
        Some(false) => rewrite_unpacked(golden),
        Some(true) => rewrite_packed(golden),
        None => {
            assert_eq!(packed, "mixed");
            rewrite_mixed(golden)
        }
    };
    if golden.entry.get("byte_reproducible").bool() {
        assert!(output == golden.data, "{}: the same bytes", golden.name);
    }
    assert_eq!(records(&scan(golden.name, &output, &options())), golden.items, "{}", golden.name);
}

fn rewrite_unpacked(golden: &Golden<'_>) -> Vec<u8> {
    let (mut output, mut told) = (Vec::new(), Vec::new());
    let mut writer = LegacyWriter::new(&mut output);
    writer.on_index(|offset, length| {
        told.push((offset, length));
        Ok(())
    });
    let calls = golden.entry.find("calls").map_or_else(Vec::new, |calls| calls.items());
    assert_eq!(calls.len(), golden.items.len());
    for (item, call) in golden.items.iter().zip(&calls) {
        match call.str() {
            // What is marshalled comes to a writer of bytes as bytes.
            "Write" | "Marshal" => writer.write(item).unwrap(),
            "WriteSlices" => {
                let (first, second) = item.split_at(item.len() / 2);
                writer.write_slices(&[first, second]).unwrap();
            }
            other => panic!("call {other}"),
        }
    }
    writer.finish().unwrap();
    drop(writer);
    let index = golden.entry.find("legacy_index").map_or_else(Vec::new, |index| index.items());
    assert_eq!(told.len(), index.len());
    for (((told, entry), item), call) in told.iter().zip(&index).zip(&golden.items).zip(&calls) {
        assert_eq!(*told, (entry.get("offset").u64(), entry.get("length").u64()));
        // Value and bytes are passed along for marshalled items only.
        let marshalled = call.str() == "Marshal";
        assert_eq!(entry.get("v_nil").bool(), !marshalled);
        assert_eq!(entry.get("p_len").json().as_u64(), marshalled.then_some(item.len() as u64));
    }
    let mut options = WriteOptions::default();
    options.version = grail::Version::LegacyUnpacked;
    assert_eq!(write_file(golden, &options, None), output, "{}", golden.name);
    output
}

fn rewrite_packed(golden: &Golden<'_>) -> Vec<u8> {
    let entry = &golden.entry;
    let mut options = WriteOptions::default();
    options.max_items = Some(entry.get("max_items").u64());
    if entry.get("flate").bool() {
        options.transformers = vec![Transform::from(&*format!("flate {}", entry.get("flate_level").json()))];
    } else {
        assert!(is_null(&entry.get("flate_level")));
    }
    let flushes: Vec<usize> = serde_json::from_value(entry.get("flush_after_items").json().clone()).unwrap();
    let (mut output, mut told) = (Vec::new(), Vec::new());
    let mut writer = LegacyPackedWriter::new(&mut output, &options).unwrap();
    writer.set_max_bytes(entry.get("max_bytes").u64());
    writer.on_index(|event| {
        told.push(event);
        Ok(())
    });
    for (number, item) in golden.items.iter().enumerate() {
        writer.write(item).unwrap();
        if flushes.contains(&number) {
            writer.flush().unwrap();
        }
    }
    writer.finish().unwrap();
    drop(writer);

    let flushed = told.iter().filter(|event| matches!(event, PackedEvent::Flushed)).count();
    assert_eq!(flushed as u64, entry.get("flushed_callbacks").u64());
    let reproducible = entry.get("byte_reproducible").bool();
    let mut told = told.into_iter();
    for record in entry.get("records").items() {
        let Some(PackedEvent::Record { offset, length, items }) = told.next() else { panic!("a record") };
        let expected = [record.get("offset").u64(), record.get("length").u64(), record.get("nitems").u64()];
        assert_eq!(items, expected[2], "{}", golden.name);
        assert!(!reproducible || [offset, length, items] == expected, "{}", golden.name);
        for callback in record.get("item_callbacks").items() {
            let expected: (u64, u64) = serde_json::from_value(callback.json().clone()).unwrap();
            let Some(PackedEvent::Item { offset, length }) = told.next() else { panic!("an item") };
            assert_eq!(offset, expected.0);
            assert!(!reproducible || length == expected.1, "{}", golden.name);
        }
        assert_eq!(told.next(), Some(PackedEvent::Flushed));
    }
    assert_eq!(told.next(), None);

    if let Some(plain) = entry.find("read_without_transform") {
        // Told not to transform, ours delivers nothing either and says why.
        let mut options = super::options();
        options.set(options.own::<grail::OpenOptions>().with_legacy_transform("".into()));
        let seen = scan(golden.name, &golden.data, &options);
        assert_eq!(records(&seen).len() as u64, plain.get("n_items").u64());
        assert!(is_null(&plain.get("panic")));
        assert!(plain.get("scan_err").str().contains("mismatched transform"));
        assert!(damages(&seen)[0].reason.contains("does not match its items"), "{:?}", damages(&seen));
        // And by any name, told how.
        options.set(options.own::<grail::OpenOptions>().with_legacy_transform(Transform::flate()));
        assert_eq!(records(&scan("renamed", &golden.data, &options)), golden.items);
    }
    output
}

/// An unpacked record, a packed one of all items but the first and last, an unpacked one.
fn rewrite_mixed(golden: &Golden<'_>) -> Vec<u8> {
    let mut output = Vec::new();
    let (first, rest) = golden.items.split_first().unwrap();
    let (last, middle) = rest.split_last().unwrap();
    LegacyWriter::new(&mut output).write(first).unwrap();
    let mut packed = LegacyPackedWriter::new(&mut output, &WriteOptions::default()).unwrap();
    for item in middle {
        packed.write(item).unwrap();
    }
    packed.finish().unwrap();
    drop(packed);
    LegacyWriter::new(&mut output).write(last).unwrap();
    output
}
