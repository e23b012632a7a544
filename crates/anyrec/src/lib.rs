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
//!
//! # Features
//! All are on by default. A file that needs one that is off gives [`ErrorKind::Unsupported`], and the
//! error names the feature. With none of them the crate builds without a C compiler.
//!
//! | feature | what | costs |
//! |---|---|---|
//! | `zstd` | GRAIL files with the transformer `zstd` | a C compiler |
//! | `deflate` | gzipped IDX files, GRAIL files with the transformer `flate` | `flate2`, `zlib-rs` |
//! | `encryption` | GRAIL files with the transformer `aes-256-gcm` | `aes-gcm` |
//! | `ndarray` | IDX files as arrays | `ndarray` |
//! | `uring` | reads of many ranges at once by io_uring, on Linux | `io-uring` |

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
