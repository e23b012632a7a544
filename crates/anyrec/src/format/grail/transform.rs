//! Transformers: what happens to a block between memory and file.
//!
//! A file's header names its transformers, in order of application: `"name"` or `"name config"`.
//! [`Registry`] turns such entries into [`Transformer`]s. It knows these by itself:
//!
//! | name | config | what | feature |
//! |---|---|---|---|
//! | `zstd` | level; none or negative: 5; over 22: 22 | a zstd frame | `zstd` |
//! | `flate` | level from -2 to 9; none or -1: the default | raw deflate | `deflate` |
//! | `aes-256-gcm` | the key's id | encryption; anyrec's own, the original does not know it | `encryption` |

#[cfg(feature = "encryption")]
use super::encryption::Aes256Gcm;
#[cfg(feature = "deflate")]
use super::flate::{FLATE, Flate};
#[cfg(feature = "zstd")]
use super::zstd::{ZSTD, Zstd};
use crate::base::{Error, Hint, Result};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The built-in transformers and their features.
const BUILT_IN: [(&str, &str); 3] = [("zstd", "zstd"), ("flate", "deflate"), ("aes-256-gcm", "encryption")];

/// What to try on blocks whose transformers are not known because the header is lost.
pub(super) static GUESSES: &[&dyn Transformer] = &[
    #[cfg(feature = "zstd")]
    &ZSTD,
    #[cfg(feature = "deflate")]
    &FLATE,
];

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

/// A transformer by name, with its config: an entry of a file's header.
///
/// ```
/// use anyrec::format::grail::Transform;
///
/// assert_eq!(Transform::zstd_level(9).to_string(), "zstd 9");
/// assert_eq!(Transform::from("flate"), Transform::flate());
/// assert_eq!(Transform::from("mine x y").config(), "x y");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Transform(String);

impl Transform {
    /// zstd at its default level.
    pub fn zstd() -> Self {
        Transform("zstd".to_owned())
    }

    /// zstd at a level: up to 22; a negative one is the default.
    pub fn zstd_level(level: i32) -> Self {
        Transform(format!("zstd {level}"))
    }

    /// Raw deflate at its default level.
    pub fn flate() -> Self {
        Transform("flate".to_owned())
    }

    /// Raw deflate at a level from -2 to 9.
    pub fn flate_level(level: i32) -> Self {
        Transform(format!("flate {level}"))
    }

    /// Encryption with the key of that id; the empty id is an id, too.
    pub fn aes_256_gcm(key_id: &str) -> Self {
        Self::named("aes-256-gcm", key_id)
    }

    /// A transformer of one's own ([`Registry::register`]).
    pub fn named(name: &str, config: &str) -> Self {
        match config {
            "" => Transform(name.to_owned()),
            config => Transform(format!("{name} {config}")),
        }
    }

    /// The transformer's name.
    pub fn name(&self) -> &str {
        self.parts().0
    }

    /// Its config; empty where there is none.
    pub fn config(&self) -> &str {
        self.parts().1
    }

    fn parts(&self) -> (&str, &str) {
        self.0.split_once(' ').unwrap_or((&self.0, ""))
    }
}

impl From<&str> for Transform {
    fn from(entry: &str) -> Self {
        Transform(entry.to_owned())
    }
}

impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes a transformer from its config string (empty where none is given).
pub type Factory = Arc<dyn Fn(&str) -> Result<Arc<dyn Transformer>> + Send + Sync>;

/// Transformers by name, and the keys for those that need one.
///
/// ```
/// use anyrec::Result;
/// use anyrec::format::grail::{Registry, Transform, Transformer};
/// use std::sync::Arc;
///
/// struct Reverse;
///
/// impl Transformer for Reverse {
///     fn encode(&self, block: &[u8]) -> Result<Vec<u8>> {
///         Ok(block.iter().rev().copied().collect())
///     }
///     fn decode(&self, stored: &[u8], _limit: u64) -> Result<Vec<u8>> {
///         self.encode(stored)
///     }
/// }
///
/// let mut registry = Registry::default();
/// registry.register("reverse", |_config| Ok(Arc::new(Reverse)));
/// assert_eq!(registry.get(&"reverse".into())?.encode(b"abc")?, b"cba");
/// # #[cfg(feature = "zstd")] {
/// let packed = registry.get(&Transform::zstd_level(3))?.encode(&[7; 1000])?;
/// assert_eq!(registry.get(&Transform::zstd())?.decode(&packed, 1 << 20)?, [7; 1000]);
/// # }
/// # Ok::<(), anyrec::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Registry {
    own: BTreeMap<String, Factory>,
    keys: BTreeMap<String, [u8; 32]>,
}

impl Registry {
    /// Adds (or replaces) a transformer of one's own; a built-in of that name gives way to it.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        factory: impl Fn(&str) -> Result<Arc<dyn Transformer>> + Send + Sync + 'static,
    ) {
        self.own.insert(name.into(), Arc::new(factory));
    }

    /// This registry with a key for `aes-256-gcm`. The entry `"aes-256-gcm ID"` uses the key of
    /// that id; the id is written into the file's header, the key never is.
    pub fn with_key(mut self, id: impl Into<String>, key: [u8; 32]) -> Self {
        self.keys.insert(id.into(), key);
        self
    }

    /// This registry with the key in a file: 32 raw bytes, or 64 hexadecimal digits. Its id is empty.
    ///
    /// # Errors
    /// A file that cannot be read, or holds something else.
    pub fn with_key_file(self, path: &Path) -> Result<Self> {
        let about = |error: Error| error.in_file(path);
        let bytes = std::fs::read(path).map_err(|error| about(Error::io("cannot read the key", error)))?;
        let digits = bytes.trim_ascii();
        let key = if digits.len() == 64 {
            let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            let pair = |pair: &[u8]| Some(digit(*pair.first()?)? * 16 + digit(*pair.get(1)?)?);
            digits.chunks(2).map(pair).collect::<Option<Vec<u8>>>()
        } else {
            Some(bytes)
        };
        let key = key.and_then(|key| <[u8; 32]>::try_from(key).ok());
        let key =
            key.ok_or_else(|| about(Error::invalid("a key file has 32 bytes or 64 hexadecimal digits")))?;
        Ok(self.with_key("", key))
    }

    /// The transformer for a header's entry.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a name nobody registered,
    /// [`Invalid`](crate::ErrorKind::Invalid) for a config it cannot use or a key it does not have.
    pub fn get(&self, transform: &Transform) -> Result<Arc<dyn Transformer>> {
        self.make(transform, false)
    }

    /// The transformers for these entries, to undo what they did. The levels of the compressors
    /// play no part in that, so whatever stands there is ignored.
    pub(super) fn decoders(&self, entries: &[Transform]) -> Result<Chain> {
        let stages = entries.iter().map(|entry| self.make(entry, true)).collect::<Result<_>>()?;
        Ok(Chain { stages })
    }

    /// The transformers for these entries, to apply them.
    pub(super) fn encoders(&self, entries: &[Transform]) -> Result<Chain> {
        let stages = entries.iter().map(|entry| self.make(entry, false)).collect::<Result<_>>()?;
        Ok(Chain { stages })
    }

    fn make(&self, transform: &Transform, decoding: bool) -> Result<Arc<dyn Transformer>> {
        let (name, config) = transform.parts();
        if let Some(factory) = self.own.get(name) {
            return factory(config);
        }
        #[cfg_attr(not(any(feature = "deflate", feature = "zstd")), expect(unused_variables))]
        let level = if decoding { "" } else { config };
        match name {
            #[cfg(feature = "zstd")]
            "zstd" => Ok(Arc::new(Zstd::from_config(level)?)),
            #[cfg(feature = "deflate")]
            "flate" => Ok(Arc::new(Flate::from_config(level)?)),
            #[cfg(feature = "encryption")]
            "aes-256-gcm" => Ok(Arc::new(Aes256Gcm::new(self.key(config)?))),
            _ => Err(match BUILT_IN.into_iter().find(|(built_in, _)| *built_in == name) {
                Some((_, feature)) => Error::feature_is_off(&format!("transformer {name:?}"), feature),
                None => Error::unsupported(format!("transformer {name:?} is not known"))
                    .with_hint(Hint::RegisterTransformer),
            }),
        }
    }

    #[cfg(feature = "encryption")]
    fn key(&self, id: &str) -> Result<[u8; 32]> {
        self.keys.get(id).copied().ok_or_else(|| {
            Error::invalid(format!("no key {id:?} for transformer \"aes-256-gcm\" was given"))
                .with_hint(Hint::GiveKey)
        })
    }
}

impl fmt::Debug for Registry {
    /// Names of transformers and ids of keys; never a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.own.keys()).entries(self.keys.keys()).finish()
    }
}

/// Transformers in order of application.
#[derive(Clone, Default)]
pub(super) struct Chain {
    stages: Vec<Arc<dyn Transformer>>,
}

impl Chain {
    /// Whether blocks are stored as they are.
    pub(super) fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// Applies all, the first one first.
    pub(super) fn encode(&self, block: Vec<u8>) -> Result<Vec<u8>> {
        self.stages.iter().try_fold(block, |block, stage| stage.encode(&block))
    }

    /// Undoes all, the last one first.
    pub(super) fn decode<'a>(&self, stored: Cow<'a, [u8]>, limit: u64) -> Result<Cow<'a, [u8]>> {
        self.stages
            .iter()
            .rev()
            .try_fold(stored, |stored, stage| Ok(Cow::Owned(stage.decode(&stored, limit)?)))
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain of {}", self.stages.len())
    }
}
