//! Static checks: how the code is organised, what it depends on, what it guarantees.

pub mod deny;
pub mod layers;
pub mod msrv;
pub mod names;
mod packages;
pub mod public_api;
pub mod publish;
mod source;
