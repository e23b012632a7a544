//! GRAIL recordio.
pub mod transform;
