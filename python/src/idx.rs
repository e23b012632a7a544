//! Whole IDX files as NumPy arrays.

use crate::options::{open_options, write_options};
use crate::progress::done;
use crate::record::{Record, array_over};
use crate::sequences::Many;
use anyrec::ElementType;
use anyrec::format::idx::{self, Array, Element, Reader, write_array};
use anyrec::format::{RecordReader, WriteOptions};
use numpy::{IntoPyArray, PyArrayDyn, PyArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::path::{Path, PathBuf};

/// The array in a file, in native byte order, in memory of its own. With `mapped`, if the elements
/// are single bytes and the file can be mapped, it is a read-only view of the mapped file.
#[pyfunction]
#[pyo3(signature = (path, options = None, mapped = false))]
pub fn idx_read<'py>(
    py: Python<'py>,
    path: PathBuf,
    options: Option<&Bound<'py, PyDict>>,
    mapped: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (options, _) = open_options(options)?;
    let reader = done(py, || Reader::open(&path, &options))?;
    let lendable = matches!(reader.header().dtype(), ElementType::U8 | ElementType::I8)
        && !reader.is_gzip()
        && reader.source().lendable().is_some();
    if mapped && lendable {
        let data = done(py, || reader.data())?;
        let array = array_over(&Bound::new(py, Record::new(data))?)?;
        let array = array.call_method1("view", (reader.header().dtype().name(),))?;
        return array.call_method1("reshape", (PyTuple::new(py, reader.header().shape())?,));
    }
    let array = done(py, || reader.array())?;
    Ok(match array {
        Array::U8(array) => array.into_pyarray(py).into_any(),
        Array::I8(array) => array.into_pyarray(py).into_any(),
        Array::I16(array) => array.into_pyarray(py).into_any(),
        Array::I32(array) => array.into_pyarray(py).into_any(),
        Array::F32(array) => array.into_pyarray(py).into_any(),
        Array::F64(array) => array.into_pyarray(py).into_any(),
        _ => return Err(PyTypeError::new_err("NumPy does not have this element type")),
    })
}

/// Writes an array of `uint8`, `int8`, `int16`, `int32`, `float32` or `float64`, of any shape and
/// byte order. Returns the size of the file in bytes.
#[pyfunction]
#[pyo3(signature = (path, array, options = None))]
pub fn idx_write(
    py: Python<'_>,
    path: PathBuf,
    array: &Bound<'_, PyAny>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<u64> {
    let options = write_options(&idx::FORMAT, options)?;
    let name: String = array.getattr("dtype")?.getattr("name")?.extract()?;
    match ElementType::from_name(&name) {
        Some(ElementType::U8) => write::<u8>(py, &path, array, &options),
        Some(ElementType::I8) => write::<i8>(py, &path, array, &options),
        Some(ElementType::I16) => write::<i16>(py, &path, array, &options),
        Some(ElementType::I32) => write::<i32>(py, &path, array, &options),
        Some(ElementType::F32) => write::<f32>(py, &path, array, &options),
        Some(ElementType::F64) => write::<f64>(py, &path, array, &options),
        _ => Err(PyTypeError::new_err(format!(
            "IDX files hold uint8, int8, int16, int32, float32 or float64, not {name}: convert the array first, \
             for example with .astype(np.uint8)"
        ))),
    }
}

fn write<T: Element + numpy::Element>(
    py: Python<'_>,
    path: &Path,
    array: &Bound<'_, PyAny>,
    options: &WriteOptions,
) -> PyResult<u64> {
    // A copy in native byte order that no other thread can change.
    let native = array.call_method1("astype", (T::TYPE.name(),))?;
    let owned = native.cast_into::<PyArrayDyn<T>>().map_err(PyErr::from)?.to_owned_array();
    let written = done(py, || write_array(path, &owned, options))?;
    Ok(written.bytes)
}

/// The splits among a folder's files, each with its file of images. `None` unless all are files of
/// images and labels.
#[pyfunction]
pub fn idx_splits(files: Many<PathBuf>) -> Option<Vec<(String, PathBuf)>> {
    idx::splits(&files.0)
}
