//! JPEG: the whole image at full size.

use super::{Color, DecodeOptions, Decoded};
use crate::jpeg::{Jpeg, Pixels};
use crate::picture::{Channels, Picture, Samples};
use anyrec::Result;

pub(super) fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Decoded> {
    let jpeg = Jpeg::open(bytes, options)?;
    let header = *jpeg.header();
    let (pixels, channels) = match (options.color, header.components) {
        (Color::Gray, _) | (Color::AsStored | Color::Opaque, 1) => (Pixels::Gray, Channels::Gray),
        (Color::Rgb | Color::AsStored | Color::Opaque, _) => (Pixels::Rgb, Channels::Rgb),
    };
    let whole = jpeg.whole();
    let mut samples = Vec::new();
    jpeg.decode_region(whole, 8, pixels, &mut samples)?;
    let picture = Picture::new(header.size.width, header.size.height, channels, Samples::Eight(samples))?;
    Ok(Decoded { picture, orientation: header.orientation })
}
