#![no_main]

use anyrec_image::{DecodeOptions, decode};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for flag in [-1, 0, 1] {
        let mut options = DecodeOptions::opencv(flag).expect("a flag");
        // Decompression bombs should be refused quickly.
        options.limits.pixels = 4 << 20;
        options.lenient_jpeg = flag == 1;
        if let Ok(picture) = decode(data, &options) {
            assert!(u64::from(picture.width()) * u64::from(picture.height()) <= options.limits.pixels);
        }
    }
});
