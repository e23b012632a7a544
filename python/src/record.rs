//! `Record`: the bytes of one record, passed to Python without a copy.

use crate::payload::Payload;
use crate::sequences::bytes_to;
use anyrec::Bytes;
use pyo3::exceptions::PyIndexError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PySlice, PyTuple, PyType};
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One record: bytes that are not copied unless you request it.
///
/// Anything that takes a bytes-like object takes a record: `numpy.frombuffer`, `io.BytesIO`,
/// `pickle.loads`, `torch.frombuffer`, `hashlib`, `open(..., "wb").write`. A record equals `bytes`
/// with the same content. It never changes, and it stays valid after its dataset is closed.
///
/// >>> from anyrec import Record
/// >>> record = Record(b"some bytes")
/// >>> len(record), record[0], bytes(record[5:]), record == b"some bytes"
/// (10, 115, b'bytes', True)
/// >>> memoryview(record).readonly
/// True
#[pyclass(frozen, sequence, module = "anyrec")]
pub struct Record {
    memory: Bytes,
    /// Its range in the memory. Atomic because [`move_to`](Record::move_to) changes it, for a
    /// record that has no other references.
    begin: AtomicUsize,
    end: AtomicUsize,
}

impl Record {
    /// Creates a record from these bytes.
    pub fn new(data: Bytes) -> Self {
        let whole = 0..data.len();
        Record::within(data, whole)
    }

    /// A record at this range of shared memory.
    pub fn within(memory: Bytes, place: Range<usize>) -> Self {
        Record { memory, begin: place.start.into(), end: place.end.into() }
    }

    /// Turns this into another record of the same memory. Only for a record without other
    /// references: a record never changes for its users.
    pub fn move_to(&self, place: Range<usize>) {
        self.begin.store(place.start, Ordering::Relaxed);
        self.end.store(place.end, Ordering::Relaxed);
    }

    /// Whether it lies in that memory.
    pub fn shares(&self, memory: &Bytes) -> bool {
        self.memory.as_ptr() == memory.as_ptr() && self.memory.len() == memory.len()
    }

    /// The bytes.
    pub fn data(&self) -> &[u8] {
        let place = self.begin.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed);
        self.memory.get(place).unwrap_or_default()
    }

    /// The bytes, shared.
    pub fn bytes(&self) -> Bytes {
        self.memory.slice_ref(self.data())
    }
}

/// Copies `data` into memory of its own: a slice of a decoded block would keep the whole block in
/// memory.
pub fn owned(data: Bytes) -> anyrec::Result<Bytes> {
    if data.is_unique() {
        return Ok(data);
    }
    let mut copy = Vec::new();
    let size = data.len();
    copy.try_reserve_exact(size).map_err(|_| anyrec::Error::out_of_memory(size as u64))?;
    copy.extend_from_slice(&data);
    Ok(copy.into())
}

#[pymethods]
impl Record {
    #[new]
    fn from_buffer(data: Payload) -> Self {
        Record::new(data.into_bytes())
    }

    fn __len__(&self) -> usize {
        self.data().len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            let length = isize::try_from(self.data().len())?;
            let range = slice.indices(length)?;
            let part = match (usize::try_from(range.start), range.step) {
                (Ok(start), 1) => {
                    let end = start.saturating_add(range.slicelength).min(self.data().len());
                    self.bytes().slice(start.min(end)..end)
                }
                (_, step) => (0..range.slicelength)
                    .filter_map(|at| {
                        let at = range.start.checked_add(step.checked_mul(isize::try_from(at).ok()?)?)?;
                        self.data().get(usize::try_from(at).ok()?).copied()
                    })
                    .collect(),
            };
            return Ok(Bound::new(py, Record::new(part))?.into_any());
        }
        let wanted: isize = index.extract()?;
        let at = if wanted < 0 { wanted.checked_add_unsigned(self.data().len()) } else { Some(wanted) };
        let byte = at.and_then(|at| usize::try_from(at).ok()).and_then(|at| self.data().get(at));
        match byte {
            Some(byte) => Ok(byte.into_pyobject(py)?.into_any()),
            None => Err(PyIndexError::new_err(format!(
                "byte {wanted} is outside the record's {} bytes",
                self.data().len()
            ))),
        }
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        PyMemoryView::from(slf)?.call_method0("__iter__")
    }

    fn __contains__(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        slf.get().__bytes__(slf.py())?.contains(item)
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes_to(py, self.data())
    }

    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> Option<bool> {
        // For an object without a buffer, Python itself reports that they differ.
        Payload::of(other).ok().map(|other| *other == *self.data())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.__bytes__(py)?.hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        const SHOWN: usize = 32;
        let head = bytes_to(py, self.data().get(..SHOWN).unwrap_or(self.data()))?.repr()?;
        let rest = if self.data().len() > SHOWN { "..." } else { "" };
        Ok(format!("<Record of {} bytes: {head}{rest}>", self.data().len()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        Ok((py.get_type::<Record>(), PyTuple::new(py, [self.__bytes__(py)?])?))
    }

    /// # Safety
    /// Called by the interpreter with a view to fill in.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let data = slf.get().data();
        let length = ffi::Py_ssize_t::try_from(data.len())?;
        // SAFETY: `view` is the interpreter's. The bytes are never written (the view is read-only)
        // and live as long as the object, to which the view takes a reference.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                data.as_ptr().cast_mut().cast::<c_void>(),
                length,
                1,
                flags,
            )
        };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }

    /// The record as text.
    #[pyo3(signature = (encoding = "utf-8", errors = "strict"))]
    fn decode<'py>(&self, py: Python<'py>, encoding: &str, errors: &str) -> PyResult<Bound<'py, PyAny>> {
        self.__bytes__(py)?.call_method1("decode", (encoding, errors))
    }

    /// The record as a read-only `uint8` array, without a copy.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        array_over(slf)
    }
}

/// A read-only `uint8` array over a record's memory.
pub fn array_over<'py>(record: &Bound<'py, Record>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = record.py().import("numpy")?;
    numpy.call_method1("frombuffer", (record, numpy.getattr("uint8")?))
}
