//! Generated test images.

use super::*;
use crc32fast::hash as crc32;
use mozjpeg_sys::*;
use std::ffi::{c_int, c_uint};

/// A smooth image: colours change slowly, so that JPEG preserves them closely.
pub fn smooth(width: u32, height: u32, channels: Channels) -> Picture {
    let count = channels.count() as u32;
    let samples = (0..width * height * count)
        .map(|at| {
            let (channel, x, y) = (at % count, at / count % width, at / count / width);
            (60 + 50 * channel + x * 90 / width + y * 40 / height).min(255) as u8
        })
        .collect();
    Picture::new(width, height, channels, Samples::Eight(samples)).unwrap()
}

/// An image of noise, 8 or 16 bits.
pub fn noise(width: u32, height: u32, channels: Channels, depth: u8) -> Picture {
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u16
    };
    let count = (width * height) as usize * channels.count();
    let samples = match depth {
        8 => Samples::Eight((0..count).map(|_| next() as u8).collect()),
        _ => Samples::Sixteen((0..count).map(|_| next()).collect()),
    };
    Picture::new(width, height, channels, samples).unwrap()
}

/// How a JPEG is coded, apart from its quality (95).
#[derive(Debug, Clone, Copy)]
pub struct Coding {
    /// Luminance samples per chroma sample, in both directions.
    pub sampling: (c_int, c_int),
    pub progressive: bool,
    /// One scan for each component.
    pub split: bool,
    /// Units between restart markers.
    pub restart: c_uint,
    /// The colour space within, if not libjpeg's choice.
    pub stored: Option<J_COLOR_SPACE>,
}

impl Coding {
    pub const PLAIN: Coding =
        Coding { sampling: (1, 1), progressive: false, split: false, restart: 0, stored: None };

    pub const fn sampled(horizontal: c_int, vertical: c_int) -> Coding {
        Coding { sampling: (horizontal, vertical), ..Coding::PLAIN }
    }

    pub const fn progressive(self) -> Coding {
        Coding { progressive: true, ..self }
    }

    pub const fn split(self) -> Coding {
        Coding { split: true, ..self }
    }

    pub const fn restart(self, restart: c_uint) -> Coding {
        Coding { restart, ..self }
    }

    pub const fn stored(self, space: J_COLOR_SPACE) -> Coding {
        Coding { stored: Some(space), ..self }
    }
}

const fn scan_of(component: c_int) -> jpeg_scan_info {
    let component_index = [component, 0, 0, 0];
    jpeg_scan_info { comps_in_scan: 1, component_index, Ss: 0, Se: 63, Ah: 0, Al: 0 }
}

static SPLIT: [jpeg_scan_info; 3] = [scan_of(0), scan_of(1), scan_of(2)];

/// A JPEG with the given coding. Four channels are CMYK.
pub fn jpeg(picture: &Picture, coding: Coding) -> Vec<u8> {
    let space = match picture.channels() {
        Channels::Gray => JCS_GRAYSCALE,
        Channels::Rgb => JCS_EXT_RGB,
        _ => JCS_CMYK,
    };
    let (width, height) = (picture.width(), picture.height());
    let source = jpeg::Input { width, height, space, samples: eight(picture) };
    // SAFETY: libjpeg's own setters, called when they are allowed; there is a component, and as
    // many scans as declared.
    jpeg::encode(source, 95, |info| unsafe {
        if let Some(space) = coding.stored {
            jpeg_set_colorspace(info, space);
        }
        (*info.comp_info).h_samp_factor = coding.sampling.0;
        (*info.comp_info).v_samp_factor = coding.sampling.1;
        info.restart_interval = coding.restart;
        if coding.progressive {
            jpeg_simple_progression(info);
        } else if coding.split {
            info.scan_info = SPLIT.as_ptr();
            info.num_scans = SPLIT.len() as c_int;
        }
    })
    .unwrap()
}

/// The same JPEG with EXIF data.
pub fn with_exif(jpeg: &[u8], exif: &[u8]) -> Vec<u8> {
    let length = (8 + exif.len() as u16).to_be_bytes();
    [&jpeg[..2], b"\xFF\xE1", &length, b"Exif\0\0", exif, &jpeg[2..]].concat()
}

/// EXIF data that contains only an orientation.
pub fn exif(orientation: u8) -> Vec<u8> {
    let mut exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    exif
}

pub fn png_chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let mut chunk = (content.len() as u32).to_be_bytes().to_vec();
    chunk.extend(name);
    chunk.extend(content);
    let checksum = crc32(&chunk[4..]);
    chunk.extend(checksum.to_be_bytes());
    chunk
}

pub fn zlib(content: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(9));
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// PNG's colour types.
pub const GRAY: u8 = 0;
pub const RGB: u8 = 2;
pub const PALETTE: u8 = 3;

/// A PNG built from its chunks: `raw` are the rows with their filter bytes.
pub fn png(
    (width, height): (u32, u32),
    (bits, color): (u8, u8),
    interlaced: bool,
    before_data: &[(&[u8; 4], &[u8])],
    raw: &[u8],
) -> Vec<u8> {
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([bits, color, 0, 0, u8::from(interlaced)]);
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    bytes.extend(png_chunk(b"IHDR", &header));
    for (name, content) in before_data {
        bytes.extend(png_chunk(name, content));
    }
    bytes.extend(png_chunk(b"IDAT", &zlib(raw)));
    bytes.extend(png_chunk(b"IEND", b""));
    bytes
}

/// The rows of an interlaced PNG with 8-bit samples, unfiltered.
pub fn interlaced_rows(picture: &Picture) -> Vec<u8> {
    const PASSES: [(usize, usize, usize, usize); 7] =
        [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)];
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let count = picture.channels().count();
    let mut rows = Vec::new();
    for (left, top, right, down) in PASSES {
        for y in (top..height).step_by(down) {
            if left < width {
                rows.push(0);
            }
            for x in (left..width).step_by(right) {
                rows.extend(&eight(picture)[(y * width + x) * count..][..count]);
            }
        }
    }
    rows
}

/// A lossless WebP.
pub fn webp(picture: &Picture, exif: Option<Vec<u8>>) -> Vec<u8> {
    let color = match picture.channels() {
        Channels::Gray => image_webp::ColorType::L8,
        Channels::GrayAlpha => image_webp::ColorType::La8,
        Channels::Rgb => image_webp::ColorType::Rgb8,
        Channels::Rgba => image_webp::ColorType::Rgba8,
    };
    let mut bytes = Vec::new();
    let mut encoder = image_webp::WebPEncoder::new(&mut bytes);
    if let Some(exif) = exif {
        encoder.set_exif_metadata(exif);
    }
    encoder.encode(eight(picture), picture.width(), picture.height(), color).unwrap();
    bytes
}

pub fn riff(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut content = b"WEBP".to_vec();
    for (name, chunk) in chunks {
        content.extend(*name);
        content.extend((chunk.len() as u32).to_le_bytes());
        content.extend(*chunk);
        content.extend(vec![0; chunk.len() % 2]);
    }
    let mut bytes = b"RIFF".to_vec();
    bytes.extend((content.len() as u32).to_le_bytes());
    bytes.extend(content);
    bytes
}

/// A lossy WebP frame whose coded bits are all zero: every block is predicted and has no
/// coefficients, which gives one flat colour.
pub fn flat_lossy_frame(width: u16, height: u16) -> Vec<u8> {
    let first_partition = 400u32;
    // Key frame, version 0, shown, and the length of the first partition.
    let tag = 1 << 4 | first_partition << 5;
    let mut frame = tag.to_le_bytes()[..3].to_vec();
    frame.extend(b"\x9D\x01\x2A");
    frame.extend(width.to_le_bytes());
    frame.extend(height.to_le_bytes());
    frame.extend(vec![0; 2 * first_partition as usize]);
    frame
}
