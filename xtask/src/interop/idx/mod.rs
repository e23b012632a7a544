//! IDX, exchanged with idx2numpy (which reads and writes) and torchvision (which reads).

mod make;

use super::manifest::{Digest, sha256};
use super::random::Random;
use super::reading::check_records;
use super::report::Report;
use super::{Exchange, compare_files};
use anyrec::ElementType;
use anyrec::format::idx::{self, Array, Reader, Writer};
use anyrec::format::{Content, OpenOptions, RecordReader, WriteOptions};
use anyrec::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

pub struct Idx;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub file: String,
    pub gz: bool,
    pub dtype: String,
    pub shape: Vec<u64>,
    pub data_be_sha256: String,
    pub records: Option<Vec<Digest>>,
}

impl Entry {
    /// What our library reads from a file: numbers in native byte order, converted back to that of
    /// the file.
    pub fn of(path: &Path, file: &str) -> Result<Self> {
        let reader = Reader::open(path, &OpenOptions::default())?;
        let array = reader.array()?;
        let data = big_endian(&array)?;
        let shape: Vec<u64> = array.shape().iter().map(|&dimension| dimension as u64).collect();
        Ok(Entry {
            file: file.to_owned(),
            gz: reader.is_gzip(),
            dtype: array.dtype().name().to_owned(),
            data_be_sha256: sha256(&data),
            records: slices(&data, &shape),
            shape,
        })
    }

    /// We treat an array without dimensions as one record.
    fn as_one_record(&self) -> Vec<Digest> {
        let size = ElementType::from_name(&self.dtype).map_or(0, ElementType::size);
        vec![Digest::from_parts(size, &self.data_be_sha256)]
    }
}

/// The slices along the first dimension; an array without dimensions has none.
fn slices(data: &[u8], shape: &[u64]) -> Option<Vec<Digest>> {
    let &count = shape.first()?;
    let size = u64::try_from(data.len()).unwrap_or(0).checked_div(count).unwrap_or(0);
    let begins = (0..count).map(|number| usize::try_from(number * size).unwrap_or(usize::MAX));
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    Some(begins.map(|begin| Digest::of(&data[begin..begin + size])).collect())
}

/// Elements of an array as the file stores them.
fn big_endian(array: &Array) -> Result<Vec<u8>> {
    Ok(match array {
        Array::U8(array) => array.iter().copied().collect(),
        Array::I8(array) => array.iter().flat_map(|element| element.to_be_bytes()).collect(),
        Array::I16(array) => array.iter().flat_map(|element| element.to_be_bytes()).collect(),
        Array::I32(array) => array.iter().flat_map(|element| element.to_be_bytes()).collect(),
        Array::F32(array) => array.iter().flat_map(|element| element.to_be_bytes()).collect(),
        Array::F64(array) => array.iter().flat_map(|element| element.to_be_bytes()).collect(),
        _ => return Err(Error::unsupported("an element type nobody here knows")),
    })
}

impl Exchange for Idx {
    const FORMAT: &'static str = "idx";
    type Entry = Entry;

    fn file(entry: &Entry) -> &str {
        &entry.file
    }

    fn check(folder: &Path, entry: &Entry, report: &mut Report) -> Result<()> {
        let path = folder.join(&entry.file);
        let records = entry.records.clone().unwrap_or_else(|| entry.as_one_record());
        let (scanned, reader) = check_records(&path, "idx", &records, None, report)?;
        let shape: Vec<_> = scanned.contents.iter().filter_map(shape_in).collect();
        let expected = (entry.dtype.as_str(), entry.shape.clone());
        report.compare("scan: type and shape", &vec![expected.clone()], &shape);
        let info = reader.info()?;
        let found = (info.dtype.map_or("", ElementType::name), info.shape.unwrap_or_default());
        report.compare("reader: type and shape", &expected, &found);
        let found = Entry::of(&path, &entry.file)?;
        report.compare("array: gzip", &entry.gz, &found.gz);
        report.compare("array: type", &entry.dtype, &found.dtype);
        report.compare("array: shape", &entry.shape, &found.shape);
        report.compare("array: elements", &entry.data_be_sha256, &found.data_be_sha256);
        report.compare("array: has records", &entry.records.is_some(), &found.records.is_some());
        let (expected, found) = (entry.records.as_deref(), found.records.as_deref());
        report.compare_lists("array: records", expected.unwrap_or_default(), found.unwrap_or_default());
        Ok(())
    }

    fn rewrite(folder: &Path, entry: &Entry, scratch: &Path, report: &mut Report) -> Result<bool> {
        if entry.gz {
            return Ok(false);
        }
        let path = folder.join(&entry.file);
        let reader = Reader::open(&path, &OpenOptions::default())?;
        let rewritten = scratch.join(&entry.file);
        let own = idx::WriteOptions::default()
            .with_dtype(reader.header().dtype())
            .with_item_shape(reader.header().item_shape());
        let mut writer = Writer::create(&rewritten, &WriteOptions::default().with(own))?;
        for number in 0..reader.count()? {
            writer.append(&reader.read(number)?)?;
        }
        writer.finish()?;
        compare_files(&path, &rewritten, report)?;

        let mut options = WriteOptions::default();
        options.overwrite = true;
        reader.array()?.write(&rewritten, &options)?;
        compare_files(&path, &rewritten, report)?;
        Ok(true)
    }

    fn write(folder: &Path, ordinal: u64, random: &mut Random) -> Result<Entry> {
        make::file(folder, ordinal, random)
    }
}

fn shape_in(content: &Content) -> Option<(&'static str, Vec<u64>)> {
    match content {
        Content::Shape { dtype, shape } => Some((dtype.name(), shape.clone())),
        _ => None,
    }
}
