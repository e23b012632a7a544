//! A loss of power at any moment of any command that writes: the names hold the old files, the new
//! ones or nothing, and never data beside an index file that it does not belong to.
//!
//! The shipped program runs with a shim (`shim.c`) that records what it does to files. From the
//! record follows every state the disk may be in afterwards ([`model`]); each is made in a folder
//! and looked at. Every sync must be needed: with any of them taken out of the record, one of the
//! states must be wrong.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod model;

use anyrec::ErrorKind;
use anyrec::format::{WriteOptions, grail};
use anyrec::io::{Access, finish_interrupted, open_file};
use anyrec::{Key, Tags};
use model::{Folder, Operation};
use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

/// Command lines. `IN` stands for the inputs' stem: the old files are made by running the line with
/// `a`, the new ones by running it with `b`.
const LINES: &[&str] = &[
    "convert IN.rec out.rec",
    "convert IN.ffr out.rec",
    "convert IN.rec out.ffr",
    "convert IN.rec out.grail-rio",
    "convert IN.rec out.grail-rio --transformer zstd",
    "convert IN.rec out --to idx",
    "convert IN.rec out.gz --to idx",
    "convert IN-large.ffr out.rec",
    "convert IN-large.ffr out.ffr",
    "convert IN-large.ffr out.grail-rio",
    "convert IN.rec out.ffr --shards 3",
    "convert IN.rec out.rec --shards 2",
    "split IN.rec out.grail-rio --ratio 1,1",
    "split IN.rec out.rec --size 60",
    "shuffle IN.rec out.rec",
    "merge IN.rec IN.rec out.rec",
    "repair IN.rec -o out.rec",
    "repair IN.ffr -o out.ffr",
    "repair IN.grail-rio -o out.grail-rio",
    "repair IN-unpacked.grail-rio -o out.grail-rio",
    "repair IN-packed.grail-rpk -o out.grail-rpk",
    "pack IN-folder out.ffr",
];

/// As [`LINES`], for commands whose outputs are named after their inputs: the files of `a` are
/// copied over those of `b` (those named here) in between.
const SAME_NAMES: &[(&str, &[&str])] = &[
    ("index same.rec", &["rec"]),
    ("index same.grail-rio", &["grail-rio"]),
    ("im2rec same same-folder --pass-through", &["lst"]),
];

#[test]
fn after_a_loss_of_power_names_hold_old_files_new_ones_or_nothing() {
    let shim = build_shim();
    let mut cases = Vec::new();
    for line in LINES {
        cases.push((*line, None, false));
        cases.push((*line, None, true));
    }
    // Data without keys in the place of data with an index file.
    cases.push(("convert IN.ffr out.rec", Some("convert IN.rec out.rec"), true));
    for (line, old, replace) in cases {
        let scene = Scene::new();
        if replace {
            scene.run(&old.unwrap_or(line).replace("IN", "a"), None);
        }
        check(&scene, &line.replace("IN", "b"), &shim, replace);
    }
    for (line, endings) in SAME_NAMES {
        for replace in [false, true] {
            let scene = Scene::new();
            if replace {
                scene.copy("a", endings);
                scene.run(line, None);
            }
            scene.copy("b", endings);
            check(&scene, line, &shim, replace);
        }
    }
}

/// Runs a command line under the shim and looks at all states, with all syncs and with one missing.
fn check(scene: &Scene, line: &str, shim: &Path, replace: bool) {
    let before = scene.read();
    let force = if replace && !line.starts_with("index same.grail") { " --force" } else { "" };
    let operations = scene.run(&format!("{line}{force}"), Some(shim));
    let after = scene.read();
    let found = model::without_loss(&operations, &before);
    assert!(found == after, "{line}: the record is not complete");
    let names: BTreeSet<String> = before
        .keys()
        .chain(after.keys())
        .filter(|name| before.get(*name) != after.get(*name))
        .cloned()
        .collect();
    assert!(!names.is_empty(), "{line}: wrote nothing new");
    // Inputs stay as they are.
    let outputs =
        |folder: Folder| -> Folder { folder.into_iter().filter(|(name, _)| names.contains(name)).collect() };
    let (before, after) = (outputs(before), outputs(after));
    let mut known = HashMap::new();
    let judged = Judged { names: &names, before: &before, after: &after };
    let mut judge = |state: &Folder, finished: bool| {
        let verdict = known.entry((state.clone(), finished)).or_insert_with(|| judged.judge(state, finished));
        verdict.clone()
    };
    let states = match model::after_power_loss(&operations, &before, &mut judge) {
        Ok(states) => states,
        Err(wrong) => panic!("{line} (replace: {replace}): {wrong}"),
    };
    assert!(states >= 3, "{line}: {states} states");
    for (at, sync) in operations.iter().enumerate().filter(|(_, operation)| operation.is_sync()) {
        let mut fewer: Vec<Operation> = operations.clone();
        fewer.remove(at);
        let found = model::after_power_loss(&fewer, &before, &mut judge);
        assert!(found.is_err(), "{line} (replace: {replace}): {sync:?}, operation {at}, is not needed");
    }
}

/// What is known about a command's outputs.
struct Judged<'a> {
    /// Files that the command made, changed or removed.
    names: &'a BTreeSet<String>,
    before: &'a Folder,
    after: &'a Folder,
}

impl Judged<'_> {
    fn judge(&self, state: &Folder, finished: bool) -> Result<(), String> {
        let &Judged { names, before, after } = self;
        let is = |set: &Folder, name: &str| state.get(name) == set.get(name);
        for name in names {
            let data = name.strip_suffix(".idx").map(|stem| format!("{stem}.rec"));
            match data.filter(|data| names.contains(data)) {
                // An index file that is there belongs to the data that is there, if any.
                Some(data) if state.contains_key(name) => {
                    let fits = |set| is(set, name) && is(set, &data);
                    if !fits(before) && !fits(after) {
                        return Err(format!("{name} does not belong to {data}"));
                    }
                }
                Some(_) => {}
                None if is(before, name) || is(after, name) => {}
                None => return Err(format!("{name} is neither the old file nor the new one")),
            }
        }
        let all = |set: &Folder| names.iter().all(|name| is(set, name));
        if finished {
            return if all(after) { Ok(()) } else { Err("it was finished, and is lost".to_owned()) };
        }
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in state {
            let path = folder.path().join(name);
            match state.iter().find(|(_, other)| Rc::ptr_eq(other, content)) {
                Some((first, _)) if first != name => {
                    std::fs::hard_link(folder.path().join(first), path).unwrap()
                }
                _ => std::fs::write(path, &**content).unwrap(),
            }
        }
        for marker in state.keys().filter(|name| name.ends_with(".replacing")) {
            keep_inodes(folder.path(), marker);
        }
        let interrupted = names
            .iter()
            .map(|name| folder.path().join(name))
            .find(|path| open_file(path, Access::Auto).is_err_and(|error| error.kind() == ErrorKind::Stale));
        match interrupted {
            Some(path) => {
                finish_interrupted(&path).map_err(|error| error.to_string())?;
                let now = read(folder.path());
                match names.iter().all(|name| now.get(name) == after.get(name)) {
                    true => Ok(()),
                    false => Err("was interrupted, and cannot be finished".to_owned()),
                }
            }
            None if all(before) || all(after) => Ok(()),
            None => Err("some files are new and some are old, and nothing says so".to_owned()),
        }
    }
}

/// A marker names files by their inodes, which a disk keeps when the power is lost: this one names those
/// that the files have in the folder where the state was laid out.
fn keep_inodes(folder: &Path, marker: &str) {
    let path = folder.join(marker);
    // One of which only a part was written may be anything, and is as good as none.
    let Ok(text) = String::from_utf8(std::fs::read(&path).unwrap()) else { return };
    let line = |line: &str| {
        let mut fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let (number, name) = if fields[0] == "remove" { (1, 2) } else { (2, 3) };
        if let Some(found) = fields.get(name).and_then(|name| folder.join(name).metadata().ok()) {
            fields[number] = found.ino().to_string();
        }
        fields.join("\t")
    };
    let lines: Vec<String> = text.split('\n').map(line).collect();
    std::fs::write(path, lines.join("\n")).unwrap();
}

/// A folder with inputs, `a` and `b`, that hold different records.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Self {
        let scene = Scene(tempfile::tempdir().unwrap());
        let plain = WriteOptions::default();
        let version = |version| plain.clone().with(grail::WriteOptions::default().with_version(version));
        let unpacked = version(grail::Version::LegacyUnpacked);
        let packed = version(grail::Version::LegacyPacked);
        for (stem, records) in [("a", 3), ("b", 4)] {
            let small: Vec<Vec<u8>> =
                (0..records).map(|number| format!("{stem} record {number}").into()).collect();
            let large: Vec<Vec<u8>> =
                (0..records).map(|number: u8| vec![number + stem.as_bytes()[0]; 200_000]).collect();
            scene.write(&format!("{stem}.rec"), "mxnet", &plain, &small);
            scene.write(&format!("{stem}.ffr"), "ffrecord", &plain, &small);
            scene.write(&format!("{stem}-large.ffr"), "ffrecord", &plain, &large);
            scene.write(&format!("{stem}.grail-rio"), "grail", &plain, &small);
            scene.write(&format!("{stem}-unpacked.grail-rio"), "grail", &unpacked, &small);
            scene.write(&format!("{stem}-packed.grail-rpk"), "grail", &packed, &small);
            std::fs::create_dir(scene.path(&format!("{stem}-folder"))).unwrap();
            for (number, record) in small.iter().enumerate() {
                std::fs::write(scene.path(&format!("{stem}-folder/{number}")), record).unwrap();
            }
            let lines: String = (0..records).map(|number| format!("{}\t0\t{number}\n", number + 7)).collect();
            std::fs::write(scene.path(&format!("{stem}.lst")), lines).unwrap();
        }
        std::os::unix::fs::symlink("b-folder", scene.path("same-folder")).unwrap();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file whose records have keys where the format has any.
    fn write(&self, name: &str, format: &str, options: &WriteOptions, records: &[Vec<u8>]) {
        let mut writer = anyrec::format::by_id(format).unwrap().create(&self.path(name), options).unwrap();
        // Two files have no key in common, and so no two index files are alike.
        let first_key = if name.starts_with('a') { 100 } else { 200 };
        for (record, number) in records.iter().zip(first_key..) {
            let mut tags = Tags::none();
            tags.key = Some(Key::Int(number));
            writer.append(record, &tags).unwrap();
        }
        writer.finish().unwrap();
    }

    fn copy(&self, stem: &str, endings: &[&str]) {
        for ending in endings {
            let (from, to) = (self.path(&format!("{stem}.{ending}")), self.path(&format!("same.{ending}")));
            std::fs::copy(from, to).unwrap();
        }
    }

    /// Runs a command line, which must succeed; gives what the shim recorded.
    fn run(&self, line: &str, shim: Option<&Path>) -> Vec<Operation> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anyrec"));
        command.args(line.split(' ')).current_dir(self.0.path());
        let log = tempfile::NamedTempFile::new().unwrap();
        if let Some(shim) = shim {
            let root = self.0.path().canonicalize().unwrap();
            command.env("LD_PRELOAD", shim).env("ANYREC_SHIM_ROOT", root).env("ANYREC_SHIM_LOG", log.path());
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        model::parse(&std::fs::read(log.path()).unwrap())
    }

    fn read(&self) -> Folder {
        read(self.0.path())
    }
}

fn read(folder: &Path) -> Folder {
    let files = std::fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file());
    files
        .map(|entry| {
            let content = std::fs::read(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), Rc::new(content))
        })
        .collect()
}

fn build_shim() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/power_loss/shim.c");
    let shim = Path::new(env!("CARGO_TARGET_TMPDIR")).join("power_loss_shim.so");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let built = Command::new(compiler)
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-o"])
        .args([&shim, &source])
        .status()
        .unwrap();
    assert!(built.success(), "the shim does not compile");
    shim
}
