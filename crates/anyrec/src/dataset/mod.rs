//! One or more record files as one sequence of records.

mod paths;
mod record_file;
mod record_set;
mod table;

pub use paths::expand;
pub use record_file::{OpenReader, RecordFile};
pub use record_set::{Selection, Union};
pub use table::Table;

use crate::base::memory::reserve;
use crate::base::{Batch, Error, ErrorKind, Hint, Key, Position, Result, Tags};
use crate::engine::{self, Place, RecordSet, Records};
use crate::format::{
    self, Format, IndexState, Notice, OpenOptions, RecordReader, RecordWriter, WriteOptions,
};
use crate::io::Source;
use crate::threads::fork::Once;
use bytes::Bytes;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Opens a file, or all record files of a directory or glob pattern, for reading.
///
/// The format is detected from the content. See [`Dataset`].
///
/// # Errors
/// If a file cannot be opened or has no known format.
///
/// ```
/// # fn main() -> anyrec::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("three.ffr");
/// let mut writer = anyrec::create(&path)?;
/// for record in [&b"one"[..], b"two", b"three"] {
///     writer.append(record, &anyrec::Tags::none())?;
/// }
/// writer.finish()?;
///
/// let dataset = anyrec::open(&path)?;
/// assert_eq!(dataset.len()?, 3);
/// assert_eq!(&dataset.read(2)?[..], b"three");
/// assert_eq!(dataset.read_batch(&[2, 0, 2])?.len(), 3);
/// # Ok(())
/// # }
/// ```
pub fn open(path: impl AsRef<Path>) -> Result<Dataset> {
    Dataset::open(&[path], &OpenOptions::default())
}

/// Creates a file of the format that its name implies, with default options. It is published when
/// the writer is finished. [`Format::create`] takes options.
///
/// # Errors
/// A name that implies no format, an existing file, or the operating system's error.
pub fn create(path: impl AsRef<Path>) -> Result<Box<dyn RecordWriter>> {
    let path = path.as_ref();
    format::infer(path)?.create(path, &WriteOptions::default())
}

/// One or more record files of one format, as one numbered sequence in the given order.
pub struct Dataset {
    format: &'static dyn Format,
    shards: Vec<Shard>,
    options: OpenOptions,
    /// Threads for a batch. Asking the operating system for the number of cores takes as long as a small
    /// batch.
    threads: usize,
    /// The number of records before each file, followed by the total. Counting may need a scan.
    starts: Once<Vec<u64>>,
}

/// A file of a dataset.
struct Shard {
    /// The bytes as they are stored; the reader's may be decompressed.
    source: Arc<dyn Source>,
    reader: Arc<dyn RecordReader>,
    /// Why a table beside the file is not used.
    notice: Option<Notice>,
}

impl Dataset {
    /// Opens files, directories (every record file directly inside, by name) and glob patterns.
    ///
    /// # Errors
    /// If a file cannot be opened, has no known format, or has another format than the first; if a
    /// directory or pattern has no record file.
    pub fn open(paths: &[impl AsRef<Path>], options: &OpenOptions) -> Result<Dataset> {
        let mut files = Vec::new();
        for path in expand(paths)? {
            files.push(RecordFile::open(&path, options)?);
        }
        Self::of(files, options)
    }

    /// A dataset over a source of your own. Its format is detected from its content.
    ///
    /// # Errors
    /// If it cannot be read or has no known format.
    ///
    /// ```
    /// use anyrec::Dataset;
    /// use anyrec::format::OpenOptions;
    /// use anyrec::io::MemorySource;
    /// use std::sync::Arc;
    ///
    /// let bytes = [0, 0, 8, 1, 0, 0, 0, 2, 5, 7];
    /// let source = MemorySource::new("two numbers", bytes.to_vec());
    /// let dataset = Dataset::over(Arc::new(source), &OpenOptions::default())?;
    /// assert_eq!(dataset.read(1)?, [7u8][..]);
    /// # Ok::<(), anyrec::Error>(())
    /// ```
    pub fn over(source: Arc<dyn Source>, options: &OpenOptions) -> Result<Dataset> {
        let format = format::identify(&*source, options.format)?;
        Self::of(vec![RecordFile::over(source, format)], options)
    }

    /// A dataset of files that are already open; none of them may be a stream.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub(crate) fn of(files: Vec<RecordFile>, options: &OpenOptions) -> Result<Dataset> {
        let mut shards: Vec<Shard> = Vec::new();
        for file in files {
            let shard = Shard::open(&file, options)?;
            if let Some(first) = shards.first() {
                first.check_fits(&shard)?;
            }
            shards.push(shard);
        }
        if shards.len() > 1 {
            // A set that was replaced while it was opened would be half old, half new.
            shards.iter().try_for_each(|shard| shard.source.check_still_named())?;
        }
        let format = shards.first().map(|shard| shard.reader.format());
        let format = format.ok_or_else(|| Error::invalid("no file was named"))?;
        let threads = options.thread_count();
        Ok(Dataset { format, shards, options: options.clone(), threads, starts: Once::new() })
    }

    /// The files' format.
    pub fn format(&self) -> &'static dyn Format {
        self.format
    }

    /// How the files were opened.
    pub fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// The readers of the single files, in order.
    pub fn readers(&self) -> impl ExactSizeIterator<Item = &dyn RecordReader> {
        self.shards.iter().map(|shard| &*shard.reader)
    }

    /// Notices from opening the files, with each file's name.
    ///
    /// # Errors
    /// As [`RecordReader::info`].
    pub fn notices(&self) -> Result<Vec<(String, Notice)>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let name = shard.reader.source().name();
            let notices = shard.reader.info()?.notices.into_iter().chain(shard.notice.clone());
            all.extend(notices.map(|notice| (name.to_owned(), notice)));
        }
        Ok(all)
    }

    /// Number of records.
    ///
    /// # Errors
    /// If counting needs a scan that fails or finds damage.
    pub fn len(&self) -> Result<u64> {
        Ok(self.starts()?.last().copied().unwrap_or(0))
    }

    /// Whether there are no records.
    ///
    /// # Errors
    /// As [`len`](Dataset::len).
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Record `index`, in memory of its own.
    ///
    /// # Errors
    /// [`OutOfRange`](ErrorKind::OutOfRange), or an error about the record.
    pub fn read(&self, index: u64) -> Result<Bytes> {
        let Place { reader, index } = self.find(index)?;
        reader.read(index)
    }

    /// The records with these numbers, in this order, repeats included.
    ///
    /// # Errors
    /// As [`read`](Dataset::read), for the first record that fails.
    pub fn read_batch(&self, indices: &[u64]) -> Result<Batch> {
        let mut batch = Batch::new();
        self.read_batch_into(indices, &mut batch)?;
        Ok(batch)
    }

    /// Like [`read_batch`](Dataset::read_batch), into a batch whose memory is reused. After an
    /// error the batch is empty.
    ///
    /// # Errors
    /// As [`read_batch`](Dataset::read_batch).
    pub fn read_batch_into(&self, indices: &[u64], batch: &mut Batch) -> Result<()> {
        batch.clear();
        engine::append(self, indices, batch, self.threads)
    }

    /// Like [`read_batch`](Dataset::read_batch), into the caller's buffer. Returns the offset of
    /// each record in it, followed by the end of the last record.
    ///
    /// # Errors
    /// As [`read_batch`](Dataset::read_batch); [`Invalid`](ErrorKind::Invalid) if the buffer is too
    /// small, before anything is written to it.
    pub fn read_into(&self, indices: &[u64], buffer: &mut [u8]) -> Result<Vec<u64>> {
        engine::read_into(self, indices, buffer, self.threads)
    }

    /// The records with these numbers, in this order: lent, not copied, if all of them lie
    /// contiguously in mapped files. Accessing such a record after its file was truncated ends the
    /// process (SIGBUS), and changing the file in place changes the record.
    ///
    /// # Errors
    /// As [`read_batch`](Dataset::read_batch).
    pub fn lend(&self, indices: &[u64]) -> Result<Vec<Bytes>> {
        engine::lend(self, indices)
    }

    /// The numbers of a range of records, as the reading methods take them.
    ///
    /// # Errors
    /// As [`read`](Dataset::read), for the first record that does not exist: a header may declare
    /// more records than there are, and a list of that many numbers would take all memory.
    pub fn numbers(&self, range: Range<u64>) -> Result<Vec<u64>> {
        self.check_range(&range)?;
        let mut numbers = Vec::new();
        let size = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        reserve(&mut numbers, size)?;
        numbers.extend(range);
        Ok(numbers)
    }

    /// Checks that the files have the records of a range, as far as possible without reading them.
    ///
    /// # Errors
    /// As [`read`](Dataset::read), for the first record that does not exist.
    pub fn check_range(&self, range: &Range<u64>) -> Result<()> {
        let Some(last) = range.end.checked_sub(1).filter(|last| range.contains(last)) else { return Ok(()) };
        let starts = self.starts()?;
        let (first_file, last_file) = (self.shard_of(range.start)?.0, self.shard_of(last)?.0);
        for (shard, begin) in self.shards.iter().zip(starts).take(last_file + 1).skip(first_file) {
            let reader = &shard.reader;
            let end = last.min(begin + reader.count()?.saturating_sub(1));
            if reader.count()? > 0 && reader.locate(end - begin).is_err() {
                // Checks them one by one to find the first.
                for index in range.start.max(*begin)..=end {
                    reader.locate(index - begin)?;
                }
            }
        }
        Ok(())
    }

    /// The location of record `index` in its file.
    ///
    /// # Errors
    /// As [`read`](Dataset::read).
    pub fn position(&self, index: u64) -> Result<Position> {
        let Place { reader, index } = self.find(index)?;
        Ok(reader.locate(index)?.position)
    }

    /// The key of record `index`, if it has one. The record itself is not read.
    ///
    /// # Errors
    /// [`OutOfRange`](ErrorKind::OutOfRange); [`Unsupported`](ErrorKind::Unsupported) if the file's index
    /// file, which would hold the keys, is missing; if it cannot be read.
    pub fn key(&self, index: u64) -> Result<Option<Key>> {
        let Place { reader, index } = self.find(index)?;
        check_has_keys(reader)?;
        reader.key(reader.locate(index)?.position)
    }

    /// Key, label and ids of record `index`, if it has them. The label may come from the file
    /// beside it, if the format keeps labels there.
    ///
    /// # Errors
    /// As [`read`](Dataset::read) and [`RecordReader::label_beside`].
    pub fn tags(&self, index: u64) -> Result<Tags> {
        self.tags_of(index, &self.read(index)?)
    }

    /// Like [`tags`](Dataset::tags), for a record that was already read.
    ///
    /// # Errors
    /// As [`tags`](Dataset::tags).
    pub fn tags_of(&self, index: u64, record: &[u8]) -> Result<Tags> {
        (self as &dyn RecordSet).tags_of(index, record)
    }

    /// The payload of a record that was already read: what follows the header that holds its label, if
    /// the format has such headers; otherwise the whole record.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if not all records of its file can be split. Nothing is guessed: the
    /// error says which record cannot be.
    pub fn payload_of<'a>(&self, index: u64, record: &'a [u8]) -> Result<&'a [u8]> {
        (self as &dyn RecordSet).payload_of(index, record)
    }

    /// The tags that the record's own file stores, for a record that was already read.
    pub(crate) fn stored_tags_of(&self, index: u64, record: &[u8]) -> Result<Tags> {
        let Place { reader, index } = self.find(index)?;
        reader.tags(index, reader.locate(index)?.position, record)
    }

    /// The number of the record with this key, if there is one. If a key occurs twice, the last
    /// record.
    ///
    /// # Errors
    /// As [`key`](Dataset::key); a missing index file is an error unless the key is found in another one.
    pub fn find_key(&self, key: &Key) -> Result<Option<u64>> {
        for (number, shard) in self.shards.iter().enumerate() {
            if let Some(local) = shard.reader.find_key(key)? {
                return Ok(self.starts()?.get(number).map(|start| start + local));
            }
        }
        self.readers().try_for_each(check_has_keys)?;
        Ok(None)
    }

    /// All records in order, by a sequential scan, which needs no index and no count.
    ///
    /// [`Records::fill`] takes several at a time. Damage is an error item, after which the
    /// iteration continues with the next intact record; with [`OpenOptions::skip_damage`] it is
    /// skipped.
    pub fn iter(&self) -> Records {
        let files = self.shards.iter().map(|shard| (shard.source.clone(), shard.reader.clone()));
        Records::new(files.collect(), &self.options)
    }

    fn starts(&self) -> Result<&[u64]> {
        if let Some(starts) = self.starts.get() {
            return Ok(starts);
        }
        let mut starts = vec![0];
        let mut total = 0u64;
        for shard in &self.shards {
            total = total
                .checked_add(shard.reader.count()?)
                .ok_or_else(|| Error::new(ErrorKind::Limit, "more than 2^64 records"))?;
            starts.push(total);
        }
        Ok(self.starts.get_or_init(|| starts))
    }

    /// (file number, number within the file) of a record.
    fn shard_of(&self, index: u64) -> Result<(usize, u64)> {
        let starts = self.starts()?;
        let total = starts.last().copied().unwrap_or(0);
        if index >= total {
            return Err(Error::no_such_record(index, total));
        }
        let file = starts.partition_point(|&start| start <= index).saturating_sub(1);
        Ok((file, index - starts.get(file).copied().unwrap_or(0)))
    }
}

/// Fails if a file's keys would be in its index file, and that is missing.
fn check_has_keys(reader: &dyn RecordReader) -> Result<()> {
    match reader.index_file()? {
        IndexState::Missing => {
            let name = reader.source().name();
            Err(Error::unsupported("records have no keys, as there is no index file")
                .in_file(name)
                .with_hint(Hint::rebuild_keys(name)))
        }
        _ => Ok(()),
    }
}

impl RecordSet for Dataset {
    fn count(&self) -> Result<u64> {
        self.len()
    }

    fn find(&self, index: u64) -> Result<Place<'_>> {
        let (file, local) = self.shard_of(index)?;
        let shard = self.shards.get(file).ok_or_else(|| Error::no_such_record(index, 0))?;
        Ok(Place { reader: &*shard.reader, index: local })
    }

    fn check_all(&self) -> Result<()> {
        self.check_range(&(0..self.len()?))
    }

    fn memory_limit(&self) -> u64 {
        self.options.limits.memory
    }
}

impl IntoIterator for &Dataset {
    type Item = Result<Bytes>;
    type IntoIter = Records;

    fn into_iter(self) -> Records {
        self.iter()
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.readers().map(|reader| reader.source().name()).collect();
        f.debug_struct("Dataset").field("format", &self.format.id()).field("files", &names).finish()
    }
}

impl Shard {
    fn open(file: &RecordFile, options: &OpenOptions) -> Result<Shard> {
        match (file.source().cloned(), file.reader(options)?) {
            (Some(source), Some(OpenReader { reader, notice })) => Ok(Shard { source, reader, notice }),
            _ => Err(Error::invalid("a stream cannot be read by number").in_file(file.name())),
        }
    }

    /// Checks that the files have the same format and, if records have a shape, the same shape.
    fn check_fits(&self, other: &Shard) -> Result<()> {
        let (name, other_name) = (self.reader.source().name(), other.reader.source().name());
        let (mine, theirs) = (self.reader.format().id(), other.reader.format().id());
        if mine != theirs {
            return Err(Error::invalid(format!("a dataset has one format, and {name} is {mine}"))
                .expected_found(mine, theirs)
                .in_file(other_name));
        }
        // Reading the metadata of a file may touch all parts of it.
        if !self.reader.format().capabilities().fixed_size {
            return Ok(());
        }
        let shape = |shard: &Shard| -> Result<String> {
            let info = shard.reader.info()?;
            Ok(match (info.dtype, info.shape) {
                (Some(dtype), Some(shape)) => {
                    format!("{dtype} records of shape {:?}", shape.get(1..).unwrap_or_default())
                }
                _ => String::new(),
            })
        };
        let (mine, theirs) = (shape(self)?, shape(other)?);
        if mine != theirs {
            return Err(Error::invalid(format!("its records differ from those of {name}"))
                .expected_found(mine, theirs)
                .in_file(other_name)
                .with_hint("name the files that belong together, or open them one by one"));
        }
        Ok(())
    }
}
