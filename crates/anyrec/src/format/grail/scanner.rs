//! Reading from front to back, from a position on, or one shard of a file.

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

/// Gives the items of a file one after the other.
///
/// Damage is an error at the item where it is met, after which nothing more comes until
/// [`seek`](Scanner::seek); with [`OpenOptions::skip_damage`] it is left out.
///
/// ```
/// use anyrec::format::{OpenOptions, WriteOptions, grail};
/// use anyrec::io::MemorySource;
/// use std::sync::Arc;
///
/// let mut file = Vec::new();
/// let mut writer = grail::Writer::new(&mut file, &WriteOptions::default())?;
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
    /// Blocks beyond this are another shard's.
    limit: u64,
    scan: GrailScan,
    /// Nothing more comes: the end, or an error, was reached.
    ended: bool,
    location: Option<Position>,
}

impl Scanner {
    /// A scanner over all of a file.
    ///
    /// # Errors
    /// When the header is damaged, names a transformer nobody registered, or cannot be read.
    pub fn new(source: Arc<dyn Source>, options: &OpenOptions) -> Result<Self> {
        let opened = Opened::new(source, options)?;
        let range = opened.body..u64::MAX;
        Self::over(opened, options, range)
    }

    /// A scanner over the shards `[start, limit)` of `of` that a file is divided into.
    ///
    /// The chunks behind the header are divided evenly; a block belongs to the shard its first
    /// chunk is in. So the shards `[0, 1)`, `[1, 2)`, ... `[of - 1, of)` have every item once.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) when the numbers are not `0 <= start < limit <= of`;
    /// [`Unsupported`](ErrorKind::Unsupported) for legacy files, unless all of one is asked for;
    /// otherwise as [`Scanner::new`].
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

    /// The header's pairs; none in legacy files.
    pub fn header(&self) -> &Header {
        &self.opened.header
    }

    /// Version of the format: 2, or 1 for legacy files. An empty file has none: 0.
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
    /// [`Corrupt`](ErrorKind::Corrupt) where the file is damaged; then nothing more comes.
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

    /// Where the last item given is; [`seek`](Scanner::seek) takes it.
    pub fn location(&self) -> Option<Position> {
        self.location
    }

    /// Goes to a position, so that the item there is given next. Going to the end of the file is
    /// fine: nothing comes then. After damage, or the end, this makes the scanner usable again.
    ///
    /// # Errors
    /// [`OutOfRange`](ErrorKind::OutOfRange) for an item the block does not have,
    /// [`Corrupt`](ErrorKind::Corrupt) where no sound block begins at that offset.
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

    /// The trailer, if the header promises one.
    ///
    /// # Errors
    /// [`Corrupt`](ErrorKind::Corrupt) when it is promised and missing, or damaged.
    pub fn trailer(&self) -> Result<Option<Bytes>> {
        self.opened.trailer()
    }

    /// Passes over all that is not an item.
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

/// Where the blocks of a shard begin: in these bytes of the file.
fn shard_range(opened: &Opened, start: i64, limit: i64, of: i64) -> Result<Range<u64>> {
    let chunks = opened.source.len().saturating_sub(opened.body) / CHUNK_BYTES;
    let bound =
        |shard: i64| opened.body.saturating_add(chunks_before(shard, chunks, of).saturating_mul(CHUNK_BYTES));
    let (mut begin, end) = (bound(start), bound(limit));
    if start > 0 && begin < end {
        let bytes = opened.source.bytes(begin..begin + CHUNK_BYTES)?;
        // The middle of a block of the shard before: go to its end. A chunk that is damaged is
        // left to the scan, which says so.
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

/// Chunks in the shards before `shard`, in the floating-point arithmetic of the original: other
/// ways of rounding would give some blocks to other shards.
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
