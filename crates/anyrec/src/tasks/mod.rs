//! Work on whole files: verify, repair, convert, index.

pub mod convert;
mod index;
mod repair;
mod verify;

pub use index::{IndexOptions, Indexed, index};
pub use repair::{Repair, RepairOptions, repair};
#[cfg(feature = "testkit")]
pub(crate) use verify::verify_in_segments;
pub use verify::{Report, Sizes, verify, verify_file};
