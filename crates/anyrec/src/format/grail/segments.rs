//! Splits version 2 files at block boundaries.
//!
//! A sound chunk that claims to be a block's first begins a block for the sequential scan too,
//! whatever precedes it. The only exception is after a trailer, which ends the data. A part that
//! finds a trailer in the middle of a file ends early, and the code that combines the parts sees
//! the gap. To guarantee the gap, no part begins directly after a trailer.

use super::block::Framing;
use super::layout::{self, CHUNK_BYTES};
use super::read::Opened;
use super::scan::GrailScan;
use crate::base::Result;
use crate::format::{OpenOptions, Scan, Segments};
use crate::io::{Source, Window};
use std::sync::Arc;

/// Assumed ratio of record bytes to compressed bytes: threads that read ahead may hold only a
/// limited part in memory.
const COMPRESSED: u64 = 4;

#[derive(Debug)]
pub(super) struct GrailSegments {
    opened: Opened,
    options: OpenOptions,
    begins: Vec<u64>,
}

impl GrailSegments {
    /// Parts of about `size` bytes; `None` if the file cannot be split: legacy files, and files
    /// with a damaged header.
    pub(super) fn cut(source: &Arc<dyn Source>, options: &OpenOptions, size: u64) -> Result<Option<Self>> {
        // With `skip_damage`, a file without a header would still open.
        let strict = options.clone().with_skip_damage(false);
        let opened = match Opened::new(source.clone(), &strict) {
            Ok(opened) if opened.version == Framing::Two => opened,
            _ => return Ok(None),
        };
        let mut begins = vec![0];
        let size = if opened.decoder.is_transforming() { size / COMPRESSED } else { size };
        let step = size.next_multiple_of(CHUNK_BYTES).max(CHUNK_BYTES);
        let mut target = opened.body.saturating_add(step);
        while let Some(begin) = next_block(source, target)? {
            begins.push(begin);
            target = begin.saturating_add(step);
        }
        Ok(Some(GrailSegments { opened, options: options.clone(), begins }))
    }
}

/// The beginning of the first block at or after `offset`, a multiple of the chunk size.
fn next_block(source: &Arc<dyn Source>, mut offset: u64) -> Result<Option<u64>> {
    let length = source.len();
    while offset.checked_add(CHUNK_BYTES).is_some_and(|end| end <= length) {
        let chunk = source.bytes(offset..offset + CHUNK_BYTES)?;
        match layout::decode_chunk(&chunk, true) {
            Ok(chunk) if chunk.index == 0 && !is_behind_trailer(source, offset)? => return Ok(Some(offset)),
            // Skip the rest of the block. A wrong count cannot make this loop endless.
            Ok(chunk) if chunk.index < chunk.total => {
                let left = u64::from(chunk.total - chunk.index);
                offset = offset.saturating_add(left.saturating_mul(CHUNK_BYTES));
            }
            _ => offset += CHUNK_BYTES,
        }
    }
    Ok(None)
}

fn is_behind_trailer(source: &Arc<dyn Source>, offset: u64) -> Result<bool> {
    let Some(before) = offset.checked_sub(CHUNK_BYTES) else { return Ok(false) };
    let magic = source.bytes(before..before + layout::TRAILER_MAGIC.len() as u64)?;
    Ok(magic[..] == layout::TRAILER_MAGIC)
}

impl Segments for GrailSegments {
    fn begins(&self) -> &[u64] {
        &self.begins
    }

    fn scan(&self, part: usize) -> Result<Box<dyn Scan>> {
        let Opened { source, decoder, version, header, .. } = &self.opened;
        let begin = self.begins.get(part).copied().unwrap_or(u64::MAX);
        let end = self.begins.get(part + 1).copied();
        let scan = if part == 0 {
            GrailScan::new(Window::new(source.clone()), &self.options)?
        } else {
            let range = begin..end.unwrap_or(u64::MAX);
            GrailScan::part(source.clone(), decoder.clone(), *version, range)
        };
        Ok(Box::new(match end {
            Some(end) => scan.up_to(end),
            None if part == 0 => scan,
            None => scan.until_the_end(header.has_trailer()),
        }))
    }
}
