//! Parts and scaled-down versions of JPEGs: their pixels must equal those of a whole decode.

use super::golden::jpegs_of_others;
use super::jpeg::{Cutout, Jpeg, Pixels, Region};
use super::make::*;
use super::*;
use anyrec::ErrorKind;

const SCALES: [u32; 4] = [1, 2, 4, 8];
const ALL_PIXELS: [Pixels; 3] = [Pixels::Gray, Pixels::Rgb, Pixels::Rgbx];

/// Cutout and pixels of a region.
fn decoded(bytes: &[u8], region: Region, eighths: u32, pixels: Pixels) -> (Cutout, Vec<u8>) {
    // Old contents, which must not remain.
    let mut out = vec![0xA5; 1000];
    let jpeg = Jpeg::open(bytes, &DecodeOptions::default()).unwrap();
    let part = jpeg.decode_region(region, eighths, pixels, &mut out).unwrap();
    assert_eq!(out.len(), part.width as usize * part.height as usize * pixels.count());
    (part, out)
}

fn whole(bytes: &[u8], eighths: u32, pixels: Pixels) -> (Cutout, Vec<u8>) {
    let region = Jpeg::open(bytes, &DecodeOptions::default()).unwrap().whole();
    decoded(bytes, region, eighths, pixels)
}

/// Checks that the pixels of a region are those of the whole image.
fn check(bytes: &[u8], (all, reference): &(Cutout, Vec<u8>), region: Region, eighths: u32, pixels: Pixels) {
    let (part, out) = decoded(bytes, region, eighths, pixels);
    let count = pixels.count();
    let down = |at: u32| (at * eighths / 8) as usize;
    let up = |at: u32| (at * eighths).div_ceil(8) as usize;
    let (left, right) = (down(region.left), up(region.left + region.width));
    let (top, bottom) = (down(region.top), up(region.top + region.height));
    let row = |pixels: &[u8], part: &Cutout, y: usize| -> Vec<u8> {
        let at = (y - part.top as usize) * part.width as usize + left - part.left as usize;
        pixels[at * count..][..(right - left) * count].to_vec()
    };
    for y in top..bottom {
        let same = row(&out, &part, y) == row(reference, all, y);
        assert!(same, "row {y} of {region:?} at {eighths}/8 in {pixels:?}, decoded {part:?}");
    }
}

/// Regions at and around the boundaries of blocks, units and the image, and some elsewhere.
fn regions(width: u32, height: u32) -> Vec<Region> {
    let mut all = Vec::new();
    let ends = |side: u32| [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, side - 1, side];
    for (index, left) in [0, 1, 2, 7, 8, 14, 15, 16, 17, 18, 31, 32, 33, 47, 48].into_iter().enumerate() {
        for (other, right) in ends(width).into_iter().enumerate() {
            let (tops, bottoms) = ([0, 1, 8, 15, 16, 17, 32, 33, 47], ends(height));
            let (top, bottom) = (tops[(index + other) % 9], bottoms[(3 * index + other) % 14]);
            if left < right && top < bottom && right <= width && bottom <= height {
                all.push(Region { left, top, width: right - left, height: bottom - top });
            }
        }
    }
    for top in 0..height {
        all.push(Region { left: 20, top, width: 17, height: 1 });
    }
    for left in 0..width {
        all.push(Region { left, top: 20, width: 1, height: 17 });
    }
    all
}

#[test]
fn regions_have_the_pixels_of_a_whole_decode() {
    let (width, height) = (75, 62);
    let colour = noise(width, height, Channels::Rgb, 8);
    let gray = noise(width, height, Channels::Gray, 8);
    let mut images = vec![jpeg(&gray, Coding::PLAIN), jpeg(&gray, Coding::PLAIN.progressive())];
    for (horizontal, vertical) in [(1, 1), (2, 1), (2, 2), (1, 2), (4, 1), (1, 4), (4, 2), (2, 4)] {
        let plain = Coding::sampled(horizontal, vertical);
        images
            .extend([plain, plain.progressive(), plain.split(), plain.restart(2)].map(|c| jpeg(&colour, c)));
    }
    images.push(jpeg(&noise(width, height, Channels::Rgba, 8), Coding::PLAIN));
    for bytes in images {
        for pixels in ALL_PIXELS {
            for eighths in SCALES {
                let reference = whole(&bytes, eighths, pixels);
                let all = Cutout {
                    left: 0,
                    top: 0,
                    width: (width * eighths).div_ceil(8),
                    height: (height * eighths).div_ceil(8),
                };
                assert_eq!(reference.0, all);
                for region in regions(width, height) {
                    check(&bytes, &reference, region, eighths, pixels);
                }
            }
        }
    }
}

#[test]
fn regions_of_other_writers_jpegs_have_the_pixels_of_a_whole_decode() {
    for (_, bytes) in jpegs_of_others() {
        for pixels in [Pixels::Gray, Pixels::Rgb] {
            for eighths in SCALES {
                let reference = whole(&bytes, eighths, pixels);
                for region in regions(83, 61) {
                    check(&bytes, &reference, region, eighths, pixels);
                }
            }
        }
    }
}

#[test]
fn rows_below_a_region_are_not_looked_at() {
    let bytes = jpeg(&noise(64, 128, Channels::Rgb, 8), Coding::sampled(2, 2));
    let middle = bytes.len() * 3 / 4;
    // A segment in the middle of the data ends it.
    let broken = [&bytes[..middle], b"\xFF\xE0\x00\x02", &bytes[middle..]].concat();
    let above = Region { left: 0, top: 0, width: 64, height: 64 };
    let below = Region { top: 64, ..above };
    assert_eq!(decoded(&bytes, above, 8, Pixels::Rgb), decoded(&broken, above, 8, Pixels::Rgb));
    let jpeg = Jpeg::open(&broken, &DecodeOptions::default()).unwrap();
    let error = jpeg.decode_region(below, 8, Pixels::Rgb, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    // The end marker is required.
    let error = Jpeg::open(&bytes[..bytes.len() - 2], &DecodeOptions::default()).err().unwrap();
    assert!(error.to_string().contains("cut short"), "{error}");
}

#[test]
fn gray_and_padded_pixels_are_those_of_rgb() {
    let bytes = jpeg(&noise(40, 30, Channels::Rgb, 8), Coding::sampled(2, 2));
    let (_, rgb) = whole(&bytes, 8, Pixels::Rgb);
    let (_, padded) = whole(&bytes, 8, Pixels::Rgbx);
    let without: Vec<u8> = padded.as_chunks::<4>().0.iter().flat_map(|[r, g, b, _]| [*r, *g, *b]).collect();
    assert_eq!(without, rgb);
    assert!(padded.iter().skip(3).step_by(4).all(|x| *x == 255));
}

#[test]
fn regions_and_scales_that_make_no_sense_are_refused() {
    let bytes = jpeg(&smooth(40, 30, Channels::Rgb), Coding::PLAIN);
    let whole = Region { left: 0, top: 0, width: 40, height: 30 };
    for (region, eighths) in [
        (Region { width: 0, ..whole }, 8),
        (Region { height: 0, ..whole }, 8),
        (Region { left: 1, ..whole }, 8),
        (Region { top: 1, ..whole }, 8),
        (Region { left: u32::MAX, ..whole }, 8),
        (whole, 0),
        (whole, 3),
        (whole, 16),
    ] {
        let mut out = vec![1, 2, 3];
        let jpeg = Jpeg::open(&bytes, &DecodeOptions::default()).unwrap();
        let error = jpeg.decode_region(region, eighths, Pixels::Rgb, &mut out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{region:?} {eighths}");
        assert!(out.is_empty());
    }
}
