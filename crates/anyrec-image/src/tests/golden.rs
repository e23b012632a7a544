//! Compares images written by MXNet, OpenCV and Pillow with what OpenCV and Pillow read from them,
//! and the output of this crate with OpenCV's bytes.

use super::jpeg::{Jpeg, Pixels};
use super::make::noise;
use super::*;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

const FRAME_HEADER: usize = 8;
const IMAGE_HEADER: usize = 24;

/// Image payloads of a golden file, with the manifest's entries. No record in these files has
/// several parts, so frames follow each other on 4-byte boundaries.
fn images(file: &str) -> Vec<(Vec<u8>, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/mxnet/good");
    let manifest = std::fs::read(folder.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let files = manifest["files"].as_array().unwrap();
    let entry = files.iter().find(|entry| entry["path"] == file).unwrap();
    let bytes = std::fs::read(folder.join(file)).unwrap();
    let offsets = entry["offsets"].as_array().unwrap().iter();
    let records = entry["records"].as_array().unwrap().iter();
    let images = entry["images"].as_array().unwrap().iter();
    offsets
        .zip(records)
        .zip(images)
        .map(|((offset, record), image)| {
            let begin = offset.as_u64().unwrap() as usize + FRAME_HEADER;
            let labels = 4 * image["flag"].as_u64().unwrap() as usize;
            let length = record[0].as_u64().unwrap() as usize;
            let payload = bytes[begin..begin + length][IMAGE_HEADER + labels..].to_vec();
            assert_eq!(hex::encode(Sha256::digest(&payload)), image["payload"][1]);
            (payload, image.clone())
        })
        .collect()
}

fn check_shape(picture: &Picture, expected: &Value) {
    let mut shape = vec![picture.height(), picture.width()];
    if picture.channels() != Channels::Gray {
        shape.push(picture.channels().count() as u32);
    }
    assert_eq!(serde_json::json!(shape), expected["shape"]);
    assert_eq!(format!("uint{}", picture.depth()), expected["dtype"]);
}

#[test]
fn golden_images_have_opencvs_pixels_in_every_mode() {
    for (file, count) in [("img_png.rec", 5), ("img_jpg.rec", 6)] {
        let images = images(file);
        assert_eq!(images.len(), count);
        for (payload, image) in images {
            for (flag, expected) in image["decoded"].as_object().unwrap() {
                let options = DecodeOptions::opencv(flag.parse().unwrap()).unwrap();
                let picture = decode(&payload, &options).unwrap();
                check_shape(&picture, expected);
                let digest = Sha256::digest(picture.bgr_samples().to_le_bytes());
                let expected_digest =
                    expected.get("sha256").or_else(|| expected.get("sha256_opencv_4_8_1")).unwrap();
                assert_eq!(hex::encode(digest), *expected_digest, "flag {flag} of {image}");
            }
        }
    }
}

/// `testdata/images` and its manifest.
fn others() -> (PathBuf, Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/images");
    let manifest = std::fs::read(folder.join("manifest.json")).unwrap();
    (folder, serde_json::from_slice(&manifest).unwrap())
}

/// The JPEGs of other writers by name.
pub fn jpegs_of_others() -> Vec<(String, Vec<u8>)> {
    let (folder, manifest) = others();
    let names = manifest["decoded"].as_object().unwrap().keys();
    names.map(|name| (name.clone(), std::fs::read(folder.join(name)).unwrap())).collect()
}

#[test]
fn jpegs_of_others_have_opencvs_and_pillows_pixels_at_every_scale() {
    let (_, manifest) = others();
    for (name, bytes) in jpegs_of_others() {
        for (kind, expected) in manifest["decoded"][&name].as_object().unwrap() {
            let (pixels, eighths) = match kind.as_str() {
                "gray" => (Pixels::Gray, 8),
                "rgb" => (Pixels::Rgb, 8),
                "rgb_1_eighths" => (Pixels::Rgb, 1),
                "rgb_2_eighths" => (Pixels::Rgb, 2),
                "rgb_4_eighths" => (Pixels::Rgb, 4),
                _ => panic!("{kind}"),
            };
            let jpeg = Jpeg::open(&bytes, &DecodeOptions::default()).unwrap();
            let (whole, mut out) = (jpeg.whole(), Vec::new());
            jpeg.decode_region(whole, eighths, pixels, &mut out).unwrap();
            assert_eq!(hex::encode(Sha256::digest(&out)), *expected, "{kind} of {name}");
        }
    }
}

#[test]
fn encoded_jpegs_are_opencvs_bytes() {
    let (_, manifest) = others();
    for (what, expected) in manifest["encoded"].as_object().unwrap() {
        let (channels, quality) = what.split_once(' ').unwrap();
        let channels = Channels::from_count(channels.parse().unwrap()).unwrap();
        let picture = noise(83, 61, channels, 8);
        let bytes = encode_jpeg(&picture, quality.parse().unwrap()).unwrap();
        assert_eq!(hex::encode(Sha256::digest(&bytes)), *expected, "channels and quality {what}");
    }
}
