//! Record ranges on the command line: `7`, `0..10`, `5..`, `..`, `-1`.

use anyhow::{Result, bail};
use std::ffi::OsString;
use std::ops::Range;
use std::str::FromStr;

/// Marks a range that begins with a minus sign, so that clap does not take it for an option.
const MARK: &str = "=";

/// Marks ranges like `-5..` in the command-line arguments.
pub fn mark_ranges(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut marked: Vec<OsString> = Vec::new();
    for argument in arguments {
        let is_range = argument.to_str().is_some_and(|text| {
            text.starts_with('-')
                && text.contains(|c: char| c.is_ascii_digit())
                && text.parse::<RecordRange>().is_ok()
        });
        // The word after an option may be its value.
        let follows_option = marked.last().is_some_and(|last| last.as_encoded_bytes().starts_with(b"-"));
        if is_range && !follows_option {
            let mut range = OsString::from(MARK);
            range.push(argument);
            marked.push(range);
        } else {
            marked.push(argument);
        }
    }
    marked
}

/// A range of record numbers. A negative number counts from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRange {
    begin: Option<i64>,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// A single record.
    Single,
    Open,
    At(i64),
}

impl RecordRange {
    /// All records.
    pub const ALL: RecordRange = RecordRange { begin: None, end: End::Open };

    /// The record numbers of this range in a file of `count` records.
    pub fn resolve(self, count: u64) -> Result<Range<u64>> {
        let place = |number: i64| {
            if number < 0 { count.checked_sub(number.unsigned_abs()) } else { u64::try_from(number).ok() }
        };
        let begin = self.begin.map_or(Some(0), place);
        let end = match self.end {
            End::Single => begin.map(|begin| begin + 1),
            End::Open => Some(count),
            End::At(end) => place(end),
        };
        match (begin, end) {
            (Some(begin), Some(end)) if begin <= end && end <= count => Ok(begin..end),
            _ => bail!("there is no {self} in a file of {}", crate::term::plural(count, "record")),
        }
    }
}

impl FromStr for RecordRange {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let text = text.strip_prefix(MARK).unwrap_or(text);
        let number = |text: &str| text.parse::<i64>().map_err(|_| format!("{text:?} is not a record number"));
        match text.split_once("..") {
            None => Ok(RecordRange { begin: Some(number(text)?), end: End::Single }),
            Some((begin, end)) => Ok(RecordRange {
                begin: if begin.is_empty() { None } else { Some(number(begin)?) },
                end: if end.is_empty() { End::Open } else { End::At(number(end)?) },
            }),
        }
    }
}

impl std::fmt::Display for RecordRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let begin = self.begin.map_or(String::new(), |begin| begin.to_string());
        match self.end {
            End::Single => write!(f, "record {begin}"),
            End::Open => write!(f, "range {begin}.."),
            End::At(end) => write!(f, "range {begin}..{end}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_negative_ranges_that_follow_no_option_are_marked() {
        let words = ["ls", "a", "-5..", "--key", "-3", "--sha256", "7", "-1", "-x"];
        let marked = mark_ranges(words.into_iter().map(OsString::from));
        assert_eq!(marked, ["ls", "a", "=-5..", "--key", "-3", "--sha256", "7", "=-1", "-x"]);
        assert_eq!("=-5..".parse::<RecordRange>().unwrap().resolve(8).unwrap(), 3..8);
    }

    #[test]
    fn ranges_are_read_and_resolved() {
        let resolve = |text: &str, count| text.parse::<RecordRange>().unwrap().resolve(count).ok();
        assert_eq!(resolve("7", 10), Some(7..8));
        assert_eq!(resolve("-1", 10), Some(9..10));
        assert_eq!(resolve("..", 10), Some(0..10));
        assert_eq!(resolve("3..", 10), Some(3..10));
        assert_eq!(resolve("..-2", 10), Some(0..8));
        assert_eq!(resolve("0..0", 0), Some(0..0));
        assert_eq!(resolve("10", 10), None);
        assert_eq!(resolve("-11", 10), None);
        assert_eq!(resolve("5..3", 10), None);
        assert!("x..y".parse::<RecordRange>().is_err());
    }
}
