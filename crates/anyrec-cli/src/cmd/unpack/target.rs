//! The output folder, and the ledger of what was written to it.

use anyrec::io::{BadNames, UnpackFolder, safe_name};
use anyrec::{ErrorKind, Result};
use anyrec::{Key, Label};
use anyrec_image::{ImageFormat, Kind, sniff};
use std::collections::HashMap;
use std::path::Path;

/// The number of class folders held open at once, far below the limit of a process.
const OPEN_FOLDERS: usize = 128;
/// The number of refused names that are listed; more are only counted.
const LISTED: usize = 1000;

/// What was written, and what was left out.
#[derive(Debug, Default)]
pub struct Ledger {
    pub files: u64,
    pub folders: u64,
    pub bytes: u64,
    /// Damaged ranges, and damaged files of a packed folder, that were left out.
    pub damaged: u64,
    /// Descriptions of that damage.
    pub skipped: Vec<String>,
    /// Names that were refused, the reason, and the name used instead.
    pub refused: Vec<(String, &'static str, String)>,
    pub notices: Vec<String>,
}

/// A folder that records are written into.
#[derive(Debug)]
pub struct Target {
    root: UnpackFolder,
    /// Class folders created so far; open ones have a value.
    folders: HashMap<String, Option<UnpackFolder>>,
    open: usize,
    bad_names: BadNames,
    unlisted: u64,
    pub ledger: Ledger,
}

impl Target {
    pub fn open(path: &Path, bad_names: BadNames) -> Result<Self> {
        Ok(Target {
            root: UnpackFolder::open(path)?,
            folders: HashMap::new(),
            open: 0,
            bad_names,
            unlisted: 0,
            ledger: Ledger::default(),
        })
    }

    /// Writes a record's content under its key, in the folder of its class if it has one. A record
    /// whose key is missing or unusable as a name is named by its number.
    pub fn write(
        &mut self,
        class: Option<&str>,
        key: Option<&Key>,
        number: u64,
        content: &[u8],
    ) -> Result<()> {
        if let Some(class) = class {
            self.enter(class)?;
        }
        let folder = class.and_then(|class| self.folders.get(class)?.as_ref()).unwrap_or(&self.root);
        let ending = ending(content);
        let refused = match key.map(|key| key_name(key, ending, self.bad_names)) {
            None => None,
            Some(Err(refused)) => Some(refused),
            Some(Ok(name)) => match create(folder, &name, content)? {
                true => {
                    self.count(content);
                    return Ok(());
                }
                // Two records have the same key, or keys that the file system cannot distinguish.
                false => Some((String::from_utf8_lossy(&name).into_owned(), "another record has that name")),
            },
        };
        let mut name = format!("{number:08}.{ending}");
        let mut attempt = 0u64;
        // A key may look like a number.
        while !create(folder, name.as_bytes(), content)? {
            attempt += 1;
            name = format!("{number:08}-{attempt}.{ending}");
        }
        if let Some((wanted, reason)) = refused {
            self.refuse(wanted, reason, name);
        }
        self.count(content);
        Ok(())
    }

    fn count(&mut self, content: &[u8]) {
        self.ledger.files += 1;
        self.ledger.bytes += content.len() as u64;
    }

    fn refuse(&mut self, name: String, reason: &'static str, instead: String) {
        if self.ledger.refused.len() < LISTED {
            self.ledger.refused.push((name, reason, instead));
        } else {
            self.unlisted += 1;
        }
    }

    /// Creates a class folder, or opens it again.
    fn enter(&mut self, class: &str) -> Result<()> {
        let made = self.folders.get(class);
        if made.is_some_and(Option::is_some) {
            return Ok(());
        }
        let is_new = made.is_none();
        if self.open >= OPEN_FOLDERS {
            self.folders.values_mut().for_each(|folder| *folder = None);
            self.open = 0;
        }
        let folder = if is_new {
            self.ledger.folders += 1;
            self.root.create_folder(class.as_bytes())?
        } else {
            self.root.open_folder(class.as_bytes())?
        };
        self.folders.insert(class.to_owned(), Some(folder));
        self.open += 1;
        Ok(())
    }

    pub fn finish(mut self) -> Result<Ledger> {
        if self.unlisted > 0 {
            self.ledger.notices.push(format!("{} more names were refused", self.unlisted));
        }
        self.pad_classes()?;
        Ok(self.ledger)
    }

    /// Gives class folders names of one length (`03`, `12`), so that in the order of names they are
    /// numbered as the labels were. The length is known only after the last record.
    fn pad_classes(&mut self) -> Result<()> {
        let mut classes: Vec<&str> = self.folders.keys().map(String::as_str).collect();
        classes.retain(|class| *class != UNLABELLED);
        if !classes.iter().all(|class| class.bytes().all(|byte| byte.is_ascii_digit())) {
            return Ok(());
        }
        let width = classes.iter().map(|class| class.len()).max().unwrap_or(0);
        for class in classes.iter().filter(|class| class.len() < width) {
            self.root.rename_folder(class.as_bytes(), format!("{class:0>width$}").as_bytes())?;
        }
        let greatest = classes.iter().filter_map(|class| class.parse::<usize>().ok()).max();
        if greatest.is_some_and(|greatest| greatest >= classes.len()) {
            self.ledger.notices.push(
                "not every class from 0 on has records: tools that number the folders in their order give \
                 other numbers than the labels"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

/// Creates a file unless the name is taken.
fn create(folder: &UnpackFolder, name: &[u8], content: &[u8]) -> Result<bool> {
    match folder.create_file(name, content) {
        Err(error) if error.kind() == ErrorKind::Exists => Ok(false),
        written => written.map(|()| true),
    }
}

/// The file name for a key, or the key and the reason why it cannot be used. A text key keeps its
/// own extension.
fn key_name(
    key: &Key,
    ending: &str,
    bad_names: BadNames,
) -> std::result::Result<Vec<u8>, (String, &'static str)> {
    let text = match key {
        Key::Int(number) => return Ok(format!("{number}.{ending}").into_bytes()),
        Key::Text(text) => text,
    };
    let mut wanted = text.to_vec();
    if !has_ending(text) {
        wanted.extend_from_slice(format!(".{ending}").as_bytes());
    }
    match safe_name(&wanted, bad_names) {
        Ok(name) => Ok(name.into_owned()),
        Err(reason) => Err((String::from_utf8_lossy(text).into_owned(), reason)),
    }
}

/// Whether a name ends in a dot and a few letters or digits.
fn has_ending(name: &[u8]) -> bool {
    let stem = name.rsplitn(2, |&byte| byte == b'.').collect::<Vec<_>>();
    matches!(stem.as_slice(), [ending, stem]
        if !stem.is_empty() && (1..=5).contains(&ending.len()) && ending.iter().all(u8::is_ascii_alphanumeric))
}

/// The file name extension for the kind of content.
fn ending(content: &[u8]) -> &'static str {
    match sniff(content) {
        Kind::Image { format, .. } => match format {
            ImageFormat::Jpeg => "jpg",
            ImageFormat::Png => "png",
            ImageFormat::WebP => "webp",
            ImageFormat::Gif => "gif",
            ImageFormat::Bmp => "bmp",
            _ => "img",
        },
        Kind::Npy => "npy",
        Kind::Npz => "npz",
        Kind::Zip => "zip",
        Kind::Pickle => "pkl",
        Kind::Json => "json",
        Kind::Text => "txt",
        Kind::Gzip => "gz",
        Kind::Zstd => "zst",
        Kind::Tar => "tar",
        _ => "bin",
    }
}

/// The name of a class folder: the first label.
pub fn class_name(label: &Label) -> String {
    let number = match label {
        Label::Scalar(number) => *number,
        Label::Array(numbers) => match numbers.first() {
            Some(first) => *first,
            None => return UNLABELLED.to_owned(),
        },
    };
    // Labels are mostly stored as 32-bit floats: 0.1 should be shown as 0.1, not 0.10000000149.
    #[allow(clippy::cast_possible_truncation)]
    let narrow = number as f32;
    match number {
        0.0 => "0".to_owned(),
        number if number.abs() >= 1e15 => format!("{number:e}"),
        number if f64::from(narrow) == number => narrow.to_string(),
        number => number.to_string(),
    }
}

/// The folder for records without a label when the others are sorted by class.
pub const UNLABELLED: &str = "unlabelled";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_called_as_people_write_them() {
        let names = [3.0, -0.0, f64::from(0.1f32), -1.0, 16_777_217.0, f64::NAN, 1e300];
        let names = names.map(|label| class_name(&Label::Scalar(label)));
        assert_eq!(names, ["3", "0", "0.1", "-1", "16777217", "NaN", "1e300"]);
        assert_eq!(class_name(&Label::Array(vec![7.0, 1.0])), "7");
        assert_eq!(class_name(&Label::Array(vec![])), "unlabelled");
    }

    #[test]
    fn keys_keep_an_ending_of_their_own() {
        assert!(has_ending(b"cat.jpg") && has_ending(b"a.b.jpeg2"));
        assert!(!has_ending(b"cat") && !has_ending(b".jpg") && !has_ending(b"cat.") && !has_ending(b"a.b c"));
    }
}
