//! Checks that apply to every format (feature `testkit`).
//!
//! The tests of this crate and the fuzz targets run them over [`FORMATS`](crate::format::FORMATS);
//! a format defined elsewhere can run them too. A violation is returned as a sentence, so that the
//! caller decides how to fail.

mod faults;
mod roads;
mod walk;

pub use faults::FaultySource;
pub use roads::{Tally, check_failing_disk, compare, compare_with_index_file, file_sources, memory_sources};
pub use walk::{Walk, WalkError, WalkedRecord, check_reader, walk};
