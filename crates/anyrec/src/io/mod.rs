//! Where bytes come from and go to.
//!
//! Readers use a [`Source`], scans a [`Window`] over it (or over a plain stream), writers an
//! [`AtomicFile`], and unpacking into folders an [`UnpackFolder`]. Nothing here depends on a
//! format.

mod atomic_file;
mod file;
mod guarded_map;
mod memory;
mod positional;
mod publish;
mod read_ahead;
mod safe_path;
mod source;
mod target;
mod unnamed;
#[cfg_attr(not(all(target_os = "linux", feature = "uring")), path = "no_uring.rs")]
mod uring;
mod window;

pub use atomic_file::{AtomicFile, CompleteFile, Durability};
pub use file::{Access, open_file};
pub use memory::MemorySource;
pub use publish::{FileSet, Obsolete, finish_interrupted};
pub use safe_path::{BadNames, UnpackFolder, check_name, safe_name};
pub use source::{RangeRead, Source};
pub use unnamed::remove_partial_files;
pub use window::Window;
