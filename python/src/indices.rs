//! Record numbers as Python gives them: negative ones, slices, lists, arrays.

use crate::errors::raised;
use anyrec::Error;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice};
use std::ops::Range;

/// One index, counted from the end where it is negative.
pub fn one(index: &Bound<'_, PyAny>, count: u64) -> PyResult<u64> {
    resolve(index.extract()?, count)
}

/// A sequence or array of indices.
pub fn many(indices: &Bound<'_, PyAny>, count: impl FnOnce() -> PyResult<u64>) -> PyResult<Vec<u64>> {
    let wanted = numbers(indices)?;
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let count = count()?;
    wanted.into_iter().map(|index| resolve(index, count)).collect()
}

/// The numbers as they are given: arrays at once, anything else one by one.
fn numbers(indices: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    if let Ok(array) = indices.extract::<PyReadonlyArray1<'_, i64>>() {
        return Ok(array.as_array().iter().copied().collect());
    }
    if let Ok(list) = indices.cast::<PyList>() {
        return list.iter().map(|index| index.extract()).collect();
    }
    indices.try_iter()?.map(|index| index?.extract()).collect()
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
    let mut at = range.start;
    let mut indices = Vec::with_capacity(range.slicelength);
    for _ in 0..range.slicelength {
        indices.push(u64::try_from(at)?);
        at += range.step;
    }
    Ok(indices)
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
