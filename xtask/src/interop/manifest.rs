//! The manifest of an exchange, `manifest.jsonl`: one line per file. `interop/README.md` lists the
//! fields; each format's entry is defined in its own module.

use crate::run::Failure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt::Write;
use std::path::Path;

const NAME: &str = "manifest.jsonl";

/// A record: its length and SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest(u64, String);

impl Digest {
    pub fn of(record: &[u8]) -> Self {
        Digest(record.len() as u64, sha256(record))
    }

    pub fn from_parts(length: u64, sha256: &str) -> Self {
        Digest(length, sha256.to_owned())
    }
}

pub fn sha256(data: &[u8]) -> String {
    hex::encode(Sha256::digest(data))
}

/// The contents of a part of a file: `count` records from `first` on, which is missing if there are
/// none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    pub n: u64,
    pub start: u64,
    pub limit: u64,
    /// MXNet: whether records are distributed by the index file instead of by bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indexed: Option<bool>,
    pub first: Option<u64>,
    pub count: u64,
}

/// All entries of a folder's manifest.
pub fn load<E: DeserializeOwned>(folder: &Path) -> Result<Vec<E>, Failure> {
    let path = folder.join(NAME);
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| failed(&error))).collect()
}

/// Writes a folder's manifest.
pub fn save<E: Serialize>(folder: &Path, entries: &[E]) -> Result<(), Failure> {
    let path = folder.join(NAME);
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", path.display()));
    let mut text = String::new();
    for entry in entries {
        let line = serde_json::to_string(entry).map_err(|error| failed(&error))?;
        writeln!(text, "{line}").map_err(|error| failed(&error))?;
    }
    std::fs::write(&path, text).map_err(|error| failed(&error))
}
