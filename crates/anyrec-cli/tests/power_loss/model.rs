//! What a disk may hold after a power loss, given the operations that were done before it.
//!
//! The model, which is weaker than what common file systems promise:
//!
//! - a file's bytes and length are safe once the file is synced; of what was written since, all may
//!   be there, none, the first half of the operations, or zeros in its place;
//! - a folder's entries are safe once the folder is synced; of the operations on it since (creating,
//!   linking, renaming, removing) any may be missing, except that an operation on a name is there
//!   only if all earlier ones on that name are;
//! - syncing a file does not make its name safe, nor a name its file's bytes;
//! - renaming is one step.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

/// Names and contents. Names of one file share its content.
pub type Folder = BTreeMap<String, Rc<Vec<u8>>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// A file without a name.
    Temporary(u64),
    Create(u64, String),
    Write(u64, usize, Vec<u8>),
    Truncate(u64, usize),
    Sync(u64),
    SyncFolder,
    Link(u64, String),
    Rename(String, String),
    Unlink(String),
}

use Operation::{Create, Link, Rename, Sync, SyncFolder, Temporary, Truncate, Unlink, Write};

impl Operation {
    pub fn is_sync(&self) -> bool {
        matches!(self, Sync(_) | SyncFolder)
    }

    /// The names that an operation on the folder is about.
    fn names(&self) -> Vec<&str> {
        match self {
            Create(_, name) | Link(_, name) | Unlink(name) => vec![name],
            Rename(from, to) => vec![from, to],
            _ => Vec::new(),
        }
    }
}

/// Reads the shim's log.
pub fn parse(mut log: &[u8]) -> Vec<Operation> {
    let mut operations = Vec::new();
    while let Some(end) = log.iter().position(|&byte| byte == b'\n') {
        let line = std::str::from_utf8(&log[..end]).unwrap();
        log = &log[end + 1..];
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let size = |at: usize| words[at].parse::<usize>().unwrap();
        let name = |at: usize| words[at].to_owned();
        operations.push(match words[0] {
            "temporary" => Temporary(number(1)),
            "create" => Create(number(1), name(2)),
            "write" => {
                let (bytes, rest) = log.split_at(size(3));
                log = rest;
                Write(number(1), size(2), bytes.to_vec())
            }
            "truncate" => Truncate(number(1), size(2)),
            "sync" if words[1] == "folder" => SyncFolder,
            "sync" => Sync(number(1)),
            "link" => Link(number(1), name(2)),
            "rename" => Rename(name(1), name(2)),
            "unlink" => Unlink(name(1)),
            other => panic!("the shim wrote {other:?}"),
        });
    }
    assert!(log.is_empty(), "the log is cut short");
    operations
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq)]
enum Entry {
    /// A file from before.
    Before(Rc<Vec<u8>>),
    Made(u64),
}

impl Entry {
    fn made(&self) -> Option<u64> {
        match self {
            Entry::Before(_) => None,
            Entry::Made(file) => Some(*file),
        }
    }
}

/// The folder as it is when nothing is lost.
pub fn without_loss(operations: &[Operation], before: &Folder) -> Folder {
    let folder: Vec<&Operation> =
        operations.iter().filter(|operation| !operation.names().is_empty()).collect();
    let content = |file| {
        let mut content = Vec::new();
        of_file(operations, file).for_each(|operation| apply(operation, &mut content, false));
        Rc::new(content)
    };
    entries(&folder, before)
        .into_iter()
        .map(|(name, entry)| match entry {
            Entry::Before(content) => (name, content),
            Entry::Made(file) => (name, content(file)),
        })
        .collect()
}

/// Calls `judge` with every state that the disk may be in after a loss of power at any moment, and
/// whether all operations had been done by then. Ends at the first that it refuses.
pub fn after_power_loss<E>(
    operations: &[Operation],
    before: &Folder,
    mut judge: impl FnMut(&Folder, bool) -> Result<(), E>,
) -> Result<usize, E> {
    let mut seen = HashSet::new();
    for moment in 0..=operations.len() {
        let done = &operations[..moment];
        let synced = done.iter().rposition(|operation| *operation == SyncFolder).map_or(0, |at| at + 1);
        let on_folder = |part: &'_ [Operation]| -> Vec<Operation> {
            part.iter().filter(|operation| !operation.names().is_empty()).cloned().collect()
        };
        let (safe, unsafe_part) = (on_folder(&done[..synced]), on_folder(&done[synced..]));
        for kept in subsets(&unsafe_part) {
            let applied: Vec<&Operation> = safe.iter().chain(kept).collect();
            let entries = entries(&applied, before);
            let old = |(name, entry): (&String, &Entry)| match entry {
                Entry::Before(content) => Some((name.clone(), content.clone())),
                Entry::Made(_) => None,
            };
            let mut states: Vec<Folder> = vec![entries.iter().filter_map(old).collect()];
            let made: BTreeSet<u64> = entries.values().filter_map(Entry::made).collect();
            for file in made {
                let contents = contents(done, file);
                let names: Vec<&String> = entries
                    .iter()
                    .filter(|(_, entry)| entry.made() == Some(file))
                    .map(|(name, _)| name)
                    .collect();
                let with = |state: &Folder, content: &Rc<Vec<u8>>| {
                    let mut state = state.clone();
                    state.extend(names.iter().map(|&name| (name.clone(), content.clone())));
                    state
                };
                states = states
                    .iter()
                    .flat_map(|state| contents.iter().map(|content| with(state, content)))
                    .collect();
            }
            for state in states {
                let finished = moment == operations.len();
                if !seen.contains(&(finished, state.clone())) {
                    judge(&state, finished)?;
                    seen.insert((finished, state));
                }
            }
        }
    }
    Ok(seen.len())
}

fn entries(operations: &[&Operation], before: &Folder) -> BTreeMap<String, Entry> {
    let mut entries: BTreeMap<String, Entry> =
        before.iter().map(|(name, content)| (name.clone(), Entry::Before(content.clone()))).collect();
    for operation in operations {
        match operation {
            Create(file, name) | Link(file, name) => {
                entries.insert(name.clone(), Entry::Made(*file));
            }
            Rename(from, to) => {
                let moved = entries.remove(from).expect("what is renamed is there");
                entries.insert(to.clone(), moved);
            }
            Unlink(name) => {
                entries.remove(name);
            }
            _ => unreachable!("not an operation on the folder"),
        }
    }
    entries
}

/// All selections of operations that hold, with one, every earlier one on the same names.
fn subsets(operations: &[Operation]) -> Vec<Vec<&Operation>> {
    /// As many as all selections of this many operations; of more, so many are drawn.
    const ALL_OF: usize = 10;
    let count = operations.len();
    let shares_name =
        |one: &Operation, other: &Operation| one.names().iter().any(|name| other.names().contains(name));
    let masks: Vec<u64> = if count <= ALL_OF {
        (0..1 << count).collect()
    } else {
        let mut drawn = 0x2545_f491_4f6c_dd1d_u64;
        let mut draw = || {
            drawn ^= drawn << 13;
            drawn ^= drawn >> 7;
            drawn ^= drawn << 17;
            drawn
        };
        let prefixes = (0..=count).map(|kept| (1 << kept) - 1);
        let all = (1_u64 << count) - 1;
        let but_one = (0..count).map(|missing| all & !(1 << missing));
        let single = (0..count).map(|kept| 1 << kept);
        prefixes.chain(but_one).chain(single).chain((0..1 << ALL_OF).map(|_| draw() & all)).collect()
    };
    let closed = |mut mask: u64| {
        // What needs a missing operation is missing too.
        for at in 0..count {
            let needs = |earlier: usize| shares_name(&operations[earlier], &operations[at]);
            if (0..at).any(|earlier| mask & (1 << earlier) == 0 && needs(earlier)) {
                mask &= !(1 << at);
            }
        }
        mask
    };
    let masks: BTreeSet<u64> = masks.into_iter().map(closed).collect();
    let select =
        |mask: u64| (0..count).filter(|at| mask & (1 << at) != 0).map(|at| &operations[at]).collect();
    masks.into_iter().map(select).collect()
}

fn of_file(operations: &[Operation], file: u64) -> impl Iterator<Item = &Operation> {
    operations.iter().filter(move |operation| match operation {
        Write(other, ..) | Truncate(other, _) => *other == file,
        _ => false,
    })
}

fn apply(operation: &Operation, content: &mut Vec<u8>, as_zeros: bool) {
    match operation {
        Write(_, offset, bytes) => {
            let end = offset + bytes.len();
            content.resize(content.len().max(end), 0);
            match as_zeros {
                true => content[*offset..end].fill(0),
                false => content[*offset..end].copy_from_slice(bytes),
            }
        }
        Truncate(_, length) => content.resize(*length, 0),
        _ => {}
    }
}

/// What a file may hold.
fn contents(done: &[Operation], file: u64) -> Vec<Rc<Vec<u8>>> {
    let synced = done.iter().rposition(|operation| *operation == Sync(file)).map_or(0, |at| at + 1);
    let mut safe = Vec::new();
    of_file(&done[..synced], file).for_each(|operation| apply(operation, &mut safe, false));
    let later: Vec<&Operation> = of_file(&done[synced..], file).collect();
    let with = |kept: &[&Operation], as_zeros| {
        let mut content = safe.clone();
        kept.iter().for_each(|operation| apply(operation, &mut content, as_zeros));
        Rc::new(content)
    };
    let variants: BTreeSet<Rc<Vec<u8>>> =
        [with(&[], false), with(&later, false), with(&later[..later.len() / 2], false), with(&later, true)]
            .into();
    variants.into_iter().collect()
}
