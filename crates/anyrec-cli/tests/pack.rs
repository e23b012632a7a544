//! `anyrec pack` and `anyrec unpack`: folders into files, records out to files, and names that
//! try to get out of the folder they are unpacked into.
#![allow(clippy::unwrap_used, clippy::panic)]

mod tool;

use anyrec::format::mxnet::{ImageHeader, LabelWidth, Writer as MxnetWriter};
use anyrec::format::{WriteOptions, ffrecord};
use anyrec::{Key, Label, Tags};
use anyrec_image::{self as image, Channels, DecodeOptions, Samples};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tool::anyrec;

const JPEG: &[u8] = b"\xff\xd8\xff\xe0 a face";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n a tree";

/// Everything below a folder by name: files with their content, folders with none.
fn tree(folder: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let content = if path.is_dir() {
                folders.push(path.clone());
                None
            } else {
                Some(std::fs::read(&path).unwrap())
            };
            found.push((path.strip_prefix(folder).unwrap().to_owned(), content));
        }
    }
    found.sort();
    found
}

/// Names of the files below a folder.
fn names(folder: &Path) -> Vec<String> {
    let files = tree(folder).into_iter().filter(|(_, content)| content.is_some());
    files.map(|(path, _)| path.to_string_lossy().into_owned()).collect()
}

/// A packed folder of one file, whose tree is this pickle.
fn packed(path: &Path, tree: &[u8]) {
    let mut writer = ffrecord::Writer::create(path, &WriteOptions::default()).unwrap();
    writer.append(b"content").unwrap();
    writer.append(&[b"piouhjgbr\x80\x04", tree, b"."].concat()).unwrap();
    writer.finish().unwrap();
}

/// `{name: sample 0}`, with the bytes of the name as a pickled string.
fn file_tree(name: &[u8]) -> Vec<u8> {
    let length = u32::try_from(name.len()).unwrap().to_le_bytes();
    [&b"}X"[..], &length, name, b"K\0s"].concat()
}

/// An MXNet file of records with keys.
fn keyed(path: &Path, records: &[(Key, &[u8])]) {
    let mut writer = MxnetWriter::create(path, &WriteOptions::default()).unwrap();
    for (key, record) in records {
        writer.write_with_key(key, record).unwrap();
    }
    writer.finish().unwrap();
}

fn labelled(label: f64, id: u64, payload: &[u8]) -> Vec<u8> {
    ImageHeader::new(Label::Scalar(label), id).pack(payload, LabelWidth::Narrow).unwrap()
}

#[test]
fn a_folder_comes_back_from_its_packed_file() {
    let scene = tempfile::tempdir().unwrap();
    let folder = scene.path().join(OsStr::from_bytes(b"a folder \xff"));
    for (name, content) in [(&b"one.txt"[..], "1"), (b"in ner/two \xfe", "22"), (b"in ner/deep/three", "")] {
        let path = folder.join(OsStr::from_bytes(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    std::fs::create_dir(folder.join("nothing in it")).unwrap();
    let file = scene.path().join("packed file.ffr");
    let ran = anyrec(&[&"pack", &folder, &file]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("wrote  3 files ("), "{}", ran.stdout);
    let target = scene.path().join("out/of it");
    let ran = anyrec(&[&"unpack", &file, &target]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("wrote  3 files in 3 folders (3 B) to "), "{}", ran.stdout);
    assert_eq!(tree(&folder), tree(&target));
}

#[test]
fn pack_refuses_what_it_cannot_do_well() {
    let scene = tempfile::tempdir().unwrap();
    let file = scene.path().join("x.ffr");
    let ran = anyrec(&[&"pack", &scene.path(), &scene.path().join("x.rec")]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("hint: name it OUT.ffr"), "{}", ran.stderr);
    let ran = anyrec(&[&"pack", &scene.path().join("nowhere"), &file]);
    assert_eq!((ran.code, ran.stderr.contains("is not a folder")), (Some(2), true));
    std::fs::write(&file, "mine").unwrap();
    let ran = anyrec(&[&"pack", &scene.path(), &file]);
    assert_eq!((ran.code, ran.stderr.contains("already exists")), (Some(2), true));
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
}

#[test]
fn hostile_packed_folders_stay_in_the_target() {
    let names: [&[u8]; 9] = [
        b"../escaped",
        b"..",
        b"/tmp/escaped",
        b"a/../../escaped",
        b"",
        b"..\\escaped",
        b"nul",
        b"a\nb",
        b"\x1b]0;title\x07",
    ];
    for name in names {
        let scene = tempfile::tempdir().unwrap();
        let (file, target) = (scene.path().join("trap.ffr"), scene.path().join("around/target"));
        packed(&file, &file_tree(name));
        let refused = anyrec(&[&"unpack", &file, &target]);
        assert_eq!(refused.code, Some(2), "{name:?}");
        assert!(refused.stderr.contains(" is refused: it "), "{}", refused.stderr);
        assert!(refused.stderr.contains("--escape-names"), "{}", refused.stderr);
        assert!(!refused.stderr.contains(['\x1b', '\x07']));
        assert!(!target.exists(), "{name:?}");
        let escaped = anyrec(&[&"unpack", &"--escape-names", &file, &target]);
        assert_eq!(escaped.code, Some(0), "{}", escaped.stderr);
        assert!(escaped.stderr.contains("was escaped as"), "{}", escaped.stderr);
        let inside: Vec<_> = tree(&target);
        assert!(matches!(&inside[..], [(_, Some(content))] if content == b"content"), "{inside:?}");
        // The file, the target and what is in it: nothing else.
        assert_eq!(tree(scene.path()).len(), 4, "{:?}", tree(scene.path()));
    }
}

#[test]
fn hostile_keys_stay_in_the_target_under_their_numbers() {
    let scene = tempfile::tempdir().unwrap();
    let file = scene.path().join("x.rec");
    let text = |key: &str| Key::Text(key.into());
    keyed(
        &file,
        &[(text("../up"), b"zero"), (text("cat.jpg"), JPEG), (text("/etc/x"), b"two"), (text("dog"), JPEG)],
    );
    let target = scene.path().join("in/target");
    let ran = anyrec(&[&"unpack", &file, &target]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(names(&target), ["00000000.txt", "00000002.txt", "cat.jpg", "dog.jpg"]);
    assert!(
        ran.stderr
            .contains("refused: the name \"../up\": it holds a path separator; written as 00000000.txt\n"),
        "{}",
        ran.stderr
    );
    let escaped = scene.path().join("escaped");
    let ran = anyrec(&[&"unpack", &"--escape-names", &"--json", &file, &escaped]);
    assert!(ran.stdout.contains("\"refused\":[]"), "{}", ran.stdout);
    assert_eq!(names(&escaped), ["%2fetc%2fx.txt", "..%2fup.txt", "cat.jpg", "dog.jpg"]);
    assert_eq!(names(scene.path()).len(), 2 + 4 + 4);
}

#[test]
fn records_that_share_a_key_are_all_written() {
    let scene = tempfile::tempdir().unwrap();
    let file = scene.path().join("x.rec");
    keyed(&file, &[(Key::Int(7), b"first"), (Key::Int(7), b"second"), (Key::Int(-1), b"third")]);
    let target = scene.path().join("out");
    let ran = anyrec(&[&"unpack", &file, &target]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("another record has that name; written as 00000001.txt"), "{}", ran.stderr);
    assert_eq!(names(&target), ["-1.txt", "00000001.txt", "7.txt"]);
    assert_eq!(std::fs::read(target.join("00000001.txt")).unwrap(), b"second");
    let numbered = scene.path().join("numbered");
    assert_eq!(anyrec(&[&"unpack", &"--by-number", &file, &numbered]).code, Some(0));
    assert_eq!(names(&numbered), ["00000000.txt", "00000001.txt", "00000002.txt"]);
}

#[test]
fn keys_that_take_the_numbers_of_other_records_lose_nothing() {
    let scene = tempfile::tempdir().unwrap();
    let file = scene.path().join("x.rec");
    let text = |key: &str| Key::Text(key.into());
    keyed(&file, &[(text("00000002"), b"a"), (text("00000002-1"), b"b"), (text("a/b"), b"c")]);
    let target = scene.path().join("out");
    let ran = anyrec(&[&"unpack", &file, &target]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("written as 00000002-2.txt"), "{}", ran.stderr);
    assert_eq!(std::fs::read(target.join("00000002-2.txt")).unwrap(), b"c");
}

#[test]
fn records_after_damage_are_not_given_a_label_that_may_be_anothers() {
    let scene = tempfile::tempdir().unwrap();
    let (file, labels) = (scene.path().join("x.ffr"), scene.path().join("labels-idx1-ubyte"));
    let mut writer = anyrec::create(&file).unwrap();
    for number in 0..3 {
        writer.append(format!("picture {number}").as_bytes(), &Tags::none()).unwrap();
    }
    writer.finish().unwrap();
    std::fs::write(&labels, [0, 0, 8, 1, 0, 0, 0, 3, 5, 6, 7]).unwrap();
    let by_label = scene.path().join("by label");
    assert_eq!(anyrec(&[&"unpack", &file, &by_label, &"--labels", &labels]).code, Some(0));
    assert_eq!(names(&by_label), ["5/00000000.txt", "6/00000001.txt", "7/00000002.txt"]);
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(9).position(|window| window == b"picture 1").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let target = scene.path().join("out");
    let ran = anyrec(&[&"unpack", &"--skip-damage", &file, &target, &"--labels", &labels]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("after damage, labels can no longer be matched"), "{}", ran.stderr);
    assert_eq!(names(&target), ["5/00000000.txt", "unlabelled/00000001.txt"]);
}

#[test]
fn labelled_images_go_into_class_folders_without_their_headers() {
    let scene = tempfile::tempdir().unwrap();
    let file = scene.path().join("x.rec");
    let records = [labelled(3.0, 0, JPEG), labelled(0.0, 1, PNG), labelled(3.0, 2, PNG)];
    let keys: Vec<(Key, &[u8])> =
        (0..).zip(&records).map(|(key, record)| (Key::Int(key), &record[..])).collect();
    keyed(&file, &keys);
    let target = scene.path().join("out");
    assert_eq!(anyrec(&[&"unpack", &file, &target]).code, Some(0));
    assert_eq!(names(&target), ["0/1.png", "3/0.jpg", "3/2.png"]);
    assert_eq!(std::fs::read(target.join("3/0.jpg")).unwrap(), JPEG);
    let flat = scene.path().join("flat");
    assert_eq!(anyrec(&[&"unpack", &"--flat", &file, &flat]).code, Some(0));
    assert_eq!(names(&flat), ["0.jpg", "1.png", "2.png"]);
}

#[test]
fn more_classes_than_folders_may_be_open_are_all_filled() {
    let scene = tempfile::tempdir().unwrap();
    let file = scene.path().join("x.rec");
    let mut writer = MxnetWriter::create(&file, &WriteOptions::default()).unwrap();
    for number in 0..600u32 {
        writer.write(&labelled(f64::from(number % 300), number.into(), JPEG)).unwrap();
    }
    writer.finish().unwrap();
    let target = scene.path().join("out");
    let ran = anyrec(&[&"unpack", &file, &target]);
    assert!(ran.stdout.starts_with("wrote  600 files in 300 folders ("), "{}{}", ran.stdout, ran.stderr);
    assert!(target.join("299/00000599.jpg").is_file());
}

#[test]
fn idx_images_become_pictures_by_the_labels_beside_them() {
    let good = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/idx/good");
    let scene = tempfile::tempdir().unwrap();
    let images = good.join("t10k-images-idx3-ubyte.gz");
    let target = scene.path().join("out");
    let ran = anyrec(&[&"unpack", &images, &target]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let pictures = anyrec::open(&images).unwrap();
    let labels = anyrec::open(good.join("t10k-labels-idx1-ubyte")).unwrap();
    assert_eq!(names(&target).len(), 10);
    for number in 0..10u64 {
        let class = labels.read(number).unwrap()[0];
        let png = std::fs::read(target.join(format!("{class}/{number:08}.png"))).unwrap();
        let picture = image::decode(&png, &DecodeOptions::default()).unwrap();
        assert_eq!((picture.width(), picture.height(), picture.channels()), (28, 28, Channels::Gray));
        assert_eq!(picture.samples(), &Samples::Eight(pictures.read(number).unwrap().to_vec()));
    }
    let flat = scene.path().join("flat");
    assert_eq!(anyrec(&[&"unpack", &"--flat", &images, &flat]).code, Some(0));
    assert_eq!(names(&flat).first().unwrap(), "00000000.png");
    let wrong = good.join("train-labels-idx1-ubyte");
    let ran = anyrec(&[&"unpack", &images, &scene.path().join("wrong"), &"--labels", &wrong]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("expected 10 labels, found 20"), "{}", ran.stderr);
}

#[test]
fn class_folders_sort_as_their_labels_do() {
    let scene = tempfile::tempdir().unwrap();
    let png = image::encode_png(&picture(), 1).unwrap();
    for (labels, folders, noticed) in [
        (&[0.0, 10.0, 2.0, 100.0][..], &["000", "002", "010", "100"][..], true),
        (&[1.0, 0.0, 2.0], &["0", "1", "2"], false),
        (&[-1.0, 10.0], &["-1", "10"], false),
        (&[0.5, 10.0], &["0.5", "10"], false),
    ] {
        let file = scene.path().join(format!("x{}.rec", labels[0]));
        let records: Vec<Vec<u8>> = labels.iter().map(|&label| labelled(label, 1, &png)).collect();
        let keyed_records: Vec<(Key, &[u8])> =
            records.iter().zip(0..).map(|(record, key)| (Key::Int(key), record.as_slice())).collect();
        keyed(&file, &keyed_records);
        let target = scene.path().join(format!("out{}", labels[0]));
        let ran = anyrec(&[&"unpack", &"--by-class", &file, &target]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let found = names(&target);
        let found: Vec<&str> = found.iter().filter_map(|name| name.split('/').next()).collect();
        assert_eq!(found, folders);
        assert_eq!(ran.stderr.contains("other numbers than the labels"), noticed, "{}", ran.stderr);
    }
}

fn picture() -> image::Picture {
    image::Picture::new(2, 2, Channels::Gray, Samples::Eight(vec![7; 4])).unwrap()
}

#[test]
fn other_arrays_become_numpy_files() {
    let good = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/idx/good");
    let scene = tempfile::tempdir().unwrap();
    let target = scene.path().join("out");
    let array = good.join("cube-idx3-double");
    assert_eq!(anyrec(&[&"unpack", &array, &target]).code, Some(0));
    assert_eq!(names(&target), ["00000000.npy", "00000001.npy", "00000002.npy"]);
    let file = std::fs::read(target.join("00000002.npy")).unwrap();
    assert!(file[10..].starts_with(b"{'descr': '>f8', 'fortran_order': False, 'shape': (3, 3), }"));
    assert!(file.ends_with(&anyrec::open(&array).unwrap().read(2).unwrap()));
}

#[test]
fn a_folder_with_something_in_it_is_left_alone() {
    let scene = tempfile::tempdir().unwrap();
    let file = scene.path().join("x.rec");
    keyed(&file, &[(Key::Int(1), b"new")]);
    let target = scene.path().join("out");
    std::fs::create_dir(&target).unwrap();
    assert_eq!(anyrec(&[&"unpack", &file, &target]).code, Some(0), "an empty folder will do");
    std::fs::write(target.join("1.txt"), "mine").unwrap();
    let ran = anyrec(&[&"unpack", &file, &target]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("the folder is not empty"), "{}", ran.stderr);
    assert_eq!(std::fs::read(target.join("1.txt")).unwrap(), b"mine");
}

#[test]
fn damage_is_told_and_skipped_only_when_asked() {
    let scene = tempfile::tempdir().unwrap();
    let folder = scene.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a"), "first file").unwrap();
    std::fs::write(folder.join("b"), "second file").unwrap();
    let file = scene.path().join("x.ffr");
    assert_eq!(anyrec(&[&"pack", &folder, &file]).code, Some(0));
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(10).position(|window| window == b"first file").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let ran = anyrec(&[&"unpack", &file, &scene.path().join("strict")]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    let target = scene.path().join("lenient");
    let ran = anyrec(&[&"unpack", &"--skip-damage", &file, &target]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("wrote  1 file (11 B) to "), "{}", ran.stdout);
    assert!(ran.stdout.ends_with(", 1 damaged place left out\n"), "{}", ran.stdout);
    assert!(ran.stderr.contains("the file \"a\" was left out"), "{}", ran.stderr);
    assert_eq!(names(&target), ["b"]);
}

#[test]
fn a_packed_folder_whose_tree_is_lost_gives_its_files_by_number() {
    let scene = tempfile::tempdir().unwrap();
    let file = scene.path().join("x.ffr");
    packed(&file, b"no pickle");
    assert_eq!(anyrec(&[&"unpack", &file, &scene.path().join("strict")]).code, Some(1));
    let target = scene.path().join("lenient");
    let ran = anyrec(&[&"unpack", &"--skip-damage", &file, &target]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("files are named by number"), "{}", ran.stderr);
    assert_eq!(std::fs::read(target.join("00000000.txt")).unwrap(), b"content");
}

#[test]
fn a_stream_is_unpacked_too() {
    let scene = tempfile::tempdir().unwrap();
    let file = scene.path().join("x.rec");
    let mut writer = anyrec::create(&file).unwrap();
    writer.append(&labelled(4.0, 9, JPEG), &Tags::none()).unwrap();
    writer.finish().unwrap();
    let target = scene.path().join("out");
    let mut command = assert_cmd::Command::cargo_bin("anyrec").unwrap();
    command.arg("unpack").arg("-").arg(&target).pipe_stdin(&file).unwrap().assert().success();
    assert_eq!(names(&target), ["4/00000000.jpg"]);
}
