//! Records by number, and by position.
//!
//! Opening reads the header block. Nothing in a file says how many records it has or where they
//! are, so numbering takes a scan, once and on first use, unless the caller brings the positions
//! along (from a table). After that a record costs its block: read, checked, decoded, and kept
//! for a while, as its neighbours are likely to be asked for next.

use super::FORMAT;
use super::block::{Block, Decoder, Framing};
use super::cache::BlockCache;
use super::header::Header;
use super::layout::{self, BlockKind, CHUNK_BYTES, ChunkRun};
use super::legacy::{self, RECORD_HEADER, RecordKind};
use crate::base::{Batch, Error, ErrorKind, Hint, Limits, Location, Position, PositionList, Result};
use crate::format::scan_ahead;
use crate::format::{Event, Format, Info, Notice, OpenOptions, RecordReader};
use crate::io::{Source, Window};
use crate::threads::fork::Once;
use crate::threads::interrupt::go_on;
use bytes::Bytes;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// What is read at opening, the same for reader and scanner.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) source: Arc<dyn Source>,
    pub(super) version: Framing,
    pub(super) decoder: Decoder,
    pub(super) header: Header,
    /// Where the header block ends and the body begins; 0 in legacy files.
    pub(super) body: u64,
    /// First eight bytes of a legacy file are those of a packed record.
    packed: bool,
    notices: Vec<Notice>,
}

impl Opened {
    pub(super) fn new(source: Arc<dyn Source>, options: &OpenOptions) -> Result<Self> {
        let decoder = Decoder::new(options, source.name())?;
        let head = source.bytes(0..source.len().min(CHUNK_BYTES))?;
        let version = Framing::of(&head);
        let packed = head.starts_with(&RecordKind::Packed.magic());
        let (header, body, notices) = (Header::default(), 0, Vec::new());
        let mut opened = Opened { source, version, decoder, header, body, packed, notices };
        if version == Framing::Legacy {
            opened.check_legacy_head(&head, options)?;
            return Ok(opened);
        }
        match opened.read_header() {
            Ok((header, body)) => {
                (opened.header, opened.body) = (header, body);
                opened.decoder.set_transformers(&opened.header).map_err(|error| opened.place(error, 0))?;
            }
            Err(error) if options.skip_damage && error.kind() == ErrorKind::Corrupt => {
                let message = format!("the header is lost: {}", error.message());
                opened.notices.push(Notice::at(0, message));
            }
            Err(error) => return Err(opened.place(error, 0)),
        }
        Ok(opened)
    }

    /// A file that begins like neither version is refused at once.
    fn check_legacy_head(&self, head: &[u8], options: &OpenOptions) -> Result<()> {
        let known = head.first_chunk().is_some_and(|&magic| RecordKind::from_magic(magic).is_some());
        if known || head.is_empty() || options.skip_damage {
            return Ok(());
        }
        let error = legacy::decode_record_header(head).err();
        Err(self.place(error.unwrap_or_else(|| Error::corrupt("not a GRAIL recordio file")), 0))
    }

    fn read_header(&self) -> Result<(Header, u64)> {
        let (kind, stored, end) = self.block_at(0)?;
        if kind != BlockKind::Header {
            return Err(layout::invalid_magic(kind.magic()));
        }
        Ok((self.decoder.header(&stored)?, end))
    }

    /// Kind, joined payloads and end of the version 2 block at `offset`.
    fn block_at(&self, offset: u64) -> Result<(BlockKind, Bytes, u64)> {
        let bytes = self.frame_bytes(offset, |range| self.source.bytes(range))?;
        let (kind, stored) = layout::join_block(&bytes, self.decoder.verify)?;
        let stored = match stored {
            Cow::Borrowed(stored) => bytes.slice_ref(stored),
            Cow::Owned(stored) => stored.into(),
        };
        Ok((kind, stored, offset.saturating_add(bytes.len() as u64)))
    }

    /// The bytes of the frame at `offset`, as far as the file has them: first as much as says how
    /// long it is, then all of it.
    fn frame_bytes(&self, offset: u64, read: impl Fn(Range<u64>) -> Result<Bytes>) -> Result<Bytes> {
        let left = self.source.len().saturating_sub(offset);
        let read = |size: u64| read(offset..offset.saturating_add(size.min(left)));
        let (begun, size) = match self.version {
            Framing::Two => {
                let chunk = read(CHUNK_BYTES)?;
                let total =
                    layout::decode_chunk(&chunk, false).and_then(|chunk| ChunkRun::begin(&chunk))?.total;
                (chunk, CHUNK_BYTES.saturating_mul(total.into()))
            }
            Framing::Legacy => {
                let header = read(RECORD_HEADER as u64)?;
                let (_, length) = legacy::decode_record_header(&header)?;
                (header, length.saturating_add(RECORD_HEADER as u64))
            }
        };
        if size <= begun.len() as u64 {
            return Ok(begun);
        }
        read(size)
    }

    /// The trailer, if the header promises one: the block that ends with the file's last chunk.
    pub(super) fn trailer(&self) -> Result<Option<Bytes>> {
        if !self.header.has_trailer() {
            return Ok(None);
        }
        let missing = |what: &str| Error::corrupt(format!("the header promises a trailer, but {what}"));
        let chunks = self.source.len() / CHUNK_BYTES;
        let last = chunks.checked_sub(1).ok_or_else(|| missing("the file has no whole chunk"))?;
        let offset = last * CHUNK_BYTES;
        let read = || {
            let bytes = self.source.bytes(offset..offset + CHUNK_BYTES)?;
            let chunk = layout::decode_chunk(&bytes, self.decoder.verify)?;
            if chunk.kind != BlockKind::Trailer {
                let found = layout::show_magic(chunk.kind.magic());
                return Err(missing("the last chunk is not one")
                    .expected_found(layout::show_magic(layout::TRAILER_MAGIC), found));
            }
            let first =
                last.checked_sub(chunk.index.into()).ok_or_else(|| missing("it begins before the file"))?;
            let (kind, stored, _) = self.block_at(first * CHUNK_BYTES)?;
            if kind != BlockKind::Trailer {
                return Err(missing("its first chunk is not one"));
            }
            self.decoder.trailer(&stored)
        };
        read().map(Some).map_err(|error| self.place(error, offset))
    }

    /// Adds file, offset and hint to an error about the file's bytes.
    pub(super) fn place(&self, error: Error, offset: u64) -> Error {
        let name = self.source.name();
        let wants_hint = error.kind() == ErrorKind::Corrupt && error.hint().is_none();
        let error = if wants_hint { error.with_hint(Hint::damaged(name)) } else { error };
        error.in_file(name).at(offset)
    }
}

/// Reads records of one GRAIL file by number.
#[derive(Debug)]
pub(super) struct Reader {
    opened: Opened,
    options: OpenOptions,
    positions: Once<Arc<PositionList>>,
    trailer: Once<Option<Bytes>>,
    cache: BlockCache,
}

impl Reader {
    pub(super) fn open(source: Arc<dyn Source>, options: &OpenOptions) -> Result<Self> {
        let opened = Opened::new(source, options)?;
        let positions = options.positions.clone().map_or_else(Once::new, Once::of);
        let (trailer, cache) = (Once::new(), BlockCache::default());
        Ok(Reader { opened, options: options.clone(), positions, trailer, cache })
    }

    fn positions(&self) -> Result<&Arc<PositionList>> {
        if let Some(positions) = self.positions.get() {
            return Ok(positions);
        }
        // Two threads may both scan; the first result stays, and both are the same.
        let found = Arc::new(self.number_records()?);
        Ok(self.positions.get_or_init(|| found))
    }

    fn number_records(&self) -> Result<PositionList> {
        let mut scan = scan_ahead(&FORMAT, Window::new(Arc::clone(&self.opened.source)), &self.options)?;
        let mut positions = PositionList::new();
        loop {
            match scan.next_event()? {
                Event::Record(record) => {
                    if record.position.item == 0 {
                        go_on()?;
                    }
                    positions.push(record.position)?;
                }
                // A trailer that is missing costs no record.
                Event::Damage(damage) if !self.options.skip_damage && damage.begin < damage.end => {
                    return Err(damage.into_error(self.opened.source.name()));
                }
                Event::End => return Ok(positions),
                _ => {}
            }
        }
    }

    fn position(&self, index: u64) -> Result<Position> {
        let positions = self.positions()?;
        positions
            .get(index)
            .ok_or_else(|| Error::no_such_record(index, positions.len()).in_file(self.opened.source.name()))
    }

    /// The block at `frame`, from the cache or from the file.
    fn block(&self, index: u64, frame: u64) -> Result<Arc<Block>> {
        if let Some(block) = self.cache.get(frame) {
            return Ok(block);
        }
        let source = &self.opened.source;
        // What is decoded into other memory need not be copied out of a mapped file first.
        let read = |range| if self.is_transformed() { source.view(range) } else { source.bytes(range) };
        source.guard()?;
        let decoded = self
            .opened
            .frame_bytes(frame, read)
            .and_then(|bytes| self.opened.decoder.block(self.opened.version, &bytes))
            .map_err(|error| self.opened.place(error, frame).in_record(index));
        let block = Arc::new(source.check_unchanged().and(decoded)?);
        self.cache.put(frame, &block);
        Ok(block)
    }

    fn item(&self, index: u64, position: Position, block: &Block) -> Result<Bytes> {
        let item =
            block.item(position.item).ok_or_else(|| self.no_such_item(index, position, block.count()))?;
        self.check_size(index, position, item.len())?;
        Ok(item)
    }

    fn check_size(&self, index: u64, position: Position, size: usize) -> Result<()> {
        let limit = self.options.limits.record;
        if size as u64 > limit {
            let error = Limits::exceeded("record size", size as u64, limit);
            return Err(error.in_file(self.opened.source.name()).at(position.frame).in_record(index));
        }
        Ok(())
    }

    fn no_such_item(&self, index: u64, position: Position, count: u64) -> Error {
        Error::new(
            ErrorKind::Stale,
            format!("there is no item {} in the block: it has {count}", position.item),
        )
        .in_file(self.opened.source.name())
        .at(position.frame)
        .in_record(index)
        .with_hint("the table was made for another file; make it anew")
    }
}

impl RecordReader for Reader {
    fn format(&self) -> &'static dyn Format {
        &FORMAT
    }

    fn source(&self) -> &Arc<dyn Source> {
        &self.opened.source
    }

    fn info(&self) -> Result<Info> {
        let mut info = Info {
            version: match (self.opened.version, self.opened.packed) {
                (Framing::Two, _) => "2",
                (Framing::Legacy, false) => "1-unpacked",
                (Framing::Legacy, true) => "1-packed",
            }
            .to_owned(),
            header: self.opened.header.pairs().to_vec(),
            notices: self.opened.notices.clone(),
            ..Info::default()
        };
        let trailer = match self.trailer.get() {
            Some(trailer) => trailer.clone(),
            None => match self.opened.trailer() {
                Ok(trailer) => self.trailer.get_or_init(|| trailer).clone(),
                Err(error) if self.options.skip_damage && error.kind() == ErrorKind::Corrupt => {
                    info.notices.push(Notice::new(error.message()));
                    None
                }
                Err(error) => return Err(error),
            },
        };
        info.trailer = trailer.map(Vec::from);
        Ok(info)
    }

    fn count(&self) -> Result<u64> {
        Ok(self.positions()?.len())
    }

    fn locate(&self, index: u64) -> Result<Location> {
        let positions = self.positions()?;
        let length = self.opened.source.len();
        let (position, next) = positions.get_with_next(index).ok_or_else(|| {
            Error::no_such_record(index, positions.len()).in_file(self.opened.source.name())
        })?;
        let end = next.unwrap_or(length).min(length);
        Ok(Location { position, span: position.frame..end, plain: None })
    }

    fn decode<'a>(&self, index: u64, location: &Location, frame: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        let position = location.position;
        let decoded = self
            .opened
            .decoder
            .frame(self.opened.version, frame)
            .map_err(|error| self.opened.place(error, position.frame).in_record(index))?;
        let count = decoded.count();
        let item =
            decoded.into_item(position.item).ok_or_else(|| self.no_such_item(index, position, count))?;
        self.check_size(index, position, item.len())?;
        Ok(item)
    }

    fn read(&self, index: u64) -> Result<Bytes> {
        self.opened.source.check_unchanged()?;
        let position = self.position(index)?;
        let block = self.block(index, position.frame)?;
        self.item(index, position, &block)
    }

    fn is_transformed(&self) -> bool {
        self.opened.decoder.is_transforming()
    }

    fn read_decoded(&self, indices: &[u64], batch: &mut Batch) -> Result<()> {
        // Records are copied out at once: a slice would keep its whole block in memory.
        let mut held: Option<(u64, Arc<Block>)> = None;
        for &index in indices {
            let position = self.position(index)?;
            let block = match held.take() {
                Some((frame, block)) if frame == position.frame => block,
                _ => self.block(index, position.frame)?,
            };
            batch.try_push(&self.item(index, position, &block)?)?;
            held = Some((position.frame, block));
        }
        Ok(())
    }
}
