//! `anyrec im2rec`, on folders made here.
//!
//! That it does what MXNet's `im2rec.py` does is shown by `cargo xtask im2rec`, which runs both;
//! here are results of the original for one folder, and what goes wrong.
#![allow(clippy::unwrap_used, clippy::panic)]

mod tool;

use anyrec::format::mxnet::{ImageHeader, LabelWidth};
use anyrec_image::{self as image, Channels, DecodeOptions, Picture, Samples};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tempfile::TempDir;
use tool::anyrec;

/// A picture whose colours rise to the right and downwards.
fn picture(width: u32, height: u32) -> Picture {
    let channel = |part: u32, whole: u32| u8::try_from(part * 255 / whole).unwrap();
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let samples = pixels.flat_map(|(x, y)| [channel(x, width), channel(y, height), 90]).collect();
    Picture::new(width, height, Channels::Rgb, Samples::Eight(samples)).unwrap()
}

fn write(folder: &Path, name: impl AsRef<OsStr>, content: &[u8]) {
    let path = folder.join(Path::new(name.as_ref()));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// The folder that the original was run on.
fn golden_folder() -> TempDir {
    let scene = tempfile::tempdir().unwrap();
    for folder in ["b", "a", "a/inner", "É c"] {
        for number in 0..4 {
            let mut content = format!("{folder}/{number}\n").repeat(number + 1).into_bytes();
            content.extend_from_slice(&b"\x0a\x23\xd7\xce".repeat(number));
            write(scene.path(), format!("root/{folder}/{number}.jpg"), &content);
        }
    }
    write(scene.path(), "root/top.PNG", b"");
    write(scene.path(), "root/a/notes.txt", b"no image");
    scene
}

fn records(path: &Path) -> Vec<(ImageHeader, Vec<u8>)> {
    let dataset = anyrec::open(path).unwrap();
    let unpack = |record: anyrec::Result<anyrec::Bytes>| {
        let record = record.unwrap();
        let (header, payload) = ImageHeader::unpack(&record, LabelWidth::Narrow).unwrap();
        (header, payload.to_vec())
    };
    dataset.iter().map(unpack).collect()
}

#[test]
fn list_and_pass_through_give_the_bytes_of_the_original() {
    let scene = golden_folder();
    let (prefix, root) = (scene.path().join("set"), scene.path().join("root"));
    let listed = anyrec(&[&"im2rec", &"--list", &"--recursive", &prefix, &root]);
    assert_eq!(listed.stdout, ". 0\na 1\na/inner 2\nb 3\nÉ c 4\n");
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let packed = anyrec(&[&"im2rec", &"--pass-through", &"--num-thread", &"3", &prefix, &root]);
    assert_eq!(packed.code, Some(0), "{}", packed.stderr);
    assert!(packed.stdout.starts_with("wrote  17 records (976 B) to "), "{}", packed.stdout);
    // Made by mxnet 1.9.1's im2rec.py: im2rec.py --list --recursive, then --pass-through.
    let list = std::fs::read_to_string(prefix.with_extension("lst")).unwrap();
    assert!(
        list.starts_with("13\t4.000000\tÉ c/0.jpg\n8\t2.000000\ta/inner/3.jpg\n15\t4.000000\tÉ c/2.jpg\n")
    );
    for (extension, digest) in [
        ("lst", "9ec25075ca8563901ebca2d7a63755dd9dd34cf5d1e13c148f22d5fd1161e46d"),
        ("rec", "84ed64c15e354e2fe763056cd7ce82b4c2a42bfa064ca54e3a0fc97ee15c83c2"),
        ("idx", "a5fa14d9d0a2b1fb8c324eda39772bc6fc375d77cca13c0c281e8d932f0526e8"),
    ] {
        use sha2::Digest;
        let bytes = std::fs::read(prefix.with_extension(extension)).unwrap();
        let found: String = sha2::Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, digest, "{extension}");
    }
}

#[test]
fn without_recursive_only_the_root_is_listed_and_with_no_shuffle_in_order() {
    let scene = golden_folder();
    let (prefix, root) = (scene.path().join("set"), scene.path().join("root/a"));
    let options: [&dyn AsRef<OsStr>; 6] = [&"im2rec", &prefix, &root, &"--list", &"--no-shuffle", &"--exts"];
    let ran = anyrec(&[&options[..], &[&"JPG", &".txt"]].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    assert_eq!(
        std::fs::read_to_string(prefix.with_extension("lst")).unwrap(),
        "0\t0.000000\t0.jpg\n1\t0.000000\t1.jpg\n2\t0.000000\t2.jpg\n3\t0.000000\t3.jpg\n4\t0.000000\tnotes.txt\n"
    );
}

#[test]
fn a_list_that_exists_is_kept_unless_forced() {
    let scene = golden_folder();
    let (prefix, root) = (scene.path().join("set"), scene.path().join("root"));
    std::fs::write(scene.path().join("set_train.lst"), "mine").unwrap();
    let options: [&dyn AsRef<OsStr>; 6] = [&"im2rec", &"--list", &"--train-ratio", &"0.5", &prefix, &root];
    let refused = anyrec(&options);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("set_train.lst: already exists"), "{}", refused.stderr);
    assert!(!scene.path().join("set_val.lst").exists(), "no list is written if one is in the way");
    assert_eq!(anyrec(&[&options[..], &[&"--force"]].concat()).code, Some(0));
    assert_ne!(std::fs::read(scene.path().join("set_train.lst")).unwrap(), b"mine");
}

#[test]
fn images_that_fail_are_told_and_left_out_and_the_rest_keeps_its_order() {
    let scene = tempfile::tempdir().unwrap();
    let root = scene.path().join("root with spaces");
    let good = image::encode_jpeg(&picture(40, 30), 90).unwrap();
    write(&root, "good.jpg", &good);
    write(&root, "cut.jpg", &good[..good.len() / 2]);
    write(&root, "words.png", b"not an image \x1b[2J");
    let list = "5\t1\tgood.jpg\n6\t1\tcut.jpg\nbroken line\n7\t2\twords.png\n8\t2\tmissing.jpg\n-1\t0\tgood.jpg\n9\t3\tgood.jpg\n";
    write(scene.path(), "set.lst", list.as_bytes());
    let ran = anyrec(&[&"im2rec", &scene.path().join("set"), &root]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.ends_with("set.rec, 5 failed\n"), "{}", ran.stdout);
    for told in ["cut.jpg: ", "set.lst: line 3: ", "words.png: ", "missing.jpg: cannot read", "index -1 "] {
        assert!(ran.stderr.contains(told), "{told} in {}", ran.stderr);
    }
    assert!(!ran.stderr.contains('\x1b'));
    let ids: Vec<u64> = records(&scene.path().join("set.rec")).iter().map(|(header, _)| header.id).collect();
    assert_eq!(ids, [5, 9]);
    let index = std::fs::read_to_string(scene.path().join("set.idx")).unwrap();
    assert_eq!(index.lines().map(|line| line.split('\t').next().unwrap()).collect::<Vec<_>>(), ["5", "9"]);
}

#[test]
fn pictures_are_cropped_resized_and_encoded_as_asked() {
    let scene = tempfile::tempdir().unwrap();
    write(scene.path(), "root/wide.png", &image::encode_png(&picture(60, 41), 3).unwrap());
    write(scene.path(), "root/tall.jpg", &image::encode_jpeg(&picture(30, 50), 95).unwrap());
    write(scene.path(), "set.lst", b"0\t0\twide.png\n1\t1\ttall.jpg\n");
    let sizes = |options: &[&str]| {
        let (prefix, root) = (scene.path().join("set"), scene.path().join("root"));
        let mut words: Vec<&dyn AsRef<OsStr>> = vec![&"im2rec", &prefix, &root, &"--force"];
        words.extend(options.iter().map(|option| option as &dyn AsRef<OsStr>));
        let ran = anyrec(&words);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let records = records(&prefix.with_extension("rec")).into_iter();
        let kind = |payload: &[u8]| {
            let picture = image::decode(payload, &DecodeOptions::default()).unwrap();
            format!("{} {:?}", image::sniff(payload), picture.channels())
        };
        records.map(|(_, payload)| kind(&payload)).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&[]), ["jpeg 60x41 Rgb", "jpeg 30x50 Rgb"]);
    assert_eq!(sizes(&["--resize", "20"]), ["jpeg 29x20 Rgb", "jpeg 20x33 Rgb"]);
    assert_eq!(sizes(&["--center-crop", "--encoding", ".png"]), ["png 41x41 Rgb", "png 30x30 Rgb"]);
    assert_eq!(sizes(&["--color", "0", "--quality", "40"]), ["jpeg 60x41 Gray", "jpeg 30x50 Gray"]);
    assert_eq!(sizes(&["--color", "-1", "--num-thread", "1"]), ["jpeg 60x41 Rgb", "jpeg 30x50 Rgb"]);
}

#[test]
fn several_labels_are_packed_only_when_asked_for() {
    let scene = golden_folder();
    write(scene.path(), "set.lst", b"3\t1\t0.5\tb/1.jpg\n4\t2\tb/0.jpg\n");
    let labels = |option: &str| {
        let (prefix, root) = (scene.path().join("set"), scene.path().join("root"));
        assert_eq!(
            anyrec(&[&"im2rec", &prefix, &root, &"--pass-through", &"--force", &option]).code,
            Some(0)
        );
        records(&prefix.with_extension("rec"))
            .iter()
            .map(|(header, _)| header.labels().to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(labels("--pack-label"), [vec![1.0, 0.5], vec![2.0]]);
    assert_eq!(labels("--recursive"), [vec![1.0], vec![2.0]]);
}

#[test]
fn names_that_are_not_utf8_go_through_list_and_record_file() {
    let scene = tempfile::tempdir().unwrap();
    let image = image::encode_png(&picture(4, 4), 3).unwrap();
    write(scene.path(), OsStr::from_bytes(b"root \xff/class \xfe/pic\xfd.png"), &image);
    let root = scene.path().join(OsStr::from_bytes(b"root \xff"));
    let prefix = scene.path().join(OsStr::from_bytes(b"set \xfc"));
    let listed = anyrec(&[&"im2rec", &"--list", &"--recursive", &prefix, &root]);
    assert_eq!((listed.code, listed.stdout.as_str()), (Some(0), "class \\xfe 0\n"));
    let packed = anyrec(&[&"im2rec", &"--pass-through", &prefix, &root, &"--json"]);
    assert_eq!(packed.code, Some(0), "{}", packed.stderr);
    assert!(packed.stdout.contains("set \\udcfc.rec"), "{}", packed.stdout);
    let path = scene.path().join(OsStr::from_bytes(b"set \xfc.rec"));
    assert_eq!(records(&path)[0].1, image);
}

#[test]
fn a_folder_that_links_back_to_itself_is_listed_once() {
    let scene = golden_folder();
    std::os::unix::fs::symlink("..", scene.path().join("root/a/around")).unwrap();
    let (prefix, root) = (scene.path().join("set"), scene.path().join("root"));
    let ran = anyrec(&[&"im2rec", &"--list", &"--recursive", &prefix, &root]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("is a link to one of its parent folders and is skipped"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(prefix.with_extension("lst")).unwrap().lines().count(), 17);
}

#[test]
fn nothing_to_do_is_an_error_with_the_next_command() {
    let scene = tempfile::tempdir().unwrap();
    let ran = anyrec(&[&"im2rec", &scene.path().join("set"), &scene.path()]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("there is no list file with this prefix"));
    assert!(ran.stderr.contains("hint: `anyrec im2rec --list --recursive PREFIX ROOT`"));
    let ran = anyrec(&[&"im2rec", &"--list", &scene.path().join("set"), &scene.path().join("nowhere")]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("cannot read the folder"), "{}", ran.stderr);
}
