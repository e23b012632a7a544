//! `FfWriter`: an FFRecord file, sample by sample.

use crate::errors::raised;
use crate::handle::Handle;
use crate::payload::Payload;
use crate::progress::done;
use anyrec::format::WriteOptions;
use anyrec::format::ffrecord::Writer;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes an FFRecord file, which appears (or is replaced) when it is closed.
#[pyclass(frozen, module = "anyrec._anyrec")]
pub struct FfWriter {
    path: PathBuf,
    n: Option<u64>,
    count: AtomicU64,
    writer: Handle<Writer>,
}

#[pymethods]
impl FfWriter {
    #[new]
    #[pyo3(signature = (path, n = None, *, overwrite = true))]
    fn new(py: Python<'_>, path: PathBuf, n: Option<u64>, overwrite: bool) -> PyResult<Self> {
        let mut options = WriteOptions::default();
        options.overwrite = overwrite;
        options.count = n;
        let writer = done(py, || Writer::create(&path, &options))?;
        Ok(FfWriter { path, n, count: AtomicU64::new(0), writer: Handle::writer("the writer", writer) })
    }

    /// The file's name, which it gets when the writer is closed.
    #[getter]
    fn path(&self) -> &std::ffi::OsStr {
        self.path.as_os_str()
    }

    /// The number of samples that was announced.
    #[getter]
    fn n(&self) -> Option<u64> {
        self.n
    }

    /// Samples written so far.
    #[getter]
    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether the writer was closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        self.writer.is_closed(py)
    }

    /// Adds a sample (a buffer's bytes, whatever its shape and type) and says its number.
    fn write_one(&self, py: Python<'_>, data: Payload) -> PyResult<u64> {
        let number = self.writer.with(py, |writer| writer.append(&data))?;
        self.count.store(number + 1, Ordering::Relaxed);
        Ok(number)
    }

    /// Completes the file and gives it its name; a second time is fine. With too few samples this
    /// fails, more may be written then, and the file closed again.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let written = self.writer.with_slot(py, |slot| {
            if let Some(writer) = slot {
                writer.check_complete()?;
            }
            slot.take().map(Writer::finish).transpose()
        })?;
        written.map(drop).map_err(raised)
    }

    /// Drops everything: no file appears, and an old one stays.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.writer.drop_value(py)
    }
}
