//! The foundation: errors, limits, positions, values, batches, checksums.
//!
//! Nothing here opens a file or starts a thread.

mod batch;
pub(crate) mod checksum;
pub(crate) mod deflate;
mod error;
pub mod hint;
mod limits;
pub(crate) mod memory;
mod position;
pub(crate) mod splitmix;
mod text;
mod value;
pub(crate) mod verified_copy;

pub use batch::{Batch, Iter as BatchIter};
pub use checksum::Checksum;
pub use error::{Error, ErrorKind, FileName, Result};
pub use hint::Hint;
pub use limits::Limits;
pub use position::{Location, Plain, Position, PositionList};
pub use text::is_harmless;
pub(crate) use text::shown;
pub use value::{ElementType, Key, Label, Tags, Value};
