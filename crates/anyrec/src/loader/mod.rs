//! Which record comes when.

mod permutation;

pub use permutation::Permutation;
