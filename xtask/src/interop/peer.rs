//! An original implementation, behind the two commands that all peers support.

use super::report::Report;
use crate::run::{Failure, command, root};
use serde_json::Value;
use std::ffi::OsString;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};

/// A value from the peer, as it writes it, but safe for a terminal.
struct Json<'a>(&'a Value);

impl fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.to_string().chars() {
            match character.is_control() {
                true => write!(f, "{}", character.escape_debug())?,
                false => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// A program with `write DIR --seed S --count N` and `read DIR`.
pub struct Peer {
    /// The libraries it stands for, with versions: the first writes, all read.
    libraries: &'static [&'static str],
    program: PathBuf,
    script: Option<PathBuf>,
}

impl Peer {
    pub fn program(libraries: &'static [&'static str], program: PathBuf) -> Self {
        Peer { libraries, program, script: None }
    }

    /// A script of `interop/`, run by this Python.
    pub fn script(libraries: &'static [&'static str], python: PathBuf, script: &str) -> Self {
        Peer { libraries, program: python, script: Some(root().join("interop").join(script)) }
    }

    pub fn writer(&self) -> &'static str {
        self.libraries.first().copied().unwrap_or_default()
    }

    pub fn readers(&self) -> String {
        self.libraries.join(" and ")
    }

    fn arguments(&self, words: &[&str], folder: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = self.script.iter().map(OsString::from).collect();
        arguments.extend(words.first().map(OsString::from));
        arguments.push(folder.into());
        arguments.extend(words.iter().skip(1).map(OsString::from));
        arguments
    }

    /// Lets it write `count` files and their manifest.
    pub fn write(&self, folder: &Path, seed: u64, count: u64) -> Result<(), Failure> {
        let (seed, count) = (seed.to_string(), count.to_string());
        let arguments = self.arguments(&["write", "--seed", &seed, "--count", &count], folder);
        command(&self.program, &arguments).env("PYTHONDONTWRITEBYTECODE", "1").run()
    }

    /// Lets it read the files of a manifest with `count` entries. The differences it finds are
    /// added to the report.
    pub fn read(&self, folder: &Path, count: u64, report: &mut Report) -> Result<(), Failure> {
        let arguments = self.arguments(&["read"], folder);
        let step = command(&self.program, &arguments).env("PYTHONDONTWRITEBYTECODE", "1");
        // 1 means that it read them and found differences.
        let output = step.output(&[0, 1])?;
        let unreadable = |line: &str| {
            Failure::new(format!("{} printed a line that cannot be parsed: {line:?}", self.readers()))
        };
        let mut lines: Vec<Value> = Vec::new();
        for line in output.lines() {
            lines.push(serde_json::from_str(line).map_err(|_| unreadable(line))?);
        }
        let summary = lines.pop().unwrap_or_default();
        if summary["checked"] != count || summary["mismatches"] != lines.len() {
            return Err(unreadable(&summary.to_string()));
        }
        for line in &lines {
            let text = |field: &str| line[field].as_str().unwrap_or("?");
            report.differ_in(text("file"), text("what"), Json(&line["expected"]), Json(&line["found"]));
        }
        Ok(())
    }
}
