//! Which records part `part_index` of `num_parts` holds, as MXNet's `ImageRecordIter` shares a
//! file out between workers (dmlc-core's `InputSplit`).
//!
//! Without an index file the file's *bytes* are shared out, in steps rounded up to 4, and a record
//! belongs to the part its first byte lies in; so parts may hold unequal numbers of records, or
//! none. With an index file the *records* are shared out, in steps rounded up to whole ones.

use super::layout::ALIGNMENT;
use crate::base::{Error, Position, PositionList, Result};
use std::ops::Range;

/// The bytes of a file of `length` bytes in which the part's records begin.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) unless `part_index < num_parts`.
pub fn byte_range(length: u64, part_index: u64, num_parts: u64) -> Result<Range<u64>> {
    check(part_index, num_parts)?;
    let step = length.div_ceil(num_parts).checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
    Ok(share(step, length, part_index))
}

/// Numbers of the part's records when bytes are shared out (no index file).
///
/// ```
/// use anyrec::PositionList;
/// use anyrec::format::mxnet::split_by_bytes;
///
/// let mut positions = PositionList::new();
/// for offset in [0, 8, 60] {
///     positions.push_frame(offset, 1)?;
/// }
/// assert_eq!(split_by_bytes(&positions, 100, 0, 2)?, 0..2);
/// assert_eq!(split_by_bytes(&positions, 100, 1, 2)?, 2..3);
/// # Ok::<(), anyrec::Error>(())
/// ```
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) unless `part_index < num_parts`.
pub fn split_by_bytes(
    positions: &PositionList,
    length: u64,
    part_index: u64,
    num_parts: u64,
) -> Result<Range<u64>> {
    let bytes = byte_range(length, part_index, num_parts)?;
    let records_before = |offset: u64| {
        let first = match offset.checked_sub(1) {
            None => return 0,
            Some(before) => positions.frame_after(before),
        };
        first.and_then(|frame| positions.index_of(Position::of_frame(frame))).unwrap_or(positions.len())
    };
    Ok(records_before(bytes.start)..records_before(bytes.end))
}

/// Numbers of the part's records when `count` records are shared out (with an index file).
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) unless `part_index < num_parts`.
pub fn split_by_records(count: u64, part_index: u64, num_parts: u64) -> Result<Range<u64>> {
    check(part_index, num_parts)?;
    Ok(share(count.div_ceil(num_parts), count, part_index))
}

fn share(step: u64, total: u64, part_index: u64) -> Range<u64> {
    let begin = step.saturating_mul(part_index).min(total);
    begin..begin.saturating_add(step).min(total)
}

fn check(part_index: u64, num_parts: u64) -> Result<()> {
    match part_index < num_parts {
        true => Ok(()),
        false => {
            Err(Error::invalid(format!("there is no part {part_index} of {num_parts}: parts count from 0")))
        }
    }
}
