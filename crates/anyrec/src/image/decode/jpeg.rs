//! JPEG, through `zune-jpeg`. Everything that knows about that crate is in this file.
//!
//! Held against the bytes first: a block costs at least one bit in a progressive JPEG (its first
//! DC code) and more in others, so a short file cannot declare a large picture. The end marker
//! must be there, because the decoder does not miss it when only the last bytes are gone.
//!
//! What zune-jpeg 0.5.15 gets wrong is kept from it, each with a test that would show a change:
//! sequential JPEGs with one scan per component come out as noise when a component has a vertical
//! sampling factor over 1, and are refused; asking a progressive JPEG for its luminance alone gives
//! rows of something else when only the height is subsampled, so luminance is taken out of YCbCr.
//!
//! CMYK and YCCK are taken to be stored inverted, as every common writer stores them and as
//! OpenCV takes them.

use super::{Color, DecodeOptions, Decoded, corrupt, too_few_bytes};
use crate::error::{Error, Result};
use crate::image::jpeg_markers;
use crate::image::orientation::Orientation;
use crate::image::picture::{Channels, Picture, Samples};
use crate::image::sniff::{ImageFormat, Size};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

const FORMAT: ImageFormat = ImageFormat::Jpeg;

pub(super) fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Decoded> {
    if !options.lenient_jpeg && !jpeg_markers::has_end(bytes) {
        return Err(corrupt(FORMAT, "cut short, the end-of-image marker is missing")
            .with_hint("`lenient_jpeg` decodes what is there"));
    }
    let settings = DecoderOptions::default()
        .set_strict_mode(!options.lenient_jpeg)
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX));
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), settings);
    decoder.decode_headers().map_err(failure)?;

    let missing = || corrupt(FORMAT, "the frame header is missing");
    let info = decoder.info().ok_or_else(missing)?;
    let size = Size { width: info.width.into(), height: info.height.into() };
    let stored = decoder.input_colorspace().ok_or_else(missing)?;
    let header = jpeg_markers::frame_header(bytes).ok_or_else(missing)?;
    let (wanted, channels) = match (stored, options.color) {
        (ColorSpace::Luma, _) => (ColorSpace::Luma, Channels::Gray),
        (ColorSpace::YCbCr, Color::Gray) if header.progressive => (ColorSpace::YCbCr, Channels::Rgb),
        (ColorSpace::YCbCr, Color::Gray) => (ColorSpace::Luma, Channels::Gray),
        _ => (ColorSpace::RGB, Channels::Rgb),
    };
    let count = options.limits.check(FORMAT, size, channels.count(), 8)?;
    let least = header.blocks / 8;
    if least > bytes.len() as u64 {
        return Err(too_few_bytes(FORMAT, size, least, bytes));
    }
    let split = jpeg_markers::first_scan_components(bytes) < Some(header.components);
    if split && !header.progressive && header.vertical > 1 {
        return Err(Error::unsupported(
            "sequential jpeg with a scan per component and subsampled height is not decoded here",
        ));
    }

    decoder.set_options(settings.jpeg_set_out_colorspace(wanted));
    if decoder.output_buffer_size() != Some(count) {
        return Err(Error::unsupported(format!("jpeg with {} components", info.components)));
    }
    let mut samples = vec![0; count];
    decoder.decode_into(&mut samples).map_err(failure)?;
    let (channels, samples) = match wanted {
        ColorSpace::YCbCr => {
            let (pixels, _) = samples.as_chunks::<3>();
            (Channels::Gray, pixels.iter().map(|[luminance, _, _]| *luminance).collect())
        }
        _ => (channels, samples),
    };
    let orientation = info.exif_data.as_deref().map_or_else(Default::default, Orientation::from_exif);
    let picture = Picture::new(size.width, size.height, channels, Samples::Eight(samples))?;
    Ok(Decoded { picture, orientation })
}

fn failure(error: DecodeErrors) -> Error {
    match error {
        DecodeErrors::Unsupported(scheme) => {
            Error::unsupported(format!("jpeg coding that is not decoded here: {scheme:?}"))
        }
        other => corrupt(FORMAT, other),
    }
}
