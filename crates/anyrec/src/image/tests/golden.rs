//! Image records that MXNet and OpenCV wrote, against what OpenCV reads from them.

use super::*;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::Path;

const FRAME_HEADER: usize = 8;
const IMAGE_HEADER: usize = 24;

/// Image payloads of a golden file, with the manifest's entries. The files have no record in
/// several parts, so frames follow each other on 4-byte borders.
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
fn golden_pngs_have_opencvs_pixels_in_every_mode() {
    let images = images("img_png.rec");
    assert_eq!(images.len(), 5);
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

#[test]
fn golden_jpegs_are_within_the_manifests_tolerance() {
    let images = images("img_jpg.rec");
    assert_eq!(images.len(), 6);
    for (payload, image) in images {
        for (flag, expected) in image["decoded"].as_object().unwrap() {
            let options = DecodeOptions::opencv(flag.parse().unwrap()).unwrap();
            let picture = decode(&payload, &options).unwrap();
            check_shape(&picture, expected);
            let bgr = picture.bgr_samples().to_le_bytes();
            let channels = picture.channels().count();
            for channel in 0..channels {
                let values = bgr.iter().skip(channel).step_by(channels);
                let mean = values.map(|v| f64::from(*v)).sum::<f64>() / (bgr.len() / channels) as f64;
                let expected = expected["channel_mean"][channel].as_f64().unwrap();
                assert!((mean - expected).abs() < 1.0, "mean {mean}, expected {expected}");
            }
            let mean = bgr.iter().map(|v| f64::from(*v)).sum::<f64>() / bgr.len() as f64;
            let square = |v: &u8| (f64::from(*v) - mean).powi(2);
            let deviation = (bgr.iter().map(square).sum::<f64>() / bgr.len() as f64).sqrt();
            let expected = expected["std"].as_f64().unwrap();
            assert!((deviation - expected).abs() < 1.5, "std {deviation}, expected {expected}");
        }
    }
}
