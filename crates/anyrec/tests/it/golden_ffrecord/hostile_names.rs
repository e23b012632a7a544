//! Packed folders whose names try to leave the folder they are unpacked into.

use super::{memory, write};
use anyrec::ErrorKind;
use anyrec::format::ffrecord::PackedFolder;
use anyrec::format::ffrecord::packed_folder::UnpackOptions;
use anyrec::format::{OpenOptions, WriteOptions};
use anyrec::io::BadNames;
use std::path::{Path, PathBuf};

/// The tree sample of a pickle made of `tree`, and `files` samples before it.
fn packed(files: usize, tree: &[u8]) -> PackedFolder {
    try_packed(files, tree).unwrap()
}

fn try_packed(files: usize, tree: &[u8]) -> anyrec::Result<PackedFolder> {
    let mut records = vec![b"content".to_vec(); files];
    records.push([b"piouhjgbr\x80\x04", tree, b"."].concat());
    let data = write(&records, &WriteOptions::default());
    PackedFolder::open(memory(&data), &OpenOptions::default())
}

/// A string of a pickle; bytes that are not UTF-8 as Python's surrogates.
fn text(name: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    for chunk in name.utf8_chunks() {
        encoded.extend_from_slice(chunk.valid().as_bytes());
        for byte in chunk.invalid() {
            encoded.extend([0xed, 0xb0 | byte >> 6, 0x80 | byte & 0x3f]);
        }
    }
    [&[b'X'][..], &u32::try_from(encoded.len()).unwrap().to_le_bytes(), &encoded].concat()
}

/// `{name: sample 0}`.
fn file(name: &[u8]) -> Vec<u8> {
    [b"}", &text(name)[..], b"K\0s"].concat()
}

/// `{name: {"file": sample 0}}`.
fn folder(name: &[u8]) -> Vec<u8> {
    [b"}", &text(name)[..], &file(b"file"), b"s"].concat()
}

/// `{"inner": {name: sample 0}}`.
fn inner(name: &[u8]) -> Vec<u8> {
    [b"}", &text(b"inner")[..], &file(name), b"s"].concat()
}

/// A folder with a target in it, and beside the target what must not change.
struct Scene {
    temporary: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        for path in ["around/target", "around/canary folder", "inner", "outside"] {
            std::fs::create_dir_all(temporary.path().join(path)).unwrap();
        }
        for path in ["canary", "around/canary", "around/canary folder/canary", "file"] {
            std::fs::write(temporary.path().join(path), "alive").unwrap();
        }
        Scene { temporary }
    }

    fn target(&self) -> PathBuf {
        self.temporary.path().join("around/target")
    }

    /// Everything outside the target, with content.
    fn surroundings(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let mut found = Vec::new();
        let mut open = vec![self.temporary.path().to_owned()];
        while let Some(folder) = open.pop() {
            for entry in folder.read_dir().unwrap() {
                let path = entry.unwrap().path();
                if path == self.target() {
                    continue;
                }
                let is_folder = path.symlink_metadata().unwrap().is_dir();
                found.push((path.clone(), (!is_folder).then(|| std::fs::read(&path).unwrap())));
                if is_folder {
                    open.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

/// Number of files and folders below a folder.
fn count_below(folder: &Path) -> usize {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| 1 + if path.is_dir() { count_below(&path) } else { 0 }).sum()
}

/// Names and what is wrong with them.
fn hostile() -> Vec<(Vec<u8>, &'static str)> {
    let separator = "path separator";
    let backslash = "backslash";
    let device = "device on Windows";
    let control = "control character";
    let mut names: Vec<(Vec<u8>, &str)> = Vec::new();
    let mut add = |reason: &'static str, all: &[&[u8]]| {
        names.extend(all.iter().map(|name| (name.to_vec(), reason)));
    };
    add("it is empty", &[b""]);
    add("the folder itself", &[b"."]);
    add("leads out", &[b".."]);
    add(
        separator,
        &[
            b"/",
            b"//",
            b"/etc/passwd",
            b"//etc/passwd",
            b"/tmp",
            b"/canary",
            b"../canary",
            b"../../canary",
            b"../../../../../../../../tmp/x",
            b"./canary",
            b"./../canary",
            b"a/../../canary",
            b"a/b",
            b"a/",
            b"/a",
            b"canary/",
            b"../",
            b"/..",
            b"/../",
            b".//..",
            b"..//",
            b"...//..",
            b"~/.bashrc",
            b"~root/.ssh/id",
            b"../around/canary",
            b"../canary folder/canary",
            b"file:///etc/passwd",
            b"/proc/self/fd/1",
            b"/proc/self/cwd/x",
            b"/dev/null",
            b"/dev/tty",
            b"a/./b",
            b"a//b",
            b"inner/../../canary",
            b"..%2f../canary",
            b"%2e%2e/canary",
            b" /canary",
            b"a /b",
            "é/b".as_bytes(),
            b"\xff/\xfe",
            "\u{202e}/canary".as_bytes(),
            b"-/-",
            b"*/x",
            b"$HOME/x",
            b"`id`/x",
            b"$(id)/x",
            b"|/bin/sh",
        ],
    );
    add(
        backslash,
        &[
            b"\\",
            b"..\\canary",
            b"..\\..\\canary",
            b"a\\b",
            b"\\\\server\\share",
            b"\\\\?\\C:\\x",
            b"C:\\Windows",
            b"\\\\.\\PhysicalDrive0",
            b"..\\",
            b"\\..",
            b".\\x",
            b"a\\..\\..\\b",
            b"\\x41",
        ],
    );
    add(
        "zero byte",
        &[
            b"\0",
            b"a\0",
            b"\0a",
            b"..\0",
            b"a\0b",
            b"a\0/b",
            b"canary\0.txt",
            b"../canary\0",
            b"\0/etc/passwd",
            b"/etc/passwd\0.jpg",
        ],
    );
    add(
        control,
        &[
            b"\n",
            b"a\nb",
            b"\r",
            b"a\r\nb",
            b"\x1b[2J",
            b"\x1b]0;title\x07",
            b"a\tb",
            b"\x7f",
            b"a\x08b",
            b"\x01",
        ],
    );
    add("drive letter", &[b"C:", b"c:x", b"Z:canary", b"a:b", b"C:canary.txt:stream"]);
    add(
        device,
        &[
            b"CON",
            b"con",
            b"PRN",
            b"AUX",
            b"NUL",
            b"nul",
            b"COM1",
            b"com9",
            b"LPT1",
            b"lpt0",
            b"CON.txt",
            b"aux.c",
            b"NUL.tar.gz",
            b"nul ",
            b"Con .txt",
            b"CONIN$",
            b"conout$",
            b"CLOCK$",
            "COM¹".as_bytes(),
            b"LPT3.x",
            b"NUL:",
            b"AUX:x",
        ],
    );
    names.push((vec![b'n'; 256], "255 bytes"));
    names.push((vec![b'n'; 4000], "255 bytes"));
    names.push(("é".repeat(128).into_bytes(), "255 bytes"));
    names.push((vec![0xff; 256], "255 bytes"));
    names.push((b"../".repeat(100), "255 bytes"));
    names
}

#[test]
fn hostile_names_are_refused_before_anything_is_written() {
    let names = hostile();
    assert!(names.len() >= 100, "{}", names.len());
    let scene = Scene::new();
    let before = scene.surroundings();
    for (name, reason) in &names {
        for tree in [file(name), folder(name), inner(name)] {
            let packed = packed(1, &tree);
            let error = packed.unpack(&scene.target(), &UnpackOptions::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{name:?}: {error}");
            assert!(error.message().contains(" is refused: "), "{name:?}: {error}");
            assert!(error.message().contains(reason), "{name:?}: {error}");
            assert!(!format!("{error:#}").replace('\n', "").contains(char::is_control), "{error:?}");
            assert_eq!(count_below(&scene.target()), 0, "{name:?}");
        }
    }
    assert_eq!(scene.surroundings(), before);
}

#[test]
fn escaped_names_stay_in_the_target() {
    let mut options = UnpackOptions::default();
    options.bad_names = BadNames::Escape;
    for (name, reason) in hostile() {
        for (tree, entries) in [(file(&name), 1), (folder(&name), 2), (inner(&name), 2)] {
            let scene = Scene::new();
            let before = scene.surroundings();
            match packed(1, &tree).unpack(&scene.target(), &options) {
                Ok(unpacked) => {
                    assert_eq!((unpacked.files, unpacked.notices.len()), (1, 1), "{name:?}");
                    assert_eq!(count_below(&scene.target()), entries, "{name:?}");
                }
                // What is too long stays so.
                Err(error) => {
                    assert!(error.message().contains(reason) && reason == "255 bytes", "{name:?}: {error}");
                    assert_eq!(count_below(&scene.target()), 0, "{name:?}");
                }
            }
            assert_eq!(scene.surroundings(), before, "{name:?}");
        }
    }
}

#[test]
fn odd_but_harmless_names_are_kept() {
    let names: [&[u8]; 13] = [
        b"...",
        b"..a",
        b"a..",
        b" ",
        b"-rf",
        b"~",
        b"$HOME",
        b"%2e%2e",
        b"*",
        b"\xff\xfe",
        b"name ",
        "\u{202e}gpj.exe".as_bytes(),
        &[b'n'; 255],
    ];
    for name in names {
        let scene = Scene::new();
        let unpacked = packed(1, &folder(name)).unpack(&scene.target(), &UnpackOptions::default()).unwrap();
        assert_eq!((unpacked.files, unpacked.folders, unpacked.notices.len()), (1, 1, 0));
        use std::os::unix::ffi::OsStrExt;
        let made = scene.target().join(std::ffi::OsStr::from_bytes(name)).join("file");
        assert_eq!(std::fs::read(made).unwrap(), b"content");
    }
}

#[test]
fn links_in_the_target_are_not_followed() {
    let scene = Scene::new();
    let before = scene.surroundings();
    let outside = scene.temporary.path().join("outside");
    for (link, leads_to) in [
        ("to folder", outside.clone()),
        ("to file", scene.temporary.path().join("canary")),
        ("to nothing", outside.join("new")),
        ("to itself", scene.target().join("to itself")),
    ] {
        std::os::unix::fs::symlink(leads_to, scene.target().join(link)).unwrap();
        for tree in [file(link.as_bytes()), folder(link.as_bytes())] {
            let error = packed(1, &tree).unpack(&scene.target(), &UnpackOptions::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Exists, "{link}: {error}");
        }
    }
    assert_eq!(scene.surroundings(), before);
}

#[test]
fn nothing_that_exists_is_overwritten() {
    let scene = Scene::new();
    std::fs::write(scene.target().join("taken"), "old").unwrap();
    std::fs::create_dir(scene.target().join("folder")).unwrap();
    let both = [b"}(", &text(b"free")[..], b"K\0", &text(b"taken"), b"K\x01u"].concat();
    let error = packed(2, &both).unpack(&scene.target(), &UnpackOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert!(!scene.target().join("free").exists(), "checked before the first file is written");
    assert_eq!(std::fs::read(scene.target().join("taken")).unwrap(), b"old");
    let error = packed(1, &folder(b"folder")).unpack(&scene.target(), &UnpackOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert_eq!(count_below(&scene.target().join("folder")), 0);
}

#[test]
fn names_that_become_one_and_samples_used_twice_are_refused() {
    let scene = Scene::new();
    let mut escape = UnpackOptions::default();
    escape.bad_names = BadNames::Escape;
    let same = [b"}(", &text(b"a/b")[..], b"K\0", &text(b"a%2fb"), b"K\x01u"].concat();
    let error = packed(2, &same).unpack(&scene.target(), &escape).unwrap_err();
    assert!(error.message().contains("both become \"a%2fb\""), "{error}");
    let shared = [b"}(", &text(b"a")[..], b"K\0", &text(b"b"), b"K\0u"].concat();
    let error = packed(1, &shared).unpack(&scene.target(), &escape).unwrap_err();
    assert!(error.message().contains("\"b\" is sample 0, which belongs to another file"), "{error}");
    for sample in [1, 9] {
        let missing = [b"}", &text(b"a")[..], b"K", &[sample], b"s"].concat();
        let error = try_packed(1, &missing).unwrap_err();
        assert!(
            error.message().contains(&format!("names sample {sample}, but there are 1 files")),
            "{error}"
        );
    }
    assert_eq!(count_below(&scene.target()), 0);
}
