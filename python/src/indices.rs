//! Converts record numbers from Python: negative numbers, slices, ranges, lists and arrays.

use crate::errors::raised;
use crate::sequences::Growing;
use anyrec::{Error, ErrorKind};
use numpy::{PyArray1, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{PyRange, PySlice};
use std::ops::Range;

/// This many numbers may always be listed.
const ALWAYS: u64 = 1 << 24;
/// More only if the files could hold that many records of one byte each: gzip expands a byte to at
/// most this many.
const PACKED: u64 = 1032;

/// One index, counted from the end if negative.
pub fn one(index: &Bound<'_, PyAny>, count: u64) -> PyResult<u64> {
    resolve(number(index)?, count)
}

/// A sequence or array of indices. The records are counted only if it is not empty.
pub fn many(indices: &Bound<'_, PyAny>, count: impl FnOnce() -> PyResult<u64>) -> PyResult<Vec<u64>> {
    if let Some(numbers) = array(indices)? {
        let count = if numbers.is_empty() { 0 } else { count()? };
        return numbers.into_iter().map(|index| resolve(index, count)).collect();
    }
    let mut items = indices.try_iter()?;
    let Some(first) = items.next() else { return Ok(Vec::new()) };
    let first = number(&first?)?;
    let count = count()?;
    if indices.is_exact_instance_of::<PyRange>() {
        // Refuses a range that is too long before it is listed.
        resolve(number(&indices.get_item(-1)?)?, count)?;
    }
    let mut resolved = Growing::new();
    if let Ok(array) = indices.cast::<PyUntypedArray>() {
        // The length of an array is reliable. Reserve at once, because the array itself may take
        // far less memory than a list of its numbers.
        resolved.reserve(array.len())?;
    }
    resolved.push(indices.py(), resolve(first, count)?)?;
    for item in items {
        resolved.push(indices.py(), resolve(number(&item?)?, count)?)?;
    }
    Ok(resolved.into_vec())
}

/// The numbers of an `int64` array that is contiguous and aligned; other arrays are converted item by
/// item.
fn array(indices: &Bound<'_, PyAny>) -> PyResult<Option<Vec<i64>>> {
    let Ok(array) = indices.cast::<PyArray1<i64>>() else { return Ok(None) };
    if !array.is_contiguous() || !array.data().is_aligned() {
        return Ok(None);
    }
    // Fails if another thread holds it writable.
    let array = array.try_readonly().map_err(|error| PyIndexError::new_err(error.to_string()))?;
    let mut numbers = Growing::new();
    numbers.extend(array.as_slice().map_err(|error| PyIndexError::new_err(error.to_string()))?)?;
    Ok(Some(numbers.into_vec()))
}

/// The range from the least to the greatest index of a long slice.
pub fn long_range(slice: &Bound<'_, PySlice>, count: u64) -> PyResult<Option<Range<u64>>> {
    const LONG: usize = 1 << 16;
    let range = slice.indices(isize::try_from(count)?)?;
    if range.slicelength <= LONG {
        return Ok(None);
    }
    let steps = isize::try_from(range.slicelength)? - 1;
    let last = range.step.checked_mul(steps).and_then(|way| range.start.checked_add(way));
    let (one, other) = (u64::try_from(range.start)?, u64::try_from(last.unwrap_or(range.start))?);
    Ok(Some(one.min(other)..one.max(other).saturating_add(1)))
}

/// The indices of a slice.
pub fn of_slice(slice: &Bound<'_, PySlice>, count: u64) -> PyResult<Vec<u64>> {
    let range = slice.indices(isize::try_from(count)?)?;
    let mut indices = Growing::new();
    indices.reserve(range.slicelength)?;
    for number in 0..range.slicelength {
        // Not by repeated addition: the number past the last one may overflow.
        let at = isize::try_from(number)?.checked_mul(range.step).and_then(|by| range.start.checked_add(by));
        let at = at.ok_or_else(|| PyOverflowError::new_err("a slice is out of range"))?;
        indices.push(slice.py(), u64::try_from(at)?)?;
    }
    Ok(indices.into_vec())
}

/// Prevents files from deciding how much memory a list of their records takes. Records can be
/// empty, so a small file can have any number of them.
pub fn check_listed(count: u64, bytes: u64) -> PyResult<()> {
    let most = ALWAYS.max(bytes.saturating_mul(PACKED));
    if count <= most {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Limit, format!("{count} records are too many to list at once"));
    Err(raised(error.expected_found(format!("at most {most} in files of {bytes} bytes"), count)))
}

/// A number beyond any file is an `IndexError`, as in Python's own sequences.
fn number(index: &Bound<'_, PyAny>) -> PyResult<i64> {
    index.extract().map_err(|error: PyErr| match error.is_instance_of::<PyOverflowError>(index.py()) {
        true => PyIndexError::new_err("the record number is too large"),
        false => error,
    })
}

fn resolve(index: i64, count: u64) -> PyResult<u64> {
    let at = match index {
        0.. => Some(index.unsigned_abs()),
        _ => count.checked_sub(index.unsigned_abs()),
    };
    at.filter(|&at| at < count).ok_or_else(|| {
        let mut error = Error::no_such_record(index.unsigned_abs(), count);
        if index < 0 {
            let held = format!("there is no record {index}: the file has {count} records");
            error = Error::new(error.kind(), held);
        }
        raised(error.in_record(index.unsigned_abs()))
    })
}
