//! Keyword options of Python as the library's option structs.
//!
//! Python's side passes only what the caller set, so a name that is not known here is the caller's
//! mistake, and said.

use crate::sequences::Many;
use crate::transformers;
use crate::values::header_from;
use anyrec::ElementType;
use anyrec::convert::{ConvertOptions, Shards};
use anyrec::format::grail::transform::Registry;
use anyrec::format::{IndexFile, OpenOptions, WriteOptions};
use anyrec::io::{Access, Durability};
use anyrec::loader::{LoaderOptions, OnError, PlanOptions, Shuffle};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use std::path::PathBuf;
use std::sync::Arc;

type Pair<'py> = (String, Bound<'py, PyAny>);

pub fn pairs<'py>(options: Option<&Bound<'py, PyDict>>) -> PyResult<Vec<Pair<'py>>> {
    match options {
        // A list of them: a dict that changes meanwhile, by another thread or by what is called here, is
        // no longer one that can be gone through.
        Some(options) => options.items().iter().map(|pair| pair.extract()).collect(),
        None => Ok(Vec::new()),
    }
}

/// How files are opened; also whether records are memory of their own (`copy`).
pub fn open_options(options: Option<&Bound<'_, PyDict>>) -> PyResult<(OpenOptions, bool)> {
    let mut open = OpenOptions::default();
    let mut copy = true;
    let mut max_memory = None;
    let mut registry = transformers::registered();
    for (name, value) in pairs(options)? {
        match name.as_str() {
            "copy" => copy = value.extract()?,
            "format" => open.format = value.extract()?,
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
            "index_file" => open.index_file = index_file(&value)?,
            "legacy_transform" => open.legacy_transform = value.extract()?,
            "keys" => registry = with_keys(registry, &value)?,
            _ => return Err(unknown(&name)),
        }
    }
    if let Some(bytes) = max_memory {
        open.limits.hold_at_most(bytes);
    }
    open.transformers = registry;
    Ok((open, copy))
}

/// How files are written.
pub fn write_options(options: Option<&Bound<'_, PyDict>>) -> PyResult<WriteOptions> {
    let mut write = WriteOptions::default();
    let mut registry = transformers::registered();
    for (name, value) in pairs(options)? {
        match name.as_str() {
            "overwrite" => write.overwrite = value.extract()?,
            "durability" => {
                write.durability = match value.extract::<String>()?.as_str() {
                    "machine" => Durability::Machine,
                    "process" => Durability::Process,
                    other => return Err(choice("durability", other, "machine or process")),
                };
            }
            "index_file" => write.index_file = Some(index_file(&value)?),
            "wide_labels" => write.wide_labels = value.extract()?,
            "count" => write.count = value.extract()?,
            "version" => write.version = value.extract()?,
            "header" => write.header = header_from(&value)?,
            "transformers" => write.transformers = value.extract::<Many<_>>()?.0,
            "keys" => registry = with_keys(registry, &value)?,
            "max_items" => write.max_items = value.extract()?,
            "trailer" => write.trailer = value.extract()?,
            "parallelism" => write.parallelism = value.extract()?,
            "dtype" => write.dtype = Some(dtype(&value)?),
            "item_shape" => write.item_shape = value.extract::<Option<Many<_>>>()?.map(|shape| shape.0),
            "gzip" => write.gzip = value.extract()?,
            _ => return Err(unknown(&name)),
        }
    }
    write.registry = registry;
    Ok(write)
}

/// How a conversion goes.
pub fn convert_options(
    open: Option<&Bound<'_, PyDict>>,
    write: Option<&Bound<'_, PyDict>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<ConvertOptions> {
    let mut convert = ConvertOptions::default();
    convert.open = open_options(open)?.0;
    convert.write = write_options(write)?;
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

/// In which order a loader reads, and how it works.
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

/// An element type by NumPy's name for it, or anything NumPy takes for a type.
fn dtype(value: &Bound<'_, PyAny>) -> PyResult<ElementType> {
    let name: String =
        value.py().import("numpy")?.call_method1("dtype", (value,))?.getattr("name")?.extract()?;
    ElementType::from_name(&name).ok_or_else(|| {
        choice("dtype", &name, "uint8, int8, int16, int32, float32 or float64: IDX files hold no other type")
    })
}

fn index_file(value: &Bound<'_, PyAny>) -> PyResult<IndexFile> {
    match value.cast::<PyBool>() {
        Ok(wanted) if wanted.is_true() => Ok(IndexFile::Beside),
        Ok(_) => Ok(IndexFile::None),
        Err(_) => Ok(IndexFile::At(value.extract::<PathBuf>()?)),
    }
}

fn with_keys(mut registry: Registry, keys: &Bound<'_, PyAny>) -> PyResult<Registry> {
    for pair in keys.cast::<PyDict>()?.items() {
        let (id, key): (String, Bound<'_, PyAny>) = pair.extract()?;
        let key: [u8; 32] = key
            .extract::<Many<u8>>()?
            .0
            .try_into()
            .map_err(|_| PyValueError::new_err("a key for aes-256-gcm has 32 bytes"))?;
        registry = registry.with_key(id, key);
    }
    Ok(registry)
}

pub fn unknown(name: &str) -> PyErr {
    PyTypeError::new_err(format!("there is no option {name:?}"))
}

pub fn choice(name: &str, found: &str, expected: &str) -> PyErr {
    PyValueError::new_err(format!("{name} is {expected}, not {found:?}"))
}
