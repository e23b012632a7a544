//! The bytes: `TOY1`, then for each record its length and its CRC-32C (32 bits each, little-endian) and
//! the record itself.

/// How a file begins.
pub const MAGIC: &[u8; 4] = b"TOY1";

/// Bytes before each record.
pub const HEADER: usize = 8;

/// What stands before a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the record.
    pub length: u32,
    /// Its CRC-32C.
    pub checksum: u32,
}

impl Header {
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let (length, rest) = bytes.split_first_chunk()?;
        let checksum = rest.first_chunk()?;
        Some(Header { length: u32::from_le_bytes(*length), checksum: u32::from_le_bytes(*checksum) })
    }

    pub fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }
}
