//! Files that are not published yet, and the hidden names some of them have until then.

use super::target::folder;
use crate::threads::fork::Lock;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use tempfile::TempPath;

/// A file being written.
#[derive(Debug)]
pub(super) enum Unnamed {
    /// Has no name at all: disappears with the process.
    Nameless(Arc<File>),
    /// Has a hidden name: removed on drop, but not on a kill.
    Partial(Arc<File>, Partial),
    /// A device or a pipe: keeps its name.
    Stream(Arc<File>),
}

/// A hidden name, removed when this is dropped.
#[derive(Debug)]
pub(super) struct Partial {
    listed: Listed,
    path: TempPath,
}

/// Hidden names in use.
static PARTIAL_FILES: Lock<Vec<PathBuf>> = Lock::new();

/// Whether hidden names may no longer be created, nor files published. Code that does either holds
/// this for reading, so that an interrupt comes before or after, never in between.
static STOPPED: RwLock<bool> = RwLock::new(false);

/// Removes the hidden files of this process that are not published yet. For a Ctrl-C handler, which
/// ends the process without dropping anything. Waits for files that are being published; active
/// writers fail afterwards.
pub fn remove_partial_files() {
    *STOPPED.write().unwrap_or_else(PoisonError::into_inner) = true;
    for path in PARTIAL_FILES.lock().drain(..) {
        // It may already be published or removed.
        let _ = std::fs::remove_file(path);
    }
}

/// Delays [`remove_partial_files`], or fails if it was called.
pub(super) fn hold_off_interrupt() -> io::Result<RwLockReadGuard<'static, bool>> {
    let stopped = STOPPED.read().unwrap_or_else(PoisonError::into_inner);
    match *stopped {
        true => Err(io::Error::other("the program was interrupted")),
        false => Ok(stopped),
    }
}

/// A name that is in [`PARTIAL_FILES`] while this exists.
#[derive(Debug)]
struct Listed(PathBuf);

impl Listed {
    fn new(path: &Path) -> Self {
        PARTIAL_FILES.lock().push(path.to_owned());
        Listed(path.to_owned())
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        PARTIAL_FILES.lock().retain(|path| *path != self.0);
    }
}

impl Unnamed {
    /// Creates a file that will be published in that folder.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        if let Some(file) = nameless(folder) {
            return Ok(Unnamed::Nameless(Arc::new(file)));
        }
        let _held = hold_off_interrupt()?;
        let (file, path) = partial().tempfile_in(folder)?.into_parts();
        Ok(Unnamed::Partial(Arc::new(file), Partial { listed: Listed::new(&path), path }))
    }

    pub(super) fn file(&self) -> &Arc<File> {
        match self {
            Unnamed::Nameless(file) | Unnamed::Partial(file, _) | Unnamed::Stream(file) => file,
        }
    }

    /// Completes the file; nothing more is written to it.
    pub(super) fn complete(self) -> Complete {
        match self {
            Unnamed::Nameless(file) => Complete::Nameless(file),
            Unnamed::Partial(_, partial) => Complete::Hidden(partial),
            Unnamed::Stream(_) => Complete::Stream,
        }
    }
}

/// A file that is written but not yet published.
#[derive(Debug)]
pub(super) enum Complete {
    /// Has no name at all, and must be kept open.
    Nameless(Arc<File>),
    /// Has a hidden name.
    Hidden(Partial),
    /// Needs no publishing.
    Stream,
}

impl Complete {
    /// Gives an unnamed file a hidden name, so that it need not be kept open.
    pub(super) fn close(self, folder: &Path) -> io::Result<Self> {
        let Complete::Nameless(file) = self else { return Ok(self) };
        let _held = hold_off_interrupt()?;
        let path = partial().make_in(folder, |path| link(&file, path))?.into_temp_path();
        Ok(Complete::Hidden(Partial { listed: Listed::new(&path), path }))
    }
}

impl Partial {
    /// The hidden name of a file that is about to be published as `target`. It is always the same,
    /// so that the next process removes one that a killed process left behind. The caller must hold
    /// the folder's lock and delay the interrupt.
    pub(super) fn of(file: &File, target: &Path) -> io::Result<Self> {
        let path = hidden_name(target, "partial");
        match link(file, &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                std::fs::remove_file(&path)?;
                link(file, &path)?;
            }
            linked => linked?,
        }
        Ok(Partial { listed: Listed::new(&path), path: TempPath::try_from_path(path)? })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the file to its target.
    pub(super) fn rename(self, target: &Path, overwrite: bool) -> io::Result<()> {
        match overwrite {
            true => std::fs::rename(&self.path, target)?,
            false => rename_to_new(&self.path, target)?,
        }
        self.keep()
    }

    /// Keeps the hidden file, for a marker to refer to.
    pub(super) fn keep(self) -> io::Result<()> {
        self.path.keep().map(drop).map_err(|error| error.error)?;
        drop(self.listed);
        Ok(())
    }
}

/// Same as `rename`, but never replaces a file that was created in the meantime. It is a single
/// step, like `rename`: linking the new name and unlinking the old one might reach the disk in
/// reverse order.
#[cfg(target_os = "linux")]
pub(super) fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    let (old, new) = (
        std::ffi::CString::new(from.as_os_str().as_bytes())?,
        std::ffi::CString::new(to.as_os_str().as_bytes())?,
    );
    let here = libc::AT_FDCWD;
    // Not through libc's own function, which older systems do not have.
    // SAFETY: both strings end in a zero byte and live through the call.
    let answer = unsafe {
        libc::syscall(libc::SYS_renameat2, here, old.as_ptr(), here, new.as_ptr(), libc::RENAME_NOREPLACE)
    };
    match answer {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => {
                rename_if_new(from, to)
            }
            error => Err(error),
        },
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    rename_if_new(from, to)
}

/// For file systems that cannot check and rename in one step.
fn rename_if_new(from: &Path, to: &Path) -> io::Result<()> {
    match to.symlink_metadata() {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => std::fs::rename(from, to),
    }
}

/// The hidden name for a target: `.anyrec-HASH.ENDING` in its folder. It is hashed because a
/// target's name may have the maximum length.
pub(super) fn hidden_name(target: &Path, ending: &str) -> PathBuf {
    let name = target.file_name().unwrap_or_default();
    let digest = Sha256::digest(name.as_bytes());
    let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    folder(target).join(format!(".anyrec-{hash}.{ending}"))
}

/// Creates hidden temporary names: `.anyrec-RANDOM.partial`.
fn partial() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder
        .prefix(".anyrec-")
        .suffix(".partial")
        // The same mode as a plain `open`; the process's umask applies.
        .permissions(std::fs::Permissions::from_mode(0o666));
    builder
}

/// Creates an unnamed file in that folder, if the operating system supports it.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // `link` needs it, and detecting its absence at the end would be too late.
    Path::new("/proc/self/fd").exists().then_some(())?;
    File::options().read(true).write(true).mode(0o666).custom_flags(libc::O_TMPFILE).open(folder).ok()
}

#[cfg(not(target_os = "linux"))]
fn nameless(_folder: &Path) -> Option<File> {
    None
}

/// Gives an unnamed file the name `path`, unless it is taken.
pub(super) fn link(file: &File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let from = std::ffi::CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let to = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: both strings end in a zero byte and live through the call; the descriptor is open.
    let answer = unsafe {
        libc::linkat(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), libc::AT_SYMLINK_FOLLOW)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_files_are_listed_until_they_are_renamed_or_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let make = || {
            let (_, path) = partial().tempfile_in(folder.path()).unwrap().into_parts();
            let name = path.to_path_buf();
            (Partial { listed: Listed::new(&path), path }, name)
        };
        let is_listed = |path: &PathBuf| PARTIAL_FILES.lock().contains(path);
        let ((open, open_path), (done, done_path), (dropped, dropped_path)) = (make(), make(), make());
        assert!(is_listed(&open_path) && is_listed(&done_path) && is_listed(&dropped_path));
        done.rename(&folder.path().join("done"), false).unwrap();
        drop(dropped);
        assert!(is_listed(&open_path) && !is_listed(&done_path) && !is_listed(&dropped_path));
        drop(open);
        assert!(!is_listed(&open_path));
    }

    #[test]
    fn a_name_that_a_killed_process_left_behind_is_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("file");
        std::fs::write(hidden_name(&target, "partial"), "left behind").unwrap();
        let source = folder.path().join("source");
        std::fs::write(&source, "new").unwrap();
        let file = File::open(&source).unwrap();
        Partial::of(&file, &target).unwrap().rename(&target, false).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
