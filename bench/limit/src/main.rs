//! What the machine itself can do, without any format: the limits the benchmarks compare with.
//!
//! `anyrec-bench-limit COMMAND name=value ...` does one kind of work, times it and prints one line
//! of JSON: `{"seconds": S, "bytes": B, "records": N}`. Numbers of many records come as files of
//! little-endian 64-bit integers.

mod files;
mod memory;
mod options;
mod timing;

use options::{Failure, Options};
use std::process::ExitCode;
use timing::Done;

const USAGE: &str = "\
usage: anyrec-bench-limit COMMAND name=value ...

  pread   file= ranges= batch= minimum= maximum= [buffer=batch|record] [direct=yes]
          positional reads of (offset, length) pairs, batch by batch, into a reused buffer
  read    file= minimum= maximum= [direct=yes]
          the whole file, front to back, into a reused buffer
  write   file= lengths=
          one write(2) a record, to a new file, without a sync
  memcpy  bytes= minimum= maximum=
          copies between two buffers of that size
  zstd    file= lengths= order= level= maximum=
          cuts the file into blocks, compresses them, and times decoding them in that order
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let outcome = Options::parse(arguments).and_then(|options| run(&command, &options));
    match outcome {
        Ok(done) => {
            println!("{done}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("anyrec-bench-limit: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &str, options: &Options) -> Result<Done, Failure> {
    match command {
        "pread" => files::pread(options),
        "read" => files::read(options),
        "write" => files::write(options),
        "memcpy" => memory::memcpy(options),
        "zstd" => memory::zstd(options),
        _ => Err(Failure::new(USAGE)),
    }
}
