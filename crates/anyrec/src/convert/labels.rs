//! Labels in a file of their own: IDX, one number a record.

use super::ConvertOptions;
use crate::error::{Error, Result};
use crate::format::{
    self, ElementType, Format, Label, RecordReader, RecordWriter, Tags, WriteOptions, Written,
};
use crate::io::{FileSet, ReadAt};
use std::path::PathBuf;
use std::sync::Arc;

/// Writes labels as an IDX file of one number a record.
pub(super) struct LabelWriter {
    path: PathBuf,
    dtype: ElementType,
    writer: Box<dyn RecordWriter>,
}

impl LabelWriter {
    pub(super) fn create(options: &ConvertOptions) -> Result<Option<LabelWriter>> {
        let Some(path) = &options.label_output else { return Ok(None) };
        let dtype = options.label_dtype.unwrap_or(ElementType::U8);
        let write = WriteOptions {
            overwrite: options.write.overwrite,
            durability: options.write.durability,
            dtype: Some(dtype),
            item_shape: Some(Vec::new()),
            ..WriteOptions::default()
        };
        let writer = format::idx::FORMAT.create(path, &write)?;
        Ok(Some(LabelWriter { path: path.clone(), dtype, writer }))
    }

    pub(super) fn append(&mut self, label: Option<&Label>) -> Result<()> {
        let number = match label {
            Some(Label::Scalar(number)) => *number,
            Some(Label::Array(_)) => {
                return Err(Error::unsupported("a label of several numbers does not fit a label file"));
            }
            None => return Err(Error::invalid("the record has no label to write to the label file")),
        };
        let bytes = format::idx::encode_number(number, self.dtype).ok_or_else(|| {
            Error::invalid(format!("label {number} does not fit {}", self.dtype))
                .with_hint("choose a wider type for the label file (`--label-dtype`)")
        })?;
        self.writer.append(&bytes, &Tags::none()).map(drop)
    }

    pub(super) fn complete(self) -> Result<(PathBuf, Written, FileSet)> {
        let (written, files) = self.writer.complete()?;
        Ok((self.path, written, files))
    }
}

/// The labels of a label file, by record number.
pub(crate) struct LabelFile {
    pub(crate) reader: Box<dyn RecordReader>,
    pub(crate) dtype: ElementType,
    pub(crate) source: Arc<dyn ReadAt>,
}

impl LabelFile {
    pub(super) fn get(&self, index: u64) -> Result<Label> {
        let bytes = self.reader.read(index).map_err(|error| error.in_file(self.source.name()))?;
        format::idx::decode_number(&bytes, self.dtype)
            .map(Label::Scalar)
            .ok_or_else(|| Error::invalid("a label file has one number a record").in_file(self.source.name()))
    }

    pub(super) fn check_all_used(&self, records: u64) -> Result<()> {
        let labels = self.reader.count()?;
        if labels != records {
            return Err(Error::invalid("there must be one label a record")
                .expected_found(format!("{records} labels"), labels)
                .in_file(self.source.name()));
        }
        Ok(())
    }
}
