//! `cargo xtask bench`: installs the contestants below `target/bench/` and starts `bench/run.py`.
//!
//! If a contestant cannot be installed, the harness gets the reason and shows it.

use crate::interop::setup;
use crate::python::{build_wheel, interpreter};
use crate::run::{Failure, cargo, command, root};
use std::path::{Path, PathBuf};

/// Peers with their own environment, from `bench/peers/NAME.txt`.
const PEERS: [&str; 8] =
    ["array_record", "dali", "datasets", "lance", "lmdb", "simplejpeg", "streaming", "webdataset"];
/// Contestants that need only what anyrec's own environment has.
const WITH_ANYREC: [&str; 6] = ["anyrec", "limit", "numpy", "standins", "torch", "torchvision"];
/// Names a Python in which FFRecord was built from its repository.
const FFRECORD_PYTHON: &str = "ANYREC_FFRECORD_PYTHON";
/// Debian's package of the one peer whose Debian package nothing else needs.
const TORCHVISION: &str = "python3-torchvision";

pub fn run(options: &[&str]) -> Result<(), Failure> {
    if let Err(failure) = setup::packages() {
        eprintln!("xtask: running without torch and Fashion-MNIST: {failure}");
    }
    if let Err(failure) = setup::install(&[TORCHVISION]) {
        eprintln!("xtask: running without torchvision: {failure}");
    }
    let python = anyrec_python()?;
    cargo(&["build", "--release", "--package", "anyrec-bench-limit"])?;
    let mut arguments = vec![text(&root().join("bench/run.py"))];
    arguments.extend(["--limit".to_owned(), text(&root().join("target/release/anyrec-bench-limit"))]);
    arguments.extend(["--data".to_owned(), text(&root().join("target/bench-data"))]);
    for name in WITH_ANYREC {
        arguments.extend(contestant(name, Ok(python.clone())));
    }
    for name in PEERS {
        let requirements = root().join(format!("bench/peers/{name}.txt"));
        arguments.extend(contestant(name, environment(name, &requirements)));
    }
    arguments.extend(contestant("mxnet", setup::mxnet_python()));
    arguments.extend(contestant("ffrecord", ffrecord_python()));
    let plan = cargo(&["build", "--release", "--package", "anyrec-bench-plan"]);
    arguments.extend(contestant("plan", plan.map(|()| python.clone())));
    arguments.extend(options.iter().map(|&option| option.to_owned()));
    command(&python, &arguments).run()
}

/// anyrec's own environment: the wheel of this tree, and what the harness needs.
fn anyrec_python() -> Result<PathBuf, Failure> {
    let wheel = build_wheel()?;
    let python = environment("anyrec", &root().join("bench/requirements.txt"))?;
    let wheel = text(&wheel);
    let install = ["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", &wheel];
    command(&python, &install).run()?;
    Ok(python)
}

/// The Python that has the original FFRecord, of which there is no released package.
fn ffrecord_python() -> Result<PathBuf, Failure> {
    let python = std::env::var(FFRECORD_PYTHON).map_err(|_| {
        Failure::new(format!("it has no released package; {FFRECORD_PYTHON} names a Python that has it"))
    })?;
    Ok(python.into())
}

/// An environment in which every package has a pinned version, and torch is the system's.
fn environment(name: &str, requirements: &Path) -> Result<PathBuf, Failure> {
    let place = root().join("target/bench").join(name);
    setup::environment(&place, requirements, &interpreter(), &["--system-site-packages"], &["--no-deps"])
}

/// The arguments that pass a contestant to the harness.
fn contestant(name: &str, python: Result<PathBuf, Failure>) -> [String; 2] {
    match python {
        Ok(python) => ["--python".to_owned(), format!("{name}={}", text(&python))],
        Err(failure) => ["--missing".to_owned(), format!("{name}=could not be installed: {failure}")],
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
