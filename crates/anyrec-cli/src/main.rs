//! The program `anyrec`.

mod reserve;

use std::process::ExitCode;

fn main() -> ExitCode {
    reserve::put_by();
    anyrec_cli::run(std::env::args_os()).into()
}
