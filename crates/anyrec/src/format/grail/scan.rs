//! The one sequential parser, for both versions.
//!
//! How it goes on after damage:
//! - Framing 2: every chunk begins at a multiple of its size, so a bad chunk never hides where
//!   the next one is. The block it belongs to is damage, with the sound chunks of that block that
//!   follow it; scanning resumes at the next chunk that begins a block.
//! - Framing 1: a record whose length cannot be trusted ends nowhere, so the next sound record
//!   header is searched byte by byte. A record with a sound length and a bad size list is damage
//!   from its beginning to its end.
//!
//! A trailer ends the data of version 2: whatever follows it is damage as a whole.

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

/// Bytes looked through at a time for a legacy record header.
const SEARCH: usize = 64 << 10;
/// From this size on a payload is read by itself.
const LARGE: u64 = 1 << 20;

/// A scan over a whole file, or over a part of one.
pub(super) struct GrailScan {
    window: Window,
    decoder: Decoder,
    stage: Stage,
    /// No block that begins here or later is scanned.
    limit: u64,
    /// Whether the scan covers the file, and answers for what is missing at its end.
    whole: bool,
    /// The header promises a trailer that was not met yet.
    awaits_trailer: bool,
    /// Intact records so far.
    records: u64,
    /// Events to give before anything else.
    pending: VecDeque<Event<'static>>,
    /// The block whose items are being given.
    current: Option<Current>,
}

enum Stage {
    /// Nothing read yet.
    Begin,
    /// Framing 2, at its header block.
    Header,
    /// Framing 2, header read, transformers not looked up yet.
    Transformers(Header),
    /// Framing 2, behind the header.
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
    /// A scan from the beginning of a file.
    pub(super) fn new(window: Window, options: &OpenOptions) -> Result<Self> {
        let decoder = Decoder::new(options, window.name())?;
        Ok(Self::at(window, decoder, Stage::Begin, u64::MAX, true))
    }

    /// A scan of the blocks or records that begin in `range`, itself beginning with one.
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

    /// This scan, but only of the blocks that begin before `limit`.
    pub(super) fn up_to(mut self, limit: u64) -> Self {
        (self.limit, self.whole) = (limit, false);
        self
    }

    /// This scan, answering for the end of the file, which should have a trailer or not.
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

    /// Goes to the next block and to item `item` in it, so that this is the next event. Says how
    /// many items the block has; `None` where the next event is not a record.
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

    /// Reads on until there is an event to give, or the end is reached.
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
                // Fails again at every further step: without them there is nothing to read.
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

    /// Framing 2: the next block.
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
                    // On a stream there was no telling how much would come.
                    reserve(&mut joined, chunk.payload.len())?;
                    joined.extend_from_slice(chunk.payload);
                }
                // The next block begins here: what came before lacks its end.
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

    /// The chunk ahead is bad, and with it the block that began at `begin`.
    fn bad_chunk(&mut self, begin: u64, error: &Error) -> Result<()> {
        self.window.skip(CHUNK_BYTES)?;
        // Sound chunks in the middle of a block are of no use without its beginning.
        while let Ok(chunk) = layout::decode_chunk(self.window.peek(CHUNK)?, true)
            && chunk.index != 0
        {
            self.window.skip(CHUNK_BYTES)?;
        }
        self.damage(begin..self.window.offset(), error);
        Ok(())
    }

    /// A whole block lies behind the window's place.
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
            // Of an appended file, say. Its blocks are read with the first header's transformers.
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

    /// The last block was read, or the trailer.
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

    /// Framing 1: the next record.
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
            // A length that lies costs no memory: the stream's own bytes bound what is held.
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

    /// There is no sound record at `begin`: looks for the next one.
    fn search_record(&mut self, begin: u64, error: &Error) -> Result<()> {
        self.window.skip(1)?;
        loop {
            let ahead = self.window.peek(SEARCH)?;
            let (found, last) = (legacy::find_record_header(ahead), ahead.len() < SEARCH);
            // A header may begin in these bytes and end behind them.
            let step = found.unwrap_or(if last { ahead.len() } else { ahead.len() - RECORD_HEADER + 1 });
            self.window.skip(step as u64)?;
            if last || found.is_some() {
                break;
            }
        }
        self.damage(begin..self.window.offset(), error);
        Ok(())
    }

    /// The bytes of a range from the window's place on, which are known to be there.
    fn bytes_ahead(&mut self, range: Range<u64>) -> Result<Bytes> {
        let offset = self.window.offset();
        // Large ones past the window, which would hold a second copy.
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

    /// A frame that cannot be decoded is damage, unless the fault is not the file's.
    fn damage_or_fail(&mut self, span: Range<u64>, error: Error) -> Result<()> {
        // What a transformer or the system failed at says nothing about the bytes.
        if error.kind() != ErrorKind::Corrupt {
            return Err(error.in_file(self.window.name()).at(span.start));
        }
        self.damage(span, &error);
        Ok(())
    }

    fn damage(&mut self, span: Range<u64>, error: &Error) {
        // A header that is not readable takes the names of the transformers with it.
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
