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

#![warn(missing_debug_implementations)]

mod base;
mod dataset;
mod engine;
pub mod format;
pub mod io;
pub mod loader;
mod tasks;
#[cfg(feature = "testkit")]
pub mod testkit;
mod threads;

#[doc(hidden)]
pub use base::hint;
pub use base::{
    Batch, BatchIter, Checksum, ElementType, Error, ErrorKind, FileName, Hint, Key, Label, Limits, Location,
    Plain, Position, PositionList, Result, Tags, Value, is_harmless,
};
pub use bstr::BString;
pub use bytes::Bytes;
pub use dataset::{Dataset, OpenReader, RecordFile, Selection, Table, Union, create, expand, open};
pub use engine::{BatchPool, Place, RecordSet, Records};
pub use tasks::{
    IndexOptions, Indexed, Repair, RepairOptions, Report, Sizes, convert, index, repair, verify, verify_file,
};

/// For the Python package, the command line and tests. Not part of the API that others depend on.
#[doc(hidden)]
pub use {engine::read_batch, threads::fork::generation, threads::interrupt};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
