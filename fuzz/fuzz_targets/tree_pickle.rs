#![no_main]

use anyrec::format::ffrecord::packed_folder::retree;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let sample = [b"piouhjgbr", data].concat();
    let everything: Vec<u64> = (0..1000).collect();
    if let Ok(Some(written)) = retree(&sample, &everything) {
        // What was parsed is written so that it parses again to the same result.
        assert_eq!(retree(&written, &everything).expect("our own pickle").as_ref(), Some(&written));
    }
});
