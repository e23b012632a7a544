//! Integration tests: the library as a user of it sees it.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod allocation;
mod batches;
mod conformance;
mod convert;
mod damage;
mod environment;
mod golden_ffrecord;
mod golden_grail;
mod golden_idx;
mod golden_mxnet;
mod loader;
mod manifest;
mod memory;
mod parts;
mod publishing;
mod repair;
mod roads;
mod table;
mod targets;

#[global_allocator]
static ALLOCATOR: allocation::Counting = allocation::Counting;
