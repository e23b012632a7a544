//! Every truncation and every single-bit flip of the small golden files.
//!
//! No panic, no hang, every byte accounted for, no wrong record passed off as right where a
//! checksum covers it, and no allocation above twice the file plus 16 MiB.

use crate::allocation::peak_of;
use crate::conformance::{golden_files, options_for};
use anyrec::format::{FORMATS, Format, OpenOptions};
use anyrec::io::{MemorySource, Window};
use anyrec::testkit::walk;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

const TRUNCATED_UP_TO: usize = 64 << 10;
const FLIPPED_UP_TO: usize = 8 << 10;

struct Golden<'a> {
    format: &'a dyn Format,
    options: OpenOptions,
    path: &'a Path,
    records: HashSet<Vec<u8>>,
}

impl Golden<'_> {
    /// Scans and reads damaged bytes, holding both to the promises.
    fn check(&self, data: &[u8], what: &dyn Fn() -> String) {
        let allowed = 2 * data.len() as u64 + (16 << 20);
        let source = Arc::new(MemorySource::new("damaged", data.to_vec()));
        let (walked, peak) = peak_of(|| {
            let walked = walk(self.format, Window::new(source.clone()), &self.options);
            let walked = walked.unwrap_or_else(|error| panic!("{:?} {}: {error}", self.path, what()));
            // The walk's own copies of the records are not the library's doing.
            for record in &walked.records {
                if record.checksum == Some(true) {
                    assert!(
                        self.records.contains(&record.data),
                        "{:?} {}: a wrong record is called right",
                        self.path,
                        what()
                    );
                }
            }
            walked.bytes
        });
        assert!(peak <= allowed + 2 * data.len() as u64, "{:?} {}: held {peak} bytes", self.path, what());
        assert_eq!(walked.0 + walked.1 + walked.2, data.len() as u64);
        let ((), peak) = peak_of(|| {
            let Ok(reader) = self.format.open(source, &self.options) else { return };
            let Ok(count) = reader.count() else { return };
            for index in 0..count.min(data.len() as u64 + 1) {
                let Ok(record) = reader.read(index) else { continue };
                if self.format.capabilities().checksummed && covered(self.path) {
                    assert!(
                        self.records.contains(&record[..]),
                        "{:?} {}: record {index} is wrong",
                        self.path,
                        what()
                    );
                }
            }
        });
        assert!(peak <= allowed, "{:?} {}: reading held {peak} bytes", self.path, what());
    }
}

/// Whether a checksum covers every record of this file: GRAIL's first version covers lengths only.
fn covered(path: &Path) -> bool {
    !path.file_name().unwrap().to_string_lossy().starts_with("legacy")
}

fn for_small_goldens(id: &str, up_to: usize, check: impl Fn(&Golden<'_>, &[u8])) {
    let format = *FORMATS.iter().find(|format| format.id() == id).unwrap();
    let mut files = 0;
    for path in golden_files(format) {
        let data = std::fs::read(&path).unwrap();
        if data.len() > up_to {
            continue;
        }
        files += 1;
        let options = options_for(&path);
        let source = Arc::new(MemorySource::new("golden", data.clone()));
        let walked = walk(format, Window::new(source), &options).unwrap();
        let records = walked.records.into_iter().map(|record| record.data).collect();
        check(&Golden { format, options, path: &path, records }, &data);
    }
    assert!(files > 0, "no golden file of {id} is small enough");
}

fn truncate_everywhere(id: &str) {
    for_small_goldens(id, TRUNCATED_UP_TO, |golden, data| {
        for length in 0..data.len() {
            golden.check(&data[..length], &|| format!("cut at {length}"));
        }
    });
}

fn flip_everywhere(id: &str) {
    for_small_goldens(id, FLIPPED_UP_TO, |golden, data| {
        let mut data = data.to_vec();
        for bit in 0..data.len() * 8 {
            data[bit / 8] ^= 1 << (bit % 8);
            golden.check(&data, &|| format!("with bit {bit} flipped"));
            data[bit / 8] ^= 1 << (bit % 8);
        }
    });
}

macro_rules! damage_tests {
    ($($format:ident),*) => {$(
        mod $format {
            #[test]
            fn truncation_at_every_length_is_survived() {
                super::truncate_everywhere(stringify!($format));
            }

            #[test]
            fn every_single_bit_flip_is_survived() {
                super::flip_everywhere(stringify!($format));
            }
        }
    )*};
}

damage_tests!(mxnet, ffrecord, grail, idx);
