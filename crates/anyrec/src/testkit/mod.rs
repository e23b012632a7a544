//! Checks that hold for every format (feature `testkit`).
//!
//! The tests of this crate and the fuzz targets run them over [`FORMATS`](crate::format::FORMATS);
//! a format kept elsewhere can run them too. A broken promise comes back as a sentence, so that
//! the caller decides how to fail.

mod faults;
mod walk;

pub use crate::image::compare_huffman_decoders;
pub use faults::FaultySource;
pub use walk::{Walk, WalkError, WalkedRecord, check_reader, walk};
