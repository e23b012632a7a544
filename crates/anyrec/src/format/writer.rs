//! Writing records one after the other.

use super::Notice;
use crate::base::Tags;
use crate::base::{Error, Result};
use crate::io::FileSet;

/// Writes records to a new file. The file gets its name in [`finish`](RecordWriter::finish) and
/// not before: a writer that is dropped, or whose process dies, leaves the old file or none.
pub trait RecordWriter: Send {
    /// Adds a record, says its number. Tags that the format cannot store are counted and told in
    /// [`Written::notices`].
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) for a record the format cannot hold, or what the system
    /// says.
    fn append(&mut self, record: &[u8], tags: &Tags) -> Result<u64>;

    /// Whether a record of that size would only be put into memory: appending it then takes no time
    /// worth mentioning.
    fn has_room(&self, _size: usize) -> bool {
        false
    }

    /// Sets the trailer, after the last record.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the format has none.
    fn set_trailer(&mut self, _trailer: &[u8]) -> Result<()> {
        Err(Error::unsupported("the format has no trailer"))
    }

    /// Completes the file, or files, without giving them their names: [`FileSet::publish`] does,
    /// for the files of several writers together.
    ///
    /// # Errors
    /// What the system says, or what is still missing; then no file appears.
    fn complete(self: Box<Self>) -> Result<(Written, FileSet)>;

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// What the system says, or what is still missing; then the file does not appear.
    fn finish(self: Box<Self>) -> Result<Written> {
        let (written, files) = self.complete()?;
        files.publish()?;
        Ok(written)
    }
}

/// What a writer wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Records.
    pub records: u64,
    /// Length of the file.
    pub bytes: u64,
    /// What could not be stored, or is worth knowing.
    pub notices: Vec<Notice>,
}

impl Written {
    /// That many records in that many bytes, with that to say.
    pub fn new(records: u64, bytes: u64, notices: Vec<Notice>) -> Self {
        Written { records, bytes, notices }
    }
}

/// Counts tags that a format has no place for, and says so at the end.
#[derive(Debug, Default)]
pub(crate) struct DroppedTags {
    keys: u64,
    labels: u64,
}

impl DroppedTags {
    /// Counts what `tags` holds and the format does not store.
    pub(crate) fn count(&mut self, tags: &Tags, stores_keys: bool, stores_labels: bool) {
        self.keys += u64::from(tags.key.is_some() && !stores_keys);
        self.labels += u64::from(tags.label.is_some() && !stores_labels);
    }

    /// A notice for each kind that was dropped.
    pub(crate) fn notices(&self, format: &str) -> Vec<Notice> {
        [("key", self.keys), ("label", self.labels)]
            .into_iter()
            .filter(|(_, dropped)| *dropped > 0)
            .map(|(what, dropped)| {
                let plural = if dropped == 1 { "" } else { "s" };
                Notice::new(format!("{dropped} {what}{plural} not stored: {format} files have no {what}s"))
            })
            .collect()
    }
}
