//! Differences found in one direction of the exchange.

use std::collections::BTreeSet;
use std::fmt::{Debug, Display};

/// The maximum number of differences shown; a failing run has thousands.
const SHOWN: usize = 10;

/// The maximum length of a value shown, in characters.
const LONGEST: usize = 200;

/// What was compared so far, and what differed.
#[derive(Debug, Default)]
pub struct Report {
    files: u64,
    file: String,
    failed: BTreeSet<String>,
    differences: u64,
    shown: Vec<String>,
}

impl Report {
    /// Sets the file that the following differences are about.
    pub fn begin(&mut self, file: &str) {
        self.files += 1;
        file.clone_into(&mut self.file);
    }

    /// Records a difference in the current file.
    pub fn differ(&mut self, what: impl Display, expected: impl Debug, found: impl Debug) {
        let file = self.file.clone();
        self.differ_in(&file, what, expected, found);
    }

    /// Records a difference in this file. Values are shown escaped, because they come from files.
    pub fn differ_in(&mut self, file: &str, what: impl Display, expected: impl Debug, found: impl Debug) {
        self.differences += 1;
        self.failed.insert(file.to_owned());
        if self.shown.len() < SHOWN {
            let shorten = |value: String| match value.char_indices().nth(LONGEST) {
                Some((end, _)) => format!("{}...", value.get(..end).unwrap_or_default()),
                None => value,
            };
            self.shown.push(format!(
                "  {}: {}: expected {}, found {}",
                file.escape_debug(),
                shorten(what.to_string().escape_debug().to_string()),
                shorten(format!("{expected:?}")),
                shorten(format!("{found:?}")),
            ));
        }
    }

    pub fn compare<T: PartialEq<U> + Debug + ?Sized, U: Debug + ?Sized>(
        &mut self,
        what: impl Display,
        expected: &T,
        found: &U,
    ) {
        if *expected != *found {
            self.differ(what, expected, found);
        }
    }

    /// Compares item by item and reports only the first difference: after a shift, all items
    /// differ.
    pub fn compare_lists<T: PartialEq + Debug>(&mut self, what: impl Display, expected: &[T], found: &[T]) {
        if expected.len() != found.len() {
            self.differ(format!("{what}: count"), expected.len(), found.len());
        }
        let different = |(_, (one, other)): &(usize, (&T, &T))| one != other;
        if let Some((at, (one, other))) = expected.iter().zip(found).enumerate().find(different) {
            self.differ(format!("{what}[{at}]"), one, other);
        }
    }

    /// Records an error as a difference.
    pub fn attempt(&mut self, what: impl Display, outcome: anyrec::Result<()>) {
        if let Err(error) = outcome {
            self.differ(what, "no error", error.to_string());
        }
    }

    /// Adds the differences of another report, about other files.
    pub fn join(&mut self, other: Report) {
        self.files += other.files;
        self.failed.extend(other.failed);
        self.differences += other.differences;
        let room = SHOWN.saturating_sub(self.shown.len());
        self.shown.extend(other.shown.into_iter().take(room));
    }

    pub fn files(&self) -> u64 {
        self.files
    }

    /// The number of files with a difference, including files that only the peer names.
    pub fn failed(&self) -> u64 {
        self.failed.len() as u64
    }

    pub fn differences(&self) -> u64 {
        self.differences
    }

    /// The first differences, one per line.
    pub fn shown(&self) -> &[String] {
        &self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_shifted_lists_the_count_and_the_first_difference_are_reported() {
        let mut report = Report::default();
        report.begin("a.rec");
        report.compare_lists("records", &[1, 2, 3], &[2, 3]);
        report.begin("b.rec");
        report.compare_lists("records", &[1, 2, 3], &[1, 2, 3]);
        assert_eq!((report.files(), report.failed(), report.differences()), (2, 1, 2));
        assert_eq!(
            report.shown(),
            ["  a.rec: records: count: expected 3, found 2", "  a.rec: records[0]: expected 1, found 2"]
        );
    }

    #[test]
    fn of_many_differences_ten_are_shown_and_all_counted() {
        let mut report = Report::default();
        report.begin("a.rec");
        for number in 0..50 {
            report.compare("number", &number, &-1);
        }
        assert_eq!((report.shown().len(), report.differences(), report.failed()), (10, 50, 1));
    }

    #[test]
    fn control_characters_of_a_file_are_shown_escaped_and_long_values_cut() {
        let mut report = Report::default();
        report.begin("a\u{1b}[2J");
        report.differ("key \u{7}", "\u{1b}", "x".repeat(1000));
        let line = &report.shown()[0];
        assert!(!line.contains(char::is_control), "{line:?}");
        assert!(line.len() < 400);
    }
}
