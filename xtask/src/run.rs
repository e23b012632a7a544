//! Runs other programs and reports failures.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A step that failed, as one sentence.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Failure(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The repository's root.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// A program with its arguments, to be run from the repository's root.
pub struct Step {
    command: Command,
    shown: String,
}

/// Prepares a program.
pub fn command(program: impl AsRef<OsStr>, arguments: &[impl AsRef<OsStr>]) -> Step {
    let mut command = Command::new(&program);
    command.args(arguments).current_dir(root());
    let mut shown = program.as_ref().to_string_lossy().into_owned();
    for argument in arguments {
        shown.push(' ');
        shown.push_str(&argument.as_ref().to_string_lossy());
    }
    Step { command, shown }
}

impl Step {
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn in_folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Runs it, prints the command line, and fails unless it succeeds.
    pub fn run(mut self) -> Result<(), Failure> {
        eprintln!("$ {}", self.shown);
        match self.command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failure(format!("`{}` failed: {status}", self.shown))),
            Err(error) => Err(Failure(format!("cannot start `{}`: {error}", self.shown))),
        }
    }

    /// Runs it, prints the command line, and returns its output. Fails unless it exits with one of
    /// these codes.
    pub fn output(mut self, exits: &[i32]) -> Result<String, Failure> {
        eprintln!("$ {}", self.shown);
        match self.command.stderr(Stdio::inherit()).output() {
            Ok(output) if output.status.code().is_some_and(|code| exits.contains(&code)) => {
                String::from_utf8(output.stdout)
                    .map_err(|_| Failure(format!("`{}` printed bytes that are not text", self.shown)))
            }
            Ok(output) => Err(Failure(format!("`{}` failed: {}", self.shown, output.status))),
            Err(error) => Err(Failure(format!("cannot start `{}`: {error}", self.shown))),
        }
    }
}

/// Whether this runs in CI, where nothing may be skipped.
pub fn on_ci() -> bool {
    std::env::var_os("CI").is_some()
}

/// Runs cargo.
pub fn cargo(arguments: &[&str]) -> Result<(), Failure> {
    command("cargo", arguments).run()
}

/// Whether a program can be started.
pub fn is_there(program: impl AsRef<OsStr>, argument: &str) -> bool {
    Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success())
}

/// A program's trimmed output, if it succeeds.
pub fn output_of(program: impl AsRef<OsStr>, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
