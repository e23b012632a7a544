//! `MxWriter`: a `.rec` file as MXNet writes it.

use crate::errors::raised;
use crate::handle::Handle;
use crate::options;
use crate::payload::Payload;
use crate::progress::done;
use anyrec::Key;
use anyrec::format::WriteOptions;
use anyrec::format::mxnet::{self, IndexFile, Writer};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a `.rec` file, which is published (or replaces the old one) when it is closed, together
/// with its index file if one is given.
#[pyclass(frozen, module = "anyrec._anyrec")]
pub struct MxWriter {
    path: PathBuf,
    count: AtomicU64,
    writer: Handle<Writer>,
}

#[pymethods]
impl MxWriter {
    #[new]
    #[pyo3(signature = (path, *, index = None, overwrite = true, durability = "machine"))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        index: Option<PathBuf>,
        overwrite: bool,
        durability: &str,
    ) -> PyResult<Self> {
        let index = index.map_or(IndexFile::None, IndexFile::At);
        let own = mxnet::WriteOptions::default().with_index_file(index);
        let options = WriteOptions::default()
            .with_overwrite(overwrite)
            .with_durability(options::durability(durability)?)
            .with(own);
        let writer = done(py, || Writer::create(&path, &options))?;
        Ok(MxWriter { path, count: AtomicU64::new(0), writer: Handle::writer("the writer", writer) })
    }

    /// The path that the file is published under when the writer is closed.
    #[getter]
    fn path(&self) -> &std::ffi::OsStr {
        self.path.as_os_str()
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

    /// Appends a record and returns its offset. If a key is given, adds its line to the index file.
    #[pyo3(signature = (data, key = None))]
    fn write(&self, py: Python<'_>, data: Payload, key: Option<Vec<u8>>) -> PyResult<u64> {
        let key = key.map(|key| Key::Text(key.into()));
        let offset = self.writer.append(py, data.len(), |writer| match &key {
            Some(key) => writer.write_with_key(key, &data),
            None => writer.write(&data),
        })?;
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(offset)
    }

    /// The offset at which the next record will begin.
    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        self.writer.with(py, |writer| Ok(writer.tell()))
    }

    /// Completes the file and publishes it. Closing twice is allowed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.writer.with_slot(py, |slot| slot.take().map(Writer::finish))? {
            Some(written) => written.map(drop).map_err(raised),
            None => Ok(()),
        }
    }

    /// Discards everything: no file is published, and an old one is kept.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.writer.drop_value(py)
    }
}
