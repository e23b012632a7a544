//! Writing record by record.

use super::*;

#[test]
fn a_record_of_another_size_is_refused_and_the_rest_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x-idx2-short");
    let options = with(own().with_dtype(ElementType::I16));
    let mut writer = Writer::create(&path, &options).unwrap();
    let error = writer.append(&[1, 2, 3]).unwrap_err();
    assert_eq!(error.expected(), Some("a multiple of 2 bytes"));
    writer.append(&[1, 2, 3, 4]).unwrap();
    let error = writer.append(&[1, 2]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!((error.expected(), error.found()), (Some("4 bytes"), Some("2 bytes")));
    assert_eq!(error.record(), Some(1));
    assert_eq!(writer.append_elements(&[0u8; 4]).unwrap_err().found(), Some("uint8"));
    writer.append_elements(&[5i16, 6]).unwrap();
    writer.finish().unwrap();
    let expected = [0, 0, 11, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4, 0, 5, 0, 6];
    assert_eq!(std::fs::read(&path).unwrap(), expected);
}

#[test]
fn a_file_without_records_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    for (name, item_shape, shape) in
        [("a", None, vec![0, 0]), ("b.gz", None, vec![0, 0]), ("c.gz", Some(vec![3, 4]), vec![0, 3, 4])]
    {
        let path = folder.path().join(name);
        let options = with(idx::WriteOptions { item_shape, ..own() });
        Writer::create(&path, &options).unwrap().finish().unwrap();
        let data = std::fs::read(&path).unwrap();
        assert_eq!(open(&data, &OpenOptions::default()).header().shape(), shape);
        let walked = walk(&data, &OpenOptions::default());
        assert_eq!((walked.records.len(), walked.damage), (0, vec![]));
    }
}

#[test]
fn gzip_goes_by_the_name_unless_told() {
    let folder = tempfile::tempdir().unwrap();
    for (name, gzip, expected) in [
        ("a.gz", None, true),
        ("b.GZ", None, true),
        ("c", Some(true), true),
        ("d.gz", Some(false), false),
        ("e", None, false),
    ] {
        let path = folder.path().join(name);
        let mut writer = FORMAT.create(&path, &with(idx::WriteOptions { gzip, ..own() })).unwrap();
        writer.append(b"abc", &Tags::none()).unwrap();
        writer.finish().unwrap();
        assert_eq!(is_gzip(&std::fs::read(&path).unwrap()), expected, "{name}");
    }
}

#[test]
fn a_large_gzip_file_is_one_member_with_the_right_checksum() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gz");
    let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
    let mut state = 1u32;
    let records: Vec<Vec<u8>> = (0..300)
        .map(|number| {
            let noise = |at: u32| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if number % 2 == 0 { state.to_be_bytes()[0] } else { at.to_be_bytes()[2] }
            };
            (0..5000).map(noise).collect()
        })
        .collect();
    for record in &records {
        writer.append(record).unwrap();
    }
    let written = writer.finish().unwrap();
    let data = std::fs::read(&path).unwrap();
    assert_eq!(written.bytes, data.len() as u64);
    assert!(data.len() < 900_000, "{}", data.len());
    let mut decoder = flate2::bufread::GzDecoder::new(&data[..]);
    let mut content = Vec::new();
    std::io::Read::read_to_end(&mut decoder, &mut content).unwrap();
    assert!(decoder.into_inner().is_empty());
    assert_eq!(content[..12], [0, 0, 8, 2, 0, 0, 1, 44, 0, 0, 19, 136]);
    assert!(content[12..] == records.concat());
    assert!(walk(&data, &OpenOptions::default()).records.iter().map(|record| &record.3).eq(&records));
}

#[test]
fn tags_and_foreign_settings_are_not_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let foreign = WriteOptions::default().with(crate::format::mxnet::WriteOptions::default());
    let refused = Writer::create(&path, &foreign);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    let mut writer = FORMAT.create(&path, &WriteOptions::default()).unwrap();
    writer.append(b"a", &Tags::none().with_label(Label::Scalar(1.0))).unwrap();
    assert!(writer.finish().unwrap().notices[0].message.starts_with("1 label not stored"));
}

#[test]
fn a_file_like_another_has_its_type_and_record_shape() {
    let shape = Content::Shape { dtype: ElementType::F32, shape: vec![9, 2, 3] };
    let options = FORMAT.options_like(b"", &[Content::Filler, shape], &OpenOptions::default());
    let options: idx::WriteOptions = options.own();
    assert_eq!((options.dtype, options.item_shape), (Some(ElementType::F32), Some(vec![2, 3])));
}

#[test]
fn no_more_empty_records_are_written_than_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
    for _ in 0..layout::MAX_EMPTY_RECORDS {
        writer.append(b"").unwrap();
    }
    assert_eq!(writer.append(b"").unwrap_err().kind(), ErrorKind::Limit);
    writer.finish().unwrap();
    assert_eq!(Reader::open(&path, &OpenOptions::default()).unwrap().count().unwrap(), 1 << 17);
}
