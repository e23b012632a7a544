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

mod base;
mod dataset;
mod engine;
pub mod format;
pub mod image;
pub mod io;
pub mod loader;
mod tasks;
#[cfg(feature = "testkit")]
pub mod testkit;
mod threads;

pub use base::{
    Batch, Checksum, ElementType, Error, ErrorKind, Key, Label, Limits, Location, Plain, Position, PositionList, Result,
    Tags, Value, hint, is_harmless,
};
pub use bstr::BString;
pub use bytes::Bytes;
pub use dataset::{
    Dataset, RecordFile, Selection, Table, Union, create, expand, open,
};
pub use engine::{BatchPool, Place, RecordSet, Records, read_batch};
pub use tasks::{Repair, RepairOptions, Report, Sizes, IndexOptions, Indexed, convert, index, repair, verify, verify_file};
pub use threads::fork::generation;
pub use threads::interrupt;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
