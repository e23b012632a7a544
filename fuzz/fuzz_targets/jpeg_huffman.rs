//! Our decoder of Huffman codes against libjpeg's own, on the same bytes.
#![no_main]

use anyrec_image::compare_huffman_decoders;

/// Ours only takes units of blocks that have this many bytes behind them.
const AHEAD: usize = 6 << 10;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // Another way of decoding for each input, the same each time.
    let view = data.iter().fold(0u32, |sum, byte| sum.rotate_left(5).wrapping_add(u32::from(*byte)));
    let mut long = data.to_vec();
    // Only a scan's data is worth lengthening.
    if data.starts_with(&[0xFF, 0xD8]) {
        long.extend(data.iter().rev().cycle().take(AHEAD));
    }
    for (bytes, view) in [(data, view), (&long, view >> 8)] {
        if let Err(difference) = compare_huffman_decoders(bytes, view) {
            panic!("{difference}");
        }
    }
});
