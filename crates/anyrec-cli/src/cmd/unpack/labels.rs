//! Labels stored in a file of their own: IDX, one label per record.

use super::array::Item;
use anyrec::Error;
use anyrec::Label;
use anyrec::format::idx::{Reader, decode_number, partner};
use anyrec::format::{OpenOptions, RecordReader};
use std::path::Path;

/// A label file.
pub struct Labels {
    reader: Reader,
}

impl Labels {
    /// Opens the file given by the user.
    pub fn open(path: &Path, options: &OpenOptions) -> anyrec::Result<Self> {
        let reader = Reader::open(path, options)?;
        let labels = Labels { reader };
        match labels.are_labels() {
            true => Ok(labels),
            false => Err(Error::invalid("this is not a label file")
                .expected_found(
                    "one number or one row of numbers per record",
                    format!("records of shape {:?}", labels.reader.header().item_shape()),
                )
                .in_file(labels.reader.source().name())),
        }
    }

    /// Opens the label file beside an image file, if there is one.
    pub fn beside(path: &Path, item: &Item, options: &OpenOptions) -> anyrec::Result<Option<Self>> {
        let Some(path) = partner(path).filter(|_| item.is_picture()) else { return Ok(None) };
        let reader = Reader::open(&path, options)?;
        Ok(Some(Labels { reader }).filter(Labels::are_labels))
    }

    fn are_labels(&self) -> bool {
        self.reader.header().item_shape().len() <= 1 && self.reader.header().record_size() > 0
    }

    /// The name of the file in messages.
    pub fn name(&self) -> &str {
        self.reader.source().name()
    }

    /// Refuses a label file whose length differs from the number of records.
    pub fn check_count(&self, records: u64) -> anyrec::Result<()> {
        let labels = self.reader.count()?;
        if labels != records {
            return Err(Error::new(anyrec::ErrorKind::Stale, "there must be one label per record")
                .expected_found(format!("{records} labels"), labels)
                .in_file(self.name()));
        }
        Ok(())
    }

    /// The label of a record: its first number.
    pub fn get(&self, number: u64) -> anyrec::Result<Label> {
        let bytes = self.reader.read(number)?;
        let dtype = self.reader.header().dtype();
        usize::try_from(dtype.size())
            .ok()
            .and_then(|size| decode_number(bytes.get(..size)?, dtype))
            .map(Label::Scalar)
            .ok_or_else(|| Error::invalid("a label has no number").in_file(self.name()).in_record(number))
    }
}
