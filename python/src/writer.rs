//! `Writer`: writes records to a new file of any format.

use crate::errors::{closed, raised};
use crate::handle::Handle;
use crate::options::{dtype, write_options};
use crate::payload::Payload;
use crate::progress::done;
use crate::values::{key_from, label_from};
use anyrec::format::RecordWriter;
use anyrec::{ElementType, Tags, format};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Records up to this size are written without releasing the GIL, if that needs no system call.
const SMALL: usize = 16 << 10;

/// Writes records. The file is published when the writer is closed. `anyrec.create` returns one.
#[pyclass(frozen, subclass, module = "anyrec._anyrec")]
pub struct Writer {
    path: PathBuf,
    format: &'static str,
    count: AtomicU64,
    writer: Handle<Box<dyn RecordWriter>>,
    /// The element type, for a format whose records are arrays of one type and shape.
    element: Option<ElementType>,
}

/// An array's bytes as such a format stores them, which is big-endian. Other objects are returned
/// unchanged.
fn stored<'py>(data: &Bound<'py, PyAny>, element: ElementType) -> PyResult<Bound<'py, PyAny>> {
    let example = format!(".astype(np.{})", element.name());
    if data.is_instance_of::<PyList>() || data.is_instance_of::<PyTuple>() {
        return Err(PyTypeError::new_err(format!(
            "a record is an array or bytes, not a {}: convert it first, for example with np.array(...){example}",
            data.get_type().name()?
        )));
    }
    let Ok(dtype) = data.getattr("dtype") else { return Ok(data.clone()) };
    let name: String = match dtype.getattr("name") {
        Ok(name) => name.extract()?,
        Err(_) => {
            return Err(PyTypeError::new_err(format!(
                "a record is a NumPy array or bytes, not a {}: convert it first, for example with .numpy()",
                data.get_type().name()?
            )));
        }
    };
    if name != element.name() {
        return Err(PyTypeError::new_err(format!(
            "the file holds {}, not {name}: convert the array first, for example with {example}",
            element.name()
        )));
    }
    data.call_method1("astype", (dtype.call_method1("newbyteorder", (">",))?,))
}

#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (path, format, options = None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        format: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let format = format::named(format).map_err(raised)?;
        let element = match options.map(|options| options.get_item("dtype")).transpose()?.flatten() {
            _ if !format.capabilities().fixed_size => None,
            Some(given) if !given.is_none() => Some(dtype(&given)?),
            _ => Some(ElementType::U8),
        };
        let options = write_options(format, options)?;
        let writer = done(py, || format.create(&path, &options))?;
        Ok(Writer {
            path,
            format: format.id(),
            count: AtomicU64::new(0),
            writer: Handle::writer("the writer", writer),
            element,
        })
    }

    /// The path that the file is published under when the writer is closed.
    #[getter]
    fn path(&self) -> &std::ffi::OsStr {
        self.path.as_os_str()
    }

    /// The format's id.
    #[getter]
    fn format(&self) -> &'static str {
        self.format
    }

    /// Records written so far.
    #[getter]
    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether it belongs to the process that this one was forked from.
    #[getter]
    #[pyo3(name = "_is_anothers")]
    fn is_anothers(&self) -> bool {
        self.writer.is_anothers()
    }

    /// Whether the writer is closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        self.writer.is_closed(py)
    }

    /// Appends a record and returns its number. Text is written as UTF-8, arrays as their bytes.
    #[pyo3(signature = (data, *, key = None, label = None))]
    fn write(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        label: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let data = match self.element {
            Some(element) => Payload::of_text_or_bytes(&stored(data, element)?)?,
            None => Payload::of_text_or_bytes(data)?,
        };
        let mut tags = Tags::none();
        if let Some(key) = key {
            tags = tags.with_key(key_from(key)?);
        }
        if let Some(label) = label {
            tags = tags.with_label(label_from(label)?);
        }
        // Data that only goes into memory is written before another thread can run.
        let at_once = match data.len() <= SMALL {
            true => {
                self.writer.at_once(|writer| writer.has_room(data.len()).then(|| writer.append(&data, &tags)))
            }
            false => None,
        };
        let number = match at_once {
            Some(outcome) => outcome.map_err(raised)?,
            None => self.writer.with(py, |writer| writer.append(&data, &tags))?,
        };
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(number)
    }

    /// Sets the trailer (GRAIL), after the last record.
    fn set_trailer(&self, py: Python<'_>, trailer: Payload) -> PyResult<()> {
        self.writer.with(py, |writer| writer.set_trailer(&trailer))
    }

    /// Completes the file and publishes it. Returns notices about what could not be stored.
    fn close(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let written = self.writer.with_slot(py, |slot| slot.take().map(|writer| writer.finish()))?;
        let written = written.ok_or_else(|| closed("the writer"))?.map_err(raised)?;
        Ok(written.notices.into_iter().map(|notice| notice.message).collect())
    }

    /// Discards everything: no file is published.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.writer.drop_value(py)
    }
}
