//! Sequences from and for Python, whatever length they claim.

use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyRange, PySequence, PyString};

/// Signals are checked once per this many items.
const OFTEN: usize = 4096;

/// A list that grows item by item. Running out of memory raises `MemoryError`, and Ctrl-C is
/// handled.
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

/// The items of a sequence. The claimed length is not trusted: an object's `__len__` may return
/// anything.
pub struct Many<T>(pub Vec<T>);

impl<'a, 'py, T: FromPyObjectOwned<'py>> FromPyObject<'a, 'py> for Many<T> {
    type Error = PyErr;

    fn extract(items: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if items.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("expected a list, not a str"));
        }
        items.cast::<PySequence>()?;
        let mut all = Growing::new();
        if items.is_exact_instance_of::<PyRange>() {
            // The length of a range is reliable: one that does not fit in memory is refused at
            // once.
            all.reserve(items.len()?)?;
        }
        for item in items.try_iter()? {
            all.push(items.py(), item?.extract().map_err(Into::into)?)?;
        }
        Ok(Many(all.into_vec()))
    }
}

/// Builds a Python list from objects created one by one.
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

/// Creates Python `bytes`. `PyBytes::new` would panic when out of memory.
pub fn bytes_to<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let length = ffi::Py_ssize_t::try_from(data.len())?;
    // SAFETY: the bytes are copied from a slice of that length. The result is a new reference to a
    // `bytes` object, or null with an exception set.
    let made = unsafe {
        let made = ffi::PyBytes_FromStringAndSize(data.as_ptr().cast(), length);
        Bound::from_owned_ptr_or_err(py, made)
    }?;
    Ok(made.cast_into()?)
}
