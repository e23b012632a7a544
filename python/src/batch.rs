//! `Batch`: many records in one buffer.
//!
//! `Origin` holds what a batch from a loader knows in addition: its records' numbers and labels.

use crate::buffers::lend;
use crate::payload::Payload;
use crate::record::{Home, PickledItem, Record, array_over, is_known, item_from};
use crate::sequences::{Many, bytes_to, list_of};
use crate::values::{label_from, label_to, labels_to};
use anyrec::BatchPool;
use anyrec::Bytes;
use anyrec::Label;
use anyrec::loader::Loaded;
use numpy::{IntoPyArray, PyArray1};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyTuple};
use std::sync::Arc;

/// Many records in one buffer, with the offsets between them.
///
/// A sequence of records. `numpy()` returns them as arrays and `to_list()` as `bytes`. All records are in `buffer`: record `i` lies between `offsets[i]` and
/// `offsets[i + 1]` (the layout Arrow calls LargeBinary). A batch stays valid after its dataset is
/// closed.
///
/// >>> import anyrec
/// >>> with anyrec.create("three.ffr") as writer:
/// ...     for word in [b"one", b"", b"three"]:
/// ...         _ = writer.write(word)
/// >>> batch = anyrec.open("three.ffr").read([2, 0, 1])
/// >>> len(batch), bytes(batch[0]), batch.to_list(), batch.offsets.tolist()
/// (3, b'three', [b'three', b'one', b''], [0, 5, 8, 8])
/// >>> [array.shape for array in batch.numpy()]
/// [(5,), (3,), (0,)]
#[pyclass(frozen, sequence, module = "anyrec")]
pub struct Batch {
    buffer: Bytes,
    offsets: Vec<u64>,
    origin: Option<Origin>,
    /// The set that the records were read from, and their numbers there.
    home: Option<(Arc<Home>, Vec<u64>)>,
}

/// Where a loader's batch comes from.
struct Origin {
    indices: Vec<u64>,
    labels: Option<Vec<Option<Label>>>,
    padding: u64,
}

impl Batch {
    /// Creates a batch from these bytes and offsets.
    pub fn new((buffer, offsets): (Bytes, Vec<u64>)) -> Self {
        Batch { buffer, offsets, origin: None, home: None }
    }

    /// The same batch, of records with these numbers.
    pub fn of(self, home: Arc<Home>, numbers: Vec<u64>) -> Self {
        Batch { home: Some((home, numbers)), ..self }
    }

    /// Creates a loader's batch.
    pub fn loaded(loaded: Loaded, pool: &BatchPool, home: &Arc<Home>) -> Self {
        let Loaded { records, indices, labels, padding, .. } = loaded;
        let batch = Batch::new(lend(records, pool)).of(Arc::clone(home), indices.clone());
        Batch { origin: Some(Origin { indices, labels, padding }), ..batch }
    }

    fn length(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// The range of record `index` in the buffer.
    fn span(&self, index: usize) -> Option<(usize, usize)> {
        let begin = usize::try_from(*self.offsets.get(index)?).ok()?;
        let end = usize::try_from(*self.offsets.get(index + 1)?).ok()?;
        (begin <= end && end <= self.buffer.len()).then_some((begin, end))
    }

    /// Record `index`, sharing the buffer.
    pub fn record(&self, index: usize) -> Option<Record> {
        let (begin, end) = self.span(index)?;
        let record = Record::new(self.buffer.slice(begin..end));
        Some(match &self.home {
            Some((home, numbers)) => record.of(home, numbers.get(index).copied()),
            None => record,
        })
    }

    /// All records, sharing the buffer.
    pub fn records(&self) -> impl ExactSizeIterator<Item = Record> {
        (0..self.length()).map(|index| self.record(index).unwrap_or_else(|| Record::new(Bytes::new())))
    }

    fn item<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, Record>> {
        let record = self.record(index).ok_or_else(|| {
            PyIndexError::new_err(format!("there is no record {index} in the batch's {}", self.length()))
        })?;
        Bound::new(py, record)
    }
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.length()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            let places = crate::indices::of_slice(slice, self.length() as u64)?;
            let items = places.into_iter().map(|place| self.item(py, usize::try_from(place)?));
            return Ok(list_of(py, items)?.into_any());
        }
        let place = crate::indices::one(index, self.length() as u64)?;
        Ok(self.item(py, usize::try_from(place)?)?.into_any())
    }

    fn __contains__(&self, value: &Bound<'_, PyAny>) -> bool {
        Payload::of(value).is_ok_and(|value| self.count(value) > 0)
    }

    /// How many records equal `value`.
    fn count(&self, value: Payload) -> usize {
        self.records().filter(|record| *record.data() == *value).count()
    }

    /// The index of the first record at or after `start` that equals `value`.
    #[pyo3(signature = (value, start = 0, stop = None))]
    fn index(&self, value: Payload, start: isize, stop: Option<isize>) -> PyResult<usize> {
        let length = isize::try_from(self.length())?;
        let clamp = |at: isize| if at < 0 { at.saturating_add(length).max(0) } else { at.min(length) };
        let (start, stop) = (usize::try_from(clamp(start))?, usize::try_from(clamp(stop.unwrap_or(length)))?);
        let equal = |&index: &usize| self.record(index).is_some_and(|record| *record.data() == *value);
        (start..stop)
            .find(equal)
            .ok_or_else(|| PyValueError::new_err("no record of the batch equals the value"))
    }

    fn __repr__(&self) -> String {
        format!("<Batch of {} records, {} bytes>", self.length(), self.buffer.len())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let make = py.import("anyrec._anyrec")?.getattr("batch_from_parts")?;
        let offsets: Vec<u8> = slf.get().offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
        let mut parts = vec![bytes_to(py, &slf.get().buffer)?.into_any(), bytes_to(py, &offsets)?.into_any()];
        if let Some(origin) = &slf.get().origin {
            parts.push(origin.indices.clone().into_bound_py_any(py)?);
            parts.push(origin.label_list(py)?.into_bound_py_any(py)?);
            parts.push(origin.padding.into_bound_py_any(py)?);
        } else {
            parts.extend([py.None().into_bound(py), py.None().into_bound(py), 0u64.into_bound_py_any(py)?]);
        }
        if let Some((home, _)) = &slf.get().home {
            parts.push(home.parts().into_bound_py_any(py)?);
        }
        Ok((make, PyTuple::new(py, parts)?))
    }

    /// The batch in a notebook.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("anyrec._html")?.call_method1("batch", (slf,))
    }

    /// The records' numbers, for a batch from a loader. `None` for any other batch.
    #[getter]
    fn indices<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<i64>>>> {
        self.origin.as_ref().map(|origin| numbers_to(py, &origin.indices)).transpose()
    }

    /// The records' labels, for a batch from a loader with labels. An array with NaN for records
    /// without a label, two-dimensional if every record has several labels, or a list if their
    /// numbers differ.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.origin.as_ref().and_then(|origin| origin.labels.as_ref()) {
            Some(labels) => labels_to(py, labels).map(Some),
            None => Ok(None),
        }
    }

    /// The number of the first record without a label, for a batch from a loader with labels.
    #[getter]
    #[pyo3(name = "_unlabelled")]
    fn unlabelled(&self) -> Option<u64> {
        let origin = self.origin.as_ref()?;
        let missing = |label: &Option<Label>| !label.as_ref().is_some_and(is_known);
        let at = origin.labels.as_ref()?.iter().position(missing)?;
        origin.indices.get(at).copied()
    }

    /// For a batch from a loader: how many records at the end only pad the last batch of an epoch,
    /// so that all ranks have equally many.
    #[getter]
    fn padding(&self) -> u64 {
        self.origin.as_ref().map_or(0, |origin| origin.padding)
    }

    /// The bytes of all records, back to back, as a read-only array.
    #[getter]
    fn buffer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        array_over(&Bound::new(py, Record::new(self.buffer.clone()))?)
    }

    /// The offset of each record in the buffer, followed by the end of the last record.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        numbers_to(py, &self.offsets)
    }

    /// The total number of bytes of all records.
    #[getter]
    fn nbytes(&self) -> usize {
        self.buffer.len()
    }

    /// The records as read-only `uint8` arrays over the shared buffer, without a copy. Those of IDX
    /// files have their shape and type, see `Record.numpy`.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all = self.buffer(py)?;
        let arrays = (0..self.length()).map(|index| {
            let (begin, end) = self.span(index).unwrap_or_default();
            let array = all.get_item(PySlice::new(py, isize::try_from(begin)?, isize::try_from(end)?, 1))?;
            match &self.home {
                Some((home, _)) => home.shaped(array),
                None => Ok(array),
            }
        });
        list_of(py, arrays)
    }

    /// The records as `bytes`, each a copy.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        list_of(py, self.records().map(|record| bytes_to(py, record.data())))
    }
}

impl Origin {
    fn label_list<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Option<Bound<'py, PyAny>>>>> {
        let one = |label: &Option<Label>| label.clone().map(|label| label_to(py, label)).transpose();
        self.labels.as_ref().map(|labels| labels.iter().map(one).collect()).transpose()
    }
}

/// Offsets or record numbers as a NumPy array.
pub fn numbers_to<'py>(py: Python<'py>, numbers: &[u64]) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let numbers = numbers.iter().map(|&number| i64::try_from(number));
    Ok(numbers.collect::<Result<Vec<_>, _>>()?.into_pyarray(py))
}

/// Rebuilds a batch from its buffer, its offsets (as little-endian bytes) and its origin, for
/// unpickling.
#[pyfunction]
#[pyo3(signature = (buffer, offsets, indices = None, labels = None, padding = 0, home = None))]
pub fn batch_from_parts(
    buffer: Payload,
    offsets: Payload,
    indices: Option<Many<u64>>,
    labels: Option<Many<Option<Bound<'_, PyAny>>>>,
    padding: u64,
    home: Option<(bool, PickledItem)>,
) -> PyResult<Batch> {
    let (chunks, rest) = offsets.as_chunks();
    let offsets: Vec<u64> = chunks.iter().map(|&chunk| u64::from_le_bytes(chunk)).collect();
    let sorted = offsets.is_sorted() && offsets.first() == Some(&0) && rest.is_empty();
    if !sorted || offsets.last() != Some(&(buffer.len() as u64)) {
        return Err(PyValueError::new_err("the offsets do not match the buffer"));
    }
    let one = |label: &Option<Bound<'_, PyAny>>| label.as_ref().map(label_from).transpose();
    let labels = labels.map(|labels| labels.0.iter().map(one).collect::<PyResult<Vec<_>>>()).transpose()?;
    let origin = indices.map(|indices| Origin { indices: indices.0, labels, padding });
    let home = home.map(|(payloads, item)| Ok::<_, PyErr>(Home::pickled(payloads, item_from(item)?)));
    let home = home.transpose()?.map(|home| (home, Vec::new()));
    Ok(Batch { buffer: buffer.into_bytes(), offsets, origin, home })
}
