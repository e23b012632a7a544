//! Labels in a file of their own: one number per record.

use super::options as own;
use super::{Reader, Writer, decode_number, encode_number};
use crate::base::{ElementType, Error, Hint, Label, Result};
use crate::format::{OpenOptions, RecordReader, WriteOptions, Written};
use crate::io::FileSet;
use std::path::{Path, PathBuf};

/// Writes labels as a file of one number per record.
pub(crate) struct LabelWriter {
    path: PathBuf,
    dtype: ElementType,
    writer: Writer,
}

impl LabelWriter {
    /// Starts a label file of that element type.
    pub(crate) fn create(path: &Path, dtype: ElementType, options: &WriteOptions) -> Result<LabelWriter> {
        let own = own::WriteOptions::default().with_dtype(dtype).with_item_shape([]);
        let options = WriteOptions::default()
            .with_overwrite(options.overwrite)
            .with_durability(options.durability)
            .with(own);
        Ok(LabelWriter { path: path.to_owned(), dtype, writer: Writer::create(path, &options)? })
    }

    pub(crate) fn append(&mut self, label: Option<&Label>) -> Result<()> {
        let number = match label {
            Some(Label::Scalar(number)) => *number,
            Some(Label::Array(_)) => {
                return Err(Error::unsupported("a label of several numbers does not fit a label file"));
            }
            None => return Err(Error::invalid("the record has no label to write to the label file")),
        };
        let bytes = encode_number(number, self.dtype).ok_or_else(|| {
            Error::invalid(format!("label {number} does not fit {}", self.dtype)).with_hint(Hint::WiderLabels)
        })?;
        self.writer.append(&bytes).map(drop)
    }

    pub(crate) fn complete(self) -> Result<(PathBuf, Written, FileSet)> {
        let (written, files) = self.writer.complete()?;
        Ok((self.path, written, files))
    }
}

/// The labels of a label file, by record number.
pub(crate) struct LabelReader {
    reader: Reader,
    dtype: ElementType,
}

impl LabelReader {
    /// Opens a label file.
    pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<LabelReader> {
        let reader = Reader::open(path, options)?;
        let info = reader.info()?;
        match (info.dtype, info.shape.as_deref()) {
            (Some(dtype), Some([_])) => Ok(LabelReader { reader, dtype }),
            (_, shape) => Err(Error::invalid("a label file has one dimension")
                .expected_found("a shape of one dimension", format!("{:?}", shape.unwrap_or_default()))
                .in_file(reader.source().name())),
        }
    }

    pub(crate) fn get(&self, index: u64) -> Result<Label> {
        let name = self.reader.source().name();
        let bytes = self.reader.read(index).map_err(|error| error.in_file(name))?;
        decode_number(&bytes, self.dtype)
            .map(Label::Scalar)
            .ok_or_else(|| Error::invalid("a label file has one number per record").in_file(name))
    }

    pub(crate) fn check_all_used(&self, records: u64) -> Result<()> {
        let labels = RecordReader::count(&self.reader)?;
        if labels != records {
            return Err(Error::invalid("there must be one label per record")
                .expected_found(format!("{records} labels"), labels)
                .in_file(self.reader.source().name()));
        }
        Ok(())
    }
}
