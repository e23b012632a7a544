//! Packing a directory tree into a file.

use super::super::python_text;
use super::super::tree::{FolderId, Node, Tree, TreeBuilder};
use super::super::write::Writer;
use super::sample_of;
use crate::base::{Error, Result, shown};
use crate::format::{WriteOptions, Written};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Packs a folder into a new file, as the original's `pack_folder` under Python 3.11 does, byte
/// for byte. Names are sorted by code point, links are followed, empty folders are kept. Files
/// are copied piece by piece, so memory holds the tree and no file. `progress` is told how many of
/// the files' bytes, [`folder_size`] in all, were copied.
///
/// # Errors
/// A link that leads back to a folder around it, something that is neither file nor folder, or
/// what the system says; or as [`Writer::create`]. Then the file does not appear.
pub fn pack_folder(
    folder: &Path,
    file: &Path,
    options: &WriteOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Written> {
    let Collected { tree, count, .. } = collect(folder)?;
    let sample = sample_of(&tree)?;
    let mut options = options.clone();
    options.count = Some(count + 1);
    let mut writer = Writer::create(file, &options)?;
    let mut reached = 0;
    let mut walk = tree.walk(tree.root());
    while let Some((path, node)) = walk.next_entry() {
        if let Node::File(_) = node {
            let path = folder.join(OsStr::from_bytes(path));
            let in_file = |error: Error| error.in_file(&path);
            let content = File::open(&path).map_err(|error| in_file(Error::io("cannot open", error)))?;
            let content = Telling { content, reached: &mut reached, progress: &mut *progress };
            writer.append_from(content).map_err(in_file)?;
        }
    }
    writer.append(&sample)?;
    writer.finish()
}

/// How many bytes the files below a folder have together, as [`pack_folder`] would pack them.
///
/// # Errors
/// As [`pack_folder`], before it begins to write.
pub fn folder_size(folder: &Path) -> Result<u64> {
    collect(folder).map(|collected| collected.bytes)
}

/// A file's content that tells how much of it was read.
struct Telling<'a> {
    content: File,
    /// Bytes read, of all files so far.
    reached: &'a mut u64,
    progress: &'a mut dyn FnMut(u64),
}

impl Read for Telling<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let got = self.content.read(buffer)?;
        *self.reached += got as u64;
        (self.progress)(*self.reached);
        Ok(got)
    }
}

/// A folder whose entries are being collected.
struct Open {
    path: PathBuf,
    folder: FolderId,
    /// Device and inode, by which a loop is recognised.
    identity: (u64, u64),
    /// Names to come, the last one first.
    names: Vec<OsString>,
}

impl Open {
    fn new(path: PathBuf, folder: FolderId) -> Result<Self> {
        let failed = |error| Error::io("cannot read the folder", error).in_file(&path);
        let metadata = path.metadata().map_err(failed)?;
        let names = path.read_dir().map_err(failed)?.map(|entry| Ok(entry?.file_name()));
        let mut names = names.collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
        names.sort_by(|one, other| python_text::compare(other.as_bytes(), one.as_bytes()));
        let identity = (metadata.dev(), metadata.ino());
        Ok(Open { path, folder, identity, names })
    }
}

/// What is below a folder.
struct Collected {
    /// The names, with the files numbered in order.
    tree: Tree,
    /// How many files there are.
    count: u64,
    /// Their bytes together.
    bytes: u64,
}

fn collect(folder: &Path) -> Result<Collected> {
    let mut builder = TreeBuilder::new();
    let root = builder.folder()?;
    let mut open = vec![Open::new(folder.to_owned(), root)?];
    let (mut count, mut bytes) = (0, 0u64);
    while let Some(at) = open.last_mut() {
        let Some(name) = at.names.pop() else {
            open.pop();
            continue;
        };
        let (parent, path) = (at.folder, at.path.join(&name));
        let shown = || shown(&path);
        let metadata =
            path.metadata().map_err(|error| Error::io("cannot inspect", error).in_file(shown()))?;
        let name = builder.name(name.as_bytes());
        if metadata.is_dir() {
            let identity = (metadata.dev(), metadata.ino());
            if open.iter().any(|around| around.identity == identity) {
                return Err(
                    Error::invalid("is a link to a folder around it, a loop without end").in_file(shown())
                );
            }
            let child = builder.folder()?;
            builder.attach(parent, name, Node::Folder(child))?;
            open.push(Open::new(path, child)?);
        } else if metadata.is_file() {
            builder.attach(parent, name, Node::File(count))?;
            count += 1;
            bytes = bytes.saturating_add(metadata.len());
        } else {
            return Err(
                Error::invalid("is neither a file nor a folder and cannot be packed").in_file(shown())
            );
        }
    }
    Ok(Collected { tree: builder.finish(root)?, count, bytes })
}
