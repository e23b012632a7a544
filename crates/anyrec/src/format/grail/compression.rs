//! Code shared by the built-in compressors. Output buffers grow only as data arrives, up to the
//! caller's limit. The size that a frame declares is trusted only if ordinary data could reach it.

use crate::base::{Error, ErrorKind, Hint, Result};

/// Output buffers grow in steps of this many bytes, doubling.
pub(super) const STEP: usize = 64 << 10;

/// Parses a level as the original does: a decimal number, or empty for none.
pub(super) fn level(name: &str, config: &str) -> Result<Option<i32>> {
    if config.is_empty() {
        return Ok(None);
    }
    match config.parse::<i64>() {
        // Levels far out of range are equivalent to the nearest 32-bit number.
        Ok(level) => Ok(Some(i32::try_from(level).unwrap_or(if level < 0 { i32::MIN } else { i32::MAX }))),
        Err(_) => {
            Err(Error::invalid(format!("the level of transformer {name:?} is a number, not {config:?}")))
        }
    }
}

pub(super) fn within(block: Vec<u8>, limit: u64) -> Result<Vec<u8>> {
    if block.len() as u64 > limit { Err(over_limit(limit)) } else { Ok(block) }
}

pub(super) fn over_limit(limit: u64) -> Error {
    let message = format!("decompressing a block takes more than the limit of {limit} bytes");
    Error::new(ErrorKind::Limit, message).with_hint(Hint::RaiseLimit)
}
