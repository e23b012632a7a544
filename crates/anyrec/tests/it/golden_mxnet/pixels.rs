//! As much of the golden images as the record layer can see: their encoded form and its size.
//!
//! Pixels are the image module's business; here their descriptions are only noted.

use crate::manifest::Entry;

/// Height, width and channels that an encoded image announces.
fn announced(image: &[u8]) -> (u64, u64, u64) {
    let number =
        |at: usize, size: usize| image[at..at + size].iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    if image.starts_with(b"\x89PNG") {
        let channels = match image[25] {
            0 => 1,
            2 => 3,
            6 => 4,
            other => panic!("colour type {other}"),
        };
        return (number(20, 4), number(16, 4), channels);
    }
    assert!(image.starts_with(b"\xff\xd8"), "neither PNG nor JPEG");
    let mut at = 2;
    // Segments up to the frame header (SOF0 to SOF2).
    while !(0xc0..=0xc2).contains(&image[at + 1]) {
        at += 2 + usize::try_from(number(at + 2, 2)).unwrap();
    }
    (number(at + 5, 2), number(at + 7, 2), u64::from(image[at + 9]))
}

/// The shape of an array decoded as stored.
pub fn check_shape(shape: &Entry<'_>, image: &[u8]) {
    let (height, width, channels) = announced(image);
    let expected: Vec<u64> = shape.items().iter().map(Entry::u64).collect();
    match channels {
        1 if expected.len() == 2 => assert_eq!(expected, [height, width]),
        _ => assert_eq!(expected, [height, width, expected[2]]),
    }
}

/// A `pack_img` entry: what was encoded, how, and what decoders make of it.
pub fn check_image(entry: &Entry<'_>, payload: &[u8]) {
    let png = entry.get("img_fmt").str().eq_ignore_ascii_case(".png");
    assert_eq!(png, payload.starts_with(b"\x89PNG"));
    check_shape(&entry.get("decoded").get("-1").get("shape"), payload);
    // How to encode and decode pixels: the image module's.
    for field in ["source", "quality", "decoded"] {
        entry.get(field).informational();
    }
}
