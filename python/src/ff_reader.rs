//! `FfReader`: the samples of FFRecord files as one numbered sequence.

use crate::errors::{closed, raised};
use crate::indices;
use crate::progress::done;
use crate::sequences::Many;
use anyrec::format::ffrecord::{self, Reader};
use anyrec::format::{OpenOptions, RecordReader};
use anyrec::io::{Access, open_file};
use anyrec::{Bytes, Error, ErrorKind, Place, RecordSet, Result};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyType};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Samples up to this size are copied from the mapped file into an array.
const SMALL: usize = 4 << 10;

/// More files than any folder should hold, and few enough to list their names.
const MOST_PARTS: u64 = 1 << 20;

/// Reads the samples of FFRecord files as one numbered sequence.
///
/// It holds no lock while reading, so threads and forked processes may share it.
#[pyclass(frozen, sequence, module = "anyrec._anyrec")]
pub struct FfReader {
    paths: Vec<PathBuf>,
    check_data: bool,
    open: Mutex<Option<Arc<Files>>>,
}

#[derive(Debug)]
struct Files {
    readers: Vec<Reader>,
    /// The number of samples before each file, followed by the total.
    starts: Vec<u64>,
}

impl Files {
    fn open(paths: &[PathBuf], check_data: bool) -> Result<Files> {
        let mut options = OpenOptions::default();
        options.verify = check_data;
        let mut files = Files { readers: Vec::new(), starts: vec![0] };
        for path in paths {
            let reader = Reader::open(open_file(path, Access::Auto)?, &options)?;
            let total = files.count().checked_add(reader.count());
            files.starts.push(total.ok_or_else(|| Error::invalid("more than 2^64 samples"))?);
            files.readers.push(reader);
        }
        Ok(files)
    }

    fn count(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// One sample, without the preparations that only pay for many.
    fn read_one(&self, index: u64) -> Result<Bytes> {
        let Place { reader, index } = self.find(index)?;
        let source = reader.source();
        source.guard()?;
        let location = reader.locate(index)?;
        if location.span.end - location.span.start > SMALL as u64 {
            return reader.read(index);
        }
        // From the map: a call of the system would take longer than this copy.
        let frame = source.view(location.span.clone())?;
        let sample = reader.decode(index, &location, &frame).map(|sample| Bytes::copy_from_slice(&sample));
        source.check_unchanged().and(sample)
    }

    /// The samples, each in memory of its own.
    fn read(&self, indices: &[u64]) -> Result<Vec<Vec<u8>>> {
        let samples: &dyn RecordSet = self;
        let batch = samples.read_batch(indices, 1)?;
        Ok(batch.iter().map(<[u8]>::to_vec).collect())
    }
}

impl RecordSet for Files {
    fn count(&self) -> Result<u64> {
        Ok(self.count())
    }

    fn find(&self, index: u64) -> Result<Place<'_>> {
        let file = self.starts.partition_point(|&start| start <= index).saturating_sub(1);
        let reader = self.readers.get(file).ok_or_else(|| Error::no_such_record(index, self.count()))?;
        Ok(Place::new(reader, index - self.starts.get(file).copied().unwrap_or(0)))
    }
}

impl FfReader {
    fn opened(&self) -> PyResult<Arc<Files>> {
        // The lock is released before an exception is created.
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Arc::clone);
        open.ok_or_else(|| closed("the reader"))
    }

    fn of_file<R: Send>(
        &self,
        file: &Bound<'_, PyAny>,
        work: impl FnOnce(&Reader) -> Result<R> + Send,
    ) -> PyResult<R> {
        let files = self.opened()?;
        let number = usize::try_from(indices::one(file, files.readers.len() as u64)?)?;
        match files.readers.get(number) {
            Some(reader) => done(file.py(), || work(reader)),
            None => Err(raised(Error::no_such_record(number as u64, files.readers.len() as u64))),
        }
    }
}

#[pymethods]
impl FfReader {
    #[new]
    #[pyo3(signature = (files, check_data = true))]
    fn new(py: Python<'_>, files: Many<PathBuf>, check_data: bool) -> PyResult<Self> {
        let files = files.0;
        let opened = done(py, || Files::open(&files, check_data))?;
        Ok(FfReader { paths: files, check_data, open: Mutex::new(Some(Arc::new(opened))) })
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.opened()?.count())?)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        let arguments = (self.files(py)?, self.check_data).into_pyobject(py)?;
        Ok((py.get_type::<FfReader>(), arguments))
    }

    /// Number of samples.
    #[getter]
    fn n(&self) -> PyResult<u64> {
        Ok(self.opened()?.count())
    }

    /// The files' paths.
    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.paths.iter().map(|path| path.as_os_str()))
    }

    /// Whether checksums are verified.
    #[getter]
    fn check_data(&self) -> bool {
        self.check_data
    }

    /// Whether the reader is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Notices from opening the files.
    #[getter]
    fn notices(&self) -> PyResult<Vec<String>> {
        let mut notices = Vec::new();
        for reader in &self.opened()?.readers {
            let told = reader.info().map_err(raised)?.notices;
            let name = reader.source().name();
            notices.extend(told.into_iter().map(|notice| format!("{name}: {}", notice.message)));
        }
        Ok(notices)
    }

    /// The samples with these numbers as writable `uint8` arrays, in this order, repeats included.
    fn read<'py>(&self, py: Python<'py>, indices: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let files = self.opened()?;
        let indices = indices::many(indices, || Ok(files.count()))?;
        let samples = done(py, || files.read(&indices))?;
        PyList::new(py, samples.into_iter().map(|sample| PyArray1::from_vec(py, sample)))
    }

    /// One sample as a writable `uint8` array.
    fn read_one<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let files = self.opened()?;
        let index = indices::one(index, files.count())?;
        let sample = done(py, || files.read_one(index))?;
        // An array that takes over memory is an object more, which costs more than a small copy.
        Ok(match sample.len() <= SMALL {
            true => PyArray1::from_slice(py, &sample),
            false => PyArray1::from_vec(py, sample.into()),
        })
    }

    /// The offset of each sample of a file, followed by the file's length.
    fn offsets<'py>(&self, file: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let offsets = self.of_file(file, |reader| {
            // As the format stores them. No file is long enough for this to fail.
            let signed = |offset| i64::try_from(offset).map_err(|_| Error::corrupt("an offset over 2^63"));
            reader.offsets()?.into_iter().map(signed).collect()
        })?;
        Ok(PyArray1::from_vec(file.py(), offsets))
    }

    /// The stored checksums of a file's samples.
    fn checksums<'py>(&self, file: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        Ok(PyArray1::from_vec(file.py(), self.of_file(file, Reader::checksums)?))
    }

    /// Checks every file's table against its checksum.
    fn validate(&self, py: Python<'_>) -> PyResult<()> {
        let files = self.opened()?;
        done(py, || files.readers.iter().try_for_each(Reader::validate))
    }

    /// Closes the files. Closing twice is allowed. Arrays from them stay valid.
    fn close(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(open);
    }
}

/// The files in a folder: all `*.ffr` directly in it, sorted by name.
#[pyfunction]
pub fn directory_files<'py>(py: Python<'py>, folder: PathBuf) -> PyResult<Bound<'py, PyList>> {
    let files = done(py, || ffrecord::directory_files(&folder))?;
    PyList::new(py, files.into_iter().map(PathBuf::into_os_string))
}

/// How `dump` splits `count` samples over files: the name and the samples of each part.
#[pyfunction]
pub fn part_files<'py>(
    py: Python<'py>,
    count: u64,
    files: u64,
) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    // There are no more parts than this.
    let most = count.min(files);
    if most > MOST_PARTS {
        let error = Error::new(ErrorKind::Limit, format!("{most} files are too many"));
        return Err(raised(error.expected_found(format!("at most {MOST_PARTS}"), most)));
    }
    let range = py.import("builtins")?.getattr("range")?;
    let parts = done(py, || ffrecord::part_files(count, files))?.into_iter();
    parts.map(|(name, samples)| Ok((name, range.call1((samples.start, samples.end))?))).collect()
}
