//! Numbered records in any files: the interface that the engine reads by number.

use super::by_number::{Fetch, GROUP, OnBad};
use crate::base::{Batch, Error, Limits, Position, Result, Tags};
use crate::format::RecordReader;
use crate::threads::interrupt::go_on;
use bytes::Bytes;
use std::fmt;

/// Numbered records that lie in files. A set can be shared between threads.
///
/// A set only locates records. The engine reads them: it finds the records of a batch in any number
/// of files and reads them together.
pub trait RecordSet: Send + Sync + fmt::Debug {
    /// Number of records.
    ///
    /// # Errors
    /// As [`Dataset::len`](crate::Dataset::len).
    fn count(&self) -> Result<u64>;

    /// The file that contains a record, and the record's number there.
    ///
    /// # Errors
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange), or as [`count`](RecordSet::count).
    fn find(&self, number: u64) -> Result<Place<'_>>;

    /// Checks that the counted records exist, as far as possible without reading them
    /// ([`Dataset::check_range`](crate::Dataset::check_range)). It is called before a long list of
    /// numbers is created.
    ///
    /// # Errors
    /// As [`Dataset::check_range`](crate::Dataset::check_range).
    fn check_all(&self) -> Result<()> {
        Ok(())
    }

    /// The maximum bytes of records in a batch ([`Limits::memory`](crate::Limits::memory)).
    fn memory_limit(&self) -> u64 {
        u64::MAX
    }
}

impl dyn RecordSet + '_ {
    /// The records with these numbers, in this order, repeats included, read by up to this many
    /// threads.
    ///
    /// # Errors
    /// As [`Dataset::read_batch`](crate::Dataset::read_batch).
    pub fn read_batch(&self, numbers: &[u64], threads: usize) -> Result<Batch> {
        let mut batch = Batch::new();
        append(self, numbers, &mut batch, threads)?;
        Ok(batch)
    }

    /// Key, label and ids of a record that was read.
    ///
    /// # Errors
    /// As [`Dataset::tags`](crate::Dataset::tags).
    pub fn tags_of(&self, number: u64, record: &[u8]) -> Result<Tags> {
        let place = self.find(number)?;
        place.tags(place.reader.locate(place.index)?.position, record)
    }

    /// The payload of a record that was read.
    ///
    /// # Errors
    /// As [`Dataset::payload_of`](crate::Dataset::payload_of).
    pub fn payload_of<'a>(&self, number: u64, record: &'a [u8]) -> Result<&'a [u8]> {
        let place = self.find(number)?;
        place.reader.payload(record).map_err(|error| place.blame(error))
    }

    /// Turns records that were read into their payloads.
    ///
    /// # Errors
    /// As [`Dataset::payload_of`](crate::Dataset::payload_of), for the first record that cannot be split.
    pub fn strip(&self, numbers: &[u64], batch: &mut Batch) -> Result<()> {
        let part = |at: usize, record: &[u8]| {
            let number = numbers.get(at).copied().unwrap_or(u64::MAX);
            Ok(record.len() - self.payload_of(number, record)?.len()..record.len())
        };
        batch.shorten(0, part).inspect_err(|_| batch.clear())
    }
}

/// A record: the reader of its file, and its number there.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The reader of the record's file.
    pub reader: &'a dyn RecordReader,
    /// The record's number in that file.
    pub index: u64,
}

impl<'a> Place<'a> {
    /// The record of this reader with this number.
    pub fn new(reader: &'a dyn RecordReader, index: u64) -> Self {
        Place { reader, index }
    }

    /// An error about this record, with its file and number.
    pub(crate) fn blame(&self, error: Error) -> Error {
        error.in_record(self.index).in_file(self.reader.source().name())
    }

    /// The record's tags, given its bytes and the position they were read from. The label may come
    /// from the file beside it.
    pub(crate) fn tags(&self, position: Position, record: &[u8]) -> Result<Tags> {
        let mut tags = self.reader.tags(self.index, position, record)?;
        if tags.label.is_none() {
            tags.label = self.reader.label_beside(self.index)?;
        }
        Ok(tags)
    }
}

impl fmt::Debug for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} of {}", self.index, self.reader.source().name())
    }
}

/// Finds records, and locates them in their files.
///
/// # Errors
/// A number that is not in the set; as [`Fetch::new`].
pub(crate) fn locate<'a>(
    set: &'a dyn RecordSet,
    numbers: &[u64],
    threads: usize,
    on_bad: OnBad,
) -> Result<Fetch<'a>> {
    Fetch::new(numbers.iter().map(|&number| set.find(number)).collect::<Result<_>>()?, threads, on_bad)
}

/// Appends records to a batch, several at a time. After an error the batch is empty.
///
/// # Errors
/// As [`RecordReader::read`], for the first record that fails.
pub(crate) fn append(set: &dyn RecordSet, numbers: &[u64], batch: &mut Batch, threads: usize) -> Result<()> {
    let mut append = || {
        for group in numbers.chunks(GROUP) {
            go_on()?;
            let fetch = locate(set, group, threads, OnBad::Fail)?;
            check_size(set, &fetch, batch)?;
            fetch.append_to(batch, threads)?;
        }
        Ok(())
    };
    append().inspect_err(|_| batch.clear())
}

/// Checks that a batch may grow by the located records.
///
/// # Errors
/// [`Limit`](crate::ErrorKind::Limit).
pub(crate) fn check_size(set: &dyn RecordSet, fetch: &Fetch<'_>, batch: &Batch) -> Result<()> {
    let size = fetch.offsets().last().copied().unwrap_or(0);
    Limits::check_batch(size.saturating_add(batch.buffer().len() as u64), set.memory_limit())
}

/// Puts records into a buffer. Returns the offset of each, followed by the end of the last record.
///
/// # Errors
/// As [`append`]; [`Invalid`](crate::ErrorKind::Invalid) if the buffer is too small, before anything is
/// written to it.
pub(crate) fn read_into(
    set: &dyn RecordSet,
    numbers: &[u64],
    buffer: &mut [u8],
    threads: usize,
) -> Result<Vec<u64>> {
    let mut fetch = locate(set, numbers, threads, OnBad::Fail)?;
    let offsets = fetch.offsets().to_vec();
    let needed = offsets.last().copied().unwrap_or(0);
    let room = buffer.len();
    let fitting = usize::try_from(needed).ok().and_then(|needed| buffer.get_mut(..needed));
    let fitting = fitting.ok_or_else(|| {
        Error::invalid("the buffer is too small for the records")
            .expected_found(format!("{needed} bytes"), format!("{room} bytes"))
    })?;
    fetch.fill(fitting, threads)?;
    Ok(offsets)
}

/// Records as slices of their files, if those can be lent.
///
/// # Errors
/// As [`append`].
pub(crate) fn lend(set: &dyn RecordSet, numbers: &[u64]) -> Result<Vec<Bytes>> {
    let mut lent = Vec::new();
    for group in numbers.chunks(GROUP) {
        go_on()?;
        lent.extend(locate(set, group, 1, OnBad::Fail)?.lend()?);
    }
    Ok(lent)
}
