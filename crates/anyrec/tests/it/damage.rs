//! Every truncation and every single-bit flip of the small golden files.
//!
//! No panic, no hang, every byte accounted for, no wrong record passed off as right where a
//! checksum covers it, and no allocation above twice the file plus 16 MiB. Some of them are read on every
//! road that there is; `roads.rs` has more of those.

use crate::allocation::peak_of;
use crate::conformance::{golden_files, options_for};
use anyrec::format::{FORMATS, Format, OpenOptions};
use anyrec::io::{MemorySource, Window};
use anyrec::testkit::{Tally, compare, memory_sources, walk};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

const TRUNCATED_UP_TO: usize = 64 << 10;
const FLIPPED_UP_TO: usize = 8 << 10;

/// One of so many damaged files is read on every road. A prime, so that no bit of a byte is left out.
const ON_EVERY_ROAD: u64 = 331;

struct Golden<'a> {
    format: &'static dyn Format,
    options: OpenOptions,
    path: &'a Path,
    records: HashSet<Vec<u8>>,
    done: &'a Done,
}

/// What the checks came to: each way out of them is counted.
#[derive(Default)]
struct Done {
    files: Cell<u64>,
    past_damage: Cell<u64>,
    unopened: Cell<u64>,
    read: Cell<u64>,
    refused: Cell<u64>,
    on_every_road: RefCell<Tally>,
}

fn count(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
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
        count(&self.done.files);
        if self.done.files.get().is_multiple_of(ON_EVERY_ROAD) {
            let threads = self.done.files.get().is_multiple_of(7);
            let compared = compare(self.format, &memory_sources(data), &self.options, threads);
            let compared = compared.unwrap_or_else(|error| panic!("{:?} {}: {error}", self.path, what()));
            self.done.on_every_road.borrow_mut().add(compared);
        }
        let ((), peak) = peak_of(|| {
            let open = |skip_damage: bool| {
                let mut options = self.options.clone();
                options.skip_damage = skip_damage;
                let reader = self.format.open(source.clone(), &options).ok()?;
                let records = reader.count().ok()?;
                Some((reader, records))
            };
            let past_damage = || {
                count(&self.done.past_damage);
                open(true)
            };
            let Some((reader, records)) = open(false).or_else(past_damage) else {
                return count(&self.done.unopened);
            };
            for index in 0..records.min(data.len() as u64 + 1) {
                let Ok(record) = reader.read(index) else {
                    count(&self.done.refused);
                    continue;
                };
                count(&self.done.read);
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

fn for_small_goldens(id: &str, up_to: usize, check: impl Fn(&Golden<'_>, &[u8])) -> Done {
    let format = *FORMATS.iter().find(|format| format.id() == id).unwrap();
    let mut files = 0;
    let done = Done::default();
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
        check(&Golden { format, options, path: &path, records, done: &done }, &data);
    }
    assert!(files > 5, "{files} golden files of {id} are small enough");
    let (files, compared) = (done.files.get(), *done.on_every_road.borrow());
    assert!(compared.files == files / ON_EVERY_ROAD && compared.files > 20, "{compared:?}");
    assert!(compared.records > 1000 && compared.errors > 100, "{compared:?}");
    done
}

fn truncate_everywhere(id: &str) {
    let done = for_small_goldens(id, TRUNCATED_UP_TO, |golden, data| {
        for length in 0..data.len() {
            golden.check(&data[..length], &|| format!("cut at {length}"));
        }
    });
    done.was_worth_it();
}

fn flip_everywhere(id: &str) {
    let done = for_small_goldens(id, FLIPPED_UP_TO, |golden, data| {
        let mut data = data.to_vec();
        for bit in 0..data.len() * 8 {
            data[bit / 8] ^= 1 << (bit % 8);
            golden.check(&data, &|| format!("with bit {bit} flipped"));
            data[bit / 8] ^= 1 << (bit % 8);
        }
    });
    done.was_worth_it();
}

impl Done {
    /// Files were opened, and records read from them, in numbers.
    fn was_worth_it(&self) {
        let figures =
            [&self.files, &self.past_damage, &self.unopened, &self.read, &self.refused].map(Cell::get);
        println!("files, past damage, unopened, read, refused: {figures:?}");
        println!("{:?}", self.on_every_road.borrow());
        let [files, _, unopened, read, _] = figures;
        assert!(unopened < files && read > 20_000, "{figures:?}");
    }
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
