//! Converts Python's keyword options into the library's option structs.
//!
//! The Python side passes only what the caller set, so an unknown name is the caller's mistake and
//! is reported.

use crate::errors::raised;
use crate::sequences::Many;
use crate::transformers;
use crate::values::{header_from, value_from};
use anyrec::convert::{ConvertOptions, Shards};
use anyrec::format::{self, FORMATS, Format, OpenOptions, Setting, SettingValue, WriteOptions};
use anyrec::io::{Access, Durability};
use anyrec::loader::{LoaderOptions, OnError, PlanOptions, Shuffle};
use anyrec::{ElementType, Value};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

type Pair<'py> = (String, Bound<'py, PyAny>);

pub fn pairs<'py>(options: Option<&Bound<'py, PyDict>>) -> PyResult<Vec<Pair<'py>>> {
    match options {
        // Iterates over a list, because a dict that changes during the iteration (through another
        // thread or a callback) cannot be iterated.
        Some(options) => options.items().iter().map(|pair| pair.extract()).collect(),
        None => Ok(Vec::new()),
    }
}

/// How a dataset returns records.
#[derive(Clone, Copy)]
pub struct Returned {
    /// Copied into memory of their own.
    pub copy: bool,
    /// Without the headers that hold their labels.
    pub payload: bool,
}

/// How files are opened, and how their records are returned. Other names are options of one format.
pub fn open_options(options: Option<&Bound<'_, PyDict>>) -> PyResult<(OpenOptions, Returned)> {
    let mut open = OpenOptions::default().with(transformers::open_options());
    let mut returned = Returned { copy: true, payload: false };
    let mut max_memory = None;
    for (name, value) in pairs(options)? {
        match name.as_str() {
            "copy" => returned.copy = value.extract()?,
            "payload" => returned.payload = value.extract()?,
            "format" => {
                let id: Option<String> = value.extract()?;
                open.format = id.map(|id| format::named(&id)).transpose().map_err(raised)?;
            }
            "verify" => open.verify = value.extract()?,
            "skip_damage" => open.skip_damage = value.extract()?,
            "access" => {
                open.access = match value.extract::<String>()?.as_str() {
                    "auto" => Access::Auto,
                    "mapped" => Access::Mapped,
                    "positional" => Access::Positional,
                    "direct" => Access::Direct,
                    other => return Err(choice("access", other, "auto, mapped, positional or direct")),
                };
            }
            "threads" => open.threads = value.extract()?,
            "max_record" => open.limits.record = value.extract()?,
            "max_frame" => open.limits.frame = value.extract()?,
            "max_decompressed" => open.limits.decompressed = value.extract()?,
            "max_memory" => max_memory = value.extract()?,
            _ if !is_setting(&name, |format| format.open_settings()) => return Err(unknown(&name)),
            _ => {
                if let Some(value) = setting(&name, &value)? {
                    format::set_open(&mut open, &name, &value).map_err(raised)?;
                }
            }
        }
    }
    if let Some(bytes) = max_memory {
        open.limits.hold_at_most(bytes);
    }
    Ok((open, returned))
}

/// How files of a format are written. Other names are options of that format.
pub fn write_options(
    format: &'static dyn Format,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<WriteOptions> {
    let mut write = transformers::write_options(format);
    for (name, value) in pairs(options)? {
        match name.as_str() {
            "overwrite" => write.overwrite = value.extract()?,
            "durability" => {
                write.durability = durability(&value.extract::<String>()?)?;
            }
            "count" => write.count = value.extract()?,
            _ if !is_setting(&name, |format| format.write_settings()) => return Err(unknown(&name)),
            _ => {
                if let Some(value) = setting(&name, &value)? {
                    format::set_write(&mut write, format, &name, &value).map_err(raised)?;
                }
            }
        }
    }
    Ok(write)
}

/// What a written file survives.
pub fn durability(name: &str) -> PyResult<Durability> {
    match name {
        "machine" => Ok(Durability::Machine),
        "process" => Ok(Durability::Process),
        other => Err(choice("durability", other, "machine or process")),
    }
}

/// Whether any format has a setting with this name.
fn is_setting(name: &str, of: impl Fn(&dyn Format) -> &'static [Setting]) -> bool {
    FORMATS.iter().any(|format| of(*format).iter().any(|setting| setting.name == name))
}

/// The value of a format's setting; `None` means unset.
fn setting(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<SettingValue>> {
    if value.is_none() {
        return Ok(None);
    }
    // NumPy's types have several names.
    if name == "dtype" {
        let dtype = value.py().import("numpy")?.call_method1("dtype", (value,))?;
        let name: String = dtype.getattr("name")?.extract()?;
        return Ok(Some(SettingValue::One(Value::Text(name.into()))));
    }
    if value.hasattr("items")? {
        return header_from(value).map(|pairs| Some(SettingValue::Pairs(pairs)));
    }
    if value.is_instance_of::<PyString>() || value.hasattr("__fspath__")? {
        let path = value.extract::<PathBuf>()?.into_os_string().into_vec();
        return Ok(Some(SettingValue::One(Value::Text(path.into()))));
    }
    if let Ok(value) = value_from(value) {
        return Ok(Some(SettingValue::One(value)));
    }
    let items = value.extract::<Many<Bound<'_, PyAny>>>()?.0;
    if !items.is_empty() && items.iter().all(|item| item.is_instance_of::<PyTuple>()) {
        let items = PyList::new(value.py(), items)?;
        return header_from(&items).map(|pairs| Some(SettingValue::Pairs(pairs)));
    }
    let values = items.iter().map(value_from).collect::<PyResult<_>>()?;
    Ok(Some(SettingValue::List(values)))
}

/// The options of a conversion.
pub fn convert_options(
    to: &'static dyn Format,
    open: Option<&Bound<'_, PyDict>>,
    write: Option<&Bound<'_, PyDict>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<ConvertOptions> {
    let mut convert = ConvertOptions::default();
    convert.open = open_options(open)?.0;
    convert.write = write_options(to, write)?;
    for (name, value) in pairs(options)? {
        match name.as_str() {
            "strip_header" => convert.strip_header = value.extract()?,
            "shards" => convert.shards = Shards::Count(value.extract()?),
            "shard_bytes" => convert.shards = Shards::Bytes(value.extract()?),
            "labels" => convert.labels = value.extract()?,
            "label_output" => convert.label_output = value.extract()?,
            "label_dtype" => convert.label_dtype = Some(dtype(&value)?),
            _ => return Err(unknown(&name)),
        }
    }
    Ok(convert)
}

/// The order in which a loader reads, and its other options.
pub fn loader_options(options: &Bound<'_, PyDict>) -> PyResult<(PlanOptions, LoaderOptions)> {
    let (mut plan, mut loader) = (PlanOptions::default(), LoaderOptions::default());
    let (mut shuffle, mut block, mut window) = (false, None, 64);
    for (name, value) in pairs(Some(options))? {
        match name.as_str() {
            "batch_size" => plan.batch_size = value.extract()?,
            "shuffle" => shuffle = value.extract()?,
            "block" => block = value.extract()?,
            "window" => window = value.extract()?,
            "seed" => plan.seed = value.extract()?,
            "rank" => plan.rank = value.extract()?,
            "world" => plan.world = value.extract()?,
            "drop_last" => plan.drop_last = value.extract()?,
            "threads" => loader.threads = value.extract()?,
            "prefetch" => loader.prefetch = value.extract()?,
            "max_bytes" => loader.max_bytes = value.extract()?,
            "labels" => loader.labels = value.extract()?,
            "payloads" => loader.payloads = value.extract()?,
            "images" => loader.decode = Some(Arc::new(crate::recipe::images(&value)?)),
            "on_error" => {
                loader.on_error = match value.extract::<String>()?.as_str() {
                    "raise" => OnError::Raise,
                    "skip" => OnError::Skip,
                    "replace" => OnError::Replace,
                    "blank" => OnError::Blank,
                    other => return Err(choice("on_error", other, "raise, skip, replace or blank")),
                };
            }
            _ => return Err(unknown(&name)),
        }
    }
    if loader.on_error == OnError::Blank && loader.decode.is_none() {
        return Err(choice("on_error", "blank", "raise, skip or replace where nothing is decoded"));
    }
    plan.shuffle = match (shuffle, block) {
        (false, _) => Shuffle::None,
        (true, None) => Shuffle::Full,
        (true, Some(block)) => Shuffle::Blocks { block, window },
    };
    Ok((plan, loader))
}

/// An element type, by its NumPy name or as anything that NumPy accepts as a type.
pub fn dtype(value: &Bound<'_, PyAny>) -> PyResult<ElementType> {
    let name: String =
        value.py().import("numpy")?.call_method1("dtype", (value,))?.getattr("name")?.extract()?;
    ElementType::from_name(&name)
        .ok_or_else(|| choice("dtype", &name, "uint8, int8, int16, int32, float32 or float64"))
}

pub fn unknown(name: &str) -> PyErr {
    PyTypeError::new_err(format!("there is no option {name:?}"))
}

pub fn choice(name: &str, found: &str, expected: &str) -> PyErr {
    PyValueError::new_err(format!("{name} is {expected}, not {found:?}"))
}
