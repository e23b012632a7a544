//! Work on whole files: verify, repair, convert, index.

use crate::errors::raised;
use crate::hints;
use crate::options::{convert_options, open_options};
use crate::progress::{self, done};
use crate::sequences::{Many, bytes_to};
use crate::values::header_to;
use anyrec::format::{self, Content, Damage, FORMATS, Labels, Notice, Written};
use anyrec::{IndexOptions, RecordFile, RepairOptions, Report};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::path::PathBuf;

/// The supported formats as dicts: `id`, `name`, `extensions` and capabilities.
#[pyfunction]
pub fn formats(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    FORMATS
        .iter()
        .map(|format| {
            let can = format.capabilities();
            let told = PyDict::new(py);
            told.set_item("id", format.id())?;
            told.set_item("name", format.name())?;
            told.set_item("extensions", format.extensions())?;
            told.set_item("checksummed", can.checksummed)?;
            told.set_item("random_access", can.random_access)?;
            told.set_item("keys", can.keys)?;
            told.set_item("labels", can.labels == Labels::InRecord)?;
            told.set_item("fixed_size", can.fixed_size)?;
            told.set_item("max_record", can.max_record)?;
            Ok(told)
        })
        .collect()
}

/// The id of the format that this path's name implies.
#[pyfunction]
pub fn format_by_name(path: PathBuf) -> Option<&'static str> {
    format::by_name(&path).map(|format| format.id())
}

/// Expands paths, directories and patterns into files.
#[pyfunction]
pub fn expand<'py>(py: Python<'py>, paths: Many<PathBuf>) -> PyResult<Bound<'py, PyList>> {
    let files = done(py, || anyrec::expand(&paths.0))?;
    PyList::new(py, files.into_iter().map(PathBuf::into_os_string))
}

/// Reads every byte of a file and returns the report as a dict.
#[pyfunction]
#[pyo3(signature = (path, options = None, progress = None))]
pub fn verify<'py>(
    py: Python<'py>,
    path: PathBuf,
    options: Option<&Bound<'py, PyDict>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (options, _) = open_options(options)?;
    let report = progress::run(py, progress, |tell| {
        anyrec::verify_file(RecordFile::open(&path, &options)?, &options, tell)
    })?;
    report_dict(py, &report)
}

/// Writes every intact record to a new file. Returns the report about the old file as a dict, with
/// `written`.
#[pyfunction]
#[pyo3(signature = (input, output, options = None, overwrite = false, rebuild_tree = false, progress = None))]
pub fn repair<'py>(
    py: Python<'py>,
    input: PathBuf,
    output: PathBuf,
    options: Option<&Bound<'py, PyDict>>,
    overwrite: bool,
    rebuild_tree: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut settings = RepairOptions::default();
    settings.open = open_options(options)?.0;
    settings.overwrite = overwrite;
    settings.rebuild_tree = rebuild_tree;
    let repair = progress::run(py, progress, |tell| anyrec::repair(&input, &output, &settings, tell))?;
    let told = report_dict(py, &repair.report)?;
    told.set_item("written", written_dict(py, &repair.written)?)?;
    Ok(told)
}

/// Writes the records of files to a file of another format. Returns a summary as a dict.
#[pyfunction]
#[pyo3(signature = (inputs, output, format, open_options = None, write_options = None,
    convert_options = None, progress = None))]
// A Python function with keyword arguments.
#[allow(clippy::too_many_arguments)]
pub fn convert<'py>(
    py: Python<'py>,
    inputs: Many<PathBuf>,
    output: PathBuf,
    format: &str,
    open_options: Option<&Bound<'py, PyDict>>,
    write_options: Option<&Bound<'py, PyDict>>,
    convert_options: Option<&Bound<'py, PyDict>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let to = format::named(format).map_err(raised)?;
    let options = self::convert_options(to, open_options, write_options, convert_options)?;
    let conversion = progress::run(py, progress, |tell| {
        let files = anyrec::expand(&inputs.0)?;
        let inputs = files
            .iter()
            .map(|path| RecordFile::open(path, &options.open))
            .collect::<anyrec::Result<Vec<_>>>()?;
        anyrec::convert::convert(inputs, &output, to, &options, tell)
    })?;
    let outputs = conversion
        .outputs
        .iter()
        .map(|(path, written)| (path.as_os_str(), written_dict(py, written)?).into_pyobject(py));
    let told = PyDict::new(py);
    told.set_item("outputs", outputs.collect::<PyResult<Vec<_>>>()?)?;
    told.set_item("records", conversion.records)?;
    told.set_item("skipped", conversion.skipped)?;
    told.set_item("notices", messages(&conversion.notices))?;
    Ok(told)
}

/// Writes a file's index: MXNet's index file, or a table of positions. Returns a summary as a dict.
#[pyfunction]
#[pyo3(signature = (path, output = None, table = false, overwrite = false, options = None, progress = None))]
pub fn index<'py>(
    py: Python<'py>,
    path: PathBuf,
    output: Option<PathBuf>,
    table: bool,
    overwrite: bool,
    options: Option<&Bound<'py, PyDict>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut index = IndexOptions::default();
    index.open = open_options(options)?.0;
    (index.output, index.table, index.overwrite) = (output, table, overwrite);
    let indexed = progress::run(py, progress, |tell| anyrec::index(&path, &index, tell))?;
    let told = PyDict::new(py);
    told.set_item("path", indexed.path.as_os_str())?;
    told.set_item("records", indexed.records)?;
    told.set_item("reason", indexed.reason)?;
    Ok(told)
}

/// A notice in one sentence, with what to do about it.
pub fn notice_text(notice: &Notice) -> String {
    match &notice.hint {
        Some(hint) => format!("{}; {}", notice.message, hints::words(hint)),
        None => notice.message.clone(),
    }
}

fn messages(notices: &[Notice]) -> Vec<String> {
    notices.iter().map(notice_text).collect()
}

fn written_dict<'py>(py: Python<'py>, written: &Written) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("records", written.records)?;
    told.set_item("bytes", written.bytes)?;
    told.set_item("notices", messages(&written.notices))?;
    Ok(told)
}

fn report_dict<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("path", &report.file)?;
    told.set_item("format", report.format.id())?;
    told.set_item("version", report.version)?;
    told.set_item("sound", report.is_sound())?;
    told.set_item("records", report.records)?;
    told.set_item("verified", report.verified)?;
    told.set_item("bytes", report.bytes)?;
    told.set_item("record_bytes", report.record_bytes)?;
    told.set_item("metadata_bytes", report.metadata_bytes)?;
    told.set_item("damage_bytes", report.damage_bytes)?;
    let damage = report
        .damage
        .iter()
        .map(|Damage { begin, end, record, reason, .. }| (*begin, *end, *record, reason.as_str()));
    told.set_item("damage", damage.collect::<Vec<_>>())?;
    told.set_item("unlisted_damage", report.unlisted_damage)?;
    let notices = report.notices.iter().map(|notice| (notice.offset, notice_text(notice)));
    told.set_item("notices", notices.collect::<Vec<_>>())?;
    let (mut header, mut trailer, mut shape, mut dtype) = (Vec::new(), None, None, None);
    for content in &report.contents {
        match content {
            Content::Header(pairs) => header = header_to(py, pairs)?,
            Content::Trailer(bytes) => trailer = Some(bytes_to(py, bytes)?),
            Content::Shape { dtype: element, shape: dimensions } => {
                dtype = Some(element.name());
                shape = Some(PyTuple::new(py, dimensions)?);
            }
            _ => {}
        }
    }
    told.set_item("header", header)?;
    told.set_item("trailer", trailer)?;
    told.set_item("shape", shape)?;
    told.set_item("dtype", dtype)?;
    Ok(told)
}
