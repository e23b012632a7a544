//! The manifest's errors of reader and writer.

use super::*;
use anyrec::ErrorKind;
use anyrec::format::grail::{LegacyPackedWriter, Writer};

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(crate::manifest::golden("grail").join(name)).unwrap()
}

#[test]
fn the_scanner_fails_where_the_original_fails() {
    let manifest = Manifest::load("grail");
    let flush = golden("v2_flush.grail-rio");
    let packed = golden("legacy_packed.grail-rpk");
    for entry in manifest.root().get("reader_errors").items() {
        let name = entry.get("name").str();
        let expected = entry.get("err").json().as_str();
        let new = |data: &[u8]| Scanner::new(source("file", data), &options()).unwrap();
        let seek = |scanner: &mut Scanner, frame: u64, item: u64| {
            let result = scanner.seek(Position { frame, item });
            assert_eq!(result.is_err(), expected.is_some(), "{name}: {result:?}");
            assert_eq!(scanner.next_item().unwrap().is_some(), entry.get("scan").bool(), "{name}");
            result.err()
        };
        match name {
            "Seek to item past the block's end" => {
                // "Invalid location {Block:32768 Item:99}, block has only 4 items"
                let message = expected.unwrap();
                let numbers: Vec<u64> =
                    message.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
                let error = seek(&mut new(&flush), numbers[0], numbers[1]).unwrap();
                assert_eq!(error.kind(), ErrorKind::OutOfRange);
                assert_eq!(error.offset(), Some(numbers[0]));
                assert!(error.message().contains(&format!("it has {}", numbers[2])), "{error}");
                // One past the last item is past the end too.
                let seek = new(&flush).seek(Position { frame: numbers[0], item: numbers[2] });
                assert_eq!(seek.unwrap_err().kind(), ErrorKind::OutOfRange);
            }
            "Seek to a non-block offset" => {
                let error = seek(&mut new(&flush), 40000, 0).unwrap();
                assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(40000)));
            }
            "Seek to EOF" => assert!(seek(&mut new(&flush), flush.len() as u64, 0).is_none()),
            "Seek to the header block" => {
                let error = seek(&mut new(&flush), 0, 0).unwrap();
                assert!(error.message().contains("invalid magic number d9 e1"), "{error}");
            }
            "scan to EOF, scan again, Seek back, continue" => {
                let mut scanner = new(&flush);
                let (first, error) = drain(&mut scanner);
                assert_eq!((first.len() as u64, error.is_none()), (entry.get("n_first").u64(), true));
                assert_eq!(scanner.next_item().unwrap().is_some(), entry.get("scan_after_eof").bool());
                let item = entry.get("item").digest();
                let at = first.iter().position(|found| digest(found) == item).unwrap();
                let position = positions(&scan("file", &flush, &options()))[at];
                scanner.seek(position).unwrap();
                let next = scanner.next_item().unwrap().map(digest);
                assert_eq!(next.is_some(), entry.get("scan_after_seek").bool());
                assert_eq!(next, Some(item));
                assert_eq!(drain(&mut scanner).0.len() as u64, entry.get("n_rest").u64());
            }
            "Trailer() of a file without trailer key" => {
                assert_eq!(new(&flush).trailer().unwrap().is_none(), entry.get("nil").bool());
            }
            "Seek in a legacy packed file" => {
                let item = entry.get("item").digest();
                let seen = scan("file", &packed, &options());
                let at = records(&seen).iter().position(|found| digest(found) == item).unwrap();
                let mut scanner = new(&packed);
                scanner.seek(positions(&seen)[at]).unwrap();
                assert_eq!(scanner.next_item().unwrap().map(digest), Some(item));
                assert!(entry.get("scan").bool());
            }
            "NewShardScanner(0,1,2) on a legacy file" => {
                let scanner = Scanner::new_shard(source("file", &packed), &options(), 0, 1, 2);
                let error = scanner.err().unwrap();
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(!entry.get("scan").bool());
                // All of it is not a shard.
                assert!(Scanner::new_shard(source("file", &packed), &options(), 0, 1, 1).is_ok());
            }
            other => panic!("no test for {other}"),
        }
    }
    manifest.finish(&["reader_errors"]);
}

#[test]
fn the_writer_fails_where_the_original_fails() {
    let manifest = Manifest::load("grail");
    for entry in manifest.root().get("writer_errors").items() {
        let name = entry.get("name").str();
        let mut options = WriteOptions::default();
        let mut output = Vec::new();
        // The call that is to be judged, as the name says.
        let result: Result<()> = match name {
            "AddHeader float64" | "AddHeader []byte" => {
                // There is no value of such a type to add: the types of `Value` are those that
                // can be written.
                for value in [Value::Bool(true), Value::Int(1), Value::Uint(1), Value::Text("".into())] {
                    Writer::new(Vec::new(), &options).unwrap().add_header("key", value).unwrap();
                }
                Err(Error::invalid("not a value"))
            }
            "AddHeader after Append" => with_writer(&mut output, &options, |writer| {
                writer.append(b"item")?;
                writer.add_header("key", Value::Bool(true))
            }),
            "SetTrailer without trailer key" => {
                with_writer(&mut output, &options, |writer| writer.set_trailer(b"trailer"))
            }
            "SetTrailer with trailer=false" => with_writer(&mut output, &options, |writer| {
                writer.add_header("trailer", Value::Bool(false)).unwrap();
                writer.set_trailer(b"trailer")
            }),
            "SetTrailer twice" | "Append after SetTrailer" | "Flush after SetTrailer" => {
                options.trailer = true;
                with_writer(&mut output, &options, |writer| {
                    writer.set_trailer(b"trailer").unwrap();
                    match name {
                        "SetTrailer twice" => writer.set_trailer(b"trailer"),
                        "Append after SetTrailer" => writer.append(b"item"),
                        _ => writer.flush(),
                    }
                })
            }
            "KeyTrailer but no SetTrailer" => {
                options.trailer = true;
                append_one(&mut output, &options)
            }
            "unknown transformer" | "zstd bad config" | "flate 10" | "zstd 100" => {
                let transformer = match name {
                    "unknown transformer" => "lz4",
                    "zstd bad config" => "zstd x",
                    other => other,
                };
                options.transformers = vec![transformer.into()];
                append_one(&mut output, &options)
            }
            "flate 10, no items" => {
                options.transformers = vec!["flate 10".into()];
                with_writer(&mut output, &options, |writer| writer.finish().map(drop))
            }
            "Index callback error" => with_writer(&mut output, &options, |writer| {
                writer.on_index(|_, _| Err(Error::invalid("idx boom")))?;
                writer.append(b"item")?;
                writer.finish().map(drop)
            }),
            "user adds header key transformer" => with_writer(&mut output, &options, |writer| {
                writer.add_header("transformer", Value::Text("zstd".into()))?;
                writer.append(b"item")?;
                writer.finish().map(drop)
            }),
            "Finish twice" => with_writer(&mut output, &options, |writer| {
                writer.finish().unwrap();
                writer.finish().map(drop)
            }),
            "legacy packed item larger than MaxBytes" => {
                let mut writer = LegacyPackedWriter::new(&mut output, &options).unwrap();
                writer.set_max_bytes(3);
                writer.write(b"four")
            }
            other => panic!("no test for {other}"),
        };
        // What makes the original panic is an error here, of a kind that says whose fault it is.
        let panics = entry.find("panic").is_some_and(|panic| !is_null(&panic));
        let fails = entry.find("err").is_some_and(|error| !is_null(&error));
        assert_eq!(result.is_err(), panics || fails, "{name}: {result:?}");
        if panics {
            assert_eq!(result.as_ref().unwrap_err().kind(), ErrorKind::Invalid, "{name}");
        }
        if name == "Index callback error" {
            assert_eq!(result.unwrap_err().message(), entry.get("err").str());
        }
        if let Some(bytes) = entry.find("bytes_written") {
            assert_eq!(output.len() as u64, bytes.u64(), "{name}");
        }
    }
    manifest.finish(&["writer_errors"]);
}

fn with_writer<'a>(
    output: &'a mut Vec<u8>,
    options: &WriteOptions,
    calls: impl FnOnce(&mut Writer<'a>) -> Result<()>,
) -> Result<()> {
    calls(&mut Writer::new(output, options)?)
}

fn append_one(output: &mut Vec<u8>, options: &WriteOptions) -> Result<()> {
    with_writer(output, options, |writer| {
        writer.append(b"item")?;
        writer.finish().map(drop)
    })
}

#[test]
fn a_writer_that_failed_says_so_from_then_on() {
    let mut options = WriteOptions::default();
    options.transformers = vec!["flate 10".into()];
    let mut writer = Writer::new(Vec::new(), &options).unwrap();
    writer.append(b"item").unwrap();
    writer.flush().and_then(|()| writer.wait()).unwrap_err();
    let error = writer.append(b"item").unwrap_err();
    assert!(error.message().contains("failed earlier: flate has levels"), "{error}");
    assert!(writer.finish().is_err());
}
