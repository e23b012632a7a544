//! Turns the library's errors into the exceptions that `anyrec/errors.py` defines.

use crate::hints;
use anyrec::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule};
use std::io;

static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// The exception for a library error.
pub fn raised(error: Error) -> PyErr {
    raised_with(error, None)
}

/// The exception for a borrowed library error.
pub fn described<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    Ok(exception(py, error, None)?.into_value(py).into_bound(py).into_any())
}

/// The exception with the message of the format's original implementation.
pub fn raised_with(error: Error, original: Option<String>) -> PyErr {
    Python::attach(|py| {
        if let Some(inner) = python_error(&error) {
            return inner.clone_ref(py);
        }
        exception(py, &error, original).unwrap_or_else(|failure| failure)
    })
}

/// The exception for using a closed object.
pub fn closed(what: &str) -> PyErr {
    plain("ClosedError", format!("{what} is closed"))
}

/// The exception for a panic, which is always a bug in this package.
pub fn internal(panic: &str) -> PyErr {
    plain("InternalError", format!("this is a bug in anyrec, please report it: {panic}"))
}

/// An exception of the package with only a message.
fn plain(class: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let make = || Ok(PyErr::from_value(module(py)?.getattr(class)?.call1((message,))?));
        make().unwrap_or_else(|failure: PyErr| failure)
    })
}

/// Carries a Python exception through the library when a callback fails.
pub fn carried(error: PyErr) -> Error {
    let text = error.to_string();
    Error::io(format!("a Python callback failed ({text})"), io::Error::other(error))
}

fn python_error(error: &Error) -> Option<&PyErr> {
    error.io_error()?.get_ref()?.downcast_ref()
}

fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    let module = MODULE.get_or_try_init(py, || py.import("anyrec.errors").map(Bound::unbind))?;
    Ok(module.bind(py))
}

fn exception(py: Python<'_>, error: &Error, original: Option<String>) -> PyResult<PyErr> {
    let place = PyDict::new(py);
    place.set_item("reason", error.message())?;
    place.set_item("path", error.path().map(|path| path.as_os_str()))?;
    place.set_item("offset", error.offset())?;
    place.set_item("record", error.record())?;
    place.set_item("expected", error.expected())?;
    place.set_item("found", error.found())?;
    let hint = error.hint().map(hints::words);
    place.set_item("hint", hint)?;
    place.set_item("original", original)?;
    place.set_item("errno", error.io_error().and_then(os_code))?;
    let class = module(py)?.getattr(class_name(error))?;
    Ok(PyErr::from_value(class.call((error.to_string(),), Some(&place))?))
}

/// The operating system's error number; that of "no such file" if the library created the error
/// itself.
fn os_code(error: &io::Error) -> Option<i32> {
    const NO_SUCH_FILE: i32 = 2;
    error.raw_os_error().or((error.kind() == io::ErrorKind::NotFound).then_some(NO_SUCH_FILE))
}

fn class_name(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Io => match error.io_error().map(io::Error::kind) {
            Some(io::ErrorKind::NotFound) => "FileMissing",
            Some(io::ErrorKind::PermissionDenied) => "FileRefused",
            _ => "SystemFailure",
        },
        ErrorKind::Corrupt => "CorruptRecord",
        ErrorKind::Unsupported => "UnsupportedFormat",
        ErrorKind::Limit => "LimitExceeded",
        ErrorKind::OutOfRange => "RecordNotFound",
        ErrorKind::Invalid => "InvalidArgument",
        ErrorKind::Exists => "FileExists",
        ErrorKind::Stale => "StaleCompanion",
        ErrorKind::OutOfMemory => "OutOfMemory",
        ErrorKind::Internal => "InternalError",
        _ => "AnyrecError",
    }
}
