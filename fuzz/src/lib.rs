//! What the fuzz targets share.

use anyrec::format::{OpenOptions, by_id};
use anyrec::io::{MemorySource, Window};
use anyrec::testkit::{WalkError, compare, memory_sources, walk};
use std::sync::Arc;

/// One in this many inputs is also read by the paths that use threads, which take longest.
const WITH_THREADS: u32 = 16;

/// Scans `data` as the format `id`, and reads it in every other way: in order and by number, one by
/// one and in batches, from memory, in blocks and by positional reads. A broken guarantee is a
/// finding, and so is any difference from the scan.
pub fn scan(id: &str, data: &[u8]) {
    let format = by_id(id).expect("a format");
    let mut options = OpenOptions::default();
    // Decompression bombs should be refused quickly.
    options.limits.frame = 64 << 20;
    options.limits.decompressed = 64 << 20;
    let source = Arc::new(MemorySource::new("file", data.to_vec()));
    match walk(format, Window::new(source.clone()), &options) {
        // Over a limit, or a missing transformer or key: the other ways of reading must report the
        // same.
        Ok(_) | Err(WalkError::Scan(_)) => {}
        Err(WalkError::Promise(broken)) => panic!("{broken}"),
    }
    let sum = data.iter().fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)));
    let threads = sum.is_multiple_of(WITH_THREADS);
    if let Err(difference) = compare(format, &memory_sources(data), &options, threads) {
        panic!("{difference}");
    }
    options.skip_damage = true;
    let Ok(reader) = format.open(source, &options) else { return };
    let Ok(count) = reader.count() else { return };
    for index in 0..count.min(1000) {
        if let Ok(record) = reader.read(index) {
            let _ = reader.locate(index).map(|location| reader.tags(index, location.position, &record));
        }
    }
    let _ = reader.info();
}
