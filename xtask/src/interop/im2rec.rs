//! Compares `anyrec im2rec` with MXNet's own `im2rec.py`.
//!
//! Both get the same folder and the same options. What MXNet packs unchanged must be identical byte
//! for byte. What is decoded and encoded again by other libraries must have the same size and
//! nearly the same pixels.

use crate::run::{Failure, cargo, command, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compares the two on a generated folder of images. `python` has mxnet and OpenCV.
pub fn run(python: &Path) -> Result<(), Failure> {
    cargo(&["build", "--package", "anyrec-cli"])?;
    let folder = root().join("target/interop/im2rec");
    let _ = std::fs::remove_dir_all(&folder);
    let scene = Scene { python, original: original(python)?, images: folder.join("the images"), folder };
    std::fs::create_dir_all(&scene.folder).map_err(|error| failed("cannot create a folder", &error))?;
    scene.helper(&["make".as_ref(), scene.images.as_ref()])?;
    let mut cases = 0;
    for (name, options) in LISTS {
        scene.list(name, options)?;
        cases += 1;
    }
    scene.exact("recursive", &["--list", "--recursive"], &[&["--pass-through"]])?;
    scene.exact("flat", &["--list", "--no-shuffle"], &[&["--pass-through"]])?;
    scene.labels()?;
    for (name, options) in ENCODINGS {
        scene.encoded(name, options)?;
        cases += 1;
    }
    println!("im2rec: {} comparisons with the original", cases + 3);
    Ok(())
}

/// Options for lists: the files must be equal.
const LISTS: &[(&str, &[&str])] = &[
    ("flat", &[]),
    ("recursive", &["--recursive"]),
    ("ordered", &["--recursive", "--no-shuffle"]),
    ("extensions", &["--recursive", "--exts", ".png", ".gif"]),
    ("chunks", &["--recursive", "--chunks", "3"]),
    ("train", &["--recursive", "--train-ratio", "0.7"]),
    ("test", &["--recursive", "--train-ratio", "0.61", "--test-ratio", "0.17"]),
    ("no validation", &["--recursive", "--train-ratio", "0.75", "--test-ratio", "0.25"]),
    ("both", &["--recursive", "--chunks", "4", "--train-ratio", "0.5", "--test-ratio", "0.3"]),
    ("unused", &["--recursive", "--test-ratio", "0.3"]),
];

/// Options that encode images again: sizes must be equal and pixels close.
const ENCODINGS: &[(&str, &[&str])] = &[
    ("plain", &[]),
    ("quality", &["--quality", "60"]),
    ("resize", &["--resize", "24"]),
    ("enlarge", &["--resize", "90"]),
    ("crop", &["--center-crop"]),
    ("crop and resize", &["--center-crop", "--resize", "20", "--num-thread", "3"]),
    ("png", &["--encoding", ".png"]),
    ("small png", &["--encoding", ".png", "--quality", "9", "--resize", "31"]),
    ("gray", &["--color", "0"]),
    ("as stored", &["--color", "-1", "--encoding", ".png"]),
];

struct Scene<'a> {
    python: &'a Path,
    original: PathBuf,
    folder: PathBuf,
    images: PathBuf,
}

impl Scene<'_> {
    /// Runs one of the two with its own prefix, and returns its output.
    fn run(&self, which: Which, prefix: &Path, options: &[&str]) -> Result<String, Failure> {
        let mut command = match which {
            Which::Original => {
                let mut command = Command::new(self.python);
                command.arg("-W").arg("ignore").arg(&self.original);
                command
            }
            Which::Ours => {
                let mut command = Command::new(root().join("target/debug/anyrec"));
                command.arg("im2rec");
                command
            }
        };
        command.arg(prefix).arg(&self.images).args(options);
        let output = command.output().map_err(|error| failed("cannot start im2rec", &error))?;
        if !output.status.success() {
            return Err(Failure::new(format!(
                "im2rec {options:?} failed ({which:?}): {}",
                String::from_utf8_lossy(&output.stderr)
            )));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A separate folder for each of the two.
    fn prefix(&self, which: Which, name: &str) -> Result<PathBuf, Failure> {
        let folder = self.folder.join(format!("{which:?} {name}"));
        std::fs::create_dir_all(&folder).map_err(|error| failed("cannot create a folder", &error))?;
        Ok(folder.join("set"))
    }

    /// Lists with both: the files and the printed labels must be equal.
    fn list(&self, name: &str, options: &[&str]) -> Result<(), Failure> {
        let options = [&["--list"], options].concat();
        let name = format!("list {name}");
        let mut printed = Vec::new();
        for which in BOTH {
            printed.push(self.run(which, &self.prefix(which, &name)?, &options)?);
        }
        if printed.first() != printed.last() {
            return Err(Failure::new(format!("im2rec {options:?} prints other labels: {printed:?}")));
        }
        self.same_files(&name)
    }

    /// Lists and packs with both: the files must be equal.
    fn exact(&self, name: &str, list: &[&str], pack: &[&[&str]]) -> Result<(), Failure> {
        let name = format!("exact {name}");
        for which in BOTH {
            let prefix = self.prefix(which, &name)?;
            self.run(which, &prefix, list)?;
            for options in pack {
                self.run(which, &prefix, options)?;
            }
        }
        self.same_files(&name)
    }

    /// Lists with several labels, packed with all labels and with the first only.
    fn labels(&self) -> Result<(), Failure> {
        for (name, options) in
            [("all", &["--pass-through", "--pack-label"][..]), ("first", &["--pass-through"])]
        {
            let name = format!("labels {name}");
            for which in BOTH {
                let prefix = self.prefix(which, &name)?;
                let list =
                    "7\t1.5\t-2\t1e-3\tb/0.jpg\n3\t4\tb/2.jpg\n18446744073709551615\t0\t1\t a/0.png \n";
                std::fs::write(prefix.with_extension("lst"), list)
                    .map_err(|error| failed("cannot write a list", &error))?;
                self.run(which, &prefix, options)?;
            }
            self.same_files(&name)?;
        }
        Ok(())
    }

    /// Packs one list with both, encoding the images again, and compares the images.
    fn encoded(&self, name: &str, options: &[&str]) -> Result<(), Failure> {
        let name = format!("encoded {name}");
        let mut records = Vec::new();
        for which in BOTH {
            let prefix = self.prefix(which, &name)?;
            self.run(which, &prefix, &["--list", "--recursive"])?;
            self.run(which, &prefix, options)?;
            records.push(prefix.with_extension("rec"));
        }
        let words: Vec<&std::ffi::OsStr> =
            std::iter::once("compare".as_ref()).chain(records.iter().map(|path| path.as_os_str())).collect();
        self.helper(&words)
    }

    /// Checks that both folders of a name contain the same files.
    fn same_files(&self, name: &str) -> Result<(), Failure> {
        let read = |which| -> Result<Vec<(std::ffi::OsString, Vec<u8>)>, Failure> {
            let folder = self.folder.join(format!("{which:?} {name}"));
            let io = |error: std::io::Error| failed("cannot read what im2rec wrote", &error);
            let mut files = Vec::new();
            for entry in std::fs::read_dir(folder).map_err(io)? {
                let entry = entry.map_err(io)?;
                files.push((entry.file_name(), std::fs::read(entry.path()).map_err(io)?));
            }
            files.sort();
            Ok(files)
        };
        let (original, ours) = (read(Which::Original)?, read(Which::Ours)?);
        let names = |files: &[(std::ffi::OsString, Vec<u8>)]| -> Vec<String> {
            files.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect()
        };
        if original.is_empty() || names(&original) != names(&ours) {
            return Err(Failure::new(format!(
                "{name}: expected the files {:?}, found {:?}",
                names(&original),
                names(&ours)
            )));
        }
        match original.iter().zip(&ours).find(|(theirs, ours)| theirs.1 != ours.1) {
            Some(((file, _), _)) => {
                Err(Failure::new(format!("{name}: {} differs from the original's", file.to_string_lossy())))
            }
            None => Ok(()),
        }
    }

    fn helper(&self, words: &[&std::ffi::OsStr]) -> Result<(), Failure> {
        let script = root().join("interop/im2rec_peer.py");
        let words: Vec<&std::ffi::OsStr> =
            [&["-W".as_ref(), "ignore".as_ref(), script.as_os_str()], words].concat();
        command(self.python, &words).run()
    }
}

#[derive(Debug, Clone, Copy)]
enum Which {
    Original,
    Ours,
}

const BOTH: [Which; 2] = [Which::Original, Which::Ours];

/// The script in the mxnet package.
fn original(python: &Path) -> Result<PathBuf, Failure> {
    let find = "import importlib.util as u; print(u.find_spec('mxnet').submodule_search_locations[0])";
    let output = Command::new(python)
        .args(["-c", find])
        .output()
        .map_err(|error| failed("cannot start Python", &error))?;
    let package = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let script = package.join("tools/im2rec.py");
    if output.status.success() && script.is_file() {
        Ok(script)
    } else {
        Err(Failure::new("the mxnet package is not installed or has no tools/im2rec.py"))
    }
}

fn failed(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(format!("{what}: {error}"))
}
