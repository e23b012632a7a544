//! `Dataset`: record files as one numbered sequence.

use crate::batch::{Batch, numbers_to};
use crate::buffers::lend;
use crate::errors::closed;
use crate::file_object;
use crate::files::notice_text;
use crate::indices;
use crate::iteration::{BatchIterator, RecordIterator};
use crate::options::{Returned, open_options};
use crate::progress::done;
use crate::record::{Home, Record, is_known, item_of, owned};
use crate::sequences::{Many, bytes_to, list_of};
use crate::values::{header_to, key_from, key_to, label_to, labels_to};
use anyrec::interrupt::go_on_at;
use anyrec::{BatchPool, Bytes, RecordSet, Result};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySlice, PyTuple, PyType};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of batches whose memory is kept for the next reads.
const KEPT_BATCHES: usize = 2;

/// One or more record files of one format, as one numbered sequence.
#[pyclass(frozen, sequence, subclass, module = "anyrec._anyrec")]
pub struct Dataset {
    paths: Vec<PathBuf>,
    options: Option<Py<PyDict>>,
    returned: Returned,
    /// The path is only the name of a file object.
    of_file_object: bool,
    /// Held only briefly, while attached to the interpreter.
    open: Mutex<Option<Opened>>,
    buffers: BatchPool,
}

/// An open dataset, also as the origin of the records that are read from it by number.
#[derive(Clone)]
struct Opened {
    dataset: Arc<anyrec::Dataset>,
    home: Arc<Home>,
}

impl Dataset {
    /// The open dataset.
    ///
    /// Exceptions are created after the lock is released. Creating one runs Python code, during
    /// which another thread may run and wait for the lock, which would be a deadlock.
    pub fn opened(&self) -> PyResult<Arc<anyrec::Dataset>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let dataset = open.as_ref().map(|open| Arc::clone(&open.dataset));
        drop(open);
        dataset.ok_or_else(|| closed("the dataset"))
    }

    /// Works with the dataset while the GIL is released.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&anyrec::Dataset) -> Result<R> + Send,
    ) -> PyResult<R> {
        let dataset = self.opened()?;
        done(py, || work(&dataset))
    }

    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |dataset| dataset.len())
    }

    /// The open dataset as the origin of records that are read by number.
    fn home(&self) -> PyResult<Arc<Home>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(open.ok_or_else(|| closed("the dataset"))?.home)
    }

    fn read_one(&self, py: Python<'_>, index: u64) -> PyResult<Record> {
        let Returned { copy, payload } = self.returned;
        let data = self.with(py, |dataset| {
            let record = match copy {
                true => owned(dataset.read(index)?)?,
                false => dataset.lend(&[index])?.pop().unwrap_or_default(),
            };
            match payload {
                true => Ok(record.slice_ref(dataset.payload_of(index, &record)?)),
                false => Ok(record),
            }
        })?;
        Ok(Record::new(data).of(&self.home()?, Some(index)))
    }

    fn read_many(&self, py: Python<'_>, indices: Vec<u64>) -> PyResult<Batch> {
        let mut batch = self.buffers.take();
        let batch = self.with(py, |dataset| {
            dataset.read_batch_into(&indices, &mut batch)?;
            if self.returned.payload {
                (dataset as &dyn RecordSet).strip(&indices, &mut batch)?;
            }
            Ok(batch)
        })?;
        Ok(Batch::new(lend(batch, &self.buffers)).of(self.home()?, indices))
    }

    /// Records as slices of mapped files.
    fn lend_many(&self, py: Python<'_>, indices: &[u64]) -> PyResult<Vec<Record>> {
        let payload = self.returned.payload;
        let lent = self.with(py, |dataset| {
            let lent = dataset.lend(indices)?;
            if !payload {
                return Ok(lent);
            }
            let split =
                |(record, &index): (Bytes, &u64)| Ok(record.slice_ref(dataset.payload_of(index, &record)?));
            lent.into_iter().zip(indices).map(split).collect()
        })?;
        let home = self.home()?;
        let record = |(record, &index)| Record::new(record).of(&home, Some(index));
        Ok(lent.into_iter().zip(indices).map(record).collect())
    }

    /// The record numbers that a slice, a sequence or an array stands for.
    fn numbers(&self, py: Python<'_>, indices: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        match indices.cast::<PySlice>() {
            Ok(slice) => self.of_slice(py, slice, self.count(py)?),
            Err(_) => indices::many(indices, || self.count(py)),
        }
    }

    /// The record numbers of a slice. A file may declare more records than it has, so this checks
    /// that they exist before it creates a long list.
    fn of_slice(&self, py: Python<'_>, slice: &Bound<'_, PySlice>, count: u64) -> PyResult<Vec<u64>> {
        if let Some(range) = indices::long_range(slice, count)? {
            let bytes = self.with(py, |dataset| {
                dataset.check_range(&range)?;
                Ok(dataset
                    .readers()
                    .fold(0, |bytes: u64, reader| bytes.saturating_add(reader.source().len())))
            })?;
            indices::check_listed(range.end - range.start, bytes)?;
        }
        indices::of_slice(slice, count)
    }
}

#[pymethods]
impl Dataset {
    #[new]
    #[pyo3(signature = (paths, options = None, same = None, file = None))]
    fn new(
        py: Python<'_>,
        paths: Many<PathBuf>,
        options: Option<Bound<'_, PyDict>>,
        same: Option<&Bound<'_, Dataset>>,
        file: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let paths = paths.0;
        let (open, returned) = open_options(options.as_ref())?;
        let of_file_object = file.is_some() || same.is_some_and(|same| same.get().of_file_object);
        let dataset = match (same, file) {
            (Some(same), _) => same.get().opened()?,
            (None, Some(file)) => Arc::new(file_object::dataset(py, file, &open)?),
            (None, None) => Arc::new(done(py, || anyrec::Dataset::open(&paths, &open))?),
        };
        Ok(Dataset {
            paths,
            options: options.map(Bound::unbind),
            returned,
            of_file_object,
            open: Mutex::new(Some(Opened {
                home: Home::by_number(dataset.clone(), returned.payload, item_of(&dataset)),
                dataset,
            })),
            buffers: BatchPool::new(KEPT_BATCHES),
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(usize::try_from(self.count(py)?)?)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let count = self.count(py)?;
        let many = if let Ok(slice) = index.cast::<PySlice>() {
            self.of_slice(py, slice, count)?
        } else {
            match indices::one(index, count) {
                Ok(one) => return Ok(Bound::new(py, self.read_one(py, one)?)?.into_any()),
                Err(error) if error.is_instance_of::<PyTypeError>(py) => match index.try_iter() {
                    Ok(_) => indices::many(index, || Ok(count))?,
                    Err(_) => return Err(error),
                },
                Err(error) => return Err(error),
            }
        };
        if !self.returned.copy {
            let records = self.lend_many(py, &many)?.into_iter().map(|record| Bound::new(py, record));
            return Ok(list_of(py, records)?.into_any());
        }
        let batch = self.read_many(py, many)?;
        let records = batch.records().map(|record| Bound::new(py, record));
        Ok(list_of(py, records)?.into_any())
    }

    fn __iter__(&self) -> PyResult<RecordIterator> {
        let Returned { copy, payload } = self.returned;
        Ok(RecordIterator::new(self.opened()?, payload, copy))
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, exception: &Bound<'_, PyTuple>) {
        let _ = exception;
        self.close();
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        let (py, this) = (slf.py(), slf.get());
        if this.of_file_object {
            return Err(PyTypeError::new_err(
                "a dataset over a file object cannot be pickled or sent to another process: open the file by its path",
            ));
        }
        let options = match &this.options {
            Some(options) => options.bind(py).clone(),
            None => PyDict::new(py),
        };
        let arguments = PyTuple::new(py, [this.paths(py)?.into_any(), options.into_any()])?;
        Ok((slf.get_type(), arguments))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Ok(format) = self.format() else { return Ok("<Dataset, closed>".to_owned()) };
        let names = self.paths(py)?;
        let first = names.get_item(0)?.repr()?;
        Ok(match names.len() {
            1 => format!("<Dataset {first}: {format}>"),
            more => format!("<Dataset {first} and {} more: {format}>", more - 1),
        })
    }

    /// The format's id: `mxnet`, `ffrecord`, `grail` or `idx`.
    #[getter]
    fn format(&self) -> PyResult<&'static str> {
        Ok(self.opened()?.format().id())
    }

    /// The options as given.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match &self.options {
            Some(options) => options.bind(py).copy(),
            None => Ok(PyDict::new(py)),
        }
    }

    /// The paths as given.
    #[getter]
    fn paths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.paths.iter().map(|path| path.as_os_str()))
    }

    /// Whether the dataset reads from a file object.
    #[getter]
    #[pyo3(name = "_of_file_object")]
    fn of_file_object(&self) -> bool {
        self.of_file_object
    }

    /// Metadata of the first file: `version`, `header` (a list of pairs), `trailer`, `shape`,
    /// `dtype`; and `files` and `notices` of all files.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (info, files, notices) = self.with(py, |dataset| {
            let files: Vec<String> =
                dataset.readers().map(|reader| reader.source().name().to_owned()).collect();
            let info = dataset.readers().next().map(|reader| reader.info()).transpose()?;
            Ok((info.unwrap_or_default(), files, dataset.notices()?))
        })?;
        let metadata = PyDict::new(py);
        metadata.set_item("version", info.version)?;
        metadata.set_item("header", header_to(py, &info.header)?)?;
        metadata.set_item("trailer", info.trailer.map(|trailer| bytes_to(py, &trailer)).transpose()?)?;
        let shape = info.shape.map(|shape| PyTuple::new(py, shape)).transpose()?;
        metadata.set_item("shape", shape)?;
        metadata.set_item("dtype", info.dtype.map(|dtype| dtype.name()))?;
        metadata.set_item("files", files)?;
        let notices = notices.into_iter().map(|(file, notice)| format!("{file}: {}", notice_text(&notice)));
        metadata.set_item("notices", notices.collect::<Vec<_>>())?;
        Ok(metadata)
    }

    /// Whether the dataset is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// The key of a record, or `None` if it has none.
    fn key<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let index = indices::one(index, self.count(py)?)?;
        let key = self.with(py, |dataset| dataset.key(index))?;
        key.map(|key| key_to(py, &key)).transpose()
    }

    /// Whether records are returned as payloads.
    #[getter]
    fn payload(&self) -> bool {
        self.returned.payload
    }

    /// The label of a record: a float, an array of several, or `None` if it has none.
    fn label<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let index = indices::one(index, self.count(py)?)?;
        let tags = self.with(py, |dataset| dataset.tags(index))?;
        tags.label.filter(is_known).map(|label| label_to(py, label)).transpose()
    }

    /// The labels of the given records, or of all. An array with NaN for records without a label,
    /// two-dimensional if every record has the same number of labels, or a list if the numbers
    /// differ.
    #[pyo3(signature = (indices = None))]
    fn labels<'py>(
        &self,
        py: Python<'py>,
        indices: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let indices = match indices {
            Some(indices) => indices::many(indices, || self.count(py))?,
            None => self.of_slice(py, &PySlice::full(py), self.count(py)?)?,
        };
        let labels = self.with(py, |dataset| {
            let label = |(at, &index): (usize, &u64)| {
                go_on_at(at)?;
                Ok(dataset.tags(index)?.label)
            };
            indices.iter().enumerate().map(label).collect::<Result<Vec<_>>>()
        })?;
        labels_to(py, &labels)
    }

    /// The position of a record in its file: (byte offset of its frame, item within the frame).
    fn position(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<(u64, u64)> {
        let index = indices::one(index, self.count(py)?)?;
        let position = self.with(py, |dataset| dataset.position(index))?;
        Ok((position.frame, position.item))
    }

    /// The number of the record with this key, or `None` if there is none.
    fn find(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let key = key_from(key)?;
        self.with(py, |dataset| dataset.find_key(&key))
    }

    /// The record numbers of a slice.
    #[pyo3(name = "_slice_numbers")]
    fn slice_numbers<'py>(
        &self,
        py: Python<'py>,
        slice: &Bound<'py, PySlice>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        numbers_to(py, &self.of_slice(py, slice, self.count(py)?)?)
    }

    /// The records with these numbers as one batch, in this order, repeats included.
    fn read(&self, py: Python<'_>, indices: &Bound<'_, PyAny>) -> PyResult<Batch> {
        let indices = self.numbers(py, indices)?;
        self.read_many(py, indices)
    }

    /// Reads records into your own array: `uint8`, one-dimensional, writable and contiguous (pinned
    /// memory, shared memory). Returns the offset of each record in it, followed by the end of the
    /// last record. After an error the contents of the array are undefined.
    fn read_into<'py>(
        &self,
        py: Python<'py>,
        indices: &Bound<'py, PyAny>,
        buffer: &Bound<'py, PyArray1<u8>>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let indices = self.numbers(py, indices)?;
        let mut buffer = buffer
            .try_readwrite()
            .map_err(|error| PyValueError::new_err(format!("the buffer is not writable: {error}")))?;
        let buffer =
            buffer.as_slice_mut().map_err(|_| PyValueError::new_err("the buffer is not contiguous"))?;
        let offsets = self.with(py, |dataset| match self.returned.payload {
            false => dataset.read_into(&indices, buffer),
            true => {
                let mut payloads = dataset.read_batch(&indices)?;
                (dataset as &dyn RecordSet).strip(&indices, &mut payloads)?;
                let (needed, room) = (payloads.buffer().len(), buffer.len());
                let slot = buffer.get_mut(..needed).ok_or_else(|| {
                    anyrec::Error::invalid("the buffer is too small for the records")
                        .expected_found(format!("{needed} bytes"), format!("{room} bytes"))
                })?;
                slot.copy_from_slice(payloads.buffer());
                Ok(payloads.offsets().to_vec())
            }
        })?;
        numbers_to(py, &offsets)
    }

    /// All records in order, in batches of `size` (the last may be smaller), read by a sequential
    /// scan.
    fn batches(&self, size: usize) -> PyResult<BatchIterator> {
        if size == 0 {
            return Err(PyValueError::new_err("a batch must have at least one record"));
        }
        Ok(BatchIterator::new(self.opened()?, self.buffers.clone(), size, self.returned.payload))
    }

    /// Closes the dataset. Records, batches and arrays from it stay valid, and while one of them is in use
    /// the files stay open.
    fn close(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(open);
    }
}
