//! Where the records go: one writer after the other.

use super::labels::LabelWriter;
use super::{Conversion, ConvertOptions, Shards};
use crate::error::{Error, Result};
use crate::format::{Format, RecordWriter, Tags, WriteOptions};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Writes records to one file, or to several as [`Shards`] says.
pub(super) struct Sink<'a> {
    output: &'a Path,
    to: &'static dyn Format,
    write: &'a WriteOptions,
    shards: Shards,
    /// Records a shard, where their number is given.
    per_shard: u64,
    writer: Option<(PathBuf, Box<dyn RecordWriter>)>,
    /// (records, bytes of records) in the current shard.
    in_shard: (u64, u64),
    labels: Option<LabelWriter>,
    pub(super) result: Conversion,
}

impl<'a> Sink<'a> {
    /// A sink for `total` records; the number is needed only where shards are counted.
    pub(super) fn new(
        output: &'a Path,
        to: &'static dyn Format,
        write: &'a WriteOptions,
        options: &ConvertOptions,
        total: impl FnOnce() -> Result<u64>,
    ) -> Result<Self> {
        let per_shard = match options.shards {
            Shards::Count(0) => return Err(Error::invalid("an output cannot be cut into 0 files")),
            Shards::Count(shards) => total()?.div_ceil(shards),
            _ => 0,
        };
        let mut sink = Sink {
            output,
            to,
            write,
            shards: options.shards,
            per_shard,
            writer: None,
            in_shard: (0, 0),
            labels: LabelWriter::create(options)?,
            result: Conversion::default(),
        };
        // An output that cannot be is refused before anything is read.
        sink.writer()?;
        Ok(sink)
    }

    pub(super) fn append(&mut self, record: &[u8], tags: &Tags) -> Result<()> {
        let size = record.len() as u64;
        let full = match self.shards {
            Shards::One => false,
            Shards::Count(_) => self.in_shard.0 >= self.per_shard,
            Shards::Bytes(limit) => self.in_shard.0 > 0 && self.in_shard.1.saturating_add(size) > limit,
        };
        if full {
            self.close_shard()?;
        }
        let stored = match &mut self.labels {
            Some(labels) => {
                labels.append(tags.label.as_ref())?;
                Tags { label: None, ..tags.clone() }
            }
            None => tags.clone(),
        };
        self.writer()?.append(record, &stored)?;
        self.in_shard = (self.in_shard.0 + 1, self.in_shard.1.saturating_add(size));
        self.result.records += 1;
        Ok(())
    }

    fn writer(&mut self) -> Result<&mut dyn RecordWriter> {
        if self.writer.is_none() {
            let path = self.shard_path(self.result.outputs.len() as u64);
            let writer = self.to.create(&path, self.write)?;
            self.writer = Some((path, writer));
        }
        match &mut self.writer {
            Some((_, writer)) => Ok(&mut **writer),
            None => Err(Error::invalid("no output")),
        }
    }

    fn close_shard(&mut self) -> Result<()> {
        if let Some((path, writer)) = self.writer.take() {
            let written = writer.finish()?;
            for notice in &written.notices {
                // Shards tend to say the same thing.
                if !self.result.notices.contains(notice) {
                    self.result.notices.push(notice.clone());
                }
            }
            self.result.outputs.push((path, written));
            self.in_shard = (0, 0);
        }
        Ok(())
    }

    fn shard_path(&self, number: u64) -> PathBuf {
        let suffix = match self.shards {
            Shards::One => return self.output.to_owned(),
            Shards::Count(count) => format!("-{number:05}-of-{count:05}"),
            Shards::Bytes(_) => format!("-{number:05}"),
        };
        let mut name = OsString::from(self.output.file_stem().unwrap_or_default());
        name.push(suffix);
        if let Some(extension) = self.output.extension() {
            name.push(".");
            name.push(extension);
        }
        self.output.with_file_name(name)
    }

    pub(super) fn finish(mut self) -> Result<Conversion> {
        // Promised shards appear even if the records ran out, and so does an empty output.
        let promised = match self.shards {
            Shards::Count(count) => count,
            Shards::One | Shards::Bytes(_) => 1,
        };
        self.close_shard()?;
        while (self.result.outputs.len() as u64) < promised {
            self.writer()?;
            self.close_shard()?;
        }
        if let Some(labels) = self.labels {
            let (path, written) = labels.finish()?;
            self.result.outputs.push((path, written));
        }
        Ok(self.result)
    }
}
