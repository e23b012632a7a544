//! The command `anyrec`: inspect, verify, repair and convert record files.
//!
//! It is a library so that the Python package can carry the same command.

mod arguments;
mod cmd;
mod hints;
mod interrupt;
mod json;
mod output;
mod progress;
mod range;
mod settings;
mod term;

use clap::Parser;
use std::ffi::OsString;
use std::io::Write;

/// Runs the command and returns the exit code of the process. The first argument is the program's
/// name.
///
/// Takes over Ctrl-C and termination requests: they remove what is half-written and end the
/// process.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    interrupt::clean_up_on_interrupt();
    let parsed = arguments::Arguments::try_parse_from(range::mark_ranges(arguments.into_iter()));
    let code = match parsed {
        Ok(arguments) => output::exit_code(cmd::run(arguments)),
        Err(error) => {
            // If the output is closed, there is nowhere to report it.
            let _ = error.print();
            u8::try_from(error.exit_code()).unwrap_or(2)
        }
    };
    // At the end of a program, the standard library would do this. In Python it would not.
    let _ = std::io::stdout().flush();
    code
}
