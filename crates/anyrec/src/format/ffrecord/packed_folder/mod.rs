//! Packed folders: a whole directory tree in one file.
//!
//! Every file of the tree is a sample, in depth-first order. The last sample is the tree itself:
//! nine bytes that mark it, then a Python pickle that maps names to sample numbers or to further
//! such maps. The pickle is untrusted input and is read by a parser that knows trees only.
//!
//! Names are bytes here, as file systems have them. Python's strings for names that are not UTF-8
//! (lone surrogates) are turned into those bytes and back.

mod pack;
mod unpack;

pub use pack::{folder_size, pack_folder};
pub use unpack::{UnpackOptions, Unpacked};

use super::read::Reader;
use super::tree::{FolderId, Node, Tree, TreeBuilder};
use super::tree_pickle;
use crate::base::{Error, ErrorKind, Hint, Result, shown};
use crate::format::{OpenOptions, RecordReader};
use crate::io::Source;
use bstr::BString;
use bytes::Bytes;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// What a tree's sample begins with.
const MARKER: &[u8] = b"piouhjgbr";

/// What [`PackedFolder::list`] tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListOptions {
    /// Files (default true).
    pub files: bool,
    /// Folders (default true).
    pub folders: bool,
    /// What is in the folders too (default false).
    pub recursive: bool,
}

impl Default for ListOptions {
    fn default() -> Self {
        ListOptions { files: true, folders: true, recursive: false }
    }
}

/// A view of a packed folder.
///
/// Paths are relative, with `/` between the names; `""` and `"."` are the folder itself, empty
/// and `.` parts are ignored. Absolute paths and `..` lead nowhere.
///
/// ```
/// use anyrec::format::ffrecord::{PackedFolder, packed_folder::pack_folder};
/// use anyrec::format::{OpenOptions, WriteOptions};
/// use anyrec::io::{Access, open_file};
///
/// # fn main() -> anyrec::Result<()> {
/// # let temporary = tempfile::tempdir().unwrap();
/// # let (folder, file) = (temporary.path().join("photos"), temporary.path().join("photos.ffr"));
/// std::fs::create_dir_all(folder.join("2024")).unwrap();
/// std::fs::write(folder.join("2024/sea.txt"), "blue").unwrap();
///
/// pack_folder(&folder, &file, &WriteOptions::default(), &mut |_| {})?;
/// let packed = PackedFolder::open(open_file(&file, Access::Auto)?, &OpenOptions::default())?;
/// assert_eq!(packed.read_one("2024/sea.txt")?, "blue");
/// assert_eq!(packed.list("", &Default::default())?, ["2024"]);
/// assert!(packed.is_folder("2024") && !packed.exists("/2024"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PackedFolder {
    reader: Reader,
    tree: Tree,
}

impl PackedFolder {
    /// Opens a packed folder.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) where the file is no packed folder,
    /// [`Corrupt`](ErrorKind::Corrupt) where its tree is refused; or as [`Reader::open`].
    pub fn open(source: Arc<dyn Source>, options: &OpenOptions) -> Result<Self> {
        Self::from_reader(Reader::open(source, options)?)
    }

    /// The packed folder in an open file.
    ///
    /// # Errors
    /// As [`PackedFolder::open`].
    pub fn from_reader(reader: Reader) -> Result<Self> {
        let name = reader.source().name().to_owned();
        let not_packed = || Error::invalid("is not a packed folder").in_file(name.clone());
        let last = reader.count().checked_sub(1).ok_or_else(not_packed)?;
        let sample = reader.read(last)?;
        let pickle = tree_of(&sample).ok_or_else(not_packed)?;
        let tree = tree_pickle::read(pickle).map_err(|error| error.in_file(name.clone()).in_record(last))?;
        // A tree whose files are not all there belongs to a file that had more samples: it would
        // give one file's content for another's.
        if let Some(missing) = tree.samples().find(|&sample| sample >= last) {
            return Err(Error::corrupt(format!(
                "the tree names sample {missing}, but there are {last} files"
            ))
            .in_file(name)
            .in_record(last)
            .with_hint(Hint::RebuildTree));
        }
        Ok(PackedFolder { reader, tree })
    }

    /// The file's samples.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Number of files: all samples but the tree.
    pub fn num_files(&self) -> u64 {
        self.reader.count().saturating_sub(1)
    }

    /// The content of a file.
    ///
    /// # Errors
    /// [`OutOfRange`](ErrorKind::OutOfRange) where nothing has the path,
    /// [`Invalid`](ErrorKind::Invalid) where a folder has it; or as reading a sample.
    pub fn read_one(&self, path: impl AsRef<[u8]>) -> Result<Bytes> {
        self.reader.read(self.sample(path.as_ref())?)
    }

    /// The samples that hold these files, for a batched read of [`reader`](PackedFolder::reader).
    ///
    /// # Errors
    /// As [`PackedFolder::read_one`].
    pub fn samples(&self, paths: &[impl AsRef<[u8]>]) -> Result<Vec<u64>> {
        paths.iter().map(|path| self.sample(path.as_ref())).collect()
    }

    /// Paths of what a folder holds, relative to it and in stored order; each folder comes before
    /// what it holds.
    ///
    /// # Errors
    /// [`OutOfRange`](ErrorKind::OutOfRange) where nothing has the path,
    /// [`Invalid`](ErrorKind::Invalid) where a file has it.
    pub fn list(&self, path: impl AsRef<[u8]>, options: &ListOptions) -> Result<Vec<BString>> {
        let path = path.as_ref();
        let folder = match self.find(path) {
            Some(Node::Folder(folder)) => folder,
            Some(Node::File(_)) => {
                let normal = bstr::join("/", names(path).into_iter().flatten());
                return Err(self.wrong_kind(&normal, "is not a directory but a file"));
            }
            None => return Err(self.missing(path)),
        };
        let wanted = |node| match node {
            Node::File(_) => options.files,
            Node::Folder(_) => options.folders,
        };
        if !options.recursive {
            let children = self.tree.children(folder).filter(|(_, node)| wanted(*node));
            return Ok(children.map(|(name, _)| name.to_owned()).collect());
        }
        let mut paths = Vec::new();
        let mut walk = self.tree.walk(folder);
        while let Some((path, node)) = walk.next_entry() {
            if wanted(node) {
                paths.push(path.to_owned());
            }
        }
        Ok(paths)
    }

    /// All files and folders below this one, in order: their paths, and the number of a file's
    /// sample.
    pub fn entries(&self) -> Vec<(BString, Option<u64>)> {
        let mut entries = Vec::new();
        let mut walk = self.tree.walk(self.tree.root());
        while let Some((path, node)) = walk.next_entry() {
            let sample = match node {
                Node::File(sample) => Some(sample),
                Node::Folder(_) => None,
            };
            entries.push((path.to_owned(), sample));
        }
        entries
    }

    /// Whether a file or folder has the path.
    pub fn exists(&self, path: impl AsRef<[u8]>) -> bool {
        self.find(path.as_ref()).is_some()
    }

    /// Whether a file has the path.
    pub fn is_file(&self, path: impl AsRef<[u8]>) -> bool {
        matches!(self.find(path.as_ref()), Some(Node::File(_)))
    }

    /// Whether a folder has the path.
    pub fn is_folder(&self, path: impl AsRef<[u8]>) -> bool {
        matches!(self.find(path.as_ref()), Some(Node::Folder(_)))
    }

    /// Number of the sample that holds a file.
    ///
    /// # Errors
    /// As [`PackedFolder::read_one`].
    pub fn sample(&self, path: &[u8]) -> Result<u64> {
        match self.find(path) {
            Some(Node::File(sample)) => Ok(sample),
            Some(Node::Folder(_)) => Err(self.wrong_kind(path, "is not a file but a directory")),
            None => Err(self.missing(path)),
        }
    }

    fn find(&self, path: &[u8]) -> Option<Node> {
        let mut node = Node::Folder(self.tree.root());
        for name in names(path)? {
            node = match node {
                Node::Folder(folder) => self.tree.find(folder, name)?,
                Node::File(_) => return None,
            };
        }
        Some(node)
    }

    fn missing(&self, path: &[u8]) -> Error {
        Error::new(ErrorKind::OutOfRange, format!("{} does not exist", shown_bytes(path)))
            .in_file(self.reader.source().name())
    }

    fn wrong_kind(&self, path: &[u8], what: &str) -> Error {
        Error::invalid(format!("{} {what}", shown_bytes(path))).in_file(self.reader.source().name())
    }
}

/// A path as messages show it.
fn shown_bytes(path: &[u8]) -> String {
    shown(Path::new(OsStr::from_bytes(path)))
}

/// The names that a path is made of; `None` where it can lead nowhere.
fn names(path: &[u8]) -> Option<Vec<&[u8]>> {
    if path.starts_with(b"/") {
        return None;
    }
    let names: Vec<&[u8]> =
        path.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    (!names.contains(&&b".."[..])).then_some(names)
}

/// The pickle in a tree's sample.
fn tree_of(sample: &[u8]) -> Option<&[u8]> {
    sample.strip_prefix(MARKER).filter(|pickle| !pickle.is_empty())
}

/// The sample that holds a tree.
fn sample_of(tree: &Tree) -> Result<Vec<u8>> {
    let mut sample = MARKER.to_vec();
    tree_pickle::write(tree, &mut sample)?;
    Ok(sample)
}

/// Rewrites the tree of a packed folder that has lost samples: `kept` are the numbers of the
/// samples that are still there, in their new order. Files whose sample is gone are left out, the
/// others get their new numbers; folders stay, even if they become empty. `None` where the sample
/// is no tree.
///
/// ```
/// use anyrec::format::ffrecord::packed_folder::retree;
///
/// assert_eq!(retree(b"just a sample", &[0, 1])?, None);
/// let tree = b"piouhjgbr(Va\nI0\nVb\nI1\nVc\nI2\nd.";
/// let kept = retree(tree, &[0, 2])?.unwrap();
/// assert_eq!(Some(kept), retree(b"piouhjgbr(Va\nI0\nVc\nI1\nd.", &[0, 1])?);
/// # Ok::<(), anyrec::Error>(())
/// ```
///
/// # Errors
/// [`Corrupt`](ErrorKind::Corrupt) where the tree is refused.
pub fn retree(tree_sample: &[u8], kept: &[u64]) -> Result<Option<Vec<u8>>> {
    let Some(pickle) = tree_of(tree_sample) else {
        return Ok(None);
    };
    let old = tree_pickle::read(pickle)?;
    let mut numbers: Vec<(u64, u64)> = kept.iter().copied().zip(0..).collect();
    numbers.sort_unstable();
    let renumbered = |sample: u64| {
        let at = numbers.binary_search_by_key(&sample, |&(old, _)| old).ok()?;
        numbers.get(at).map(|&(_, new)| new)
    };
    let mut builder = TreeBuilder::new();
    let root = builder.folder()?;
    let mut open: Vec<(FolderId, FolderId)> = vec![(old.root(), root)];
    while let Some((from, to)) = open.pop() {
        for (name, node) in old.children(from) {
            let node = match node {
                Node::File(sample) => match renumbered(sample) {
                    Some(sample) => Node::File(sample),
                    None => continue,
                },
                Node::Folder(folder) => {
                    let copy = builder.folder()?;
                    open.push((folder, copy));
                    Node::Folder(copy)
                }
            };
            let name = builder.name(name);
            builder.attach(to, name, node)?;
        }
    }
    sample_of(&builder.finish(root)?).map(Some)
}
