//! FFRecord: a table of checksums and offsets, then the samples.
//!
//! The format has no magic number and no version field, but it has checksums over the table and
//! over every sample. [`Reader`] and [`Writer`] are its concrete types, and [`packed_folder`]
//! handles files that hold a directory tree. `docs/formats/ffrecord.md` describes the bytes.
//!
//! Empty samples begin at the same byte as the sample after them, so their positions are equal.

mod directory;
mod layout;
mod mend;
mod options;
pub mod packed_folder;
mod python_text;
mod read;
mod scan;
mod segments;
mod tree;
mod tree_pickle;
mod write;

pub use directory::{directory_files, part_files};
pub use options::{Version, WriteOptions};
pub use packed_folder::PackedFolder;
pub use read::Reader;
pub use write::Writer;

use super::{
    Capabilities, Format, Labels, Likeness, Mended, OpenOptions, RecordReader, RecordWriter, Scan, Segments,
    Setting, SettingValue,
};
use crate::base::{PositionList, Result};
use crate::io::{Source, Window};
use bytes::Bytes;
use layout::{HEADER, Table, TableState};
use std::path::Path;
use std::sync::Arc;

/// The FFRecord format.
pub static FORMAT: FfRecord = FfRecord;

/// The FFRecord format; see [`FORMAT`].
#[derive(Debug, Clone, Copy)]
pub struct FfRecord;

/// The largest credible sample count of a stream of unknown length.
const PLAUSIBLE_COUNT: u64 = 1 << 32;

impl Format for FfRecord {
    fn id(&self) -> &'static str {
        "ffrecord"
    }

    fn name(&self) -> &'static str {
        "FFRecord"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["ffr"]
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            checksummed: true,
            random_access: true,
            // The table comes first, and a scan keeps nothing else in memory.
            streamable: true,
            keys: false,
            labels: Labels::None,
            wants_count: true,
            fixed_size: false,
            max_record: i64::MAX.unsigned_abs() - HEADER,
        }
    }

    fn detect(&self, head: &[u8], length: Option<u64>) -> Likeness {
        let Ok(table) = Table::parse(Bytes::copy_from_slice(head)) else {
            return Likeness::No;
        };
        let fits = match length {
            Some(length) => table.length() <= length,
            None => table.count() <= PLAUSIBLE_COUNT,
        };
        let begin_fits = table.offset(0).is_none_or(|begin| {
            u64::try_from(begin)
                .is_ok_and(|begin| table.length() <= begin && begin <= length.unwrap_or(u64::MAX))
        });
        match fits && begin_fits {
            true if table.check() == TableState::Verified => Likeness::Certain,
            true => Likeness::Possible,
            false => Likeness::No,
        }
    }

    /// `"old"` for files whose table has no checksum.
    fn version(&self, head: &[u8]) -> &'static str {
        if head.starts_with(&[0; 4]) { "old" } else { "" }
    }

    fn open(&self, source: Arc<dyn Source>, options: &OpenOptions) -> Result<Box<dyn RecordReader>> {
        Ok(Box::new(Reader::open(source, options)?))
    }

    fn create(&self, path: &Path, options: &super::WriteOptions) -> Result<Box<dyn RecordWriter>> {
        Ok(Box::new(Writer::create(path, options)?))
    }

    fn scan(&self, window: Window, options: &OpenOptions) -> Result<Box<dyn Scan>> {
        Ok(Box::new(scan::FfRecordScan::new(window, options)))
    }

    fn mend(
        &self,
        source: &Arc<dyn Source>,
        options: &OpenOptions,
        positions: &PositionList,
        rewrite: bool,
    ) -> Result<Mended> {
        mend::mend(source, options, positions, rewrite)
    }

    fn write_settings(&self) -> &'static [Setting] {
        options::WRITE
    }

    fn set_write(&self, options: &mut super::WriteOptions, name: &str, value: &SettingValue) -> Result<()> {
        options::set_write(options, name, value)
    }

    fn segments(
        &self,
        source: &Arc<dyn Source>,
        options: &OpenOptions,
        size: u64,
    ) -> Result<Option<Box<dyn Segments>>> {
        Ok(segments::FfRecordSegments::cut(source, options, size)?
            .map(|segments| Box::new(segments) as Box<dyn Segments>))
    }
}
