//! PNG, through the `png` crate.
//!
//! Deflate expands one byte to at most 1032, so the number of bytes bounds the size of the image.
//! Chunk checksums are verified, and the end chunk is required.

use super::{Color, DecodeOptions, Decoded, corrupt, too_few_bytes};
use crate::memory::zeroed;
use crate::orientation::Orientation;
use crate::picture::{Channels, Picture, Samples};
use crate::sniff::{ImageFormat, Size};
use anyrec::{Error, ErrorKind, Result};
use png::{BitDepth, ColorType, Decoder, DecodingError, Limits, Transformations};
use std::io::Cursor;

const FORMAT: ImageFormat = ImageFormat::Png;

/// The maximum expansion of deflate: a match of 258 bytes in two bits.
const DEFLATE_RATIO: u64 = 1032;

pub(super) fn decode(bytes: &[u8], size: Option<Size>, options: &DecodeOptions) -> Result<Decoded> {
    let size = size.ok_or_else(|| corrupt(FORMAT, "the IHDR chunk is missing"))?;
    // A PNG stores at least one bit per pixel, with or without interlacing.
    options.limits.check(FORMAT, size, 1, 8)?;
    let least = u64::from(size.width) * u64::from(size.height) / 8 / DEFLATE_RATIO;
    if least > bytes.len() as u64 {
        return Err(too_few_bytes(FORMAT, size, least, bytes));
    }

    let limits = Limits { bytes: usize::try_from(options.limits.bytes).unwrap_or(usize::MAX) };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(Transformations::EXPAND);
    // Neither is used, and both are compressed, so they would only cost memory.
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut reader = decoder.read_info().map_err(failure)?;

    let (color, depth) = reader.output_color_type();
    let channels = match color {
        ColorType::Grayscale => Channels::Gray,
        ColorType::GrayscaleAlpha => Channels::GrayAlpha,
        ColorType::Rgb => Channels::Rgb,
        ColorType::Rgba => Channels::Rgba,
        ColorType::Indexed => return Err(corrupt(FORMAT, "palette image without a palette")),
    };
    let (bits, bytes_per_sample) = if depth == BitDepth::Sixteen { (16, 2) } else { (8, 1) };
    let samples = options.limits.check(FORMAT, size, channels.count(), bits)?;
    // Replaces the estimate above, now that the real depth is known.
    let stored_bits = u64::from(size.width) * u64::from(size.height) * reader.info().bits_per_pixel() as u64;
    let least = stored_bits / 8 / DEFLATE_RATIO;
    if least > bytes.len() as u64 {
        return Err(too_few_bytes(FORMAT, size, least, bytes));
    }

    // `check` bounds the number of samples times the bytes per sample.
    let mut raw = zeroed(samples * bytes_per_sample)?;
    if reader.output_buffer_size() != Some(raw.len()) {
        return Err(corrupt(FORMAT, "the size changes within the image"));
    }
    reader.next_frame(&mut raw).map_err(failure)?;
    reader.finish().map_err(failure)?;

    let samples = match depth {
        BitDepth::Sixteen => {
            let (pairs, _) = raw.as_chunks::<2>();
            Samples::Sixteen(pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect())
        }
        _ => Samples::Eight(raw),
    };
    let exif = reader.info().exif_metadata.as_deref();
    let orientation = exif.map_or_else(Default::default, Orientation::from_exif);
    let picture = Picture::new(size.width, size.height, channels, samples)?;
    let picture = if options.color == Color::Gray { gray(picture)? } else { picture };
    Ok(Decoded { picture, orientation })
}

/// A PNG in gray exactly as OpenCV reads it. OpenCV lets libpng convert. libpng truncates its
/// weights to 2^15ths and its 8-bit results; 16-bit results are rounded and lose their lower byte
/// afterwards.
fn gray(picture: Picture) -> Result<Picture> {
    let colour = picture.without_alpha();
    if colour.channels() != Channels::Rgb {
        return Ok(colour);
    }
    let (width, height) = (colour.width(), colour.height());
    let weigh = |[red, green, blue]: [u32; 3]| 9797 * red + 19234 * green + 3737 * blue;
    let samples = match colour.samples() {
        Samples::Eight(values) => Samples::Eight(
            (values.as_chunks::<3>().0.iter())
                .map(|pixel| u8::try_from(weigh(pixel.map(u32::from)) >> 15).unwrap_or(u8::MAX))
                .collect(),
        ),
        Samples::Sixteen(values) => Samples::Sixteen(
            (values.as_chunks::<3>().0.iter())
                .map(|pixel| {
                    let rounded = (weigh(pixel.map(u32::from)) + (1 << 14)) >> 15;
                    u16::try_from(rounded).unwrap_or(u16::MAX)
                })
                .collect(),
        ),
    };
    Picture::new(width, height, Channels::Gray, samples)
}

fn failure(error: DecodingError) -> Error {
    match error {
        DecodingError::LimitsExceeded => {
            Error::new(ErrorKind::Limit, "png needs more memory than the limit allows")
                .with_hint("raise the limit on decoded images if this one is trusted")
        }
        DecodingError::IoError(_) => corrupt(FORMAT, "cut short"),
        other => corrupt(FORMAT, other),
    }
}
