//! `GrailScanner`: the items of a GRAIL recordio file.

use crate::handle::Handle;
use crate::options::open_options;
use crate::progress::done;
use crate::record::Record;
use crate::sequences::bytes_to;
use crate::values::header_to;
use anyrec::format::grail::Scanner;
use anyrec::io::open_file;
use anyrec::{Bytes, Position};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;

/// Yields the items of a GRAIL recordio file, or of a shard of it, in order.
///
/// A shard is (start, limit, of): the parts [start, limit) when the file is divided into `of` equal
/// parts.
#[pyclass(frozen, subclass, module = "anyrec._anyrec")]
pub struct GrailScanner {
    path: PathBuf,
    scanner: Handle<Scanner>,
}

#[pymethods]
impl GrailScanner {
    #[new]
    #[pyo3(signature = (path, shard = None, options = None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        shard: Option<(i64, i64, i64)>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (options, _) = open_options(options)?;
        let scanner = done(py, || {
            let source = open_file(&path, options.access)?;
            match shard {
                Some((start, limit, of)) => Scanner::new_shard(source, &options, start, limit, of),
                None => Scanner::new(source, &options),
            }
        })?;
        Ok(GrailScanner { path, scanner: Handle::reader("the scanner", scanner) })
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        let item = self.scanner.with(py, |scanner| Ok(scanner.next_item()?.map(Bytes::copy_from_slice)))?;
        Ok(item.map(Record::new))
    }

    /// The file's path.
    #[getter]
    fn path(&self) -> &std::ffi::OsStr {
        self.path.as_os_str()
    }

    /// The format version: 2, 1 for legacy files, or 0 for an empty file.
    #[getter]
    fn version(&self, py: Python<'_>) -> PyResult<u32> {
        self.scanner.with(py, |scanner| Ok(scanner.version()))
    }

    /// The header's pairs, in order; empty for legacy files.
    #[getter]
    fn header<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let pairs = self.scanner.with(py, |scanner| Ok(scanner.header().pairs().to_vec()))?;
        header_to(py, &pairs)
    }

    /// The trailer, or `None` if the header declares none.
    #[getter]
    fn trailer<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let trailer = self.scanner.with(py, |scanner| scanner.trailer())?;
        trailer.map(|trailer| bytes_to(py, &trailer)).transpose()
    }

    /// The location of the last item returned, as `seek` takes it.
    #[getter]
    fn location(&self, py: Python<'_>) -> PyResult<Option<(u64, u64)>> {
        let location = self.scanner.with(py, |scanner| Ok(scanner.location()))?;
        Ok(location.map(|location| (location.frame, location.item)))
    }

    /// Whether the scanner is closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        self.scanner.is_closed(py)
    }

    /// Moves to a location, so that its item is returned next.
    fn seek(&self, py: Python<'_>, location: (u64, u64)) -> PyResult<()> {
        let (frame, item) = location;
        self.scanner.with(py, |scanner| scanner.seek(Position { frame, item }))
    }

    /// Closes the file. Closing twice is allowed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.scanner.drop_value(py)
    }
}
