//! Files that appear whole or not at all.

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
    /// The end of this process, and of the machine: data and directory are synced before
    /// `finish` returns.
    #[default]
    Machine,
    /// The end of this process only: the system writes it out when it likes.
    Process,
}

/// A file under construction: a temporary file in the target's folder that takes the target's
/// name in [`commit`](AtomicFile::commit), and vanishes if it is dropped before.
///
/// Only regular files are replaced; the new one keeps the mode and, where permitted, the owner of
/// the old one. Behind a link the link's target is replaced.
///
/// Where the system can make files without a name (Linux, on most file systems), a process that
/// is killed leaves nothing behind; elsewhere it may leave a hidden file ending in `.partial`, which
/// [`remove_partial_files`](super::remove_partial_files) removes if it is called in time.
#[derive(Debug)]
pub struct AtomicFile {
    file: Unnamed,
    /// What waits to be written, and where it goes.
    buffer: Vec<u8>,
    offset: u64,
    /// The block that another thread is writing.
    behind: Option<Behind>,
    /// Something could not be written: the file never gets its name.
    failed: bool,
    target: PathBuf,
    overwrite: bool,
    durability: Durability,
}

/// Small records cost no system call of their own. Writes begin and end at multiples of this: the
/// system then keeps the file in large pieces, which are faster to write and to read again.
const BLOCK: usize = 1 << 19;

/// A block on its way into the file: it comes back when it is written, or could not be.
#[derive(Debug)]
struct Behind {
    written: Receiver<(Vec<u8>, io::Result<()>)>,
    /// The process that has the thread.
    process: u32,
}

impl AtomicFile {
    /// Starts a file that will be called `target`.
    ///
    /// # Errors
    /// [`Exists`](crate::ErrorKind::Exists) when the target is there and `overwrite` is false;
    /// [`Invalid`](crate::ErrorKind::Invalid) for a folder, a device or a pipe; otherwise what the
    /// system says.
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

    /// As [`create`](AtomicFile::create), for formats that are written from front to back: bytes
    /// for a device or a pipe are written to it at once, and it is never replaced.
    ///
    /// # Errors
    /// As [`create`](AtomicFile::create).
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
        // Said here, as a temporary file's name would be in the system's own words.
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

    /// Whether this is a stream, which has no name to get.
    pub fn is_stream(&self) -> bool {
        matches!(self.file, Unnamed::Stream(_))
    }

    /// The name the file will have.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The target's name as messages show it.
    pub fn name(&self) -> String {
        shown(&self.target)
    }

    /// Leaves the first `length` bytes of a file that has none yet to be written later: a hole, that
    /// reads as zeros.
    ///
    /// # Errors
    /// What the system says.
    pub fn leave_room(&mut self, length: u64) -> Result<()> {
        self.offset = length;
        self.file.file().set_len(length).map_err(|error| self.write_error(error))
    }

    /// Writes all of `data` at the end of what was written so far.
    ///
    /// # Errors
    /// What the system says.
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

    /// Writes pieces one after the other, with one look whether there is room for all.
    ///
    /// # Errors
    /// What the system says.
    pub fn append_all<const N: usize>(&mut self, pieces: [&[u8]; N]) -> Result<()> {
        let size = pieces.iter().fold(0, |size: usize, piece| size.saturating_add(piece.len()));
        if size < self.free() {
            self.make_room(size)?;
            pieces.iter().for_each(|piece| self.buffer.extend_from_slice(piece));
            return Ok(());
        }
        pieces.iter().try_for_each(|piece| self.append(piece))
    }

    /// Makes the buffer large enough for so many bytes more. Where it cannot be, the file is given up:
    /// half of what the caller appends may be in it.
    #[inline]
    fn make_room(&mut self, more: usize) -> Result<()> {
        self.buffer.try_reserve(more).map_err(|_| self.write_error(io::ErrorKind::OutOfMemory.into()))
    }

    /// Fewer bytes than these can be appended without a call to the system.
    pub fn free(&self) -> usize {
        let end = self.offset + self.buffer.len() as u64;
        // What is left of a block is no larger than a block.
        #[allow(clippy::cast_possible_truncation)]
        let used = (end % BLOCK as u64) as usize;
        BLOCK - used
    }

    /// Writes `data` over the bytes at `offset`.
    ///
    /// # Errors
    /// What the system says.
    pub fn overwrite_at(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.flush()?;
        self.write_at(data, offset)
    }

    /// Everything written so far, as a file open for reading and writing at positions.
    ///
    /// # Errors
    /// What the system says.
    pub fn flushed(&mut self) -> Result<&File> {
        self.flush()?;
        Ok(self.file.file())
    }

    /// Lets another thread write the buffer while the caller fills the next. If it is still at the
    /// last one, this one does: several files written at once do not wait for that one thread.
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
            // Nobody listens any more where the file was given up.
            let _ = sender.send((block, outcome));
        });
        self.behind = Some(Behind { written, process: crate::threads::fork::generation() });
        Ok(())
    }

    /// Writes everything, and waits for what another thread writes.
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

    /// Whoever goes on after an error gets another one.
    fn check(&self) -> Result<()> {
        match self.failed {
            true => {
                Err(Error::invalid("could not be written before and cannot be finished").in_file(self.name()))
            }
            false => Ok(()),
        }
    }

    /// Gives the file its name. Until this returns, the old file (or none) has it.
    ///
    /// # Errors
    /// What the system says; [`Exists`](crate::ErrorKind::Exists) when somebody else made the target
    /// meanwhile and `overwrite` is false.
    pub fn commit(self) -> Result<()> {
        FileSet::of(self.complete()?).publish()
    }

    /// Writes everything out and syncs it: what is left to do is to give the file its name.
    ///
    /// # Errors
    /// What the system says.
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

/// A file that is complete and synced, and has no name yet: [`FileSet`] publishes it.
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

    /// The thread panicked, or is the parent's of this forked process.
    fn lost() -> io::Error {
        io::Error::other("the thread that was writing is gone")
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
