//! The command line as its users see it: what it prints, in colour and plain, and how it exits.
//!
//! Snapshots are transcripts: commands, what they print (stderr marked with `!`), exit codes. After
//! a change that was meant, `INSTA_UPDATE=always cargo test -p anyrec-cli` writes them anew; read
//! the difference before it is committed.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod demo;
mod exit_codes;
mod interrupt;
mod json;
mod memory;
mod names;
mod refusals;
mod session;
mod strangers;
mod streams;
mod transcripts;
