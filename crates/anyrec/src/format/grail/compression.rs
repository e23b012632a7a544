//! What the built-in compressors have in common. Output grows only as it arrives, up to the caller's
//! limit: what a frame says about its size is believed only where data could ordinarily come to that.

use crate::base::{Error, ErrorKind, Hint, Result};

/// Output is asked for in steps of this many bytes, doubling.
pub(super) const STEP: usize = 64 << 10;

/// Reads a level the way the original does: a decimal number, empty for none.
pub(super) fn level(name: &str, config: &str) -> Result<Option<i32>> {
    if config.is_empty() {
        return Ok(None);
    }
    match config.parse::<i64>() {
        // Levels far out of range are as good as the nearest 32-bit number.
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
