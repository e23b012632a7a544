//! The Python package: its wheel, and its tests in their own virtual environment.

use crate::interop::setup::{self, SYSTEM_PYTHON};
use crate::run::{Failure, command, is_there, on_ci, root};
use std::path::{Path, PathBuf};

/// What the tests need in addition to the package. torch comes from the system, see
/// [`interpreter`].
const TEST_PACKAGES: [&str; 6] =
    ["numpy", "pytest", "mypy", "pillow", "tqdm", "opencv-python-headless==4.8.1.78"];

/// Lightning and its imports, without dependencies: otherwise pip would install another torch.
const LIGHTNING: [&str; 6] = [
    "--no-deps",
    "pytorch-lightning==2.2.5",
    "lightning-utilities==0.11.9",
    "torchmetrics==0.11.4",
    "fsspec==2024.6.1",
    "PyYAML",
];

/// The package that images are compared with (without dependencies, for the same reason), and the
/// package that photographs come from, of which nothing else is used.
const PICTURES: [&str; 3] = ["--no-deps", "torchvision==0.15.2", "scikit-learn==1.5.2"];

/// A recent torch, and trainers that need one. They have an environment of their own, because the
/// other tests use the system's torch.
const TRAINERS: [&str; 9] = [
    "torch==2.15.0",
    "torchvision==0.29.2",
    "transformers==5.22.2",
    "accelerate==1.15.0",
    "lightning==2.6.6",
    "prometheus_client",
    "pytest",
    "pillow",
    "tqdm",
];

/// The tests with them: those that nothing else runs, and those of the loaders once more.
const TRAINERS_TESTS: [&str; 7] = [
    "tests/trainers",
    "tests/test_loader.py",
    "tests/test_loader_stats.py",
    "tests/dropins/test_lightning.py",
    "tests/dropins/test_tensor_loader.py",
    "tests/dropins/test_torch_loader.py",
    "tests/dropins/test_workers.py",
];

/// What executes notebooks and turns them into pages.
const NOTEBOOK_PACKAGES: [&str; 5] = ["numpy", "pytest", "ipykernel", "nbclient", "nbconvert"];

/// Newer interpreters that the wheel is also tested on, if the machine has them.
const OTHER_PYTHONS: [&str; 3] = ["python3.12", "python3.13", "python3.14"];

/// A free-threaded interpreter, if the machine has one; the variable names another. It cannot use
/// an abi3 wheel, so a separate one is built.
const FREE_THREADED: (&str, &str) = ("ANYREC_FREE_THREADED_PYTHON", "python3.14t");

/// The tests for it: those that need only NumPy.
const FREE_THREADED_TESTS: [&str; 11] = [
    "tests/test_dataset.py",
    "tests/test_errors.py",
    "tests/test_files.py",
    "tests/test_golden.py",
    "tests/test_grail.py",
    "tests/test_idx.py",
    "tests/test_loader.py",
    "tests/test_native.py",
    "tests/test_processes.py",
    "tests/test_records.py",
    "tests/test_threads.py",
];

/// A few lines that use the package from end to end.
const SMOKE: &str = "\
import anyrec
with anyrec.create('smoke.rec') as writer:
    writer.write('a record', key=1)
assert bytes(anyrec.open('smoke.rec')[0]) == b'a record'
assert anyrec.idx.write('smoke-idx1-ubyte', bytearray(b'abc')) == 11
";

/// `cargo xtask wheel`: builds the wheel into `target/wheels/`.
pub fn wheel() -> Result<(), Failure> {
    build_wheel().map(|path| println!("{}", path.display()))
}

/// The package's tests: types, stubs and behaviour; also that it installs from the wheel (on every
/// available Python) and from source.
pub fn test() -> Result<(), Failure> {
    let wheel = build_wheel()?;
    let folder = root().join("python");
    let python = Environment::make("target/python-venv", &interpreter(), true)?;
    python.install(&TEST_PACKAGES)?;
    python.install(&LIGHTNING)?;
    python.install(&PICTURES)?;
    python.replace_package(&wheel)?;
    python.run(&["-m", "mypy"], &folder)?;
    let stubtest = ["-m", "mypy.stubtest", "anyrec._anyrec", "--allowlist", "stubtest_allowlist.txt"];
    python.run(&stubtest, &folder)?;
    let mut tests = command(python.program("python"), &["-m", "pytest"]).in_folder(&folder);
    match setup::mxnet_python() {
        Ok(original) => tests = tests.env("ANYREC_MXNET_PYTHON", original),
        Err(failure) if on_ci() => return Err(failure),
        Err(failure) => eprintln!("xtask: SKIPPED the comparison with MXNet itself: {failure}"),
    }
    tests.run()?;
    test_trainers(&wheel, &folder)?;
    test_notebooks(&wheel, &folder)?;
    for other in OTHER_PYTHONS.iter().filter(|other| is_there(other, "--version")) {
        let fresh = Environment::make(&format!("target/{other}-venv"), other, false)?;
        fresh.replace_package(&wheel)?;
        fresh.smoke()?;
    }
    let fresh = Environment::make("target/python-source-venv", "python3", false)?;
    fresh.replace_package(&folder)?;
    fresh.smoke()?;
    test_free_threaded(&folder)
}

/// The tests with a recent torch. Installing it takes about two minutes the first time.
fn test_trainers(wheel: &Path, folder: &Path) -> Result<(), Failure> {
    let python = Environment::make("target/trainers-venv", "python3", false)?;
    python.install(&TRAINERS)?;
    python.replace_package(wheel)?;
    // Models are made in code: nothing is downloaded.
    let tests = command(python.program("python"), &[&["-m", "pytest"], &TRAINERS_TESTS[..]].concat());
    tests.in_folder(folder).env("HF_HUB_OFFLINE", "1").run()
}

/// Notebooks, executed by Jupyter and looked at in a browser.
fn test_notebooks(wheel: &Path, folder: &Path) -> Result<(), Failure> {
    let has_browser = ["chromium", "google-chrome"].iter().any(|browser| is_there(browser, "--version"));
    if !has_browser && let Err(failure) = setup::install(&["chromium"]) {
        if on_ci() {
            return Err(failure);
        }
        eprintln!("xtask: SKIPPED the notebooks: {failure}");
        return Ok(());
    }
    let jupyter = Environment::make("target/notebook-venv", "python3", false)?;
    jupyter.install(&NOTEBOOK_PACKAGES)?;
    jupyter.replace_package(wheel)?;
    jupyter.run(&["-m", "pytest", "notebook_tests"], folder)
}

/// The tests on free-threaded Python, if there is one.
fn test_free_threaded(folder: &Path) -> Result<(), Failure> {
    let (variable, usual) = FREE_THREADED;
    let python = std::env::var(variable).unwrap_or_else(|_| usual.to_owned());
    if !is_there(&python, "--version") {
        eprintln!("xtask: SKIPPED the tests on free-threaded Python: there is no {python} ({variable})");
        return Ok(());
    }
    let wheel = build_wheel_for("target/wheels-free-threaded", &["--interpreter", &python])?;
    let free = Environment::make("target/python-free-threaded-venv", &python, false)?;
    free.install(&["numpy", "pytest"])?;
    free.replace_package(&wheel)?;
    let is_off = "import anyrec, sys; assert not sys._is_gil_enabled(), 'the package enabled the GIL'";
    free.run(&["-c", is_off], folder)?;
    free.run(&[&["-m", "pytest"], &FREE_THREADED_TESTS[..]].concat(), folder)
}

/// The interpreter for the tests: the system's if it has torch, else any.
pub fn interpreter() -> String {
    let system_has_torch = is_there(SYSTEM_PYTHON, "--version") && imports_torch();
    if system_has_torch { SYSTEM_PYTHON.to_owned() } else { "python3".to_owned() }
}

fn imports_torch() -> bool {
    let import = std::process::Command::new(SYSTEM_PYTHON).args(["-c", "import torch, venv"]).output();
    import.is_ok_and(|output| output.status.success())
}

/// Builds the wheel and returns its path.
pub fn build_wheel() -> Result<PathBuf, Failure> {
    build_wheel_for("target/wheels", &[])
}

/// Builds a wheel into a separate folder, with additional options.
fn build_wheel_for(folder: &str, options: &[&str]) -> Result<PathBuf, Failure> {
    let tools = Environment::make("target/maturin-venv", "python3", false)?;
    tools.install(&["maturin>=1.16,<2"])?;
    let wheels = root().join(folder);
    let failed = |error: std::io::Error| Failure::new(format!("cannot read {}: {error}", wheels.display()));
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels).map_err(failed)?;
    }
    let out = wheels.to_string_lossy();
    let arguments = ["build", "--release", "--manifest-path", "python/Cargo.toml", "--out", &out];
    command(tools.program("maturin"), &[&arguments, options].concat()).run()?;
    let mut built = std::fs::read_dir(&wheels).map_err(failed)?.filter_map(|entry| Some(entry.ok()?.path()));
    built
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| Failure::new("maturin wrote no wheel"))
}

/// A virtual environment below `target/`.
struct Environment {
    folder: PathBuf,
}

impl Environment {
    fn make(folder: &str, python: &str, sees_system: bool) -> Result<Self, Failure> {
        let environment = Environment { folder: root().join(folder) };
        if !is_there(environment.program("pip"), "--version") {
            let folder = environment.folder.to_string_lossy();
            let mut arguments = vec!["-m", "venv", "--clear", &folder];
            if sees_system {
                arguments.push("--system-site-packages");
            }
            command(python, &arguments).run()?;
        }
        Ok(environment)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    fn install(&self, packages: &[&str]) -> Result<(), Failure> {
        command(self.program("pip"), &[&["install", "--quiet"], packages].concat()).run()
    }

    /// Installs the package, replacing any older build of it.
    fn replace_package(&self, package: &Path) -> Result<(), Failure> {
        let package = package.to_string_lossy();
        // Two steps: the dependencies, then the package itself, whatever its version.
        self.install(&[&package])?;
        self.install(&["--force-reinstall", "--no-deps", &package])
    }

    fn run(&self, arguments: &[&str], folder: &Path) -> Result<(), Failure> {
        command(self.program("python"), arguments).in_folder(folder).run()
    }

    /// Runs a few lines against the installed package, in a separate folder.
    fn smoke(&self) -> Result<(), Failure> {
        let folder = self.folder.join("smoke");
        let failed =
            |error: std::io::Error| Failure::new(format!("cannot create {}: {error}", folder.display()));
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(failed)?;
        }
        std::fs::create_dir_all(&folder).map_err(failed)?;
        self.run(&["-c", SMOKE], &folder)
    }
}
