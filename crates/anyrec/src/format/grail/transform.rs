//! Transformers: what happens to a block between memory and file.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A reversible change of a block's bytes: compression, encryption, one's own.
pub trait Transformer: Send + Sync {
    /// The bytes to store for a block.
    ///
    /// # Errors
    /// Whatever the transformer cannot do.
    fn encode(&self, block: &[u8]) -> Result<Vec<u8>>;

    /// The block for stored bytes, of at most `limit` bytes.
    ///
    /// # Errors
    /// Bytes that are not this transformer's, or a block over the limit.
    fn decode(&self, stored: &[u8], limit: u64) -> Result<Vec<u8>>;
}

/// Makes a transformer from its config string (empty where none is given).
pub type Factory = Arc<dyn Fn(&str) -> Result<Arc<dyn Transformer>> + Send + Sync>;

/// Transformers by name.
#[derive(Clone, Default)]
pub struct Registry {
    own: BTreeMap<String, Factory>,
}

impl Registry {
    /// Adds (or replaces) a transformer of one's own.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        factory: impl Fn(&str) -> Result<Arc<dyn Transformer>> + Send + Sync + 'static,
    ) {
        self.own.insert(name.into(), Arc::new(factory));
    }

    /// The transformer for `"name"` or `"name config"`.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a name nobody registered.
    pub fn get(&self, entry: &str) -> Result<Arc<dyn Transformer>> {
        let (name, config) = entry.split_once(' ').unwrap_or((entry, ""));
        match self.own.get(name) {
            Some(factory) => factory(config),
            None => Err(Error::unsupported(format!("transformer {name:?} is not known"))),
        }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.own.keys()).finish()
    }
}
