//! GRAIL recordio: `.grail-rio`, `.grail-rpk`, `.grail-rpk-gz`.
//!
//! Version 2 files consist of blocks of items, split into 32 KiB chunks with a checksum each. They
//! have a header of typed pairs, transformers (compression, encryption) and an optional trailer.
//! Version 1 files, now legacy, consist of records of one item, or packed records of many.
//!
//! Besides [`FORMAT`], which the rest of the library uses, there are the typed [`Writer`],
//! [`LegacyWriter`] and [`LegacyPackedWriter`], and the [`Scanner`], which behaves like the
//! original's scanners. `docs/formats/grail.md` describes the byte layout.

mod block;
mod cache;
#[cfg(any(feature = "deflate", feature = "zstd"))]
mod compression;
#[cfg(feature = "encryption")]
mod encryption;
#[cfg(feature = "deflate")]
mod flate;
mod header;
#[doc(hidden)]
pub mod layout;
#[doc(hidden)]
pub mod legacy;
mod legacy_write;
mod options;
mod output;
mod pipeline;
mod read;
mod scan;
mod scanner;
mod segments;
mod transform;
mod write;
#[cfg(feature = "zstd")]
mod zstd;

#[cfg(test)]
#[cfg(all(feature = "deflate", feature = "encryption", feature = "zstd"))]
mod tests;

pub use header::{Header, TRAILER_KEY, TRANSFORMER_KEY};
pub use layout::required_space;
pub use legacy_write::{LegacyPackedWriter, LegacyWriter, PackedEvent};
pub use options::{OpenOptions, Version, WriteOptions};
pub use scanner::Scanner;
pub use transform::{Registry, Transform, Transformer};
pub use write::Writer;

use super::{
    Capabilities, Content, Format, Labels, Likeness, RecordReader, RecordWriter, Scan, Segments, Setting,
    SettingValue,
};
use crate::base::{Result, Value};
use crate::io::{Source, Window};
use legacy::RecordKind;
use std::path::Path;
use std::sync::Arc;

/// GRAIL recordio, both versions.
#[derive(Debug, Clone, Copy)]
pub struct Grail;

/// The only value of [`Grail`].
pub static FORMAT: Grail = Grail;

impl Format for Grail {
    fn id(&self) -> &'static str {
        "grail"
    }

    fn name(&self) -> &'static str {
        "GRAIL recordio"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["grail-rio", "grail-rpk", "grail-rpk-gz"]
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            checksummed: true,
            random_access: false,
            streamable: true,
            keys: false,
            labels: Labels::None,
            wants_count: false,
            fixed_size: false,
            // A block of one item: 2^32 - 1 chunks, minus the item's count and size.
            max_record: u32::MAX as u64 * layout::MAX_PAYLOAD as u64 - 11,
        }
    }

    fn detect(&self, head: &[u8], _length: Option<u64>) -> Likeness {
        match head.first_chunk() {
            Some(&layout::HEADER_MAGIC) => Likeness::Certain,
            Some(&magic) if RecordKind::from_magic(magic).is_some() => Likeness::Certain,
            _ => Likeness::No,
        }
    }

    fn version(&self, head: &[u8]) -> &'static str {
        version(head).name()
    }

    /// Version, transformers and the header's own pairs, and a trailer if one was found.
    fn options_like(
        &self,
        head: &[u8],
        contents: &[Content],
        open: &super::OpenOptions,
    ) -> super::WriteOptions {
        let OpenOptions { registry, legacy_transform } = open.own();
        let version = version(head);
        let mut own = WriteOptions { version, registry, ..WriteOptions::default() };
        for content in contents {
            match content {
                Content::Header(pairs) => {
                    for (key, value) in pairs {
                        match (key, value) {
                            (key, _) if key == header::TRAILER_KEY => {}
                            (key, Value::Text(entry)) if key == header::TRANSFORMER_KEY => {
                                own.transformers.push(Transform::from(entry.to_string().as_str()));
                            }
                            (key, value) => own.header.push((key.clone(), value.clone())),
                        }
                    }
                }
                Content::Trailer(_) => own.trailer = true,
                _ => {}
            }
        }
        if version == Version::LegacyPacked {
            own.transformers.extend(legacy_transform);
        }
        super::WriteOptions::default().with(own)
    }

    fn options_for(&self, open: &super::OpenOptions) -> super::WriteOptions {
        let OpenOptions { registry, .. } = open.own();
        super::WriteOptions::default().with(WriteOptions::default().with_registry(registry))
    }

    fn inherit(&self, options: &mut super::WriteOptions, like: &super::WriteOptions) {
        let (mut own, like): (WriteOptions, WriteOptions) = (options.own(), like.own());
        if own.header.is_empty() {
            own.header = like.header;
        }
        if own.transformers.is_empty() {
            own.transformers = like.transformers;
        }
        options.set(own);
    }

    fn open_settings(&self) -> &'static [Setting] {
        options::OPEN
    }

    fn set_open(&self, options: &mut super::OpenOptions, name: &str, value: &SettingValue) -> Result<()> {
        options::set_open(options, name, value)
    }

    fn write_settings(&self) -> &'static [Setting] {
        options::WRITE
    }

    fn set_write(&self, options: &mut super::WriteOptions, name: &str, value: &SettingValue) -> Result<()> {
        options::set_write(options, name, value)
    }

    fn open(&self, source: Arc<dyn Source>, options: &super::OpenOptions) -> Result<Box<dyn RecordReader>> {
        Ok(Box::new(read::Reader::open(source, options)?))
    }

    fn create(&self, path: &Path, options: &super::WriteOptions) -> Result<Box<dyn RecordWriter>> {
        let kind = match options.own::<WriteOptions>().version {
            Version::Two => return Ok(Box::new(write::FileWriter::create(path, options)?)),
            Version::LegacyUnpacked => RecordKind::Unpacked,
            Version::LegacyPacked => RecordKind::Packed,
        };
        Ok(Box::new(legacy_write::LegacyFileWriter::create(kind, path, options)?))
    }

    fn scan(&self, window: Window, options: &super::OpenOptions) -> Result<Box<dyn Scan>> {
        Ok(Box::new(scan::GrailScan::new(window, options)?))
    }

    fn segments(
        &self,
        source: &Arc<dyn Source>,
        options: &super::OpenOptions,
        size: u64,
    ) -> Result<Option<Box<dyn Segments>>> {
        Ok(segments::GrailSegments::cut(source, options, size)?
            .map(|segments| Box::new(segments) as Box<dyn Segments>))
    }
}

/// The version of a file that begins like this.
fn version(head: &[u8]) -> Version {
    match head.first_chunk().copied().map(RecordKind::from_magic) {
        Some(Some(RecordKind::Unpacked)) => Version::LegacyUnpacked,
        Some(Some(RecordKind::Packed)) => Version::LegacyPacked,
        _ => Version::Two,
    }
}
