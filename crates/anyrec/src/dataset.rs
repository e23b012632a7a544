//! Many files as one sequence of records.

use crate::batch::Batch;
use crate::convert::LabelFile;
use crate::error::{Error, ErrorKind, Result};
use crate::fork::Once;
use crate::format::fetch::{Fetch, Wanted};
use crate::format::{self, Format, Key, Notice, OpenOptions, RecordReader, Tags};
use crate::input::{Input, OpenReader};
use crate::interrupt::go_on;
use crate::io::ReadAt;
use crate::position::Position;
use crate::room::reserve;
use crate::sequence::Records;
use bytes::Bytes;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Opens a file, or all record files of a directory or glob pattern, for reading.
///
/// The format is detected from the content. See [`Dataset`].
///
/// # Errors
/// When a file cannot be opened or is none of the known formats.
///
/// ```
/// # fn main() -> anyrec::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("three.ffr");
/// let mut writer = anyrec::create(&path, "ffrecord")?;
/// for record in [&b"one"[..], b"two", b"three"] {
///     writer.append(record, &anyrec::format::Tags::none())?;
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

/// Starts a file of the given format (`mxnet`, `ffrecord`, `grail`, `idx`) with default options.
/// It gets its name when the writer is finished.
///
/// # Errors
/// An unknown format, an existing file, or what the system says.
pub fn create(path: impl AsRef<Path>, format: &str) -> Result<Box<dyn format::RecordWriter>> {
    let known =
        format::by_id(format).ok_or_else(|| Error::unsupported(format!("there is no format {format:?}")))?;
    known.create(path.as_ref(), &format::WriteOptions::default())
}

/// As many records of a batch are looked for and read at a time: what is kept of each meanwhile takes more
/// memory than a small record.
const GROUP: usize = 1 << 16;

/// One or more record files of one format, numbered through in the order given.
pub struct Dataset {
    pub(crate) files: Vec<RecordFile>,
    pub(crate) options: OpenOptions,
    /// Number of records before each file, then of all; counting may need a scan.
    starts: Once<Vec<u64>>,
}

pub(crate) struct RecordFile {
    pub(crate) source: Arc<dyn ReadAt>,
    pub(crate) reader: Box<dyn RecordReader>,
    /// Why a table beside the file is not used.
    notice: Option<Notice>,
}

impl Dataset {
    /// Opens files, directories (every record file directly inside, by name) and glob patterns.
    ///
    /// # Errors
    /// When a file cannot be opened, is none of the known formats, or of another format than the
    /// first; when a directory or pattern has no record file.
    pub fn open(paths: &[impl AsRef<Path>], options: &OpenOptions) -> Result<Dataset> {
        let mut files: Vec<RecordFile> = Vec::new();
        for path in expand(paths)? {
            let file = RecordFile::open(&path, options)?;
            if let Some(first) = files.first() {
                first.check_fits(&file)?;
            }
            files.push(file);
        }
        if files.len() > 1 {
            // A set that was replaced while it was opened would be half of each.
            files.iter().try_for_each(|file| file.source.check_still_named())?;
        }
        Ok(Dataset { files, options: options.clone(), starts: Once::new() })
    }

    /// A dataset of one source, of a format that is known.
    #[cfg(feature = "testkit")]
    pub(crate) fn over(
        source: Arc<dyn ReadAt>,
        format: &'static dyn Format,
        options: &OpenOptions,
    ) -> Result<Dataset> {
        let file = RecordFile::of(Input::over(source, format), options)?;
        Ok(Dataset { files: vec![file], options: options.clone(), starts: Once::new() })
    }

    /// The files' format.
    pub fn format(&self) -> &'static dyn Format {
        // `expand` never gives an empty list.
        self.files.first().map_or(&format::mxnet::FORMAT, |file| file.reader.format())
    }

    /// The readers of the single files, in order.
    pub fn readers(&self) -> impl ExactSizeIterator<Item = &dyn RecordReader> {
        self.files.iter().map(|file| &*file.reader)
    }

    /// Oddities met while opening, with the file's name.
    ///
    /// # Errors
    /// As [`RecordReader::info`].
    pub fn notices(&self) -> Result<Vec<(String, Notice)>> {
        let mut all = Vec::new();
        for file in &self.files {
            let notices = file.reader.info()?.notices;
            all.extend(
                notices
                    .into_iter()
                    .chain(file.notice.clone())
                    .map(|notice| (file.source.name().to_owned(), notice)),
            );
        }
        Ok(all)
    }

    /// Number of records.
    ///
    /// # Errors
    /// Where counting needs a scan: when that fails or meets damage.
    pub fn len(&self) -> Result<u64> {
        Ok(self.starts()?.last().copied().unwrap_or(0))
    }

    /// Whether there is no record. Errors as [`len`](Dataset::len).
    ///
    /// # Errors
    /// As [`len`](Dataset::len).
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Record `index`, in memory of its own.
    ///
    /// # Errors
    /// [`OutOfRange`](ErrorKind::OutOfRange), or what is wrong with the record.
    pub fn read(&self, index: u64) -> Result<Bytes> {
        let (file, local) = self.find(index)?;
        file.reader.read(local)
    }

    /// The records of these numbers, in this order, repeats kept.
    ///
    /// # Errors
    /// As [`read`](Dataset::read), for the first record that fails.
    pub fn read_batch(&self, indices: &[u64]) -> Result<Batch> {
        let mut batch = Batch::new();
        self.read_batch_into(indices, &mut batch, self.options.thread_count())?;
        Ok(batch)
    }

    /// As [`read_batch`](Dataset::read_batch), into a batch whose memory is used again, and with up
    /// to that many threads. After an error the batch is empty.
    ///
    /// # Errors
    /// As [`read_batch`](Dataset::read_batch).
    pub fn read_batch_into(&self, indices: &[u64], batch: &mut Batch, threads: usize) -> Result<()> {
        batch.clear();
        for group in indices.chunks(GROUP) {
            let mut read = || {
                go_on()?;
                let fetch = self.fetch(group, threads)?;
                let size = fetch.offsets().last().copied().unwrap_or(0);
                self.options.limits.check_batch(size.saturating_add(batch.buffer().len() as u64))?;
                fetch.into_batch(batch, threads)
            };
            read().inspect_err(|_| batch.clear())?;
        }
        Ok(())
    }

    /// As [`read_batch`](Dataset::read_batch), into the caller's buffer. Gives where each record
    /// begins in it and, last, where the last one ends.
    ///
    /// # Errors
    /// As [`read_batch`](Dataset::read_batch); [`Invalid`](ErrorKind::Invalid) if the buffer is too
    /// small, before anything is written to it.
    pub fn read_into(&self, indices: &[u64], buffer: &mut [u8], threads: usize) -> Result<Vec<u64>> {
        let fetch = self.fetch(indices, threads)?;
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

    /// The records of these numbers, in this order: lent, not copied, where they all lie in mapped files
    /// in one piece each. Looking at such a record after its file was cut short ends the process
    /// (SIGBUS), and a file that is changed in place changes it.
    ///
    /// # Errors
    /// As [`read_batch`](Dataset::read_batch).
    pub fn lend(&self, indices: &[u64]) -> Result<Vec<Bytes>> {
        let mut lent = Vec::new();
        for group in indices.chunks(GROUP) {
            go_on()?;
            lent.extend(self.fetch(group, 1)?.lend()?);
        }
        Ok(lent)
    }

    fn fetch(&self, indices: &[u64], threads: usize) -> Result<Fetch<'_>> {
        let find = |&index: &u64| {
            let (file, index) = self.find(index)?;
            Ok(Wanted { reader: &*file.reader, index })
        };
        Fetch::new(indices.iter().map(find).collect::<Result<_>>()?, threads)
    }

    /// The records of a range, as a batch.
    ///
    /// # Errors
    /// As [`read`](Dataset::read).
    pub fn read_range(&self, range: Range<u64>) -> Result<Batch> {
        let count = self.len()?;
        if range.end > count {
            return Err(Error::no_such_record(range.end - 1, count));
        }
        self.check_range(&range)?;
        let mut numbers = Vec::new();
        let size = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        reserve(&mut numbers, size)?;
        numbers.extend(range);
        self.read_batch(&numbers)
    }

    /// Makes sure that the files have the records of a range, as far as that can be told without
    /// reading them: a header may promise more than there is, and a list of so many numbers would
    /// take all memory. To be called before such a list is made.
    ///
    /// # Errors
    /// As [`read`](Dataset::read), for the first record that is not there.
    pub fn check_range(&self, range: &Range<u64>) -> Result<()> {
        let Some(last) = range.end.checked_sub(1).filter(|last| range.contains(last)) else { return Ok(()) };
        let starts = self.starts()?;
        let (first_file, last_file) = (self.find_number(range.start)?.0, self.find_number(last)?.0);
        for (file, begin) in self.files.iter().zip(starts).take(last_file + 1).skip(first_file) {
            let end = last.min(begin + file.reader.count()?.saturating_sub(1));
            if file.reader.count()? > 0 && file.reader.locate(end - begin).is_err() {
                // Which of them is the first is found by looking at one after the other.
                for index in range.start.max(*begin)..=end {
                    file.reader.locate(index - begin)?;
                }
            }
        }
        Ok(())
    }

    /// Where record `index` is in its file.
    ///
    /// # Errors
    /// As [`read`](Dataset::read).
    pub fn position(&self, index: u64) -> Result<Position> {
        let (file, local) = self.find(index)?;
        Ok(file.reader.locate(local)?.position)
    }

    /// Key and label of record `index`, where it has them; the label also from the file beside
    /// (IDX).
    ///
    /// # Errors
    /// As [`read`](Dataset::read) and [`RecordReader::label_beside`].
    pub fn tags(&self, index: u64) -> Result<Tags> {
        self.tags_of(index, &self.read(index)?)
    }

    /// [`tags`](Dataset::tags) of a record that was read already.
    ///
    /// # Errors
    /// As [`tags`](Dataset::tags).
    pub fn tags_of(&self, index: u64, record: &[u8]) -> Result<Tags> {
        let (file, local) = self.find(index)?;
        let mut tags = file.reader.tags(local, file.reader.locate(local)?.position, record)?;
        if tags.label.is_none() {
            tags.label = file.reader.label_beside(local)?;
        }
        Ok(tags)
    }

    /// An error about record `index`, with the file and the number in it.
    pub(crate) fn placed(&self, index: u64, error: Error) -> Error {
        match self.find(index) {
            Ok((file, local)) => error.in_record(local).in_file(file.source.name()),
            Err(_) => error.in_record(index),
        }
    }

    /// Key and label of record `index` that its own file holds.
    ///
    /// # Errors
    /// As [`read`](Dataset::read).
    pub fn stored_tags(&self, index: u64) -> Result<Tags> {
        let (file, local) = self.find(index)?;
        let position = file.reader.locate(local)?.position;
        file.reader.tags(local, position, &file.reader.read(local)?)
    }

    /// Number of the record with that key (the last one, where a key stands twice), if there is one.
    ///
    /// # Errors
    /// When the companion file that holds the keys cannot be read.
    pub fn find_key(&self, key: &Key) -> Result<Option<u64>> {
        for (number, file) in self.files.iter().enumerate() {
            if let Some(local) = file.reader.find_key(key)? {
                return Ok(self.starts()?.get(number).map(|start| start + local));
            }
        }
        Ok(None)
    }

    /// All records in order, by a sequential scan: needs no index and no count.
    ///
    /// [`Records::fill`] takes some at a time. Damage is an error item, after which the iteration goes
    /// on with the next intact record; with [`OpenOptions::skip_damage`] it is passed over.
    pub fn iter(&self) -> Records<&Dataset> {
        Records::new(self)
    }

    /// [`iter`](Dataset::iter) for iterations that outlive the caller's hold on the dataset.
    pub fn shared_iter(self: Arc<Self>) -> Records<Arc<Dataset>> {
        Records::new(self)
    }

    fn starts(&self) -> Result<&[u64]> {
        if let Some(starts) = self.starts.get() {
            return Ok(starts);
        }
        let mut starts = vec![0];
        let mut total = 0u64;
        for file in &self.files {
            total = total
                .checked_add(file.reader.count()?)
                .ok_or_else(|| Error::new(ErrorKind::Limit, "more than 2^64 records"))?;
            starts.push(total);
        }
        Ok(self.starts.get_or_init(|| starts))
    }

    /// (file number, number within the file) of a record.
    fn find_number(&self, index: u64) -> Result<(usize, u64)> {
        let starts = self.starts()?;
        let total = starts.last().copied().unwrap_or(0);
        if index >= total {
            return Err(Error::no_such_record(index, total));
        }
        let file = starts.partition_point(|&start| start <= index).saturating_sub(1);
        Ok((file, index - starts.get(file).copied().unwrap_or(0)))
    }

    fn find(&self, index: u64) -> Result<(&RecordFile, u64)> {
        let (file, local) = self.find_number(index)?;
        self.files.get(file).map(|file| (file, local)).ok_or_else(|| Error::no_such_record(index, 0))
    }
}

impl std::fmt::Debug for Dataset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.files.iter().map(|file| file.source.name()).collect();
        f.debug_struct("Dataset").field("format", &self.format().id()).field("files", &names).finish()
    }
}

impl RecordFile {
    fn open(path: &Path, options: &OpenOptions) -> Result<RecordFile> {
        Self::of(Input::open(path, options)?, options)
    }

    fn of(input: Input, options: &OpenOptions) -> Result<RecordFile> {
        match (input.source().cloned(), input.reader(options)?) {
            (Some(source), Some(OpenReader { reader, notice })) => Ok(RecordFile { source, reader, notice }),
            _ => Err(Error::invalid("not a file").in_file(input.name())),
        }
    }

    /// Files of one dataset have one format and, where records have a shape, one shape.
    fn check_fits(&self, other: &RecordFile) -> Result<()> {
        let (mine, theirs) = (self.reader.format().id(), other.reader.format().id());
        if mine != theirs {
            return Err(Error::invalid(format!(
                "a dataset has one format, and {} is {mine}",
                self.source.name()
            ))
            .expected_found(mine, theirs)
            .in_file(other.source.name()));
        }
        // Asking a file what it is like may mean reading from all over it.
        if !self.reader.format().capabilities().fixed_size {
            return Ok(());
        }
        let shape = |file: &RecordFile| -> Result<String> {
            let info = file.reader.info()?;
            Ok(match (info.dtype, info.shape) {
                (Some(dtype), Some(shape)) => {
                    format!("{dtype} records of shape {:?}", shape.get(1..).unwrap_or_default())
                }
                _ => String::new(),
            })
        };
        let (mine, theirs) = (shape(self)?, shape(other)?);
        if mine != theirs {
            return Err(Error::invalid(format!("its records differ from those of {}", self.source.name()))
                .expected_found(mine, theirs)
                .in_file(other.source.name())
                .with_hint("name the files that belong together, or open them one by one"));
        }
        Ok(())
    }
}

/// The files that paths, directories and patterns stand for; never an empty list.
///
/// # Errors
/// A path that is not there, a directory or pattern without a record file.
pub fn expand(paths: &[impl AsRef<Path>]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        let path = path.as_ref();
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => files.extend(files_of_directory(path)?),
            Ok(_) => files.push(path.to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                files.extend(files_of_pattern(path)?)
            }
            Err(error) => {
                return Err(Error::io("cannot open", error).in_file(crate::io::display_name(path)));
            }
        }
    }
    if files.is_empty() {
        return Err(Error::invalid("no file was named"));
    }
    Ok(files)
}

fn files_of_directory(path: &Path) -> Result<Vec<PathBuf>> {
    let name = crate::io::display_name(path);
    let io_error = |error| Error::io("cannot list", error).in_file(name.clone());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io_error)? {
        let entry = entry.map_err(io_error)?.path();
        if entry.is_file() && format::by_name(&entry).is_some() {
            files.push(entry);
        }
    }
    if files.is_empty() {
        return Err(Error::invalid("the directory has no record files in it")
            .in_file(name)
            .with_hint("files are taken by their names there; name other files one by one"));
    }
    files.sort();
    Ok(files)
}

fn files_of_pattern(path: &Path) -> Result<Vec<PathBuf>> {
    let name = crate::io::display_name(path);
    let missing =
        || Error::io("cannot open", std::io::Error::from_raw_os_error(libc::ENOENT)).in_file(name.clone());
    let pattern = path.to_str().filter(|text| text.contains(['*', '?', '['])).ok_or_else(missing)?;
    let matches = glob::glob(pattern).map_err(|error| {
        Error::invalid(format!("not a glob pattern: {}", error.msg)).in_file(name.clone())
    })?;
    let mut files: Vec<PathBuf> =
        matches.filter_map(|entry| entry.ok()).filter(|path| path.is_file()).collect();
    if files.is_empty() {
        return Err(Error::invalid("no file matches the pattern").in_file(name));
    }
    files.sort();
    Ok(files)
}

/// Opens a file of labels: IDX, one number a record.
pub(crate) fn open_label_file(path: &Path, options: &OpenOptions) -> Result<LabelFile> {
    let mut options = options.clone();
    options.format = Some(format::idx::FORMAT.id().to_owned());
    let file = RecordFile::open(path, &options)?;
    let info = file.reader.info()?;
    match (info.dtype, info.shape.as_deref()) {
        (Some(dtype), Some([_])) => Ok(LabelFile { reader: file.reader, dtype, source: file.source }),
        (_, shape) => Err(Error::invalid("a label file has one dimension")
            .expected_found("a shape of one dimension", format!("{:?}", shape.unwrap_or_default()))
            .in_file(file.source.name())),
    }
}
