//! One engine for record files.
//!
//! A *record file* is a sequence of byte records. Four formats store it, and everything above the
//! formats (verify, repair, convert, load) is written once:
//!
//! | format | module | files |
//! |---|---|---|
//! | MXNet RecordIO | [`format::mxnet`] | `.rec` with `.idx` and `.lst` |
//! | FFRecord | [`format::ffrecord`] | `.ffr`, packed folders |
//! | GRAIL recordio | [`format::grail`] | `.grail-rio`, `.grail-rpk`, `.grail-rpk-gz` |
//! | IDX | [`format::idx`] | `*-idx3-ubyte` and all other types, plain or gzip |

mod batch;
mod checksum;
pub mod convert;
mod dataset;
mod deflate;
mod error;
mod fork;
pub mod format;
pub mod hint;
mod input;
pub mod interrupt;
pub mod io;
mod limits;
pub mod loader;
mod mix;
mod pool;
mod position;
mod recycler;
mod repair;
mod room;
mod scan_ahead;
mod sequence;
mod table;
#[cfg(feature = "testkit")]
pub mod testkit;
mod text;
mod verify;

pub use batch::Batch;
pub use bstr::BString;
pub use bytes::Bytes;
pub use dataset::{Dataset, create, expand, open};
pub use error::{Error, ErrorKind, Result};
pub use fork::generation;
pub use input::{Input, OpenReader};
pub use limits::Limits;
pub use position::{Location, Plain, Position, PositionList};
pub use recycler::Recycler;
pub use repair::{Repair, RepairOptions, repair};
pub use sequence::Records;
pub use table::Table;
pub use text::is_harmless;
pub use verify::{Report, Sizes, verify, verify_input};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
