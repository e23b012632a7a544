//! The command line, as the wheel's program `anyrec` and as `python -m anyrec`.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command with these arguments, the program's name first, and returns its exit code.
///
/// From then on Ctrl-C ends the process, without `KeyboardInterrupt`, as it ends the program.
#[pyfunction]
pub fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| anyrec_cli::run(arguments))
}
