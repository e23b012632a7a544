//! Bytes from Python: anything that supports the buffer protocol.

use crate::record::Record;
use anyrec::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView, PyString};
use std::ops::Deref;

/// Bytes that do not change while the GIL is released.
pub enum Payload {
    /// A `bytes` object, kept alive.
    Python(PyBackedBytes),
    /// A record's memory, shared.
    Shared(Bytes),
}

impl Payload {
    /// The bytes of a buffer, in C order whatever its shape, strides and element type. Only `bytes`
    /// and records, which are immutable, are used without a copy.
    pub fn of(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = data.cast::<PyBytes>() {
            return Ok(Payload::Python(bytes.clone().into()));
        }
        if let Ok(record) = data.cast::<Record>() {
            return Ok(Payload::Shared(record.get().bytes()));
        }
        let copy = PyMemoryView::from(data)?.call_method0("tobytes")?;
        Ok(Payload::Python(copy.cast_into::<PyBytes>()?.into()))
    }

    /// Like [`Payload::of`], but text is encoded as UTF-8.
    pub fn of_text_or_bytes(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        match data.cast::<PyString>() {
            Ok(text) => Ok(Payload::Python(text.encode_utf8()?.into())),
            Err(_) => Self::of(data),
        }
    }

    /// The payload as shared bytes.
    pub fn into_bytes(self) -> Bytes {
        match self {
            Payload::Python(bytes) => Bytes::from_owner(bytes),
            Payload::Shared(bytes) => bytes,
        }
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Payload::Python(bytes) => bytes,
            Payload::Shared(bytes) => bytes,
        }
    }
}

impl FromPyObject<'_, '_> for Payload {
    type Error = PyErr;

    fn extract(data: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        Payload::of(&data)
    }
}
