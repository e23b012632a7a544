//! The tree of a packed folder: maps names to sample numbers or to nested folders.
//!
//! Folders are in one list and refer to each other by number; names are in one buffer. A tree of
//! any depth is therefore built, walked and dropped without recursion, and a name that a pickle
//! repeats a million times is stored once.

use crate::base::{Error, Result};
use bstr::{BStr, BString};
use std::ops::Range;

/// Maximum nesting depth of folders.
///
/// The original pickles and walks trees recursively, which Python stops at about a third of this.
const MAX_DEPTH: usize = 1024;

/// Longest path in bytes, separators included: the limit of Linux.
///
/// Without a bound, a few long names that are repeated cheaply in every folder of a deep tree would
/// make listings grow quadratically with the file.
const MAX_PATH: usize = 4096;

/// The number of a folder in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FolderId(u32);

/// What a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    /// A file: the number of its sample.
    File(u64),
    /// A folder.
    Folder(FolderId),
}

/// A name stored in a tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameId {
    begin: usize,
    end: usize,
}

#[derive(Debug, Default)]
struct Folder {
    /// In stored order.
    children: Vec<(NameId, Node)>,
    /// Indices into `children`, sorted by name, for lookups.
    by_name: Vec<u32>,
    /// Whether the folder has a parent.
    attached: bool,
}

/// The tree of a packed folder.
#[derive(Debug)]
pub(super) struct Tree {
    names: Vec<u8>,
    folders: Vec<Folder>,
    root: FolderId,
}

/// A tree under construction: folders and names may be created before anything refers to them.
#[derive(Debug, Default)]
pub(super) struct TreeBuilder {
    names: Vec<u8>,
    folders: Vec<Folder>,
}

impl TreeBuilder {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Creates a folder without a parent.
    pub(super) fn folder(&mut self) -> Result<FolderId> {
        let number = u32::try_from(self.folders.len())
            .map_err(|_| refusal(format!("it has more than {} folders", u32::MAX)))?;
        self.folders.push(Folder::default());
        Ok(FolderId(number))
    }

    /// Stores a name.
    pub(super) fn name(&mut self, name: &[u8]) -> NameId {
        let begin = self.names.len();
        self.names.extend_from_slice(name);
        NameId { begin, end: self.names.len() }
    }

    /// The bytes of a name.
    pub(super) fn name_bytes(&self, name: NameId) -> &BStr {
        self.names.get(name.begin..name.end).unwrap_or_default().into()
    }

    /// Adds a file or folder to a folder. A folder can be added only once.
    pub(super) fn attach(&mut self, parent: FolderId, name: NameId, node: Node) -> Result<()> {
        if let Node::Folder(child) = node {
            match self.folders.get_mut(child.0 as usize) {
                Some(folder) if !folder.attached => folder.attached = true,
                _ => {
                    let shown = self.name_bytes(name);
                    return Err(refusal(format!("the folder {shown:?} is in two places")));
                }
            }
        }
        let folder = self.folders.get_mut(parent.0 as usize).ok_or_else(|| refusal("no such folder"))?;
        folder.children.push((name, node));
        Ok(())
    }

    /// Returns the tree below `root`.
    ///
    /// # Errors
    /// If it is not a tree (`root` is inside another folder), repeats a name, or is too deep.
    pub(super) fn finish(self, root: FolderId) -> Result<Tree> {
        let TreeBuilder { names, mut folders } = self;
        // Every folder has at most one parent. If the root has none, the folders below it form no
        // cycle and each occurs once.
        if folders.get(root.0 as usize).is_none_or(|folder| folder.attached) {
            return Err(refusal("the outermost folder is inside another one"));
        }
        let bytes_of = |name: NameId| names.get(name.begin..name.end).unwrap_or_default();
        let mut open = vec![(root, 1, 0)];
        while let Some((FolderId(number), depth, path)) = open.pop() {
            if depth > MAX_DEPTH {
                return Err(refusal(format!("it is more than {MAX_DEPTH} folders deep")));
            }
            let Some(folder) = folders.get_mut(number as usize) else { continue };
            let count = u32::try_from(folder.children.len())
                .map_err(|_| refusal(format!("a folder has more than {} entries", u32::MAX)))?;
            let Folder { children, by_name, .. } = folder;
            let name_at = |at: &u32| children.get(*at as usize).map(|(name, _)| bytes_of(*name));
            by_name.extend(0..count);
            by_name.sort_by(|one, other| name_at(one).cmp(&name_at(other)));
            let twice = by_name.iter().zip(by_name.iter().skip(1)).find(|(a, b)| name_at(a) == name_at(b));
            if let Some((at, _)) = twice {
                let shown = BStr::new(name_at(at).unwrap_or_default());
                return Err(refusal(format!("a folder holds the name {shown:?} twice")));
            }
            for (name, node) in children {
                let path = path + (name.end - name.begin);
                if path > MAX_PATH {
                    return Err(refusal(format!("it has a path of more than {MAX_PATH} bytes")));
                }
                if let Node::Folder(child) = node {
                    open.push((*child, depth + 1, path + 1));
                }
            }
        }
        Ok(Tree { names, folders, root })
    }
}

/// The error for a rejected tree, with the reason.
pub(super) fn refusal(reason: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("the folder tree is refused: {reason}"))
}

impl Tree {
    /// The root folder.
    pub(super) fn root(&self) -> FolderId {
        self.root
    }

    /// The contents of a folder, in stored order.
    pub(super) fn children(&self, folder: FolderId) -> impl ExactSizeIterator<Item = (&BStr, Node)> {
        let children = self.folders.get(folder.0 as usize).map_or(&[][..], |folder| &folder.children);
        children.iter().map(|(name, node)| (self.name_bytes(*name), *node))
    }

    /// The sample numbers of all files, in no particular order.
    pub(super) fn samples(&self) -> impl Iterator<Item = u64> {
        self.folders.iter().flat_map(|folder| &folder.children).filter_map(|(_, node)| match node {
            Node::File(sample) => Some(*sample),
            Node::Folder(_) => None,
        })
    }

    /// Entry `at` of a folder.
    pub(super) fn child(&self, folder: FolderId, at: usize) -> Option<(&BStr, Node)> {
        let (name, node) = self.folders.get(folder.0 as usize)?.children.get(at)?;
        Some((self.name_bytes(*name), *node))
    }

    /// What a name in a folder refers to.
    pub(super) fn find(&self, folder: FolderId, name: &[u8]) -> Option<Node> {
        let Folder { children, by_name, .. } = self.folders.get(folder.0 as usize)?;
        let entry = |at: u32| children.get(at as usize);
        let found = by_name
            .binary_search_by(|&at| entry(at).map_or(&[][..], |(name, _)| self.name_bytes(*name)).cmp(name));
        entry(*by_name.get(found.ok()?)?).map(|(_, node)| *node)
    }

    /// Everything below a folder, each folder before its contents.
    pub(super) fn walk(&self, folder: FolderId) -> TreeIter<'_> {
        TreeIter { tree: self, open: vec![(folder, 0)], path: BString::default(), lengths: vec![0] }
    }

    fn name_bytes(&self, NameId { begin, end }: NameId) -> &BStr {
        self.names.get(Range { start: begin, end }).unwrap_or_default().into()
    }
}

/// A walk through a tree, see [`Tree::walk`].
#[derive(Debug)]
pub(super) struct TreeIter<'a> {
    tree: &'a Tree,
    /// The folders on the current path, and the next entry of each.
    open: Vec<(FolderId, usize)>,
    path: BString,
    /// Length of the path of each open folder.
    lengths: Vec<usize>,
}

impl TreeIter<'_> {
    /// The next entry with its path, names separated by `/`.
    pub(super) fn next_entry(&mut self) -> Option<(&BStr, Node)> {
        loop {
            let (folder, at) = self.open.last_mut()?;
            let Some((name, node)) = self.tree.child(*folder, *at) else {
                self.open.pop();
                self.lengths.pop();
                continue;
            };
            *at += 1;
            self.path.truncate(self.lengths.last().copied().unwrap_or_default());
            if self.open.len() > 1 {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(name);
            if let Node::Folder(child) = node {
                self.open.push((child, 0));
                self.lengths.push(self.path.len());
            }
            return Some((self.path.as_ref(), node));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(builder: &mut TreeBuilder, parent: FolderId, name: &str, node: Node) -> Result<()> {
        let name = builder.name(name.as_bytes());
        builder.attach(parent, name, node)
    }

    #[test]
    fn a_walk_meets_folders_before_their_contents() {
        let mut builder = TreeBuilder::new();
        let (root, inner, empty) =
            (builder.folder().unwrap(), builder.folder().unwrap(), builder.folder().unwrap());
        add(&mut builder, root, "z", Node::File(0)).unwrap();
        add(&mut builder, root, "a", Node::Folder(inner)).unwrap();
        add(&mut builder, inner, "x", Node::File(1)).unwrap();
        add(&mut builder, inner, "e", Node::Folder(empty)).unwrap();
        add(&mut builder, root, "b", Node::File(2)).unwrap();
        let tree = builder.finish(root).unwrap();
        let mut walk = tree.walk(tree.root());
        let mut paths = Vec::new();
        while let Some((path, _)) = walk.next_entry() {
            paths.push(path.to_string());
        }
        assert_eq!(paths, ["z", "a", "a/x", "a/e", "b"]);
        assert_eq!(tree.find(root, b"b"), Some(Node::File(2)));
        assert_eq!(tree.find(inner, b"b"), None);
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let mut builder = TreeBuilder::new();
        let root = builder.folder().unwrap();
        let inner = builder.folder().unwrap();
        add(&mut builder, root, "a", Node::Folder(inner)).unwrap();
        let again = add(&mut builder, root, "b", Node::Folder(inner)).unwrap_err();
        assert!(again.message().contains("\"b\" is in two places"), "{again}");
        add(&mut builder, inner, "up", Node::Folder(root)).unwrap();
        let cycle = builder.finish(root).unwrap_err();
        assert!(cycle.message().contains("inside another one"), "{cycle}");

        let mut builder = TreeBuilder::new();
        let root = builder.folder().unwrap();
        add(&mut builder, root, "a", Node::File(0)).unwrap();
        add(&mut builder, root, "a", Node::File(1)).unwrap();
        assert!(builder.finish(root).unwrap_err().message().contains("\"a\" twice"));
    }

    #[test]
    fn depth_and_path_length_are_bounded() {
        for (name, count, reason) in [("d", 1100, "1024 folders deep"), (&*"n".repeat(200), 30, "4096 bytes")]
        {
            let mut builder = TreeBuilder::new();
            let root = builder.folder().unwrap();
            let mut parent = root;
            for _ in 0..count {
                let child = builder.folder().unwrap();
                add(&mut builder, parent, name, Node::Folder(child)).unwrap();
                parent = child;
            }
            let error = builder.finish(root).unwrap_err();
            assert!(error.message().contains(reason), "{error}");
        }
    }
}
