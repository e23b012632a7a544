//! Installs the peers below `target/interop/`: two Python environments and a Go program.
//!
//! What was already installed for the same requirements is reused, so that only the first run
//! downloads anything.

use crate::run::{Failure, cargo, command, is_there, output_of, root};
use std::path::{Path, PathBuf};

/// Debian's packages: torch and its dependencies for the IDX peer, and the dataset.
const PACKAGES: [&str; 5] =
    ["python3-venv", "python3-torch", "python3-pil", "python3-requests", "dataset-fashion-mnist"];

/// The system's own Python, whose torch the IDX peer uses.
pub const SYSTEM_PYTHON: &str = "/usr/bin/python3";

/// The only Python version that mxnet 1.9.1 runs with.
const MXNET_PYTHON: &str = "3.11";

/// The folder of the exchange.
pub fn folder() -> PathBuf {
    root().join("target/interop")
}

/// Installs the missing Debian packages, which requires root.
pub fn packages() -> Result<(), Failure> {
    install(&PACKAGES)
}

/// Installs nasm, which assembles the JPEG code on x86. Without it, that code is still built, but
/// slower, so this is not a reason to stop.
pub fn nasm() {
    if !cfg!(any(target_arch = "x86", target_arch = "x86_64")) || is_there("nasm", "-v") {
        return;
    }
    // Cargo does not notice that nasm was installed, so what was built without it must be removed.
    let built = install(&["nasm"])
        .and_then(|()| cargo(&["clean", "--package", "mozjpeg-sys"]))
        .and_then(|()| cargo(&["clean", "--release", "--package", "mozjpeg-sys"]));
    if let Err(failure) = built {
        eprintln!("xtask: JPEG will be slower without nasm: {failure}");
    }
}

/// Installs the given Debian packages that are missing, which requires root.
pub fn install(wanted: &[&str]) -> Result<(), Failure> {
    let is_installed = |package: &&str| {
        output_of("dpkg-query", &["--show", "--showformat=${db:Status-Abbrev}", package])
            .is_some_and(|status| status.starts_with("ii"))
    };
    let missing: Vec<&str> = wanted.iter().copied().filter(|package| !is_installed(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if output_of("id", &["-u"]).as_deref() != Some("0") {
        return Err(Failure::new(format!(
            "packages are missing; as root: \
             apt-get update && apt-get install --no-install-recommends {}",
            missing.join(" ")
        )));
    }
    command("apt-get", &["update"]).run()?;
    let arguments = [&["install", "-y", "--no-install-recommends"], &missing[..]].concat();
    command("apt-get", &arguments).env("DEBIAN_FRONTEND", "noninteractive").run()
}

/// The Python with mxnet.
pub fn mxnet_python() -> Result<PathBuf, Failure> {
    let show_version = "import sys; print('%d.%d' % sys.version_info[:2])";
    let fits = |python: &&str| output_of(python, &["-c", show_version]).as_deref() == Some(MXNET_PYTHON);
    let python = ["python3.11", SYSTEM_PYTHON, "python3"].into_iter().find(fits).ok_or_else(|| {
        Failure::new(format!("mxnet 1.9.1 needs Python {MXNET_PYTHON}: install python3.11"))
    })?;
    interop_environment("mxnet", python, &[], &[])
}

/// The Python with idx2numpy and torchvision.
pub fn idx_python() -> Result<PathBuf, Failure> {
    // Without --no-deps, pip would install another torch, a hundred times as large.
    interop_environment("idx", SYSTEM_PYTHON, &["--system-site-packages"], &["--no-deps"])
}

/// A virtual environment with the packages of `interop/requirements-NAME.txt`. Returns its Python.
fn interop_environment(
    name: &str,
    python: &str,
    venv_options: &[&str],
    pip_options: &[&str],
) -> Result<PathBuf, Failure> {
    let requirements = root().join(format!("interop/requirements-{name}.txt"));
    environment(&folder().join(format!("python-{name}")), &requirements, python, venv_options, pip_options)
}

/// A virtual environment at `place` with the packages of a requirements file. Returns its Python.
pub fn environment(
    place: &Path,
    requirements: &Path,
    python: &str,
    venv_options: &[&str],
    pip_options: &[&str],
) -> Result<PathBuf, Failure> {
    let wanted = std::fs::read_to_string(requirements)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", requirements.display())))?;
    let inside = place.join("bin/python");
    // Written last: an environment without it is incomplete.
    let stamp = place.join("requirements.txt");
    let is_ready = std::fs::read_to_string(&stamp).is_ok_and(|made_for| made_for == wanted);
    if is_ready && is_there(&inside, "--version") {
        return Ok(inside);
    }
    let shown = place.to_string_lossy();
    let mut venv = vec!["-m", "venv", "--clear"];
    venv.extend(venv_options);
    venv.push(&shown);
    command(python, &venv).run()?;
    let requirements = requirements.to_string_lossy();
    let mut pip = vec!["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    pip.extend(pip_options);
    pip.extend(["-r", &requirements]);
    command(&inside, &pip).run()?;
    std::fs::write(&stamp, wanted)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", stamp.display())))?;
    Ok(inside)
}

/// The GRAIL peer. Go itself decides whether there is anything to build.
pub fn grail_peer() -> Result<PathBuf, Failure> {
    let go =
        ["go", "/usr/local/go/bin/go"].into_iter().find(|go| is_there(go, "version")).ok_or_else(|| {
            Failure::new("interop needs Go 1.21 or newer and a C compiler for the GRAIL peer: install them")
        })?;
    let program = folder().join("grail_peer");
    let shown = program.to_string_lossy();
    command(go, &["build", "-o", &shown, "."]).in_folder(&root().join("interop/grail_peer")).run()?;
    Ok(program)
}

/// The file of Debian's dataset with this name.
pub fn fashion_mnist(name: &str) -> PathBuf {
    Path::new("/usr/share/datasets/fashion-mnist").join(name)
}
