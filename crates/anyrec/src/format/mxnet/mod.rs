//! MXNet RecordIO: `.rec` files with their `.idx` and `.lst` companions.
//!
//! `docs/formats/mxnet.md` describes the bytes. [`FORMAT`] is the format as the rest of the library
//! uses it; [`Reader`], [`Writer`] and [`RecordScan`] are its concrete types. Related to them are
//! the index file ([`Index`]), the header of image records ([`ImageHeader`]), InsightFace training
//! sets ([`InsightFace`]), list files ([`parse_list`]) and MXNet's way of dividing a file among
//! workers ([`split_by_bytes`]).

mod companions;
mod image_header;
mod image_survey;
mod index_file;
mod insightface;
mod layout;
mod list_file;
mod options;
mod read;
mod rebuild;
mod scan;
mod split;
mod write;

pub use image_header::{ImageHeader, LabelWidth};
pub use image_survey::{guess_label_width, guess_tags, looks_like_image_record};
pub use index_file::{Index, KeyType, LOST_OFFSET, append_line};
pub use insightface::{FaceImage, Identity, InsightFace, Property};
pub use layout::{MAGIC, MAX_RECORD, PartHeader, PartKind};
pub use list_file::{ListEntry, list_lines, parse_list, write_list};
pub use options::{IndexFile, OpenOptions, WriteOptions};
pub use read::Reader;
pub use rebuild::{KeySource, Rebuilt};
pub use scan::RecordScan;
pub use split::{byte_range, split_by_bytes, split_by_records};
pub use write::Writer;

use super::{
    BuiltIndex, Capabilities, Format, Labels, Likeness, Notice, RecordReader, RecordWriter, Scan, Setting,
    SettingValue,
};
use crate::base::{PositionList, Result, Tags};
use crate::io::{Source, Window};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// MXNet RecordIO.
#[derive(Debug, Clone, Copy)]
pub struct Mxnet;

/// The only value of [`Mxnet`].
pub static FORMAT: Mxnet = Mxnet;

impl Format for Mxnet {
    fn id(&self) -> &'static str {
        "mxnet"
    }

    fn name(&self) -> &'static str {
        "MXNet RecordIO"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["rec"]
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            checksummed: false,
            // Only with an index file, and not every file has one.
            random_access: false,
            streamable: true,
            keys: true,
            labels: Labels::InRecord,
            wants_count: false,
            fixed_size: false,
            max_record: MAX_RECORD,
        }
    }

    /// The magic and a first part that fits the file are conclusive. The magic alone may be the
    /// beginning of a truncated file. An empty file could be of any format; its name decides.
    fn detect(&self, head: &[u8], length: Option<u64>) -> Likeness {
        match PartHeader::at_start_of(head) {
            Some(part) if part.kind.begins_record() && length.is_none_or(|length| part.size() <= length) => {
                Likeness::Certain
            }
            _ if head.starts_with(&layout::MAGIC_BYTES) => Likeness::Possible,
            _ => Likeness::No,
        }
    }

    fn open(&self, source: Arc<dyn Source>, options: &super::OpenOptions) -> Result<Box<dyn RecordReader>> {
        Ok(Box::new(Reader::open(source, options)?))
    }

    fn create(&self, path: &Path, options: &super::WriteOptions) -> Result<Box<dyn RecordWriter>> {
        Ok(Box::new(Writer::create(path, options)?))
    }

    fn scan(&self, window: Window, options: &super::OpenOptions) -> Result<Box<dyn Scan>> {
        Ok(Box::new(RecordScan::new(window, options)))
    }

    fn tags(&self, record: &[u8]) -> Tags {
        guess_tags(record)
    }

    fn index_file_for(&self, data: &Path) -> Option<PathBuf> {
        Some(data.with_extension("idx"))
    }

    fn build_index(
        &self,
        scan: &mut dyn Scan,
        output: &Path,
        options: &super::OpenOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<BuiltIndex> {
        Index::rebuild(scan, progress)?.into_file(output, options.access)
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

    /// Checks whether the index file matches the positions of the records.
    fn check_companions(
        &self,
        source: &Arc<dyn Source>,
        options: &super::OpenOptions,
        positions: &PositionList,
    ) -> Result<Vec<Notice>> {
        companions::check(source.as_ref(), options, positions)
    }
}
