//! A golden manifest that knows which of its entries a test has looked at.
//!
//! The manifests say what the original implementations read from the golden files. A value counts
//! as used once it is taken out as a number, string or whole subtree; [`Manifest::finish`] fails
//! with the list of values nobody took. So a new entry, or one that a test forgot, is a failure.

use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A format's golden manifest.
pub struct Manifest {
    root: Value,
    folder: PathBuf,
    used: RefCell<BTreeSet<String>>,
}

/// A value in a manifest, with its address.
#[derive(Clone)]
pub struct Entry<'a> {
    manifest: &'a Manifest,
    value: &'a Value,
    /// JSON pointer of the value.
    pub address: String,
}

/// The folder of a format's golden files.
pub fn golden(format: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(format).join("good")
}

impl Manifest {
    pub fn load(format: &str) -> Manifest {
        let folder = golden(format);
        let text = std::fs::read(folder.join("manifest.json")).unwrap();
        Manifest { root: serde_json::from_slice(&text).unwrap(), folder, used: RefCell::default() }
    }

    /// Path of a golden file.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn root(&self) -> Entry<'_> {
        Entry { manifest: self, value: &self.root, address: String::new() }
    }

    /// Fails unless every leaf below `sections` (top-level keys) was used; all sections of the
    /// manifest must be named by the tests together, see [`Manifest::assert_sections`].
    pub fn finish(&self, sections: &[&str]) {
        let mut unused = Vec::new();
        for section in sections {
            let value = self.root.get(section).unwrap_or_else(|| panic!("no section {section}"));
            self.collect_unused(value, format!("/{section}"), &mut unused);
        }
        assert!(
            unused.is_empty(),
            "{} manifest values not exercised, e.g. {:#?}",
            unused.len(),
            &unused[..unused.len().min(20)]
        );
    }

    /// Fails if the manifest has top-level sections other than these.
    pub fn assert_sections(&self, sections: &[&str]) {
        let known: BTreeSet<&str> = sections.iter().copied().collect();
        let present: BTreeSet<&str> = self.root.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(present, known, "the sections of the manifest and those the tests cover");
    }

    fn collect_unused(&self, value: &Value, address: String, unused: &mut Vec<String>) {
        if self.used.borrow().contains(&address) {
            return;
        }
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (key, child) in map {
                    self.collect_unused(child, format!("{address}/{key}"), unused);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (at, child) in items.iter().enumerate() {
                    self.collect_unused(child, format!("{address}/{at}"), unused);
                }
            }
            _ => unused.push(address),
        }
    }
}

impl<'a> Entry<'a> {
    /// The value of `key`, which must be there.
    pub fn get(&self, key: &str) -> Entry<'a> {
        self.find(key).unwrap_or_else(|| panic!("{} has no {key}", self.address))
    }

    /// The value of `key`, if it is there.
    pub fn find(&self, key: &str) -> Option<Entry<'a>> {
        let value = self.value.get(key)?;
        Some(Entry { manifest: self.manifest, value, address: format!("{}/{key}", self.address) })
    }

    /// The elements of an array.
    pub fn items(&self) -> Vec<Entry<'a>> {
        let items = self.value.as_array().unwrap_or_else(|| panic!("{} is no array", self.address));
        if items.is_empty() {
            self.note();
        }
        let element =
            |(at, value)| Entry { manifest: self.manifest, value, address: format!("{}/{at}", self.address) };
        items.iter().enumerate().map(element).collect()
    }

    /// The whole subtree, now used.
    pub fn json(&self) -> &'a Value {
        self.note();
        self.value
    }

    pub fn str(&self) -> &'a str {
        self.json().as_str().unwrap_or_else(|| panic!("{} is no string", self.address))
    }

    pub fn u64(&self) -> u64 {
        self.json().as_u64().unwrap_or_else(|| panic!("{} is no u64", self.address))
    }

    pub fn bool(&self) -> bool {
        self.json().as_bool().unwrap_or_else(|| panic!("{} is no bool", self.address))
    }

    /// The bytes of a hex string.
    pub fn hex(&self) -> Vec<u8> {
        hex::decode(self.str()).unwrap_or_else(|_| panic!("{} is no hex", self.address))
    }

    /// A pair `[length, sha256]`, as the manifests describe records.
    pub fn digest(&self) -> (u64, String) {
        serde_json::from_value(self.json().clone())
            .unwrap_or_else(|_| panic!("{} is no [length, sha256]", self.address))
    }

    /// Marks a value that describes the making of the file, not the file, as seen.
    pub fn informational(&self) {
        self.note();
    }

    fn note(&self) {
        self.manifest.used.borrow_mut().insert(self.address.clone());
    }
}

/// `[length, sha256]` of some bytes.
pub fn digest(data: &[u8]) -> (u64, String) {
    use sha2::Digest;
    (data.len() as u64, hex::encode(sha2::Sha256::digest(data)))
}
