//! GRAIL recordio: `.grail-rio`, `.grail-rpk`, `.grail-rpk-gz`.
//!
//! Version 2 files are blocks of items, cut into chunks of 32 KiB with a checksum each, with a
//! header of typed pairs, transformers (compression, encryption) and an optional trailer.
//! Version 1 files, legacy by now, are records of one item or packed ones of many.
//!
//! Besides [`FORMAT`], through which all of this library speaks, there are the typed [`Writer`],
//! [`LegacyWriter`] and [`LegacyPackedWriter`], and the [`Scanner`], which does what the
//! original's scanners do. The byte layout is described in `docs/formats/grail.md`.

mod block;
mod cache;
#[cfg(any(feature = "deflate", feature = "zstd"))]
mod compression;
#[cfg(feature = "encryption")]
mod encryption;
#[cfg(feature = "deflate")]
mod flate;
mod header;
pub mod layout;
pub mod legacy;
mod legacy_write;
mod parts;
mod pipeline;
mod read;
mod scan;
mod scanner;
mod sink;
pub mod transform;
mod write;
#[cfg(feature = "zstd")]
mod zstd;

#[cfg(test)]
#[cfg(all(feature = "deflate", feature = "encryption", feature = "zstd"))]
mod tests;

pub use header::{Header, TRAILER_KEY, TRANSFORMER_KEY};
pub use layout::required_space;
pub use legacy_write::{LegacyPackedWriter, LegacyWriter, PackedEvent};
pub use scanner::Scanner;
pub use write::Writer;

use super::{
    Capabilities, Content, Format, Likeness, OpenOptions, Parts, RecordReader, RecordWriter, Scan, Value,
    WriteOptions,
};
use crate::error::{Error, Result};
use crate::io::{ReadAt, Window};
use legacy::RecordKind;
use std::path::Path;
use std::sync::Arc;

/// GRAIL recordio, both versions.
#[derive(Debug, Clone, Copy)]
pub struct Grail;

/// The one [`Grail`] there is.
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
            labels: false,
            fixed_size: false,
            // A block of one item: 2^32 - 1 chunks, less the item's count and size.
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
        match head.first_chunk().copied().map(RecordKind::from_magic) {
            Some(Some(RecordKind::Unpacked)) => "1-unpacked",
            Some(Some(RecordKind::Packed)) => "1-packed",
            _ => "2",
        }
    }

    /// Version, transformers and the header's own pairs; a trailer if one was met.
    fn options_like(&self, head: &[u8], contents: &[Content]) -> WriteOptions {
        let mut options =
            WriteOptions { version: Some(self.version(head).to_owned()), ..WriteOptions::default() };
        for content in contents {
            match content {
                Content::Header(pairs) => {
                    for (key, value) in pairs {
                        match (key, value) {
                            (key, _) if key == header::TRAILER_KEY => {}
                            (key, Value::Text(entry)) if key == header::TRANSFORMER_KEY => {
                                options.transformers.push(entry.to_string());
                            }
                            (key, value) => options.header.push((key.clone(), value.clone())),
                        }
                    }
                }
                Content::Trailer(_) => options.trailer = true,
                _ => {}
            }
        }
        options
    }

    fn open(&self, source: Arc<dyn ReadAt>, options: &OpenOptions) -> Result<Box<dyn RecordReader>> {
        Ok(Box::new(read::Reader::open(source, options)?))
    }

    fn create(&self, path: &Path, options: &WriteOptions) -> Result<Box<dyn RecordWriter>> {
        Ok(match options.version.as_deref() {
            None | Some("2") => Box::new(write::FileWriter::create(path, options)?),
            Some("1-unpacked") => {
                Box::new(legacy_write::LegacyFileWriter::create(RecordKind::Unpacked, path, options)?)
            }
            Some("1-packed") => {
                Box::new(legacy_write::LegacyFileWriter::create(RecordKind::Packed, path, options)?)
            }
            Some(other) => {
                return Err(Error::invalid(format!("GRAIL files have no version {other:?}"))
                    .with_hint("the versions are \"2\", \"1-unpacked\" and \"1-packed\""));
            }
        })
    }

    fn scan(&self, window: Window, options: &OpenOptions) -> Result<Box<dyn Scan>> {
        Ok(Box::new(scan::GrailScan::new(window, options)?))
    }

    fn cut(
        &self,
        source: &Arc<dyn ReadAt>,
        options: &OpenOptions,
        size: u64,
    ) -> Result<Option<Box<dyn Parts>>> {
        Ok(parts::GrailParts::cut(source, options, size)?.map(|parts| Box::new(parts) as Box<dyn Parts>))
    }
}
