//! `GrailWriter`: writes GRAIL recordio files, item by item.

use crate::errors::{carried, closed, raised};
use crate::handle::Handle;
use crate::options::write_options;
use crate::payload::Payload;
use crate::progress::done;
use crate::sequences::Many;
use crate::values::{text_from, value_from};
use anyrec::format::grail::{self, Writer};
use anyrec::{Position, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Items whose position is not known yet, oldest first.
type Pending = Arc<Mutex<VecDeque<Py<PyAny>>>>;

/// Writes a GRAIL recordio file of version 2, which is published when it is closed.
///
/// `index` is called with (location, item) for every item once its location is known, in order, on
/// the thread that appends, waits or closes.
#[pyclass(frozen, subclass, module = "anyrec._anyrec")]
pub struct GrailWriter {
    path: PathBuf,
    count: AtomicU64,
    /// Kept only if there is an index callback to pass them to.
    pending: Option<Pending>,
    /// A trailer is declared in case one is set, and the declaration is removed if none is.
    perhaps_trailer: bool,
    writer: Handle<State>,
}

struct State {
    writer: Writer<'static>,
    has_trailer: bool,
}

#[pymethods]
impl GrailWriter {
    #[new]
    #[pyo3(signature = (path, options = None, index = None, skip_header = false))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        options: Option<&Bound<'_, PyDict>>,
        index: Option<Py<PyAny>>,
        skip_header: bool,
    ) -> PyResult<Self> {
        let told = options.is_some_and(|options| options.contains("trailer").unwrap_or(false));
        let mut options = write_options(&grail::FORMAT, options)?;
        let perhaps_trailer = !told && !skip_header;
        let mut own: grail::WriteOptions = options.own();
        own.trailer |= perhaps_trailer;
        options.set(own);
        let pending: Option<Pending> = index.as_ref().map(|_| Pending::default());
        let writer = done(py, || -> Result<_> {
            let mut writer = Writer::create(&path, &options)?;
            if skip_header {
                writer.skip_header()?;
            }
            if let (Some(index), Some(pending)) = (index, pending.clone()) {
                writer.on_index(move |_, position| tell(&index, &pending, position))?;
            }
            Ok(writer)
        })?;
        let state = State { writer, has_trailer: false };
        Ok(GrailWriter {
            path,
            count: AtomicU64::new(0),
            pending,
            perhaps_trailer,
            writer: Handle::writer("the writer", state),
        })
    }

    /// The path that the file is published under when the writer is closed.
    #[getter]
    fn path(&self) -> &std::ffi::OsStr {
        self.path.as_os_str()
    }

    /// Items appended so far.
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

    /// Adds a pair to the header, before the first item. A key may be added again: both pairs are
    /// kept.
    fn add_header(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let key =
            text_from(key).unwrap_or_else(|| Err(PyTypeError::new_err("a header key is str or bytes")))?;
        let value = value_from(value)?;
        self.writer.with(py, |state| state.writer.add_header(key, value))
    }

    /// Adds an item.
    fn append(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<()> {
        let data = Payload::of(item)?;
        let kept = self.pending.as_ref().map(|pending| (pending, item.clone().unbind()));
        self.writer.with(py, |state| {
            // Under the writer's lock, so that the order is that of the items.
            if let Some((pending, item)) = kept {
                pending.lock().unwrap_or_else(PoisonError::into_inner).push_back(item);
            }
            state.writer.append(&data)
        })?;
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the block, so that the next item begins a new one.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.writer.with(py, |state| state.writer.flush())
    }

    /// Waits until all ended blocks are written and their index callbacks have been called.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        self.writer.with(py, |state| state.writer.wait())
    }

    /// Sets the trailer, after the last item. What the index callback collects is complete by then
    /// if `flush` and `wait` were called before.
    fn set_trailer(&self, py: Python<'_>, trailer: Payload) -> PyResult<()> {
        self.writer.with(py, |state| {
            state.writer.set_trailer(&trailer)?;
            state.has_trailer = true;
            Ok(())
        })
    }

    /// Completes the file and publishes it. Returns the notices.
    fn close(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let withdraw = self.perhaps_trailer;
        let written = self.writer.with_slot(py, |slot| {
            slot.take().map(|mut state| {
                if withdraw && !state.has_trailer {
                    state.writer.withdraw_trailer()?;
                }
                state.writer.finish()
            })
        })?;
        let written = written.ok_or_else(|| closed("the writer"))?.map_err(raised)?;
        Ok(written.notices.into_iter().map(|notice| notice.message).collect())
    }

    /// Discards everything: no file is published.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.writer.drop_value(py)
    }
}

/// Calls the index callback for the oldest pending item.
fn tell(index: &Py<PyAny>, pending: &Pending, position: Position) -> Result<()> {
    let item = pending.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    Python::attach(|py| {
        let item = item.unwrap_or_else(|| py.None());
        index.call1(py, ((position.frame, position.item), item)).map(drop)
    })
    .map_err(carried)
}

/// An upper bound on the size of a file with items of these sizes, packed into records of
/// `record_bytes` bytes.
#[pyfunction]
pub fn required_space(sizes: Many<u64>, record_bytes: u64) -> PyResult<u64> {
    grail::required_space(&sizes.0, record_bytes).map_err(raised)
}
