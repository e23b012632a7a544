//! Compares the faster Huffman decoder (`huffman.c`) with libjpeg's own. Both must decode the same
//! bytes to the same pixels, with the same warnings in the same order and the same error, and must
//! leave libjpeg at the same byte.

use super::{Cutout, Header, Jpeg, Pixels, Region};
use crate::decode::DecodeOptions;
use std::ffi::c_int;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};

/// The number of views that [`compare_huffman_decoders`] supports.
const VIEWS: u32 = 32;

/// Decodes a JPEG with each Huffman decoder and compares the results. `view` selects one of 32 ways
/// to decode (damage accepted or refused, four scales, whole or in part, gray or colour). Both
/// refuse images of more than 2^20 pixels.
///
/// # Errors
/// A sentence that describes the difference.
pub fn compare_huffman_decoders(bytes: &[u8], view: u32) -> Result<(), String> {
    let (ours, theirs) = (Outcome::of(bytes, view % VIEWS, true), Outcome::of(bytes, view % VIEWS, false));
    let differs = if ours.result != theirs.result {
        "result"
    } else if ours.warnings != theirs.warnings {
        "warnings"
    } else if ours.unread != theirs.unread {
        "position where decoding stopped"
    } else if ours.pixels != theirs.pixels {
        "pixels"
    } else {
        return Ok(());
    };
    Err(format!("view {view}: {differs} differs from libjpeg's own decoder: {ours:?} instead of {theirs:?}"))
}

/// The result of decoding.
struct Outcome {
    /// The part that was decoded, or the error message.
    result: Result<Cutout, String>,
    pixels: Vec<u8>,
    /// Codes of libjpeg's warnings.
    warnings: Vec<c_int>,
    /// Bytes that libjpeg has not read.
    unread: Option<usize>,
}

impl Outcome {
    fn of(bytes: &[u8], view: u32, faster: bool) -> Self {
        let mut options = DecodeOptions { lenient_jpeg: view & 1 == 0, ..DecodeOptions::default() };
        options.limits.pixels = 1 << 20;
        let eighths = 8 >> (view >> 1 & 3);
        let pixels = if view & 16 == 0 { Pixels::Rgb } else { Pixels::Gray };
        let mut outcome =
            Outcome { result: Err(String::new()), pixels: Vec::new(), warnings: Vec::new(), unread: None };
        let mut jpeg = match Jpeg::open(bytes, &options) {
            Ok(jpeg) => jpeg,
            Err(error) => return Outcome { result: Err(error.to_string()), ..outcome },
        };
        jpeg.faster = faster;
        let region = if view & 8 == 0 { jpeg.whole() } else { inner(jpeg.header()) };
        outcome.result =
            jpeg.decode_once(region, eighths, pixels, &mut outcome.pixels).map_err(|error| error.to_string());
        let info = jpeg.decompressor.info();
        // SAFETY: libjpeg's own memory source, present since the header was read, or null.
        outcome.unread = unsafe { info.src.as_ref() }.map(|source| source.bytes_in_buffer);
        // SAFETY: valid until `jpeg` is dropped; no call into libjpeg is active.
        outcome.warnings = unsafe { &(*jpeg.decompressor.0.as_ptr()).errors.warnings }.clone();
        outcome
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { result, pixels, warnings, unread } = self;
        let mut sum = DefaultHasher::new();
        sum.write(pixels);
        let sum = sum.finish();
        write!(f, "{result:?}, warnings {warnings:?}, {unread:?} bytes unread, pixels {sum:016x}")
    }
}

/// A part that leaves a margin on every side, if the image is large enough.
fn inner(header: &Header) -> Region {
    let (width, height) = (header.size.width, header.size.height);
    Region { left: width / 3, top: height / 3, width: width.div_ceil(3), height: height.div_ceil(3) }
}
