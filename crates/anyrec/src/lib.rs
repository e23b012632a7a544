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
mod error;
pub mod format;
pub mod image;
pub mod io;
mod limits;
mod position;

pub use batch::Batch;
pub use bstr::BString;
pub use bytes::Bytes;
pub use error::{Error, ErrorKind, Result};
pub use limits::Limits;
pub use position::{Location, Position, PositionList};
