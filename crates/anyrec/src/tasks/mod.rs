//! Work on whole files: verify, repair, convert, index.

pub mod convert;
mod index;
mod repair;
pub(crate) mod verify;

pub use index::{IndexOptions, Indexed, index};
pub use repair::{Repair, RepairOptions, repair};
pub use verify::{Report, Sizes, verify, verify_file};
