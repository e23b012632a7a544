//! Positions of records, and a compact list of them.

use crate::base::memory::reserve;
use crate::base::{Checksum, Error, Result};
use std::ops::Range;

/// A record's address: the byte offset of its frame, and its index within that frame.
///
/// In formats with one record per frame (MXNet, FFRecord, plain IDX), the item is always 0. An
/// empty FFRecord sample begins where the next sample does, so positions may be equal there.
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

/// A position together with the byte range that must be read to decode the record.
///
/// The span may extend past the frame's actual end (an MXNet index file lists only where records
/// begin), but never past the end of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Location {
    /// The record's address.
    pub position: Position,
    /// Bytes to fetch.
    pub span: Range<u64>,
    /// Where the record's bytes lie in the span, if they are stored verbatim and the place is known
    /// before the span is fetched.
    pub plain: Option<Plain>,
}

impl Location {
    /// A record that is stored verbatim; nothing else of its frame is needed.
    pub fn plain(position: Position, plain: Plain) -> Self {
        Location { position, span: plain.range.clone(), plain: Some(plain) }
    }

    /// A record that must be decoded from the bytes of `span`.
    pub fn framed(position: Position, span: Range<u64>) -> Self {
        Location { position, span, plain: None }
    }
}

impl Plain {
    /// The record at this range, with the checksum its bytes must have.
    pub fn new(range: Range<u64>, checksum: Option<Checksum>) -> Self {
        Plain { range, checksum }
    }
}

/// A record that is stored verbatim: reading it is a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plain {
    /// The record's bytes.
    pub range: Range<u64>,
    /// The checksum they must have, if the format stores one and it is to be verified.
    pub checksum: Option<Checksum>,
}

/// The positions of all records of one file, in order, as (frame, number of items) runs.
///
/// A file with one record per frame takes 8 bytes per record; a GRAIL file takes 16 bytes per
/// block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PositionList {
    /// Frame offsets in order. Equal offsets are frames of empty records, which take no bytes.
    frames: Vec<u64>,
    /// The number of records before each frame, so that the frame of a record is found by binary
    /// search. Empty as long as every frame has one record, whose number is then that of the frame.
    starts: Vec<u64>,
    count: u64,
}

impl PositionList {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Frames of one record each, at these ascending offsets.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) when they do not.
    pub fn of_single_records(frames: Vec<u64>) -> Result<Self> {
        if !frames.is_sorted() {
            return Err(Error::invalid("frames do not follow each other"));
        }
        Ok(PositionList { count: frames.len() as u64, frames, starts: Vec::new() })
    }

    /// Adds the next record. Records must be added in file order, item by item.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) when the position does not follow the last one.
    pub fn push(&mut self, position: Position) -> Result<()> {
        let follows = match self.frames.last() {
            Some(&frame) if position.item > 0 => {
                let start = self.start(self.frames.len() - 1);
                frame == position.frame && position.item == self.count - start
            }
            Some(&frame) => position.frame >= frame,
            None => position.item == 0,
        };
        if !follows {
            return Err(Error::invalid(format!(
                "position ({}, {}) does not follow the one before it",
                position.frame, position.item
            )));
        }
        if position.item == 0 {
            reserve(&mut self.frames, 1)?;
            if !self.starts.is_empty() {
                reserve(&mut self.starts, 1)?;
                self.starts.push(self.count);
            }
            self.frames.push(position.frame);
        } else {
            self.write_out_starts()?;
        }
        self.count += 1;
        Ok(())
    }

    /// Number of records before a frame.
    fn start(&self, frame: usize) -> u64 {
        self.starts.get(frame).copied().unwrap_or(frame as u64)
    }

    /// Prepares for a frame with more than one record.
    fn write_out_starts(&mut self) -> Result<()> {
        if self.starts.is_empty() {
            reserve(&mut self.starts, self.frames.len())?;
            self.starts.extend(0..self.frames.len() as u64);
        }
        Ok(())
    }

    /// The number of the frame that contains record `index`.
    fn run(&self, index: u64) -> Option<usize> {
        if index >= self.count {
            return None;
        }
        match self.starts.is_empty() {
            true => usize::try_from(index).ok(),
            false => self.starts.partition_point(|&start| start <= index).checked_sub(1),
        }
    }

    /// Adds a frame with `items` records. Zero is allowed and adds nothing.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) when the frame does not lie after the last one.
    pub fn push_frame(&mut self, frame: u64, items: u64) -> Result<()> {
        if items == 0 {
            return Ok(());
        }
        self.push(Position::of_frame(frame))?;
        if items > 1 {
            self.write_out_starts()?;
        }
        self.count =
            self.count.checked_add(items - 1).ok_or_else(|| Error::invalid("more than 2^64 records"))?;
        Ok(())
    }

    /// Appends the positions of another list, which must follow those of this one.
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
        let count = base.checked_add(other.count).ok_or_else(|| Error::invalid("more than 2^64 records"))?;
        reserve(&mut self.frames, other.frames.len())?;
        if !self.starts.is_empty() || !other.starts.is_empty() {
            self.write_out_starts()?;
            reserve(&mut self.starts, other.frames.len())?;
            self.starts.extend((0..other.frames.len()).map(|frame| base + other.start(frame)));
        }
        self.frames.extend_from_slice(&other.frames);
        self.count = count;
        Ok(())
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Position of record `index`.
    pub fn get(&self, index: u64) -> Option<Position> {
        let run = self.run(index)?;
        Some(Position { frame: *self.frames.get(run)?, item: index - self.start(run) })
    }

    /// Position of record `index`, and the offset of the first frame that begins after its own.
    pub fn get_with_next(&self, index: u64) -> Option<(Position, Option<u64>)> {
        let run = self.run(index)?;
        let frame = *self.frames.get(run)?;
        let next = match self.frames.get(run + 1) {
            // Frames of empty records begin where the next one does.
            Some(&next) if next == frame => self.frame_after(frame),
            next => next.copied(),
        };
        Some((Position { frame, item: index - self.start(run) }, next))
    }

    /// The number of the record at `position`, if there is one. If several begin there (empty
    /// records), the last one.
    pub fn index_of(&self, position: Position) -> Option<u64> {
        let run = self.frames.partition_point(|&frame| frame <= position.frame).checked_sub(1)?;
        if *self.frames.get(run)? != position.frame {
            return None;
        }
        let start = self.start(run);
        let next = if run + 1 < self.frames.len() { self.start(run + 1) } else { self.count };
        start.checked_add(position.item).filter(|&index| index < next)
    }

    /// The offset of the first frame that begins after `frame`.
    pub fn frame_after(&self, frame: u64) -> Option<u64> {
        self.frames.get(self.frames.partition_point(|&other| other <= frame)).copied()
    }

    /// The runs: (frame offset, number of records in it), in file order.
    pub fn frames(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let count = |run| match run + 1 < self.frames.len() {
            true => self.start(run + 1) - self.start(run),
            false => self.count - self.start(run),
        };
        self.frames.iter().enumerate().map(move |(run, &frame)| (frame, count(run)))
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
        assert_eq!(list.get_with_next(1), Some((Position { frame: 8, item: 1 }, Some(64))));
        assert_eq!(list.get_with_next(3), Some((Position { frame: 64, item: 0 }, None)));
        assert_eq!(list.frames().collect::<Vec<_>>(), [(8, 3), (64, 1)]);
    }

    #[test]
    fn lists_of_single_records_and_of_shared_frames_can_be_joined() {
        let single = |offsets: &[u64]| {
            let mut list = PositionList::new();
            offsets.iter().for_each(|&offset| list.push_frame(offset, 1).unwrap());
            list
        };
        let mut list = single(&[0, 8, 8]);
        assert_eq!(list.get_with_next(1), Some((Position::of_frame(8), None)));
        list.append(&single(&[20])).unwrap();
        assert_eq!(list, single(&[0, 8, 8, 20]));
        assert_eq!(list.get_with_next(1), Some((Position::of_frame(8), Some(20))));
        let mut shared = PositionList::new();
        shared.push_frame(30, 3).unwrap();
        list.append(&shared).unwrap();
        list.append(&single(&[40])).unwrap();
        let all: Vec<_> = (0..9).filter_map(|i| list.get(i).map(|p| (p.frame, p.item))).collect();
        assert_eq!(all, [(0, 0), (8, 0), (8, 0), (20, 0), (30, 0), (30, 1), (30, 2), (40, 0)]);
        assert_eq!(list.index_of(Position { frame: 30, item: 2 }), Some(6));
        assert_eq!(list.frames().map(|(_, items)| items).collect::<Vec<_>>(), [1, 1, 1, 1, 3, 1]);
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
