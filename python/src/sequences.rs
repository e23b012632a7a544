//! Sequences that Python hands in and gets, whatever they say about their length.

use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyRange, PySequence, PyString};

/// Signals are asked for once in so many items.
const OFTEN: usize = 4096;

/// A list that grows item by item: want of memory is Python's `MemoryError`, and Ctrl-C is heard.
pub struct Growing<T>(Vec<T>);

impl<T> Growing<T> {
    pub fn new() -> Self {
        Growing(Vec::new())
    }

    pub fn reserve(&mut self, more: usize) -> PyResult<()> {
        self.0.try_reserve(more).map_err(|_| PyMemoryError::new_err(()))
    }

    pub fn push(&mut self, py: Python<'_>, item: T) -> PyResult<()> {
        if self.0.len() % OFTEN == OFTEN - 1 {
            py.check_signals()?;
        }
        if self.0.len() == self.0.capacity() {
            self.reserve(1)?;
        }
        self.0.push(item);
        Ok(())
    }

    pub fn extend(&mut self, items: &[T]) -> PyResult<()>
    where
        T: Copy,
    {
        self.reserve(items.len())?;
        self.0.extend_from_slice(items);
        Ok(())
    }

    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

/// The items of a sequence. The length that the sequence claims is not believed: an object's `__len__`
/// may say anything.
pub struct Many<T>(pub Vec<T>);

impl<'a, 'py, T: FromPyObjectOwned<'py>> FromPyObject<'a, 'py> for Many<T> {
    type Error = PyErr;

    fn extract(items: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if items.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("a list is wanted, not a str"));
        }
        items.cast::<PySequence>()?;
        let mut all = Growing::new();
        if items.is_exact_instance_of::<PyRange>() {
            // A range is as long as it says: one that does not fit in memory is refused at once.
            all.reserve(items.len()?)?;
        }
        for item in items.try_iter()? {
            all.push(items.py(), item?.extract().map_err(Into::into)?)?;
        }
        Ok(Many(all.into_vec()))
    }
}

/// A Python list of objects made one by one.
pub fn list_of<'py, T: PyTypeInfo>(
    py: Python<'py>,
    items: impl Iterator<Item = PyResult<Bound<'py, T>>>,
) -> PyResult<Bound<'py, PyList>> {
    let mut made = Growing::new();
    for item in items {
        made.push(py, item?)?;
    }
    PyList::new(py, made.into_vec())
}

/// Python's `bytes` of these; `PyBytes::new` would panic for want of memory.
pub fn bytes_to<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let length = ffi::Py_ssize_t::try_from(data.len())?;
    // SAFETY: the bytes are copied from a slice of that length; what comes back is a new reference to a
    // `bytes`, or null with an exception set.
    let made = unsafe {
        let made = ffi::PyBytes_FromStringAndSize(data.as_ptr().cast(), length);
        Bound::from_owned_ptr_or_err(py, made)
    }?;
    Ok(made.cast_into()?)
}
