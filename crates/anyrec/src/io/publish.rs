//! Files that belong together get their names together.
//!
//! A data file and its index file, or the files a conversion was cut into, cannot get their names in
//! one step. All of them are complete and synced before the first does, and one small file says what
//! is to be done, so that whoever comes after a kill can do the rest:
//!
//! 1. every new file gets a hidden name (`.anyrec-*.partial`) in the folder;
//! 2. a marker (`.anyrec-*.replacing`, one name for each data file) lists the steps that follow;
//! 3. index files of the data that is replaced are removed;
//! 4. data files get their names;
//! 5. index files get theirs;
//! 6. the marker is removed.
//!
//! The folder is synced between the steps, except at the end (and where there is one new file, before
//! the marker). Before the marker is there, the old
//! files stand as they were; from then on the new ones can be had, by doing steps 3 to 6 once more
//! ([`finish_interrupted`]). At no moment does an index file stand beside data it was not made for.
//! Opening a file whose marker has steps left is an error that says so.
//!
//! A publication holds the folder's lock (`flock`) for as long as it takes, so that two of them, or
//! one and somebody who finishes an older one, do not mix.
//!
//! What the marker does not cover: files in other folders than the first data file's. They are
//! published in the same order, but a kill between can lose them.

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

/// How long somebody else's publication is waited for.
const WAIT_FOR_OTHERS: Duration = Duration::from_secs(10);

/// The first line of a marker, and the last.
const BEGIN: &[u8] = b"anyrec replaces these files together";
const END: &[u8] = b"end";

/// What a file is among those published with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Data,
    Index,
}

/// Complete files that are published together: all of them, or none that anybody would trust.
#[derive(Debug, Default)]
pub struct FileSet {
    files: Vec<(Role, CompleteFile)>,
    obsolete: Vec<Obsolete>,
}

/// A file that is to go because it belongs to a file that is replaced.
#[derive(Debug)]
pub struct Obsolete {
    path: PathBuf,
    /// Device, inode, length and time of the last change.
    identity: (u64, u64, u64, i64, i64),
}

impl Obsolete {
    /// That file as it is now, if there is one: it goes unless it is changed meanwhile.
    pub fn find(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
        Some(Obsolete { path: path.to_owned(), identity: identity(&metadata) })
    }

    fn is_unchanged(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|metadata| identity(&metadata) == self.identity)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn identity(metadata: &Metadata) -> (u64, u64, u64, i64, i64) {
    (metadata.dev(), metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

impl FileSet {
    /// One file of data.
    pub fn of(file: CompleteFile) -> Self {
        FileSet { files: vec![(Role::Data, file)], obsolete: Vec::new() }
    }

    /// Adds an index file: it is published after all data files, and an old one is removed before them.
    pub fn add_index(&mut self, index: CompleteFile) {
        self.files.push((Role::Index, index));
    }

    /// Adds a file that is removed before the data files get their names.
    pub fn remove(&mut self, obsolete: Obsolete) {
        self.obsolete.push(obsolete);
    }

    /// Adds the files of another set behind these.
    pub fn append(&mut self, other: FileSet) {
        self.files.extend(other.files);
        self.obsolete.extend(other.obsolete);
    }

    /// Number of files to be published.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there is nothing to publish.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Closes all files, for sets larger than the number of files a process may have open. Until
    /// they are published a kill then leaves hidden files (`.anyrec-*.partial`) behind.
    ///
    /// # Errors
    /// What the system says.
    pub fn close_files(self) -> Result<Self> {
        let close = |(role, file): (Role, CompleteFile)| {
            let failed = |error| Error::io("cannot finish", error).in_file(&file.target);
            let closed = file.file.close(folder(&file.target)).map_err(failed)?;
            Ok((role, CompleteFile { file: closed, ..file }))
        };
        Ok(FileSet { files: self.files.into_iter().map(close).collect::<Result<_>>()?, ..self })
    }

    /// Gives all files their names.
    ///
    /// # Errors
    /// What the system says; [`Exists`](ErrorKind::Exists) when somebody else made one of the files
    /// meanwhile and may not be overwritten. The message says so where files are in place already.
    pub fn publish(mut self) -> Result<()> {
        self.files.retain(|(_, file)| !matches!(file.file, Complete::Stream));
        let Some((_, first)) = self.files.first() else { return Ok(()) };
        let failed = |target: &Path, error| Error::io("cannot finish", error).in_file(target);
        let home = folder(&first.target).to_owned();
        let durability = first.durability;
        let _held = hold_off_interrupt().map_err(|error| failed(&first.target, error))?;
        let mut folders: Vec<&Path> = self.files.iter().map(|(_, file)| folder(&file.target)).collect();
        // In one order, so that two publications cannot wait for each other.
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
            // Linking never replaces a file and renaming does: link to a hidden name, rename that.
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
            Error::io(
                "the new file is in place, but after a power loss it may be gone: cannot sync the folder",
                error,
            )
            .in_file(&target)
        })
    }
}

/// Finishes a publication that was interrupted, if `path` is one of its data files; says whether
/// there was anything to do.
///
/// # Errors
/// What the system says.
pub fn finish_interrupted(path: &Path) -> Result<bool> {
    let path = resolved(path);
    let failed = |error| Error::io("cannot finish", error).in_file(&path);
    let _held = hold_off_interrupt().map_err(failed)?;
    let _lock = Lock::exclusive(folder(&path))?;
    Marker::finish(&path)
}

/// An error if `path` is one of several files that were being replaced when the process that did
/// so was killed. One that is still at work is waited for.
pub(super) fn check_published(path: &Path) -> Result<()> {
    let path = resolved(path);
    // All there is to do for nearly every file.
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
            "the replacement of this file and those that belong to it was interrupted: in place are {}; still to come are {}",
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

/// A file as the writer saw it: links of its own name followed.
fn resolved(path: &Path) -> PathBuf {
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        _ => path.to_owned(),
    }
}

/// The steps of a publication.
///
/// It names files by their inodes too: a marker that came with somebody else's files, or was copied,
/// cannot have any file of this folder removed or replaced.
#[derive(Debug)]
struct Marker {
    /// Index files of the data that is replaced, with their inodes.
    remove: Vec<(u64, PathBuf)>,
    steps: Vec<Step>,
    durability: Durability,
}

/// A file to be published.
#[derive(Debug)]
struct Step {
    role: Role,
    hidden: PathBuf,
    /// The hidden file's.
    inode: u64,
    target: PathBuf,
    overwrite: bool,
}

impl Step {
    fn is_done(&self) -> bool {
        self.hidden.symlink_metadata().is_err()
    }

    /// An error unless the hidden file is the one that this step was written for.
    fn check(&self) -> Result<()> {
        if self.is_done() || inode(&self.hidden) == Some(self.inode) {
            return Ok(());
        }
        let what = "the rest of this interrupted replacement is not the one that was made here";
        let marker = shown(&hidden_name(&self.target, "replacing"));
        let hint = format!("remove {marker} if you trust the file as it is");
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
    /// The names of a publication's marker.
    fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.steps
            .iter()
            .filter(|step| step.role == Role::Data)
            .map(|step| hidden_name(&step.target, "replacing"))
    }

    fn is_done(&self) -> bool {
        self.steps.iter().all(Step::is_done)
    }

    /// Writes the marker; from then on the steps will be carried out, by us or by others.
    fn write(&self, home: &Path) -> Result<()> {
        let mut made = Vec::new();
        let written = self.try_write(home, &mut made);
        if written.is_err() {
            for path in made {
                // A marker that speaks of files which are gone is ignored.
                let _ = std::fs::remove_file(path);
            }
        }
        written.map_err(|error| Error::io("cannot finish", error).in_file(home))
    }

    fn try_write(&self, home: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
        // The hidden names first: if a power loss took some of them, the others would be put in place
        // without them. A single one is there or not.
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

    /// Does what is left to do, and removes the marker.
    fn carry_out(&self, home: &Path) -> Result<()> {
        let failed = |error| Error::io("cannot finish", error).in_file(home);
        let of = |role| self.steps.iter().filter(move |step| step.role == role);
        self.steps.iter().try_for_each(Step::check)?;
        // Data has its names only when old index files are gone: then there may be new ones.
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

    /// Carries out the steps of the marker of a data file, if there is one, and removes it.
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

    /// The marker of a data file. None where there is none, or one that was never complete: then
    /// no step was taken either.
    fn read(path: &Path) -> Result<Option<Self>> {
        let marker = hidden_name(path, "replacing");
        match std::fs::read(&marker) {
            Ok(text) => Ok(Self::parse(&text, folder(path))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("cannot read", error).in_file(&marker)),
        }
    }

    /// One step a line, fields between tabs; names are those in the marker's folder.
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

/// A file's name from a field of a line; none for what is not the name of a file in a folder.
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

/// Has a folder's names survive a power loss.
fn sync(folder: &Path, durability: Durability) -> io::Result<()> {
    match durability {
        Durability::Machine => File::open(folder).and_then(|folder| folder.sync_all()),
        Durability::Process => Ok(()),
    }
}

/// A folder's lock, given back when this is dropped, or the process ends.
struct Lock(File);

impl Lock {
    /// For whoever publishes files in the folder.
    fn exclusive(folder: &Path) -> Result<Self> {
        Self::wait(folder, File::try_lock)
    }

    /// For whoever wants to know whether somebody does.
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
        // A child forked meanwhile has the lock too, and closing does not take it back.
        let _ = self.0.unlock();
    }
}
