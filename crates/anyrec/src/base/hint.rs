//! What to do about an error, as a value: every front end words it in its own language.

use std::borrow::Cow;
use std::fmt;

/// What to do next. `{}` words it for Rust; a command line and other languages name their own commands
/// and arguments instead.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// A sentence that holds in every language.
    Advice(Cow<'static, str>),
    /// The file is damaged: verification lists all damage, a repair keeps the intact records.
    Damaged {
        /// The file.
        file: String,
    },
    /// A repair keeps part of the file.
    Repair {
        /// The file.
        file: String,
        /// Records at its beginning that are kept.
        records: u64,
    },
    /// The file's index file or table must be written again.
    Index {
        /// The data file.
        file: String,
    },
    /// An index file can be made from the data, but not with its old keys.
    RebuildKeys {
        /// The data file.
        file: String,
    },
    /// A damaged file is indexed only if damage may be skipped.
    IndexDamaged {
        /// The data file.
        file: String,
    },
    /// An interrupted replacement can be completed.
    Finish {
        /// The file that is being replaced.
        file: String,
    },
    /// A limit on memory can be raised.
    RaiseLimit,
    /// The file exists: choose another name or allow overwriting.
    AllowOverwrite,
    /// The format cannot be told: name it.
    NameFormat,
    /// Some names cannot be written as they are; they can be escaped.
    EscapeNames,
    /// A repaired packed folder needs a tree that fits.
    RebuildTree,
    /// A repair can rewrite a packed folder's tree for the remaining files.
    RewriteTree,
    /// Labels need a wider element type.
    WiderLabels,
    /// A transformer is not known by its name.
    RegisterTransformer,
    /// A key for decryption is missing.
    GiveKey,
    /// Labels are in a file of their own, which can be converted too.
    ConvertLabels,
    /// Records can be read whole where they cannot be split into header and payload.
    ReadWholeRecords,
    /// The file is an image; a folder of images can be packed.
    PackImages,
}

impl From<&'static str> for Hint {
    fn from(advice: &'static str) -> Self {
        Hint::Advice(advice.into())
    }
}

impl From<String> for Hint {
    fn from(advice: String) -> Self {
        Hint::Advice(advice.into())
    }
}

impl Hint {
    /// [`Hint::Damaged`].
    pub(crate) fn damaged(file: &str) -> Self {
        Hint::Damaged { file: file.to_owned() }
    }

    /// [`Hint::RebuildKeys`].
    pub(crate) fn rebuild_keys(file: &str) -> Self {
        Hint::RebuildKeys { file: file.to_owned() }
    }

    /// [`Hint::Index`].
    pub(crate) fn index(file: impl Into<String>) -> Self {
        Hint::Index { file: file.into() }
    }
}

impl Hint {
    /// One hint of each kind, for the tests of front ends, which word them all.
    #[doc(hidden)]
    pub fn examples() -> Vec<Hint> {
        let file = "train";
        vec![
            Hint::from("fetch the file again"),
            Hint::damaged(file),
            Hint::Repair { file: file.to_owned(), records: 7 },
            Hint::index(file),
            Hint::rebuild_keys(file),
            Hint::IndexDamaged { file: file.to_owned() },
            Hint::Finish { file: file.to_owned() },
            Hint::RaiseLimit,
            Hint::AllowOverwrite,
            Hint::NameFormat,
            Hint::EscapeNames,
            Hint::RebuildTree,
            Hint::RewriteTree,
            Hint::WiderLabels,
            Hint::RegisterTransformer,
            Hint::GiveKey,
            Hint::PackImages,
            Hint::ReadWholeRecords,
            Hint::ConvertLabels,
        ]
    }
}

/// Which keys a rebuilt index file has; the same in every language.
pub const REBUILT_KEYS: &str = "makes one whose keys are the ids of the image headers where all differ, else \
                                record numbers; other keys cannot be recovered from the data";

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hint::Advice(advice) => f.write_str(advice),
            Hint::Damaged { .. } => {
                f.write_str("`anyrec::verify` lists all damage, `anyrec::repair` keeps the intact records")
            }
            Hint::Repair { records, .. } => write!(f, "`anyrec::repair` keeps the first {records} records"),
            Hint::Index { .. } => f.write_str("`anyrec::index` writes it again"),
            Hint::RebuildKeys { .. } => write!(f, "`anyrec::index` {REBUILT_KEYS}"),
            Hint::IndexDamaged { .. } => f.write_str(
                "`OpenOptions::with_skip_damage` indexes the intact records; `anyrec::repair` makes a sound file",
            ),
            Hint::Finish { .. } => {
                f.write_str("`anyrec::io::finish_interrupted` publishes the new files, which are complete")
            }
            Hint::RaiseLimit => f.write_str("raise the limit in `Limits` if the file is trusted"),
            Hint::AllowOverwrite => {
                f.write_str("choose another name, or allow overwriting with `WriteOptions::with_overwrite`")
            }
            Hint::NameFormat => f.write_str("name the format with `OpenOptions::with_format`"),
            Hint::EscapeNames => f.write_str("`BadNames::Escape` writes such names escaped"),
            Hint::RebuildTree => {
                f.write_str("if this file was repaired: `RepairOptions::rebuild_tree` makes a tree that fits")
            }
            Hint::RewriteTree => {
                f.write_str("`RepairOptions::rebuild_tree` rewrites it for the remaining files")
            }
            Hint::WiderLabels => {
                f.write_str("choose a wider type for the label file with `ConvertOptions::label_dtype`")
            }
            Hint::RegisterTransformer => f.write_str("register it under that name with `Registry::register`"),
            Hint::PackImages => f.write_str("write the images of a folder as the records of a file"),
            Hint::ConvertLabels => f.write_str("name their file in `ConvertOptions::labels`"),
            Hint::ReadWholeRecords => {
                f.write_str("`Dataset::read` reads whole records; `ImageHeader::unpack` splits one")
            }
            Hint::GiveKey => f.write_str("give it with `Registry::with_key`: keys are not stored in files"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of a kind. A new kind does not compile until it is numbered here, and then the test
    /// fails until it is among the examples.
    fn kind(hint: &Hint) -> usize {
        match hint {
            Hint::Advice(_) => 0,
            Hint::Damaged { .. } => 1,
            Hint::Repair { .. } => 2,
            Hint::Index { .. } => 3,
            Hint::RebuildKeys { .. } => 4,
            Hint::IndexDamaged { .. } => 5,
            Hint::Finish { .. } => 6,
            Hint::RaiseLimit => 7,
            Hint::AllowOverwrite => 8,
            Hint::NameFormat => 9,
            Hint::EscapeNames => 10,
            Hint::RebuildTree => 11,
            Hint::RewriteTree => 12,
            Hint::WiderLabels => 13,
            Hint::RegisterTransformer => 14,
            Hint::GiveKey => 15,
            Hint::PackImages => 16,
            Hint::ReadWholeRecords => 17,
            Hint::ConvertLabels => 18,
        }
    }

    #[test]
    fn the_examples_are_one_of_each_kind() {
        let kinds: Vec<usize> = Hint::examples().iter().map(kind).collect();
        assert_eq!(kinds, (0..19).collect::<Vec<_>>());
    }
}
