//! The steps of the demonstration. Each step checks its result and fails if anything differs.

use super::ledger::{Done, Ledger};
use super::pictures::{CHANNELS, CLASSES, SIDE, Sample, draw_all};
use crate::term;
use anyhow::{Context, Result, ensure};
use anyrec::convert::{ConvertOptions, convert};
use anyrec::format::grail::{self, Transform};
use anyrec::format::mxnet::guess_tags;
use anyrec::format::{self, OpenOptions, WriteOptions, idx};
use anyrec::io::Durability;
use anyrec::loader::Permutation;
use anyrec::{Dataset, Key, Label, RecordFile, RepairOptions, Tags};
use anyrec_image::{Channels, DecodeOptions, Picture, Samples, decode, encode_jpeg};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::fs::OpenOptions as FileOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The images in each of the formats.
const FILES: [(&str, &str); 4] = [
    ("mxnet", "pictures.rec"),
    ("ffrecord", "pictures.ffr"),
    ("grail", "pictures.grail-rio"),
    ("idx", "pictures-idx4-ubyte"),
];
/// The labels of the images, and the images as JPEGs that include their labels.
const LABELS: &str = "labels-idx1-ubyte";
const PHOTOS: &str = "photos.rec";
/// The chain of conversions, from `pictures.rec` back to an equal file.
const CIRCLE: [(&str, &str); 4] = [
    ("ffrecord", "circle-1.ffr"),
    ("grail", "circle-2.grail-rio"),
    ("idx", "circle-3-idx4-ubyte"),
    ("mxnet", "circle-4.rec"),
];
const QUALITY: u8 = 90;
const BATCH: usize = 64;
const SEED: u64 = 42;

type Sha = [u8; 32];

/// The dataset, its folder, and the steps so far.
pub struct Rounds {
    folder: PathBuf,
    samples: Vec<Sample>,
    digests: Vec<Sha>,
    pub ledger: Ledger,
}

impl Rounds {
    /// Draws the images.
    pub fn draw(folder: &Path, count: u64) -> Result<Rounds> {
        let mut ledger = Ledger::default();
        let what = format!("{} classes, {SIDE}x{SIDE} RGB", CLASSES.len());
        let work = || {
            let samples = draw_all(count);
            let bytes = samples.iter().map(|sample| sample.pixels.len() as u64).sum();
            Ok(Done { records: count, bytes, value: samples })
        };
        let samples = ledger.step("draw", &what, work, |_| Ok("all images differ".into()))?;
        let digests: Vec<Sha> =
            samples.par_iter().map(|sample| Sha256::digest(&sample.pixels).into()).collect();
        let mut sorted = digests.clone();
        sorted.sort_unstable();
        sorted.dedup();
        ensure!(sorted.len() == digests.len(), "two images are equal");
        Ok(Rounds { folder: folder.to_owned(), samples, digests, ledger })
    }

    /// Writes the images in every format, the labels, and labelled JPEGs.
    pub fn write(&mut self) -> Result<()> {
        let pixels = || self.samples.iter().map(|sample| (&sample.pixels[..], Tags::none()));
        for (id, name) in FILES {
            write_file(&mut self.ledger, &self.folder, id, name, &options_for(id), pixels())?;
        }
        let classes: Vec<[u8; 1]> = self.samples.iter().map(|sample| [sample.class]).collect();
        let options = options_for("idx").with(idx::WriteOptions::default().with_item_shape([]));
        let labels = classes.iter().map(|class| (&class[..], Tags::none()));
        write_file(&mut self.ledger, &self.folder, "idx", LABELS, &options, labels)?;

        let photos: Vec<(Vec<u8>, Tags)> =
            self.samples.par_iter().enumerate().map(photo).collect::<Result<_>>()?;
        let photos = photos.iter().map(|(jpeg, tags)| (&jpeg[..], tags.clone()));
        write_file(&mut self.ledger, &self.folder, "mxnet", PHOTOS, &options_for("mxnet"), photos)
    }

    /// Reads every byte of every file.
    pub fn verify(&mut self) -> Result<()> {
        for name in FILES.iter().map(|(_, name)| *name).chain([LABELS, PHOTOS]) {
            let path = self.folder.join(name);
            let work = || {
                let report = anyrec::verify(&path, &OpenOptions::default())?;
                Ok(Done { records: report.records, bytes: report.bytes, value: report })
            };
            let count = self.samples.len() as u64;
            self.ledger.step("verify", name, work, |report| {
                ensure!(report.is_sound(), "{name} is damaged");
                ensure!(report.records == count, "{name} has {} records, not {count}", report.records);
                let checksummed = report.verified == count;
                Ok(if checksummed { "sound, every checksum holds" } else { "sound" }.into())
            })?;
        }
        for (_, name) in FILES {
            check_records(&self.folder.join(name), &self.digests)?;
        }
        Ok(())
    }

    /// Converts from one format to the next, and back to the first.
    pub fn convert_around(&mut self) -> Result<()> {
        let mut from = FILES[0].1;
        for (id, name) in CIRCLE {
            let (input, output) = (self.folder.join(from), self.folder.join(name));
            let mut options = ConvertOptions::default();
            options.write = options_for(id);
            let work = || {
                let input = RecordFile::open(&input, &options.open)?;
                let to = format::by_id(id).context("a format is missing")?;
                let done = convert(vec![input], &output, to, &options, &mut |_| {})?;
                let bytes = done.outputs.iter().map(|(_, written)| written.bytes).sum();
                Ok(Done { records: done.records, bytes, value: () })
            };
            let check = |(): &()| {
                check_records(&output, &self.digests)?;
                if id != FILES[0].0 {
                    return Ok("same records".to_owned());
                }
                ensure!(
                    file_digest(&output)? == file_digest(&self.folder.join(FILES[0].1))?,
                    "{name} differs"
                );
                Ok("same records, and the same file".to_owned())
            };
            self.ledger.step("convert", &format!("{from} to {name}"), work, check)?;
            from = name;
        }
        Ok(())
    }

    /// Damages a copy of the FFRecord file, repairs it, and returns what the repair reports.
    pub fn damage_and_repair(&mut self) -> Result<Vec<String>> {
        let (_, name) = FILES[1];
        let (whole, damaged) = (self.folder.join(name), self.folder.join("damaged.ffr"));
        let repaired = self.folder.join("repaired.ffr");
        let count = self.samples.len() as u64;
        // A flipped bit, a page of zeros across two records, and a truncated end.
        let (flipped, zeroed, last) = (count / 16, count / 2, count - 1);
        let lost = [flipped, zeroed, zeroed + 1, last];
        let work = || {
            let length = std::fs::copy(&whole, &damaged)?;
            let dataset = anyrec::open(&whole)?;
            let file = FileOptions::new().read(true).write(true).open(&damaged)?;
            let mut byte = [0];
            let place = dataset.position(flipped)?.frame + 1000;
            file.read_exact_at(&mut byte, place)?;
            file.write_all_at(&[byte[0] ^ 4], place)?;
            file.write_all_at(&[0; 4096], dataset.position(zeroed + 1)?.frame - 2048)?;
            file.set_len(length - 5000)?;
            Ok(Done { records: lost.len() as u64, bytes: length - 5000, value: () })
        };
        let told = |(): &()| Ok("a bit flipped, zeros, end cut".to_owned());
        self.ledger.step("damage", "damaged.ffr", work, told)?;

        let work = || {
            let repair = anyrec::repair(&damaged, &repaired, &RepairOptions::default(), &mut |_| {})?;
            Ok(Done { records: repair.written.records, bytes: repair.report.bytes, value: repair })
        };
        let kept: Vec<Sha> = (0..)
            .zip(&self.digests)
            .filter_map(|(number, digest)| (!lost.contains(&number)).then_some(*digest))
            .collect();
        let judge = |_: &anyrec::Repair| {
            ensure!(
                anyrec::verify(&repaired, &OpenOptions::default())?.is_sound(),
                "the repaired file is damaged"
            );
            check_records(&repaired, &kept)?;
            Ok(format!("all but {} damaged, now sound", lost.len()))
        };
        let repair = self.ledger.step("repair", "damaged.ffr to repaired.ffr", work, judge)?;
        let report = repair.report;
        let mut lines: Vec<String> = report.damage.iter().map(crate::cmd::repair::describe).collect();
        lines.push(crate::cmd::repair::sum(&report));
        Ok(lines)
    }

    /// Loads one shuffled epoch of the pixels, and one of the JPEGs, decoded.
    pub fn load(&mut self) -> Result<()> {
        let count = self.samples.len() as u64;
        let order = Permutation::new(count, SEED);
        let numbers: Vec<u64> = (0..count).map(|index| order.get(index)).collect();
        let samples = &self.samples;
        let work = |name: &str, check: &(dyn Fn(&[u8], &Sample) -> Result<()> + Sync)| {
            let dataset = anyrec::open(self.folder.join(name))?;
            ensure!(dataset.len()? == count, "{name} has {} records, not {count}", dataset.len()?);
            let (mut bytes, mut seen) = (0, vec![false; samples.len()]);
            for numbers in numbers.chunks(BATCH) {
                let batch = dataset.read_batch(numbers)?;
                bytes += batch.buffer().len() as u64;
                let records: Vec<(&[u8], u64)> = batch.iter().zip(numbers.iter().copied()).collect();
                records.par_iter().try_for_each(|(record, number)| {
                    let sample = usize::try_from(*number).ok().and_then(|number| samples.get(number));
                    check(record, sample.context("an unknown record was read")?)
                })?;
                for slot in numbers.iter().filter_map(|number| usize::try_from(*number).ok()) {
                    seen.get_mut(slot).into_iter().for_each(|seen| *seen = true);
                }
            }
            ensure!(seen.iter().all(|seen| *seen), "a record was not read");
            Ok(Done { records: count, bytes, value: () })
        };
        let same = |record: &[u8], sample: &Sample| {
            ensure!(record == sample.pixels, "a record came back different");
            Ok(())
        };
        let told = |(): &()| Ok(format!("batches of {BATCH}, each record once"));
        self.ledger.step("load", "pictures.ffr, shuffled", || work(FILES[1].1, &same), told)?;
        let told = |(): &()| Ok("every label and image correct".to_owned());
        self.ledger.step("load", "photos.rec, shuffled, decoded", || work(PHOTOS, &check_photo), told)
    }
}

/// The write options for the image files.
fn options_for(id: &str) -> WriteOptions {
    // The files are only for demonstration and need not survive a power loss.
    let options = WriteOptions::default().with_durability(Durability::Process);
    match id {
        "grail" => options.with(grail::WriteOptions::default().with_transformer(Transform::zstd())),
        "idx" => {
            options.with(idx::WriteOptions::default().with_item_shape([SIDE, SIDE, CHANNELS].map(u64::from)))
        }
        _ => options,
    }
}

fn write_file<'a>(
    ledger: &mut Ledger,
    folder: &Path,
    id: &str,
    name: &str,
    options: &WriteOptions,
    records: impl Iterator<Item = (&'a [u8], Tags)>,
) -> Result<()> {
    let format = format::by_id(id).context("a format is missing")?;
    let work = || {
        let mut writer = format.create(&folder.join(name), options)?;
        for (record, tags) in records {
            writer.append(record, &tags)?;
        }
        let written = writer.finish()?;
        Ok(Done { records: written.records, bytes: written.bytes, value: () })
    };
    ledger.step("write", name, work, |()| Ok(format.name().to_owned()))
}

/// Encodes an image as a JPEG, with its number as key and its class as label.
fn photo((number, sample): (usize, &Sample)) -> Result<(Vec<u8>, Tags)> {
    let picture = Picture::new(SIDE, SIDE, Channels::Rgb, Samples::Eight(sample.pixels.clone()))?;
    let label = Label::Scalar(sample.class.into());
    let tags = Tags::none().with_key(Key::Int(number as i128)).with_label(label);
    Ok((encode_jpeg(&picture, QUALITY)?, tags))
}

/// Checks that a record has the label of a sample and its image, within the precision of a JPEG.
fn check_photo(record: &[u8], sample: &Sample) -> Result<()> {
    let tags = guess_tags(record);
    ensure!(tags.label == Some(Label::Scalar(sample.class.into())), "a label came back different");
    let jpeg = record.get(tags.header_length..).unwrap_or_default();
    let picture = decode(jpeg, &DecodeOptions::default())?;
    let Samples::Eight(pixels) = picture.samples() else { anyhow::bail!("an image has 16 bits per channel") };
    ensure!(pixels.len() == sample.pixels.len(), "an image came back with another size");
    let off: u64 =
        pixels.iter().zip(&sample.pixels).map(|(one, other)| u64::from(one.abs_diff(*other))).sum();
    ensure!(off / (pixels.len() as u64) < 12, "an image came back different");
    Ok(())
}

/// Checks that a file has the records with these digests, in this order.
fn check_records(path: &Path, expected: &[Sha]) -> Result<()> {
    let dataset = Dataset::open(&[path], &OpenOptions::default())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut found = 0;
    for (number, record) in dataset.iter().enumerate() {
        let digest: Sha = Sha256::digest(&record?).into();
        ensure!(expected.get(number) == Some(&digest), "record {number} of {name} differs");
        found += 1;
    }
    ensure!(
        found == expected.len(),
        "{name} has {} instead of {}",
        term::plural(found as u64, "record"),
        expected.len()
    );
    Ok(())
}

fn file_digest(path: &Path) -> Result<Sha> {
    Ok(Sha256::digest(std::fs::read(path)?).into())
}
