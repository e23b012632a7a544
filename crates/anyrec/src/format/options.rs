//! How files are opened and written. One flat struct each way: a format refuses the settings it
//! cannot honour, so that nothing is silently ignored.

use super::grail::transform::Registry;
use super::value::{ElementType, Value};
use crate::error::{Error, Result};
use crate::io::{Access, Durability};
use crate::limits::Limits;
use crate::position::PositionList;
use bstr::BString;
use std::path::PathBuf;
use std::sync::Arc;

/// Where a file's index file is (MXNet's `.idx`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum IndexFile {
    /// Reading: the `.idx` beside the file, if there is one. Writing: one beside it.
    #[default]
    Beside,
    /// That file.
    At(PathBuf),
    /// None is read, none is written.
    None,
}

/// How a file is opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenOptions {
    /// The format's id, where detection is not wanted.
    pub format: Option<String>,
    /// Checksums are verified (default true).
    pub verify: bool,
    /// Damaged stretches are left out instead of being an error (default false).
    pub skip_damage: bool,
    /// Scans look for oddities that cost no data, and tell them (default true). Looking takes time
    /// where every byte must be seen for it.
    pub notices: bool,
    /// How local files are read.
    pub access: Access,
    /// Threads that work on one batch, or on one file in [`verify`](crate::verify) and
    /// [`convert`](crate::convert::convert); 0 (the default) for as many as there are cores.
    pub threads: usize,
    /// Bounds on allocations.
    pub limits: Limits,
    /// MXNet: the index file.
    pub index_file: IndexFile,
    /// Positions known beforehand (from a table), so that no scan is needed to number records.
    pub positions: Option<Arc<PositionList>>,
    /// GRAIL: transformers by name, for files whose header names them.
    pub transformers: Registry,
    /// GRAIL legacy packed files: the transformer (`"flate"`), as the file does not say. Without
    /// it the name decides (`.grail-rpk-gz`).
    pub legacy_transform: Option<String>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            format: None,
            verify: true,
            skip_damage: false,
            notices: true,
            access: Access::Auto,
            threads: 0,
            limits: Limits::default(),
            index_file: IndexFile::Beside,
            positions: None,
            transformers: Registry::default(),
            legacy_transform: None,
        }
    }
}

impl OpenOptions {
    /// The number of threads that [`threads`](OpenOptions::threads) stands for.
    pub fn thread_count(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        }
    }
}

/// How a file is written. Settings that a format does not have are refused by it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// An existing file may be replaced.
    pub overwrite: bool,
    /// What the finished file survives.
    pub durability: Durability,
    /// MXNet: the index file. `None` here means the format's own habit: an index file is written
    /// if any record has a key.
    pub index_file: Option<IndexFile>,
    /// MXNet: labels are written as `f64` (header `IdQQ`, some forks) instead of `f32`.
    pub wide_labels: bool,
    /// FFRecord: the number of records, if known: the table is then laid out at once.
    pub count: Option<u64>,
    /// GRAIL: `"2"` (default), `"1-unpacked"` or `"1-packed"`. FFRecord: `"old"` leaves the
    /// metadata checksum out.
    pub version: Option<String>,
    /// GRAIL: the header's own pairs, in order.
    pub header: Vec<(BString, Value)>,
    /// GRAIL: transformers in order of application, `"name"` or `"name config"`.
    pub transformers: Vec<String>,
    /// GRAIL: where transformers are looked up.
    pub registry: Registry,
    /// GRAIL: items a block.
    pub max_items: Option<u64>,
    /// GRAIL: a trailer will be set before the end.
    pub trailer: bool,
    /// GRAIL: blocks compressed at once (default 8).
    pub parallelism: Option<usize>,
    /// IDX: the element type (default `uint8`).
    pub dtype: Option<ElementType>,
    /// IDX: the shape of one record (default: one dimension, as long as the first record).
    pub item_shape: Option<Vec<u64>>,
    /// IDX: gzip the file (default: as its name says).
    pub gzip: Option<bool>,
}

impl WriteOptions {
    /// Refuses format-specific settings other than `allowed`, by field name.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming the first one that `format` does not have.
    pub fn allow_only(&self, format: &str, allowed: &[&str]) -> Result<()> {
        let set = [
            ("index_file", self.index_file.is_some()),
            ("wide_labels", self.wide_labels),
            ("count", self.count.is_some()),
            ("version", self.version.is_some()),
            ("header", !self.header.is_empty()),
            ("transformers", !self.transformers.is_empty()),
            ("max_items", self.max_items.is_some()),
            ("trailer", self.trailer),
            ("parallelism", self.parallelism.is_some()),
            ("dtype", self.dtype.is_some()),
            ("item_shape", self.item_shape.is_some()),
            ("gzip", self.gzip.is_some()),
        ];
        match set.into_iter().find(|(name, is_set)| *is_set && !allowed.contains(name)) {
            Some((name, _)) => Err(Error::invalid(format!("{format} files have no setting `{name}`"))),
            None => Ok(()),
        }
    }
}
