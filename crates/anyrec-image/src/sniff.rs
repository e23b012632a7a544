//! Guesses the kind of a payload from its first bytes.
//!
//! Signatures are tried first, text last. Nothing is decoded or decompressed, and only the first 64
//! KiB are read, except for the size of a JPEG, which comes after its metadata segments.

use super::jpeg::markers;
use std::fmt;

/// Image formats that [`sniff`] distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImageFormat {
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
    /// WebP.
    WebP,
    /// GIF: recognised but not decoded.
    Gif,
    /// Windows bitmap: recognised but not decoded.
    Bmp,
}

impl ImageFormat {
    /// The media type of the format.
    pub fn media_type(self) -> &'static str {
        match self {
            ImageFormat::Jpeg => "image/jpeg",
            ImageFormat::Png => "image/png",
            ImageFormat::WebP => "image/webp",
            ImageFormat::Gif => "image/gif",
            ImageFormat::Bmp => "image/bmp",
        }
    }
}

impl fmt::Display for ImageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ImageFormat::Jpeg => "jpeg",
            ImageFormat::Png => "png",
            ImageFormat::WebP => "webp",
            ImageFormat::Gif => "gif",
            ImageFormat::Bmp => "bmp",
        })
    }
}

/// Width and height as an image's header declares them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Size {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// The kind of a payload.
///
/// Displays as one or two words, like `jpeg 500x375`, `npy` or `bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// No bytes at all.
    Empty,
    /// An image. The size is missing if the given bytes do not include the header.
    Image {
        /// Which format.
        format: ImageFormat,
        /// The declared size, which is not trusted.
        size: Option<Size>,
    },
    /// A NumPy array.
    Npy,
    /// A zip archive whose first member is a NumPy array.
    Npz,
    /// A zip archive.
    Zip,
    /// A Python pickle of protocol 2 or later.
    Pickle,
    /// Text that starts like a JSON object or array.
    Json,
    /// UTF-8 text without control characters, mostly letters, digits and spaces.
    Text,
    /// Gzip-compressed data.
    Gzip,
    /// Zstandard-compressed data.
    Zstd,
    /// A tar archive.
    Tar,
    /// Anything else.
    Unknown,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Kind::Image { format, size: Some(size) } => return write!(f, "{format} {size}"),
            Kind::Image { format, size: None } => return format.fmt(f),
            Kind::Empty => "empty",
            Kind::Npy => "npy",
            Kind::Npz => "npz",
            Kind::Zip => "zip",
            Kind::Pickle => "pickle",
            Kind::Json => "json",
            Kind::Text => "text",
            Kind::Gzip => "gzip",
            Kind::Zstd => "zstd",
            Kind::Tar => "tar",
            Kind::Unknown => "bytes",
        };
        f.write_str(word)
    }
}

/// Guesses the kind of a payload from its first bytes. The guess is good enough for display and for
/// choosing a decoder, but does not guarantee that the rest is sound.
///
/// ```
/// use anyrec_image::sniff;
///
/// assert_eq!(sniff(b"").to_string(), "empty");
/// assert_eq!(sniff(b"\x93NUMPY\x01\x00").to_string(), "npy");
/// assert_eq!(sniff(b"{\"label\": 3}").to_string(), "json");
/// assert_eq!(sniff("grüße\n".as_bytes()).to_string(), "text");
/// assert_eq!(sniff(b"\x00\x01\x02").to_string(), "bytes");
/// ```
pub fn sniff(payload: &[u8]) -> Kind {
    if payload.is_empty() {
        return Kind::Empty;
    }
    if let Some(format) = image_format(payload) {
        return Kind::Image { format, size: image_size(format, payload) };
    }
    match payload {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Kind::Npy,
        [b'P', b'K', 3, 4, ..] if first_zip_member_is_npy(payload) => Kind::Npz,
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Kind::Zip,
        [0x1F, 0x8B, 8, ..] => Kind::Gzip,
        [0x28, 0xB5, 0x2F, 0xFD, ..] => Kind::Zstd,
        [0x80, 2 | 3, opcode, ..] if PICKLE_STARTS.contains(opcode) => Kind::Pickle,
        // From protocol 4 on, all but the smallest pickles begin with a frame.
        [0x80, 4 | 5, 0x95, ..] => Kind::Pickle,
        [0x80, 4 | 5, opcode, ..] if PICKLE_STARTS.contains(opcode) => Kind::Pickle,
        _ if payload.get(257..262) == Some(b"ustar") => Kind::Tar,
        _ => text_kind(payload),
    }
}

/// The pickle opcodes that can follow the protocol opcode: those that push a value.
const PICKLE_STARTS: &[u8] = b"()]}.NFGIJKLMUVSTXBCcPQ\x88\x89\x8A\x8B\x8C\x8D\x8E\x8F\x96";

fn image_format(payload: &[u8]) -> Option<ImageFormat> {
    match payload {
        [0xFF, 0xD8, 0xFF, ..] => Some(ImageFormat::Jpeg),
        [0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A, ..] => Some(ImageFormat::Png),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(ImageFormat::WebP),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(ImageFormat::Gif),
        // Ordinary text may start with "BM" too, so the reserved fields and the header's size must
        // match.
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, _, _, _, _, 12..=124, 0, 0, 0, ..] => Some(ImageFormat::Bmp),
        _ => None,
    }
}

fn image_size(format: ImageFormat, payload: &[u8]) -> Option<Size> {
    let (width, height) = match format {
        ImageFormat::Jpeg => {
            let header = markers::frame_header(payload)?;
            (header.width.into(), header.height.into())
        }
        ImageFormat::Png if payload.get(12..16)? == b"IHDR" => (
            u32::from_be_bytes(*payload.get(16..)?.first_chunk()?),
            u32::from_be_bytes(*payload.get(20..)?.first_chunk()?),
        ),
        ImageFormat::Png => return None,
        ImageFormat::WebP => return webp_size(payload),
        ImageFormat::Gif => (
            u16::from_le_bytes(*payload.get(6..)?.first_chunk()?).into(),
            u16::from_le_bytes(*payload.get(8..)?.first_chunk()?).into(),
        ),
        // The oldest header has 16-bit sizes. A negative height means that rows go downwards.
        ImageFormat::Bmp if payload.get(14) == Some(&12) => (
            u16::from_le_bytes(*payload.get(18..)?.first_chunk()?).into(),
            u16::from_le_bytes(*payload.get(20..)?.first_chunk()?).into(),
        ),
        ImageFormat::Bmp => (
            i32::from_le_bytes(*payload.get(18..)?.first_chunk()?).unsigned_abs(),
            i32::from_le_bytes(*payload.get(22..)?.first_chunk()?).unsigned_abs(),
        ),
    };
    Some(Size { width, height })
}

/// The size of a WebP: of the canvas (`VP8X`), or of its only frame.
fn webp_size(payload: &[u8]) -> Option<Size> {
    let chunk = payload.get(20..)?;
    match payload.get(12..16)? {
        b"VP8X" => {
            let &[w0, w1, w2, h0, h1, h2] = chunk.get(4..)?.first_chunk()?;
            Some(Size {
                width: u32::from_le_bytes([w0, w1, w2, 0]) + 1,
                height: u32::from_le_bytes([h0, h1, h2, 0]) + 1,
            })
        }
        b"VP8 " => vp8_size(chunk),
        b"VP8L" => {
            let bits = u32::from_le_bytes(*chunk.get(1..)?.first_chunk()?);
            Some(Size { width: (bits & 0x3FFF) + 1, height: (bits >> 14 & 0x3FFF) + 1 })
        }
        _ => None,
    }
}

/// The size in a lossy WebP frame's header (the content of a `VP8 ` chunk).
pub(super) fn vp8_size(frame: &[u8]) -> Option<Size> {
    let &[0x9D, 0x01, 0x2A, w0, w1, h0, h1] = frame.get(3..)?.first_chunk()? else {
        return None;
    };
    // The upper two bits request scaling on display.
    Some(Size {
        width: u32::from(u16::from_le_bytes([w0, w1]) & 0x3FFF),
        height: u32::from(u16::from_le_bytes([h0, h1]) & 0x3FFF),
    })
}

fn first_zip_member_is_npy(zip: &[u8]) -> bool {
    let name = || {
        let length = u16::from_le_bytes(*zip.get(26..)?.first_chunk()?);
        zip.get(30..)?.get(..usize::from(length))
    };
    name().is_some_and(|name| name.ends_with(b".npy"))
}

/// How much text is checked. Raw pixels of a dark or uniform image may be printable over a long
/// stretch.
const TEXT_PREFIX: usize = 64 << 10;

/// A text of fewer characters may consist of any, such as `?!` or `----`.
const SHORT_TEXT: usize = 16;

fn text_kind(payload: &[u8]) -> Kind {
    let prefix = payload.get(..TEXT_PREFIX).unwrap_or(payload);
    let text = match std::str::from_utf8(prefix) {
        Ok(text) => text,
        // A character may be cut off by the end of the prefix, but not by the end of the payload.
        Err(error) if error.error_len().is_none() && prefix.len() < payload.len() => {
            let whole = prefix.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(whole).unwrap_or_default()
        }
        Err(_) => return Kind::Unknown,
    };
    let control = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    if text.is_empty() || text.contains(control) {
        return Kind::Unknown;
    }
    let mut start = text.trim_start_matches('\u{FEFF}').chars().filter(|c| !c.is_whitespace());
    match (start.next(), start.next()) {
        (Some('{'), Some('"' | '}') | None) => Kind::Json,
        (Some('['), Some('[' | ']' | '{' | '"' | '-' | '0'..='9') | None) => Kind::Json,
        _ if is_wordy(text) => Kind::Text,
        _ => Kind::Unknown,
    }
}

/// Whether a text roughly contains words: printable pixels are mostly of one value, or symbols
/// between letters.
fn is_wordy(text: &str) -> bool {
    let count = text.chars().count();
    if count < SHORT_TEXT {
        return true;
    }
    let first = text.chars().next();
    let wordy = text.chars().filter(|&c| c.is_alphanumeric() || c.is_whitespace()).count();
    text.chars().any(|c| Some(c) != first) && wordy >= count / 2
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn signatures_are_recognised() {
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        let mut npz = b"PK\x03\x04".to_vec();
        npz.extend([0; 22]);
        npz.extend(b"\x05\x00\x00\x00a.npy");
        let cases: &[(&[u8], &str)] = &[
            (b"", "empty"),
            (b"\xFF\xD8\xFF\xE0", "jpeg"),
            (b"\xFF\xD8\xFF\xC0\0\x0B\x08\x01\x77\x01\xF4\x01\x01\x11\0", "jpeg 500x375"),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x1C\0\0\0\x1C", "png 28x28"),
            (b"\x89PNG\r\n\x1a\n", "png"),
            (b"RIFF....WEBPVP8L....\x2F\x01\x80\x00\x00", "webp 2x3"),
            (b"RIFF....WEBPVP8X....\0\0\0\0\x01\0\0\x02\0\0", "webp 2x3"),
            (b"RIFF....WEBPVP8 ....\0\0\0\x9D\x01\x2A\x02\x00\x03\x40", "webp 2x3"),
            (b"RIFF....WAVEfmt ", "text"),
            (b"GIF89a\x02\0\x03\0", "gif 2x3"),
            (b"BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0\x02\0\0\0\xFD\xFF\xFF\xFF", "bmp 2x3"),
            (b"BMW drives", "text"),
            (b"PK\x05\x06\0\0", "zip"),
            (&npz, "npz"),
            (&tar, "tar"),
            (b"\x1F\x8B\x08\0", "gzip"),
            (b"\x28\xB5\x2F\xFD\0", "zstd"),
            (b"\x80\x02}q\0.", "pickle"),
            (b"\x80\x04\x95\x0A\0\0\0\0\0\0\0", "pickle"),
            (b"\x80\x05N.", "pickle"),
            (b"\x80\x02\xFF", "bytes"),
            (b" [1, 2]", "json"),
            (b"{}", "json"),
            (b"[ERROR] disk", "text"),
            (b"{braces}", "text"),
            (b"a\0b", "bytes"),
            (b"\x1b[31mred", "bytes"),
            (b"\xC3", "bytes"),
        ];
        for (payload, expected) in cases {
            assert_eq!(sniff(payload).to_string(), *expected, "{:?}", bstr::BStr::new(payload));
        }
    }

    #[test]
    fn raw_pixels_in_the_range_of_text_are_bytes() {
        let dark: Vec<u8> = (b'!'..=b'/').cycle().take(28 * 28).collect();
        let even = [b'd'; 28 * 28];
        let mut bright_below = [b'a', b' ', b'b', b'c'].repeat(1024);
        bright_below.push(0xFF);
        for pixels in [&dark[..], &even, &bright_below] {
            assert_eq!(sniff(pixels), Kind::Unknown);
        }
        for text in [
            "1,2,3,4,5,6,7,8,9,10",
            "if (a[i] != b[i]) { return f(&a); }",
            "--------",
            "日本語の文章はこのようです。",
        ] {
            assert_eq!(sniff(text.as_bytes()), Kind::Text, "{text}");
        }
    }

    #[test]
    fn character_cut_by_the_prefix_is_still_text() {
        let text = "éa".repeat(TEXT_PREFIX);
        assert_eq!(sniff(text.as_bytes()), Kind::Text);
    }

    proptest! {
        #[test]
        fn any_bytes_behind_any_signature_are_sniffed_without_a_panic(
            head in prop::sample::select(vec![
                &b""[..], b"\xFF\xD8\xFF", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"RIFF....WEBPVP8X",
                b"RIFF....WEBPVP8 ", b"RIFF....WEBPVP8L", b"GIF89a", b"BM\0\0\0\0\0\0\0\0",
                b"PK\x03\x04", b"\x80\x02", b"{",
            ]),
            tail in prop::collection::vec(any::<u8>(), 0..400),
        ) {
            let _ = sniff(&[head, &tail].concat()).to_string();
        }
    }
}
