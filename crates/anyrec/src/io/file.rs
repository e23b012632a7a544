//! Local files: mapped, or read at positions.

use super::positional::PositionalFile;
use super::read_at::{RangeRead, ReadAt, checked, past_end};
use crate::error::{Error, Result};
use bytes::Bytes;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a local file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Access {
    /// Mapped on a local file system, positional reads on a network one.
    #[default]
    Auto,
    /// Mapped into memory: no copies, no system calls. A file that another process cuts short
    /// while it is read can end this process, which is why network file systems are not mapped.
    Mapped,
    /// Read at positions: many ranges at once by io_uring where the system allows it, else on
    /// threads.
    Positional,
    /// As [`Positional`](Access::Positional), past the system's page cache (`O_DIRECT`): for data
    /// that is read once and is larger than memory. Not every file system can.
    Direct,
}

/// Opens a local file for reading.
///
/// # Errors
/// Whatever the system says; a directory or a pipe is [`Invalid`](crate::ErrorKind::Invalid).
pub fn open_file(path: &Path, access: Access) -> Result<Arc<dyn ReadAt>> {
    let name = display_name(path);
    let io_error = |doing: &str, error| Error::io(doing, error).in_file(name.clone());
    let mut how = File::options();
    how.read(true);
    #[cfg(target_os = "linux")]
    if access == Access::Direct {
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut how, libc::O_DIRECT);
    }
    let file = how.open(path).map_err(|error| match (access, error.raw_os_error()) {
        (Access::Direct, Some(libc::EINVAL)) => io_error("cannot open for direct reads", error)
            .with_hint("not every file system can: use another access"),
        _ => io_error("cannot open", error),
    })?;
    let metadata = file.metadata().map_err(|error| io_error("cannot inspect", error))?;
    if !metadata.is_file() {
        return Err(Error::invalid("is not a regular file").in_file(name));
    }
    let common = LocalFile { name, path: path.to_owned(), length: metadata.len(), file };
    let map = match access {
        Access::Auto => !on_network_file_system(&common.file),
        Access::Mapped => true,
        Access::Positional | Access::Direct => false,
    };
    // An empty file cannot be mapped; a pseudo file system may refuse: positional reads serve both.
    if map && common.length > 0 {
        // SAFETY: the map is read-only and private to this process. Another process that changes
        // the file changes bytes under us, which every parser here tolerates (all lengths are
        // checked against the slice at hand); one that shortens it is caught by
        // `check_unchanged` before each batch and documented on `Access::Mapped`.
        if let Ok(map) = unsafe { memmap2::Mmap::map(&common.file) } {
            return Ok(Arc::new(MappedFile { data: Bytes::from_owner(map), common }));
        }
    }
    Ok(Arc::new(PositionalFile::new(common, access == Access::Direct)))
}

/// A path as messages show it: what a terminal could be misled by, and invalid UTF-8, escaped.
pub(crate) fn display_name(path: &Path) -> String {
    use bstr::ByteSlice;
    use std::os::unix::ffi::OsStrExt;
    let mut name = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            if crate::is_harmless(character) {
                name.push(character);
            } else {
                name.extend(character.escape_default());
            }
        }
        for byte in chunk.invalid().bytes() {
            name.push_str(&format!("\\x{byte:02x}"));
        }
    }
    name
}

#[cfg(target_os = "linux")]
fn on_network_file_system(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    // NFS, SMB, CIFS, SMB2, Ceph, FUSE (sshfs, s3fs, ...), AFS, Lustre, 9p, GPFS, BeeGFS.
    const NETWORK: [u32; 11] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x00c3_6400,
        0x6573_5546,
        0x5346_414f,
        0x0bd0_0bd0,
        0x0102_1997,
        0x4750_4653,
        0x1983_0326,
    ];
    // SAFETY: an all-zero statfs is a valid value for the call to fill in.
    let mut status: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open for the call's duration and `status` is writable.
    let answer = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut status) };
    // The type is a 32-bit magic number whatever the field's width and sign on this platform.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let kind = status.f_type as u32;
    answer == 0 && NETWORK.contains(&kind)
}

#[cfg(not(target_os = "linux"))]
fn on_network_file_system(_file: &File) -> bool {
    true
}

#[derive(Debug)]
pub(super) struct LocalFile {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) length: u64,
    pub(super) file: File,
}

impl LocalFile {
    pub(super) fn check_unchanged(&self) -> Result<()> {
        let now = self.file.metadata().map_err(|error| self.io_error("cannot inspect", error))?.len();
        if now < self.length {
            return Err(Error::corrupt(format!(
                "the file was cut short while open: it had {} bytes and has {now}",
                self.length
            ))
            .in_file(self.name.clone()));
        }
        Ok(())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(buffer, offset).map_err(|error| match self.check_unchanged() {
            Err(cut_short) => cut_short,
            Ok(()) => self.io_error("cannot read", error).at(offset),
        })
    }

    pub(super) fn io_error(&self, doing: &str, error: std::io::Error) -> Error {
        Error::io(doing, error).in_file(self.name.clone())
    }
}

/// From this size on bytes are read, not copied out of the map: for so many the system is faster
/// than the map, whose pages it must bring in first.
const READ_FROM: usize = 256 << 10;

#[derive(Debug)]
struct MappedFile {
    common: LocalFile,
    data: Bytes,
}

impl MappedFile {
    /// Gives advice about the whole pages of a range: what shares a page with it may be in use.
    fn advise(&self, range: Range<u64>, advice: libc::c_int) {
        let Ok(range) = checked(self, &range) else { return };
        // SAFETY: asks for a constant of the system.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(usize::MAX);
        let (begin, end) = (range.start.div_ceil(page).saturating_mul(page), range.end / page * page);
        if let Some(pages) = self.data.get(begin..end).filter(|pages| !pages.is_empty()) {
            // SAFETY: the pages lie in the map, which is shared, read-only and backed by the file:
            // dropping them or bringing them in changes nothing that can be seen, and the next look
            // at them brings them back from the file. The advice may be refused, and then nothing
            // happens.
            unsafe { libc::madvise(pages.as_ptr().cast_mut().cast(), pages.len(), advice) };
        }
    }
}

impl ReadAt for MappedFile {
    fn len(&self) -> u64 {
        self.common.length
    }

    fn name(&self) -> &str {
        &self.common.name
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.common.path)
    }

    fn read_ranges(&self, reads: &mut [RangeRead<'_>]) -> Result<()> {
        for read in reads {
            if read.buffer.len() < READ_FROM {
                copy_ranges(self, &self.data, std::slice::from_mut(read))?;
                continue;
            }
            let range = read.offset..read.offset.saturating_add(read.buffer.len() as u64);
            checked(self, &range)?;
            self.common.read_exact_at(read.buffer, read.offset)?;
        }
        Ok(())
    }

    fn as_slice(&self) -> Option<&[u8]> {
        Some(&self.data)
    }

    fn is_read_faster(&self) -> bool {
        true
    }

    fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        Ok(self.data.slice(checked(self, &range)?))
    }

    fn expect(&self, ranges: &[Range<u64>]) -> bool {
        let cold = cold(&self.common.file, ranges);
        if cold {
            start_reading(&self.common.file, ranges);
        }
        cold
    }

    #[cfg(target_os = "linux")]
    fn bring_in(&self, range: Range<u64>) {
        self.advise(range, libc::MADV_POPULATE_READ);
    }

    fn release(&self, range: Range<u64>) {
        self.advise(range, libc::MADV_DONTNEED);
    }

    fn check_unchanged(&self) -> Result<()> {
        self.common.check_unchanged()
    }
}

/// Whether some of the ranges are not in the system's page cache, as far as a few of them tell.
#[cfg(target_os = "linux")]
fn cold(file: &File, ranges: &[Range<u64>]) -> bool {
    use std::os::fd::AsRawFd;
    const LOOKED_AT: usize = 4;
    let step = ranges.len().div_ceil(LOOKED_AT).max(1);
    ranges.iter().step_by(step).filter(|range| range.start < range.end).any(|range| {
        let mut byte = 0u8;
        let piece = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
        let Ok(offset) = libc::off_t::try_from(range.end - 1) else { return false };
        // SAFETY: the descriptor is open, and the one byte may be written.
        let got = unsafe { libc::preadv2(file.as_raw_fd(), &raw const piece, 1, offset, libc::RWF_NOWAIT) };
        got < 0 && std::io::Error::last_os_error().kind() == std::io::ErrorKind::WouldBlock
    })
}

/// Starts to read all of the ranges into the page cache, in file order, and does not wait.
#[cfg(target_os = "linux")]
fn start_reading(file: &File, ranges: &[Range<u64>]) {
    use std::os::fd::AsRawFd;
    let mut ranges = ranges.to_vec();
    ranges.sort_unstable_by_key(|range| range.start);
    for range in ranges {
        let (begin, size) =
            (libc::off_t::try_from(range.start), libc::off_t::try_from(range.end - range.start));
        if let (Ok(begin), Ok(size @ 1..)) = (begin, size) {
            // SAFETY: the descriptor is open; the call only advises, and may be refused.
            unsafe { libc::posix_fadvise(file.as_raw_fd(), begin, size, libc::POSIX_FADV_WILLNEED) };
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn cold(_file: &File, _ranges: &[Range<u64>]) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn start_reading(_file: &File, _ranges: &[Range<u64>]) {}

/// Serves `read_ranges` from memory.
pub(super) fn copy_ranges(source: &dyn ReadAt, data: &[u8], reads: &mut [RangeRead<'_>]) -> Result<()> {
    for read in reads {
        let range = read.offset..read.offset.saturating_add(read.buffer.len() as u64);
        let piece = data.get(checked(source, &range)?).ok_or_else(|| past_end(source, &range))?;
        read.buffer.copy_from_slice(piece);
    }
    Ok(())
}
