//! The built-in transformer `flate`.

use super::compression::{STEP, level, within};
use super::transform::Transformer;
use crate::base::deflate::{self, Compression, FlushCompress, FlushDecompress, Status};
use crate::base::memory::reserve;
use crate::base::{Error, Result};

/// Raw deflate, without a zlib or gzip wrapper.
pub(super) struct Flate {
    level: i32,
}

pub(super) static FLATE: Flate = Flate { level: -1 };

impl Flate {
    pub(super) fn from_config(config: &str) -> Result<Self> {
        Ok(Flate { level: level("flate", config)?.unwrap_or(-1) })
    }
}

impl Transformer for Flate {
    fn encode(&self, block: &[u8]) -> Result<Vec<u8>> {
        let level = match self.level {
            // Huffman coding only. The fastest level replaces it; the decoded contents are the
            // same.
            -2 => Compression::fast(),
            -1 => Compression::default(),
            level => match u32::try_from(level) {
                Ok(level @ 0..=9) => Compression::new(level),
                // Checked here and not at construction: the original accepts any level when it
                // writes a file without blocks.
                _ => {
                    let message = format!("flate has levels from -2 to 9, not {level}");
                    return Err(Error::invalid(message));
                }
            },
        };
        let mut stream = deflate::compressor(level)?;
        let mut stored = Vec::new();
        loop {
            reserve(&mut stored, STEP.max(block.len() / 2))?;
            let rest = rest(block, stream.total_in());
            match stream.compress_vec(rest, &mut stored, FlushCompress::Finish) {
                Ok(Status::StreamEnd) => return Ok(stored),
                Ok(Status::Ok | Status::BufError) => {}
                Err(error) => return Err(Error::io("flate cannot compress", error.into())),
            }
        }
    }

    fn decode(&self, stored: &[u8], limit: u64) -> Result<Vec<u8>> {
        let corrupt = |why: &str| Error::corrupt(format!("the block is not readable as deflate: {why}"));
        let mut stream = deflate::decompressor()?;
        let mut block = Vec::new();
        loop {
            let step = STEP.max(block.len()).min(usize::try_from(limit).unwrap_or(usize::MAX).max(STEP));
            reserve(&mut block, step)?;
            let before = (stream.total_in(), stream.total_out());
            let rest = rest(stored, stream.total_in());
            let status = stream
                .decompress_vec(rest, &mut block, FlushDecompress::None)
                .map_err(|error| corrupt(error.message().unwrap_or("invalid data")))?;
            if block.len() as u64 > limit || status == Status::StreamEnd {
                return within(block, limit);
            }
            if before == (stream.total_in(), stream.total_out()) {
                return Err(corrupt("it is cut short"));
            }
        }
    }
}

fn rest(data: &[u8], taken: u64) -> &[u8] {
    usize::try_from(taken).ok().and_then(|taken| data.get(taken..)).unwrap_or_default()
}
