//! Images and their labels: two IDX files paired by name.
//!
//! `train-images-idx3-ubyte` belongs to `train-labels-idx1-ubyte`. In practice the rank is
//! separated by `-`, `.` or `_`, either file may be gzipped, and one data set (QMNIST) has a row of
//! numbers per image as labels, in `...-labels-idx2-int`.

use super::element::numbers;
use super::read::Reader;
use crate::base::{ElementType, Error, ErrorKind, Label, Location, Position, Result, Tags, shown};
use crate::format::{Format, Info, OpenOptions, RecordReader};
use crate::io::Source;
use bytes::Bytes;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The names of the types, as used in file names.
const TYPES: [&str; 6] = ["ubyte", "byte", "short", "int", "float", "double"];

/// The parts of an IDX file's name: stem, separator, `idx`, rank, type, `.gz`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spelling {
    /// The part before the separator.
    stem: String,
    /// `-`, `.` or `_`; empty if the name begins with `idx`.
    separator: String,
    /// Whether a type follows the rank (`idx3-ubyte` as opposed to `idx3`).
    typed: bool,
    gzip: bool,
}

impl Spelling {
    /// Splits a file name into its parts; `None` if it is not the name of an IDX file.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let lower = name.to_ascii_lowercase();
        let plain = lower.strip_suffix(".gz").unwrap_or(&lower);
        let at = plain.rfind("idx")?;
        let ending = plain.get(at + 3..)?;
        let rank_end = ending.find(|character: char| !character.is_ascii_digit()).unwrap_or(ending.len());
        let (rank, kind) = ending.split_at_checked(rank_end)?;
        let known = kind.strip_prefix(['-', '_', '.']).is_some_and(|kind| TYPES.contains(&kind));
        let before = name.get(..at)?;
        let stem = before.strip_suffix(['-', '.', '_']).unwrap_or(before);
        let separator = before.get(stem.len()..)?;
        let apart = before.is_empty() || !separator.is_empty();
        (rank.parse::<u8>().is_ok() && (kind.is_empty() || known) && apart).then(|| Spelling {
            stem: stem.to_owned(),
            separator: separator.to_owned(),
            typed: !kind.is_empty(),
            gzip: plain.len() < lower.len(),
        })
    }
}

/// Which half of a pair a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Images,
    Labels,
}

/// Finds the other file of a pair beside `path`: labels for images, images for labels. The spelling
/// of `path` is tried first, then the other common ones.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// use anyrec::format::idx::partner;
///
/// std::fs::write(folder.join("t10k-labels.idx1-ubyte.gz"), b"").unwrap();
/// assert_eq!(
///     partner(&folder.join("t10k-images-idx3-ubyte")),
///     Some(folder.join("t10k-labels.idx1-ubyte.gz")),
/// );
/// assert_eq!(partner(&folder.join("train-images-idx3-ubyte")), None);
/// ```
pub fn partner(path: &Path) -> Option<PathBuf> {
    partners(path)?.1.into_iter().find(|candidate| candidate.is_file())
}

/// The labels beside a file of images; `None` for any other file.
pub(super) fn labels_beside(path: &Path) -> Option<PathBuf> {
    let (role, candidates) = partners(path)?;
    candidates.into_iter().find(|candidate| role == Role::Images && candidate.is_file())
}

/// The splits of a data set (`train`, `t10k`), each with its file of images, by name. `None` unless
/// every file is one of images or of labels, according to its name.
///
/// A split is named after what the name has before `images`. Of a plain and a gzipped file with the
/// same images, the plain one is taken. Several files of one split (`train-images-0`, `train-images-1`)
/// are not splits either: `None`.
///
/// ```
/// use anyrec::format::idx::splits;
/// use std::path::PathBuf;
///
/// let files = ["mnist/t10k-images-idx3-ubyte", "mnist/t10k-labels-idx1-ubyte"].map(PathBuf::from);
/// assert_eq!(splits(&files), Some(vec![("t10k".to_owned(), files[0].clone())]));
/// assert_eq!(splits(&[PathBuf::from("mnist/weights-idx2-float")]), None);
/// ```
pub fn splits(files: &[PathBuf]) -> Option<Vec<(String, PathBuf)>> {
    let mut splits: Vec<(String, PathBuf)> = Vec::new();
    let mut stems: Vec<(String, String)> = Vec::new();
    for file in files {
        let name = Name::of(file)?;
        if name.role == Role::Labels {
            continue;
        }
        let split = name.before.trim_end_matches(['-', '.', '_']).to_owned();
        match stems.iter().find(|(other, _)| *other == split) {
            Some((_, stem)) if *stem != name.spelling.stem => return None,
            Some(_) => {}
            None => stems.push((split.clone(), name.spelling.stem.clone())),
        }
        match splits.iter_mut().find(|(other, _)| *other == split) {
            Some((_, path)) if !name.spelling.gzip => *path = file.clone(),
            Some(_) => {}
            None => splits.push((split, file.clone())),
        }
    }
    splits.sort();
    Some(splits)
}

/// The name of a file of images or labels.
struct Name {
    spelling: Spelling,
    role: Role,
    /// The part before `images` or `labels`.
    before: String,
    /// The name of the other half, up to the separator.
    other: String,
}

impl Name {
    fn of(path: &Path) -> Option<Self> {
        let spelling = Spelling::of(path)?;
        let lower = spelling.stem.to_ascii_lowercase();
        let roles = [(Role::Images, "image", "label"), (Role::Labels, "label", "image")];
        let (role, at, word, other) = roles
            .into_iter()
            .filter_map(|(role, word, other)| Some((role, lower.rfind(word)?, word, other)))
            .max_by_key(|&(_, at, ..)| at)?;
        let (before, rest) = spelling.stem.split_at_checked(at)?;
        let (found, after) = rest.split_at_checked(word.len())?;
        let other = format!("{before}{}{after}", in_case_of(found, other));
        Some(Name { before: before.to_owned(), role, other, spelling })
    }
}

/// The role of `path` according to its name, and possible names of its partner, most likely first.
fn partners(path: &Path) -> Option<(Role, Vec<PathBuf>)> {
    let Name { spelling, role, other: stem, .. } = Name::of(path)?;

    let kinds: &[&str] = match role {
        Role::Images => &["idx1-ubyte", "idx1-byte", "idx1-short", "idx1-int", "idx2-int", "idx1"],
        Role::Labels => &["idx3-ubyte", "idx4-ubyte", "idx2-ubyte", "idx3-float", "idx4-float", "idx3"],
    };
    let first_untyped = kinds.iter().filter(|kind| kind.contains('-') == spelling.typed);
    let kinds: Vec<&str> = first_untyped
        .chain(kinds.iter().filter(|kind| kind.contains('-') != spelling.typed))
        .copied()
        .collect();
    let own = spelling.separator.as_str();
    let separators: Vec<&str> =
        std::iter::once(own).chain(["-", ".", "_"].into_iter().filter(|&other| other != own)).collect();
    let mut candidates = Vec::new();
    for kind in kinds {
        for separator in &separators {
            for gzip in [spelling.gzip, !spelling.gzip] {
                let suffix = if gzip { ".gz" } else { "" };
                candidates.push(path.with_file_name(format!("{stem}{separator}{kind}{suffix}")));
            }
        }
    }
    Some((role, candidates))
}

/// `word` in upper case, capitalised or lower case, like `model`.
fn in_case_of(model: &str, word: &str) -> String {
    if model.chars().all(|character| character.is_ascii_uppercase()) {
        return word.to_ascii_uppercase();
    }
    let mut word = word.to_owned();
    if model.starts_with(|character: char| character.is_ascii_uppercase())
        && let Some(first) = word.get_mut(..1)
    {
        first.make_ascii_uppercase();
    }
    word
}

/// Images with their labels.
///
/// As a [`RecordReader`] this provides the images, and [`tags`](RecordReader::tags) provides the
/// labels.
#[derive(Debug)]
pub struct Pair {
    /// The records.
    pub images: Reader,
    /// Their labels, one record each.
    pub labels: Reader,
}

impl Pair {
    /// Opens a pair, given either of its files; the other one is found by name.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if the name is not that of images or labels, or the other
    /// file does not exist; otherwise same as [`Pair::of`].
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        let name = shown(path);
        let (role, candidates) = partners(path).ok_or_else(|| {
            Error::invalid("the name is not that of images or labels")
                .in_file(name.clone())
                .with_hint("name both files, as in `train-images-idx3-ubyte` and `train-labels-idx1-ubyte`")
        })?;
        let other = candidates.iter().find(|candidate| candidate.is_file()).ok_or_else(|| {
            let likeliest = candidates.first().map(|path| shown(path)).unwrap_or_default();
            let what = if role == Role::Images { "labels" } else { "images" };
            Error::invalid(format!("the {what} that belong to this file are not beside it"))
                .in_file(name)
                .with_hint(format!("expected name: {likeliest}"))
        })?;
        let (this, other) = (Reader::open(path, options)?, Reader::open(other, options)?);
        match role {
            Role::Images => Self::of(this, other),
            Role::Labels => Self::of(other, this),
        }
    }

    /// Combines two open files.
    ///
    /// # Errors
    /// [`Stale`](ErrorKind::Stale) if the numbers of labels and images differ.
    pub fn of(images: Reader, labels: Reader) -> Result<Self> {
        check_belongs(&labels, images.count()?)?;
        Ok(Pair { images, labels })
    }

    /// Label of record `index`: one number, or several if the labels file has more than one
    /// dimension.
    ///
    /// # Errors
    /// Same as [`RecordReader::read`].
    pub fn label(&self, index: u64) -> Result<Label> {
        label_of(&self.labels, index)
    }
}

/// Fails unless there are as many labels as images.
pub(super) fn check_belongs(labels: &Reader, images: u64) -> Result<()> {
    let found = labels.count()?;
    if images == found {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Stale, "the labels are not those of the images")
        .expected_found(format!("{images} labels"), found)
        .in_file(labels.source().name()))
}

/// Label `index` of a labels file.
pub(super) fn label_of(labels: &Reader, index: u64) -> Result<Label> {
    let bytes = labels.read(index)?;
    let values = numbers(labels.header().dtype(), &bytes);
    Ok(match (labels.header().item_shape(), values.as_slice()) {
        ([], &[value]) => Label::Scalar(value),
        _ => Label::Array(values),
    })
}

impl RecordReader for Pair {
    fn format(&self) -> &'static dyn Format {
        self.images.format()
    }

    fn source(&self) -> &Arc<dyn Source> {
        self.images.source()
    }

    fn info(&self) -> Result<Info> {
        self.images.info()
    }

    fn count(&self) -> Result<u64> {
        self.images.count()
    }

    fn locate(&self, index: u64) -> Result<Location> {
        self.images.locate(index)
    }

    fn decode<'a>(&self, index: u64, location: &Location, frame: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        self.images.decode(index, location, frame)
    }

    fn read(&self, index: u64) -> Result<Bytes> {
        self.images.read(index)
    }

    fn item(&self) -> Option<(ElementType, &[u64])> {
        self.images.item()
    }

    fn tags(&self, index: u64, _position: Position, _record: &[u8]) -> Result<Tags> {
        Ok(Tags::none().with_label(self.label(index)?))
    }
}
