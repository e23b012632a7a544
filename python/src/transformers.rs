//! GRAIL transformers written in Python.

use crate::errors::carried;
use crate::payload::Payload;
use crate::sequences::bytes_to;
use anyrec::format::grail::{self, Registry, Transformer};
use anyrec::format::{Format, WriteOptions};
use anyrec::{Error, Limits, Result};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Creates encoders and decoders of one name.
struct Factory {
    encoder: Option<Py<PyAny>>,
    decoder: Option<Py<PyAny>>,
}

type Factories = BTreeMap<String, Arc<Factory>>;

/// Held only briefly, and never while Python code runs.
static FACTORIES: Mutex<Factories> = Mutex::new(BTreeMap::new());

/// Registers a transformer by name, for every file written or opened from then on.
///
/// `encoder` and `decoder` are called with the config (the text after the name in the file's
/// header, or `""`) and return a function that maps a block's bytes to other bytes. Without an
/// encoder such files can only be read, without a decoder only written.
#[pyfunction]
#[pyo3(signature = (name, encoder, decoder))]
pub fn register_transformer(name: String, encoder: Option<Py<PyAny>>, decoder: Option<Py<PyAny>>) {
    let replaced = factories().insert(name, Arc::new(Factory { encoder, decoder }));
    // After the lock is released: dropping a Python object may run Python code.
    drop(replaced);
}

fn factories() -> std::sync::MutexGuard<'static, Factories> {
    FACTORIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// GRAIL's options for opening files, with the transformers registered from Python.
pub fn open_options() -> grail::OpenOptions {
    grail::OpenOptions::default().with_registry(registered())
}

/// The options for writing a file, with the transformers registered from Python if it is a GRAIL
/// file.
pub fn write_options(format: &'static dyn Format) -> WriteOptions {
    let options = WriteOptions::default();
    match format.id() == grail::FORMAT.id() {
        true => options.with(grail::WriteOptions::default().with_registry(registered())),
        false => options,
    }
}

/// The library's registry, with the transformers registered from Python.
fn registered() -> Registry {
    let known = factories().clone();
    let mut registry = Registry::default();
    for (name, made_by) in known {
        let what = name.clone();
        registry.register(name, move |config| {
            Ok(Arc::new(PythonTransformer {
                name: what.clone(),
                config: config.to_owned(),
                made_by: Arc::clone(&made_by),
            }))
        });
    }
    registry
}

struct PythonTransformer {
    name: String,
    config: String,
    made_by: Arc<Factory>,
}

impl PythonTransformer {
    fn call(&self, factory: Option<&Py<PyAny>>, doing: &str, data: &[u8]) -> Result<Vec<u8>> {
        let factory = factory.ok_or_else(|| {
            Error::unsupported(format!("transformer {:?} was registered without {doing}", self.name))
        })?;
        Python::attach(|py| {
            let coder = factory.bind(py).call1((&self.config,))?;
            let coded = coder.call1((bytes_to(py, data)?,))?;
            Ok(Payload::of(&coded)?.to_vec())
        })
        .map_err(carried)
    }
}

impl Transformer for PythonTransformer {
    fn encode(&self, block: &[u8]) -> Result<Vec<u8>> {
        self.call(self.made_by.encoder.as_ref(), "an encoder", block)
    }

    fn decode(&self, stored: &[u8], limit: u64) -> Result<Vec<u8>> {
        let block = self.call(self.made_by.decoder.as_ref(), "a decoder", stored)?;
        match block.len() as u64 {
            size if size > limit => Err(Limits::exceeded("block size", size, limit)),
            _ => Ok(block),
        }
    }
}
