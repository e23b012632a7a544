#![no_main]

use anyrec::format::{HEAD, detect, identify};
use anyrec::io::MemorySource;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let head = &data[..data.len().min(HEAD)];
    let known = detect(head, Some(data.len() as u64));
    let _ = detect(head, None);
    let identified = identify(&MemorySource::new("fuzz", data.to_vec()), None);
    assert_eq!(known.is_some(), identified.is_ok());
});
