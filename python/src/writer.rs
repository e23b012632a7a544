//! `Writer`: writes records to a new file of any format.

use crate::errors::{closed, raised};
use crate::handle::Handle;
use crate::options::write_options;
use crate::payload::Payload;
use crate::progress::done;
use crate::values::{key_from, label_from};
use anyrec::format::RecordWriter;
use anyrec::{Tags, format};
use pyo3::prelude::*;
use pyo3::types::PyDict;
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
        let options = write_options(format, options)?;
        let writer = done(py, || format.create(&path, &options))?;
        Ok(Writer {
            path,
            format: format.id(),
            count: AtomicU64::new(0),
            writer: Handle::writer("the writer", writer),
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
        let data = Payload::of_text_or_bytes(data)?;
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
