//! Any format to any other, and back.

use crate::conformance::{golden_files, options, options_for, walk_file};
use anyrec::convert::{ConvertOptions, Shards, convert};
use anyrec::format::{FORMATS, Format, idx};
use anyrec::{Dataset, ErrorKind, RecordFile};
use anyrec::{Key, Label, Tags};
use std::path::Path;

fn run(
    input: &Path,
    output: &Path,
    to: &'static dyn Format,
    options: &ConvertOptions,
) -> anyrec::Result<anyrec::convert::Conversion> {
    let input = RecordFile::open(input, &options.open)?;
    convert(vec![input], output, to, options, &mut |_| {})
}

fn records(path: &Path) -> Vec<Vec<u8>> {
    let dataset = Dataset::open(&[path], &options_for(path)).unwrap();
    dataset.iter().map(|record| record.unwrap().to_vec()).collect()
}

fn format(id: &str) -> &'static dyn Format {
    anyrec::format::by_id(id).unwrap()
}

#[test]
fn every_golden_goes_to_every_format_and_back() {
    let (mut done, mut refused) = (0, 0);
    for from in FORMATS {
        for path in golden_files(*from) {
            let original = walk_file(*from, &path);
            for to in FORMATS {
                let folder = tempfile::tempdir().unwrap();
                let there = folder.path().join(format!("there.{}", to.extensions()[0]));
                let mut settings = ConvertOptions::default();
                settings.open = options_for(&path);
                settings.open.format = Some(*from);
                settings.write = to.options_for(&options());
                let result = run(&path, &there, *to, &settings);
                let sizes_differ =
                    original.records.iter().any(|record| record.data.len() != original.records[0].data.len());
                if to.capabilities().fixed_size && sizes_differ {
                    let error = result.expect_err("records of several sizes do not fit");
                    assert!(error.record().is_some(), "{path:?}: {error}");
                    assert!(!there.exists());
                    refused += 1;
                    continue;
                }
                let result = result.unwrap_or_else(|error| panic!("{path:?} to {}: {error}", to.id()));
                done += 1;
                assert_eq!(result.records, original.records.len() as u64);
                let converted = walk_file(*to, &there);
                assert_eq!(converted.data(), original.data(), "{path:?} to {}", to.id());
            }
        }
    }
    assert!(done > 300 && refused > 50, "{done} converted, {refused} refused");
}

#[test]
fn damage_stops_a_conversion_unless_it_may_be_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.rec"), folder.path().join("out.ffr"));
    let mut data = std::fs::read(crate::manifest::golden("mxnet").join("mod4.rec")).unwrap();
    let second = 12; // Inside the first record's frame or the second's header: either breaks framing.
    data[second] ^= 0xff;
    data[8] = 0xff;
    data[0] ^= 1;
    std::fs::write(&input, &data).unwrap();
    let mut settings = ConvertOptions::default();
    let error = run(&input, &output, format("ffrecord"), &settings).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.hint().unwrap().to_string().contains("repair"), "{error:#}");
    assert!(!output.exists());
    settings.open.skip_damage = true;
    let result = run(&input, &output, format("ffrecord"), &settings).unwrap();
    assert!(!result.skipped.is_empty() && result.records > 0);
}

#[test]
fn keys_go_along_and_are_counted_where_they_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let golden = crate::manifest::golden("mxnet").join("indexed_unordered.rec");
    let again = folder.path().join("again.rec");
    run(&golden, &again, format("mxnet"), &ConvertOptions::default()).unwrap();
    assert_eq!(std::fs::read(&again).unwrap(), std::fs::read(&golden).unwrap());
    assert_eq!(
        std::fs::read(again.with_extension("idx")).unwrap(),
        std::fs::read(golden.with_extension("idx")).unwrap()
    );

    let result =
        run(&golden, &folder.path().join("x.ffr"), format("ffrecord"), &ConvertOptions::default()).unwrap();
    assert!(
        result.notices.iter().any(|notice| notice.message.contains("keys not stored")),
        "{:?}",
        result.notices
    );
}

#[test]
fn more_files_than_records_are_empty_within_reason() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("x.ffr");
    let mut writer = anyrec::create(&input).unwrap();
    writer.append(b"only", &Tags::none()).unwrap();
    writer.finish().unwrap();
    let shards = |count| {
        let mut options = ConvertOptions::default();
        options.shards = Shards::Count(count);
        run(&input, &folder.path().join("out.ffr"), format("ffrecord"), &options)
    };
    assert_eq!(shards(3).unwrap().outputs.len(), 3);
    let error = shards(1 << 62).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("1 records cannot be cut into 4611686018427387904 files"));
}

#[test]
fn labels_of_an_idx_pair_become_image_headers_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let images = crate::manifest::golden("idx").join("t10k-images-idx3-ubyte");
    let labels = crate::manifest::golden("idx").join("t10k-labels-idx1-ubyte");
    let rec = folder.path().join("t10k.rec");
    let mut settings = ConvertOptions::default();
    settings.labels = Some(labels.clone());
    let result = run(&images, &rec, format("mxnet"), &settings).unwrap();
    let dataset = anyrec::open(&rec).unwrap();
    let label_bytes = records(&labels);
    assert_eq!(result.records, label_bytes.len() as u64);
    for (index, label) in label_bytes.iter().enumerate() {
        assert_eq!(dataset.tags(index as u64).unwrap().label, Some(Label::Scalar(f64::from(label[0]))));
    }

    let (back, back_labels) =
        (folder.path().join("back-images-idx3-ubyte"), folder.path().join("back-labels-idx1-ubyte"));
    let mut settings = ConvertOptions::default();
    settings.strip_header = true;
    settings.label_output = Some(back_labels.clone());
    let shape = anyrec::open(&images).unwrap().readers().next().unwrap().info().unwrap().shape.unwrap();
    settings.write.set(idx::WriteOptions::default().with_item_shape(&shape[1..]));
    run(&rec, &back, format("idx"), &settings).unwrap();
    assert_eq!(std::fs::read(&back).unwrap(), std::fs::read(&images).unwrap());
    assert_eq!(std::fs::read(&back_labels).unwrap(), std::fs::read(&labels).unwrap());

    let short = folder.path().join("short-idx1-ubyte");
    std::fs::write(&short, [0, 0, 8, 1, 0, 0, 0, 1, 5]).unwrap();
    let mut settings = ConvertOptions::default();
    settings.labels = Some(short);
    let error = run(&images, &folder.path().join("no.rec"), format("mxnet"), &settings).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange, "{error}");
}

#[test]
fn outputs_are_cut_by_count_and_by_size() {
    let folder = tempfile::tempdir().unwrap();
    let golden = crate::manifest::golden("ffrecord").join("n1000.ffr");
    let original = records(&golden);
    for (shards, pattern) in [(Shards::Count(7), "count-*.ffr"), (Shards::Bytes(20_000), "size-*.ffr")] {
        let mut settings = ConvertOptions::default();
        settings.shards = shards;
        let name = pattern.replace("-*", "");
        let result = run(&golden, &folder.path().join(&name), format("ffrecord"), &settings).unwrap();
        let pattern = folder.path().join(pattern);
        let dataset = anyrec::open(&pattern).unwrap();
        let all: Vec<_> = dataset.iter().map(|record| record.unwrap().to_vec()).collect();
        assert_eq!(all, original);
        if shards == Shards::Count(7) {
            assert_eq!(result.outputs.len(), 7);
            assert!(folder.path().join("count-00006-of-00007.ffr").exists());
        } else {
            assert!(result.outputs.len() > 3);
        }
    }
}

#[test]
fn a_stream_converts_like_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let golden = crate::manifest::golden("mxnet").join("magic_fuzz.rec");
    let output = folder.path().join("out.ffr");
    let stream =
        RecordFile::stream("stdin", std::fs::File::open(&golden).unwrap(), &Default::default()).unwrap();
    convert(vec![stream], &output, format("ffrecord"), &ConvertOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(records(&output), records(&golden));
}

#[test]
fn a_conversion_never_writes_over_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ffr");
    std::fs::copy(crate::manifest::golden("ffrecord").join("n1.ffr"), &path).unwrap();
    let mut settings = ConvertOptions::default();
    settings.write.overwrite = true;
    let error = run(&path, &path, format("ffrecord"), &settings).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn tags_given_to_a_writer_without_room_for_them_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = anyrec::create(folder.path().join("x.ffr")).unwrap();
    let tags = Tags::none().with_key(Key::Int(7)).with_label(Label::Scalar(1.0));
    writer.append(b"...", &tags).unwrap();
    let notices = writer.finish().unwrap().notices;
    assert_eq!(notices.len(), 2, "{notices:?}");
}
