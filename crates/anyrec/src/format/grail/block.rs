//! Decodes the bytes of a frame (a block, or a legacy record) into its items.
//!
//! The scan and the reader share this code: the scan finds frames one after the other, the reader
//! knows their offsets, and both decode them with a [`Decoder`].

use super::header::Header;
use super::layout::{self, BlockKind, CHUNK, HEADER_MAGIC, ItemCursor, Items};
use super::legacy::{self, RecordKind};
use super::options as own;
use super::transform::{Chain, GUESSES, Registry, Transform};
use crate::base::{Error, ErrorKind, Limits, Result};
use crate::format::OpenOptions;
use bytes::Bytes;
use std::borrow::Cow;
use std::ops::Range;

/// The two generations of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Legacy,
    Two,
}

impl Framing {
    /// The version of a file that begins with `head` (a chunk, if the file is that long).
    ///
    /// The first eight bytes decide. If they match neither version but a sound chunk follows, the
    /// magic number itself is damaged: it is the only part of a chunk that the checksum does not
    /// cover.
    pub(super) fn of(head: &[u8]) -> Self {
        match head.first_chunk::<8>() {
            Some(&HEADER_MAGIC) => Framing::Two,
            Some(&magic) if RecordKind::from_magic(magic).is_none() && head.len() >= CHUNK => {
                let rest = head.iter().skip(magic.len()).take(CHUNK - magic.len());
                let mended: Vec<u8> = HEADER_MAGIC.iter().chain(rest).copied().collect();
                match layout::decode_chunk(&mended, true) {
                    Ok(chunk) if chunk.index == 0 && chunk.total > 0 => Framing::Two,
                    _ => Framing::Legacy,
                }
            }
            _ => Framing::Legacy,
        }
    }
}

/// Everything needed to decode frames, apart from their bytes.
#[derive(Debug, Clone)]
pub(super) struct Decoder {
    pub(super) verify: bool,
    pub(super) limits: Limits,
    registry: Registry,
    /// The transformers of version 2 blocks, for decoding; `None` until the header that names them
    /// is known, or if it is lost.
    chain: Option<Chain>,
    /// The same for the data of legacy packed records.
    legacy: Chain,
}

impl Decoder {
    /// Creates a decoder for a file; `name` is its name.
    pub(super) fn new(options: &OpenOptions, name: &str) -> Result<Self> {
        let own::OpenOptions { registry, legacy_transform } = options.own();
        let by_name = || name.to_ascii_lowercase().ends_with(".grail-rpk-gz").then(Transform::flate);
        let legacy = legacy_transform.or_else(by_name).filter(|transform| !transform.name().is_empty());
        let legacy = registry.decoders(legacy.as_slice()).map_err(|error| error.in_file(name))?;
        Ok(Decoder { verify: options.verify, limits: options.limits.clone(), registry, chain: None, legacy })
    }

    /// Decodes the items of a version 2 block from its joined payloads.
    fn items<'a>(&self, stored: Cow<'a, [u8]>) -> Result<Frame<'a>> {
        if stored.len() as u64 > self.limits.frame {
            return Err(Limits::exceeded("block size", stored.len() as u64, self.limits.frame));
        }
        let Some(chain) = &self.chain else { return self.guess(stored) };
        let list = chain.decode(stored, self.limits.frame)?;
        let items = Items::parse(&list)?;
        Ok(Frame { list, data: None, items })
    }

    /// Decodes the items of a block whose transformers are unknown. A guess is accepted only if the
    /// result parses as a list of items with no byte left over, which hardly happens by chance.
    fn guess<'a>(&self, stored: Cow<'a, [u8]>) -> Result<Frame<'a>> {
        if let Ok(items) = Items::parse(&stored) {
            return Ok(Frame { list: stored, data: None, items });
        }
        for transformer in GUESSES {
            let list = match transformer.decode(&stored, self.limits.frame) {
                Ok(list) => list,
                Err(error) if error.kind() == ErrorKind::Corrupt => continue,
                // Such an error does not depend on how the block is transformed.
                Err(error) => return Err(error),
            };
            if let Ok(items) = Items::parse(&list) {
                return Ok(Frame { list: list.into(), data: None, items });
            }
        }
        Err(Error::corrupt("the file's header is lost, so this block's transformers are unknown"))
    }

    fn legacy_items<'a>(&self, kind: RecordKind, payload: &'a [u8]) -> Result<Frame<'a>> {
        match kind {
            RecordKind::Unpacked => {
                let mut list = Vec::new();
                layout::put_item_list(&[payload.len() as u64], &mut list);
                let items = Items::parse_apart(&list, 0)?;
                Ok(Frame { list: list.into(), data: Some(Cow::Borrowed(payload)), items })
            }
            RecordKind::Packed => {
                let (items, data) = legacy::unpack(payload, &self.legacy, self.verify, self.limits.frame)?;
                Ok(Frame { list: Cow::Borrowed(payload), data: Some(data), items })
            }
        }
    }

    /// The items of the body block or legacy record at the beginning of `bytes`.
    pub(super) fn frame<'a>(&self, version: Framing, bytes: &'a [u8]) -> Result<Frame<'a>> {
        match version {
            Framing::Two => {
                let (kind, stored) = layout::join_block(bytes, self.verify)?;
                if kind != BlockKind::Body {
                    return Err(layout::invalid_magic(kind.magic()));
                }
                self.items(stored)
            }
            Framing::Legacy => {
                let (kind, length) = legacy::decode_record_header(bytes)?;
                let payload = bytes.get(legacy::RECORD_HEADER..).unwrap_or_default();
                let length = Limits::check("record length", length, payload.len() as u64, self.limits.frame)?;
                self.legacy_items(kind, payload.get(..length).unwrap_or_default())
            }
        }
    }

    /// Same as [`Decoder::frame`], for bytes that outlive the call.
    pub(super) fn block(&self, version: Framing, bytes: &Bytes) -> Result<Block> {
        Ok(Block::of(self.frame(version, bytes)?, bytes))
    }

    /// Decodes joined payloads into a block.
    pub(super) fn stored_block(&self, stored: &Bytes) -> Result<Block> {
        Ok(Block::of(self.items(Cow::Borrowed(stored))?, stored))
    }

    /// Decodes the payload of a legacy record into a block.
    pub(super) fn legacy_block(&self, kind: RecordKind, payload: &Bytes) -> Result<Block> {
        Ok(Block::of(self.legacy_items(kind, payload)?, payload))
    }

    /// The trailer in the joined payloads of a trailer block.
    pub(super) fn trailer(&self, stored: &Bytes) -> Result<Bytes> {
        let block = self.stored_block(stored)?;
        match (block.count(), block.item(0)) {
            (1, Some(item)) => Ok(item),
            (count, _) => Err(Error::corrupt("number of items in the trailer").expected_found(1, count)),
        }
    }

    /// The header in the joined payloads of a header block, which is never transformed.
    pub(super) fn header(&self, stored: &[u8]) -> Result<Header> {
        let items = Items::parse(stored)?;
        let item = match items.count() {
            1 => items.range(stored, 0).and_then(|range| stored.get(range)).unwrap_or_default(),
            count => return Err(Error::corrupt("number of items in the header").expected_found(1, count)),
        };
        let header = Header::decode(item)?;
        header.transformers()?;
        Ok(header)
    }

    /// Whether the blocks of a version 2 file are transformed, as far as known.
    pub(super) fn is_transforming(&self) -> bool {
        self.chain.as_ref().is_some_and(|chain| !chain.is_empty())
    }

    /// Sets the transformers that a header names.
    ///
    /// # Errors
    /// Same as [`Registry::get`].
    pub(super) fn set_transformers(&mut self, header: &Header) -> Result<()> {
        self.chain = Some(self.registry.decoders(&header.transformers()?)?);
        Ok(())
    }
}

/// A decoded frame that borrows from its bytes where possible.
pub(super) struct Frame<'a> {
    list: Cow<'a, [u8]>,
    /// The buffer with the items, if it differs from the one with the list.
    data: Option<Cow<'a, [u8]>>,
    items: Items,
}

impl<'a> Frame<'a> {
    pub(super) fn count(&self) -> u64 {
        self.items.count()
    }

    /// Item `index`, borrowed from the frame's bytes if it is contiguous there.
    pub(super) fn into_item(self, index: u64) -> Option<Cow<'a, [u8]>> {
        let range = self.items.range(&self.list, index)?;
        match self.data.unwrap_or(self.list) {
            Cow::Borrowed(data) => data.get(range).map(Cow::Borrowed),
            Cow::Owned(mut data) => {
                data.get(range.clone())?;
                data.truncate(range.end);
                data.drain(..range.start);
                Some(Cow::Owned(data))
            }
        }
    }
}

/// A decoded frame that owns (shares) its bytes.
#[derive(Debug)]
pub(super) struct Block {
    list: Bytes,
    data: Bytes,
    items: Items,
}

impl Block {
    fn of(frame: Frame<'_>, owner: &Bytes) -> Self {
        let keep = |bytes: Cow<'_, [u8]>| match bytes {
            Cow::Borrowed(slice) => owner.slice_ref(slice),
            Cow::Owned(vector) => vector.into(),
        };
        let list = keep(frame.list);
        let data = frame.data.map_or_else(|| list.clone(), keep);
        Block { list, data, items: frame.items }
    }

    pub(super) fn count(&self) -> u64 {
        self.items.count()
    }

    /// Item `index`, sharing the block's memory.
    pub(super) fn item(&self, index: u64) -> Option<Bytes> {
        let range = self.items.range(&self.list, index)?;
        (range.end <= self.data.len()).then(|| self.data.slice(range))
    }

    /// Starts a walk over the items.
    pub(super) fn cursor(&self) -> ItemCursor {
        self.items.cursor()
    }

    /// The next item of a walk.
    pub(super) fn next(&self, cursor: &mut ItemCursor) -> Option<&[u8]> {
        let range: Range<usize> = cursor.next(&self.list)?;
        self.data.get(range)
    }

    /// Approximate memory that it keeps alive.
    pub(super) fn size(&self) -> usize {
        self.list.len().saturating_add(self.data.len())
    }
}
