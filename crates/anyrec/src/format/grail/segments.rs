//! Version 2 files cut where blocks begin.
//!
//! A sound chunk that says it is a block's first begins a block for the sequential scan too,
//! whatever came before it. Only behind a trailer does it not, since a trailer ends the data: the
//! part that meets one in the middle of a file ends early, and whoever puts the parts together
//! sees the gap. For there to be one, no part begins right behind a trailer.

use super::block::Framing;
use super::layout::{self, CHUNK_BYTES};
use super::read::Opened;
use super::scan::GrailScan;
use crate::base::Result;
use crate::format::{OpenOptions, Scan, Segments};
use crate::io::{Source, Window};
use std::sync::Arc;

/// Compressed bytes are taken for so many bytes of records: threads that run ahead may only hold so
/// many of a part.
const COMPRESSED: u64 = 4;

#[derive(Debug)]
pub(super) struct GrailSegments {
    opened: Opened,
    options: OpenOptions,
    begins: Vec<u64>,
}

impl GrailSegments {
    /// Parts of about `size` bytes; none where the file cannot be cut: legacy files, and those
    /// whose header is damaged.
    pub(super) fn cut(source: &Arc<dyn Source>, options: &OpenOptions, size: u64) -> Result<Option<Self>> {
        // With `skip_damage` a file without a header would open all the same.
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

/// Where the first block at or behind `offset` begins, a multiple of the chunk size.
fn next_block(source: &Arc<dyn Source>, mut offset: u64) -> Result<Option<u64>> {
    let length = source.len();
    while offset.checked_add(CHUNK_BYTES).is_some_and(|end| end <= length) {
        let chunk = source.bytes(offset..offset + CHUNK_BYTES)?;
        match layout::decode_chunk(&chunk, true) {
            Ok(chunk) if chunk.index == 0 && !is_behind_trailer(source, offset)? => return Ok(Some(offset)),
            // Past the rest of the block, which a chunk that lies about it cannot make endless.
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
