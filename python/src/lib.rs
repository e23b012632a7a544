//! x
use pyo3::prelude::*;

/// The native half of the package.
#[pymodule]
mod _anyrec {}
