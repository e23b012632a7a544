//! Images: described as OpenCV decodes them, and random ones for generated files.

use super::Image;
use crate::interop::manifest::sha256;
use crate::interop::random::Random;
use anyrec::{Error, Result};
use anyrec_image::{
    Channels, DecodeOptions, ImageFormat, Kind, Picture, Samples, decode, encode_jpeg, encode_png, sniff,
};

/// What `unpack_img` should find in an encoded image.
pub fn describe(encoded: &[u8]) -> Result<Image> {
    let encoding = match sniff(encoded) {
        Kind::Image { format: ImageFormat::Jpeg, .. } => ".jpg",
        Kind::Image { format: ImageFormat::Png, .. } => ".png",
        other => return Err(Error::invalid(format!("this is no jpeg or png, but {other}"))),
    };
    let picture = decode(encoded, &DecodeOptions::opencv(-1)?)?;
    // OpenCV has no gray images with alpha.
    let picture = match picture.channels() {
        Channels::GrayAlpha => picture.into_rgba(),
        _ => picture,
    };
    let mut shape = vec![u64::from(picture.height()), u64::from(picture.width())];
    if picture.channels() != Channels::Gray {
        shape.push(picture.channels().count() as u64);
    }
    Ok(Image {
        encoding: encoding.to_owned(),
        depth: picture.depth(),
        shape,
        bgr_sha256: Some(sha256(&picture.bgr_samples().to_le_bytes())),
    })
}

/// An encoded image: JPEG or PNG, gray or colour; with alpha or 16 bits where possible.
pub fn random(random: &mut Random) -> Result<Vec<u8>> {
    let side = |random: &mut Random| u32::try_from(random.between(1..=40)).unwrap_or(1);
    let (width, height) = (side(random), side(random));
    let is_jpeg = random.chance(50);
    let channels = match is_jpeg {
        true => random.choose(&[Channels::Gray, Channels::Rgb, Channels::Rgb]),
        false => random.choose(&[Channels::Gray, Channels::GrayAlpha, Channels::Rgb, Channels::Rgba]),
    };
    let count = width as usize * height as usize * channels.count();
    let samples = if !is_jpeg && random.chance(25) {
        let bytes = random.bytes(count * 2);
        Samples::Sixteen(bytes.as_chunks().0.iter().map(|&pair| u16::from_le_bytes(pair)).collect())
    } else {
        Samples::Eight(random.bytes(count))
    };
    let picture = Picture::new(width, height, channels, samples)?;
    let level = |random: &mut Random, range| u8::try_from(random.between(range)).unwrap_or(9);
    match is_jpeg {
        true => encode_jpeg(&picture, level(random, 30..=100)),
        false => encode_png(&picture, level(random, 0..=9)),
    }
}
