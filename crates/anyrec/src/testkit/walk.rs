//! Walks a scan and checks its guarantees.

use crate::base::{Error, Position, PositionList};
use crate::format::{Content, Damage, Event, Format, Integrity, Notice, OpenOptions, RecordReader};
use crate::io::Window;
use std::fmt;

/// Everything a scan yielded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Walk {
    /// The records.
    pub records: Vec<WalkedRecord>,
    /// The contents of the metadata.
    pub contents: Vec<Content>,
    /// The damage.
    pub damage: Vec<Damage>,
    /// The notices.
    pub notices: Vec<Notice>,
    /// Number of bytes in records, metadata and damage.
    pub bytes: (u64, u64, u64),
}

/// A record found on a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkedRecord {
    /// Its position.
    pub position: Position,
    /// Its bytes.
    pub data: Vec<u8>,
    /// The result of checking its checksum.
    pub checksum: Option<bool>,
}

/// Why a walk did not reach the end.
#[derive(Debug)]
pub enum WalkError {
    /// The scan itself failed: a failing read, a limit, an unknown transformer.
    Scan(Error),
    /// The scan violated a guarantee, as a sentence.
    Promise(String),
}

impl fmt::Display for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WalkError::Scan(error) => error.fmt(f),
            WalkError::Promise(broken) => broken.fmt(f),
        }
    }
}

impl Walk {
    /// Only the records' bytes.
    pub fn data(&self) -> Vec<&[u8]> {
        self.records.iter().map(|record| &record.data[..]).collect()
    }
}

/// Scans to the end and checks the guarantees of [`Scan`](crate::format::Scan): events are
/// contiguous without gap or overlap from byte 0 to `length` (if known), every event advances or
/// belongs to the frame before it, positions increase, and `End` stays `End`.
///
/// # Errors
/// The violated guarantee, or the scan's own error.
pub fn walk(format: &dyn Format, window: Window, options: &OpenOptions) -> Result<Walk, WalkError> {
    let broken = |promise: String| Err(WalkError::Promise(promise));
    let length = window.remaining();
    let mut scan = format.scan(window, options).map_err(WalkError::Scan)?;
    let mut walk = Walk::default();
    let mut positions = PositionList::new();
    let mut at = 0u64;
    let mut idle = 0;
    loop {
        let event = scan.next_event().map_err(WalkError::Scan)?;
        let span = match event {
            Event::Record(record) => {
                positions
                    .push(record.position)
                    .map_err(|error| WalkError::Promise(format!("record at {at}: {error}")))?;
                // A frame's bytes belong to its first record; a frame of an empty record may have
                // none.
                if record.position.item > 0 && !record.span.is_empty() {
                    return broken(format!("record {:?} has the span {:?}", record.position, record.span));
                }
                walk.bytes.0 += record.span.end - record.span.start;
                walk.records.push(WalkedRecord {
                    position: record.position,
                    data: record.data.to_vec(),
                    checksum: match record.integrity {
                        Integrity::Verified => Some(true),
                        Integrity::Unchecked => Some(false),
                        Integrity::Absent => None,
                    },
                });
                idle = 0;
                record.span
            }
            Event::Metadata(metadata) => {
                walk.bytes.1 += metadata.span.end - metadata.span.start;
                walk.contents.push(metadata.content);
                metadata.span
            }
            Event::Damage(damage) => {
                if damage.record != walk.records.len() as u64 {
                    return broken(format!(
                        "damage after {} records says {}",
                        walk.records.len(),
                        damage.record
                    ));
                }
                if damage.reason.is_empty() {
                    return broken(format!("damage at {at} without a reason"));
                }
                walk.bytes.2 += damage.end.saturating_sub(damage.begin);
                let span = damage.begin..damage.end;
                walk.damage.push(damage);
                span
            }
            Event::Notice(notice) => {
                walk.notices.push(notice);
                at..at
            }
            Event::End => break,
        };
        if span.start != at || span.end < at {
            return broken(format!("an event covers {span:?}, but byte {at} comes next"));
        }
        idle = if span.end == at { idle + 1 } else { 0 };
        if idle > 64 {
            return broken(format!("the scan makes no progress at byte {at}"));
        }
        at = span.end;
    }
    match scan.next_event() {
        Ok(Event::End) => {}
        other => return broken(format!("after the end comes {other:?}")),
    }
    match length {
        Some(length) if length != at => broken(format!("the scan ends at byte {at} of {length}")),
        _ => Ok(walk),
    }
}

/// Checks a reader against the scan of the same, sound file: count, positions, single reads,
/// batches in any order with repeats, and rejection of numbers past the end.
///
/// # Errors
/// The difference, as a sentence.
pub fn check_reader(reader: &dyn RecordReader, walk: &Walk) -> Result<(), String> {
    let text = |error: crate::base::Error| error.to_string();
    let count = reader.count().map_err(text)?;
    if count != walk.records.len() as u64 {
        return Err(format!("the reader counts {count} records, the scan {}", walk.records.len()));
    }
    let mut order = Vec::new();
    for (index, record) in (0..count).zip(&walk.records) {
        let location = reader.locate(index).map_err(text)?;
        if location.position != record.position {
            return Err(format!(
                "record {index} is at {:?}, not at {:?}",
                location.position, record.position
            ));
        }
        if reader.read(index).map_err(text)? != record.data {
            return Err(format!("record {index} reads differently from the scan"));
        }
        order.insert(order.len() / 2, index);
        if index % 3 == 0 {
            order.push(index);
        }
    }
    let batch = crate::engine::read_batch(reader, &order).map_err(text)?;
    let expected = |index: &u64| usize::try_from(*index).ok().and_then(|index| walk.records.get(index));
    if batch.len() != order.len()
        || !batch
            .iter()
            .zip(&order)
            .all(|(data, index)| expected(index).is_some_and(|record| record.data == data))
    {
        return Err("a batch differs from the single records".to_owned());
    }
    for index in [count, count + 1, u64::MAX] {
        if reader.read(index).is_ok()
            || reader.locate(index).is_ok()
            || crate::engine::read_batch(reader, &[index]).is_ok()
        {
            return Err(format!("record {index} of {count} is not refused"));
        }
    }
    Ok(())
}
