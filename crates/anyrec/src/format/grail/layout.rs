//! The bytes of version 2: chunks, blocks made of chunks, and the items of a block.
//!
//! ```text
//! chunk   magic[8] checksum[4] flag[4] size[4] total[4] index[4] payload[size] padding   32768 bytes
//! block   the payloads of `total` chunks, joined
//! items   uvarint count, uvarint size of each item, the items' bytes; nothing left over
//! ```
//! Numbers are little-endian; the checksum is CRC-32 (IEEE) over flag, size, total, index and
//! payload. What stands between the joined payloads and the items (compression, encryption) is
//! not known here, and neither is the file: bytes in, meaning out. Errors have no place; the
//! caller knows where it was looking and adds it.

use crate::base::checksum::crc32;
use crate::base::memory::reserve;
use crate::base::{Error, Result};
use std::borrow::Cow;
use std::ops::Range;

/// Bytes of a chunk at rest; every chunk of a file begins at a multiple of this.
pub const CHUNK: usize = 32 << 10;
/// Bytes of a chunk before its payload.
pub const CHUNK_HEADER: usize = 28;
/// Largest payload of a chunk.
pub const MAX_PAYLOAD: usize = CHUNK - CHUNK_HEADER;
/// [`CHUNK`] as a file offset.
pub(super) const CHUNK_BYTES: u64 = CHUNK as u64;

/// Magic of a header block: the first bytes of a version 2 file.
pub const HEADER_MAGIC: [u8; 8] = [0xd9, 0xe1, 0xd9, 0x5c, 0xc2, 0x16, 0x04, 0xf7];
/// Magic of a body block, and of a packed record of version 1.
pub const BODY_MAGIC: [u8; 8] = [0x2e, 0x76, 0x47, 0xeb, 0x34, 0x07, 0x3c, 0x2e];
/// Magic of a trailer block.
pub const TRAILER_MAGIC: [u8; 8] = [0xfe, 0xba, 0x1a, 0xd7, 0xcb, 0xdf, 0x75, 0x3a];

const PADDING: [u8; 4] = [0xde, 0xad, 0xbe, 0xef];
/// The longest uvarint of a 64-bit number.
const MAX_UVARINT: usize = 10;
/// Every so many items the place in the size list is noted, so that reaching an item takes a
/// short walk while the notes stay a fraction of the list itself.
const MARK_EVERY: u64 = 64;

/// The three kinds of block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// The file's first block: pairs that describe it.
    Header,
    /// Items.
    Body,
    /// The last block, one item of the writer's own.
    Trailer,
}

impl BlockKind {
    /// The kind a magic number stands for.
    pub fn from_magic(magic: [u8; 8]) -> Option<Self> {
        match magic {
            HEADER_MAGIC => Some(BlockKind::Header),
            BODY_MAGIC => Some(BlockKind::Body),
            TRAILER_MAGIC => Some(BlockKind::Trailer),
            _ => None,
        }
    }

    /// The magic number of this kind.
    pub fn magic(self) -> [u8; 8] {
        match self {
            BlockKind::Header => HEADER_MAGIC,
            BlockKind::Body => BODY_MAGIC,
            BlockKind::Trailer => TRAILER_MAGIC,
        }
    }
}

/// One chunk, as far as it can be judged by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Kind of its block.
    pub kind: BlockKind,
    /// Unused by every known writer: 0.
    pub flag: u32,
    /// Chunks in its block.
    pub total: u32,
    /// Its place in the block, from 0.
    pub index: u32,
    /// Its share of the block.
    pub payload: &'a [u8],
}

/// The `N` bytes at `at`.
pub(super) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

/// A magic number as messages show it.
pub(super) fn show_magic(magic: [u8; 8]) -> String {
    let hex: Vec<String> = magic.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.join(" ")
}

/// The error for a magic number that does not belong where it stands.
pub(super) fn invalid_magic(magic: [u8; 8]) -> Error {
    Error::corrupt(format!("invalid magic number {}", show_magic(magic)))
}

/// The chunk at the beginning of `bytes`; its checksum is verified if `verify` says so.
///
/// # Errors
/// Fewer bytes than a chunk, an unknown magic number, a payload size no chunk has room for, or a
/// checksum that does not hold.
pub fn decode_chunk(bytes: &[u8], verify: bool) -> Result<Chunk<'_>> {
    let short = || Error::corrupt(format!("a chunk has {CHUNK} bytes, only {} are left", bytes.len()));
    let bytes = bytes.get(..CHUNK).ok_or_else(short)?;
    let magic = array_at(bytes, 0).ok_or_else(short)?;
    let kind = BlockKind::from_magic(magic).ok_or_else(|| invalid_magic(magic))?;
    let stored = u32_at(bytes, 8).ok_or_else(short)?;
    let flag = u32_at(bytes, 12).ok_or_else(short)?;
    let size = u32_at(bytes, 16).ok_or_else(short)?;
    let total = u32_at(bytes, 20).ok_or_else(short)?;
    let index = u32_at(bytes, 24).ok_or_else(short)?;
    let payload = usize::try_from(size)
        .ok()
        .and_then(|size| bytes.get(CHUNK_HEADER..)?.get(..size))
        .ok_or_else(|| Error::corrupt(format!("chunk payload size {size} is over {MAX_PAYLOAD}")))?;
    if verify {
        let covered = bytes.get(12..CHUNK_HEADER + payload.len()).unwrap_or_default();
        check_crc("chunk checksum does not hold", stored, covered)?;
    }
    Ok(Chunk { kind, flag, total, index, payload })
}

/// Holds a stored CRC-32 against the bytes it covers.
pub(super) fn check_crc(failure: &str, stored: u32, covered: &[u8]) -> Result<()> {
    let computed = crc32(covered);
    if computed == stored {
        return Ok(());
    }
    Err(Error::corrupt(failure).expected_found(format!("{stored:08x}"), format!("{computed:08x}")))
}

/// What must hold between the chunks of one block.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkRun {
    pub(super) kind: BlockKind,
    pub(super) total: u32,
    next: u32,
}

impl ChunkRun {
    /// Begins a block with its first chunk.
    pub(super) fn begin(chunk: &Chunk<'_>) -> Result<Self> {
        if chunk.index != 0 {
            return Err(Error::corrupt("chunk index does not begin a block").expected_found(0, chunk.index));
        }
        if chunk.total == 0 {
            return Err(Error::corrupt("a block of 0 chunks"));
        }
        Ok(ChunkRun { kind: chunk.kind, total: chunk.total, next: 1 })
    }

    /// Takes the next chunk.
    pub(super) fn push(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        if chunk.index != self.next {
            return Err(Error::corrupt("chunk index out of turn").expected_found(self.next, chunk.index));
        }
        if chunk.kind != self.kind {
            return Err(Error::corrupt("magic number changes within a block")
                .expected_found(show_magic(self.kind.magic()), show_magic(chunk.kind.magic())));
        }
        if chunk.total != self.total {
            return Err(Error::corrupt("number of chunks changes within a block")
                .expected_found(self.total, chunk.total));
        }
        self.next += 1;
        Ok(())
    }

    pub(super) fn is_complete(&self) -> bool {
        self.next == self.total
    }

    /// The error for a block whose remaining chunks are not there.
    pub(super) fn cut_short(&self) -> Error {
        Error::corrupt(format!(
            "the block is cut short: the file has {} of its {} chunks",
            self.next, self.total
        ))
    }
}

/// The block at the beginning of `bytes`: its kind and its joined payloads, borrowed where the
/// block is one chunk.
///
/// # Errors
/// As [`decode_chunk`], and for chunks that do not follow each other.
pub fn join_block(bytes: &[u8], verify: bool) -> Result<(BlockKind, Cow<'_, [u8]>)> {
    let first = decode_chunk(bytes, verify)?;
    let mut run = ChunkRun::begin(&first)?;
    if run.is_complete() {
        return Ok((run.kind, Cow::Borrowed(first.payload)));
    }
    let mut joined = Vec::new();
    reserve(&mut joined, block_capacity(run.total, bytes.len()))?;
    joined.extend_from_slice(first.payload);
    let mut rest = bytes;
    while !run.is_complete() {
        rest = rest.get(CHUNK..).filter(|rest| !rest.is_empty()).ok_or_else(|| run.cut_short())?;
        let chunk = decode_chunk(rest, verify)?;
        run.push(&chunk)?;
        joined.extend_from_slice(chunk.payload);
    }
    Ok((run.kind, Cow::Owned(joined)))
}

/// Room for the payloads of `total` chunks, as far as `available` bytes of file can fill it.
pub(super) fn block_capacity(total: u32, available: usize) -> usize {
    usize::try_from(total).unwrap_or(usize::MAX).saturating_mul(MAX_PAYLOAD).min(available)
}

/// Number of chunks a payload takes; an empty one takes one.
pub(super) fn chunk_count(payload: usize) -> usize {
    payload.div_ceil(MAX_PAYLOAD).max(1)
}

/// Adds a block to `out`: its chunks with their checksums and padding.
///
/// # Errors
/// [`Limit`](crate::ErrorKind::Limit) for a block of more than 2^32 - 1 chunks (128 TiB).
pub fn encode_block(kind: BlockKind, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    encode_chunks(kind, [payload, &[]], |chunk| {
        out.extend_from_slice(chunk);
        Ok(())
    })
}

/// Hands out the chunks of a block whose payload is in two pieces.
///
/// # Errors
/// As [`encode_block`], and what `emit` says.
pub(super) fn encode_chunks(
    kind: BlockKind,
    payload: [&[u8]; 2],
    mut emit: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let [mut now, mut later] = payload;
    let count = chunk_count(now.len().saturating_add(later.len()));
    let total = u32::try_from(count)
        .map_err(|_| Error::new(crate::ErrorKind::Limit, format!("a block cannot have {count} chunks")))?;
    let mut chunk = Vec::with_capacity(CHUNK);
    for index in 0..total {
        chunk.clear();
        chunk.resize(CHUNK_HEADER, 0);
        while chunk.len() < CHUNK && !(now.is_empty() && later.is_empty()) {
            if now.is_empty() {
                now = std::mem::take(&mut later);
            }
            let (piece, rest) = now.split_at(now.len().min(CHUNK - chunk.len()));
            chunk.extend_from_slice(piece);
            now = rest;
        }
        let size = u32::try_from(chunk.len() - CHUNK_HEADER).unwrap_or_default();
        let fields = chunk.iter_mut().skip(12);
        let values = [0, size, total, index].into_iter().flat_map(u32::to_le_bytes);
        fields.zip(values).for_each(|(field, value)| *field = value);
        let checksum = crc32(chunk.get(12..).unwrap_or_default());
        let head = kind.magic().into_iter().chain(checksum.to_le_bytes());
        chunk.iter_mut().zip(head).for_each(|(field, value)| *field = value);
        chunk.extend(PADDING.into_iter().cycle().take(CHUNK - chunk.len()));
        emit(&chunk)?;
    }
    Ok(())
}

/// The unsigned number at the beginning of `bytes` and how many bytes it takes. Longer encodings
/// than needed are accepted, as the original does; more than 64 bits are not.
pub(super) fn uvarint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (at, &byte) in bytes.iter().take(MAX_UVARINT).enumerate() {
        if at == MAX_UVARINT - 1 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Some((value, at + 1));
        }
    }
    None
}

/// Adds an unsigned number in its shortest form.
pub(super) fn put_uvarint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// A signed number as the unsigned one that stands for it (zig-zag).
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// The inverse of [`zigzag`].
pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Where the items of a block are: its size list, checked, and marks to find one's way in it.
///
/// It holds no bytes: the buffer with the size list is passed in again, and ranges come out that
/// hold for the buffer with the items (the same one, except for transformed legacy records).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Items {
    count: u64,
    /// One past the size list, in the buffer it was parsed from.
    end: usize,
    /// Added up sizes.
    total: u64,
    /// For every [`MARK_EVERY`]th item: where its size is, and where its bytes begin.
    marks: Vec<(usize, usize)>,
}

/// The place of the next item in a walk over all of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct ItemCursor {
    size_at: usize,
    data_at: usize,
}

impl Items {
    /// Reads count and sizes from `list` on, which begins at `at` in its buffer. Nothing is said
    /// yet about the items' bytes.
    fn parse_list(buffer: &[u8], at: usize) -> Result<Self> {
        let list = buffer.get(at..).unwrap_or_default();
        let (count, taken) = uvarint(list)
            .ok_or_else(|| Error::corrupt("the number of items in the block is not readable"))?;
        let left = list.len() - taken;
        // Every size takes a byte at least.
        if count > left as u64 {
            return Err(Error::corrupt(format!("{count} items cannot be in the {left} bytes of the block")));
        }
        let mut items = Items { count, end: at + taken, total: 0, marks: Vec::new() };
        for index in 0..count {
            if index % MARK_EVERY == 0 {
                // A total past the address space is refused below.
                reserve(&mut items.marks, 1)?;
                items.marks.push((items.end, usize::try_from(items.total).unwrap_or(usize::MAX)));
            }
            let (size, taken) = uvarint(buffer.get(items.end..).unwrap_or_default())
                .ok_or_else(|| Error::corrupt(format!("the size of item {index} is not readable")))?;
            items.end += taken;
            items.total = items
                .total
                .checked_add(size)
                .ok_or_else(|| Error::corrupt("the sizes of the block's items add up to more than 2^64"))?;
        }
        Ok(items)
    }

    /// The items of a whole block.
    ///
    /// # Errors
    /// A list that is not readable, or sizes that do not add up to the block's.
    pub fn parse(block: &[u8]) -> Result<Self> {
        let mut items = Self::parse_list(block, 0)?;
        let promised = items.total.saturating_add(items.end as u64);
        if promised != block.len() as u64 {
            return Err(
                Error::corrupt("block size does not match its items").expected_found(promised, block.len())
            );
        }
        for mark in &mut items.marks {
            mark.1 += items.end;
        }
        Ok(items)
    }

    /// The items of a legacy packed record whose list begins at `at`; their bytes lie in a buffer
    /// of their own.
    pub(super) fn parse_apart(record: &[u8], at: usize) -> Result<Self> {
        Self::parse_list(record, at)
    }

    /// Number of items.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// One past the size list.
    pub(super) fn list_end(&self) -> usize {
        self.end
    }

    /// Bytes of all items together.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Where item `index` lies in the buffer with the items. `list` is the buffer this was
    /// parsed from.
    pub fn range(&self, list: &[u8], index: u64) -> Option<Range<usize>> {
        if index >= self.count {
            return None;
        }
        let mark = usize::try_from(index / MARK_EVERY).ok()?;
        let &(size_at, data_at) = self.marks.get(mark)?;
        let mut cursor = ItemCursor { size_at, data_at };
        for _ in 0..index % MARK_EVERY {
            cursor.next(list)?;
        }
        cursor.next(list)
    }

    /// The beginning of a walk over all items.
    pub(super) fn cursor(&self) -> ItemCursor {
        let (size_at, data_at) = self.marks.first().copied().unwrap_or((self.end, self.end));
        ItemCursor { size_at, data_at }
    }
}

impl ItemCursor {
    /// Where the next item lies. The caller counts.
    pub(super) fn next(&mut self, list: &[u8]) -> Option<Range<usize>> {
        let (size, taken) = uvarint(list.get(self.size_at..)?)?;
        let end = self.data_at.checked_add(usize::try_from(size).ok()?)?;
        self.size_at += taken;
        let begin = std::mem::replace(&mut self.data_at, end);
        Some(begin..end)
    }
}

/// Adds count and sizes, in that order, as they stand before the items.
pub(super) fn put_item_list(sizes: &[u64], out: &mut Vec<u8>) {
    put_uvarint(sizes.len() as u64, out);
    for &size in sizes {
        put_uvarint(size, out);
    }
}

/// An upper bound on the length of a file that holds items of these sizes in blocks of
/// `record_size` bytes, without transformers: enough to reserve space beforehand.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) when `record_size` is 0 or the bound is over 2^64.
///
/// ```
/// use anyrec::format::grail::required_space;
///
/// assert_eq!(required_space(&[1024, 1024, 1024], 2048)?, 131072);
/// # Ok::<(), anyrec::Error>(())
/// ```
pub fn required_space(item_sizes: &[u64], record_size: u64) -> Result<u64> {
    if record_size == 0 {
        return Err(Error::invalid("the space for records of 0 bytes cannot be estimated"));
    }
    let bound = || {
        let items: u64 = item_sizes.iter().try_fold(0u64, |sum, &size| sum.checked_add(size))?;
        let list = (item_sizes.len() as u64).checked_add(1)?.checked_mul(MAX_UVARINT as u64)?;
        let records = list.checked_add(items)?.div_ceil(record_size);
        let chunks = record_size.div_ceil(MAX_PAYLOAD as u64).checked_mul(records)?;
        chunks.checked_add(2)?.checked_mul(CHUNK_BYTES)
    };
    bound().ok_or_else(|| Error::invalid("the space for these items is over 2^64 bytes"))
}
