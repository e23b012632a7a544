//! Files that are published complete or not at all.

use super::publish::FileSet;
use super::target::{Replaced, Target, folder};
use super::unnamed::{Complete, Unnamed};
use crate::base::{Error, Result, shown};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// What a finished file survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// A crash of this process or of the machine: data and directory are synced before `finish`
    /// returns.
    #[default]
    Machine,
    /// A crash of this process only: the operating system writes the data out later.
    Process,
}

/// A file under construction: a temporary file in the target's folder that
/// [`commit`](AtomicFile::commit) renames to the target, and that is deleted if dropped before.
///
/// Only regular files are replaced; the new file keeps the mode and, if permitted, the owner of the
/// old one. If the target is a link, the file it points to is replaced.
///
/// If the operating system supports unnamed files (Linux, on most file systems), a killed process
/// leaves nothing behind. Otherwise it may leave a hidden file ending in `.partial`, which
/// [`remove_partial_files`](super::remove_partial_files) removes if called in time.
#[derive(Debug)]
pub struct AtomicFile {
    file: Unnamed,
    /// Data waiting to be written, and its offset.
    buffer: Vec<u8>,
    offset: u64,
    /// The block that another thread is writing.
    behind: Option<Behind>,
    /// A write failed: the file is never published.
    failed: bool,
    target: PathBuf,
    overwrite: bool,
    durability: Durability,
}

/// Buffering avoids a system call per small record. Writes begin and end at multiples of this: the
/// operating system then keeps the file in large extents, which are faster to write and to read
/// back.
const BLOCK: usize = 1 << 19;

/// A block being written by another thread. It is returned when written, or when writing failed.
#[derive(Debug)]
struct Behind {
    written: Receiver<(Vec<u8>, io::Result<()>)>,
    /// The process that owns the thread.
    process: u32,
}

impl AtomicFile {
    /// Starts a file that will be published as `target`.
    ///
    /// # Errors
    /// [`Exists`](crate::ErrorKind::Exists) if the target exists and `overwrite` is false;
    /// [`Invalid`](crate::ErrorKind::Invalid) for a folder, a device or a pipe; otherwise the
    /// operating system's error.
    pub fn create(target: &Path, overwrite: bool, durability: Durability) -> Result<Self> {
        match Target::find(target, overwrite)? {
            Target::File { path, replaced } => Self::start(path, replaced, overwrite, durability),
            Target::Stream(path) => Err(Error::invalid(
                "is a device or a pipe, and a file of this format cannot be written as a stream",
            )
            .in_file(&path)
            .with_hint("write it to a regular file first")),
        }
    }

    /// Same as [`create`](AtomicFile::create), for formats that are written sequentially: bytes for
    /// a device or a pipe are written to it directly, and it is never replaced.
    ///
    /// # Errors
    /// Same as [`create`](AtomicFile::create).
    pub fn create_or_stream(target: &Path, overwrite: bool, durability: Durability) -> Result<Self> {
        match Target::find(target, overwrite)? {
            Target::File { path, replaced } => Self::start(path, replaced, overwrite, durability),
            Target::Stream(path) => {
                let stream = super::target::open_stream(&path)?;
                Ok(Self::over(Unnamed::Stream(Arc::new(stream)), path, overwrite, durability))
            }
        }
    }

    fn start(
        target: PathBuf,
        replaced: Option<Replaced>,
        overwrite: bool,
        durability: Durability,
    ) -> Result<Self> {
        let failed = |error| Error::io("cannot create", error).in_file(&target);
        // Reported here, because an error about the temporary file would show its random name.
        std::fs::metadata(folder(&target)).map_err(failed)?;
        let file = Unnamed::create(folder(&target)).map_err(failed)?;
        if let Some(replaced) = replaced {
            replaced.pass_on(file.file()).map_err(failed)?;
        }
        Ok(Self::over(file, target, overwrite, durability))
    }

    fn over(file: Unnamed, target: PathBuf, overwrite: bool, durability: Durability) -> Self {
        AtomicFile {
            file,
            buffer: Vec::new(),
            offset: 0,
            behind: None,
            failed: false,
            target,
            overwrite,
            durability,
        }
    }

    /// Whether this is a stream, which is not published under a name.
    pub fn is_stream(&self) -> bool {
        matches!(self.file, Unnamed::Stream(_))
    }

    /// The name the file will have.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The target's name as shown in messages.
    pub fn name(&self) -> String {
        shown(&self.target)
    }

    /// Reserves the first `length` bytes of an empty file, to be written later. Until then they are
    /// a hole that reads as zeros.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn leave_room(&mut self, length: u64) -> Result<()> {
        self.offset = length;
        self.file.file().set_len(length).map_err(|error| self.write_error(error))
    }

    /// Appends all of `data`.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn append(&mut self, mut data: &[u8]) -> Result<()> {
        loop {
            let room = self.free();
            if data.len() < room {
                self.make_room(data.len())?;
                self.buffer.extend_from_slice(data);
                return Ok(());
            }
            let mut take = room;
            if self.buffer.is_empty() {
                take += (data.len() - room) / BLOCK * BLOCK;
            }
            let (now, later) = data.split_at(take);
            if self.buffer.is_empty() {
                self.write_at(now, self.offset)?;
                self.offset += now.len() as u64;
            } else {
                self.make_room(now.len())?;
                self.buffer.extend_from_slice(now);
                self.hand_over()?;
            }
            data = later;
        }
    }

    /// Appends several pieces, with a single check for space.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn append_all<const N: usize>(&mut self, pieces: [&[u8]; N]) -> Result<()> {
        let size = pieces.iter().fold(0, |size: usize, piece| size.saturating_add(piece.len()));
        if size < self.free() {
            self.make_room(size)?;
            pieces.iter().for_each(|piece| self.buffer.extend_from_slice(piece));
            return Ok(());
        }
        pieces.iter().try_for_each(|piece| self.append(piece))
    }

    /// Grows the buffer for this many more bytes. If that fails, the file is abandoned, because it
    /// may contain only half of what the caller appends.
    #[inline]
    fn make_room(&mut self, more: usize) -> Result<()> {
        self.buffer.try_reserve(more).map_err(|_| self.write_error(io::ErrorKind::OutOfMemory.into()))
    }

    /// Fewer bytes than this can be appended without a system call.
    pub fn free(&self) -> usize {
        let end = self.offset + self.buffer.len() as u64;
        // The rest of a block is no larger than a block.
        #[allow(clippy::cast_possible_truncation)]
        let used = (end % BLOCK as u64) as usize;
        BLOCK - used
    }

    /// Overwrites the bytes at `offset` with `data`.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn overwrite_at(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.flush()?;
        self.write_at(data, offset)
    }

    /// Everything written so far, as a file open for positional reads and writes.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn flushed(&mut self) -> Result<&File> {
        self.flush()?;
        Ok(self.file.file())
    }

    /// Passes the buffer to another thread for writing while the caller fills the next one. If that
    /// thread is still writing the previous block, this thread writes the buffer itself, so that
    /// several files written at once do not all wait for one thread.
    fn hand_over(&mut self) -> Result<()> {
        self.check()?;
        if self.is_stream() {
            return self.write_buffer();
        }
        let mut next = Vec::new();
        if let Some(behind) = self.behind.take() {
            match behind.written.try_recv() {
                Ok((used, outcome)) => {
                    outcome.map_err(|error| self.write_error(error))?;
                    next = used;
                }
                Err(TryRecvError::Empty) if behind.is_of_this_process() => {
                    self.behind = Some(behind);
                    return self.write_buffer();
                }
                Err(_) => return Err(self.write_error(Behind::lost())),
            }
        }
        next.clear();
        next.try_reserve(BLOCK).map_err(|_| self.write_error(io::ErrorKind::OutOfMemory.into()))?;
        let block = std::mem::replace(&mut self.buffer, next);
        let (file, offset) = (Arc::clone(self.file.file()), self.offset);
        self.offset += block.len() as u64;
        let (sender, written) = channel();
        crate::threads::in_background(move || {
            let outcome = file.write_all_at(&block, offset);
            // The receiver is gone if the file was abandoned.
            let _ = sender.send((block, outcome));
        });
        self.behind = Some(Behind { written, process: crate::threads::fork::generation() });
        Ok(())
    }

    /// Writes everything, and waits for the other thread.
    fn flush(&mut self) -> Result<()> {
        self.write_buffer()?;
        let Some(behind) = self.behind.take() else { return Ok(()) };
        let written = match behind.is_of_this_process() {
            true => behind.written.recv().map_err(|_| Behind::lost()),
            false => Err(Behind::lost()),
        };
        written.and_then(|(_, outcome)| outcome).map_err(|error| self.write_error(error))
    }

    fn write_buffer(&mut self) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.write_at(&buffer, self.offset)?;
        self.offset += buffer.len() as u64;
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }

    fn write_at(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.check()?;
        let written = match &self.file {
            Unnamed::Stream(stream) if offset == self.offset => stream.as_ref().write_all(data),
            Unnamed::Stream(_) => Err(io::Error::other("a stream is written from front to back")),
            file => file.file().write_all_at(data, offset),
        };
        written.map_err(|error| self.write_error(error))
    }

    /// A caller that continues after an error gets another error.
    fn check(&self) -> Result<()> {
        match self.failed {
            true => Err(Error::invalid("an earlier write failed, so the file cannot be finished")
                .in_file(self.name())),
            false => Ok(()),
        }
    }

    /// Publishes the file. Until this returns, the old file (or none) has the name.
    ///
    /// # Errors
    /// The operating system's error; [`Exists`](crate::ErrorKind::Exists) if the target was
    /// created in the meantime and `overwrite` is false.
    pub fn commit(self) -> Result<()> {
        FileSet::of(self.complete()?).publish()
    }

    /// Writes and syncs everything, so that only publishing remains.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn complete(mut self) -> Result<CompleteFile> {
        self.flush()?;
        let name = self.name();
        let AtomicFile { file, target, overwrite, durability, .. } = self;
        if durability == Durability::Machine && !matches!(file, Unnamed::Stream(_)) {
            file.file().sync_all().map_err(|error| Error::io("cannot finish", error).in_file(name))?;
        }
        Ok(CompleteFile { file: file.complete(), target, overwrite, durability })
    }

    fn write_error(&mut self, error: io::Error) -> Error {
        self.failed = true;
        Error::io("cannot write", error).in_file(self.name())
    }
}

/// A file that is complete and synced but not yet named: [`FileSet`] publishes it.
#[derive(Debug)]
pub struct CompleteFile {
    pub(super) file: Complete,
    pub(super) target: PathBuf,
    pub(super) overwrite: bool,
    pub(super) durability: Durability,
}

impl Behind {
    fn is_of_this_process(&self) -> bool {
        self.process == crate::threads::fork::generation()
    }

    /// The thread panicked, or belongs to the parent of this forked process.
    fn lost() -> io::Error {
        io::Error::other("the writer thread is gone")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn a_dropped_file_leaves_the_old_one_and_no_litter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a file");
        std::fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path, true, Durability::Machine).unwrap();
        file.append(b"new").unwrap();
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn pieces_of_any_size_come_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let data: Vec<u8> = (0..5 * BLOCK).map(|i| (i % 251).to_le_bytes()[0]).collect();
        let mut file = AtomicFile::create(&path, false, Durability::Process).unwrap();
        let (mut rest, mut size) = (data.as_slice(), 1);
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(size.min(rest.len()));
            file.append(piece).unwrap();
            (rest, size) = (later, size * 3 % (2 * BLOCK - 1));
        }
        file.overwrite_at(3, &data[3..9]).unwrap();
        file.commit().unwrap();
        assert!(std::fs::read(&path).unwrap() == data);
    }

    #[test]
    fn what_another_thread_could_not_write_is_an_error_of_the_next_block_and_of_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let readable = folder.path().join("readable");
        std::fs::write(&readable, "").unwrap();
        let file_that_refuses = || {
            let mut file =
                AtomicFile::create(&folder.path().join("new"), false, Durability::Process).unwrap();
            file.file = Unnamed::Nameless(Arc::new(File::open(&readable).unwrap()));
            file.append(b"first").unwrap();
            file.append(&vec![0; BLOCK]).unwrap();
            file
        };
        assert_eq!(file_that_refuses().commit().unwrap_err().kind(), ErrorKind::Io);
        let mut file = file_that_refuses();
        file.append(&vec![0; 2 * BLOCK]).unwrap_err();
        file.append(b"more").unwrap();
        assert_eq!(file.commit().unwrap_err().kind(), ErrorKind::Invalid);
        assert!(!folder.path().join("new").exists());
    }

    #[test]
    fn commit_replaces_the_file_only_when_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut file = AtomicFile::create(&path, false, Durability::Process).unwrap();
        file.append(b"0123").unwrap();
        file.overwrite_at(1, b"xx").unwrap();
        file.append(b"4").unwrap();
        file.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"0xx34");
        let refused = AtomicFile::create(&path, false, Durability::Process).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Exists);
    }
}
