//! Creates files under names that come from a file.
//!
//! Such names are untrusted and may try to escape from the folder they are unpacked into. There are
//! two defences:
//!
//! - **The name.** [`check_name`] accepts a single name, never a path: no separators, no `..`,
//!   nothing with a special meaning on some system.
//! - **The place.** An [`UnpackFolder`] is an open folder, and everything is created relative to it
//!   (`openat`, `mkdirat`) under a single checked name. Files are created with `O_EXCL`, so
//!   anything that already has the name, including a link, is an error and is not followed or
//!   overwritten. Folders must be new as well and are opened with `O_NOFOLLOW`: a link put in their
//!   place in the meantime is rejected. No path is ever built and passed to the operating system,
//!   so none can be redirected between a check and its use.
//!
//! Names that a file system does not distinguish (`A` and `a`, two forms of `é`) are detected by
//! the file system itself: the second one already exists and is rejected. If it does distinguish
//! them, both are created, since folders packed on Linux do contain such pairs.

use crate::base::{Error, ErrorKind, Result, shown};
use bstr::{BStr, ByteSlice};
use std::borrow::Cow;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Longest file name that common file systems allow.
const MAX_NAME: usize = 255;

/// What to do with names that [`check_name`] rejects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BadNames {
    /// Report an error before anything is written.
    #[default]
    Refuse,
    /// Write their dangerous bytes as `%` and two hexadecimal digits.
    Escape,
}

/// Checks whether a name from a file is safe to use as a file name.
///
/// ```
/// use anyrec::io::check_name;
///
/// assert!(check_name(b"photo 1.jpg").is_ok());
/// assert_eq!(check_name(b".."), Err("it leads out of the folder"));
/// assert!(check_name(b"/etc/passwd").is_err());
/// ```
///
/// # Errors
/// The reason for rejecting it, to be appended to the name.
pub fn check_name(name: &[u8]) -> std::result::Result<(), &'static str> {
    match name {
        b"" => return Err("it is empty"),
        b"." => return Err("it is the folder itself"),
        b".." => return Err("it leads out of the folder"),
        _ => {}
    }
    if name.len() > MAX_NAME {
        return Err("it is longer than 255 bytes");
    }
    if name.contains(&0) {
        return Err("it holds a zero byte");
    }
    if name.contains(&b'/') {
        return Err("it holds a path separator");
    }
    if name.contains(&b'\\') {
        return Err("it holds a backslash, a path separator on Windows");
    }
    if name.iter().any(u8::is_ascii_control) {
        return Err("it holds a control character");
    }
    if matches!(name, [letter, b':', ..] if letter.is_ascii_alphabetic()) {
        return Err("it begins with a drive letter of Windows");
    }
    if is_device(name) {
        return Err("it is the name of a device on Windows");
    }
    Ok(())
}

/// Names that Windows treats as devices, whatever follows their first dot.
fn is_device(name: &[u8]) -> bool {
    let stem = name.split(|&byte| byte == b'.' || byte == b':').next().unwrap_or_default();
    let stem = stem.trim_end_with(|character| character == ' ').to_ascii_lowercase();
    let devices: [&[u8]; 7] = [b"con", b"prn", b"aux", b"nul", b"conin$", b"conout$", b"clock$"];
    devices.contains(&stem.as_slice())
        || stem.strip_prefix(b"com").or(stem.strip_prefix(b"lpt")).is_some_and(|number| {
            matches!(number, [b'0'..=b'9']) || ["¹", "²", "³"].iter().any(|digit| digit.as_bytes() == number)
        })
}

/// The name to use for a name from a file: unchanged if [`check_name`] accepts it, otherwise
/// escaped if `bad_names` says so.
///
/// ```
/// use anyrec::io::{BadNames, safe_name};
///
/// assert_eq!(safe_name(b"a/b", BadNames::Escape).unwrap().as_ref(), b"a%2fb");
/// assert_eq!(safe_name(b"..", BadNames::Escape).unwrap().as_ref(), b"%2e%2e");
/// assert!(safe_name(b"..", BadNames::Refuse).is_err());
/// ```
///
/// # Errors
/// Same as [`check_name`]; names that are too long are always rejected.
pub fn safe_name(name: &[u8], bad_names: BadNames) -> std::result::Result<Cow<'_, [u8]>, &'static str> {
    let reason = match (check_name(name), bad_names) {
        (Ok(()), _) => return Ok(Cow::Borrowed(name)),
        (Err(reason), BadNames::Refuse) => return Err(reason),
        (Err(reason), BadNames::Escape) => reason,
    };
    let dots = name == b"." || name == b"..";
    let mut escaped = Vec::new();
    for (at, &byte) in name.iter().enumerate() {
        // Escaping the first letter is enough to change a device's name.
        let device = at == 0 && is_device(name);
        if dots || device || byte.is_ascii_control() || b"/\\%:".contains(&byte) {
            escaped.extend_from_slice(format!("%{byte:02x}").as_bytes());
        } else {
            escaped.push(byte);
        }
    }
    if name.is_empty() {
        escaped.push(b'%');
    }
    check_name(&escaped).map_err(|_| reason)?;
    Ok(Cow::Owned(escaped))
}

/// An open folder that files are unpacked into. The module documentation explains why this is safe.
#[derive(Debug)]
pub struct UnpackFolder {
    folder: OwnedFd,
    /// For messages only.
    path: PathBuf,
}

impl UnpackFolder {
    /// Opens the target folder, and creates it if it does not exist. Links in the path were chosen
    /// by the caller and are followed.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn open(path: &Path) -> Result<Self> {
        let folder = std::fs::create_dir_all(path)
            .and_then(|()| {
                std::fs::OpenOptions::new()
                    .read(true)
                    .custom_flags(libc::O_DIRECTORY | libc::O_CLOEXEC)
                    .open(path)
            })
            .map_err(|error| Error::io("cannot open the folder", error).in_file(path))?;
        Ok(UnpackFolder { folder: folder.into(), path: path.to_owned() })
    }

    /// Whether the name exists in this folder; a link counts whatever its target.
    ///
    /// # Errors
    /// A name that [`check_name`] rejects, or the operating system's error.
    pub fn has(&self, name: &[u8]) -> Result<bool> {
        let name = self.checked(name)?;
        // SAFETY: an all-zero stat is a valid value for the call to fill in.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is open, the name ends in a zero byte, `status` is writable.
        let answer = unsafe {
            libc::fstatat(self.folder.as_raw_fd(), name.as_ptr(), &raw mut status, libc::AT_SYMLINK_NOFOLLOW)
        };
        match (answer, io::Error::last_os_error()) {
            (0, _) => Ok(true),
            (_, error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            (_, error) => Err(self.failed("cannot inspect", &name, error)),
        }
    }

    /// Creates a new folder here and opens it.
    ///
    /// # Errors
    /// A name that [`check_name`] rejects, [`Exists`](ErrorKind::Exists) if the name already
    /// exists, or the operating system's error.
    pub fn create_folder(&self, name: &[u8]) -> Result<UnpackFolder> {
        let checked = self.checked(name)?;
        // SAFETY: the descriptor is open and the name ends in a zero byte.
        if unsafe { libc::mkdirat(self.folder.as_raw_fd(), checked.as_ptr(), 0o777) } != 0 {
            return Err(self.failed("cannot create the folder", &checked, io::Error::last_os_error()));
        }
        self.open_folder(name)
    }

    /// Opens a folder that was created here before. A link is not followed.
    ///
    /// # Errors
    /// A name that [`check_name`] rejects, or the operating system's error.
    pub fn open_folder(&self, name: &[u8]) -> Result<UnpackFolder> {
        let name = self.checked(name)?;
        let folder = self.open_at(&name, libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW);
        let folder = folder.map_err(|error| self.failed("cannot open the folder", &name, error))?;
        Ok(UnpackFolder { folder, path: self.shown(&name) })
    }

    /// Renames a folder that was created here before.
    ///
    /// # Errors
    /// A name that [`check_name`] rejects, [`Exists`](ErrorKind::Exists) if the new name already
    /// exists, or the operating system's error.
    pub fn rename_folder(&self, from: &[u8], to: &[u8]) -> Result<()> {
        if self.has(to)? {
            let error = io::Error::from_raw_os_error(libc::EEXIST);
            return Err(self.failed("cannot rename a folder to", &self.checked(to)?, error));
        }
        let (from, to) = (self.checked(from)?, self.checked(to)?);
        let here = self.folder.as_raw_fd();
        // SAFETY: the descriptor is open and the names end in a zero byte.
        if unsafe { libc::renameat(here, from.as_ptr(), here, to.as_ptr()) } != 0 {
            return Err(self.failed("cannot rename the folder", &from, io::Error::last_os_error()));
        }
        Ok(())
    }

    /// Creates a new file here with that content. A file that cannot be written completely is
    /// removed.
    ///
    /// # Errors
    /// A name that [`check_name`] rejects, [`Exists`](ErrorKind::Exists) if the name already
    /// exists, or the operating system's error.
    pub fn create_file(&self, name: &[u8], content: &[u8]) -> Result<()> {
        let name = self.checked(name)?;
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let file = self.open_at(&name, flags);
        let mut file = File::from(file.map_err(|error| self.failed("cannot create", &name, error))?);
        file.write_all(content).map_err(|error| {
            // SAFETY: the descriptor is open and the name ends in a zero byte. The result is
            // ignored, because the first failure is the one to report.
            unsafe { libc::unlinkat(self.folder.as_raw_fd(), name.as_ptr(), 0) };
            self.failed("cannot write", &name, error)
        })
    }

    fn open_at(&self, name: &CString, flags: libc::c_int) -> io::Result<OwnedFd> {
        let mode: libc::c_uint = 0o666;
        // SAFETY: the descriptor is open and the name ends in a zero byte.
        let opened =
            unsafe { libc::openat(self.folder.as_raw_fd(), name.as_ptr(), flags | libc::O_CLOEXEC, mode) };
        match opened {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: the call has just opened it, so this is its only owner.
            descriptor => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        }
    }

    /// Checks every name, whatever the caller checked before.
    fn checked(&self, name: &[u8]) -> Result<CString> {
        let refused = |reason: &str| {
            Error::invalid(format!("the name {:?} is refused: {reason}", BStr::new(name))).in_file(&self.path)
        };
        check_name(name).map_err(refused)?;
        CString::new(name).map_err(|_| refused("it holds a zero byte"))
    }

    fn shown(&self, name: &CString) -> PathBuf {
        self.path.join(OsStr::from_bytes(name.as_bytes()))
    }

    fn failed(&self, doing: &str, name: &CString, error: io::Error) -> Error {
        let file = shown(&self.shown(name));
        match error.kind() {
            io::ErrorKind::AlreadyExists => Error::new(ErrorKind::Exists, "already exists")
                .in_file(file)
                .with_hint("unpack into an empty folder; some file systems cannot tell `A` from `a`"),
            _ => Error::io(doing, error).in_file(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyday_names_pass_and_dangerous_ones_do_not() {
        let pass: [&[u8]; 12] = [
            b"a",
            b".hidden",
            b"...",
            b"name with  spaces ",
            b"10:30",
            b"-rf",
            "é😀".as_bytes(),
            b"\xff\xfe",
            b"con1",
            b"console.txt",
            b"com10",
            b"100%",
        ];
        for name in pass {
            assert_eq!(check_name(name), Ok(()), "{:?}", BStr::new(name));
            assert_eq!(safe_name(name, BadNames::Escape).unwrap(), name);
        }
        let refused: [&[u8]; 14] = [
            b"",
            b".",
            b"..",
            b"/",
            b"a/b",
            b"..\\x",
            b"a\0b",
            b"a\nb",
            b"C:",
            b"c:x",
            b"NUL",
            b"aux.c",
            b"Com1 .txt",
            b"lpt9",
        ];
        for name in refused {
            assert!(check_name(name).is_err(), "{:?}", BStr::new(name));
            let escaped = safe_name(name, BadNames::Escape).unwrap();
            assert_eq!(check_name(&escaped), Ok(()), "{:?}", BStr::new(&escaped));
        }
        assert!(safe_name(&[b'n'; 256], BadNames::Escape).is_err());
    }

    #[test]
    fn nothing_that_exists_is_touched_or_followed() {
        let outside = tempfile::tempdir().unwrap();
        let target = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), target.path().join("folder link")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("new"), target.path().join("file link")).unwrap();
        std::fs::write(target.path().join("file"), "old").unwrap();
        let folder = UnpackFolder::open(target.path()).unwrap();
        for name in [&b"file"[..], b"file link", b"folder link"] {
            assert!(folder.has(name).unwrap());
            assert_eq!(folder.create_file(name, b"new").unwrap_err().kind(), ErrorKind::Exists);
            assert_eq!(folder.create_folder(name).unwrap_err().kind(), ErrorKind::Exists);
            assert!(folder.open_folder(name).is_err());
        }
        assert!(folder.create_file(b"../escaped", b"new").unwrap_err().message().contains("separator"));
        assert_eq!(std::fs::read(target.path().join("file")).unwrap(), b"old");
        assert_eq!(outside.path().read_dir().unwrap().count(), 0);
        folder.create_folder(b"inner").unwrap().create_file(b"file", b"new").unwrap();
        assert_eq!(std::fs::read(target.path().join("inner/file")).unwrap(), b"new");
    }
}
