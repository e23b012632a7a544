//! MXNet's index files and image headers.

use crate::errors::raised;
use crate::payload::Payload;
use crate::progress::{self, done};
use crate::sequences::bytes_to;
use crate::values::{key_from, key_to, label_from};
use anyrec::Label;
use anyrec::RecordFile;
use anyrec::format::OpenOptions;
use anyrec::format::mxnet::{ImageHeader, Index, LabelWidth, append_line};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// Key and offset of each line.
type Entries<'py> = Vec<(Bound<'py, PyAny>, u64)>;

fn entries<'py>(py: Python<'py>, index: &Index) -> PyResult<Entries<'py>> {
    index.keys().zip(index.offsets()).map(|(key, &offset)| Ok((key_to(py, &key)?, offset))).collect()
}

/// The lines of an index file as (key, offset), in order, repeated keys included. Keys are numbers
/// if all of them are, else text.
#[pyfunction]
#[pyo3(signature = (text, name = "index file"))]
pub fn parse_index<'py>(py: Python<'py>, text: Payload, name: &str) -> PyResult<Entries<'py>> {
    let index = done(py, || Index::parse(name, &text, None))?;
    entries(py, &index)
}

/// The line of an index file for a key and an offset.
#[pyfunction]
pub fn index_line<'py>(
    py: Python<'py>,
    key: &Bound<'py, PyAny>,
    offset: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut line = Vec::new();
    append_line(&mut line, &key_from(key)?, offset).map_err(raised)?;
    bytes_to(py, &line)
}

/// The index of a `.rec` file, rebuilt from its records: the lines as (key, offset), and the origin
/// of the keys.
#[pyfunction]
pub fn rebuild_index(py: Python<'_>, path: PathBuf) -> PyResult<(Entries<'_>, String)> {
    let rebuilt = progress::run(py, None, |tell| {
        let options = OpenOptions::default();
        Index::rebuild(&mut *RecordFile::open(&path, &options)?.scan(&options)?, tell)
    })?;
    Ok((entries(py, &rebuilt.index)?, rebuilt.reason))
}

fn width(wide: bool) -> LabelWidth {
    if wide { LabelWidth::Wide } else { LabelWidth::Narrow }
}

/// The header of an image record, with the labels that follow it.
#[pyfunction]
#[pyo3(signature = (label, id, id2 = 0, *, wide = false))]
pub fn pack_header<'py>(
    py: Python<'py>,
    label: &Bound<'py, PyAny>,
    id: u64,
    id2: u64,
    wide: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut header = ImageHeader::new(label_from(label)?, id);
    header.id2 = id2;
    bytes_to(py, &header.to_bytes(width(wide)).map_err(raised)?)
}

/// The flag, the label (a float, or a read-only array of several), both ids, and the length of the
/// header with its labels.
#[pyfunction]
#[pyo3(signature = (record, *, wide = false))]
pub fn unpack_header<'py>(
    py: Python<'py>,
    record: Payload,
    wide: bool,
) -> PyResult<(u64, Bound<'py, PyAny>, u64, u64, usize)> {
    let (header, payload) = ImageHeader::unpack(&record, width(wide)).map_err(raised)?;
    let flag = header.flag();
    let label = match header.label {
        Label::Scalar(label) => label.into_bound_py_any(py)?,
        Label::Array(labels) if wide => read_only(PyArray1::from_vec(py, labels).into_any())?,
        Label::Array(_) => {
            let labels = PyArray1::from_vec(py, header.labels().to_vec());
            read_only(labels.cast_array::<f32>(false)?.into_any())?
        }
    };
    Ok((flag, label, header.id, header.id2, record.len() - payload.len()))
}

fn read_only(array: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    array.call_method1("setflags", (false,))?;
    Ok(array)
}
