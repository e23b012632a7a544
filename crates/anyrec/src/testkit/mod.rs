//! Checks that hold for every format (feature `testkit`).
//!
//! The tests of this crate and the fuzz targets run them over [`FORMATS`](crate::format::FORMATS);
//! a format kept elsewhere can run them too. A broken promise comes back as a sentence, so that
//! the caller decides how to fail.

mod faults;
mod roads;
mod walk;

pub use faults::FaultySource;
pub use roads::{Tally, check_failing_disk, compare, compare_with_index_file, file_sources, memory_sources};
pub use walk::{Walk, WalkError, WalkedRecord, check_reader, walk};
