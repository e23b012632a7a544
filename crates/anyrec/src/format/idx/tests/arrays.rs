//! Complete files as arrays.

use super::*;
use ndarray::{ArrayD, IxDyn, array};

fn bits<T: Element>(file: &[u8]) -> ArrayD<T> {
    open(file, &OpenOptions::default()).array_of().unwrap()
}

#[test]
fn elements_come_in_this_machines_byte_order() {
    let file = |code: u8, data: &[u8]| [&[0, 0, code, 1, 0, 0, 0, 2], data].concat();
    assert_eq!(bits::<i8>(&file(0x09, &[0x80, 0x7f])), array![-128i8, 127].into_dyn());
    let shorts = file(0x0b, &[0x80, 0x01, 0x12, 0x34]);
    assert_eq!(bits::<i16>(&shorts), array![-32767i16, 0x1234].into_dyn());
    let ints = file(0x0c, &[0xff, 0xff, 0xff, 0xfe, 0x01, 0x02, 0x03, 0x04]);
    assert_eq!(bits::<i32>(&ints), array![-2, 0x0102_0304].into_dyn());
    let floats = file(0x0d, &[0x3f, 0xc0, 0, 0, 0xc0, 0x20, 0, 0]);
    assert_eq!(bits::<f32>(&floats), array![1.5f32, -2.5].into_dyn());
    let doubles = file(0x0e, &[0x3f, 0xf8, 0, 0, 0, 0, 0, 0, 0xc0, 4, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bits::<f64>(&doubles), array![1.5f64, -2.5].into_dyn());
}

#[test]
fn the_payload_of_a_nan_survives_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let (single, double) = (0x7fc1_2345u32, 0xfff8_dead_beef_0001u64);
    let path = folder.path().join("f32");
    write_array(&path, &array![f32::from_bits(single), -0.0], &WriteOptions::default()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap()[8..12], single.to_be_bytes());
    let read = read_array::<f32>(&path, &OpenOptions::default()).unwrap();
    assert_eq!([read[0].to_bits(), read[1].to_bits()], [single, 1 << 31]);
    let path = folder.path().join("f64.gz");
    write_array(&path, &array![f64::from_bits(double)], &WriteOptions::default()).unwrap();
    let read = read_array::<f64>(&path, &OpenOptions::default()).unwrap();
    assert_eq!(read[0].to_bits(), double);
}

#[test]
fn an_array_in_any_memory_order_is_written_row_major() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x-idx3-int");
    let rows = ndarray::Array3::from_shape_fn((30, 40, 70), |(i, j, k)| {
        i32::try_from(i * 10_000 + j * 100 + k).unwrap()
    });
    let turned = rows.view().permuted_axes([2, 0, 1]);
    write_array(&path, &turned, &WriteOptions::default()).unwrap();
    for access in [Access::Mapped, Access::Positional] {
        let options = OpenOptions::default().with_access(access);
        assert_eq!(read_array::<i32>(&path, &options).unwrap(), turned.into_dyn());
    }
}

#[test]
fn the_wrong_type_is_refused() {
    let error = open(&plain(), &OpenOptions::default()).array_of::<f32>().unwrap_err();
    assert_eq!(error.to_string(), "memory: the elements are uint8, not float32");
}

#[test]
fn every_rank_is_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    for rank in [0, 1, 31, 255] {
        let path = folder.path().join(format!("rank{rank}"));
        let array = ArrayD::from_elem(IxDyn(&vec![1; rank]), 7i16);
        let report = write_array(&path, &array, &WriteOptions::default()).unwrap();
        assert_eq!((report.records, report.bytes), (1, 4 + 4 * rank as u64 + 2));
        assert_eq!(read_array::<i16>(&path, &OpenOptions::default()).unwrap(), array);
    }
    let array = ArrayD::from_elem(IxDyn(&[1; 256]), 7i16);
    let refused = write_array(folder.path().join("rank256"), &array, &WriteOptions::default());
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn numbers_that_a_type_does_not_hold_are_not_encoded() {
    assert_eq!(encode_number(127.0, ElementType::I8), Some(vec![127]));
    assert_eq!(encode_number(0.1, ElementType::F64), Some(0.1f64.to_be_bytes().to_vec()));
    for (number, dtype) in [
        (128.0, ElementType::I8),
        (-1.0, ElementType::U8),
        (0.5, ElementType::I32),
        (f64::NAN, ElementType::I16),
        (0.1, ElementType::F32),
        (3e9, ElementType::I32),
    ] {
        assert_eq!(encode_number(number, dtype), None, "{number} as {dtype}");
    }
    assert!(encode_number(f64::NAN, ElementType::F32).is_some());
    assert_eq!(decode_number(&[1, 2], ElementType::U8), None);
    assert_eq!(decode_number(&[1, 2, 3], ElementType::I16), None);
}
