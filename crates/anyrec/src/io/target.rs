//! What a name to be written stands for: a file to make or replace, or a stream to write to.

use crate::base::{Error, ErrorKind, Hint, Result};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Links followed before they count as a loop; the system's own number.
const MOST_LINKS: usize = 40;

/// How long a pipe may be without a reader: a reader that is being started has this time.
const WAIT_FOR_READER: Duration = Duration::from_secs(5);

/// Where bytes written under a name go.
#[derive(Debug)]
pub(super) enum Target {
    /// Into a file of that name, links followed.
    File {
        path: PathBuf,
        /// What is there now.
        replaced: Option<Replaced>,
    },
    /// Into a device, a pipe, or a descriptor that is open already: never replaced.
    Stream(PathBuf),
}

impl Target {
    pub(super) fn find(name: &Path, overwrite: bool) -> Result<Self> {
        let invalid = |message: &str| Error::invalid(message).in_file(name);
        if name.file_name().is_none() {
            return Err(invalid("is not the name of a file"));
        }
        let mut path = name.to_owned();
        for _ in 0..MOST_LINKS {
            // Behind `/dev/stdout` may be a regular file, but it is the shell's, open and half
            // written: not one to be replaced.
            if is_descriptor(&path) {
                return Ok(Target::Stream(path));
            }
            let Ok(next) = path.read_link() else { break };
            path = folder(&path).join(next);
        }
        match std::fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Target::File { path, replaced: None })
            }
            Err(error) => Err(Error::io("cannot create", error).in_file(name)),
            Ok(found) if found.is_dir() => Err(invalid("is a folder, which a file cannot replace")),
            Ok(found) if found.file_type().is_block_device() => {
                Err(invalid("is a block device, which is never written to"))
            }
            Ok(found) if !found.is_file() => Ok(Target::Stream(path)),
            Ok(_) if !overwrite => Err(exists(name)),
            Ok(found) => Ok(Target::File { path, replaced: Some(Replaced::new(&found)) }),
        }
    }
}

/// The error for a file that is there and may not be replaced.
pub(super) fn exists(target: &Path) -> Error {
    Error::new(ErrorKind::Exists, "exists already").in_file(target).with_hint(Hint::AllowOverwrite)
}

/// Whether a path names an open descriptor of a process: `/proc/self/fd/1`, `/dev/fd/1`.
fn is_descriptor(path: &Path) -> bool {
    path.is_absolute() && folder(path).canonicalize().is_ok_and(|folder| folder.starts_with("/proc"))
}

/// Opens a stream to write to it.
pub(super) fn open_stream(path: &Path) -> Result<File> {
    let failed = |error| Error::io("cannot write to", error).in_file(path);
    let number = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
    let own = Path::new("/proc/self/fd").canonicalize().ok();
    if let (true, Some(number)) = (is_descriptor(path) && folder(path).canonicalize().ok() == own, number) {
        return duplicate(number).map_err(failed);
    }
    let is_pipe = std::fs::metadata(path).map_err(failed)?.file_type().is_fifo();
    let mut how = File::options();
    how.write(true);
    if !is_pipe {
        return how.custom_flags(libc::O_NOCTTY).open(path).map_err(failed);
    }
    // A plain `open` of a pipe that nobody reads would wait for ever.
    let begun = Instant::now();
    loop {
        match how.custom_flags(libc::O_NONBLOCK).open(path) {
            Ok(pipe) => return wait_when_full(&pipe).map(|()| pipe).map_err(failed),
            Err(error) if error.raw_os_error() != Some(libc::ENXIO) => return Err(failed(error)),
            Err(_) if begun.elapsed() < WAIT_FOR_READER => std::thread::sleep(Duration::from_millis(10)),
            Err(_) => {
                return Err(Error::invalid("is a pipe that no process reads from").in_file(path));
            }
        }
    }
}

/// The same descriptor once more: a file reopened by its path would be written from its beginning.
fn duplicate(number: i32) -> io::Result<File> {
    use std::os::fd::{FromRawFd, OwnedFd};
    // SAFETY: the call checks the number itself.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call just made it, so it is open and nobody else's.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(copy) }))
}

/// Has writes to a full pipe wait again.
fn wait_when_full(pipe: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the call takes no memory.
    let flags = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    match unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What a new file takes over from the one it replaces.
#[derive(Debug)]
pub(super) struct Replaced {
    mode: u32,
    owner: u32,
    group: u32,
}

impl Replaced {
    fn new(found: &Metadata) -> Self {
        Replaced { mode: found.mode() & 0o7777, owner: found.uid(), group: found.gid() }
    }

    /// Gives a new file the mode and, where permitted, the owner of the old one.
    pub(super) fn pass_on(&self, file: &File) -> io::Result<()> {
        let new = file.metadata()?;
        let mut mode = self.mode;
        if (new.uid(), new.gid()) != (self.owner, self.group)
            && std::os::unix::fs::fchown(file, Some(self.owner), Some(self.group)).is_err()
        {
            // Another's rights are not given to us: no set-id bits, and where the group cannot be
            // kept either, ours may do what everybody may.
            mode &= 0o777;
            if new.gid() != self.group && std::os::unix::fs::fchown(file, None, Some(self.group)).is_err() {
                mode = (mode & !0o070) | ((mode & 0o007) << 3);
            }
        }
        match new.mode() & 0o7777 == mode {
            true => Ok(()),
            false => file.set_permissions(std::fs::Permissions::from_mode(mode)),
        }
    }
}

/// The folder a file stands in.
pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
