//! Record numbers as Python gives them: negative ones, slices, ranges, lists, arrays.

use crate::errors::raised;
use crate::sequences::Growing;
use anyrec::{Error, ErrorKind};
use numpy::{PyArray1, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{PyRange, PySlice};
use std::ops::Range;

/// As many numbers are always listed.
const ALWAYS: u64 = 1 << 24;
/// More only for files that could have as many records of a byte each: no gzip file gets smaller.
const PACKED: u64 = 1032;

/// One index, counted from the end where it is negative.
pub fn one(index: &Bound<'_, PyAny>, count: u64) -> PyResult<u64> {
    resolve(number(index)?, count)
}

/// A sequence or array of indices; the records are counted if there is one.
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
        // Its ends tell that it is too long before all of it is listed.
        resolve(number(&indices.get_item(-1)?)?, count)?;
    }
    let mut resolved = Growing::new();
    if let Ok(array) = indices.cast::<PyUntypedArray>() {
        // An array is as long as it says, and need not take as much memory as a list of its numbers.
        resolved.reserve(array.len())?;
    }
    resolved.push(indices.py(), resolve(first, count)?)?;
    for item in items {
        resolved.push(indices.py(), resolve(number(&item?)?, count)?)?;
    }
    Ok(resolved.into_vec())
}

/// The numbers of an array that lie in memory as they are; other arrays are taken one by one.
fn array(indices: &Bound<'_, PyAny>) -> PyResult<Option<Vec<i64>>> {
    let Ok(array) = indices.cast::<PyArray1<i64>>() else { return Ok(None) };
    if !array.is_contiguous() || !array.data().is_aligned() {
        return Ok(None);
    }
    // Fails where another thread has lent it out to be filled.
    let array = array.try_readonly().map_err(|error| PyIndexError::new_err(error.to_string()))?;
    let mut numbers = Growing::new();
    numbers.extend(array.as_slice().map_err(|error| PyIndexError::new_err(error.to_string()))?)?;
    Ok(Some(numbers.into_vec()))
}

/// The range from the least to the greatest index of a slice that stands for many.
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

/// The indices a slice stands for.
pub fn of_slice(slice: &Bound<'_, PySlice>, count: u64) -> PyResult<Vec<u64>> {
    let range = slice.indices(isize::try_from(count)?)?;
    let mut indices = Growing::new();
    indices.reserve(range.slicelength)?;
    for number in 0..range.slicelength {
        // Not by adding up: past the last one there may be no number any more.
        let at = isize::try_from(number)?.checked_mul(range.step).and_then(|by| range.start.checked_add(by));
        let at = at.ok_or_else(|| PyOverflowError::new_err("a slice is out of range"))?;
        indices.push(slice.py(), u64::try_from(at)?)?;
    }
    Ok(indices.into_vec())
}

/// Sees to it that files do not decide how much memory a list of their records takes: records can
/// have no bytes, and then any number of them fits into a small file.
pub fn check_listed(count: u64, bytes: u64) -> PyResult<()> {
    let most = ALWAYS.max(bytes.saturating_mul(PACKED));
    if count <= most {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Limit, format!("{count} records are too many to be listed at once"));
    Err(raised(error.expected_found(format!("at most {most} in files of {bytes} bytes"), count)))
}

/// A number that no file reaches is a number without a record, as in Python's own sequences.
fn number(index: &Bound<'_, PyAny>) -> PyResult<i64> {
    index.extract().map_err(|error: PyErr| match error.is_instance_of::<PyOverflowError>(index.py()) {
        true => PyIndexError::new_err("a record's number is too large"),
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
