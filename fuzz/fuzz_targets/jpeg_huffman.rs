//! Compares our Huffman decoder with libjpeg's own, on the same bytes.
#![no_main]

use anyrec_image::compare_huffman_decoders;

/// Our decoder only handles units of blocks that are followed by this many bytes.
const AHEAD: usize = 6 << 10;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // A different view for each input, but always the same one for the same input.
    let view = data.iter().fold(0u32, |sum, byte| sum.rotate_left(5).wrapping_add(u32::from(*byte)));
    let mut long = data.to_vec();
    // Only the data of a scan is worth extending.
    if data.starts_with(&[0xFF, 0xD8]) {
        long.extend(data.iter().rev().cycle().take(AHEAD));
    }
    for (bytes, view) in [(data, view), (&long, view >> 8)] {
        if let Err(difference) = compare_huffman_decoders(bytes, view) {
            panic!("{difference}");
        }
    }
});
