//! Copies and decompression, without any file in the timed part.

use crate::options::{Failure, Options};
use crate::timing::{Done, repeat};
use std::hint::black_box;

/// Copies one buffer to another.
pub fn memcpy(options: &Options) -> Result<Done, Failure> {
    let length = options.number("bytes")?;
    let source = vec![1_u8; length];
    let mut target = vec![2_u8; length];
    repeat(options, &[()], |()| {
        black_box(&mut target).copy_from_slice(black_box(&source));
        Ok((length as u64, 0))
    })
}

/// Decodes blocks of a file, compressed here, one after the other with one context and one buffer.
/// A record is a block.
pub fn zstd(options: &Options) -> Result<Done, Failure> {
    let data = std::fs::read(options.path("file")?)?;
    let level = options.number("level")?;
    let mut rest = data.as_slice();
    let mut frames = Vec::new();
    let mut largest = 0;
    for length in options.integers("lengths")? {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (block, behind) = rest
            .split_at_checked(length)
            .ok_or_else(|| Failure::new("the blocks are longer than the file"))?;
        frames.push(::zstd::bulk::compress(block, level)?);
        largest = largest.max(length);
        rest = behind;
    }
    let order = options.integers("order")?;
    let mut context = ::zstd::bulk::Decompressor::new()?;
    let mut buffer = vec![0; largest];
    repeat(options, &order, |number| {
        let frame = usize::try_from(*number).ok().and_then(|number| frames.get(number));
        let frame = frame.ok_or_else(|| Failure::new(format!("there is no block {number}")))?;
        let length = context.decompress_to_buffer(frame, &mut buffer)?;
        Ok((length as u64, 1))
    })
}
