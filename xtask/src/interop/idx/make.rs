//! Generated files for idx2numpy and torchvision to read.

use super::{Entry, slices};
use crate::interop::manifest::sha256;
use crate::interop::random::Random;
use anyrec::ElementType;
use anyrec::format::WriteOptions;
use anyrec::format::idx::{self, Element, Writer, write_array};
use anyrec::{Error, Result};
use ndarray::{ArrayD, ShapeBuilder};
use std::path::Path;

pub fn file(folder: &Path, ordinal: u64, random: &mut Random) -> Result<Entry> {
    let shape = shape(random);
    match random.choose(&ElementType::ALL) {
        ElementType::U8 => file_of::<u8>(folder, ordinal, &shape, random),
        ElementType::I8 => file_of::<i8>(folder, ordinal, &shape, random),
        ElementType::I16 => file_of::<i16>(folder, ordinal, &shape, random),
        ElementType::I32 => file_of::<i32>(folder, ordinal, &shape, random),
        ElementType::F32 => file_of::<f32>(folder, ordinal, &shape, random),
        ElementType::F64 => file_of::<f64>(folder, ordinal, &shape, random),
        other => Err(Error::unsupported(format!("no file is made of {other}"))),
    }
}

/// An element with a name, made of random bits.
trait Number: Element {
    /// The type in file names.
    const NAME: &'static str;

    fn of_bits(bits: u64) -> Self;

    /// Big-endian, as in files.
    fn stored(self) -> impl IntoIterator<Item = u8>;
}

macro_rules! numbers {
    ($($element:ident $name:literal $of_bits:expr;)*) => {$(
        impl Number for $element {
            const NAME: &'static str = $name;

            fn of_bits(bits: u64) -> Self {
                $of_bits(bits)
            }

            fn stored(self) -> impl IntoIterator<Item = u8> {
                self.to_be_bytes()
            }
        }
    )*};
}

// Any bits make a number. NaNs are made quiet, because not every implementation keeps signalling
// ones.
numbers! {
    u8 "ubyte" |bits| bits as u8;
    i8 "byte" |bits| bits as i8;
    i16 "short" |bits| bits as i16;
    i32 "int" |bits| bits as i32;
    f32 "float" |bits| match f32::from_bits(bits as u32) {
        number if number.is_nan() => f32::from_bits(bits as u32 | 1 << 22),
        number => number,
    };
    f64 "double" |bits| match f64::from_bits(bits) {
        number if number.is_nan() => f64::from_bits(bits | 1 << 51),
        number => number,
    };
}

/// Of any rank, including zero and more than is ever used, and sometimes without elements.
fn shape(random: &mut Random) -> Vec<usize> {
    let rank = [0, 1, 2, 3, 4, 5, 12][random.weighted(&[4, 24, 20, 28, 12, 9, 3])];
    let mut left = random.choose(&[30, 30, 1000, 9000]);
    let mut shape = Vec::new();
    for _ in 0..rank {
        let longest = random.choose(&[2, 9, 300, 9000]).min(left);
        let dimension = random.between(1..=longest);
        left = (left / dimension).max(1);
        shape.push(dimension);
    }
    random.shuffle(&mut shape);
    if random.chance(6) && rank > 0 {
        let at = random.between(0..=rank - 1);
        shape[at] = 0;
    }
    shape
}

/// Writes an array in one of the available ways. The entry is derived from the numbers that were
/// written, not from the file.
fn file_of<T: Number>(folder: &Path, ordinal: u64, shape: &[usize], random: &mut Random) -> Result<Entry> {
    let is_gzip = random.chance(30);
    // A gzipped file may lack the suffix.
    let suffix = if is_gzip && random.chance(70) { ".gz" } else { "" };
    let file = format!("{ordinal:05}-idx{}-{}{suffix}", shape.len(), T::NAME);
    let path = folder.join(&file);
    let elements: Vec<T> = (0..shape.iter().product()).map(|_| T::of_bits(random.bits())).collect();
    let wrong_shape = |error| Error::invalid(format!("{error}"));
    let array = ArrayD::from_shape_vec(shape, elements.clone()).map_err(wrong_shape)?;
    let shape_in_file: Vec<u64> = shape.iter().map(|&dimension| dimension as u64).collect();
    let data: Vec<u8> = elements.iter().flat_map(|element| element.stored()).collect();
    let records = slices(&data, &shape_in_file);

    let mut own = idx::WriteOptions::default();
    own.gzip = random.choose(&[Some(is_gzip), None]).filter(|_| suffix == ".gz").or(Some(is_gzip));
    let way = random.weighted(&[1, 1, 1, 1]);
    match (shape_in_file.split_first(), way) {
        // Any memory order is written row by row.
        (None, _) | (_, 0) => {
            let mut columns = ArrayD::from_elem(shape.f(), T::of_bits(0));
            columns.assign(&array);
            write_array(&path, &columns, &WriteOptions::default().with(own))?;
        }
        (_, 1) => {
            write_array(&path, &array, &WriteOptions::default().with(own))?;
        }
        (Some((&count, item_shape)), way) => {
            let own = own.with_dtype(T::TYPE).with_item_shape(item_shape);
            let mut writer = Writer::create(&path, &WriteOptions::default().with(own))?;
            let count = usize::try_from(count).unwrap_or(0);
            for number in 0..count {
                if way == 2 {
                    let size = data.len() / count;
                    writer.append(&data[number * size..(number + 1) * size])?;
                } else {
                    let size = elements.len() / count;
                    writer.append_elements(&elements[number * size..(number + 1) * size])?;
                }
            }
            writer.finish()?;
        }
    }
    Ok(Entry {
        file,
        gz: is_gzip,
        dtype: T::TYPE.name().to_owned(),
        shape: shape_in_file,
        data_be_sha256: sha256(&data),
        records,
    })
}
