//! WebP, through `image-webp`: lossy or lossless, with or without alpha, not animated.

use super::{DecodeOptions, Decoded, corrupt};
use crate::memory::zeroed;
use crate::orientation::Orientation;
use crate::picture::{Channels, Picture, Samples};
use crate::sniff::{ImageFormat, Size, vp8_size};
use anyrec::{Error, ErrorKind, Result};
use image_webp::{DecodingError, WebPDecoder};
use std::io::Cursor;

const FORMAT: ImageFormat = ImageFormat::WebP;

/// `RIFF`, the length of the rest, `WEBP`.
const RIFF_HEADER: usize = 12;

pub(super) fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Decoded> {
    let riff = riff_chunks(bytes)?;
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(failure)?;
    if decoder.is_animated() {
        return Err(Error::unsupported("animated webp: only single images are decoded"));
    }
    let (width, height) = decoder.dimensions();
    let size = Size { width, height };
    let channels = if decoder.has_alpha() { Channels::Rgba } else { Channels::Rgb };
    let count = options.limits.check(FORMAT, size, channels.count(), 8)?;
    // The decoder sizes its planes by the frame and compares the frame with the canvas only
    // afterwards.
    if let Some(frame) = lossy_frame_size(riff).filter(|frame| *frame != size) {
        return Err(corrupt(FORMAT, "size of canvas and frame").expected_found(size, frame));
    }
    if decoder.output_buffer_size() != Some(count) {
        return Err(corrupt(FORMAT, "the channels do not match the image"));
    }

    decoder.set_memory_limit(usize::try_from(options.limits.bytes).unwrap_or(usize::MAX));
    let mut samples = zeroed(count)?;
    decoder.read_image(&mut samples).map_err(failure)?;
    let exif = if options.exif_orientation { decoder.exif_metadata().map_err(failure)? } else { None };
    let orientation = exif.as_deref().map_or_else(Default::default, Orientation::from_exif);
    let picture = Picture::new(width, height, channels, Samples::Eight(samples))?;
    Ok(Decoded { picture, orientation })
}

/// The chunks inside the RIFF header, which declares their length.
fn riff_chunks(bytes: &[u8]) -> Result<&[u8]> {
    let declared = bytes
        .get(4..)
        .and_then(|rest| rest.first_chunk())
        .and_then(|length| usize::try_from(u32::from_le_bytes(*length)).ok()?.checked_add(8));
    let Some(declared) = declared else {
        return Err(corrupt(FORMAT, "cut short in the RIFF header"));
    };
    bytes
        .get(RIFF_HEADER..declared)
        .ok_or_else(|| corrupt(FORMAT, "cut short").expected_found(declared, bytes.len()))
}

/// The size in the first lossy frame, if there is one.
fn lossy_frame_size(mut riff: &[u8]) -> Option<Size> {
    loop {
        let (header, rest) = riff.split_first_chunk::<8>()?;
        let (name, length) = header.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length.first_chunk()?)).ok()?;
        if name == b"VP8 " {
            return vp8_size(rest);
        }
        // Chunks are padded to even lengths.
        riff = rest.get(length.checked_add(length % 2)?..)?;
    }
}

fn failure(error: DecodingError) -> Error {
    match error {
        DecodingError::MemoryLimitExceeded | DecodingError::ImageTooLarge => {
            Error::new(ErrorKind::Limit, "webp needs more memory than the limit allows")
                .with_hint("raise the limit on decoded images if this one is trusted")
        }
        DecodingError::UnsupportedFeature(feature) => {
            Error::unsupported(format!("unsupported webp feature: {}", super::one_line(feature)))
        }
        DecodingError::IoError(_) => corrupt(FORMAT, "cut short"),
        other => corrupt(FORMAT, other),
    }
}
