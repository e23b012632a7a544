#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anyrec_fuzz::scan("mxnet", data));
