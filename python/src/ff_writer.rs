//! `FfWriter`: writes an FFRecord file, sample by sample.

use crate::errors::raised;
use crate::handle::Handle;
use crate::options;
use crate::payload::Payload;
use crate::progress::done;
use anyrec::format::WriteOptions;
use anyrec::format::ffrecord::Writer;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes an FFRecord file, which is published (or replaces the old one) when it is closed.
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
    #[pyo3(signature = (path, n = None, *, overwrite = true, durability = "machine"))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        n: Option<u64>,
        overwrite: bool,
        durability: &str,
    ) -> PyResult<Self> {
        let mut options = WriteOptions::default().with_durability(options::durability(durability)?);
        options.overwrite = overwrite;
        options.count = n;
        let writer = done(py, || Writer::create(&path, &options))?;
        Ok(FfWriter { path, n, count: AtomicU64::new(0), writer: Handle::writer("the writer", writer) })
    }

    /// The path that the file is published under when the writer is closed.
    #[getter]
    fn path(&self) -> &std::ffi::OsStr {
        self.path.as_os_str()
    }

    /// The declared number of samples.
    #[getter]
    fn n(&self) -> Option<u64> {
        self.n
    }

    /// Samples written so far.
    #[getter]
    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether the writer is closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        self.writer.is_closed(py)
    }

    /// Appends a sample (the bytes of a buffer of any shape and type) and returns its number.
    fn write_one(&self, py: Python<'_>, data: Payload) -> PyResult<u64> {
        let number = self.writer.append(py, data.len(), |writer| writer.append(&data))?;
        self.count.store(number + 1, Ordering::Relaxed);
        Ok(number)
    }

    /// Completes the file and publishes it. Closing twice is allowed. With too few samples this
    /// fails; you can then write more and close the file again.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let written = self.writer.with_slot(py, |slot| {
            if let Some(writer) = slot {
                writer.check_complete()?;
            }
            slot.take().map(Writer::finish).transpose()
        })?;
        written.map(drop).map_err(raised)
    }

    /// Discards everything: no file is published, and an old one is kept.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.writer.drop_value(py)
    }
}
