//! Converts keys, labels and header values between Python and the library.

use crate::sequences::bytes_to;
use anyrec::BString;
use anyrec::{Key, Label, Value};
use numpy::IntoPyArray;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyString};

/// A key: an integer, text or bytes.
pub fn key_from(key: &Bound<'_, PyAny>) -> PyResult<Key> {
    // Nearly all keys are small integers, for which this is faster.
    if let Ok(number) = key.extract::<i64>() {
        return Ok(Key::Int(number.into()));
    }
    match text_from(key) {
        Some(text) => Ok(Key::Text(text?)),
        None => key.extract().map(Key::Int).map_err(|_| {
            PyTypeError::new_err(format!("a key is an int, str or bytes, not {}", type_name(key)))
        }),
    }
}

/// A key as a Python object: `str` if it is UTF-8, `bytes` otherwise.
pub fn key_to<'py>(py: Python<'py>, key: &Key) -> PyResult<Bound<'py, PyAny>> {
    match key {
        Key::Int(number) => number.into_bound_py_any(py),
        Key::Text(text) => text_to(py, text),
    }
}

/// A label: a number, or several.
pub fn label_from(label: &Bound<'_, PyAny>) -> PyResult<Label> {
    if label.len().is_err() {
        return Ok(Label::Scalar(label.extract()?));
    }
    let numpy = label.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (label, numpy.getattr("float64")?))?;
    Ok(Label::Array(array.call_method0("ravel")?.call_method0("tolist")?.extract()?))
}

/// A label as a Python object: a float or an array.
pub fn label_to<'py>(py: Python<'py>, label: Label) -> PyResult<Bound<'py, PyAny>> {
    match label {
        Label::Scalar(number) => number.into_bound_py_any(py),
        Label::Array(numbers) => Ok(numbers.into_pyarray(py).into_any()),
    }
}

/// The labels of many records as a Python object: an array with NaN for records without a label,
/// two-dimensional if all have equally many, or a list if the numbers differ.
pub fn labels_to<'py>(py: Python<'py>, labels: &[Option<Label>]) -> PyResult<Bound<'py, PyAny>> {
    let width = |label: &Option<Label>| match label {
        Some(Label::Array(numbers)) => Some(numbers.len()),
        _ => None,
    };
    let first = labels.first().and_then(width);
    if labels.iter().any(|label| width(label) != first) {
        let one = |label: &Option<Label>| label.clone().map(|label| label_to(py, label)).transpose();
        return labels.iter().map(one).collect::<PyResult<Vec<_>>>()?.into_bound_py_any(py);
    }
    let numbers = labels.iter().flat_map(|label| match label {
        Some(Label::Array(numbers)) => numbers.clone(),
        Some(Label::Scalar(number)) => vec![*number],
        None => vec![f64::NAN],
    });
    let array = numbers.collect::<Vec<f64>>().into_pyarray(py);
    match first {
        Some(width) => array.call_method1("reshape", (labels.len(), width)),
        None => Ok(array.into_any()),
    }
}

/// A header value. Integers are signed unless only an unsigned one can hold them.
pub fn value_from(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(Value::Bool(value.is_true()));
    }
    if let Some(text) = text_from(value) {
        return Ok(Value::Text(text?));
    }
    if value.is_instance_of::<PyInt>() || value.hasattr("__index__")? {
        return match (value.extract(), value.extract()) {
            (Ok(signed), _) => Ok(Value::Int(signed)),
            (_, Ok(unsigned)) => Ok(Value::Uint(unsigned)),
            _ => Err(PyOverflowError::new_err("a header holds whole numbers from -2^63 to 2^64 - 1")),
        };
    }
    Err(PyTypeError::new_err(format!(
        "a header value is a bool, int, str or bytes, not {}",
        type_name(value)
    )))
}

/// A header value as a Python object.
pub fn value_to<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::Int(value) => value.into_bound_py_any(py),
        Value::Uint(value) => value.into_bound_py_any(py),
        Value::Text(value) => text_to(py, value),
        other => other.to_string().into_bound_py_any(py),
    }
}

/// The pairs of a header: a mapping, or an iterable of pairs, because keys may repeat.
pub fn header_from(header: &Bound<'_, PyAny>) -> PyResult<Vec<(BString, Value)>> {
    let items = match header.cast::<PyDict>() {
        Ok(mapping) => mapping.items().into_any(),
        Err(_) if header.hasattr("items")? => header.call_method0("items")?,
        Err(_) => header.clone(),
    };
    let mut pairs = Vec::new();
    for item in items.try_iter()? {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
        let name = text_from(&key).unwrap_or_else(|| {
            Err(PyTypeError::new_err(format!("a header key is str or bytes, not {}", type_name(&key))))
        })?;
        pairs.push((name, value_from(&value)?));
    }
    Ok(pairs)
}

/// The pairs of a header as a Python object.
pub fn header_to<'py>(
    py: Python<'py>,
    pairs: &[(BString, Value)],
) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    pairs.iter().map(|(key, value)| Ok((text_to(py, key)?, value_to(py, value)?))).collect()
}

/// Text or bytes; `None` if it is neither.
pub fn text_from(text: &Bound<'_, PyAny>) -> Option<PyResult<BString>> {
    if let Ok(bytes) = text.cast::<PyBytes>() {
        return Some(Ok(bytes.as_bytes().into()));
    }
    let text = text.cast::<PyString>().ok()?;
    Some(text.encode_utf8().map(|bytes| bytes.as_bytes().into()))
}

/// `str` where the bytes are UTF-8, `bytes` otherwise.
fn text_to<'py>(py: Python<'py>, text: &BString) -> PyResult<Bound<'py, PyAny>> {
    match std::str::from_utf8(text) {
        Ok(text) => text.into_bound_py_any(py),
        Err(_) => Ok(bytes_to(py, text)?.into_any()),
    }
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "that".to_owned(), |name| name.to_string())
}
