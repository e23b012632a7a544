//! What a loader counts and measures.

use super::{Numbers, loader, settings, threads};
use anyrec::Result;
use anyrec::loader::{Decode, Loader, Plan, Sample, Shuffle, Stats};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

#[test]
fn counts_are_those_of_the_epoch_and_of_all_epochs() {
    let plan = Plan::new(10, &settings(4, Shuffle::Full, 1)).unwrap();
    let mut loader = loader(&plan, threads(2));
    let counts = |stats: Stats| (stats.batches, stats.records, stats.bytes, stats.failed);
    assert_eq!((loader.stats(), loader.epoch_stats()), (Stats::default(), Stats::default()));
    assert_eq!(loader.batches().count(), 3);
    // Between two epochs, the one that ended still counts.
    assert_eq!(counts(loader.epoch_stats()), (3, 10, 80, 0));
    loader.begin();
    loader.next_batch().unwrap();
    assert_eq!(counts(loader.epoch_stats()), (1, 4, 32, 0));
    assert_eq!(counts(loader.stats()), (4, 14, 112, 0));
    // The same epoch again is another one.
    loader.set_epoch(1);
    loader.next_batch().unwrap();
    assert_eq!(counts(loader.epoch_stats()), (1, 4, 32, 0));
    assert_eq!(counts(loader.stats()), (5, 18, 144, 0));
}

#[test]
fn a_slow_source_shows_up_as_waiting() {
    let plan = Plan::new(100, &settings(10, Shuffle::None, 0)).unwrap();
    let mut fast = loader(&plan, threads(1));
    assert_eq!(fast.batches().count(), 10);
    let usual = fast.stats().waited;

    let source = Arc::new(Numbers::new(100));
    source.open_for(0);
    let mut slow = Loader::new(source.clone(), plan, threads(1)).unwrap();
    assert_eq!(slow.next_batch_within(Duration::ZERO).unwrap(), Poll::Pending);
    source.wait_until_begun(1);
    let long = usual.saturating_mul(10) + Duration::from_millis(1);
    assert_eq!(slow.next_batch_within(long).unwrap(), Poll::Pending);
    assert!(slow.stats().waited >= long, "{:?} is less than {long:?}", slow.stats());
    assert_eq!(slow.stats().batches, 0);
    source.open_for(u64::MAX);
    assert_eq!(slow.next_batch().unwrap().unwrap().indices.len(), 10);
    assert!(slow.epoch_stats().waited >= long && slow.epoch_stats().loading >= long);
    assert_eq!(slow.epoch_stats().decoding, Duration::ZERO);
}

#[test]
fn batches_that_are_ready_are_the_queue() {
    let source = Arc::new(Numbers::new(100));
    let mut options = threads(1);
    options.prefetch = 3;
    let plan = Plan::new(100, &settings(10, Shuffle::None, 0)).unwrap();
    let mut loader = Loader::new(source.clone(), plan, options).unwrap();
    assert_eq!(loader.queued(), 0);
    loader.next_batch().unwrap();
    while loader.queued() < 3 {
        std::thread::yield_now();
    }
    loader.next_batch().unwrap();
    assert!(loader.stats().ready >= 3, "{:?}", loader.stats());
    loader.close();
    assert_eq!(loader.queued(), 0);
}

/// Takes this long for every record.
struct Slow(Duration);

impl Decode for Slow {
    fn size(&self) -> usize {
        1
    }

    fn decode(&self, _: &Sample, _: &[u8], into: &mut [u8]) -> Result<()> {
        std::thread::sleep(self.0);
        into.fill(0);
        Ok(())
    }
}

#[test]
fn decoding_is_a_part_of_loading() {
    let time = Duration::from_millis(1);
    let mut options = threads(2);
    options.decode = Some(Arc::new(Slow(time)));
    let plan = Plan::new(10, &settings(5, Shuffle::None, 0)).unwrap();
    let mut loader = loader(&plan, options);
    assert_eq!(loader.batches().count(), 2);
    let stats = loader.stats();
    assert!(stats.decoding >= time * 10 && stats.loading >= stats.decoding, "{stats:?}");
    assert_eq!((stats.bytes, stats.records), (10, 10));
}

#[test]
fn skipped_batches_are_not_read_and_the_state_is_after_them() {
    let plan = Plan::new(50, &settings(5, Shuffle::Full, 3)).unwrap();
    let mut whole = loader(&plan, threads(2));
    let expected: Vec<_> = whole.batches().map(|batch| batch.unwrap().indices).collect();
    let mut skipping = loader(&plan, threads(2));
    assert_eq!(skipping.next_batch().unwrap().unwrap().indices, expected[0]);
    skipping.skip(6);
    assert_eq!((skipping.step(), skipping.state().consumed, skipping.stats().batches), (7, 35, 1));
    assert_eq!(skipping.next_batch().unwrap().unwrap().indices, expected[7]);
    skipping.skip(100);
    assert!(skipping.next_batch().unwrap().is_none());
    assert_eq!(skipping.epoch(), 1);
}
