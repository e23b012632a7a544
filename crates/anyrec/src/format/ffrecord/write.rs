//! Writing FFRecord files.
//!
//! The table stands before the samples, so its size must be known before the first sample can
//! have its place. Where the caller knows the number of samples ([`WriteOptions::count`]), room
//! for the table is left at once and the samples go straight to their places.
//!
//! Where the number is unknown, samples are written from byte 12 on, and [`Writer::finish`] moves
//! them up by the table's length, in place and from the end, before it writes the table. A gap
//! for a table of some guessed size would save that second pass, and the original could read
//! it; but then the same samples would make different files, and every small file would carry
//! the gap. So the file is in both cases byte for byte what the original writes, at the price
//! of one more pass over the data for those who do not know the number.
//!
//! Memory: 12 bytes a sample.

use super::layout::{HEADER, encode_table, table_length};
use super::options::{self as own, Version};
use crate::base::checksum::{crc32, crc32_after};
use crate::base::memory::zeroed;
use crate::base::{Error, Result, Tags};
use crate::format::writer::DroppedTags;
use crate::format::{RecordWriter, WriteOptions, Written};
use crate::io::{AtomicFile, FileSet};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes copied at a time.
const CHUNK: usize = 1 << 20;

/// Writes an FFRecord file.
///
/// ```
/// use anyrec::format::{WriteOptions, ffrecord::Writer};
///
/// # fn main() -> anyrec::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("one.ffr");
/// let mut options = WriteOptions::default();
/// options.count = Some(1);
/// let mut writer = Writer::create(&path, &options)?;
/// writer.append(b"hello")?;
/// let error = writer.append(b"world").unwrap_err();
/// assert_eq!(error.message(), "Exceed total number of samples: 1");
/// assert_eq!(writer.finish()?.bytes, 12 + 12 + 5);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Writer {
    file: AtomicFile,
    count: Option<u64>,
    /// The metadata checksum is left 0, as the old version did.
    unprotected: bool,
    checksums: Vec<u32>,
    /// Where each sample begins, counted from the first one.
    offsets: Vec<u64>,
    /// Bytes of samples written.
    size: u64,
    dropped: DroppedTags,
    /// Something failed half-way through a sample: what is in the file is no longer known.
    broken: bool,
}

impl Writer {
    /// Starts a file. With [`WriteOptions::count`] exactly so many samples must be appended.
    /// [`Version::Old`] writes files without metadata checksum.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for settings that FFRecord does not have,
    /// [`Exists`](crate::ErrorKind::Exists), or what the system says.
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        let unprotected = options.only::<own::WriteOptions>()?.version == Version::Old;
        let begin = table_length(options.count.unwrap_or(0)).ok_or_else(|| {
            Error::invalid(format!("an FFRecord file cannot hold {} samples", options.count.unwrap_or(0)))
        })?;
        let mut file = AtomicFile::create(path, options.overwrite, options.durability)?;
        // The table's, which `finish` fills in.
        file.leave_room(begin)?;
        Ok(Writer {
            file,
            count: options.count,
            unprotected,
            checksums: Vec::new(),
            offsets: Vec::new(),
            size: 0,
            dropped: DroppedTags::default(),
            broken: false,
        })
    }

    /// The number of samples that was announced.
    pub fn count(&self) -> Option<u64> {
        self.count
    }

    /// Samples written so far.
    pub fn written(&self) -> u64 {
        self.checksums.len() as u64
    }

    /// Adds a sample, says its number.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where all announced samples are there already, or
    /// what the system says.
    pub fn append(&mut self, sample: &[u8]) -> Result<u64> {
        let number = self.begin_sample()?;
        self.broken = true;
        self.file.append(sample)?;
        self.broken = false;
        self.end_sample(crc32(sample), sample.len() as u64)?;
        Ok(number)
    }

    /// Adds a sample from a stream, all of it, without holding it in memory; says its number.
    ///
    /// # Errors
    /// As [`Writer::append`]. After an error while reading or writing the file can no longer be
    /// finished.
    pub fn append_from(&mut self, mut sample: impl Read) -> Result<u64> {
        let number = self.begin_sample()?;
        self.broken = true;
        let (mut checksum, mut size) = (0, 0u64);
        let mut buffer = zeroed(CHUNK)?;
        loop {
            let got = match sample.read(&mut buffer) {
                Ok(0) => break,
                Ok(got) => got,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::io("cannot read the sample", error).in_record(number)),
            };
            let piece = buffer.get(..got).unwrap_or_default();
            checksum = crc32_after(checksum, piece);
            self.file.append(piece)?;
            size += got as u64;
        }
        self.broken = false;
        self.end_sample(checksum, size)?;
        Ok(number)
    }

    fn begin_sample(&self) -> Result<u64> {
        let number = self.written();
        if self.broken {
            return Err(self.broken_error());
        }
        match self.count {
            Some(count) if number >= count => {
                Err(Error::invalid(format!("Exceed total number of samples: {count}"))
                    .in_file(self.file.name()))
            }
            _ => Ok(number),
        }
    }

    fn end_sample(&mut self, checksum: u32, size: u64) -> Result<()> {
        self.offsets.push(self.size);
        self.checksums.push(checksum);
        self.size = self.size.checked_add(size).ok_or_else(|| Error::invalid("more than 2^64 bytes"))?;
        Ok(())
    }

    fn broken_error(&self) -> Error {
        Error::invalid("a sample could not be written before, the file cannot be finished")
            .in_file(self.file.name())
    }

    /// Whether [`finish`](Writer::finish) has all it needs: after an error more samples may be
    /// appended.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where announced samples are missing.
    pub fn check_complete(&self) -> Result<()> {
        if self.broken {
            return Err(self.broken_error());
        }
        match self.count {
            Some(count) if self.written() != count => Err(Error::invalid(format!(
                "Number of samples mismatched! Wrote {} samples but expected {count}",
                self.written()
            ))
            .in_file(self.file.name())),
            _ => Ok(()),
        }
    }

    /// Writes the table and gives the file its name.
    ///
    /// # Errors
    /// As [`check_complete`](Writer::check_complete), or what the system says; then the file does
    /// not appear.
    pub fn finish(self) -> Result<Written> {
        let (written, files) = self.complete()?;
        files.publish()?;
        Ok(written)
    }

    fn complete(mut self) -> Result<(Written, FileSet)> {
        self.check_complete()?;
        let count = self.written();
        let length = table_length(count)
            .and_then(|begin| begin.checked_add(self.size))
            .ok_or_else(|| Error::invalid("more bytes than an FFRecord file can hold"))?;
        let begin = length - self.size;
        if self.count.is_none() {
            self.move_samples(begin - HEADER)?;
        }
        let Writer { file, checksums, offsets, unprotected, .. } = &mut self;
        encode_table(checksums, offsets, begin, *unprotected, |at, piece| file.overwrite_at(at, piece))?;
        let notices = self.dropped.notices("FFRecord");
        let files = FileSet::of(self.file.complete()?);
        Ok((Written::new(count, length, notices), files))
    }

    /// Moves everything behind the header up by `distance`, from the end, so that no byte is
    /// overwritten before it was read.
    fn move_samples(&mut self, distance: u64) -> Result<()> {
        let name = self.file.name();
        let size = self.size;
        let file = self.file.flushed()?;
        let mut buffer = zeroed(CHUNK)?;
        let mut left = size;
        let mut copy = || -> std::io::Result<()> {
            while left > 0 && distance > 0 {
                let step = left.min(CHUNK as u64);
                left -= step;
                let piece = usize::try_from(step).ok().and_then(|step| buffer.get_mut(..step));
                let piece = piece.unwrap_or_default();
                file.read_exact_at(piece, HEADER + left)?;
                file.write_all_at(piece, HEADER + left + distance)?;
            }
            // The file may hold nothing but empty samples: then nothing was moved, and the table
            // must not be left to extend it.
            file.set_len(HEADER + distance + size)
        };
        copy().map_err(|error| Error::io("cannot write", error).in_file(name))
    }
}

impl RecordWriter for Writer {
    fn append(&mut self, record: &[u8], tags: &Tags) -> Result<u64> {
        let number = Writer::append(self, record)?;
        self.dropped.count(tags, false, false);
        Ok(number)
    }

    fn has_room(&self, size: usize) -> bool {
        size < self.file.free()
    }

    fn complete(self: Box<Self>) -> Result<(Written, FileSet)> {
        Writer::complete(*self)
    }
}
