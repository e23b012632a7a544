//! Creates list files from a folder of images, and finds existing ones.

use super::Listing;
use super::python_random::PythonRandom;
use anyhow::{Context, Result, bail};
use anyrec::format::mxnet::{ListEntry, write_list};
use anyrec::io::{AtomicFile, Durability, FileSet};
use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The seed that `im2rec.py` uses.
const SEED: u32 = 100;

/// List files that were written.
#[derive(Debug, Default)]
pub struct Listed {
    /// The files, with the number of lines in each.
    pub files: Vec<(PathBuf, u64)>,
    /// Folders relative to the root, indexed by label. Empty without `--recursive`.
    pub labels: Vec<PathBuf>,
    /// Notices for the user.
    pub notices: Vec<String>,
}

/// Writes the list files of a folder.
pub fn make(prefix: &Path, root: &Path, listing: &Listing, force: bool) -> Result<Listed> {
    let Some(name) = prefix.file_name() else {
        bail!("the prefix {} does not end in a file name", crate::cmd::show(prefix));
    };
    let mut images = Images::new(listing);
    images.collect(root, listing.recursive)?;
    let Images { mut entries, labels, mut notices, .. } = images;
    if entries.is_empty() {
        notices.push(format!("no file in the folder ends in {}", listing.exts.join(", ")));
    }
    if listing.test_ratio > 0.0 && listing.train_ratio >= 1.0 {
        notices.push("--test-ratio has no effect unless --train-ratio is below 1".to_owned());
    }
    if !listing.no_shuffle {
        PythonRandom::new(SEED).shuffle(&mut entries);
    }
    let parts: Vec<(PathBuf, &[ListEntry])> = parts(&entries, listing)
        .into_iter()
        .map(|(ending, part)| {
            let mut file_name = name.to_owned();
            file_name.push(ending);
            (prefix.with_file_name(file_name), part)
        })
        .collect();
    let mut files = Vec::new();
    let mut complete = FileSet::default();
    for (path, part) in parts {
        let mut file = AtomicFile::create(&path, force, Durability::Machine)?;
        file.append(&write_list(part)?)?;
        complete.append(FileSet::of(file.complete()?));
        files.push((path, part.len() as u64));
    }
    complete.publish()?;
    Ok(Listed { files, labels, notices })
}

/// The parts a list is split into, with the suffixes of their names.
fn parts<'a>(entries: &'a [ListEntry], listing: &Listing) -> Vec<(String, &'a [ListEntry])> {
    let chunk_count = usize::try_from(listing.chunks).unwrap_or(usize::MAX);
    let chunk_size = entries.len().div_ceil(chunk_count);
    let slice = |begin: usize, end: usize| entries.get(begin.min(end)..end).unwrap_or_default();
    let mut parts = Vec::new();
    for chunk in 0..chunk_count {
        let begin = chunk_size.saturating_mul(chunk).min(entries.len());
        let end = begin.saturating_add(chunk_size).min(entries.len());
        let name = if chunk_count > 1 { format!("_{chunk}") } else { String::new() };
        if listing.train_ratio >= 1.0 {
            parts.push((format!("{name}.lst"), slice(begin, end)));
            continue;
        }
        // The shares are computed from the size of a full chunk, as in the original: a shorter last
        // chunk loses entries from its end.
        let test_end = begin.saturating_add(share(chunk_size, listing.test_ratio)).min(end);
        let train_end = test_end.saturating_add(share(chunk_size, listing.train_ratio)).min(end);
        if listing.test_ratio > 0.0 {
            parts.push((format!("{name}_test.lst"), slice(begin, test_end)));
        }
        if listing.train_ratio + listing.test_ratio < 1.0 {
            parts.push((format!("{name}_val.lst"), slice(train_end, end)));
        }
        parts.push((format!("{name}_train.lst"), slice(test_end, train_end)));
    }
    parts
}

/// A share of a count, rounded down.
fn share(count: usize, share: f64) -> usize {
    // A share from 0 to 1 of a count lies between 0 and the count.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    let part = (count as f64 * share) as usize;
    part
}

/// The images of a folder, in the order of the original.
struct Images {
    extensions: Vec<String>,
    entries: Vec<ListEntry>,
    labels: Vec<PathBuf>,
    notices: Vec<String>,
}

impl Images {
    fn new(listing: &Listing) -> Self {
        let dotted = |extension: &String| match extension.strip_prefix('.') {
            Some(_) => extension.to_lowercase(),
            None => format!(".{}", extension.to_lowercase()),
        };
        Images {
            extensions: listing.exts.iter().map(dotted).collect(),
            entries: Vec::new(),
            labels: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// Visits the files of a folder before its subfolders, both sorted by name. Links are followed.
    fn collect(&mut self, root: &Path, recursive: bool) -> Result<()> {
        let mut stack = vec![Visit { path: PathBuf::new(), around: Vec::new() }];
        while let Some(Visit { path, mut around }) = stack.pop() {
            let full = root.join(&path);
            let context = || format!("cannot read the folder {}", crate::cmd::show(&full));
            let metadata = full.metadata().with_context(context)?;
            let identity = (metadata.dev(), metadata.ino());
            if around.contains(&identity) {
                self.notices.push(format!(
                    "{} is a link to one of its parent folders and is skipped",
                    crate::cmd::show(&full)
                ));
                continue;
            }
            around.push(identity);
            let mut names = full
                .read_dir()
                .and_then(|entries| {
                    entries.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>, _>>()
                })
                .with_context(context)?;
            names.sort_by(|one, other| python_order(one, other));
            let mut folders = Vec::new();
            let mut label = None;
            for name in names {
                // A dangling link is neither a file nor a folder.
                let Ok(metadata) = full.join(&name).metadata() else { continue };
                let relative = path.join(&name);
                if metadata.is_dir() {
                    folders.push(Visit { path: relative, around: around.clone() });
                } else if metadata.is_file() && self.extensions.contains(&extension(&name)) {
                    let label = *label.get_or_insert_with(|| {
                        if recursive {
                            self.labels.push(if path == Path::new("") { ".".into() } else { path.clone() });
                        }
                        self.labels.len().saturating_sub(1)
                    });
                    self.entries.push(ListEntry {
                        index: self.entries.len() as i128,
                        // Folders are far fewer than 2^53.
                        #[allow(clippy::cast_precision_loss)]
                        labels: vec![label as f64],
                        path: relative.as_os_str().as_bytes().into(),
                    });
                }
            }
            if recursive {
                stack.extend(folders.into_iter().rev());
            }
        }
        Ok(())
    }
}

/// A folder that is yet to be visited.
struct Visit {
    /// Relative to the root.
    path: PathBuf,
    /// Device and inode of the folders around it, to detect loops.
    around: Vec<(u64, u64)>,
}

/// A name's extension with its dot, in lower case. Leading dots do not count.
fn extension(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    let stem = name.trim_start_matches('.');
    stem.rfind('.').and_then(|at| stem.get(at..)).unwrap_or_default().to_lowercase()
}

/// Python's string order: by code point, where a byte that is not UTF-8 is a surrogate.
fn python_order(one: &OsStr, other: &OsStr) -> Ordering {
    fn points(name: &OsStr) -> impl Iterator<Item = u32> + '_ {
        name.as_bytes().utf8_chunks().flat_map(|chunk| {
            let escaped = chunk.invalid().iter().map(|byte| 0xdc00 + u32::from(*byte));
            chunk.valid().chars().map(u32::from).chain(escaped)
        })
    }
    points(one).cmp(points(other))
}

/// The list files of a prefix, sorted by name: all list files in the prefix if it is a folder, else
/// those beside the prefix that begin with its name.
pub fn find(prefix: &Path) -> Result<Vec<PathBuf>> {
    let (folder, begin) = if prefix.is_dir() {
        (prefix, OsString::new())
    } else {
        let folder = prefix.parent().filter(|folder| *folder != Path::new(""));
        (folder.unwrap_or(Path::new(".")), prefix.file_name().unwrap_or_default().to_owned())
    };
    let context = || format!("cannot read the folder {}", crate::cmd::show(folder));
    let mut lists = Vec::new();
    for entry in folder.read_dir().with_context(context)? {
        let name = entry.with_context(context)?.file_name();
        let path = if prefix.is_dir() { folder.join(&name) } else { prefix.with_file_name(&name) };
        let bytes = name.as_bytes();
        if bytes.starts_with(begin.as_bytes()) && bytes.ends_with(b".lst") && path.is_file() {
            lists.push(path);
        }
    }
    if lists.is_empty() {
        return Err(anyrec::Error::invalid("there is no list file with this prefix")
            .in_file(crate::cmd::show(prefix))
            .with_hint("`anyrec im2rec --list --recursive PREFIX ROOT` writes one")
            .into());
    }
    lists.sort();
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(chunks: u64, train_ratio: f64, test_ratio: f64) -> Listing {
        let exts = vec![".jpg".to_owned()];
        Listing { list: true, exts, chunks, train_ratio, test_ratio, recursive: false, no_shuffle: true }
    }

    fn cut(count: u64, listing: &Listing) -> Vec<(String, Vec<i128>)> {
        let entry = |index: u64| ListEntry { index: index.into(), labels: vec![0.0], path: "x".into() };
        let entries: Vec<ListEntry> = (0..count).map(entry).collect();
        let parts = parts(&entries, listing).into_iter();
        parts.map(|(name, part)| (name, part.iter().map(|entry| entry.index).collect())).collect()
    }

    #[test]
    fn shares_are_those_of_a_full_chunk() {
        assert_eq!(cut(3, &listing(1, 1.0, 0.0)), [(".lst".to_owned(), vec![0, 1, 2])]);
        assert_eq!(
            cut(5, &listing(1, 0.5, 0.25)),
            [
                ("_test.lst".to_owned(), vec![0]),
                ("_val.lst".to_owned(), vec![3, 4]),
                ("_train.lst".to_owned(), vec![1, 2]),
            ]
        );
        let chunked = cut(5, &listing(2, 0.5, 0.5));
        assert_eq!(
            chunked,
            [
                ("_0_test.lst".to_owned(), vec![0]),
                ("_0_train.lst".to_owned(), vec![1]),
                ("_1_test.lst".to_owned(), vec![3]),
                ("_1_train.lst".to_owned(), vec![4]),
            ]
        );
        // With more chunks than images, the last chunks are empty.
        assert_eq!(cut(1, &listing(3, 1.0, 0.0))[2], ("_2.lst".to_owned(), vec![]));
    }

    #[test]
    fn extensions_are_found_as_python_finds_them() {
        let of = |name: &str| extension(OsStr::new(name));
        assert_eq!([of("a.JPG"), of("a.b.png"), of("a.")], [".jpg", ".png", "."]);
        assert_eq!([of(".jpg"), of("..jpg"), of("jpg"), of(".a.jpg")], ["", "", "", ".jpg"]);
    }

    #[test]
    fn names_are_in_the_order_of_pythons_strings() {
        let ordered = [&b"B"[..], b"a", b"a.b", "é".as_bytes(), b"\xff", "\u{e000}".as_bytes()];
        for pair in ordered.windows(2) {
            let order = python_order(OsStr::from_bytes(pair[0]), OsStr::from_bytes(pair[1]));
            assert_eq!(order, Ordering::Less, "{pair:?}");
        }
    }
}
