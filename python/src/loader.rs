//! `Loader`: batches prefetched by threads.

use crate::batch::{Batch, numbers_to};
use crate::dataset::Dataset;
use crate::errors::{described, raised};
use crate::handle::Handle;
use crate::options::loader_options;
use crate::progress::done;
use crate::record::{Home, item_of};
use crate::sequences::Many;
use crate::values::labels_to;
use anyrec::BatchPool;
use anyrec::Label;
use anyrec::loader::{Loaded, Plan, State, Stats};
use anyrec::{Error, Result};
use anyrec::{RecordSet, Selection, Union};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// How often signals are checked while waiting for a batch.
const INTERVAL: Duration = Duration::from_millis(20);

/// One set of records: a dataset, and which of its records to use (default: all).
type Part<'py> = (Bound<'py, Dataset>, Option<Bound<'py, PyArray1<u64>>>);

/// Yields batches in the order of a plan, prefetched by threads. `anyrec.Loader` is built on it.
#[pyclass(frozen, module = "anyrec._anyrec")]
pub struct Loader {
    loader: Handle<anyrec::loader::Loader>,
    home: Arc<Home>,
}

#[pymethods]
impl Loader {
    #[new]
    #[pyo3(signature = (parts, options, weights = None, samples = None))]
    fn new(
        py: Python<'_>,
        parts: Many<Part<'_>>,
        options: &Bound<'_, PyDict>,
        weights: Option<Many<f64>>,
        samples: Option<u64>,
    ) -> PyResult<Self> {
        let (plan_options, options) = loader_options(options)?;
        let mut sources = Vec::new();
        for (dataset, indices) in parts.0 {
            let indices = indices.map(|indices| numbers_from(&indices)).transpose()?;
            sources.push((dataset.get().opened()?, indices));
        }
        let mut items = sources.iter().map(|(dataset, _)| item_of(dataset));
        let item = items.next().flatten().filter(|first| items.all(|item| item.as_ref() == Some(first)));
        let payloads = options.payloads;
        let make = move || -> Result<(anyrec::loader::Loader, Arc<dyn RecordSet>)> {
            let mut parts: Vec<Arc<dyn RecordSet>> = Vec::new();
            for (dataset, indices) in sources {
                parts.push(match indices {
                    Some(indices) => Arc::new(Selection::new(dataset, indices)?),
                    None => dataset,
                });
            }
            let (source, plan): (Arc<dyn RecordSet>, Plan) = match (weights, parts.pop()) {
                (None, Some(only)) if parts.is_empty() => {
                    let plan = Plan::new(only.count()?, &plan_options)?;
                    (only, plan)
                }
                (weights, last) => {
                    parts.extend(last);
                    let counts = parts.iter().map(|part| part.count()).collect::<Result<Vec<_>>>()?;
                    let weighted: Vec<(u64, f64)> = counts
                        .iter()
                        .copied()
                        .zip(weights.map(|weights| weights.0).unwrap_or_default())
                        .collect();
                    let samples = samples
                        .unwrap_or_else(|| counts.iter().fold(0, |sum, &count| sum.saturating_add(count)));
                    let plan = Plan::mix(&weighted, samples, &plan_options)?;
                    (Arc::new(Union::new(parts)?), plan)
                }
            };
            Ok((anyrec::loader::Loader::new(Arc::clone(&source), plan, options)?, source))
        };
        let (loader, set) = done(py, make)?;
        Ok(Loader {
            loader: Handle::reader("the loader", loader),
            home: Home::by_number(set, payloads, item),
        })
    }

    /// The number of batches in a whole epoch.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(usize::try_from(self.loader.with(py, |loader| Ok(loader.plan().steps(0)))?)?)
    }

    /// The number of batches left in the epoch.
    #[getter]
    fn left(&self, py: Python<'_>) -> PyResult<u64> {
        self.loader.with(py, |loader| Ok(loader.steps_left()))
    }

    /// The current epoch, or the next one.
    #[getter]
    fn epoch(&self, py: Python<'_>) -> PyResult<u64> {
        self.loader.with(py, |loader| Ok(loader.epoch()))
    }

    /// The number of completed steps in the epoch.
    #[getter]
    fn step(&self, py: Python<'_>) -> PyResult<u64> {
        self.loader.with(py, |loader| Ok(loader.step()))
    }

    /// How many records were skipped or replaced.
    #[getter]
    fn failed(&self, py: Python<'_>) -> PyResult<u64> {
        self.loader.with(py, |loader| Ok(loader.failed()))
    }

    /// What was done (in all, in the epoch), and the number of batches that are ready. Times are in
    /// seconds.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>, u64)> {
        let (total, epoch, queued) =
            self.loader.with(py, |loader| Ok((loader.stats(), loader.epoch_stats(), loader.queued())))?;
        Ok((counts(py, total)?, counts(py, epoch)?, queued))
    }

    /// The first hundred of them: (epoch, record, exception).
    #[getter]
    fn errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let failures = self.loader.with(py, |loader| Ok(loader.failures().to_vec()))?;
        let told = failures
            .iter()
            .map(|failure| Ok((failure.epoch, failure.record, described(py, &failure.error)?)))
            .collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, told)
    }

    /// The loader's state: (seed, epoch, samples consumed, order).
    fn state(&self, py: Python<'_>) -> PyResult<(u64, u64, u64, String)> {
        let State { seed, epoch, consumed, order, .. } = self.loader.with(py, |loader| Ok(loader.state()))?;
        Ok((seed, epoch, consumed, order))
    }

    /// Restores a saved state.
    fn resume(&self, py: Python<'_>, seed: u64, epoch: u64, consumed: u64, order: String) -> PyResult<()> {
        self.loader.with(py, move |loader| loader.resume(&State::new(seed, epoch, consumed, order)))
    }

    /// Moves to the beginning of an epoch, or stays in it if it was resumed.
    fn set_epoch(&self, py: Python<'_>, epoch: u64) -> PyResult<()> {
        self.loader.with(py, |loader| {
            loader.set_epoch(epoch);
            Ok(())
        })
    }

    /// Moves to a step of the epoch.
    fn set_step(&self, py: Python<'_>, step: u64) -> PyResult<()> {
        self.loader.with(py, |loader| {
            loader.set_step(step);
            Ok(())
        })
    }

    /// Skips batches of the epoch without reading them.
    fn skip(&self, py: Python<'_>, batches: u64) -> PyResult<()> {
        self.loader.with(py, |loader| {
            loader.skip(batches);
            Ok(())
        })
    }

    /// Begins an iteration: at the position that was resumed or set, or else at the next epoch.
    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        self.loader.with(py, |loader| {
            loader.begin();
            Ok(())
        })
    }

    /// The next batch, or `None` at the end of the epoch.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        Ok(self.wait(py)?.map(|(loaded, recycler)| Batch::loaded(loaded, &recycler, &self.home)))
    }

    /// The next batch as writable memory: (memory, offsets, indices, labels, padding).
    fn next_memory<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some((loaded, recycler)) = self.wait(py)? else { return Ok(None) };
        let Loaded { records, indices, labels, padding, .. } = loaded;
        let (offsets, indices) = (numbers_to(py, records.offsets())?, numbers_to(py, &indices)?);
        let labels = labels.map(|labels| labels_to(py, &labels)).transpose()?;
        let memory = Bound::new(py, Memory::new(records, recycler))?;
        Ok(Some((memory, offsets, indices, labels, padding).into_pyobject(py)?))
    }

    /// The next batch of images as writable memory, with labels of the given width (none if it is
    /// 0): (memory, indices, labels, ids, padding). With `classes`, a record's first label is the
    /// number of its class; with `wide`, labels are 64-bit floats instead of 32-bit ones.
    #[pyo3(signature = (label_width, classes = false, wide = false))]
    fn next_images<'py>(
        &self,
        py: Python<'py>,
        label_width: usize,
        classes: bool,
        wide: bool,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some((loaded, recycler)) = self.wait(py)? else { return Ok(None) };
        let Loaded { records, indices, labels, ids, padding, .. } = loaded;
        let labels = match labels {
            Some(labels) if classes => class_numbers(py, &labels, &indices)?,
            Some(labels) if label_width > 0 => labels_of_width(py, &labels, &indices, label_width, wide)?,
            _ => None,
        };
        let (indices, ids) = (numbers_to(py, &indices)?, ids.map(|ids| ids.into_pyarray(py)));
        let memory = Bound::new(py, Memory::new(records, recycler))?;
        Ok(Some((memory, indices, labels, ids, padding).into_pyobject(py)?))
    }

    /// Stops the threads and discards what was prefetched. The position is kept.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.loader.with(py, |loader| {
            loader.close();
            Ok(())
        })
    }
}

impl Loader {
    /// Waits for the next batch with the GIL released, and handles Ctrl-C.
    fn wait(&self, py: Python<'_>) -> PyResult<Option<(Loaded, BatchPool)>> {
        loop {
            let next = self.loader.with(py, |loader| {
                let next = loader.next_batch_within(INTERVAL)?;
                Ok(next.map(|next| next.map(|loaded| (loaded, loader.pool().clone()))))
            })?;
            match next {
                Poll::Ready(next) => return Ok(next),
                Poll::Pending => py.check_signals().inspect_err(|_| {
                    // The interruption takes precedence over an error from closing.
                    let _ = self.close(py);
                })?,
            }
        }
    }
}

fn counts(py: Python<'_>, stats: Stats) -> PyResult<Bound<'_, PyDict>> {
    let counts = PyDict::new(py);
    counts.set_item("batches", stats.batches)?;
    counts.set_item("records", stats.records)?;
    counts.set_item("bytes", stats.bytes)?;
    counts.set_item("failed", stats.failed)?;
    counts.set_item("waited", stats.waited.as_secs_f64())?;
    counts.set_item("loading", stats.loading.as_secs_f64())?;
    counts.set_item("decoding", stats.decoding.as_secs_f64())?;
    counts.set_item("ready", stats.ready)?;
    Ok(counts)
}

/// Record numbers from a NumPy array that is contiguous in memory.
fn numbers_from(array: &Bound<'_, PyArray1<u64>>) -> PyResult<Vec<u64>> {
    let refused = |error: &dyn std::fmt::Display| PyValueError::new_err(format!("record numbers: {error}"));
    if !array.data().is_aligned() {
        return Err(refused(&"not aligned in memory"));
    }
    let array = array.try_readonly().map_err(|error| refused(&error))?;
    Ok(array.as_slice().map_err(|error| refused(&error))?.to_vec())
}

/// Labels as an array of floats, two-dimensional if each record has several, which must then
/// be equally many. `None` if no record has a label.
fn labels_of_width<'py>(
    py: Python<'py>,
    labels: &[Option<Label>],
    indices: &[u64],
    width: usize,
    wide: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if labels.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut numbers = Vec::with_capacity(labels.len());
    for (label, &index) in labels.iter().zip(indices) {
        let one = match label {
            Some(Label::Scalar(number)) => std::slice::from_ref(number),
            Some(Label::Array(several)) => several,
            None => &[],
        };
        if one.len() != width {
            let error =
                Error::invalid("labels of a record").expected_found(width, one.len()).in_record(index);
            return Err(raised(
                error.with_hint("set label_width to the number of labels per record, or to 0 for none"),
            ));
        }
        numbers.extend_from_slice(one);
    }
    let array = match wide {
        true => numbers.into_pyarray(py).into_any(),
        false => {
            #[allow(clippy::cast_possible_truncation)] // image records hold labels as 32-bit floats
            let narrow: Vec<f32> = numbers.iter().map(|&number| number as f32).collect();
            narrow.into_pyarray(py).into_any()
        }
    };
    match width {
        1 => Ok(Some(array)),
        width => array.call_method1("reshape", (labels.len(), width)).map(Some),
    }
}

/// The first label of each record as a whole number. `None` if no record has a label.
fn class_numbers<'py>(
    py: Python<'py>,
    labels: &[Option<Label>],
    indices: &[u64],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if labels.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut classes = Vec::with_capacity(labels.len());
    for (label, &index) in labels.iter().zip(indices) {
        let first = match label {
            Some(Label::Scalar(number)) => Some(*number),
            Some(Label::Array(several)) => several.first().copied(),
            None => None,
        };
        // Of larger numbers, a 64-bit float does not hold every one.
        let whole = first.filter(|number| number.fract() == 0.0 && number.abs() < 9e15);
        #[allow(clippy::cast_possible_truncation)] // it is whole and fits
        classes.push(whole.map(|number| number as i64).ok_or_else(|| {
            let found = first.map_or("no label".to_owned(), |number| number.to_string());
            raised(
                Error::invalid("label of a record")
                    .expected_found("the number of a class", found)
                    .in_record(index)
                    .with_hint("label_width=0 leaves the labels out"),
            )
        })?);
    }
    Ok(Some(classes.into_pyarray(py).into_any()))
}

/// The records of a batch as writable memory, for tensors to be built on.
#[pyclass(frozen, module = "anyrec._anyrec")]
pub struct Memory {
    /// Points into `records`, which is accessed only through this pointer until it is returned.
    begin: *mut u8,
    length: usize,
    records: anyrec::Batch,
    recycler: BatchPool,
}

// SAFETY: the pointer is to memory of the `Vec` beside it, which may be used from any thread.
// Writers through the buffer protocol must synchronise among themselves, as with any buffer.
unsafe impl Send for Memory {}
// SAFETY: as above; no method reads or writes through a shared reference.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(mut records: anyrec::Batch, recycler: BatchPool) -> Self {
        let buffer = records.buffer_mut();
        let (begin, length) = (buffer.as_mut_ptr(), buffer.len());
        Memory { begin, length, records, recycler }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.recycler.give(std::mem::take(&mut self.records));
    }
}

#[pymethods]
impl Memory {
    fn __len__(&self) -> usize {
        self.length
    }

    /// # Safety
    /// Called by the interpreter with a view to fill in.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let this = slf.get();
        let length = ffi::Py_ssize_t::try_from(this.length)
            .map_err(|_| PyBufferError::new_err("the batch is too large for a buffer"))?;
        // SAFETY: `view` is the interpreter's. The memory lives as long as the object, to which the
        // view takes a reference, and no Rust reference to it exists during that time.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), this.begin.cast::<c_void>(), length, 0, flags)
        };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
