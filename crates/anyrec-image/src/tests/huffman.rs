//! Compares the faster Huffman decoder with libjpeg's own: they must agree, on damaged data too.

use super::make::*;
use super::*;
use crate::jpeg::compare::compare_huffman_decoders;

/// Bytes after the end, so that the faster decoder, which reads far ahead, decodes all of a small
/// image. None of them looks like a marker.
const AHEAD: [u8; 6 << 10] = [0x5A; 6 << 10];

/// Images of one scan without restarts, which the faster decoder supports, and a few that it does
/// not.
fn samples() -> Vec<Vec<u8>> {
    let colour = noise(33, 18, Channels::Rgb, 8);
    let gray = noise(9, 17, Channels::Gray, 8);
    vec![
        jpeg(&colour, Coding::PLAIN),
        jpeg(&colour, Coding::sampled(2, 1)),
        jpeg(&colour, Coding::sampled(2, 2)),
        jpeg(&gray, Coding::PLAIN),
        jpeg(&noise(9, 10, Channels::Rgba, 8), Coding::PLAIN),
        jpeg(&smooth(64, 40, Channels::Rgb), Coding::sampled(2, 2)),
        jpeg(&noise(1, 50, Channels::Rgb, 8), Coding::PLAIN),
        jpeg(&colour, Coding::PLAIN.restart(2)),
        jpeg(&gray, Coding::PLAIN.progressive()),
    ]
}

fn scan_of(jpeg: &[u8]) -> std::ops::Range<usize> {
    jpeg.windows(2).position(|pair| pair == b"\xFF\xDA").unwrap()..jpeg.len()
}

/// Compares with the view that `number` selects.
fn compare(jpeg: &[u8], number: usize, what: &str) {
    for bytes in [jpeg, &[jpeg, &AHEAD].concat()] {
        if let Err(difference) = compare_huffman_decoders(bytes, number as u32) {
            panic!("{what}, {number}: {difference}");
        }
    }
}

#[test]
fn sound_pictures_are_the_same() {
    for jpeg in samples() {
        for view in 0..32 {
            compare(&jpeg, view, "sound");
        }
    }
}

#[test]
fn pictures_with_any_byte_of_their_scan_replaced_are_the_same() {
    for jpeg in samples() {
        for at in scan_of(&jpeg) {
            let mut damaged = jpeg.clone();
            damaged[at] = [0xFF, 0, jpeg[at] ^ 1, jpeg[at] ^ 0x80][at % 4];
            compare(&damaged, at / 4, "replaced");
        }
    }
}

/// libjpeg skips FF FF before a marker as fill, and reads FF FF before a zero as a single FF.
#[test]
fn pictures_with_markers_and_filling_anywhere_in_their_scan_are_the_same() {
    for jpeg in samples() {
        let inserted: [&[u8]; 5] =
            [b"\xFF\xFF", b"\xFF\xFF\0", b"\xFF\xFF\xFF\xFF\0", b"\xFF\xD9", b"\xFF\xD3"];
        for (at, inserted) in scan_of(&jpeg).zip(inserted.iter().cycle()) {
            let damaged = [&jpeg[..at], inserted, &jpeg[at..]].concat();
            compare(&damaged, at, "inserted");
        }
    }
}

#[test]
fn pictures_cut_anywhere_in_their_scan_are_the_same() {
    for jpeg in samples() {
        for at in scan_of(&jpeg) {
            let end: &[u8] = if at % 2 == 0 { b"\xFF\xD9" } else { b"" };
            compare(&[&jpeg[..at], end].concat(), at, "cut");
        }
    }
}

/// Codes that no table contains, in images whose tables leave room for them.
#[test]
fn pictures_of_random_bits_are_the_same() {
    let mut state = 20261u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    for jpeg in samples() {
        for number in 0..100 {
            let mut damaged = jpeg.clone();
            let scan = scan_of(&jpeg);
            let begin = scan.start + 14 + next() % (scan.len() - 14);
            for at in begin..jpeg.len() - 2 {
                // Mostly stuffed correctly, so that decoding continues.
                damaged[at] = match next() % 16 {
                    _ if damaged[at - 1] == 0xFF && next() % 64 != 0 => 0,
                    0..4 => 0xFF,
                    _ => (next() & 0xFF) as u8,
                };
            }
            compare(&damaged, number, "random");
        }
    }
}
