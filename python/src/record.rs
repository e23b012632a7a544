//! `Record`: the bytes of one record, passed to Python without a copy.

use crate::payload::Payload;
use crate::progress::done;
use crate::sequences::{Many, bytes_to};
use crate::values::{key_to, label_to};
use anyrec::{Bytes, ElementType, Label, Place, RecordSet, Tags};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PySlice, PyTuple};
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// One record: bytes that are not copied unless you request it.
///
/// Anything that takes a bytes-like object takes a record: `numpy.frombuffer`, `io.BytesIO`,
/// `pickle.loads`, `torch.frombuffer`, `hashlib`, `open(..., "wb").write`. A record equals `bytes`
/// with the same content. It never changes, and it stays valid after its dataset is closed.
///
/// >>> from anyrec import Record
/// >>> record = Record(b"some bytes")
/// >>> len(record), record[0], bytes(record[5:]), record == b"some bytes"
/// (10, 115, b'bytes', True)
/// >>> memoryview(record).readonly
/// True
///
/// A record of a dataset also has the `label`, `key` and `ids` that were written with it, and its
/// `payload`: the record without the header that holds them.
///
/// >>> import anyrec
/// >>> with anyrec.create("pets.rec") as writer:
/// ...     _ = writer.write(b"meow", key=7, label=1.0)
/// >>> record = anyrec.open("pets.rec")[0]
/// >>> len(record), bytes(record.payload), record.label, record.key, record.ids
/// (28, b'meow', 1.0, 7, (7, 0))
///
/// Functions of C extensions that accept only `bytes`, such as protobuf's `ParseFromString`, take
/// `bytes(record)`.
#[pyclass(frozen, sequence, module = "anyrec")]
pub struct Record {
    memory: Bytes,
    /// Its range in the memory. Atomic because [`move_to`](Record::move_to) changes it, for a
    /// record that has no other references.
    begin: AtomicUsize,
    end: AtomicUsize,
    /// Its number in the set it was read from, or [`UNKNOWN`].
    number: AtomicU64,
    home: Option<Arc<Home>>,
}

/// The number of a record that is not known to have one.
const UNKNOWN: u64 = u64::MAX;

/// Where records come from, to look up what belongs to them.
pub struct Home {
    /// `None` for records that were pickled, of which only the bytes are left.
    set: Option<Arc<dyn RecordSet>>,
    /// The dataset, if the records were read in order: their numbers are then only those of the order.
    in_order: Option<Arc<anyrec::Dataset>>,
    /// The records are payloads already.
    payloads: bool,
    /// The type and shape of every record, if their files declare them.
    item: Option<Item>,
}

/// The element type and the shape of a record.
pub type Item = (ElementType, Vec<u64>);

/// The same as it is pickled.
pub type PickledItem = Option<(String, Many<u64>)>;

/// What the files of a dataset declare about each record.
pub fn item_of(dataset: &anyrec::Dataset) -> Option<Item> {
    // The files of a dataset declare the same.
    let (element, shape) = dataset.readers().next()?.item()?;
    Some((element, shape.to_vec()))
}

impl Home {
    /// Records that were read by number.
    pub fn by_number(set: Arc<dyn RecordSet>, payloads: bool, item: Option<Item>) -> Arc<Self> {
        Arc::new(Home { set: Some(set), in_order: None, payloads, item })
    }

    /// Records that were read in order.
    pub fn in_order(dataset: Arc<anyrec::Dataset>, payloads: bool) -> Arc<Self> {
        let (item, set) = (item_of(&dataset), Some(Arc::clone(&dataset) as Arc<dyn RecordSet>));
        Arc::new(Home { set, in_order: Some(dataset), payloads, item })
    }

    /// Records that were pickled.
    pub fn pickled(payloads: bool, item: Option<Item>) -> Arc<Self> {
        Arc::new(Home { set: None, in_order: None, payloads, item })
    }

    /// The same set, for records that were turned into payloads.
    fn payloads_of(&self) -> Arc<Self> {
        let (set, in_order, item) = (self.set.clone(), self.in_order.clone(), self.item.clone());
        Arc::new(Home { set, in_order, payloads: true, item })
    }

    /// What is pickled with a record: whether it is a payload, its element type and its shape.
    pub fn parts(&self) -> (bool, Option<(&'static str, Vec<u64>)>) {
        (self.payloads, self.item.as_ref().map(|(element, shape)| (element.name(), shape.clone())))
    }

    /// An array over a record's bytes with the type and shape that the record's file declares. The
    /// array is a copy if the bytes are not in this machine's order.
    pub fn shaped<'py>(&self, array: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let Some((dtype, shape)) = &self.item else { return Ok(array) };
        let size = shape.iter().fold(dtype.size(), |size, side| size.saturating_mul(*side));
        if array.len()? as u64 != size {
            return Ok(array);
        }
        let shape = PyTuple::new(array.py(), shape)?;
        if dtype.size() == 1 {
            return array.call_method1("view", (dtype.name(),))?.call_method1("reshape", (shape,));
        }
        let stored = array.py().import("numpy")?.call_method1("dtype", (dtype.name(),))?;
        let stored = stored.call_method1("newbyteorder", (">",))?;
        let native = array.call_method1("view", (stored,))?.call_method1("astype", (dtype.name(),))?;
        native.call_method1("reshape", (shape,))
    }

    /// The set, if the records still belong to one.
    fn set(&self) -> anyrec::Result<&dyn RecordSet> {
        self.set.as_deref().ok_or_else(|| {
            anyrec::Error::invalid("the record was pickled, which keeps only its bytes")
                .with_hint("take its payload, label, key and ids before, or send its number instead")
        })
    }

    /// The place of a record, if its number is certain.
    fn place(&self, number: u64) -> anyrec::Result<Place<'_>> {
        if let Some(dataset) = &self.in_order {
            for reader in dataset.readers() {
                if !reader.is_numbered_in_order()? {
                    return Err(anyrec::Error::invalid(
                        "the record was read in order, and there may be records without a number before it",
                    )
                    .in_file(reader.source().name())
                    .with_hint("read it by number, as dataset[n], for its key and label"));
                }
            }
        }
        self.set()?.find(number)
    }
}

impl Record {
    /// Creates a record from these bytes.
    pub fn new(data: Bytes) -> Self {
        let whole = 0..data.len();
        Record::within(data, whole)
    }

    /// A record at this range of shared memory.
    pub fn within(memory: Bytes, place: Range<usize>) -> Self {
        let (begin, end) = (place.start.into(), place.end.into());
        Record { memory, begin, end, number: UNKNOWN.into(), home: None }
    }

    /// The same record with its origin. Without a number, only its bytes are known.
    pub fn of(self, home: &Arc<Home>, number: Option<u64>) -> Self {
        Record { home: Some(Arc::clone(home)), number: number.unwrap_or(UNKNOWN).into(), ..self }
    }

    /// Turns this into another record of the same memory and origin. Only for a record without other
    /// references: a record never changes for its users.
    pub fn move_to(&self, place: Range<usize>, number: Option<u64>) {
        self.begin.store(place.start, Ordering::Relaxed);
        self.end.store(place.end, Ordering::Relaxed);
        self.number.store(number.unwrap_or(UNKNOWN), Ordering::Relaxed);
    }

    /// Whether it lies in that memory.
    pub fn shares(&self, memory: &Bytes) -> bool {
        self.memory.as_ptr() == memory.as_ptr() && self.memory.len() == memory.len()
    }

    /// The bytes.
    pub fn data(&self) -> &[u8] {
        let place = self.begin.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed);
        self.memory.get(place).unwrap_or_default()
    }

    /// The bytes, shared.
    pub fn bytes(&self) -> Bytes {
        self.memory.slice_ref(self.data())
    }

    /// The set that the record belongs to, and its number there; `None` for bytes of another origin.
    fn origin(&self) -> anyrec::Result<Option<(&Home, u64)>> {
        let Some(home) = self.home.as_deref() else { return Ok(None) };
        home.set()?;
        match self.number.load(Ordering::Relaxed) {
            UNKNOWN => Err(anyrec::Error::invalid(
                "the record's number is not known, because damage was met before it",
            )
            .with_hint("read it by number, as dataset[n], for its label, key, ids and payload")),
            number => Ok(Some((home, number))),
        }
    }

    /// What was written with the record.
    fn tags(&self, py: Python<'_>) -> PyResult<Tags> {
        let find = || {
            let Some((home, number)) = self.origin()? else { return Ok(Tags::none()) };
            match home.payloads {
                true => {
                    let place = home.place(number)?;
                    home.set()?.tags_of(number, &place.reader.read(place.index)?)
                }
                false => {
                    if home.in_order.as_ref().is_some_and(|dataset| dataset.readers().len() > 1) {
                        // Which file it is from depends on its number.
                        home.place(number)?;
                    }
                    home.set()?.tags_of(number, self.data())
                }
            }
        };
        done(py, find)
    }
}

/// Copies `data` into memory of its own: a slice of a decoded block would keep the whole block in
/// memory.
pub fn owned(data: Bytes) -> anyrec::Result<Bytes> {
    if data.is_unique() {
        return Ok(data);
    }
    let mut copy = Vec::new();
    let size = data.len();
    copy.try_reserve_exact(size).map_err(|_| anyrec::Error::out_of_memory(size as u64))?;
    copy.extend_from_slice(&data);
    Ok(copy.into())
}

#[pymethods]
impl Record {
    #[new]
    fn from_buffer(data: Payload) -> Self {
        Record::new(data.into_bytes())
    }

    fn __len__(&self) -> usize {
        self.data().len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            let length = isize::try_from(self.data().len())?;
            let range = slice.indices(length)?;
            let part = match (usize::try_from(range.start), range.step) {
                (Ok(start), 1) => {
                    let end = start.saturating_add(range.slicelength).min(self.data().len());
                    self.bytes().slice(start.min(end)..end)
                }
                (_, step) => (0..range.slicelength)
                    .filter_map(|at| {
                        let at = range.start.checked_add(step.checked_mul(isize::try_from(at).ok()?)?)?;
                        self.data().get(usize::try_from(at).ok()?).copied()
                    })
                    .collect(),
            };
            return Ok(Bound::new(py, Record::new(part))?.into_any());
        }
        let wanted: isize = index.extract()?;
        let at = if wanted < 0 { wanted.checked_add_unsigned(self.data().len()) } else { Some(wanted) };
        let byte = at.and_then(|at| usize::try_from(at).ok()).and_then(|at| self.data().get(at));
        match byte {
            Some(byte) => Ok(byte.into_pyobject(py)?.into_any()),
            None => Err(PyIndexError::new_err(format!(
                "byte {wanted} is outside the record's {} bytes",
                self.data().len()
            ))),
        }
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        PyMemoryView::from(slf)?.call_method0("__iter__")
    }

    fn __contains__(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        slf.get().__bytes__(slf.py())?.contains(item)
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes_to(py, self.data())
    }

    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> Option<bool> {
        // For an object without a buffer, Python itself reports that they differ.
        Payload::of(other).ok().map(|other| *other == *self.data())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.__bytes__(py)?.hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        const SHOWN: usize = 32;
        let head = bytes_to(py, self.data().get(..SHOWN).unwrap_or(self.data()))?.repr()?;
        let rest = if self.data().len() > SHOWN { "..." } else { "" };
        Ok(format!("<Record of {} bytes: {head}{rest}>", self.data().len()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let bytes = self.__bytes__(py)?.into_any();
        let Some(home) = &self.home else {
            return Ok((py.get_type::<Record>().into_any(), PyTuple::new(py, [bytes])?));
        };
        let make = py.import("anyrec._anyrec")?.getattr("record_from_parts")?;
        let (payloads, item) = home.parts();
        Ok((make, (bytes, payloads, item).into_pyobject(py)?))
    }

    /// The record in a notebook.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("anyrec._html")?.call_method1("record", (slf,))
    }

    /// # Safety
    /// Called by the interpreter with a view to fill in.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let data = slf.get().data();
        let length = ffi::Py_ssize_t::try_from(data.len())?;
        // SAFETY: `view` is the interpreter's. The bytes are never written (the view is read-only)
        // and live as long as the object, to which the view takes a reference.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                data.as_ptr().cast_mut().cast::<c_void>(),
                length,
                1,
                flags,
            )
        };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }

    /// What was written: the record without the header that holds its label and ids, if its format has
    /// such headers. A file in which not every record can be split raises, and names such a record.
    #[getter]
    fn payload(slf: &Bound<'_, Self>) -> PyResult<Py<Record>> {
        let this = slf.get();
        let length = done(slf.py(), || {
            if this.home.as_ref().is_none_or(|home| home.payloads) {
                return Ok(this.data().len());
            }
            match this.origin()? {
                Some((home, number)) => home.set()?.payload_of(number, this.data()).map(<[u8]>::len),
                None => Ok(this.data().len()),
            }
        })?;
        let whole = this.data().len();
        match length == whole {
            true => Ok(slf.clone().unbind()),
            false => {
                let payload = Record::new(this.bytes().slice(whole - length..));
                let number = this.number.load(Ordering::Relaxed);
                let home = this.home.as_ref().map(|home| Home::payloads_of(home));
                Py::new(slf.py(), Record { number: number.into(), home, ..payload })
            }
        }
    }

    /// The label: a float, an array of several, or `None` if the record has none.
    #[getter]
    fn label<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.tags(py)?.label.filter(is_known).map(|label| label_to(py, label)).transpose()
    }

    /// The key, or `None` if the record has none.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = done(py, || {
            let Some((home, number)) = self.origin()? else { return Ok(None) };
            let place = home.place(number)?;
            place.reader.key(place.reader.locate(place.index)?.position)
        })?;
        key.map(|key| key_to(py, &key)).transpose()
    }

    /// The two ids of an MXNet image header, or `None` if the record has none.
    #[getter]
    fn ids(&self, py: Python<'_>) -> PyResult<Option<(u64, u64)>> {
        Ok(self.tags(py)?.ids.map(|[id, id2]| (id, id2)))
    }

    /// The record as text.
    #[pyo3(signature = (encoding = "utf-8", errors = "strict"))]
    fn decode<'py>(&self, py: Python<'py>, encoding: &str, errors: &str) -> PyResult<Bound<'py, PyAny>> {
        self.__bytes__(py)?.call_method1("decode", (encoding, errors))
    }

    /// The record as a read-only `uint8` array, without a copy. A record of an IDX file has its shape
    /// and type instead, in this machine's byte order; this copies elements of several bytes.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let array = array_over(slf)?;
        let this = slf.get();
        match &this.home {
            Some(home) => home.shaped(array),
            None => Ok(array),
        }
    }
}

/// Rebuilds a record from its bytes, whether it is a payload, and its element type and shape, for
/// unpickling.
#[pyfunction]
pub fn record_from_parts(data: Payload, payloads: bool, item: PickledItem) -> PyResult<Record> {
    let home = Home::pickled(payloads, item_from(item)?);
    Ok(Record::new(data.into_bytes()).of(&home, None))
}

/// An element type and shape from their pickled form.
pub fn item_from(item: PickledItem) -> PyResult<Option<Item>> {
    let one = |(name, Many(shape)): (String, Many<u64>)| match ElementType::from_name(&name) {
        Some(element) => Ok((element, shape)),
        None => Err(PyValueError::new_err(format!("there is no element type {name:?}"))),
    };
    item.map(one).transpose()
}

/// Whether a label is there. NaN stands for none: it is what a record without a label gets in a file
/// of records with labels.
pub fn is_known(label: &Label) -> bool {
    !matches!(label, Label::Scalar(number) if number.is_nan())
}

/// A read-only `uint8` array over a record's memory.
pub fn array_over<'py>(record: &Bound<'py, Record>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = record.py().import("numpy")?;
    numpy.call_method1("frombuffer", (record, numpy.getattr("uint8")?))
}
