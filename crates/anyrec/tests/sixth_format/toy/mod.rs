//! A format of length-prefixed records, as somebody outside this crate would write it.

mod layout;
mod read;
mod scan;
mod write;

use anyrec::Result;
use anyrec::format::{
    Capabilities, Format, Likeness, OpenOptions, RecordReader, RecordWriter, Scan, WriteOptions,
};
use anyrec::io::{Source, Window};
use std::path::Path;
use std::sync::Arc;

#[derive(Debug)]
pub struct Toy;

pub static FORMAT: Toy = Toy;

impl Format for Toy {
    fn id(&self) -> &'static str {
        "toy"
    }

    fn name(&self) -> &'static str {
        "Toy records"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["toy"]
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.checksummed = true;
        capabilities.max_record = u32::MAX.into();
        capabilities
    }

    fn detect(&self, head: &[u8], _length: Option<u64>) -> Likeness {
        if head.starts_with(layout::MAGIC) { Likeness::Certain } else { Likeness::No }
    }

    fn open(&self, source: Arc<dyn Source>, options: &OpenOptions) -> Result<Box<dyn RecordReader>> {
        Ok(Box::new(read::Reader::new(source, options)))
    }

    fn create(&self, path: &Path, options: &WriteOptions) -> Result<Box<dyn RecordWriter>> {
        Ok(Box::new(write::Writer::create(path, options)?))
    }

    fn scan(&self, window: Window, options: &OpenOptions) -> Result<Box<dyn Scan>> {
        Ok(Box::new(scan::ToyScan::new(window, options)))
    }
}
