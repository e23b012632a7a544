//! Set-up and checks of this repository: `cargo xtask test | wheel | ci | interop | fuzz | bench`.
//!
//! Every command installs what it needs below `target/` (except system packages) and runs on a
//! machine with only Rust, a C compiler and Python.

mod bench;
mod checks;
mod fuzz;
mod interop;
mod python;
mod run;

use checks::{deny, layers, msrv, names, public_api, publish};
use run::{Failure, cargo, command};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test               every test of the workspace and of the Python package
  wheel              the Python package's wheel, in target/wheels/
  ci                 what CI runs: formatting, lints, documentation, the checks, test, interop, fuzz
  layers             checks that no folder of the library imports from a higher one
  names              checks that no format is named outside of its folder
  deny               checks licences, duplicates and sources of the dependencies
  public-api         checks that the public API is what public-api.txt says
  public-api --bless writes public-api.txt
  publish            checks that the crates could be published, and publishes none
  msrv               checks that the code compiles with the Rust of `rust-version`
  interop [SEED]     files exchanged with the original implementations, both ways (20261)
  fuzz [SECONDS]     every fuzz target for that long (45)
  fuzz --build       every fuzz target and its corpus, without running any
  fuzz --minimise    leaves in each corpus what adds coverage, and packs it to be kept
  bench [--quick] [--only A1,B2] [--json FILE] [--plots DIR] [--repetitions N]
                     anyrec beside its peers and the machine's limit (bench/README.md)
";

/// The default number of seconds per fuzz target.
const FUZZ_SECONDS: u64 = 45;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if matches!(words[..], ["test" | "wheel" | "ci" | "interop" | "bench", ..]) {
        // Before anything else is built.
        interop::setup::nasm();
    }
    let outcome = match words[..] {
        ["test"] => test(),
        ["wheel"] => python::wheel(),
        ["ci"] => ci(),
        ["layers"] => layers::run(),
        ["names"] => names::run(),
        ["deny"] => deny::run(),
        ["public-api"] => public_api::run(false),
        ["public-api", "--bless"] => public_api::run(true),
        ["publish"] => publish::run(),
        ["msrv"] => msrv::run(),
        ["interop"] => interop::run_all(interop::SEED),
        ["interop", seed] => match seed.parse() {
            Ok(seed) => interop::run_all(seed),
            Err(_) => Err(Failure::new(format!("{seed:?} is not a seed: use a whole number"))),
        },
        ["fuzz"] => fuzz::run_all(FUZZ_SECONDS),
        ["fuzz", "--build"] => fuzz::build(),
        ["fuzz", "--minimise"] => fuzz::minimise(),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::run_all(seconds),
            Err(_) => Err(Failure::new(format!("{seconds:?} is not a number of seconds"))),
        },
        ["bench", ref options @ ..] => bench::run(options),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The README's test command.
fn test() -> Result<(), Failure> {
    if let Err(failure) = interop::setup::packages() {
        if run::on_ci() {
            return Err(failure);
        }
        eprintln!("xtask: SKIPPED the tests that need Debian's torch and Fashion-MNIST: {failure}");
    }
    cargo(&["test", "--workspace"])?;
    python::test()
}

fn ci() -> Result<(), Failure> {
    cargo(&["fmt", "--all", "--check"])?;
    layers::run()?;
    names::run()?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    // The engine without its features, with no C compiler available. It has a target folder of its
    // own, so that nothing compiled earlier is used.
    let bare = ["--package", "anyrec", "--no-default-features", "--target-dir", "target/no-c"];
    command("cargo", &[&["check"], &bare[..]].concat()).env("CC", "false").env("CXX", "false").run()?;
    cargo(&[&["test"], &bare[..]].concat())?;
    cargo(&[&["clippy", "--all-targets"], &bare[..], &["--", "-D", "warnings"]].concat())?;
    // Without our own C code.
    cargo(&["clippy", "--package", "anyrec-image", "--lib", "--", "-D", "warnings"])?;
    command("cargo", &["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings").run()?;
    deny::run()?;
    public_api::run(false)?;
    publish::run()?;
    msrv::run()?;
    test()?;
    interop::run_all(interop::SEED)?;
    fuzz::run_all(FUZZ_SECONDS)
}
