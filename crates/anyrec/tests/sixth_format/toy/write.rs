//! Writing records one after the other.

use super::layout::{Header, MAGIC};
use anyrec::format::{RecordWriter, WriteOptions, Written};
use anyrec::io::{AtomicFile, FileSet};
use anyrec::{Error, Result, Tags};
use std::path::Path;

pub struct Writer {
    file: AtomicFile,
    records: u64,
    bytes: u64,
}

impl Writer {
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        let mut file = AtomicFile::create(path, options.overwrite, options.durability)?;
        file.append(MAGIC)?;
        Ok(Writer { file, records: 0, bytes: MAGIC.len() as u64 })
    }
}

impl RecordWriter for Writer {
    fn append(&mut self, record: &[u8], _tags: &Tags) -> Result<u64> {
        let length = u32::try_from(record.len()).map_err(|_| Error::invalid("the record is too long"))?;
        let header = Header { length, checksum: crc32c::crc32c(record) }.encode();
        self.file.append(&header)?;
        self.file.append(record)?;
        self.bytes += (header.len() + record.len()) as u64;
        self.records += 1;
        Ok(self.records - 1)
    }

    fn complete(self: Box<Self>) -> Result<(Written, FileSet)> {
        let files = FileSet::of(self.file.complete()?);
        Ok((Written::new(self.records, self.bytes, Vec::new()), files))
    }
}
