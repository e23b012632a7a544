//! Running the built program.

use std::ffi::OsStr;

/// What the program printed, and its exit code.
pub struct Ran {
    pub stdout: String,
    pub stderr: String,
    pub code: Option<i32>,
}

/// Runs `anyrec` with these arguments.
pub fn anyrec(arguments: &[&dyn AsRef<OsStr>]) -> Ran {
    let mut command = assert_cmd::Command::cargo_bin("anyrec").unwrap();
    for argument in arguments {
        command.arg(argument.as_ref());
    }
    let output = command.output().unwrap();
    Ran {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code(),
    }
}
