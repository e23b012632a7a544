//! The folder that is filled, and the ledger of what went into it.

use anyrec::format::{Key, Label};
use anyrec::image::{ImageFormat, Kind, sniff};
use anyrec::io::{BadNames, UnpackFolder, safe_name};
use anyrec::{ErrorKind, Result};
use std::collections::HashMap;
use std::path::Path;

/// Class folders held open at once: far fewer than a process may have open.
const OPEN_FOLDERS: usize = 128;
/// Refused names that are listed; more are counted.
const LISTED: usize = 1000;

/// What was written, and what was not.
#[derive(Debug, Default)]
pub struct Ledger {
    pub files: u64,
    pub folders: u64,
    pub bytes: u64,
    /// Stretches of damage, and damaged files of a packed folder, left out.
    pub damaged: u64,
    /// That damage, in words.
    pub skipped: Vec<String>,
    /// Names that were refused, why, and what was used instead.
    pub refused: Vec<(String, &'static str, String)>,
    pub notices: Vec<String>,
}

/// A folder that records are written into.
#[derive(Debug)]
pub struct Target {
    root: UnpackFolder,
    /// Class folders made so far; those that are open have a value.
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

    /// Writes a record's content under its key or number, into the folder of its class if it has
    /// one.
    pub fn write(
        &mut self,
        class: Option<&str>,
        key: Option<&Key>,
        number: u64,
        content: &[u8],
    ) -> Result<()> {
        let ending = ending(content);
        let numbered = format!("{number:08}.{ending}");
        let name = match key {
            None => numbered.clone().into_bytes(),
            Some(Key::Int(key)) => format!("{key}.{ending}").into_bytes(),
            Some(Key::Text(key)) => self.text_name(key, ending, &numbered),
        };
        if let Some(class) = class {
            self.enter(class)?;
        }
        let folder = class.and_then(|class| self.folders.get(class)?.as_ref()).unwrap_or(&self.root);
        match folder.create_file(&name, content) {
            // Two records of one key, or of two that the file system cannot tell apart.
            Err(error) if error.kind() == ErrorKind::Exists && key.is_some() => {
                folder.create_file(numbered.as_bytes(), content)?;
                let name = String::from_utf8_lossy(&name).into_owned();
                self.refuse(name, "another record has that name", numbered);
            }
            written => written?,
        }
        self.ledger.files += 1;
        self.ledger.bytes += content.len() as u64;
        Ok(())
    }

    /// The name of a text key, which keeps an ending of its own.
    fn text_name(&mut self, key: &[u8], ending: &str, numbered: &str) -> Vec<u8> {
        let mut wanted = key.to_vec();
        if !has_ending(key) {
            wanted.extend_from_slice(format!(".{ending}").as_bytes());
        }
        match safe_name(&wanted, self.bad_names) {
            Ok(name) => name.into_owned(),
            Err(reason) => {
                self.refuse(String::from_utf8_lossy(key).into_owned(), reason, numbered.to_owned());
                numbered.as_bytes().to_vec()
            }
        }
    }

    fn refuse(&mut self, name: String, reason: &'static str, instead: String) {
        if self.ledger.refused.len() < LISTED {
            self.ledger.refused.push((name, reason, instead));
        } else {
            self.unlisted += 1;
        }
    }

    /// Makes a class's folder, or opens it again.
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

    pub fn finish(mut self) -> Ledger {
        if self.unlisted > 0 {
            self.ledger.notices.push(format!("{} more names were refused", self.unlisted));
        }
        self.ledger
    }
}

/// Whether a name ends in a dot and a few letters or digits.
fn has_ending(name: &[u8]) -> bool {
    let stem = name.rsplitn(2, |&byte| byte == b'.').collect::<Vec<_>>();
    matches!(stem.as_slice(), [ending, stem]
        if !stem.is_empty() && (1..=5).contains(&ending.len()) && ending.iter().all(u8::is_ascii_alphanumeric))
}

/// The ending of a file's name, for what its content looks like.
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

/// The name of a class's folder: its first label.
pub fn class_name(label: &Label) -> String {
    let number = match label {
        Label::Scalar(number) => *number,
        Label::Array(numbers) => match numbers.first() {
            Some(first) => *first,
            None => return UNLABELLED.to_owned(),
        },
    };
    // Labels are mostly stored as 32-bit floats: 0.1 is to be called so, not 0.10000000149.
    #[allow(clippy::cast_possible_truncation)]
    let narrow = number as f32;
    match number {
        0.0 => "0".to_owned(),
        number if number.abs() >= 1e15 => format!("{number:e}"),
        number if f64::from(narrow) == number => narrow.to_string(),
        number => number.to_string(),
    }
}

/// Where records without a label go when the others go by class.
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
