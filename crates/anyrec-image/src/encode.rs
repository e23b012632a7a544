//! Encodes images as JPEG and PNG.

use super::jpeg;
use super::picture::{Channels, Picture, Samples};
use anyrec::{Error, Result};
use mozjpeg_sys::J_COLOR_SPACE;
use png::{BitDepth, ColorType as PngColor, DeflateCompression, Filter};

/// Encodes an image as baseline JPEG with the settings of OpenCV's `imencode`: the standard tables
/// scaled by `quality` (1 to 100), and chroma halved in both directions. Alpha is dropped.
///
/// # Errors
/// [`Invalid`](anyrec::ErrorKind::Invalid) for a quality out of range, 16-bit samples, or a side
/// over 65500 pixels.
///
/// ```
/// use anyrec_image::{Channels, Picture, Samples, encode_jpeg, sniff};
///
/// let picture = Picture::new(8, 4, Channels::Rgb, Samples::Eight(vec![90; 96]))?;
/// let bytes = encode_jpeg(&picture, 95)?;
/// assert_eq!(sniff(&bytes).to_string(), "jpeg 8x4");
/// # Ok::<(), anyrec::Error>(())
/// ```
pub fn encode_jpeg(picture: &Picture, quality: u8) -> Result<Vec<u8>> {
    if !(1..=100).contains(&quality) {
        return Err(Error::invalid("jpeg quality").expected_found("1 to 100", quality));
    }
    if let Some(side) = [picture.width(), picture.height()].into_iter().find(|side| *side > LONGEST_SIDE) {
        return Err(
            Error::invalid("side of a jpeg").expected_found(format!("at most {LONGEST_SIDE} pixels"), side)
        );
    }
    let opaque;
    let picture = if picture.channels() == Channels::GrayAlpha {
        opaque = picture.clone().without_alpha();
        &opaque
    } else {
        picture
    };
    let Samples::Eight(samples) = picture.samples() else {
        return Err(Error::invalid("bits per sample of a jpeg")
            .expected_found(8, picture.depth())
            .with_hint("reduce it to 8 bits per sample first"));
    };
    let space = match picture.channels() {
        Channels::Gray | Channels::GrayAlpha => J_COLOR_SPACE::JCS_GRAYSCALE,
        Channels::Rgb => J_COLOR_SPACE::JCS_EXT_RGB,
        // The input has four samples per pixel; the fourth is ignored.
        Channels::Rgba => J_COLOR_SPACE::JCS_EXT_RGBX,
    };
    let (width, height) = (picture.width(), picture.height());
    let source = jpeg::Input { width, height, space, samples };
    jpeg::encode(source, quality, |_| {})
}

/// libjpeg's JPEG_MAX_DIMENSION.
const LONGEST_SIDE: u32 = 65500;

/// Encodes an image as PNG, losslessly, with any channels and depth. `level` is zlib's: 0 stores, 1
/// is fast, 9 is small.
///
/// # Errors
/// [`Invalid`](anyrec::ErrorKind::Invalid) for a level over 9.
///
/// ```
/// use anyrec_image::{Channels, DecodeOptions, Picture, Samples, decode, encode_png};
///
/// let picture = Picture::new(2, 1, Channels::GrayAlpha, Samples::Sixteen(vec![1, 2, 3, 4]))?;
/// let bytes = encode_png(&picture, 9)?;
/// assert_eq!(decode(&bytes, &DecodeOptions::default())?, picture);
/// # Ok::<(), anyrec::Error>(())
/// ```
pub fn encode_png(picture: &Picture, level: u8) -> Result<Vec<u8>> {
    let compression = match level {
        0 => DeflateCompression::NoCompression,
        1..=9 => DeflateCompression::Level(level),
        _ => return Err(Error::invalid("png level").expected_found("0 to 9", level)),
    };
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, picture.width(), picture.height());
    encoder.set_deflate_compression(compression);
    encoder.set_filter(if level == 0 { Filter::NoFilter } else { Filter::Adaptive });
    encoder.set_color(match picture.channels() {
        Channels::Gray => PngColor::Grayscale,
        Channels::GrayAlpha => PngColor::GrayscaleAlpha,
        Channels::Rgb => PngColor::Rgb,
        Channels::Rgba => PngColor::Rgba,
    });
    let failure =
        |error: png::EncodingError| Error::invalid(format!("cannot encode the image as png: {error}"));
    match picture.samples() {
        Samples::Eight(samples) => {
            encoder.set_depth(BitDepth::Eight);
            let mut writer = encoder.write_header().map_err(failure)?;
            writer.write_image_data(samples).map_err(failure)?;
            writer.finish().map_err(failure)?;
        }
        Samples::Sixteen(samples) => {
            encoder.set_depth(BitDepth::Sixteen);
            let big_endian: Vec<u8> = samples.iter().flat_map(|s| s.to_be_bytes()).collect();
            let mut writer = encoder.write_header().map_err(failure)?;
            writer.write_image_data(&big_endian).map_err(failure)?;
            writer.finish().map_err(failure)?;
        }
    }
    Ok(bytes)
}
