//! The options specific to GRAIL recordio.

use super::FORMAT;
use super::transform::{Registry, Transform};
use crate::base::{Error, Result, Value};
use crate::format::{self, Format, FormatOptions, Setting, SettingValue};
use bstr::{BString, ByteSlice};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The version of GRAIL recordio to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Version {
    /// Version 2: blocks, a header, transformers, a trailer.
    #[default]
    Two,
    /// Version 1, one item per record.
    LegacyUnpacked,
    /// Version 1, many items per record.
    LegacyPacked,
}

impl Version {
    /// All versions.
    pub const ALL: [Version; 3] = [Version::Two, Version::LegacyUnpacked, Version::LegacyPacked];

    /// Its name: `2`, `1-unpacked` or `1-packed`.
    pub fn name(self) -> &'static str {
        match self {
            Version::Two => "2",
            Version::LegacyUnpacked => "1-unpacked",
            Version::LegacyPacked => "1-packed",
        }
    }
}

/// How GRAIL files are opened.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Transformers by name, for files whose header names them, and keys.
    pub registry: Registry,
    /// The transformer of version 1 packed files, which the file does not name. If not set, the
    /// file name decides (`.grail-rpk-gz`).
    pub legacy_transform: Option<Transform>,
}

impl OpenOptions {
    /// Sets [`registry`](OpenOptions::registry).
    #[must_use]
    pub fn with_registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Sets [`legacy_transform`](OpenOptions::legacy_transform).
    #[must_use]
    pub fn with_legacy_transform(mut self, transform: Transform) -> Self {
        self.legacy_transform = Some(transform);
        self
    }
}

impl FormatOptions for OpenOptions {
    fn format() -> &'static dyn Format {
        &FORMAT
    }
}

/// How GRAIL files are written.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The version.
    pub version: Version,
    /// The header's own pairs, in order.
    pub header: Vec<(BString, Value)>,
    /// Transformers in order of application.
    pub transformers: Vec<Transform>,
    /// Used to look up transformers.
    pub registry: Registry,
    /// Items per block.
    pub max_items: Option<u64>,
    /// Whether a trailer will be set before the end.
    pub trailer: bool,
    /// Number of blocks compressed in parallel (default 8).
    pub parallelism: Option<usize>,
}

impl WriteOptions {
    /// Sets [`version`](WriteOptions::version).
    #[must_use]
    pub fn with_version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Adds a pair to the [`header`](WriteOptions::header).
    #[must_use]
    pub fn with_header(mut self, key: impl Into<BString>, value: Value) -> Self {
        self.header.push((key.into(), value));
        self
    }

    /// Adds one of the [`transformers`](WriteOptions::transformers).
    #[must_use]
    pub fn with_transformer(mut self, transform: impl Into<Transform>) -> Self {
        self.transformers.push(transform.into());
        self
    }

    /// Sets [`registry`](WriteOptions::registry).
    #[must_use]
    pub fn with_registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Sets [`max_items`](WriteOptions::max_items).
    #[must_use]
    pub fn with_max_items(mut self, max_items: u64) -> Self {
        self.max_items = Some(max_items);
        self
    }

    /// Sets [`trailer`](WriteOptions::trailer).
    #[must_use]
    pub fn with_trailer(mut self, trailer: bool) -> Self {
        self.trailer = trailer;
        self
    }

    /// Sets [`parallelism`](WriteOptions::parallelism).
    #[must_use]
    pub fn with_parallelism(mut self, blocks: usize) -> Self {
        self.parallelism = Some(blocks);
        self
    }

    /// Fails if a setting is set that the version does not have.
    pub(super) fn check_for(&self, version: Version) -> Result<()> {
        let legacy = version != Version::Two;
        let set = [
            ("header", legacy && !self.header.is_empty()),
            ("trailer", legacy && self.trailer),
            ("parallelism", legacy && self.parallelism.is_some()),
            ("transformers", version == Version::LegacyUnpacked && !self.transformers.is_empty()),
            ("max_items", version == Version::LegacyUnpacked && self.max_items.is_some()),
        ];
        match set.into_iter().find(|(_, is_set)| *is_set) {
            Some((name, _)) => Err(Error::invalid(format!(
                "GRAIL files of version {} have no setting `{name}`",
                version.name()
            ))),
            None => Ok(()),
        }
    }
}

impl FormatOptions for WriteOptions {
    fn format() -> &'static dyn Format {
        &FORMAT
    }
}

pub(super) const OPEN: &[Setting] = &[
    Setting::new(
        "legacy_transform",
        "NAME",
        "version 1: the transformer, which the file does not name (flate)",
    )
    .with_flag("legacy-transform"),
    Setting::new("key_file", "FILE", "file with the 32-byte key (raw or 64 hex digits) of encrypted files")
        .with_flag("key-file"),
    Setting::new("keys", "", "keys of encrypted files, by their ids"),
];

pub(super) const WRITE: &[Setting] = &[
    Setting::new("transformers", "NAME", "transform blocks, e.g. zstd, \"zstd 9\", flate, aes-256-gcm")
        .with_flag("transformer")
        .repeated(),
    Setting::new("max_items", "N", "items per block").with_flag("max-items"),
    Setting::new("version", "VERSION", "2 (the default), 1-unpacked or 1-packed"),
    Setting::new("header", "", "pairs of the file's header"),
    Setting::new("trailer", "", "a trailer will be set"),
    Setting::new("parallelism", "N", "blocks compressed at once (default 8)"),
    Setting::new("key_file", "FILE", "file with the 32-byte key (raw or 64 hex digits) to encrypt with"),
    Setting::new("keys", "", "keys to encrypt with, by their ids"),
];

pub(super) fn set_open(options: &mut format::OpenOptions, name: &str, value: &SettingValue) -> Result<()> {
    let mut own: OpenOptions = options.own();
    match name {
        "legacy_transform" => own.legacy_transform = Some(transform(value.text()?)?),
        "key_file" => own.registry = own.registry.with_key_file(path(value.text()?))?,
        "keys" => own.registry = with_keys(own.registry, value)?,
        _ => return Err(Error::invalid("no such setting")),
    }
    options.set(own);
    Ok(())
}

pub(super) fn set_write(options: &mut format::WriteOptions, name: &str, value: &SettingValue) -> Result<()> {
    let mut own: WriteOptions = options.own();
    match name {
        "transformers" => own.transformers = value.texts()?.iter().map(transform).collect::<Result<_>>()?,
        "max_items" => own.max_items = Some(value.number()?),
        "version" => own.version = version(value.text()?)?,
        "header" => own.header = value.pairs()?.to_vec(),
        "trailer" => own.trailer = value.flag()?,
        "parallelism" => own.parallelism = Some(usize::try_from(value.number()?).unwrap_or(usize::MAX)),
        "key_file" => own.registry = own.registry.with_key_file(path(value.text()?))?,
        "keys" => own.registry = with_keys(own.registry, value)?,
        _ => return Err(Error::invalid("no such setting")),
    }
    options.set(own);
    Ok(())
}

fn path(text: &BString) -> &Path {
    Path::new(OsStr::from_bytes(text))
}

fn transform(entry: &BString) -> Result<Transform> {
    let entry = entry.to_str().map_err(|_| Error::invalid("expected UTF-8 text"))?;
    Ok(Transform::from(entry))
}

fn version(name: &BString) -> Result<Version> {
    Version::ALL.into_iter().find(|version| *name == version.name()).ok_or_else(|| {
        Error::invalid(format!(
            "unknown GRAIL version {name:?}: expected \"2\", \"1-unpacked\" or \"1-packed\""
        ))
    })
}

fn with_keys(mut registry: Registry, keys: &SettingValue) -> Result<Registry> {
    for (id, key) in keys.pairs()? {
        let key = match key {
            Value::Text(key) => <[u8; 32]>::try_from(key.as_slice()).ok(),
            _ => None,
        };
        let key = key.ok_or_else(|| Error::invalid("a key for aes-256-gcm has 32 bytes"))?;
        registry = registry.with_key(id.to_string(), key);
    }
    Ok(registry)
}
