//! The fuzz targets: seeded from the golden files, run for a while each.

use crate::run::{Failure, command, is_there, root};
use std::path::Path;

/// Target, and the folder of `testdata/` its seeds come from (none: all of them).
const TARGETS: [(&str, Option<&str>); 7] = [
    ("scan_mxnet", Some("mxnet")),
    ("scan_ffrecord", Some("ffrecord")),
    ("scan_grail", Some("grail")),
    ("scan_idx", Some("idx")),
    ("detect", None),
    ("tree_pickle", Some("ffrecord")),
    ("decode_image", Some("images")),
];

/// Larger seeds slow the fuzzer down more than they teach it.
const SEED_LIMIT: u64 = 100 << 10;

/// Marks the tree of a packed folder, in front of its pickle.
const TREE_MARK: &[u8] = b"piouhjgbr";

pub fn run_all(seconds: u64) -> Result<(), Failure> {
    let cargo_fuzz = install()?;
    for (target, seeds) in TARGETS {
        plant_seeds(target, seeds)?;
        let limit = format!("-max_total_time={seconds}");
        // Address sanitiser comes with the stable toolchain's runtime; only its flag is gated.
        command(
            &cargo_fuzz,
            &[
                "fuzz",
                "run",
                target,
                "--",
                &limit,
                "-rss_limit_mb=3000",
                "-timeout=20",
                "-print_final_stats=0",
                "-verbosity=0",
            ],
        )
        .env("RUSTC_BOOTSTRAP", "1")
        .run()?;
        println!("fuzz target {target}: {seconds} seconds without a finding");
    }
    Ok(())
}

/// cargo-fuzz, installed below `target/` if the machine has none.
fn install() -> Result<std::path::PathBuf, Failure> {
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
    let failed = |error: std::io::Error| Failure::new(format!("cannot plant seeds for {target}: {error}"));
    std::fs::create_dir_all(&corpus).map_err(failed)?;
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
        // The tree is the last sample: everything behind its mark.
        match data.windows(TREE_MARK.len()).rposition(|window| window == TREE_MARK) {
            Some(at) => data.get(at + TREE_MARK.len()..).unwrap_or_default().to_vec(),
            None => return Ok(()),
        }
    } else {
        data
    };
    std::fs::write(corpus.join(format!("seed-{number:03}")), data)
}
