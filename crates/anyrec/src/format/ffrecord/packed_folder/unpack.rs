//! Unpacking a packed folder into a real one.
//!
//! Everything that can be known beforehand is checked before anything is written: that every name
//! may become a file's, that no two become the same, that nothing in the target has such a name
//! already, that every file has a sample of its own. What happens then goes through
//! [`UnpackFolder`], which makes new files in new folders only and follows no links.

use super::super::tree::{FolderId, Node};
use super::PackedFolder;
use crate::base::{Error, ErrorKind, Hint, Result};
use crate::format::{Notice, RecordReader};
use crate::io::{BadNames, UnpackFolder, safe_name};
use crate::threads::interrupt::go_on;
use bstr::BStr;
use std::collections::HashSet;
use std::path::Path;

/// How a packed folder is unpacked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnpackOptions {
    /// What happens to names that may not become names of files (default: they are an error).
    pub bad_names: BadNames,
    /// Damaged files are left out instead of being an error (default false).
    pub skip_damage: bool,
}

/// What was unpacked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unpacked {
    /// Files.
    pub files: u64,
    /// Folders, the target not counted.
    pub folders: u64,
    /// Bytes in the files.
    pub bytes: u64,
    /// Damaged files that were left out.
    pub damaged: u64,
    /// Names that were escaped, files that were left out.
    pub notices: Vec<Notice>,
}

impl PackedFolder {
    /// Unpacks everything into a folder, which is made if it is not there. Names come from the
    /// file and are not trusted: nothing is made outside the folder, and nothing that exists is
    /// overwritten. Files get the usual permissions.
    ///
    /// ```
    /// # use anyrec::format::ffrecord::{PackedFolder, Writer};
    /// # use anyrec::format::{OpenOptions, WriteOptions};
    /// # use anyrec::io::{Access, open_file};
    /// # fn main() -> anyrec::Result<()> {
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let (file, target) = (temporary.path().join("trap.ffr"), temporary.path().join("target"));
    /// let mut writer = Writer::create(&file, &WriteOptions::default())?;
    /// writer.append(b"content")?;
    /// writer.append(b"piouhjgbr(V../../.bashrc\nI0\nd.")?;
    /// writer.finish()?;
    ///
    /// let packed = PackedFolder::open(open_file(&file, Access::Auto)?, &OpenOptions::default())?;
    /// let error = packed.unpack(&target, &Default::default()).unwrap_err();
    /// assert!(error.message().ends_with("it holds a path separator"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) for names that are refused, [`Exists`](ErrorKind::Exists)
    /// where something has a name already, [`Corrupt`](ErrorKind::Corrupt) for damaged files; or
    /// what the system says. Only the last two can happen after the first file was written; what
    /// was written by then stays.
    pub fn unpack(&self, folder: &Path, options: &UnpackOptions) -> Result<Unpacked> {
        let mut unpacked = Unpacked::default();
        let folders = self.plan(options, &mut unpacked)?;
        let target = UnpackFolder::open(folder)?;
        for (name, _) in self.tree.children(self.tree.root()) {
            let name = self.safe(name, options)?;
            if target.has(&name)? {
                return Err(Error::new(ErrorKind::Exists, format!("{:?} exists already", BStr::new(&name)))
                    .in_file(folder)
                    .with_hint("unpack into an empty folder"));
            }
        }
        for folder in &folders {
            self.fill(&target, &folders, folder, options, &mut unpacked)?;
        }
        Ok(unpacked)
    }

    /// All folders of the tree, each after the one that holds it, once every name and every
    /// number was looked at.
    fn plan(&self, options: &UnpackOptions, unpacked: &mut Unpacked) -> Result<Vec<Planned>> {
        let refused = |message: String| Error::invalid(message).in_file(self.reader.source().name());
        let mut folders = vec![Planned { folder: self.tree.root(), parent: 0, at: 0 }];
        let mut seen = HashSet::new();
        let mut next = 0;
        while let Some(&Planned { folder, .. }) = folders.get(next) {
            let mut names = HashSet::new();
            for (at, (name, node)) in self.tree.children(folder).enumerate() {
                let safe = self.safe(name, options)?;
                if *safe != **name {
                    let safe = BStr::new(&safe);
                    unpacked.notices.push(Notice::new(format!("the name {name:?} was escaped as {safe:?}")));
                }
                if let Some(twice) = names.replace(safe) {
                    let twice = BStr::new(&twice);
                    return Err(refused(format!("two names of a folder both become {twice:?}")));
                }
                match node {
                    Node::Folder(folder) => folders.push(Planned { folder, parent: next, at }),
                    // Otherwise a small file could be made to fill the disk.
                    Node::File(sample) if !seen.insert(sample) => {
                        return Err(refused(format!(
                            "the file {name:?} is sample {sample}, as another file is"
                        )));
                    }
                    Node::File(_) => {}
                }
            }
            next += 1;
        }
        Ok(folders)
    }

    fn safe<'a>(&self, name: &'a [u8], options: &UnpackOptions) -> Result<std::borrow::Cow<'a, [u8]>> {
        safe_name(name, options.bad_names).map_err(|reason| {
            Error::invalid(format!("the name {:?} is refused: {reason}", BStr::new(name)))
                .in_file(self.reader.source().name())
                .with_hint(Hint::EscapeNames)
        })
    }

    /// Makes the files and folders of one folder.
    fn fill(
        &self,
        target: &UnpackFolder,
        folders: &[Planned],
        planned: &Planned,
        options: &UnpackOptions,
        unpacked: &mut Unpacked,
    ) -> Result<()> {
        let folder = self.enter(target, folders, planned, options)?;
        let folder = folder.as_ref().unwrap_or(target);
        for (name, node) in self.tree.children(planned.folder) {
            go_on()?;
            let safe = self.safe(name, options)?;
            match node {
                Node::Folder(_) => {
                    folder.create_folder(&safe)?;
                    unpacked.folders += 1;
                }
                Node::File(sample) => match self.reader.read(sample) {
                    Ok(content) => {
                        folder.create_file(&safe, &content)?;
                        unpacked.files += 1;
                        unpacked.bytes += content.len() as u64;
                    }
                    Err(error) if options.skip_damage && error.kind() == ErrorKind::Corrupt => {
                        unpacked.damaged += 1;
                        unpacked
                            .notices
                            .push(Notice::new(format!("the file {name:?} was left out: {error}")));
                    }
                    Err(error) => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Opens a folder made before, name by name from the target: a path in one piece could be
    /// led astray by a link, and holding every folder on the way open takes too many descriptors.
    fn enter(
        &self,
        target: &UnpackFolder,
        folders: &[Planned],
        planned: &Planned,
        options: &UnpackOptions,
    ) -> Result<Option<UnpackFolder>> {
        let mut names = Vec::new();
        let mut at = planned;
        while at.folder != self.tree.root() {
            let Some(parent) = folders.get(at.parent) else { break };
            names.extend(self.tree.child(parent.folder, at.at).map(|(name, _)| name));
            at = parent;
        }
        let mut entered: Option<UnpackFolder> = None;
        for name in names.into_iter().rev() {
            let name = self.safe(name, options)?;
            entered = Some(entered.as_ref().unwrap_or(target).open_folder(&name)?);
        }
        Ok(entered)
    }
}

/// A folder to be made.
#[derive(Debug)]
struct Planned {
    folder: FolderId,
    /// The folder that holds it, as a place in the plan.
    parent: usize,
    /// Which of that folder's entries it is.
    at: usize,
}
