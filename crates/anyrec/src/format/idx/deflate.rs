//! Where a writer's bytes go: a plain file, or a single gzip member.
//!
//! The number of records is in the header and is known only at the end. In a plain file, the header
//! is overwritten. In a gzipped file, the header is in a *stored* deflate block of its own, before
//! the compressed blocks. Its bytes are in the file unchanged and can be overwritten the same way,
//! and the member's checksum is combined from those of the header and of the elements. No temporary
//! file is needed, and the result is one ordinary member (several would be valid, but some readers
//! stop after the first).

use crate::base::deflate::{self, Compress, Compression, FlushCompress, Status};
use crate::base::{Error, Result};
use crate::io::{AtomicFile, FileSet};

/// Gzip header: deflate, no flags, no time, no hint, no system. It is the same for every file, so
/// that the same records produce the same bytes.
const MEMBER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Compressed bytes passed to the file at a time.
const OUTPUT: usize = 1 << 16;

/// A file under construction that begins with a header which is rewritten at the end.
#[derive(Debug)]
pub(super) struct Output {
    file: AtomicFile,
    /// Length of the file so far.
    written: u64,
    gzip: Option<Gzip>,
}

#[derive(Debug)]
struct Gzip {
    compress: Compress,
    /// Covers the elements, without the header.
    checksum: crc32fast::Hasher,
    output: Vec<u8>,
}

impl Output {
    pub(super) fn new(file: AtomicFile, gzip: bool) -> Result<Self> {
        let gzip = match gzip {
            true => Some(Gzip {
                compress: deflate::compressor(Compression::default())?,
                checksum: crc32fast::Hasher::new(),
                output: Vec::with_capacity(OUTPUT),
            }),
            false => None,
        };
        Ok(Output { file, written: 0, gzip })
    }

    /// The file's name, for messages.
    pub(super) fn name(&self) -> String {
        self.file.name()
    }

    /// Writes the header. This must be the first call; the header's bytes may change later, but not
    /// its length.
    pub(super) fn begin(&mut self, header: &[u8]) -> Result<()> {
        if self.gzip.is_some() {
            let length = u16::try_from(header.len())
                .map_err(|_| Error::invalid("a header this long does not fit into one block"))?;
            self.write(&MEMBER)?;
            // A stored block that is not the last one: its length, and the complement of its
            // length.
            self.write(&[0])?;
            self.write(&length.to_le_bytes())?;
            self.write(&(!length).to_le_bytes())?;
        }
        self.write(header)
    }

    /// Writes elements.
    pub(super) fn append(&mut self, data: &[u8]) -> Result<()> {
        match &mut self.gzip {
            None => self.write(data),
            Some(gzip) => {
                gzip.checksum.update(data);
                self.deflate(data, FlushCompress::None)
            }
        }
    }

    /// Completes the file with its final header and returns its length.
    pub(super) fn complete(mut self, header: &[u8]) -> Result<(u64, FileSet)> {
        let header_offset = match &self.gzip {
            None => 0,
            Some(_) => MEMBER.len() as u64 + 5,
        };
        if self.gzip.is_some() {
            self.deflate(&[], FlushCompress::Finish)?;
        }
        if let Some(gzip) = &self.gzip {
            let mut checksum = crc32fast::Hasher::new();
            checksum.update(header);
            let length = gzip.checksum.total_len().wrapping_add(header.len() as u64);
            checksum.combine(&gzip.checksum);
            let [l0, l1, l2, l3, ..] = length.to_le_bytes();
            self.write(&checksum.finalize().to_le_bytes())?;
            self.write(&[l0, l1, l2, l3])?;
        }
        self.file.overwrite_at(header_offset, header)?;
        Ok((self.written, FileSet::of(self.file.complete()?)))
    }

    fn deflate(&mut self, mut data: &[u8], flush: FlushCompress) -> Result<()> {
        let Some(gzip) = &mut self.gzip else { return Ok(()) };
        loop {
            let before = gzip.compress.total_in();
            let status = gzip
                .compress
                .compress_vec(data, &mut gzip.output, flush)
                .map_err(|error| Error::io("cannot compress", error.into()).in_file(self.file.name()))?;
            let consumed = usize::try_from(gzip.compress.total_in() - before).unwrap_or(data.len());
            data = data.get(consumed..).unwrap_or_default();
            let full = gzip.output.len() == gzip.output.capacity();
            let ended = matches!(status, Status::StreamEnd);
            if full || ended {
                self.file.append(&gzip.output)?;
                self.written += gzip.output.len() as u64;
                gzip.output.clear();
            }
            if ended || (data.is_empty() && !full && matches!(flush, FlushCompress::None)) {
                return Ok(());
            }
        }
    }

    fn write(&mut self, data: &[u8]) -> Result<()> {
        self.file.append(data)?;
        self.written += data.len() as u64;
        Ok(())
    }
}
