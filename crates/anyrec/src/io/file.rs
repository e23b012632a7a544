//! Local files: mapped, or read with positional reads.

use super::guarded_map::{GuardedMap, guard};
use super::positional::PositionalFile;
use super::publish::check_published;
use super::source::{RangeRead, Source, checked, past_end};
use crate::base::memory::reserve;
use crate::base::{Error, ErrorKind, Result, shown};
use crate::threads::fork::Once;
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a local file is read.
///
/// With every choice, records are copies that do not change, and a file that another process
/// truncates is an error. Only records lent without a copy (`Dataset::lend`) are in a mapped file:
/// accessing one after the file was truncated ends the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Access {
    /// [`Mapped`](Access::Mapped) on a local file system, [`Positional`](Access::Positional) on a
    /// network one.
    #[default]
    Auto,
    /// Batches are copied out of the mapped file, without a system call per record. Scans and
    /// single records use positional reads, which are as fast.
    Mapped,
    /// Positional reads: many ranges at once through io_uring if available, otherwise on threads.
    Positional,
    /// Same as [`Positional`](Access::Positional), bypassing the page cache (`O_DIRECT`): for data
    /// that is read once and is larger than memory. Not every file system supports it.
    Direct,
}

/// Opens a local file for reading.
///
/// # Errors
/// The operating system's error; [`Invalid`](crate::ErrorKind::Invalid) for a directory or a
/// pipe; [`Stale`](crate::ErrorKind::Stale) for one of several files whose replacement was
/// interrupted.
pub fn open_file(path: &Path, access: Access) -> Result<Arc<dyn Source>> {
    let name = shown(path);
    let io_error = |doing: &str, error| Error::io(doing, error).in_file(name.clone());
    check_published(path)?;
    let mut how = File::options();
    // Do not block on a pipe without a writer. Regular files ignore the flag.
    let mut flags = libc::O_NONBLOCK;
    #[cfg(target_os = "linux")]
    if access == Access::Direct {
        flags |= libc::O_DIRECT;
    }
    let file = how.read(true).custom_flags(flags).open(path).map_err(|error| {
        match (access, error.raw_os_error()) {
            (Access::Direct, Some(libc::EINVAL)) => io_error("cannot open for direct reads", error)
                .with_hint("not every file system supports it: use another access mode"),
            _ => io_error("cannot open", error),
        }
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
    // An empty file cannot be mapped, and a pseudo file system may refuse. Positional reads work
    // for both.
    if map
        && common.length > 0
        && let Ok(map) = GuardedMap::new(&common.file)
        && map.len() as u64 == common.length
    {
        return Ok(Arc::new(MappedFile { common, map, lent: Once::new() }));
    }
    Ok(Arc::new(PositionalFile::new(common, access == Access::Direct)))
}

#[cfg(target_os = "linux")]
fn on_network_file_system(file: &File) -> bool {
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
    // The type is a 32-bit magic number, whatever the field's width and sign on this platform.
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

    pub(super) fn check_still_named(&self) -> Result<()> {
        use std::os::unix::fs::MetadataExt;
        let open = self.file.metadata().map_err(|error| self.io_error("cannot inspect", error))?;
        match std::fs::metadata(&self.path) {
            Ok(named) if (named.dev(), named.ino()) == (open.dev(), open.ino()) => Ok(()),
            _ => Err(Error::new(ErrorKind::Stale, "the file was replaced or removed while it was open")
                .in_file(self.name.clone())
                .with_hint("open it again")),
        }
    }

    /// The bytes of a range within the file's length at opening.
    pub(super) fn read_to_vec(&self, offset: u64, size: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        reserve(&mut bytes, size).map_err(|error| error.in_file(self.name.clone()).at(offset))?;
        while bytes.len() < size {
            let (at, want) = (offset + bytes.len() as u64, size - bytes.len());
            let room = bytes.spare_capacity_mut();
            let place = libc::off_t::try_from(at).unwrap_or(libc::off_t::MAX);
            // SAFETY: the descriptor is open, and `want` bytes may be written there.
            let got = unsafe { libc::pread(self.file.as_raw_fd(), room.as_mut_ptr().cast(), want, place) };
            match usize::try_from(got) {
                Ok(0) => return Err(self.read_failed(at, io::ErrorKind::UnexpectedEof.into())),
                // SAFETY: `got` bytes were just written.
                Ok(got) => unsafe { bytes.set_len(bytes.len() + got) },
                Err(_) => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(self.read_failed(at, error)),
                },
            }
        }
        Ok(bytes)
    }

    /// The error for a failed read.
    pub(super) fn read_failed(&self, offset: u64, error: io::Error) -> Error {
        match self.check_unchanged() {
            Err(cut_short) => cut_short.at(offset),
            Ok(()) => self.io_error("cannot read", error).at(offset),
        }
    }

    pub(super) fn io_error(&self, doing: &str, error: std::io::Error) -> Error {
        Error::io(doing, error).in_file(self.name.clone())
    }
}

#[derive(Debug)]
struct MappedFile {
    common: LocalFile,
    map: GuardedMap,
    /// The unguarded map that is lent to callers: zeros must not be mistaken for data.
    lent: Once<Option<Bytes>>,
}

impl Source for MappedFile {
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
            checked(self, &(read.offset..read.offset.saturating_add(read.buffer.len() as u64)))?;
            let outcome = self.common.file.read_exact_at(read.buffer, read.offset);
            outcome.map_err(|error| self.common.read_failed(read.offset, error))?;
        }
        Ok(())
    }

    fn as_slice(&self) -> Option<&[u8]> {
        Some(&self.map)
    }

    fn guard(&self) -> Result<()> {
        guard().map_err(|error| self.common.io_error("cannot guard the mapped file", error))
    }

    fn lendable(&self) -> Option<&Bytes> {
        let map = || {
            // SAFETY: the map is read-only. If another process changes the file, the bytes change
            // under us. The effect of truncating it is documented where records are lent.
            let map = unsafe { memmap2::Mmap::map(&self.common.file) }.ok()?;
            (map.len() as u64 == self.common.length).then(|| Bytes::from_owner(map))
        };
        self.lent.get_or_init(map).as_ref()
    }

    fn view(&self, range: Range<u64>) -> Result<Bytes> {
        Ok(self.map.slice(checked(self, &range)?))
    }

    fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        Ok(self.common.read_to_vec(range.start, checked(self, &range)?.len())?.into())
    }

    fn expect(&self, ranges: &[Range<u64>]) -> bool {
        let cold = cold(&self.common.file, ranges);
        if cold {
            start_reading(&self.common.file, ranges);
        }
        cold
    }

    fn check_unchanged(&self) -> Result<()> {
        self.common.check_unchanged()?;
        if self.map.is_torn() {
            let error = io::Error::from_raw_os_error(libc::EIO);
            return Err(self.common.io_error("a page of the mapped file could not be read", error));
        }
        Ok(())
    }

    fn check_still_named(&self) -> Result<()> {
        self.common.check_still_named()
    }
}

/// Whether some of the ranges are not in the page cache, judging by a few of them.
#[cfg(target_os = "linux")]
fn cold(file: &File, ranges: &[Range<u64>]) -> bool {
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

/// Starts reading all ranges into the page cache, in file order, without waiting.
#[cfg(target_os = "linux")]
fn start_reading(file: &File, ranges: &[Range<u64>]) {
    let mut ranges = ranges.to_vec();
    ranges.sort_unstable_by_key(|range| range.start);
    for range in ranges {
        let (begin, size) =
            (libc::off_t::try_from(range.start), libc::off_t::try_from(range.end - range.start));
        if let (Ok(begin), Ok(size @ 1..)) = (begin, size) {
            // SAFETY: the descriptor is open; the call is only advice and may be refused.
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
pub(super) fn copy_ranges(source: &dyn Source, data: &[u8], reads: &mut [RangeRead<'_>]) -> Result<()> {
    for read in reads {
        let range = read.offset..read.offset.saturating_add(read.buffer.len() as u64);
        let piece = data
            .get(checked(source, &range)?)
            .ok_or_else(|| past_end(source.name(), source.len(), &range))?;
        read.buffer.copy_from_slice(piece);
    }
    Ok(())
}
