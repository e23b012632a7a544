//! Runs the fuzz targets, seeded from the golden files and the saved corpus.
//!
//! A target's corpus is saved as `fuzz/corpus/TARGET.tar.xz` and unpacked into the folder
//! `fuzz/corpus/TARGET`, which is not tracked.

use crate::interop::setup;
use crate::run::{Failure, command, is_there, root};
use std::path::{Path, PathBuf};

/// A target, and the folder of `testdata/` its seeds come from (`None`: all folders).
const TARGETS: [(&str, Option<&str>); 8] = [
    ("scan_mxnet", Some("mxnet")),
    ("scan_ffrecord", Some("ffrecord")),
    ("scan_grail", Some("grail")),
    ("scan_idx", Some("idx")),
    ("detect", None),
    ("tree_pickle", Some("ffrecord")),
    ("decode_image", Some("images")),
    ("jpeg_huffman", Some("images")),
];

/// Larger seeds slow the fuzzer down more than they help it.
const SEED_LIMIT: u64 = 100 << 10;

/// Marks the tree of a packed folder; its pickle follows.
const TREE_MARK: &[u8] = b"piouhjgbr";

/// The compiler of the C parts (libjpeg, our own C inside it, zstd), its Debian package, and its
/// flags. Memory and arithmetic in C are checked as in Rust, and the fuzzer sees which branches are
/// taken.
const CLANG: [&str; 2] = ["clang", "clang-19"];
const CLANG_PACKAGE: &str = "clang-19";
const C_FLAGS: &str = "-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined \
                       -fno-sanitize=function -g1";

/// Runs every target for this many seconds, from its saved corpus and the golden files.
pub fn run_all(seconds: u64) -> Result<(), Failure> {
    let fuzz = Fuzz::set_up()?;
    for (target, seeds) in TARGETS {
        plant_seeds(target, seeds)?;
        let limit = format!("-max_total_time={seconds}");
        let options = [&limit, "-rss_limit_mb=3000", "-timeout=60", "-print_final_stats=0", "-verbosity=0"];
        fuzz.cargo_fuzz(&[&["run", target, "--"], &options[..]].concat())?;
        println!("fuzz target {target}: {seconds} seconds without a finding");
    }
    Ok(())
}

/// Builds every target and unpacks its corpus, without running it (`fuzz/campaign.sh` does that).
pub fn build() -> Result<(), Failure> {
    for (target, seeds) in TARGETS {
        plant_seeds(target, seeds)?;
    }
    Fuzz::set_up()?.cargo_fuzz(&["build"])
}

/// Minimises every corpus and packs it.
pub fn minimise() -> Result<(), Failure> {
    let fuzz = Fuzz::set_up()?;
    for (target, seeds) in TARGETS {
        plant_seeds(target, seeds)?;
        fuzz.cargo_fuzz(&["cmin", target, "--", "-rss_limit_mb=3000", "-timeout=60"])?;
        let (archive, folder) = (format!("fuzz/corpus/{target}.tar.xz"), format!("fuzz/corpus/{target}"));
        // The same corpus must give the same archive, whenever and by whomever it is packed.
        let same = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
        let what = ["-cJf", &archive, "-C", &folder, "."];
        command("tar", &[&same[..], &what].concat()).run()?;
    }
    Ok(())
}

/// What building the targets needs.
struct Fuzz {
    program: PathBuf,
    clang: &'static str,
}

impl Fuzz {
    fn set_up() -> Result<Self, Failure> {
        let find = || CLANG.into_iter().find(|clang| is_there(clang, "--version"));
        let clang = match find() {
            Some(clang) => clang,
            None => {
                setup::install(&[CLANG_PACKAGE])?;
                find().ok_or_else(|| Failure::new("clang is not installed"))?
            }
        };
        Ok(Fuzz { program: install()?, clang })
    }

    fn cargo_fuzz(&self, arguments: &[&str]) -> Result<(), Failure> {
        // The address sanitizer is part of the stable toolchain's runtime; only its flag is
        // unstable.
        command(&self.program, &[&["fuzz"], arguments].concat())
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CC", self.clang)
            .env("CFLAGS", C_FLAGS)
            .run()
    }
}

/// cargo-fuzz, installed below `target/` if the machine has none.
fn install() -> Result<PathBuf, Failure> {
    if is_there("cargo-fuzz", "--version") {
        return Ok("cargo-fuzz".into());
    }
    let folder = root().join("target/tools");
    let program = folder.join("bin/cargo-fuzz");
    if !program.exists() {
        let folder = folder.to_string_lossy();
        command("cargo", &["install", "--locked", "--root", &folder, "cargo-fuzz"]).run()?;
    }
    Ok(program)
}

fn plant_seeds(target: &str, format: Option<&str>) -> Result<(), Failure> {
    let corpus = root().join("fuzz/corpus").join(target);
    let failed = |error: std::io::Error| Failure::new(format!("cannot write seeds for {target}: {error}"));
    std::fs::create_dir_all(&corpus).map_err(failed)?;
    let archive = corpus.with_extension("tar.xz");
    if archive.exists() {
        let (archive, corpus) = (archive.to_string_lossy(), corpus.to_string_lossy());
        command("tar", &["-xJf", &archive, "-C", &corpus]).run()?;
    }
    let testdata = root().join("testdata");
    let mut folders = vec![format.map_or(testdata.clone(), |format| testdata.join(format))];
    let mut planted = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.metadata().map_err(failed)?.len() <= SEED_LIMIT {
                plant(&corpus, target, &path, planted).map_err(failed)?;
                planted += 1;
            }
        }
    }
    Ok(())
}

fn plant(corpus: &Path, target: &str, seed: &Path, number: usize) -> std::io::Result<()> {
    let data = std::fs::read(seed)?;
    let data = if target == "tree_pickle" {
        // The tree is the last sample: everything after its mark.
        match data.windows(TREE_MARK.len()).rposition(|window| window == TREE_MARK) {
            Some(at) => data.get(at + TREE_MARK.len()..).unwrap_or_default().to_vec(),
            None => return Ok(()),
        }
    } else {
        data
    };
    std::fs::write(corpus.join(format!("seed-{number:03}")), data)
}
