//! Publishes files that belong together.
//!
//! A data file and its index file, or the files that a conversion was split into, cannot be renamed
//! in one step. All of them are complete and synced before the first is published, and a small
//! marker file lists the steps, so that another process can complete them after a kill:
//!
//! 1. every new file gets a hidden name (`.anyrec-*.partial`) in the folder;
//! 2. a marker (`.anyrec-*.replacing`, one name per data file) lists the steps that follow;
//! 3. index files of the replaced data are removed;
//! 4. data files are renamed to their targets;
//! 5. index files are renamed to theirs;
//! 6. the marker is removed.
//!
//! The folder is synced between the steps, except at the end (and, for a single new file, before
//! the marker). Until the marker exists, the old files are unchanged. From then on, repeating steps
//! 3 to 6 publishes the new files ([`finish_interrupted`]). At no time is an index file beside data
//! it was not made for. Opening a file whose marker has steps left is an error that says so.
//!
//! A publication holds the folder's lock (`flock`), so that it does not mix with another one, or
//! with a process that completes an older one.
//!
//! The marker does not cover files in folders other than that of the first data file. They are
//! published in the same order, but a kill in between can lose them.

use super::atomic_file::{CompleteFile, Durability};
use super::target::{exists, folder};
use super::unnamed::{Complete, Partial, hidden_name, hold_off_interrupt, link, rename_to_new};
use crate::base::{Error, ErrorKind, Hint, Result, shown};
use bstr::ByteSlice;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to wait for another process's publication.
const WAIT_FOR_OTHERS: Duration = Duration::from_secs(10);

/// The first and the last line of a marker.
const BEGIN: &[u8] = b"anyrec replaces these files together";
const END: &[u8] = b"end";

/// The role of a file among those published with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Data,
    Index,
}

/// Complete files that are published together: either all of them, or none that would be trusted.
#[derive(Debug, Default)]
pub struct FileSet {
    files: Vec<(Role, CompleteFile)>,
    obsolete: Vec<Obsolete>,
}

/// A file to be removed because it belongs to a file that is replaced.
#[derive(Debug)]
pub struct Obsolete {
    path: PathBuf,
    /// Device, inode, length and time of the last change.
    identity: (u64, u64, u64, i64, i64),
}

impl Obsolete {
    /// The file in its current state, if it exists. It is removed unless it changes in the
    /// meantime.
    pub fn find(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
        Some(Obsolete { path: path.to_owned(), identity: identity(&metadata) })
    }

    fn is_unchanged(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|metadata| identity(&metadata) == self.identity)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn identity(metadata: &Metadata) -> (u64, u64, u64, i64, i64) {
    (metadata.dev(), metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

impl FileSet {
    /// A set of one data file.
    pub fn of(file: CompleteFile) -> Self {
        FileSet { files: vec![(Role::Data, file)], obsolete: Vec::new() }
    }

    /// Adds an index file. It is published after all data files, and an old one is removed before
    /// them.
    pub fn add_index(&mut self, index: CompleteFile) {
        self.files.push((Role::Index, index));
    }

    /// Adds a file to be removed before the data files are published.
    pub fn remove(&mut self, obsolete: Obsolete) {
        self.obsolete.push(obsolete);
    }

    /// Appends the files of another set.
    pub fn append(&mut self, other: FileSet) {
        self.files.extend(other.files);
        self.obsolete.extend(other.obsolete);
    }

    /// Number of files to publish.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there is nothing to publish.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Closes all files, for sets larger than the limit of open files. A kill before they are
    /// published then leaves hidden files (`.anyrec-*.partial`) behind.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn close_files(self) -> Result<Self> {
        let close = |(role, file): (Role, CompleteFile)| {
            let failed = |error| Error::io("cannot finish", error).in_file(&file.target);
            let closed = file.file.close(folder(&file.target)).map_err(failed)?;
            Ok((role, CompleteFile { file: closed, ..file }))
        };
        Ok(FileSet { files: self.files.into_iter().map(close).collect::<Result<_>>()?, ..self })
    }

    /// Publishes all files.
    ///
    /// # Errors
    /// The operating system's error; [`Exists`](ErrorKind::Exists) if one of the files was created
    /// in the meantime and may not be overwritten. If some files are already in place, the message
    /// says so.
    pub fn publish(mut self) -> Result<()> {
        self.files.retain(|(_, file)| !matches!(file.file, Complete::Stream));
        let Some((_, first)) = self.files.first() else { return Ok(()) };
        let failed = |target: &Path, error| Error::io("cannot finish", error).in_file(target);
        let home = folder(&first.target).to_owned();
        let durability = first.durability;
        let _held = hold_off_interrupt().map_err(|error| failed(&first.target, error))?;
        let mut folders: Vec<&Path> = self.files.iter().map(|(_, file)| folder(&file.target)).collect();
        // In a fixed order, so that two publications cannot deadlock.
        folders.sort_unstable();
        folders.dedup();
        let _locks = folders.into_iter().map(Lock::exclusive).collect::<Result<Vec<_>>>()?;
        for (_, file) in &self.files {
            Marker::finish(&file.target)?;
            if !file.overwrite && file.target.symlink_metadata().is_ok() {
                return Err(exists(&file.target));
            }
        }
        let mut targets: Vec<&Path> = self.files.iter().map(|(_, file)| file.target.as_path()).collect();
        targets.sort_unstable();
        if let Some(twice) =
            targets.windows(2).find(|pair| pair.first() == pair.last()).and_then(<[&Path]>::first)
        {
            return Err(Error::invalid("two of the files to be written have this name").in_file(*twice));
        }
        let mut remove: Vec<PathBuf> =
            self.obsolete.iter().filter(|old| old.is_unchanged()).map(|old| old.path.clone()).collect();
        let old_indexes = self.files.iter().filter(|(role, _)| *role == Role::Index);
        remove.extend(old_indexes.map(|(_, file)| file.target.clone()).filter(|old| old.exists()));
        if self.files.len() == 1 && remove.is_empty() {
            return self.files.into_iter().try_for_each(|(_, file)| file.publish_alone());
        }
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            self.files.into_iter().partition(|(_, file)| folder(&file.target) == home);
        let (remove_here, remove_elsewhere): (Vec<_>, Vec<_>) =
            remove.into_iter().partition(|old| folder(old) == home);
        let remove = remove_here.into_iter().filter_map(|old| Some((inode(&old)?, old))).collect();
        let mut marker = Marker { remove, steps: Vec::new(), durability };
        let mut hidden = Vec::new();
        for (role, file) in here {
            let CompleteFile { file, target, overwrite, .. } = file;
            let partial = match file {
                Complete::Hidden(partial) => partial,
                Complete::Nameless(file) => {
                    Partial::of(&file, &target).map_err(|error| failed(&target, error))?
                }
                Complete::Stream => continue,
            };
            let inode =
                inode(partial.path()).ok_or_else(|| failed(&target, io::ErrorKind::NotFound.into()))?;
            marker.steps.push(Step { role, hidden: partial.path().to_owned(), inode, target, overwrite });
            hidden.push(partial);
        }
        marker.write(&home)?;
        for partial in hidden {
            partial.keep().map_err(|error| failed(&home, error))?;
        }
        for old in remove_elsewhere {
            remove_if_there(&old)
                .and_then(|()| sync(folder(&old), durability))
                .map_err(|error| failed(&old, error))?;
        }
        marker.carry_out(&home).map_err(|error| match marker.steps.first() {
            Some(step) => error.with_hint(finish_hint(&step.target)),
            None => error,
        })?;
        elsewhere.into_iter().try_for_each(|(_, file)| file.publish_alone())
    }
}

impl CompleteFile {
    fn publish_alone(self) -> Result<()> {
        let CompleteFile { file, target, overwrite, durability } = self;
        let named = match file {
            Complete::Stream => return Ok(()),
            Complete::Nameless(file) if !overwrite => link(&file, &target),
            // Linking never replaces a file, but renaming does: link to a hidden name, then rename
            // that.
            Complete::Nameless(file) => {
                Partial::of(&file, &target).and_then(|partial| partial.rename(&target, overwrite))
            }
            Complete::Hidden(partial) => partial.rename(&target, overwrite),
        };
        named.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&target),
            _ => Error::io("cannot finish", error).in_file(&target),
        })?;
        sync(folder(&target), durability).map_err(|error| {
            Error::io("the new file is in place, but a power loss may undo it: cannot sync the folder", error)
                .in_file(&target)
        })
    }
}

/// Completes an interrupted publication, if `path` is one of its data files. Returns whether there
/// was anything to do.
///
/// # Errors
/// The operating system's error.
pub fn finish_interrupted(path: &Path) -> Result<bool> {
    let path = resolved(path);
    let failed = |error| Error::io("cannot finish", error).in_file(&path);
    let _held = hold_off_interrupt().map_err(failed)?;
    let _lock = Lock::exclusive(folder(&path))?;
    Marker::finish(&path)
}

/// Fails if `path` is one of several files that were being replaced when the process doing so was
/// killed. Waits for a process that is still doing so.
pub(super) fn check_published(path: &Path) -> Result<()> {
    let path = resolved(path);
    // Nearly every file needs only this check.
    if !hidden_name(&path, "replacing").exists() {
        return Ok(());
    }
    if Marker::read(&path)?.is_none_or(|marker| marker.is_done()) {
        return Ok(());
    }
    let _lock = Lock::shared(folder(&path))?;
    let Some(marker) = Marker::read(&path)?.filter(|marker| !marker.is_done()) else { return Ok(()) };
    let name = |step: &Step| shown(Path::new(step.target.file_name().unwrap_or_default()));
    let list = |wanted: bool| {
        let data = marker.steps.iter().filter(|step| step.is_done() == wanted);
        let names: Vec<String> = data.map(name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    Err(Error::new(
        ErrorKind::Stale,
        format!(
            "the replacement of this file and those that belong to it was interrupted (in place: {}; missing: {})",
            list(true),
            list(false)
        ),
    )
    .in_file(&path)
    .with_hint(finish_hint(&path)))
}

fn finish_hint(path: &Path) -> Hint {
    Hint::Finish { file: shown(path) }
}

/// A file's path as the writer resolved it: links at its own name are followed.
fn resolved(path: &Path) -> PathBuf {
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        _ => path.to_owned(),
    }
}

/// The steps of a publication.
///
/// It also identifies files by inode: a marker that came with other files, or was copied, cannot
/// cause any file of this folder to be removed or replaced.
#[derive(Debug)]
struct Marker {
    /// Index files of the replaced data, with their inodes.
    remove: Vec<(u64, PathBuf)>,
    steps: Vec<Step>,
    durability: Durability,
}

/// A file to publish.
#[derive(Debug)]
struct Step {
    role: Role,
    hidden: PathBuf,
    /// The hidden file's inode.
    inode: u64,
    target: PathBuf,
    overwrite: bool,
}

impl Step {
    fn is_done(&self) -> bool {
        self.hidden.symlink_metadata().is_err()
    }

    /// Fails unless the hidden file is the one this step was written for.
    fn check(&self) -> Result<()> {
        if self.is_done() || inode(&self.hidden) == Some(self.inode) {
            return Ok(());
        }
        let what = "the files left by this interrupted replacement are not the ones its marker describes";
        let marker = shown(&hidden_name(&self.target, "replacing"));
        let hint = format!("remove {marker} if you trust the current file");
        Err(Error::invalid(what).in_file(&self.target).with_hint(hint))
    }

    fn carry_out(&self) -> Result<()> {
        if self.is_done() {
            return Ok(());
        }
        let renamed = match self.overwrite {
            true => std::fs::rename(&self.hidden, &self.target),
            false => rename_to_new(&self.hidden, &self.target),
        };
        renamed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&self.target),
            _ => Error::io("cannot finish", error).in_file(&self.target),
        })
    }
}

impl Marker {
    /// The paths of a publication's marker.
    fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.steps
            .iter()
            .filter(|step| step.role == Role::Data)
            .map(|step| hidden_name(&step.target, "replacing"))
    }

    fn is_done(&self) -> bool {
        self.steps.iter().all(Step::is_done)
    }

    /// Writes the marker. From then on the steps will be carried out, by this process or another.
    fn write(&self, home: &Path) -> Result<()> {
        let mut made = Vec::new();
        let written = self.try_write(home, &mut made);
        if written.is_err() {
            for path in made {
                // A marker that names missing files is ignored.
                let _ = std::fs::remove_file(path);
            }
        }
        written.map_err(|error| Error::io("cannot finish", error).in_file(home))
    }

    fn try_write(&self, home: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
        // Sync the hidden names first: if a power loss dropped some of them, the others would be
        // published without them. A single one either exists or not.
        if self.steps.len() > 1 {
            sync(home, self.durability)?;
        }
        for path in self.paths() {
            if let Some(first) = made.first() {
                std::fs::hard_link(first, &path)?;
                made.push(path);
                continue;
            }
            let mut marker = File::create_new(&path)?;
            made.push(path);
            marker.write_all(&self.to_bytes())?;
            if self.durability == Durability::Machine {
                marker.sync_all()?;
            }
        }
        sync(home, self.durability)
    }

    /// Carries out the remaining steps, and removes the marker.
    fn carry_out(&self, home: &Path) -> Result<()> {
        let failed = |error| Error::io("cannot finish", error).in_file(home);
        let of = |role| self.steps.iter().filter(move |step| step.role == role);
        self.steps.iter().try_for_each(Step::check)?;
        // If the data is already published, the old index files are gone and new ones may be in
        // place.
        if of(Role::Data).any(|step| !step.is_done()) && !self.remove.is_empty() {
            let is_ours = |old: &Path| of(Role::Index).any(|step| step.target == old);
            let old = self.remove.iter().filter(|(number, old)| is_ours(old) || inode(old) == Some(*number));
            old.map(|(_, old)| old).try_for_each(|old| remove_if_there(old)).map_err(failed)?;
            sync(home, self.durability).map_err(failed)?;
        }
        of(Role::Data).try_for_each(Step::carry_out)?;
        sync(home, self.durability).map_err(failed)?;
        if of(Role::Index).next().is_some() {
            of(Role::Index).try_for_each(Step::carry_out)?;
            sync(home, self.durability).map_err(failed)?;
        }
        for path in self.paths() {
            remove_if_there(&path).map_err(failed)?;
        }
        Ok(())
    }

    /// Carries out the steps of a data file's marker, if there is one, and removes it.
    fn finish(path: &Path) -> Result<bool> {
        match Self::read(path)? {
            Some(marker) => {
                let was_done = marker.is_done();
                marker.carry_out(folder(path)).map(|()| !was_done)
            }
            None => {
                let marker = hidden_name(path, "replacing");
                remove_if_there(&marker)
                    .map(|()| false)
                    .map_err(|error| Error::io("cannot remove", error).in_file(&marker))
            }
        }
    }

    /// The marker of a data file; `None` if there is none, or if it was never complete. In that
    /// case no step was taken either.
    fn read(path: &Path) -> Result<Option<Self>> {
        let marker = hidden_name(path, "replacing");
        match std::fs::read(&marker) {
            Ok(text) => Ok(Self::parse(&text, folder(path))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("cannot read", error).in_file(&marker)),
        }
    }

    /// One step per line, with tab-separated fields; names are relative to the marker's folder.
    fn to_bytes(&self) -> Vec<u8> {
        let mut text = [BEGIN, b"\n"].concat();
        let mut line = |fields: &[&[u8]]| {
            text.extend(fields.join(&b'\t'));
            text.push(b'\n');
        };
        for (inode, old) in &self.remove {
            line(&[b"remove", inode.to_string().as_bytes(), &escaped(old)]);
        }
        for Step { role, hidden, inode, target, overwrite } in &self.steps {
            let role: &[u8] = if *role == Role::Data { b"data" } else { b"index" };
            let how: &[u8] = if *overwrite { b"replace" } else { b"new" };
            line(&[role, how, inode.to_string().as_bytes(), &escaped(hidden), &escaped(target)]);
        }
        line(&[END]);
        text
    }

    fn parse(text: &[u8], home: &Path) -> Option<Self> {
        let lines = text.strip_suffix(b"\n")?.strip_prefix(BEGIN)?.strip_prefix(b"\n")?;
        let (lines, last) = lines.rsplit_once_str(b"\n")?;
        let mut marker = Marker { remove: Vec::new(), steps: Vec::new(), durability: Durability::Machine };
        for line in lines.split_str(b"\n") {
            let fields: Vec<&[u8]> = line.split_str(b"\t").collect();
            match fields.as_slice() {
                [b"remove", inode, old] => marker.remove.push((number(inode)?, home.join(unescaped(old)?))),
                [role @ (b"data" | b"index"), how @ (b"replace" | b"new"), inode, hidden, target] => {
                    marker.steps.push(Step {
                        role: if *role == b"data" { Role::Data } else { Role::Index },
                        hidden: home.join(unescaped(hidden)?),
                        inode: number(inode)?,
                        target: home.join(unescaped(target)?),
                        overwrite: *how == b"replace",
                    });
                }
                _ => return None,
            }
        }
        (last == END).then_some(marker)
    }
}

/// A file's name as a field of a line.
fn escaped(path: &Path) -> Vec<u8> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    name.replace(b"\\", br"\\").replace(b"\t", br"\t").replace(b"\n", br"\n")
}

/// A file's name from a field of a line; `None` unless it is a plain file name.
fn unescaped(field: &[u8]) -> Option<PathBuf> {
    let mut name = Vec::new();
    let mut bytes = field.iter();
    while let Some(&byte) = bytes.next() {
        name.push(match byte {
            b'\\' => match bytes.next()? {
                b't' => b'\t',
                b'n' => b'\n',
                b'\\' => b'\\',
                _ => return None,
            },
            other => other,
        });
    }
    let path = Path::new(OsStr::from_bytes(&name));
    (path.file_name() == Some(path.as_os_str())).then(|| path.to_owned())
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn inode(path: &Path) -> Option<u64> {
    path.symlink_metadata().ok().map(|metadata| metadata.ino())
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Makes a folder's names survive a power loss.
fn sync(folder: &Path, durability: Durability) -> io::Result<()> {
    match durability {
        Durability::Machine => File::open(folder).and_then(|folder| folder.sync_all()),
        Durability::Process => Ok(()),
    }
}

/// A folder's lock, released when this is dropped or the process ends.
struct Lock(File);

impl Lock {
    /// For publishing files in the folder.
    fn exclusive(folder: &Path) -> Result<Self> {
        Self::wait(folder, File::try_lock)
    }

    /// For checking whether another process is publishing.
    fn shared(folder: &Path) -> Result<Self> {
        Self::wait(folder, File::try_lock_shared)
    }

    fn wait(
        folder: &Path,
        try_lock: fn(&File) -> std::result::Result<(), std::fs::TryLockError>,
    ) -> Result<Self> {
        let open =
            File::open(folder).map_err(|error| Error::io("cannot open the folder", error).in_file(folder))?;
        let begun = Instant::now();
        loop {
            match try_lock(&open) {
                // Some network file systems have no locks: then there is nothing to wait for.
                Ok(()) | Err(std::fs::TryLockError::Error(_)) => return Ok(Lock(open)),
                Err(std::fs::TryLockError::WouldBlock) if begun.elapsed() < WAIT_FOR_OTHERS => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(std::fs::TryLockError::WouldBlock) => {
                    return Err(Error::io(
                        "another process is replacing files here",
                        io::ErrorKind::TimedOut.into(),
                    )
                    .in_file(folder));
                }
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child forked in the meantime shares the lock, and closing the file here does not
        // release it.
        let _ = self.0.unlock();
    }
}
