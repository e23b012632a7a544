//! A folder to run commands in, and the transcript of what they did.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Commands run in a folder of their own, so that no path of this machine gets into a transcript.
pub struct Session {
    folder: tempfile::TempDir,
    transcript: String,
}

impl Session {
    pub fn new() -> Session {
        Session { folder: tempfile::tempdir().unwrap(), transcript: String::new() }
    }

    /// A session with copies of golden files, given as `format/name`.
    pub fn with(files: &[&str]) -> Session {
        let session = Session::new();
        for file in files {
            let (_, name) = file.split_once('/').unwrap();
            std::fs::copy(golden(file), session.path(name)).unwrap();
        }
        session
    }

    pub fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.folder.path().join(name.as_ref())
    }

    pub fn write(&self, name: &str, data: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), data).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Changes bytes of a file.
    pub fn damage(&self, name: &str, damage: impl FnOnce(&mut Vec<u8>)) {
        let mut data = self.read(name);
        damage(&mut data);
        self.write(name, data);
    }

    /// The program, to be run in the folder.
    pub fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anyrec"));
        command.args(arguments).current_dir(self.folder.path());
        // What the tests' own surroundings say about colours and temporary files is not meant.
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "TERM"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs a command line, split at blanks, and notes what it prints.
    pub fn run(&mut self, line: &str) -> Output {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let output = self.command(&arguments).output().unwrap();
        self.note(line, &output);
        output
    }

    /// Adds a command to the transcript.
    pub fn note(&mut self, line: &str, output: &Output) {
        self.transcript.push_str(&format!("$ anyrec {line}\n"));
        for text in text(&output.stdout).lines() {
            self.transcript.push_str(&format!("  {text}\n"));
        }
        for text in text(&output.stderr).lines() {
            self.transcript.push_str(&format!("! {text}\n"));
        }
        self.transcript.push_str(&format!("exit {}\n\n", output.status.code().unwrap()));
    }

    /// The names of the files in the folder, in order.
    pub fn files(&self) -> Vec<String> {
        names_in(self.folder.path())
    }

    pub fn transcript(self) -> String {
        self.transcript.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

/// The names in a folder, in order.
pub fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A golden file, given as `format/name`.
pub fn golden(file: &str) -> PathBuf {
    let (format, name) = file.split_once('/').unwrap();
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(format).join("good").join(name)
}

/// Output as text in which every control character shows; binary as its length.
pub fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.replace('\x1b', "␛"),
        Err(_) => format!("({} bytes that are not text)", bytes.len()),
    }
}
