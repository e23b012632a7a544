//! `anyrec`: look at, verify, repair and convert record files.

mod arguments;
mod cmd;
mod output;
mod progress;
mod range;
mod term;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    output::exit_code(cmd::run(arguments::Arguments::parse()))
}
