//! The bytes of version 1, the legacy format.
//!
//! ```text
//! record    magic[8] length[8] checksum[4] payload[length]
//! unpacked  the payload is the item
//! packed    checksum[4] uvarint count, uvarint size of each item, the items' bytes
//! ```
//! The first checksum covers the eight length bytes, the second one the count and the sizes. The
//! items' bytes have no checksum. In packed records they may be transformed as a whole. The file
//! does not say so; its name (`.grail-rpk-gz`) or the caller does.

use super::layout::{BODY_MAGIC, Items, array_at, check_crc, invalid_magic};
use super::transform::Chain;
use crate::base::checksum::crc32;
use crate::base::{Error, ErrorKind, Result};
use std::borrow::Cow;

/// Magic of an unpacked record.
pub const UNPACKED_MAGIC: [u8; 8] = [0xfc, 0xae, 0x95, 0x31, 0xf0, 0xd9, 0xbd, 0x20];
/// Magic of a packed record, the same as that of a body block.
pub const PACKED_MAGIC: [u8; 8] = BODY_MAGIC;
/// Size of a record's header, before its payload.
pub const RECORD_HEADER: usize = 20;
/// Largest payload that is read.
pub const MAX_RECORD: u64 = 1 << 29;
/// Size of a packed payload's header, before the item count.
const PACKED_HEADER: usize = 4;

/// The two kinds of record; a file may contain both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// One item.
    Unpacked,
    /// Many items.
    Packed,
}

impl RecordKind {
    /// The kind with this magic number.
    pub fn from_magic(magic: [u8; 8]) -> Option<Self> {
        match magic {
            UNPACKED_MAGIC => Some(RecordKind::Unpacked),
            PACKED_MAGIC => Some(RecordKind::Packed),
            _ => None,
        }
    }

    /// The magic number of this kind.
    pub fn magic(self) -> [u8; 8] {
        match self {
            RecordKind::Unpacked => UNPACKED_MAGIC,
            RecordKind::Packed => PACKED_MAGIC,
        }
    }
}

/// Decodes kind and payload length from the record header at the beginning of `bytes`. The length's
/// checksum is always checked: without it, the end of the record is unknown.
///
/// # Errors
/// Fewer bytes than a header, an unknown magic number, a checksum that does not match, or a length
/// over [`MAX_RECORD`].
pub fn decode_record_header(bytes: &[u8]) -> Result<(RecordKind, u64)> {
    let short = || {
        Error::corrupt(format!("a record header has {RECORD_HEADER} bytes, only {} are left", bytes.len()))
    };
    let magic = array_at(bytes, 0).ok_or_else(short)?;
    let kind = RecordKind::from_magic(magic).ok_or_else(|| invalid_magic(magic))?;
    let length: [u8; 8] = array_at(bytes, 8).ok_or_else(short)?;
    let stored = array_at(bytes, 16).map(u32::from_le_bytes).ok_or_else(short)?;
    check_crc("checksum of the record's length does not match", stored, &length)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_RECORD {
        return Err(Error::corrupt(format!("record length {length} is over {MAX_RECORD}")));
    }
    Ok((kind, length))
}

/// Encodes a record header.
pub fn encode_record_header(kind: RecordKind, length: u64) -> [u8; RECORD_HEADER] {
    let length = length.to_le_bytes();
    let checksum = crc32(&length).to_le_bytes();
    let mut header = [0; RECORD_HEADER];
    let bytes = kind.magic().into_iter().chain(length).chain(checksum);
    for (place, byte) in header.iter_mut().zip(bytes) {
        *place = byte;
    }
    header
}

/// The offset of the first sound record header in `bytes`.
pub(super) fn find_record_header(bytes: &[u8]) -> Option<usize> {
    memchr::memchr2_iter(UNPACKED_MAGIC[0], PACKED_MAGIC[0], bytes)
        .find(|&at| bytes.get(at..).is_some_and(|rest| decode_record_header(rest).is_ok()))
}

/// The ranges of the items of a packed payload, and the buffer they refer to.
///
/// # Errors
/// A list that is truncated or does not match its checksum, data that cannot be decoded, or data
/// whose length does not match the sizes.
pub(super) fn unpack<'a>(
    payload: &'a [u8],
    transform: &Chain,
    verify: bool,
    limit: u64,
) -> Result<(Items, Cow<'a, [u8]>)> {
    let stored = array_at(payload, 0).map(u32::from_le_bytes).ok_or_else(|| {
        Error::corrupt(format!("a packed record of {} bytes has no checksum", payload.len()))
    })?;
    let items = Items::parse_apart(payload, PACKED_HEADER)?;
    if verify {
        let covered = payload.get(PACKED_HEADER..items.list_end()).unwrap_or_default();
        check_crc("checksum of the packed record's item sizes does not match", stored, covered)?;
    }
    let data = payload.get(items.list_end()..).unwrap_or_default();
    // The sizes determine the output length. More than that is not worth the memory.
    let data = transform.decode(Cow::Borrowed(data), items.total().min(limit)).map_err(|error| {
        if error.kind() == ErrorKind::Limit && items.total() <= limit {
            return Error::corrupt(format!(
                "the packed record has more data than the {} bytes of its items",
                items.total()
            ));
        }
        error
    })?;
    if data.len() as u64 != items.total() {
        return Err(Error::corrupt("size of the packed record's data does not match its items")
            .expected_found(items.total(), data.len())
            .with_hint("a packed file written with a transformer must be read with the same one"));
    }
    Ok((items, data))
}

/// Appends the count, the sizes and their checksum, as stored before the items of a packed record.
pub(super) fn put_packed_list(sizes: &[u64], out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend_from_slice(&[0; PACKED_HEADER]);
    super::layout::put_item_list(sizes, out);
    let checksum = crc32(out.get(begin + PACKED_HEADER..).unwrap_or_default());
    if let Some(place) = out.get_mut(begin..begin + PACKED_HEADER) {
        place.copy_from_slice(&checksum.to_le_bytes());
    }
}
