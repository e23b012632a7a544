//! What the fuzz targets share.

use anyrec::format::{OpenOptions, by_id};
use anyrec::io::{MemorySource, Window};
use anyrec::testkit::{WalkError, walk};
use std::sync::Arc;

/// Scans `data` as the format `id`, from memory and as a stream, and reads every record by
/// number. A broken promise is a finding.
pub fn scan(id: &str, data: &[u8]) {
    let format = by_id(id).expect("a format");
    let mut options = OpenOptions::default();
    // A fuzzer's bombs are to be refused, not waited for.
    options.limits.frame = 64 << 20;
    options.limits.decompressed = 64 << 20;
    let source = Arc::new(MemorySource::new("fuzz", data.to_vec()));
    let walked = match walk(format, Window::new(source.clone()), &options) {
        Ok(walked) => walked,
        // Over a limit, or a transformer or key that nobody gave us.
        Err(WalkError::Scan(_)) => return,
        Err(WalkError::Promise(broken)) => panic!("{broken}"),
    };
    if format.capabilities().streamable {
        let stream = Window::from_stream("fuzz", std::io::Cursor::new(data.to_vec()));
        let streamed = walk(format, stream, &options).unwrap_or_else(|error| panic!("stream: {error}"));
        // Without a length to hold a damaged table against, a stream may give up earlier.
        if walked.damage.is_empty() {
            assert!(streamed.data() == walked.data(), "a stream gives other records");
        }
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
