//! Checks that need no test: how the code is arranged, what it depends on, what it promises.

pub mod deny;
pub mod layers;
pub mod msrv;
pub mod names;
mod packages;
pub mod public_api;
pub mod publish;
mod source;
