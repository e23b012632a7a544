#![no_main]

use anyrec::format::ffrecord::tree_pickle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(tree) = tree_pickle::read(data) {
        // What was understood can be written, and is understood again.
        let written = tree_pickle::write(&tree);
        assert_eq!(tree_pickle::read(&written).expect("our own pickle"), tree);
    }
});
