//! `anyrec`: inspect, verify, repair and convert record files.

mod arguments;
mod cmd;
mod hints;
mod interrupt;
mod json;
mod output;
mod progress;
mod range;
mod reserve;
mod settings;
mod term;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    reserve::put_by();
    interrupt::clean_up_on_interrupt();
    output::exit_code(cmd::run(arguments::Arguments::parse_from(range::mark_ranges(std::env::args_os()))))
}
