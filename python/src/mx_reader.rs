//! `MxReader`: a `.rec` file as MXNet reads it.

use crate::errors::{closed, raised_with};
use crate::handle::Handle;
use crate::progress::done;
use crate::sequences::bytes_to;
use anyrec::format::mxnet::{self, IndexFile, Reader, RecordScan};
use anyrec::format::{Event, OpenOptions, RecordReader, Scan};
use anyrec::io::{Access, open_file};
use anyrec::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// Reads a `.rec` file in order, or from an offset on, like the original.
///
/// It fails where the original fails, and the exception's `original` is the original's message.
/// Reading then continues with the next intact record. A split record that is cut off by the end of
/// the file ends the iteration, as in the original.
#[pyclass(frozen, module = "anyrec._anyrec")]
pub struct MxReader {
    path: PathBuf,
    position: Handle<Position>,
}

/// A reader and its current position.
struct Position {
    reader: Reader,
    scan: RecordScan,
}

/// A failure, and the original's message for it.
type Fault = (Error, Option<String>);

impl Position {
    fn open(path: &std::path::Path) -> Result<Self> {
        let own = mxnet::OpenOptions::default().with_index_file(IndexFile::None);
        let options = OpenOptions::default().with(own);
        let reader = Reader::open(open_file(path, Access::Auto)?, &options)?;
        let scan = reader.scan_from(0)?;
        Ok(Position { reader, scan })
    }

    /// Fails if the path now names another file.
    fn check_still_named(&self) -> Result<()> {
        use anyrec::format::RecordReader;
        self.reader.source().check_still_named()
    }

    fn seek(&mut self, offset: u64) -> Result<()> {
        self.scan = self.reader.scan_from(offset)?;
        Ok(())
    }

    /// Passes the next record to `take`; `None` at the end.
    fn next<R>(&mut self, take: impl FnOnce(&[u8]) -> R) -> std::result::Result<Option<R>, Fault> {
        let plain = |error| (error, None);
        loop {
            match self.scan.next_event().map_err(plain)? {
                Event::Record(record) => return Ok(Some(take(record.data))),
                Event::Damage(damage) => {
                    let error = damage.into_error(self.reader.source().name());
                    match self.scan.original_message() {
                        Some(message) => return Err((error, Some(message))),
                        None => return Ok(None),
                    }
                }
                Event::End => return Ok(None),
                _ => {}
            }
        }
    }
}

impl MxReader {
    /// The next record, after seeking to an offset if one is given. This is one atomic step, so
    /// that threads that share the reader get the records they requested.
    fn next(&self, py: Python<'_>, offset: Option<u64>) -> PyResult<Option<Py<PyBytes>>> {
        let read = self.position.with_slot(py, |slot| {
            slot.as_mut().map(|position| {
                if let Some(offset) = offset {
                    position.seek(offset).map_err(|error| (error, None))?;
                }
                position.next(|record| Python::attach(|py| Ok(bytes_to(py, record)?.unbind())))
            })
        })?;
        let read = read.ok_or_else(|| closed("the reader"))?;
        read.map_err(|(error, original)| raised_with(error, original))?.transpose()
    }
}

#[pymethods]
impl MxReader {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let position = done(py, || Position::open(&path))?;
        Ok(MxReader { path, position: Handle::reader("the reader", position) })
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyBytes>>> {
        self.next(py, None)
    }

    /// The file's path.
    #[getter]
    fn path(&self) -> &std::ffi::OsStr {
        self.path.as_os_str()
    }

    /// Whether the reader is closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        self.position.is_closed(py)
    }

    /// The next record, or `None` at the end, however often it is called.
    fn read(&self, py: Python<'_>) -> PyResult<Option<Py<PyBytes>>> {
        self.next(py, None)
    }

    /// The record at an offset. Reading continues after it.
    fn read_at(&self, py: Python<'_>, offset: u64) -> PyResult<Py<PyBytes>> {
        self.next(py, Some(offset))?.ok_or_else(|| {
            let message = format!("no record begins at byte {offset}: the file ends there");
            let error = Error::new(anyrec::ErrorKind::OutOfRange, message);
            raised_with(error.in_file(&self.path).at(offset), None)
        })
    }

    /// The offset of the next record.
    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        self.position.with(py, |position| Ok(position.scan.tell()))
    }

    /// Fails if the path now names another file, because that file's index does not match this one.
    fn check_still_named(&self, py: Python<'_>) -> PyResult<()> {
        self.position.with(py, |position| position.check_still_named())
    }

    /// Moves to an offset, which should be that of a record.
    fn seek(&self, py: Python<'_>, offset: u64) -> PyResult<()> {
        self.position.with(py, |position| position.seek(offset))
    }

    /// Reopens the file and moves to its beginning.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let path = &self.path;
        let opened =
            self.position.with_slot(py, |slot| Position::open(path).map(|opened| *slot = Some(opened)))?;
        opened.map_err(crate::errors::raised)
    }

    /// Closes the file. Closing twice is allowed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.position.drop_value(py)
    }
}
