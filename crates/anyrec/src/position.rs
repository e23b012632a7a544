//! Where a record is: positions, and a compact list of them.

use crate::error::{Error, Result};
use std::ops::Range;

/// A record's address: the byte offset of its frame, and its place within that frame.
///
/// Formats whose frames hold one record each (MXNet, FFRecord, plain IDX) always say item 0. Empty
/// FFRecord samples begin where the next sample does, so positions there may be equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// Byte offset of the frame.
    pub frame: u64,
    /// Number of the record within the frame, from 0.
    pub item: u64,
}

impl Position {
    /// The first (or only) record of the frame at `frame`.
    pub fn of_frame(frame: u64) -> Self {
        Position { frame, item: 0 }
    }
}

/// A position together with the stretch of file that must be read to decode the record.
///
/// The span may reach past the frame's true end (an MXNet index file says only where records
/// begin); it never reaches past the end of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The record's address.
    pub position: Position,
    /// Bytes to fetch.
    pub span: Range<u64>,
}

/// The positions of all records of one file, in order, as (frame, number of items) runs.
///
/// A file of one record a frame costs 16 bytes a record; a GRAIL file 16 bytes a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PositionList {
    /// Frame offsets in order; equal ones are frames of empty records, which take no bytes.
    frames: Vec<u64>,
    /// Number of records before each frame, so that record -> frame is a binary search.
    starts: Vec<u64>,
    count: u64,
}

impl PositionList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next record. Records come in file order, item by item.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) when the position does not follow the last one.
    pub fn push(&mut self, position: Position) -> Result<()> {
        let follows = match (self.frames.last(), self.starts.last()) {
            (Some(&frame), Some(&start)) if position.item > 0 => {
                frame == position.frame && position.item == self.count - start
            }
            (Some(&frame), _) => position.frame >= frame,
            (None, _) => position.item == 0,
        };
        if !follows {
            return Err(Error::invalid(format!(
                "position ({}, {}) does not follow the one before it",
                position.frame, position.item
            )));
        }
        if position.item == 0 {
            self.frames.push(position.frame);
            self.starts.push(self.count);
        }
        self.count += 1;
        Ok(())
    }

    /// Adds a frame with `items` records (none is fine and adds nothing).
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) when the frame does not lie after the last one.
    pub fn push_frame(&mut self, frame: u64, items: u64) -> Result<()> {
        if items == 0 {
            return Ok(());
        }
        self.push(Position::of_frame(frame))?;
        self.count =
            self.count.checked_add(items - 1).ok_or_else(|| Error::invalid("more than 2^64 records"))?;
        Ok(())
    }

    /// Adds the positions of another list, which lie behind those of this one.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) when they do not.
    pub fn append(&mut self, other: &PositionList) -> Result<()> {
        if let (Some(last), Some(first)) = (self.frames.last(), other.frames.first())
            && first < last
        {
            return Err(Error::invalid(format!("frame {first} does not follow frame {last}")));
        }
        let base = self.count;
        self.count = base.checked_add(other.count).ok_or_else(|| Error::invalid("more than 2^64 records"))?;
        self.frames.extend_from_slice(&other.frames);
        self.starts.extend(other.starts.iter().map(|start| base + start));
        Ok(())
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Position of record `index`.
    pub fn get(&self, index: u64) -> Option<Position> {
        if index >= self.count {
            return None;
        }
        let run = self.starts.partition_point(|&start| start <= index) - 1;
        Some(Position { frame: *self.frames.get(run)?, item: index - self.starts.get(run)? })
    }

    /// Number of the record at `position`, if there is one; the last of several (empty records may
    /// begin where the next one does).
    pub fn index_of(&self, position: Position) -> Option<u64> {
        let run = self.frames.partition_point(|&frame| frame <= position.frame).checked_sub(1)?;
        if *self.frames.get(run)? != position.frame {
            return None;
        }
        let start = *self.starts.get(run)?;
        let next = self.starts.get(run + 1).copied().unwrap_or(self.count);
        start.checked_add(position.item).filter(|&index| index < next)
    }

    /// Offset of the first frame that begins after `frame`.
    pub fn frame_after(&self, frame: u64) -> Option<u64> {
        self.frames.get(self.frames.partition_point(|&other| other <= frame)).copied()
    }

    /// The runs: (frame offset, number of records in it), in file order.
    pub fn frames(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ends = self.starts.iter().skip(1).copied().chain(std::iter::once(self.count));
        self.frames.iter().zip(&self.starts).zip(ends).map(|((&frame, &start), end)| (frame, end - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_finds_records_by_number_and_by_position() {
        let mut list = PositionList::new();
        list.push_frame(8, 3).unwrap();
        list.push_frame(40, 0).unwrap();
        list.push_frame(64, 1).unwrap();
        assert_eq!(list.len(), 4);
        let all: Vec<_> = (0..5).map(|i| list.get(i).map(|p| (p.frame, p.item))).collect();
        assert_eq!(all, [Some((8, 0)), Some((8, 1)), Some((8, 2)), Some((64, 0)), None]);
        assert_eq!(list.index_of(Position { frame: 8, item: 2 }), Some(2));
        assert_eq!(list.index_of(Position { frame: 8, item: 3 }), None);
        assert_eq!(list.frame_after(8), Some(64));
        assert_eq!(list.frames().collect::<Vec<_>>(), [(8, 3), (64, 1)]);
    }

    #[test]
    fn a_position_out_of_order_is_refused() {
        let mut list = PositionList::new();
        list.push_frame(8, 2).unwrap();
        assert!(list.push(Position { frame: 8, item: 3 }).is_err());
        assert!(list.push(Position { frame: 4, item: 0 }).is_err());
        assert!(list.push(Position { frame: 8, item: 2 }).is_ok());
    }
}
