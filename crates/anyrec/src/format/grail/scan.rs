//! The sequential parser for both versions.
//!
//! How it continues after damage:
//! - Framing 2: every chunk begins at a multiple of its size, so a bad chunk never hides the next
//!   one. Its block is damage, together with the sound chunks of that block that follow. The scan
//!   resumes at the next chunk that begins a block.
//! - Framing 1: the end of a record with an untrusted length is unknown, so the next sound record
//!   header is searched byte by byte. A record with a sound length and a bad size list is damage
//!   from its beginning to its end.
//!
//! A trailer ends the data of version 2: everything after it is damage as a whole.

use super::block::{Block, Decoder, Framing};
use super::header::Header;
use super::layout::{self, BlockKind, CHUNK, CHUNK_BYTES, CHUNK_HEADER, ChunkRun, ItemCursor};
use super::legacy::{self, RECORD_HEADER};
use crate::base::memory::{copied, reserve};
use crate::base::{Error, ErrorKind, Limits, Position, Result};
use crate::format::{Content, Damage, Event, Integrity, Metadata, Notice, OpenOptions, Scan, ScannedRecord};
use crate::io::{Source, Window};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Bytes searched at a time for a legacy record header.
const SEARCH: usize = 64 << 10;
/// A payload of at least this size is read separately.
const LARGE: u64 = 1 << 20;

/// A scan over a complete file, or a part of one.
pub(super) struct GrailScan {
    window: Window,
    decoder: Decoder,
    stage: Stage,
    /// Blocks that begin at or after this offset are not scanned.
    limit: u64,
    /// Whether the scan covers the entire file, and reports what is missing at its end.
    whole: bool,
    /// The header declares a trailer that has not been found yet.
    awaits_trailer: bool,
    /// Intact records so far.
    records: u64,
    /// Events that are delivered before anything else.
    pending: VecDeque<Event<'static>>,
    /// The block whose items are being delivered.
    current: Option<Current>,
}

enum Stage {
    /// Nothing read yet.
    Begin,
    /// Framing 2, at its header block.
    Header,
    /// Framing 2, header read, transformers not looked up yet.
    Transformers(Header),
    /// Framing 2, after the header.
    Blocks,
    /// Framing 1.
    Records,
    End,
}

struct Current {
    block: Block,
    cursor: ItemCursor,
    span: Range<u64>,
    next: u64,
    integrity: Integrity,
}

impl GrailScan {
    /// Starts a scan at the beginning of a file.
    pub(super) fn new(window: Window, options: &OpenOptions) -> Result<Self> {
        let decoder = Decoder::new(options, window.name())?;
        Ok(Self::at(window, decoder, Stage::Begin, u64::MAX, true))
    }

    /// A scan of the blocks or records that begin in `range`. One must begin at its start.
    pub(super) fn part(
        source: Arc<dyn Source>,
        decoder: Decoder,
        version: Framing,
        range: Range<u64>,
    ) -> Self {
        let window = Window::starting_at(source, range.start);
        let stage = match version {
            Framing::Two => Stage::Blocks,
            Framing::Legacy => Stage::Records,
        };
        Self::at(window, decoder, stage, range.end, false)
    }

    /// Limits this scan to the blocks that begin before `limit`.
    pub(super) fn up_to(mut self, limit: u64) -> Self {
        (self.limit, self.whole) = (limit, false);
        self
    }

    /// Makes this scan cover the end of the file, which should or should not have a trailer.
    pub(super) fn until_the_end(mut self, awaits_trailer: bool) -> Self {
        (self.whole, self.awaits_trailer) = (true, awaits_trailer);
        self
    }

    fn at(window: Window, decoder: Decoder, stage: Stage, limit: u64, whole: bool) -> Self {
        GrailScan {
            window,
            decoder,
            stage,
            limit,
            whole,
            awaits_trailer: false,
            records: 0,
            pending: VecDeque::new(),
            current: None,
        }
    }

    /// Moves to the next block and to item `item` in it, which becomes the next event. Returns the
    /// number of items in the block, or `None` if the next event is not a record.
    pub(super) fn enter(&mut self, item: u64) -> Result<Option<u64>> {
        self.fill()?;
        match &mut self.current {
            Some(current) if self.pending.is_empty() => {
                while current.next < item.min(current.block.count()) {
                    current.block.next(&mut current.cursor);
                    current.next += 1;
                }
                Ok(Some(current.block.count()))
            }
            _ => Ok(None),
        }
    }

    /// Reads until there is an event to deliver, or the end is reached.
    fn fill(&mut self) -> Result<()> {
        while self.pending.is_empty() {
            match &self.current {
                Some(current) if current.next < current.block.count() => break,
                _ => self.current = None,
            }
            if matches!(self.stage, Stage::End) {
                break;
            }
            self.step()?;
        }
        Ok(())
    }

    /// Reads one piece of the file.
    fn step(&mut self) -> Result<()> {
        match &self.stage {
            Stage::Begin => {
                let head = self.window.peek(CHUNK)?;
                self.stage = match Framing::of(head) {
                    _ if head.is_empty() => Stage::End,
                    Framing::Two => Stage::Header,
                    Framing::Legacy => Stage::Records,
                };
                Ok(())
            }
            Stage::Header | Stage::Blocks => self.step_block(),
            Stage::Transformers(header) => {
                // Fails again at every further step: without the transformers nothing can be read.
                self.decoder
                    .set_transformers(header)
                    .map_err(|error| error.in_file(self.window.name()).at(0))?;
                self.stage = Stage::Blocks;
                Ok(())
            }
            Stage::Records => self.step_record(),
            Stage::End => Ok(()),
        }
    }

    /// Framing 2: reads the next block.
    fn step_block(&mut self) -> Result<()> {
        let begin = self.window.offset();
        let verify = self.decoder.verify;
        let ahead = if begin >= self.limit { &[] } else { self.window.peek(CHUNK)? };
        if ahead.is_empty() {
            return self.end_of_blocks();
        }
        let parsed = layout::decode_chunk(ahead, verify)
            .and_then(|chunk| Ok((ChunkRun::begin(&chunk)?, chunk.flag, chunk.payload.len())));
        let (mut run, flag, size) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => return self.bad_chunk(begin, &error),
        };
        if flag != 0 {
            let message = format!("the block's flag is {flag}, where every known writer stores 0");
            self.pending.push_back(Event::Notice(Notice::at(begin, message)));
        }
        let payload = CHUNK_HEADER as u64..(CHUNK_HEADER + size) as u64;
        let first = self.bytes_ahead(payload)?;
        self.window.skip(CHUNK_BYTES)?;
        if run.is_complete() {
            return self.take_block(begin, run.kind, &first);
        }
        let left = self.window.remaining().map_or(0, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let most = usize::try_from(self.decoder.limits.frame).unwrap_or(usize::MAX).max(size);
        let mut joined = Vec::new();
        let capacity = layout::block_capacity(run.total, left.saturating_add(size)).min(most);
        reserve(&mut joined, capacity).map_err(|error| error.in_file(self.window.name()).at(begin))?;
        joined.extend_from_slice(&first);
        drop(first);
        while !run.is_complete() {
            let here = self.window.offset();
            let ahead = self.window.peek(CHUNK)?;
            if ahead.is_empty() {
                self.damage(begin..here, &run.cut_short());
                return Ok(());
            }
            match layout::decode_chunk(ahead, verify).map(|chunk| (chunk, run.push(&chunk))) {
                Ok((chunk, Ok(()))) => {
                    // On a stream, the length was not known in advance.
                    reserve(&mut joined, chunk.payload.len())?;
                    joined.extend_from_slice(chunk.payload);
                }
                // The next block begins here, so the previous one is incomplete.
                Ok((chunk, Err(error))) if chunk.index == 0 => {
                    self.damage(begin..here, &error);
                    return Ok(());
                }
                Ok((_, Err(error))) | Err(error) => return self.bad_chunk(begin, &error),
            }
            self.window.skip(CHUNK_BYTES)?;
            if joined.len() as u64 > self.decoder.limits.frame {
                let error = Limits::exceeded("block size", joined.len() as u64, self.decoder.limits.frame);
                return Err(error.in_file(self.window.name()).at(begin));
            }
        }
        self.take_block(begin, run.kind, &joined.into())
    }

    /// Handles a bad chunk ahead, which also invalidates the block that began at `begin`.
    fn bad_chunk(&mut self, begin: u64, error: &Error) -> Result<()> {
        self.window.skip(CHUNK_BYTES)?;
        // Sound chunks in the middle of a block are useless without its beginning.
        while let Ok(chunk) = layout::decode_chunk(self.window.peek(CHUNK)?, true)
            && chunk.index != 0
        {
            self.window.skip(CHUNK_BYTES)?;
        }
        self.damage(begin..self.window.offset(), error);
        Ok(())
    }

    /// Handles a complete block that ends at the window's position.
    fn take_block(&mut self, begin: u64, kind: BlockKind, stored: &Bytes) -> Result<()> {
        let span = begin..self.window.offset();
        match kind {
            BlockKind::Header if matches!(self.stage, Stage::Header) => match self.decoder.header(stored) {
                Ok(header) => {
                    self.awaits_trailer = header.has_trailer();
                    let content = Content::Header(header.pairs().to_vec());
                    self.stage = Stage::Transformers(header);
                    self.metadata(span, content);
                }
                Err(error) => return self.damage_or_fail(span, error),
            },
            // For example in a concatenated file. Its blocks are read with the first header's
            // transformers.
            BlockKind::Header => self.damage(span, &layout::invalid_magic(kind.magic())),
            BlockKind::Body => match self.decoder.stored_block(stored) {
                Ok(block) => self.begin_block(span, block, self.checked()),
                Err(error) => return self.damage_or_fail(span, error),
            },
            BlockKind::Trailer => match self.decoder.trailer(stored) {
                Ok(item) => {
                    self.metadata(span, Content::Trailer(copied(&item)?));
                    self.awaits_trailer = false;
                    return self.end_of_blocks();
                }
                Err(error) => return self.damage_or_fail(span, error),
            },
        }
        Ok(())
    }

    /// Handles the end: the last block or the trailer was read.
    fn end_of_blocks(&mut self) -> Result<()> {
        self.stage = Stage::End;
        if !self.whole {
            return Ok(());
        }
        let end = self.window.offset();
        let behind = self.window.skip(u64::MAX)?;
        if behind > 0 {
            let error = Error::corrupt(format!("{behind} bytes follow the trailer, which ends the data"));
            self.damage(end..end + behind, &error);
        }
        if self.awaits_trailer {
            let error = Error::corrupt("the header promises a trailer, and there is no intact one");
            self.damage(end..end, &error);
        }
        Ok(())
    }

    /// Framing 1: reads the next record.
    fn step_record(&mut self) -> Result<()> {
        let begin = self.window.offset();
        let head = if begin >= self.limit { &[] } else { self.window.peek(RECORD_HEADER)? };
        if head.is_empty() {
            self.stage = Stage::End;
            return Ok(());
        }
        let (kind, length) = match legacy::decode_record_header(head) {
            Ok(header) => header,
            Err(error) => return self.search_record(begin, &error),
        };
        if length > self.decoder.limits.frame {
            let error = Limits::exceeded("record length", length, self.decoder.limits.frame);
            return Err(error.in_file(self.window.name()).at(begin));
        }
        let payload = RECORD_HEADER as u64..RECORD_HEADER as u64 + length;
        let left = match self.window.remaining() {
            Some(remaining) => remaining,
            // A wrong length costs no memory: the stream's actual bytes bound what is held.
            None => self.window.peek(usize::try_from(payload.end).unwrap_or(usize::MAX))?.len() as u64,
        };
        if left < payload.end {
            let has = left - payload.start;
            let message = format!("record length {length} exceeds the {has} bytes left in the file");
            return self.search_record(begin, &Error::corrupt(message));
        }
        let end = payload.end;
        let payload = self.bytes_ahead(payload)?;
        self.window.skip(end)?;
        let span = begin..begin + end;
        match self.decoder.legacy_block(kind, &payload) {
            // Only the sizes have checksums, not the items.
            Ok(block) => self.begin_block(span, block, Integrity::Absent),
            Err(error) => return self.damage_or_fail(span, error),
        }
        Ok(())
    }

    /// Searches for the next sound record; there is none at `begin`.
    fn search_record(&mut self, begin: u64, error: &Error) -> Result<()> {
        self.window.skip(1)?;
        loop {
            let ahead = self.window.peek(SEARCH)?;
            let (found, last) = (legacy::find_record_header(ahead), ahead.len() < SEARCH);
            // A header may begin in these bytes and end after them.
            let step = found.unwrap_or(if last { ahead.len() } else { ahead.len() - RECORD_HEADER + 1 });
            self.window.skip(step as u64)?;
            if last || found.is_some() {
                break;
            }
        }
        self.damage(begin..self.window.offset(), error);
        Ok(())
    }

    /// The bytes of a range relative to the window's position, which are known to exist.
    fn bytes_ahead(&mut self, range: Range<u64>) -> Result<Bytes> {
        let offset = self.window.offset();
        // Large ranges bypass the window, which would hold a second copy.
        if let Some(source) = self.window.source()
            && range.end > LARGE
        {
            return source.bytes(offset + range.start..offset + range.end);
        }
        let range = usize::try_from(range.start).unwrap_or(usize::MAX)
            ..usize::try_from(range.end).unwrap_or(usize::MAX);
        let ahead = self.window.peek(range.end)?;
        Ok(copied(ahead.get(range).unwrap_or_default())?.into())
    }

    fn begin_block(&mut self, span: Range<u64>, block: Block, integrity: Integrity) {
        if block.count() == 0 {
            self.metadata(span, Content::Filler);
            return;
        }
        let cursor = block.cursor();
        self.current = Some(Current { block, cursor, span, next: 0, integrity });
    }

    fn checked(&self) -> Integrity {
        if self.decoder.verify { Integrity::Verified } else { Integrity::Unchecked }
    }

    fn metadata(&mut self, span: Range<u64>, content: Content) {
        self.pending.push_back(Event::Metadata(Metadata { span, content }));
    }

    /// Reports a frame that cannot be decoded as damage, unless the file is not at fault.
    fn damage_or_fail(&mut self, span: Range<u64>, error: Error) -> Result<()> {
        // A failure of a transformer or of the operating system says nothing about the bytes.
        if error.kind() != ErrorKind::Corrupt {
            return Err(error.in_file(self.window.name()).at(span.start));
        }
        self.damage(span, &error);
        Ok(())
    }

    fn damage(&mut self, span: Range<u64>, error: &Error) {
        // Without a readable header, the names of the transformers are unknown.
        if matches!(self.stage, Stage::Header) {
            self.stage = Stage::Blocks;
        }
        let reason = match (error.expected(), error.found()) {
            (Some(expected), Some(found)) => {
                format!("{}: expected {expected}, found {found}", error.message())
            }
            _ => error.message().to_owned(),
        };
        let damage = Damage { begin: span.start, end: span.end, record: self.records, reason };
        self.pending.push_back(Event::Damage(damage));
    }
}

impl Scan for GrailScan {
    fn next_event(&mut self) -> Result<Event<'_>> {
        self.fill()?;
        if let Some(event) = self.pending.pop_front() {
            return Ok(event);
        }
        let Some(current) = &mut self.current else { return Ok(Event::End) };
        let item = current.next;
        let Some(data) = current.block.next(&mut current.cursor) else { return Ok(Event::End) };
        current.next += 1;
        if data.len() as u64 > self.decoder.limits.record {
            let error = Limits::exceeded("record size", data.len() as u64, self.decoder.limits.record);
            return Err(error.in_file(self.window.name()).at(current.span.start).in_record(self.records));
        }
        self.records += 1;
        let Range { start, end } = current.span;
        Ok(Event::Record(ScannedRecord {
            position: Position { frame: start, item },
            span: if item == 0 { start..end } else { end..end },
            integrity: current.integrity,
            data,
        }))
    }
}
