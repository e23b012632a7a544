//! A forward view over a source: what every scan reads through.
//!
//! A scan peeks at the bytes ahead, decides, and skips what it has dealt with. Over memory the
//! peek is a slice of it; over anything else it is a buffer that grows only as far as bytes
//! really arrive, so a length field that lies cannot make it allocate. What lies behind the window
//! is given back, so that a walk over a mapped file does not keep all of it in memory.

use super::copy::bring_near;
use super::read_at::{RangeRead, ReadAt};
use super::walk::Walk;
use crate::error::{Error, Result};
use bytes::Bytes;
use std::fmt;
use std::io::Read;
use std::sync::Arc;

/// Bytes fetched at a time from a source that does not lie in memory.
const FETCH: usize = 1 << 20;
/// How often a walk over a mapped file looks whether that is still as long: reading what was cut off
/// would end the process.
const CHECK: u64 = 1 << 20;

/// Bytes of a source in memory that are looked at together.
const STRETCH: usize = 1 << 20;

/// How far ahead of a walk the processor is asked for bytes, and for how many lines of them: about as
/// many as a small record has. By itself it stops at the end of every page.
const NEAR: usize = 2 << 10;
const NEAR_LINES: usize = 10;

/// Asks the processor for what comes soon, for a walk that has come to the beginning of some bytes.
#[inline]
pub(crate) fn bring_next_near(ahead: &[u8]) {
    bring_near(ahead.get(NEAR..).unwrap_or_default(), NEAR_LINES);
}

/// A forward-only view over a [`ReadAt`] or a stream.
pub struct Window {
    origin: Origin,
    /// Offset of the next byte to look at.
    offset: u64,
    /// Bytes fetched and not yet skipped; unused over memory.
    buffer: Vec<u8>,
    /// Where `offset` is within `buffer`.
    consumed: usize,
    walk: Walk,
    /// From this offset on the source is looked at again: it may have been cut short meanwhile.
    check_at: u64,
    /// All of the source, where it lies in memory. Kept here, and the length too, as asking the source
    /// for every record would cost as much as the rest of a small record's step.
    memory: Option<Bytes>,
    /// Length of the source; unknown on a stream.
    length: Option<u64>,
}

enum Origin {
    Source(Arc<dyn ReadAt>),
    Stream { name: String, reader: Box<dyn Read + Send>, ended: bool },
}

impl Window {
    /// A window at the beginning of a source.
    pub fn new(source: Arc<dyn ReadAt>) -> Self {
        Self::over(Origin::Source(source))
    }

    /// A window at `offset` of a source, or at its end if that comes first.
    pub fn starting_at(source: Arc<dyn ReadAt>, offset: u64) -> Self {
        let offset = offset.min(source.len());
        let mut window = Self::new(source);
        (window.offset, window.walk) = (offset, Walk::from(offset));
        window
    }

    /// A window over a stream (standard input, a decompressor); `name` stands in messages.
    pub fn from_stream(name: impl Into<String>, reader: impl Read + Send + 'static) -> Self {
        Self::over(Origin::Stream { name: name.into(), reader: Box::new(reader), ended: false })
    }

    fn over(origin: Origin) -> Self {
        let (memory, length) = match &origin {
            Origin::Source(source) => {
                let length = source.len();
                (source.as_slice().and_then(|_| source.bytes(0..length).ok()), Some(length))
            }
            Origin::Stream { .. } => (None, None),
        };
        Window {
            origin,
            offset: 0,
            buffer: Vec::new(),
            consumed: 0,
            walk: Walk::from(0),
            check_at: 0,
            memory,
            length,
        }
    }

    /// What to call the source in messages.
    pub fn name(&self) -> &str {
        match &self.origin {
            Origin::Source(source) => source.name(),
            Origin::Stream { name, .. } => name,
        }
    }

    /// The source, unless this is a stream.
    pub fn source(&self) -> Option<&Arc<dyn ReadAt>> {
        match &self.origin {
            Origin::Source(source) => Some(source),
            Origin::Stream { .. } => None,
        }
    }

    /// Offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Length of the source; unknown on a stream.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Bytes from here to the end; unknown on a stream.
    pub fn remaining(&self) -> Option<u64> {
        self.length.map(|length| length.saturating_sub(self.offset))
    }

    /// Up to `want` bytes from here on: fewer only where the input ends.
    ///
    /// # Errors
    /// Only when reading itself fails.
    #[inline]
    pub fn peek(&mut self, want: usize) -> Result<&[u8]> {
        if self.memory.is_none() {
            while self.buffer.len() - self.consumed < want && self.fetch(want)? {}
        } else if self.offset >= self.check_at {
            self.check_at = self.look_again()?;
        }
        let ahead = match &self.memory {
            Some(memory) => usize::try_from(self.offset).ok().and_then(|offset| memory.get(offset..)),
            None => self.buffer.get(self.consumed..),
        };
        let ahead = ahead.unwrap_or_default();
        Ok(ahead.get(..want).unwrap_or(ahead))
    }

    /// A stretch of the bytes from here on, where the source lies in memory; nothing elsewhere.
    ///
    /// # Errors
    /// Where the source was cut short meanwhile.
    pub fn stretch(&mut self) -> Result<Bytes> {
        let Some(memory) = self.memory.clone() else { return Ok(Bytes::new()) };
        Ok(memory.slice_ref(self.peek(STRETCH)?))
    }

    /// Makes sure that a source in memory is still as long; says where to look the next time.
    fn look_again(&self) -> Result<u64> {
        if let Origin::Source(source) = &self.origin {
            source.check_unchanged()?;
        }
        Ok(self.offset.saturating_add(CHECK))
    }

    /// Moves on by `count` bytes, or to the end of the input if that comes first; says how far.
    ///
    /// # Errors
    /// Only when reading itself fails.
    #[inline]
    pub fn skip(&mut self, count: u64) -> Result<u64> {
        let left = self.remaining().map_or(count, |remaining| count.min(remaining));
        match (&self.memory, &self.origin) {
            (Some(memory), Origin::Source(source)) => {
                self.offset += left;
                let ahead = usize::try_from(self.offset).ok().and_then(|at| memory.get(at..));
                bring_next_near(ahead.unwrap_or_default());
                self.walk.is_at(source, self.offset);
                Ok(left)
            }
            _ => self.skip_fetched(left),
        }
    }

    fn skip_fetched(&mut self, mut left: u64) -> Result<u64> {
        let begin = self.offset;
        let buffered = ((self.buffer.len() - self.consumed) as u64).min(left);
        // At most what lies in the buffer.
        #[allow(clippy::cast_possible_truncation)]
        let buffered_bytes = buffered as usize;
        self.consumed += buffered_bytes;
        self.offset += buffered;
        left -= buffered;
        match &self.origin {
            Origin::Source(source) => {
                self.offset += left;
                self.walk.is_at(source, self.offset);
            }
            Origin::Stream { .. } => {
                while left > 0 {
                    let ahead = self.peek(FETCH)?.len();
                    if ahead == 0 {
                        break;
                    }
                    let step = left.min(ahead as u64);
                    self.skip(step)?;
                    left -= step;
                }
            }
        }
        Ok(self.offset - begin)
    }

    /// Brings in more bytes behind the buffered ones; false at the end of the input.
    fn fetch(&mut self, want: usize) -> Result<bool> {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        let have = self.buffer.len();
        // Doubling keeps the work linear; the bytes at hand bound it, never a declared length.
        let mut step = want.saturating_sub(have).clamp(FETCH, FETCH.max(have));
        match &mut self.origin {
            Origin::Source(source) => {
                let at = self.offset + have as u64;
                let left = source.len().saturating_sub(at);
                step = usize::try_from(left).map_or(step, |left| left.min(step));
                if step == 0 {
                    return Ok(false);
                }
                self.buffer.resize(have + step, 0);
                let buffer = self.buffer.get_mut(have..).unwrap_or_default();
                source.read_ranges(&mut [RangeRead { offset: at, buffer }])?;
                Ok(true)
            }
            Origin::Stream { name, reader, ended } => {
                if *ended {
                    return Ok(false);
                }
                let got = reader
                    .take(step as u64)
                    .read_to_end(&mut self.buffer)
                    .map_err(|error| Error::io("cannot read", error).in_file(name.clone()))?;
                *ended = got < step;
                Ok(got > 0)
            }
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if let Origin::Source(source) = &self.origin {
            self.walk.ends_at(source, self.offset);
        }
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Window({} at byte {})", self.name(), self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{Access, MemorySource, open_file};

    fn windows(data: &[u8]) -> Vec<Window> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, data).unwrap();
        vec![
            Window::new(Arc::new(MemorySource::new("memory", data.to_vec()))),
            Window::new(open_file(file.path(), Access::Positional).unwrap()),
            Window::from_stream("stream", std::io::Cursor::new(data.to_vec())),
        ]
    }

    #[test]
    fn peek_gives_what_is_there_and_skip_stops_at_the_end() {
        let data: Vec<u8> = (0..3_000_000u32).map(|i| i.to_le_bytes()[0] ^ i.to_le_bytes()[2]).collect();
        for mut window in windows(&data) {
            assert_eq!(window.peek(10).unwrap(), &data[..10]);
            assert_eq!(window.skip(7).unwrap(), 7);
            assert_eq!(window.peek(2_500_000).unwrap(), &data[7..2_500_007]);
            assert_eq!(window.skip(2_999_990).unwrap(), 2_999_990);
            assert_eq!(window.peek(100).unwrap(), &data[2_999_997..]);
            assert_eq!(window.skip(100).unwrap(), 3);
            assert_eq!(window.peek(1).unwrap(), b"");
            assert_eq!(window.offset(), 3_000_000);
        }
    }
}
