//! The native half of the Python package: thin bindings, one file per class.
//!
//! Rules that apply everywhere: the GIL is released around all reading, decoding, writing and
//! waiting; nothing starts at import; a call returns memory of its own unless the caller requested
//! borrowed memory. `py_src/anyrec/_anyrec.pyi` declares what is defined here, and mypy's stubtest
//! compares the two.

mod batch;
mod buffers;
mod command;
mod dataset;
mod errors;
mod ff_reader;
mod ff_writer;
mod file_object;
mod files;
mod grail_scanner;
mod grail_writer;
mod handle;
mod hints;
mod idx;
mod image;
mod indices;
mod iteration;
mod loader;
mod mx_reader;
mod mx_writer;
mod mxnet;
mod options;
mod packed_folder;
mod payload;
mod progress;
mod recipe;
mod record;
mod sequences;
mod transformers;
mod values;
mod writer;

use numpy::PyArrayMethods;
use pyo3::prelude::*;

/// The native half of the package. Use `anyrec` and its modules instead.
///
/// It does not need the GIL. What threads share is immutable, atomic or behind its own lock. Such a
/// lock is held with the GIL released, or only briefly and without calling Python. Nothing relies
/// on reference counts (see `iteration.rs`).
#[pymodule(gil_used = false)]
mod _anyrec {
    use super::*;

    #[pymodule_export]
    use batch::{Batch, batch_from_parts};
    #[pymodule_export]
    use command::command;
    #[pymodule_export]
    use dataset::Dataset;
    #[pymodule_export]
    use ff_reader::{FfReader, directory_files, part_files};
    #[pymodule_export]
    use ff_writer::FfWriter;
    #[pymodule_export]
    use files::{convert, expand, format_by_name, formats, index, repair, verify};
    #[pymodule_export]
    use grail_scanner::GrailScanner;
    #[pymodule_export]
    use grail_writer::{GrailWriter, required_space};
    #[pymodule_export]
    use hints::hint_examples;
    #[pymodule_export]
    use idx::{idx_read, idx_splits, idx_write};
    #[pymodule_export]
    use image::{decode_image, encode_image, resize_image, thumbnail};
    #[pymodule_export]
    use iteration::{BatchIterator, RecordIterator};
    #[pymodule_export]
    use loader::{Loader, Memory};
    #[pymodule_export]
    use mx_reader::MxReader;
    #[pymodule_export]
    use mx_writer::MxWriter;
    #[pymodule_export]
    use mxnet::{index_line, pack_header, parse_index, rebuild_index, unpack_header};
    #[pymodule_export]
    use packed_folder::{PackedFolder, folder_size, pack_folder};
    #[pymodule_export]
    use record::{Record, record_from_parts};
    #[pymodule_export]
    use transformers::register_transformer;
    #[pymodule_export]
    use writer::Writer;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.py().import("numpy")?;
        // Imports what arrays need now: if it were imported on first use, Ctrl-C during the import
        // would be a panic.
        let _ = numpy::PyArray1::from_slice(module.py(), &[0u8]).try_readonly();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
