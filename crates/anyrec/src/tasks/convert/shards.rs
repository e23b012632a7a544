//! The destination of records: one writer after the other.

use super::{Conversion, ConvertOptions, Shards};
use crate::base::{ElementType, Error, Result, Tags, shown};
use crate::format::{Format, LabelWriter, Notice, RecordWriter, WriteOptions};
use crate::io::FileSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Complete files that are kept open, so that a kill leaves nothing behind; further files are
/// closed.
const MOST_OPEN: usize = 128;

/// The largest number of files that may be requested for fewer records. The rest of them are empty.
const MOST_EMPTY: u64 = 10_000;

/// Writes records to one file, or to several, according to [`Shards`].
pub(super) struct ShardWriter<'a> {
    output: &'a Path,
    to: &'static dyn Format,
    write: &'a WriteOptions,
    shards: Shards,
    /// Records per shard, if their number is given.
    per_shard: u64,
    writer: Option<(PathBuf, Box<dyn RecordWriter>)>,
    /// (records, bytes of records) in the current shard.
    in_shard: (u64, u64),
    labels: Option<LabelWriter>,
    /// The complete files, which are published together at the end.
    files: FileSet,
    pub(super) result: Conversion,
}

impl<'a> ShardWriter<'a> {
    /// Creates a sink for `total` records; the number is needed only if shards are counted.
    pub(super) fn new(
        output: &'a Path,
        to: &'static dyn Format,
        write: &'a WriteOptions,
        options: &ConvertOptions,
        total: impl FnOnce() -> Result<u64>,
    ) -> Result<Self> {
        let per_shard = match options.shards {
            Shards::Count(0) => return Err(Error::invalid("an output cannot be cut into 0 files")),
            Shards::Count(shards) => {
                let total = total()?;
                if shards > total.max(MOST_EMPTY) {
                    return Err(Error::invalid(format!("{total} records cannot be cut into {shards} files")));
                }
                total.div_ceil(shards)
            }
            _ => 0,
        };
        let mut sink = ShardWriter {
            output,
            to,
            write,
            shards: options.shards,
            per_shard,
            writer: None,
            in_shard: (0, 0),
            labels: match &options.label_output {
                Some(path) => {
                    let dtype = options.label_dtype.unwrap_or(ElementType::U8);
                    Some(LabelWriter::create(path, dtype, write)?)
                }
                None => None,
            },
            files: FileSet::default(),
            result: Conversion::default(),
        };
        // An impossible output is refused before anything is read.
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
            let (written, files) = writer.complete()?;
            self.files.append(files);
            if self.files.len() > MOST_OPEN {
                self.files = std::mem::take(&mut self.files).close_files()?;
            }
            for notice in &written.notices {
                // Shards tend to have the same notices.
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

    /// Completes all files. They are published together with the set.
    pub(super) fn complete(mut self) -> Result<(Conversion, FileSet)> {
        // Requested shards are written even if the records run out, and so is an empty output.
        let promised = match self.shards {
            Shards::Count(count) => count,
            Shards::One | Shards::Bytes(_) => 1,
        };
        self.close_shard()?;
        while (self.result.outputs.len() as u64) < promised {
            self.writer()?;
            self.close_shard()?;
        }
        if let Some(labels) = self.labels.take() {
            let (path, written, files) = labels.complete()?;
            self.files.append(files);
            self.result.outputs.push((path, written));
        }
        let next = self.shard_path(promised.max(self.result.outputs.len() as u64));
        if matches!(self.shards, Shards::Bytes(_)) && next.exists() {
            self.result.notices.push(Notice::new(format!(
                "{} is there too, and is not of these files: remove it if it is of an older set",
                shown(&next)
            )));
        }
        Ok((self.result, self.files))
    }
}
