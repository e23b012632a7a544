//! Reads Debian's Fashion-MNIST with both sides and checks it against the repository's manifest.

use super::idx::Entry;
use super::manifest::{self, Digest, sha256};
use super::peer::Peer;
use super::report::Report;
use super::{Tally, empty_folder, setup};
use crate::run::{Failure, root};
use anyrec::format::idx::{Pair, Reader, type_code};
use anyrec::format::{OpenOptions, RecordReader};
use anyrec::{ElementType, Label};
use anyrec::{Error, Result};
use serde_json::Value;
use std::path::Path;

/// Files of the dataset: images and labels, for training and for testing.
const FILES: usize = 4;

pub fn check(peer: &Peer, tally: &mut Tally) -> std::result::Result<(), Failure> {
    let path = root().join("testdata/idx/good/manifest.json");
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
    let known: Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    let known = known["fashion_mnist"].as_array().filter(|files| files.len() == FILES);
    let known = known.ok_or_else(|| failed(&"section fashion_mnist does not list 4 files"))?;

    let mut report = Report::default();
    let mut entries = Vec::new();
    for expected in known {
        let path = Path::new(expected["path"].as_str().unwrap_or_default());
        // The manifest of an exchange may name files elsewhere by their full path.
        let name = path.to_string_lossy();
        report.begin(&name);
        let outcome = Entry::of(path, &name).and_then(|entry| {
            check_file(path, expected, &entry, &mut report)?;
            entries.push(entry);
            Ok(())
        });
        report.attempt("read", outcome);
    }
    for set in ["train", "t10k"] {
        let outcome = check_pair(set, &entries, &mut report);
        report.attempt(format_args!("{set} as a pair"), outcome);
    }
    let folder = empty_folder("idx/fashion-mnist")?;
    manifest::save(&folder, &entries)?;
    peer.read(&folder, entries.len() as u64, &mut report)?;
    let what = format!("we and {} read {} files of Fashion-MNIST alike", peer.readers(), report.files());
    tally.add("idx", &what, &report);
    Ok(())
}

fn check_file(path: &Path, expected: &Value, entry: &Entry, report: &mut Report) -> Result<()> {
    let stored = std::fs::read(path).map_err(|error| Error::io("cannot read", error))?;
    report.compare("size", &expected["size"], &stored.len());
    report.compare("sha256", &expected["sha256"], &sha256(&stored));
    let reader = Reader::open(path, &OpenOptions::default())?;
    let header = reader.header().encode();
    let data = reader.data()?;
    let mut file = header.clone();
    file.extend_from_slice(&data);
    report.compare("uncompressed size", &expected["uncompressed_size"], &file.len());
    report.compare("uncompressed sha256", &expected["uncompressed_sha256"], &sha256(&file));
    let first_bytes = hex::encode(file.get(..16).unwrap_or_default());
    report.compare("first bytes", &expected["first_bytes"], &first_bytes);

    report.compare("gzip", &true, &entry.gz);
    let dtype = ElementType::from_name(&entry.dtype).map_or(0, type_code);
    report.compare("element type", &expected["dtype_code"], &dtype);
    report.compare("shape", &expected["shape"], &Value::from(entry.shape.clone()));
    report.compare("elements", &expected["data_sha256"], &entry.data_be_sha256);
    let sum: u64 = data.iter().map(|&element| u64::from(element)).sum();
    let mean = sum as f64 / data.len() as f64;
    let known = expected["mean"].as_f64().unwrap_or(f64::NAN);
    // It is stored with six decimal places.
    report.compare("mean", &true, &((mean - known).abs() < 1e-6));

    let records = (0..reader.count()?).map(|number| Ok(Digest::of(&reader.read(number)?)));
    let records = records.collect::<Result<Vec<_>>>()?;
    report.compare_lists("records", entry.records.as_deref().unwrap_or_default(), &records);
    Ok(())
}

/// Images with the labels beside them.
fn check_pair(set: &str, entries: &[Entry], report: &mut Report) -> Result<()> {
    let path = setup::fashion_mnist(&format!("{set}-images-idx3-ubyte.gz"));
    let labels_path = setup::fashion_mnist(&format!("{set}-labels-idx1-ubyte.gz"));
    let pair = Pair::open(&path, &OpenOptions::default())?;
    let labels = Reader::open(&labels_path, &OpenOptions::default())?.data()?;
    report.compare(format_args!("{set}: count"), &(labels.len() as u64), &pair.count()?);
    let entry = entries.iter().find(|entry| Path::new(&entry.file) == path);
    let images = entry.and_then(|entry| entry.records.as_deref()).unwrap_or_default();
    for (number, (&label, image)) in (0..).zip(labels.iter().zip(images)) {
        let found = (Label::Scalar(label.into()), Digest::of(&pair.read(number)?));
        report.compare(format_args!("{set} {number}"), &(pair.label(number)?, image.clone()), &found);
    }
    Ok(())
}
