//! Decodes JPEG, PNG and WebP bytes into a [`Picture`].
//!
//! Every format follows the same order. First, the declared size is read and checked against the
//! limits and, if the format has a maximum compression ratio, against the number of bytes. Only
//! then is anything allocated and decoded.

mod jpeg;
mod png;
mod webp;

use super::orientation::Orientation;
use super::picture::{Channels, Picture};
use super::sniff::{ImageFormat, Kind, Size, sniff};
use anyrec::{Error, ErrorKind, Result};

/// Upper bounds on what one image can make the decoder allocate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeLimits {
    /// Maximum number of pixels (width times height). Default 256 Mi.
    pub pixels: u64,
    /// Maximum number of bytes of decoded samples. Default 1 GiB. A decoder's own working memory is
    /// not included; a progressive JPEG needs up to four times as much.
    pub bytes: u64,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        DecodeLimits { pixels: 256 << 20, bytes: 1 << 30 }
    }
}

/// Which channels to decode to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Color {
    /// As the image stores them: gray stays gray, and alpha and 16 bits are kept. Palettes become
    /// RGB (or RGBA), fewer than 8 bits become 8, and CMYK becomes RGB.
    #[default]
    AsStored,
    /// One channel.
    Gray,
    /// Red, green and blue; alpha is dropped.
    Rgb,
    /// As the image stores them, but alpha is dropped.
    Opaque,
}

/// How to decode.
///
/// ```
/// use anyrec_image::{Color, DecodeOptions};
///
/// let mut options = DecodeOptions::default();
/// options.color = Color::Rgb;
/// options.limits.pixels = 1_000_000;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DecodeOptions {
    /// Limits on the size of an image.
    pub limits: DecodeLimits,
    /// Apply the orientation in the image's EXIF data. Default false.
    pub exif_orientation: bool,
    /// Which channels to return. Default as stored.
    pub color: Color,
    /// Keep 16 bits per sample if the channels are converted too. Default false: converted channels
    /// have 8 bits.
    pub keep_depth: bool,
    /// Accept a JPEG that is truncated or damaged, and return what can be decoded, as browsers do.
    /// Default false: such a JPEG is an error.
    pub lenient_jpeg: bool,
}

impl DecodeOptions {
    /// The options equivalent to `flag` of OpenCV's `imdecode`, which MXNet's `unpack_img` calls
    /// `iscolor`: -1 as stored, or a sum of 1 (colour; gray without it), 2 (any depth: 16 bits are
    /// kept), 4 (any colour: gray stays gray) and 128 (ignore the EXIF orientation, as -1 does).
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) for any other number. OpenCV's flags for reduced sizes are
    /// not supported.
    ///
    /// ```
    /// use anyrec_image::{Color, DecodeOptions};
    ///
    /// assert_eq!(DecodeOptions::opencv(0)?.color, Color::Gray);
    /// assert!(DecodeOptions::opencv(1 + 2)?.keep_depth);
    /// assert!(DecodeOptions::opencv(17).is_err());
    /// # Ok::<(), anyrec::Error>(())
    /// ```
    pub fn opencv(flag: i32) -> Result<Self> {
        const COLOR: i32 = 1;
        const ANY_DEPTH: i32 = 2;
        const ANY_COLOR: i32 = 4;
        const IGNORE_ORIENTATION: i32 = 128;
        let has = |bit: i32| flag & bit != 0;
        if flag == -1 {
            return Ok(DecodeOptions::default());
        }
        if flag & !(COLOR | ANY_DEPTH | ANY_COLOR | IGNORE_ORIENTATION) != 0 {
            return Err(Error::invalid("flag for decoding an image")
                .expected_found("-1 (as stored), or a sum of 1, 2, 4 and 128", flag));
        }
        let color = match (has(COLOR), has(ANY_COLOR)) {
            (true, _) => Color::Rgb,
            (false, true) => Color::Opaque,
            (false, false) => Color::Gray,
        };
        Ok(DecodeOptions {
            color,
            keep_depth: has(ANY_DEPTH),
            exif_orientation: !has(IGNORE_ORIENTATION),
            ..DecodeOptions::default()
        })
    }
}

/// Decodes a JPEG, PNG or WebP. The format is detected from the bytes.
///
/// For an animated PNG, this returns the image that plain PNG readers show.
///
/// # Errors
/// [`Corrupt`](ErrorKind::Corrupt) for damaged or truncated bytes, [`Limit`](ErrorKind::Limit) for
/// an image over the limits, [`Unsupported`](ErrorKind::Unsupported) for bytes that are not an
/// image or an image of an unsupported kind.
///
/// ```
/// use anyrec::ErrorKind;
/// use anyrec_image::{DecodeOptions, decode};
///
/// let error = decode(b"plain words", &DecodeOptions::default()).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Unsupported);
/// assert_eq!(
///     error.to_string(),
///     "the payload is not an image that can be decoded: expected jpeg, png or webp, found text",
/// );
/// ```
pub fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Picture> {
    let decoded = match sniff(bytes) {
        Kind::Image { format: ImageFormat::Jpeg, .. } => jpeg::decode(bytes, options)?,
        Kind::Image { format: ImageFormat::Png, size } => png::decode(bytes, size, options)?,
        Kind::Image { format: ImageFormat::WebP, .. } => webp::decode(bytes, options)?,
        other => {
            return Err(Error::unsupported("the payload is not an image that can be decoded")
                .expected_found("jpeg, png or webp", other));
        }
    };
    let picture = decoded.picture;
    let keeps_depth = options.keep_depth || options.color == Color::AsStored;
    let picture = if keeps_depth { picture } else { picture.into_8bit() };
    let picture = match options.color {
        Color::AsStored => picture,
        Color::Gray => picture.into_gray(),
        Color::Rgb => picture.into_rgb(),
        // OpenCV counts transparency as a colour.
        Color::Opaque if picture.channels() == Channels::GrayAlpha => picture.into_rgb(),
        Color::Opaque => picture.without_alpha(),
    };
    Ok(if options.exif_orientation { picture.turned(decoded.orientation) } else { picture })
}

/// Whether the bytes begin like a JPEG.
pub(super) fn is_jpeg(bytes: &[u8]) -> bool {
    matches!(sniff(bytes), Kind::Image { format: ImageFormat::Jpeg, .. })
}

/// The result of a format's decoder: the image as stored (or already in the requested colours), and
/// its orientation.
struct Decoded {
    picture: Picture,
    orientation: Orientation,
}

impl DecodeLimits {
    /// The number of samples to allocate for an image of this size.
    pub(super) fn check(&self, format: ImageFormat, size: Size, channels: usize, depth: u8) -> Result<usize> {
        let Size { width, height } = size;
        if width == 0 || height == 0 {
            return Err(corrupt(format, format!("declares {size} pixels")));
        }
        let limit = |what: String| {
            Error::new(ErrorKind::Limit, format!("{format} of {size} pixels is over the {what}"))
                .with_hint("raise the limit on decoded images if this one is trusted")
        };
        let pixels = u64::from(width) * u64::from(height);
        if pixels > self.pixels {
            return Err(limit(format!("limit of {} pixels", self.pixels)));
        }
        let samples = pixels.checked_mul(channels as u64);
        let bytes = samples.and_then(|samples| samples.checked_mul(u64::from(depth / 8)));
        match (samples.map(usize::try_from), bytes) {
            (Some(Ok(samples)), Some(bytes)) if bytes <= self.bytes => Ok(samples),
            _ => Err(limit(format!("limit of {} bytes", self.bytes))),
        }
    }
}

/// The error for bytes that violate their format.
pub(super) fn corrupt(format: ImageFormat, what: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("damaged {format}: {}", one_line(what)))
}

/// The error for a declared size that the given bytes cannot contain, however well compressed.
pub(super) fn too_few_bytes(format: ImageFormat, size: Size, least: u64, bytes: &[u8]) -> Error {
    corrupt(format, format!("too few bytes for {size} pixels"))
        .expected_found(format!("at least {least}"), bytes.len())
}

/// A decoder's message without line breaks and other control characters.
fn one_line(message: impl std::fmt::Display) -> String {
    let text = message.to_string();
    text.trim().replace(char::is_control, " ")
}
