//! Writes FFRecord files.
//!
//! The table precedes the samples, so its size must be known before the first sample can be placed.
//! If the caller knows the number of samples ([`WriteOptions::count`]), space for the table is
//! reserved and the samples are written directly to their final offsets.
//!
//! Otherwise samples are written from byte 12 on, and [`Writer::finish`] moves them up by the
//! table's length, in place and from the end, before it writes the table. Reserving a gap of some
//! guessed size would avoid that second pass, and the original could read such a file. But then the
//! same samples would produce different files, and every small file would carry the gap. In both
//! cases the file is therefore byte for byte what the original writes. The price is one more pass
//! over the data if the number is unknown.
//!
//! Memory: 12 bytes per sample.

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

/// Number of bytes copied at a time.
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
    /// The metadata checksum stays 0, as in the old version.
    unprotected: bool,
    checksums: Vec<u32>,
    /// Offset of each sample, relative to the first one.
    offsets: Vec<u64>,
    /// Bytes of samples written so far.
    size: u64,
    dropped: DroppedTags,
    /// A sample failed midway: the contents of the file are no longer known.
    broken: bool,
}

impl Writer {
    /// Starts a file. With [`WriteOptions::count`], exactly that many samples must be appended.
    /// [`Version::Old`] writes files without a metadata checksum.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for settings that FFRecord does not have,
    /// [`Exists`](crate::ErrorKind::Exists), or the operating system's error.
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        let unprotected = options.only::<own::WriteOptions>()?.version == Version::Old;
        let begin = table_length(options.count.unwrap_or(0)).ok_or_else(|| {
            Error::invalid(format!("an FFRecord file cannot hold {} samples", options.count.unwrap_or(0)))
        })?;
        let mut file = AtomicFile::create(path, options.overwrite, options.durability)?;
        // For the table, which `finish` fills in.
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

    /// The declared number of samples.
    pub fn count(&self) -> Option<u64> {
        self.count
    }

    /// Number of samples written so far.
    pub fn written(&self) -> u64 {
        self.checksums.len() as u64
    }

    /// Appends a sample and returns its number.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if the declared number of samples is already
    /// reached, or the operating system's error.
    pub fn append(&mut self, sample: &[u8]) -> Result<u64> {
        let number = self.begin_sample()?;
        self.broken = true;
        self.file.append(sample)?;
        self.broken = false;
        self.end_sample(crc32(sample), sample.len() as u64)?;
        Ok(number)
    }

    /// Appends a sample from a stream, read to its end without holding it in memory. Returns the
    /// sample's number.
    ///
    /// # Errors
    /// Same as [`Writer::append`]. After an error while reading or writing, the file can no longer
    /// be finished.
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
        Error::invalid("an earlier sample could not be written, so the file cannot be finished")
            .in_file(self.file.name())
    }

    /// Checks that [`finish`](Writer::finish) can succeed. After an error more samples may be
    /// appended.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if declared samples are missing.
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

    /// Writes the table and publishes the file.
    ///
    /// # Errors
    /// Same as [`check_complete`](Writer::check_complete), or the operating system's error. On
    /// error, the file is not published.
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

    /// Moves everything after the header up by `distance`, from the end, so that no byte is
    /// overwritten before it is read.
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
            // If the file holds only empty samples, nothing was moved, and writing the table must
            // not be what extends the file.
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
