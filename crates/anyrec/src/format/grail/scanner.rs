//! Reads from the beginning, from a position onwards, or one shard of a file.

use super::block::Framing;
use super::header::Header;
use super::layout::{self, CHUNK_BYTES};
use super::read::Opened;
use super::scan::GrailScan;
use crate::base::{Error, ErrorKind, Position, Result};
use crate::format::{Event, OpenOptions, Scan};
use crate::io::Source;
use bytes::Bytes;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Returns the items of a file one after the other.
///
/// Damage is an error at the item where it is found, and no more items follow until
/// [`seek`](Scanner::seek). With [`OpenOptions::skip_damage`] it is skipped.
///
/// ```
/// use anyrec::format::{OpenOptions, grail};
/// use anyrec::io::MemorySource;
/// use std::sync::Arc;
///
/// let mut file = Vec::new();
/// let mut writer = grail::Writer::new(&mut file, &grail::WriteOptions::default())?;
/// writer.append(b"one")?;
/// writer.append(b"two")?;
/// writer.finish()?;
/// drop(writer);
///
/// let source = Arc::new(MemorySource::new("example", file));
/// let mut scanner = grail::Scanner::new(source, &OpenOptions::default())?;
/// assert_eq!(scanner.next_item()?, Some(&b"one"[..]));
/// let first = scanner.location();
/// assert_eq!(scanner.next_item()?, Some(&b"two"[..]));
/// assert_eq!(scanner.next_item()?, None);
/// scanner.seek(first.unwrap())?;
/// assert_eq!(scanner.next_item()?, Some(&b"one"[..]));
/// # Ok::<(), anyrec::Error>(())
/// ```
pub struct Scanner {
    opened: Opened,
    skip_damage: bool,
    /// Blocks beyond this belong to another shard.
    limit: u64,
    scan: GrailScan,
    /// Whether the end, or an error, was reached.
    ended: bool,
    location: Option<Position>,
}

impl Scanner {
    /// Creates a scanner over an entire file.
    ///
    /// # Errors
    /// If the header is damaged, names an unknown transformer, or cannot be read.
    pub fn new(source: Arc<dyn Source>, options: &OpenOptions) -> Result<Self> {
        let opened = Opened::new(source, options)?;
        let range = opened.body..u64::MAX;
        Self::over(opened, options, range)
    }

    /// Creates a scanner over the shards `[start, limit)` out of `of` shards of a file.
    ///
    /// The chunks after the header are divided evenly, and a block belongs to the shard that
    /// contains its first chunk. The shards `[0, 1)`, `[1, 2)`, ... `[of - 1, of)` therefore
    /// contain every item once.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) unless `0 <= start < limit <= of`;
    /// [`Unsupported`](ErrorKind::Unsupported) for legacy files, unless the entire file is
    /// requested; otherwise same as [`Scanner::new`].
    pub fn new_shard(
        source: Arc<dyn Source>,
        options: &OpenOptions,
        start: i64,
        limit: i64,
        of: i64,
    ) -> Result<Self> {
        if start < 0 || start >= limit || limit > of {
            return Err(Error::invalid(format!("invalid sharding [{start},{limit}) of {of}")));
        }
        let opened = Opened::new(source, options)?;
        if opened.version == Framing::Legacy {
            if (start, limit, of) == (0, 1, 1) || opened.source.is_empty() {
                return Self::over(opened, options, 0..u64::MAX);
            }
            return Err(Error::unsupported("legacy files cannot be sharded").in_file(opened.source.name()));
        }
        let range = shard_range(&opened, start, limit, of)?;
        Self::over(opened, options, range)
    }

    fn over(opened: Opened, options: &OpenOptions, range: Range<u64>) -> Result<Self> {
        let limit = range.end;
        let scan = part(&opened, range);
        let skip_damage = options.skip_damage;
        Ok(Scanner { opened, skip_damage, limit, scan, ended: false, location: None })
    }

    /// The header's pairs; empty in legacy files.
    pub fn header(&self) -> &Header {
        &self.opened.header
    }

    /// Version of the format: 2, or 1 for legacy files. 0 for an empty file.
    pub fn version(&self) -> u32 {
        match self.opened.version {
            Framing::Two => 2,
            Framing::Legacy if self.opened.source.is_empty() => 0,
            Framing::Legacy => 1,
        }
    }

    /// The next item; `None` at the end.
    ///
    /// # Errors
    /// [`Corrupt`](ErrorKind::Corrupt) where the file is damaged; no more items follow.
    pub fn next_item(&mut self) -> Result<Option<&[u8]>> {
        if !self.ended {
            self.advance()?;
        }
        if self.ended {
            return Ok(None);
        }
        match self.scan.next_event()? {
            Event::Record(record) => {
                self.location = Some(record.position);
                Ok(Some(record.data))
            }
            _ => Ok(None),
        }
    }

    /// The position of the last returned item, for [`seek`](Scanner::seek).
    pub fn location(&self) -> Option<Position> {
        self.location
    }

    /// Moves to a position; its item is returned next. Seeking to the end of the file is allowed,
    /// and then no item follows. After damage, or at the end, this makes the scanner usable again.
    /// # Errors
    /// [`OutOfRange`](ErrorKind::OutOfRange) for an item that is not in the block,
    /// [`Corrupt`](ErrorKind::Corrupt) if no sound block begins at that offset.
    pub fn seek(&mut self, position: Position) -> Result<()> {
        self.scan = part(&self.opened, position.frame..self.limit);
        self.ended = true;
        self.location = None;
        match self.scan.enter(position.item)? {
            Some(count) if position.item >= count => {
                let message = format!("there is no item {} in the block: it has {count}", position.item);
                let error = Error::new(ErrorKind::OutOfRange, message);
                return Err(error.in_file(self.opened.source.name()).at(position.frame));
            }
            Some(_) => self.ended = false,
            None => match self.scan.next_event()? {
                Event::Damage(damage) => return Err(damage.into_error(self.opened.source.name())),
                Event::End => {}
                _ => self.ended = false,
            },
        }
        Ok(())
    }

    /// The trailer, if the header declares one.
    ///
    /// # Errors
    /// [`Corrupt`](ErrorKind::Corrupt) if it is declared but missing, or damaged.
    pub fn trailer(&self) -> Result<Option<Bytes>> {
        self.opened.trailer()
    }

    /// Skips everything that is not an item.
    fn advance(&mut self) -> Result<()> {
        while self.scan.enter(0)?.is_none() {
            match self.scan.next_event()? {
                Event::Damage(damage) if !self.skip_damage => {
                    self.ended = true;
                    return Err(damage.into_error(self.opened.source.name()));
                }
                Event::End => {
                    self.ended = true;
                    return Ok(());
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn part(opened: &Opened, range: Range<u64>) -> GrailScan {
    GrailScan::part(Arc::clone(&opened.source), opened.decoder.clone(), opened.version, range)
}

/// The byte range in which the blocks of a shard begin.
fn shard_range(opened: &Opened, start: i64, limit: i64, of: i64) -> Result<Range<u64>> {
    let chunks = opened.source.len().saturating_sub(opened.body) / CHUNK_BYTES;
    let bound =
        |shard: i64| opened.body.saturating_add(chunks_before(shard, chunks, of).saturating_mul(CHUNK_BYTES));
    let (mut begin, end) = (bound(start), bound(limit));
    if start > 0 && begin < end {
        let bytes = opened.source.bytes(begin..begin + CHUNK_BYTES)?;
        // In the middle of a block of the previous shard: move to its end. A damaged chunk is left
        // to the scan, which reports it.
        if let Ok(chunk) = layout::decode_chunk(&bytes, false)
            && chunk.index > 0
            && chunk.index < chunk.total
        {
            let left = u64::from(chunk.total - chunk.index);
            begin = begin.saturating_add(left.saturating_mul(CHUNK_BYTES));
        }
    }
    Ok(begin..end)
}

/// Number of chunks in the shards before `shard`, in the floating-point arithmetic of the original:
/// rounding differently would assign some blocks to other shards.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn chunks_before(shard: i64, chunks: u64, of: i64) -> u64 {
    (shard as f64 * (chunks as f64 / of as f64)) as u64
}

impl fmt::Debug for Scanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scanner")
            .field("file", &self.opened.source.name())
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}
