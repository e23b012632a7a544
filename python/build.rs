//! Sets the cfg flags for the Python version that the code is built for.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
