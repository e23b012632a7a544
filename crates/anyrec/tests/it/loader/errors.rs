//! Records that cannot be read or decoded.

use super::{Numbers, loader, settings, threads};
use anyrec::loader::{Decode, Loader, LoaderOptions, OnError, Plan, PlanOptions, Sample, Shuffle};
use anyrec::{Error, ErrorKind};
use anyrec::{Label, Tags};
use std::path::Path;
use std::sync::Arc;

const COUNT: u64 = 40;
const DAMAGED: [u64; 4] = [3, 17, 18, 39];

fn record(number: u64) -> Vec<u8> {
    vec![number as u8; 50]
}

/// A file of which four records' checksums do not hold.
fn damaged_file(path: &Path) {
    let mut writer = anyrec::create(path).unwrap();
    for number in 0..COUNT {
        writer.append(&record(number), &Tags::none()).unwrap();
    }
    writer.finish().unwrap();
    let dataset = anyrec::open(path).unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    for number in DAMAGED {
        bytes[dataset.position(number).unwrap().frame as usize + 7] ^= 0x10;
    }
    std::fs::write(path, bytes).unwrap();
}

fn damaged_loader(path: &Path, plan: &PlanOptions, on_error: OnError, threads: usize) -> Loader {
    if !path.exists() {
        damaged_file(path);
    }
    let mut options = LoaderOptions::default();
    (options.threads, options.on_error) = (threads, on_error);
    let dataset = Arc::new(anyrec::open(path).unwrap());
    Loader::new(dataset, Plan::new(COUNT, plan).unwrap(), options).unwrap()
}

#[test]
fn a_damaged_record_is_raised_and_the_loader_stays_before_its_batch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.ffr");
    let mut loader = damaged_loader(&path, &settings(8, Shuffle::None, 0), OnError::Raise, 2);
    for _ in 0..3 {
        let error = loader.next_batch().unwrap_err();
        assert_eq!((error.kind(), error.record(), loader.step()), (ErrorKind::Corrupt, Some(3), 0));
        assert!(error.file().unwrap().ends_with("damaged.ffr"));
    }
    assert_eq!(loader.failed(), 0);
    loader.set_step(1);
    assert_eq!(loader.next_batch().unwrap().unwrap().indices, (8..16).collect::<Vec<_>>());
}

#[test]
fn damaged_records_are_skipped_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    for threads in [1, 2, 7] {
        let path = folder.path().join("damaged.ffr");
        let mut loader = damaged_loader(&path, &settings(8, Shuffle::Full, 6), OnError::Skip, threads);
        let batches: Vec<_> = loader.batches().collect::<anyrec::Result<_>>().unwrap();
        assert_eq!(batches.len(), 5);
        let mut seen = Vec::new();
        for loaded in batches {
            let expected: Vec<Vec<u8>> = loaded.indices.iter().map(|number| record(*number)).collect();
            assert!(loaded.records.iter().eq(&expected));
            seen.extend(loaded.indices);
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..COUNT).filter(|number| !DAMAGED.contains(number)).collect::<Vec<_>>());
        let mut failed: Vec<u64> = loader.failures().iter().map(|failure| failure.record).collect();
        failed.sort_unstable();
        assert_eq!((loader.failed(), failed), (4, DAMAGED.to_vec()));
        assert!(loader.failures()[0].to_string().contains("checksum mismatched"));
    }
}

#[test]
fn damaged_records_are_replaced_by_the_next_good_one_of_the_batch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.ffr");
    let mut loader = damaged_loader(&path, &settings(10, Shuffle::None, 0), OnError::Replace, 3);
    let batches: Vec<_> = loader.batches().collect::<anyrec::Result<_>>().unwrap();
    let numbers: Vec<Vec<u64>> = batches.iter().map(|loaded| loaded.indices.clone()).collect();
    assert_eq!(numbers[0], [0, 1, 2, 4, 4, 5, 6, 7, 8, 9]);
    assert_eq!(numbers[1], [10, 11, 12, 13, 14, 15, 16, 19, 19, 19]);
    assert_eq!(numbers[3], [30, 31, 32, 33, 34, 35, 36, 37, 38, 30]);
    assert_eq!(batches[1].records.get(7).unwrap(), record(19));
    assert_eq!(loader.failed(), 4);
}

#[test]
fn a_batch_without_a_good_record_is_raised_whatever_was_chosen() {
    let folder = tempfile::tempdir().unwrap();
    for on_error in [OnError::Skip, OnError::Replace] {
        let path = folder.path().join("damaged.ffr");
        let mut loader = damaged_loader(&path, &settings(1, Shuffle::None, 0), on_error, 1);
        loader.set_step(3);
        assert_eq!(loader.next_batch().unwrap_err().record(), Some(3));
    }
}

#[test]
fn a_failure_that_passes_is_over_when_it_is_tried_again() {
    let source = Arc::new(Numbers::new(10));
    let plan = Plan::new(10, &settings(5, Shuffle::None, 0)).unwrap();
    let mut loader = Loader::new(source.clone(), plan, threads(1)).unwrap();
    source.fail(2);
    assert_eq!(loader.next_batch().unwrap_err().to_string(), "numbers: this batch fails (record 0)");
    source.fail(0);
    assert_eq!(loader.next_batch().unwrap().unwrap().indices, [0, 1, 2, 3, 4]);
}

/// Makes a byte of every record.
struct ToByte<F>(F);

impl<F: Fn(u64, &[u8]) -> anyrec::Result<u8> + Send + Sync> Decode for ToByte<F> {
    fn size(&self) -> usize {
        1
    }

    fn decode(&self, sample: &Sample, payload: &[u8], into: &mut [u8]) -> anyrec::Result<()> {
        into[0] = self.0(sample.record, payload)?;
        Ok(())
    }
}

#[test]
fn what_cannot_be_decoded_may_be_replaced_or_blank() {
    let plan = Plan::new(10, &settings(5, Shuffle::None, 0)).unwrap();
    for (on_error, expected) in [(OnError::Replace, [0, 2, 6, 6, 8]), (OnError::Blank, [0, 2, 0, 6, 8])] {
        let mut options = threads(2);
        options.on_error = on_error;
        options.decode = Some(Arc::new(ToByte(|record, payload: &[u8]| match record {
            2 => Err(Error::corrupt("not a picture")),
            _ => Ok(payload[0] * 2),
        })));
        let mut loader = loader(&plan, options);
        let batch = loader.next_batch().unwrap().unwrap();
        assert_eq!((batch.records.buffer(), loader.failed()), (&expected[..], 1), "{on_error:?}");
    }
}

#[test]
fn a_sample_is_told_its_place_whatever_the_ranks() {
    struct Place;
    impl Decode for Place {
        fn size(&self) -> usize {
            2
        }
        fn decode(&self, sample: &Sample, _: &[u8], into: &mut [u8]) -> anyrec::Result<()> {
            into.copy_from_slice(&[sample.place as u8, sample.record as u8]);
            Ok(())
        }
    }
    let told = |world: u64| {
        let mut told = Vec::new();
        for rank in 0..world {
            let mut settings = settings(4 / world, Shuffle::Full, 3);
            (settings.rank, settings.world) = (rank, world);
            let plan = Plan::new(12, &settings).unwrap();
            let mut options = threads(2);
            options.decode = Some(Arc::new(Place));
            for batch in loader(&plan, options).batches() {
                told.extend(batch.unwrap().records.iter().map(<[u8]>::to_vec));
            }
        }
        told.sort();
        told
    };
    assert_eq!(told(1), told(2));
    assert_eq!(told(1).iter().map(|sample| sample[0]).collect::<Vec<_>>(), (0..12).collect::<Vec<u8>>());
}

#[test]
fn records_are_decoded_and_what_cannot_be_counts_as_failed() {
    let plan = Plan::new(10, &settings(5, Shuffle::None, 0)).unwrap();
    let mut options = threads(2);
    options.on_error = OnError::Skip;
    options.decode = Some(Arc::new(ToByte(|record, payload: &[u8]| match record {
        2 => Err(Error::corrupt("not a picture")),
        _ => Ok(payload[0] * 2),
    })));
    let mut loader = loader(&plan, options);
    let batches: Vec<_> = loader.batches().collect::<anyrec::Result<_>>().unwrap();
    assert_eq!((batches[0].records.buffer(), batches[0].indices.len()), (&[0u8, 2, 6, 8][..], 4));
    assert_eq!(loader.failures()[0].to_string(), "epoch 0, record 2: numbers: not a picture (record 2)");
}

#[test]
fn a_panic_in_the_callers_decoder_is_an_error() {
    let plan = Plan::new(10, &settings(5, Shuffle::None, 0)).unwrap();
    let mut options = threads(2);
    options.decode = Some(Arc::new(ToByte(|_, _: &[u8]| panic!("a bug in the caller's decoder"))));
    let error = loader(&plan, options).next_batch().unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
}

#[test]
fn only_the_first_failures_are_kept_but_all_are_counted() {
    let plan = Plan::new(1000, &settings(100, Shuffle::None, 0)).unwrap();
    let mut options = threads(2);
    options.on_error = OnError::Skip;
    options.decode = Some(Arc::new(ToByte(|record, _: &[u8]| match record % 2 {
        0 => Ok(0),
        _ => Err(Error::corrupt("odd")),
    })));
    let mut loader = loader(&plan, options);
    assert_eq!(loader.batches().filter(|batch| batch.as_ref().unwrap().indices.len() == 50).count(), 10);
    assert_eq!((loader.failed(), loader.failures().len()), (500, 100));
    assert!(loader.failures().iter().zip(0u64..).all(|(failure, at)| failure.record == 2 * at + 1));
}

#[test]
fn labels_come_with_the_batch_if_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("labelled.rec");
    let mut writer = anyrec::create(&path).unwrap();
    for number in 0..6 {
        let label = Label::Scalar(f64::from(number % 3));
        writer.append(b"a record", &Tags::none().with_label(label)).unwrap();
    }
    writer.finish().unwrap();
    let dataset = Arc::new(anyrec::open(&path).unwrap());
    let mut options = threads(1);
    options.labels = true;
    let plan = Plan::new(6, &settings(4, Shuffle::None, 0)).unwrap();
    let loaded = Loader::new(dataset, plan, options).unwrap().next_batch().unwrap().unwrap();
    let expected = [0.0, 1.0, 2.0, 0.0].map(|label| Some(Label::Scalar(label)));
    assert_eq!(loaded.labels.unwrap(), expected);
}

#[test]
fn an_error_that_comes_again_and_again_ends_the_batches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.ffr");
    let mut loader = damaged_loader(&path, &settings(10, Shuffle::None, 0), OnError::Raise, 2);
    let batches: Vec<_> = loader.batches().collect();
    assert_eq!(batches.len(), 1);
    assert_eq!(batches[0].as_ref().unwrap_err().record(), Some(3));
    // Asking again tries the same batch again.
    assert_eq!(loader.next_batch().unwrap_err().record(), Some(3));
}
