//! Integration tests: the library as a user of it sees it.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod golden_ffrecord;
mod golden_grail;
mod golden_idx;
mod golden_mxnet;
mod manifest;
