//! The built-in transformer `zstd`.

use super::compression::{STEP, level, over_limit, within};
use super::transform::Transformer;
use crate::base::memory::reserve;
use crate::base::{Error, Result};
use crate::threads::fork::Lock;
use std::cell::RefCell;
use std::io::Read;
use zstd::zstd_safe::{self, CCtx, CParameter, DCtx};

/// The level that the original uses for no level and for negative ones.
const DEFAULT_ZSTD_LEVEL: i32 = 5;
/// The highest level of zstd.
const MAX_ZSTD_LEVEL: i32 = 22;
/// The largest window that zstd's own levels use: 128 MiB.
const MAX_WINDOW_LOG: u32 = 27;
/// zstd's message for a frame whose window is larger than allowed. Its error code is not passed
/// through.
const WINDOW_TOO_LARGE: &str = "Frame requires too much memory for decoding";
/// zstd's message for a failed allocation.
const NO_MEMORY: &str = "Allocation error : not enough memory";
/// Approximate memory that a coder needs before it begins.
const CODER_SIZE: u64 = 160 << 10;
/// Compression ratio of ordinary data: a declared frame size up to this ratio is trusted.
const ORDINARY_RATIO: u64 = 32;

thread_local! {
    /// Creating one takes longer than decoding a small block.
    static DECODER: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// Creates a decoder. zstd's own constructor panics if it runs out of memory.
fn decoder() -> Result<DCtx<'static>> {
    DCtx::try_create().ok_or_else(|| Error::out_of_memory(CODER_SIZE))
}

/// The decoded size that the single frame in `stored` declares, if it is plausible for ordinary
/// data. The frame is then decoded into one buffer of that size.
fn believable_size(stored: &[u8], limit: u64) -> Option<usize> {
    let size = zstd_safe::get_frame_content_size(stored).ok().flatten()?;
    let ordinary = (stored.len() as u64).saturating_mul(ORDINARY_RATIO).max(STEP as u64);
    let alone = zstd_safe::find_frame_compressed_size(stored).is_ok_and(|frame| frame == stored.len());
    usize::try_from(size).ok().filter(|_| alone && size <= ordinary.min(limit))
}

/// One zstd frame per block.
pub(super) struct Zstd {
    level: i32,
    /// Idle compressors, kept because allocating their memory costs more than reusing it.
    idle: Lock<Vec<CCtx<'static>>>,
}

pub(super) static ZSTD: Zstd = Zstd { level: DEFAULT_ZSTD_LEVEL, idle: Lock::new() };

impl Zstd {
    pub(super) fn from_config(config: &str) -> Result<Self> {
        let level = match level("zstd", config)? {
            None | Some(i32::MIN..0) => DEFAULT_ZSTD_LEVEL,
            Some(level) => level.min(MAX_ZSTD_LEVEL),
        };
        Ok(Zstd { level, idle: Lock::new() })
    }
}

impl Transformer for Zstd {
    fn encode(&self, block: &[u8]) -> Result<Vec<u8>> {
        let failed = |code| match zstd_safe::get_error_name(code) {
            NO_MEMORY => Error::out_of_memory(block.len() as u64),
            reason => Error::io("zstd cannot compress", std::io::Error::other(reason)),
        };
        let unused = self.idle.lock().pop();
        let mut compressor = match unused {
            Some(compressor) => compressor,
            None => {
                let mut made = CCtx::try_create().ok_or_else(|| Error::out_of_memory(CODER_SIZE))?;
                made.set_parameter(CParameter::CompressionLevel(self.level)).map_err(failed)?;
                made
            }
        };
        let mut stored = Vec::new();
        reserve(&mut stored, zstd_safe::compress_bound(block.len()))?;
        compressor.compress2(&mut stored, block).map_err(failed)?;
        self.idle.lock().push(compressor);
        Ok(stored)
    }

    fn decode(&self, stored: &[u8], limit: u64) -> Result<Vec<u8>> {
        let failed = |reason: &str| match reason {
            WINDOW_TOO_LARGE => over_limit(limit),
            NO_MEMORY => Error::out_of_memory(stored.len() as u64),
            reason => Error::corrupt(format!("the block is not readable as zstd: {reason}")),
        };
        if let Some(size) = believable_size(stored, limit) {
            let mut block = Vec::new();
            reserve(&mut block, size)?;
            return DECODER.with_borrow_mut(|kept| {
                let decoder = match kept {
                    Some(decoder) => decoder,
                    None => kept.insert(decoder()?),
                };
                let decoded = decoder.decompress(&mut block, stored);
                decoded.map_err(|code| failed(zstd_safe::get_error_name(code)))?;
                Ok(block)
            });
        }
        let corrupt = |error: std::io::Error| match error.kind() {
            // The block's own memory.
            std::io::ErrorKind::OutOfMemory => Error::io("cannot hold the block", error),
            _ => failed(&error.to_string()),
        };
        let mut decoder = decoder()?;
        let mut decoder = zstd::stream::read::Decoder::with_context(stored, &mut decoder);
        let window = limit.max(1).next_power_of_two().trailing_zeros().clamp(10, MAX_WINDOW_LOG);
        decoder.window_log_max(window).map_err(corrupt)?;
        let mut block = Vec::new();
        decoder.take(limit.saturating_add(1)).read_to_end(&mut block).map_err(corrupt)?;
        within(block, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_errors_are_known_by_are_those_of_zstd() {
        // The codes of zstd's `zstd_errors.h`, negated as its functions return them.
        assert_eq!(zstd_safe::get_error_name(0usize.wrapping_sub(16)), WINDOW_TOO_LARGE);
        assert_eq!(zstd_safe::get_error_name(0usize.wrapping_sub(64)), NO_MEMORY);
    }
}
