//! Files that appear whole or not at all.

use super::file::display_name;
use crate::error::{Error, ErrorKind, Result};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::NamedTempFile;

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
/// Where the system can make files without a name (Linux, on most file systems), a process that
/// is killed leaves nothing behind; elsewhere it may leave a hidden file ending in `.partial`, which
/// [`remove_partial_files`] removes if it is called in time.
#[derive(Debug)]
pub struct AtomicFile {
    file: Unnamed,
    /// What waits to be written, and where it goes.
    buffer: Vec<u8>,
    offset: u64,
    target: PathBuf,
    overwrite: bool,
    durability: Durability,
}

/// Small records cost no system call of their own. Writes begin and end at multiples of this: the
/// system then keeps the file in large pieces, which are faster to write and to read again.
const BLOCK: usize = 1 << 18;

impl AtomicFile {
    /// Starts a file that will be called `target`.
    ///
    /// # Errors
    /// [`Exists`](ErrorKind::Exists) when the target is there and `overwrite` is false;
    /// otherwise what the system says.
    pub fn create(target: &Path, overwrite: bool, durability: Durability) -> Result<Self> {
        if !overwrite && target.symlink_metadata().is_ok() {
            return Err(Self::exists(target));
        }
        if target.file_name().is_none() {
            return Err(Error::invalid("is not the name of a file").in_file(display_name(target)));
        }
        // Behind a link the file itself is replaced, not the link.
        let target = if overwrite {
            target.canonicalize().unwrap_or_else(|_| target.to_owned())
        } else {
            target.to_owned()
        };
        // Said here, as a temporary file's name would be in the system's own words.
        std::fs::metadata(folder(&target))
            .map_err(|error| Error::io("cannot create", error).in_file(display_name(&target)))?;
        let file = match nameless(folder(&target)) {
            Some(file) => Unnamed::Nameless(file),
            None => partial()
                .tempfile_in(folder(&target))
                .map(|file| Unnamed::Partial(Listed::new(file.path()), file))
                .map_err(|error| Error::io("cannot create", error).in_file(display_name(&target)))?,
        };
        Ok(AtomicFile { file, buffer: Vec::new(), offset: 0, target, overwrite, durability })
    }

    /// The name the file will have.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The target's name as messages show it.
    pub fn name(&self) -> String {
        display_name(&self.target)
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
            let room = self.room();
            if data.len() < room {
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
                self.buffer.extend_from_slice(now);
                self.flush()?;
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
        if size < self.room() {
            pieces.iter().for_each(|piece| self.buffer.extend_from_slice(piece));
            return Ok(());
        }
        pieces.iter().try_for_each(|piece| self.append(piece))
    }

    /// Fewer bytes than these can be appended without a call to the system.
    pub fn room(&self) -> usize {
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

    fn flush(&mut self) -> Result<()> {
        self.write_at(&self.buffer, self.offset)?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        self.file.file().write_all_at(data, offset).map_err(|error| self.write_error(error))
    }

    /// Gives the file its name. Until this returns, the old file (or none) has it.
    ///
    /// # Errors
    /// What the system says; [`Exists`](ErrorKind::Exists) when somebody else made the target
    /// meanwhile and `overwrite` is false.
    pub fn commit(mut self) -> Result<()> {
        self.flush()?;
        let name = self.name();
        let failed = |error| Error::io("cannot finish", error).in_file(name.clone());
        let file = self.file;
        if self.durability == Durability::Machine {
            file.file().sync_all().map_err(failed)?;
        }
        file.give_name(&self.target, self.overwrite).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Self::exists(&self.target),
            _ => failed(error),
        })?;
        if self.durability == Durability::Machine {
            File::open(folder(&self.target)).and_then(|folder| folder.sync_all()).map_err(failed)?;
        }
        Ok(())
    }

    fn write_error(&self, error: io::Error) -> Error {
        Error::io("cannot write", error).in_file(self.name())
    }

    fn exists(target: &Path) -> Error {
        Error::new(ErrorKind::Exists, "exists already")
            .in_file(display_name(target))
            .with_hint("choose another name, or allow overwriting (`--force` on the command line)")
    }
}

/// A file that has not got its name yet.
#[derive(Debug)]
enum Unnamed {
    /// Has no name at all: gone with the process.
    Nameless(File),
    /// Has a hidden name of its own: removed on drop, not on a kill.
    Partial(Listed, NamedTempFile),
}

/// Hidden names in use.
static PARTIAL_FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the hidden files of this process that have not got their names yet: for a handler of
/// Ctrl-C, which ends the process without dropping anything. Writers still at work fail.
pub fn remove_partial_files() {
    for path in PARTIAL_FILES.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // It may have got its name, or be gone, by now.
        let _ = std::fs::remove_file(path);
    }
}

/// A name that stands in [`PARTIAL_FILES`] as long as this lives.
#[derive(Debug)]
struct Listed(PathBuf);

impl Listed {
    fn new(path: &Path) -> Self {
        PARTIAL_FILES.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        Listed(path.to_owned())
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        PARTIAL_FILES.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.0);
    }
}

impl Unnamed {
    fn file(&self) -> &File {
        match self {
            Unnamed::Nameless(file) => file,
            Unnamed::Partial(_, file) => file.as_file(),
        }
    }

    fn give_name(self, target: &Path, overwrite: bool) -> io::Result<()> {
        match self {
            Unnamed::Nameless(file) if !overwrite => link(&file, target),
            // Linking never replaces a file and renaming does: link to a fresh name, rename that.
            Unnamed::Nameless(file) => {
                let mut listed = None;
                let hidden = partial().make_in(folder(target), |path| {
                    listed = Some(Listed::new(path));
                    link(&file, path)
                })?;
                hidden.into_temp_path().persist(target).map_err(|error| error.error)
            }
            Unnamed::Partial(_listed, file) if overwrite => {
                file.persist(target).map(drop).map_err(|error| error.error)
            }
            Unnamed::Partial(_listed, file) => {
                file.persist_noclobber(target).map(drop).map_err(|error| error.error)
            }
        }
    }
}

/// How hidden temporary names are made: `.anyrec-RANDOM.partial`.
fn partial() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder
        .prefix(".anyrec-")
        .suffix(".partial")
        // What a plain `open` asks for; the process's umask takes its share.
        .permissions(std::fs::Permissions::from_mode(0o666));
    builder
}

/// A file without a name in that folder, where the system has such a thing.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // `link` needs it, and finding that out at the end would be too late.
    Path::new("/proc/self/fd").exists().then_some(())?;
    File::options().read(true).write(true).mode(0o666).custom_flags(libc::O_TMPFILE).open(folder).ok()
}

#[cfg(not(target_os = "linux"))]
fn nameless(_folder: &Path) -> Option<File> {
    None
}

/// Gives a file without a name the name `path`, unless that is taken.
fn link(file: &File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;
    let from = std::ffi::CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let to = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: both strings end in a zero byte and live through the call; the descriptor is open.
    let answer = unsafe {
        libc::linkat(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), libc::AT_SYMLINK_FOLLOW)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The folder a file stands in.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn partial_files_are_listed_until_they_are_committed_or_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let make = || {
            let file = partial().tempfile_in(folder.path()).unwrap();
            let path = file.path().to_owned();
            (Unnamed::Partial(Listed::new(&path), file), path)
        };
        let is_listed = |path: &PathBuf| PARTIAL_FILES.lock().unwrap().contains(path);
        let ((open, open_path), (done, done_path), (dropped, dropped_path)) = (make(), make(), make());
        assert!(is_listed(&open_path) && is_listed(&done_path) && is_listed(&dropped_path));
        done.give_name(&folder.path().join("done"), false).unwrap();
        drop(dropped);
        assert!(is_listed(&open_path) && !is_listed(&done_path) && !is_listed(&dropped_path));
        drop(open);
        assert!(!is_listed(&open_path));
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
