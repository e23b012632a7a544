//! Round trips of made-up contents, and promises about limits and threads.

use super::*;
use anyrec::ErrorKind;
use anyrec::format::grail::{LegacyPackedWriter, LegacyWriter, Writer};
use proptest::prelude::*;

fn items() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let item = prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..40),
        1 => (any::<u8>(), 0..100_000usize).prop_map(|(byte, length)| vec![byte; length]),
    ];
    proptest::collection::vec(item, 0..60)
}

fn header() -> impl Strategy<Value = Vec<(Vec<u8>, Value)>> {
    let value = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(Value::Uint),
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(|text| Value::Text(text.into())),
    ];
    // Not the reserved keys.
    proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..5), value), 0..5)
}

fn transformers() -> impl Strategy<Value = Vec<String>> {
    let names = vec![
        "zstd",
        "zstd 1",
        "zstd -7",
        "flate",
        "flate 0",
        "flate -2",
        "flate 9",
        "plus 200",
        "aes-256-gcm k",
    ];
    proptest::collection::vec(proptest::sample::select(names).prop_map(str::to_owned), 0..3)
}

fn with_key(mut options: OpenOptions) -> OpenOptions {
    let mut own: grail::OpenOptions = options.own();
    own.registry = own.registry.with_key("k", [7; 32]);
    options.set(own);
    options
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_as_version_2_is_read_back(
        items in items(),
        header in header(),
        transformers in transformers(),
        max_items in 1..40u64,
        parallelism in 1..5usize,
        trailer in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..70_000)),
    ) {
        let mut options = WriteOptions::default();
        options.transformers = transformers.iter().map(|entry| entry.as_str().into()).collect();
        options.registry = registry().with_key("k", [7; 32]);
        options.max_items = Some(max_items);
        options.parallelism = Some(parallelism);
        options.trailer = trailer.is_some();
        options.header = header.iter().map(|(key, value)| (key.clone().into(), value.clone())).collect();
        let mut output = Vec::new();
        let mut writer = Writer::new(&mut output, &options).unwrap();
        for item in &items {
            writer.append(item).unwrap();
        }
        if let Some(trailer) = &trailer {
            writer.set_trailer(trailer).unwrap();
        }
        writer.finish().unwrap();
        drop(writer);

        let reading = with_key(super::options());
        let seen = scan("round trip", &output, &reading);
        prop_assert_eq!(damages(&seen), []);
        prop_assert_eq!(&records(&seen), &items);
        let items_of_blocks: Vec<u64> = positions(&seen).iter().map(|position| position.item).collect();
        let expected: Vec<u64> = (0..items.len() as u64).map(|number| number % (max_items + 1)).collect();
        prop_assert_eq!(items_of_blocks, expected);
        let reader = open("round trip", &output, &reading).unwrap();
        prop_assert_eq!(&read_all(&*reader), &items);
        let info = reader.info().unwrap();
        prop_assert_eq!(info.trailer, trailer);
        let own = info.header.into_iter().rev().take(header.len()).rev();
        prop_assert_eq!(own.map(|(key, value)| (key.to_vec(), value)).collect::<Vec<_>>(), header);

        // Shards together are the file.
        let mut together = Vec::new();
        for shard in 0..4 {
            let mut scanner =
                Scanner::new_shard(source("round trip", &output), &reading, shard, shard + 1, 4).unwrap();
            let (items, error) = drain(&mut scanner);
            prop_assert!(error.is_none());
            together.extend(items);
        }
        prop_assert_eq!(together, items);
    }

    #[test]
    fn what_is_written_as_version_1_is_read_back(
        items in items(),
        max_items in 1..10u64,
        transform in any::<bool>(),
    ) {
        let mut output = Vec::new();
        let mut writer = LegacyWriter::new(&mut output);
        for item in &items {
            writer.write(item).unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        prop_assert_eq!(&records(&scan("unpacked", &output, &options())), &items);

        let mut options = WriteOptions::default();
        options.max_items = Some(max_items);
        if transform {
            options.transformers = vec!["flate 1".into()];
        }
        let mut output = Vec::new();
        let mut writer = LegacyPackedWriter::new(&mut output, &options).unwrap();
        for item in &items {
            writer.write(item).unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        let name = if transform { "packed.grail-rpk-gz" } else { "packed.grail-rpk" };
        let reader = open(name, &output, &super::options()).unwrap();
        prop_assert_eq!(read_all(&*reader), items);
    }

    #[test]
    fn made_up_bytes_are_covered_by_events(
        mut data in proptest::collection::vec(any::<u8>(), 0..300),
        begin in 0..4usize,
        padding in prop_oneof![Just(0), 32_000..40_000usize],
    ) {
        let magics = [
            anyrec::format::grail::layout::HEADER_MAGIC,
            anyrec::format::grail::legacy::UNPACKED_MAGIC,
            anyrec::format::grail::legacy::PACKED_MAGIC,
        ];
        if let Some(magic) = magics.get(begin) {
            data.splice(0..0, *magic);
        }
        data.resize(data.len() + padding, 0);
        scan("made up", &data, &options());
    }
}

fn zeros(transformer: &str, length: usize) -> Vec<u8> {
    let mut options = WriteOptions::default();
    options.transformers = vec![transformer.into()];
    let mut output = Vec::new();
    let mut writer = Writer::new(&mut output, &options).unwrap();
    writer.append(&vec![0; length]).unwrap();
    writer.finish().unwrap();
    drop(writer);
    output
}

#[test]
fn a_block_that_unpacks_over_the_limit_is_refused() {
    for transformer in ["zstd", "flate"] {
        let data = zeros(transformer, 1 << 20);
        assert_eq!(data.len(), 2 << 15);
        let mut options = options();
        options.limits.frame = 1 << 16;
        let error = try_scan(Window::new(source("bomb", &data)), &options).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Limit, Some(32768)), "{error}");
        options.limits.frame = (1 << 20) + 4;
        assert_eq!(records(&scan("bomb", &data, &options)), [vec![0; 1 << 20]]);
    }
}

#[test]
fn an_encrypted_file_needs_the_right_key_and_unchanged_blocks() {
    let mut options = WriteOptions::default();
    options.transformers = vec![Transform::zstd(), Transform::aes_256_gcm("the key")];
    let error = Writer::new(Vec::new(), &options).err().unwrap();
    assert!(error.message().contains("no key \"the key\""), "{error}");
    options.registry = Registry::default().with_key("the key", [1; 32]);
    assert!(!format!("{:?}", options.registry).contains('1'), "keys are not shown");
    let write = || {
        let mut output = Vec::new();
        let mut writer = Writer::new(&mut output, &options).unwrap();
        writer.append(b"secret").unwrap();
        writer.flush().unwrap();
        writer.append(b"secret").unwrap();
        writer.finish().unwrap();
        drop(writer);
        output
    };
    let data = write();
    let sealed = |at: usize| data[at + 28..at + 80].to_vec();
    assert_ne!(sealed(32768), sealed(65536), "every block has a nonce of its own");
    assert_ne!(data, write());

    let mut reading = super::options();
    assert_eq!(open("secret", &data, &reading).err().unwrap().kind(), ErrorKind::Invalid);
    let scanned = try_scan(Window::new(source("secret", &data)), &reading);
    assert_eq!(scanned.unwrap_err().kind(), ErrorKind::Invalid);
    reading
        .set(grail::OpenOptions::default().with_registry(Registry::default().with_key("the key", [2; 32])));
    let seen = scan("secret", &data, &reading);
    assert!(records(&seen).is_empty());
    assert!(damages(&seen)[0].reason.contains("decryption failed"), "{:?}", damages(&seen));
    reading
        .set(grail::OpenOptions::default().with_registry(Registry::default().with_key("the key", [1; 32])));
    assert_eq!(records(&scan("secret", &data, &reading)), [b"secret", b"secret"]);
}

#[test]
fn a_transformer_that_is_not_registered_is_named() {
    let data = std::fs::read(crate::manifest::golden("grail").join("v2_custom_plus.grail-rio")).unwrap();
    let error = open("plus", &data, &OpenOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("\"plus\"") && error.hint().is_some(), "{error:?}");
    let error = try_scan(Window::new(source("plus", &data)), &OpenOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn a_transformer_that_panics_is_an_error_and_not_the_end() {
    struct Panics;
    impl Transformer for Panics {
        fn encode(&self, _block: &[u8]) -> Result<Vec<u8>> {
            panic!("on purpose")
        }
        fn decode(&self, _stored: &[u8], _limit: u64) -> Result<Vec<u8>> {
            panic!("on purpose")
        }
    }
    let mut options = WriteOptions::default();
    options.registry.register("panics", |_| Ok(Arc::new(Panics)));
    options.transformers = vec!["panics".into()];
    let mut writer = Writer::new(Vec::new(), &options).unwrap();
    writer.append(b"item").unwrap();
    assert!(writer.finish().unwrap_err().message().contains("panicked"));
}

#[test]
fn records_of_a_mapped_file_have_memory_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.grail-rio");
    let mut writer = Writer::create(&path, &common(&WriteOptions::default())).unwrap();
    writer.append(b"first").unwrap();
    writer.append(b"second").unwrap();
    writer.finish().unwrap();
    drop(writer);
    let file = anyrec::io::open_file(&path, anyrec::io::Access::Mapped).unwrap();
    let reader = FORMAT.open(Arc::clone(&file), &OpenOptions::default()).unwrap();
    let record = reader.read(1).unwrap();
    assert_eq!(record, &b"second"[..]);
    let memory = [file.as_slice().unwrap(), file.lendable().unwrap()];
    assert!(memory.iter().all(|memory| !memory.as_ptr_range().contains(&record.as_ptr())));
    let positional = anyrec::io::open_file(&path, anyrec::io::Access::Positional).unwrap();
    assert_eq!(
        read_all(&*FORMAT.open(positional, &OpenOptions::default()).unwrap()),
        [&b"first"[..], b"second"]
    );
    let error = reader.read(2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
}

#[test]
fn settings_of_other_versions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.grail-rio");
    let own = WriteOptions::default;
    for own in [
        own().with_version(grail::Version::LegacyUnpacked).with_max_items(3),
        own().with_version(grail::Version::LegacyPacked).with_trailer(true),
    ] {
        assert_eq!(FORMAT.create(&path, &common(&own)).err().unwrap().kind(), ErrorKind::Invalid, "{own:?}");
    }
    let foreign = common(&own()).with(anyrec::format::mxnet::WriteOptions::default());
    assert_eq!(FORMAT.create(&path, &foreign).err().unwrap().kind(), ErrorKind::Invalid);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_legacy_record_that_unpacks_to_more_than_its_sizes_is_damage() {
    let mut options = WriteOptions::default();
    options.transformers = vec!["flate".into()];
    let mut output = Vec::new();
    let mut writer = LegacyPackedWriter::new(&mut output, &options).unwrap();
    writer.write(&[0; 100]).unwrap();
    writer.finish().unwrap();
    drop(writer);
    // One item of 99 bytes, with the checksum of that list.
    output[25] = 99;
    let checksum = crc32fast::hash(&output[24..26]).to_le_bytes();
    output[20..24].copy_from_slice(&checksum);
    let seen = scan("bomb.grail-rpk-gz", &output, &super::options());
    assert!(records(&seen).is_empty());
    assert!(damages(&seen)[0].reason.contains("more data than the 99 bytes"), "{:?}", damages(&seen));
}
