//! Loaders at work: order, resume, memory, threads.

use super::{Numbers, loader, ranked, rest, settings, threads};
use anyrec::RecordSet;
use anyrec::loader::{Loader, LoaderOptions, Plan, Shuffle};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

#[test]
fn batches_are_the_same_for_all_numbers_of_threads_and_ranks() {
    let options = settings(6, Shuffle::Full, 4);
    let plain = Plan::new(200, &options).unwrap();
    let mut order = Vec::new();
    for step in 0..34 {
        plain.fill(0, step * 6, &mut order);
    }
    for world in [1u64, 2, 3, 8] {
        for count in [1, 2, 7] {
            let ranks: Vec<Vec<Vec<u64>>> = (0..world)
                .map(|rank| {
                    let plan = Plan::new(200, &ranked(&options, rank, world)).unwrap();
                    rest(&mut loader(&plan, threads(count)))
                })
                .collect();
            let steps = ranks[0].len();
            let mut all: Vec<u64> =
                (0..steps).flat_map(|step| ranks.iter().flat_map(move |rank| rank[step].clone())).collect();
            all.truncate(200);
            assert_eq!(all, order, "{world} ranks, {count} threads");
        }
    }
}

#[test]
fn resume_is_exact_at_every_step_also_twice() {
    for drop_last in [false, true] {
        let mut options = settings(7, Shuffle::Blocks { block: 5, window: 3 }, 8);
        options.drop_last = drop_last;
        let plan = Plan::new(60, &options).unwrap();
        let mut whole = loader(&plan, threads(2));
        let epochs: Vec<_> = (0..3).map(|_| rest(&mut whole)).collect();
        let steps = epochs[0].len();
        for step in 0..=steps {
            let mut first = loader(&plan, threads(2));
            for expected in &epochs[0][..step] {
                assert_eq!(first.next_batch().unwrap().unwrap().indices, *expected);
            }
            // Saved, resumed, gone on for a step, saved and resumed again.
            let mut second = loader(&plan, threads(3));
            second.resume(&first.state()).unwrap();
            // After the last batch of an epoch, the state is the beginning of the next.
            let expected = if step == steps { &epochs[1][..] } else { &epochs[0][step..] };
            assert_eq!(second.steps_left(), expected.len() as u64);
            let mut all = vec![second.next_batch().unwrap().unwrap().indices];
            let mut third = loader(&plan, threads(1));
            third.resume(&second.state()).unwrap();
            if expected.len() > 1 {
                all.extend(rest(&mut third));
            }
            assert_eq!(all, expected);
            assert_eq!(rest(&mut third), epochs[if step == steps { 2 } else { 1 }]);
        }
    }
}

#[test]
fn a_run_on_eight_ranks_goes_on_with_six_and_then_two() {
    let options = settings(4, Shuffle::Full, 21);
    let (mut seen, mut state) = (Vec::new(), None);
    for (world, steps) in [(8u64, 3), (6, 2), (2, usize::MAX)] {
        let mut after = None;
        for rank in 0..world {
            let plan = Plan::new(301, &ranked(&options, rank, world)).unwrap();
            let mut loader = loader(&plan, threads(2));
            if let Some(state) = &state {
                loader.resume(state).unwrap();
            }
            for _ in 0..steps {
                if loader.steps_left() == 0 {
                    break;
                }
                let loaded = loader.next_batch().unwrap().unwrap();
                let real = loaded.indices.len() - loaded.padding as usize;
                seen.extend_from_slice(&loaded.indices[..real]);
            }
            after = Some(loader.state());
        }
        state = after;
    }
    let state = state.unwrap();
    assert_eq!((state.epoch, state.consumed), (1, 0));
    seen.sort_unstable();
    assert_eq!(seen, (0..301).collect::<Vec<_>>());
}

#[test]
fn iterations_follow_one_another() {
    let plan = Plan::new(20, &settings(5, Shuffle::Full, 2)).unwrap();
    let mut whole = loader(&plan, threads(2));
    let epochs: Vec<_> = (0..4).map(|_| rest(&mut whole)).collect();

    let mut loader = loader(&plan, threads(2));
    // Left early: the next iteration is the next epoch, but the state is still that of this one.
    loader.batches().take(2).for_each(|batch| drop(batch.unwrap()));
    let broken_off = loader.state();
    assert_eq!((broken_off.epoch, broken_off.consumed), (0, 10));
    loader.begin();
    assert_eq!(rest(&mut loader), epochs[1]);
    assert_eq!((loader.epoch(), loader.step()), (2, 0));
    // Resumed: what is left of it, then the next one.
    loader.resume(&broken_off).unwrap();
    loader.set_epoch(0);
    loader.begin();
    assert_eq!(rest(&mut loader), epochs[0][2..]);
    loader.begin();
    assert_eq!(rest(&mut loader), epochs[1]);
    // Set: from the beginning, or from the step.
    loader.set_epoch(3);
    loader.set_step(1);
    loader.begin();
    assert_eq!(loader.next_batch().unwrap().unwrap().indices, epochs[3][1]);
    loader.set_epoch(3);
    loader.begin();
    assert_eq!(rest(&mut loader), epochs[3]);
}

#[test]
fn a_state_of_other_data_or_another_order_is_refused() {
    let state = |count, shuffle| Plan::new(count, &settings(2, shuffle, 0)).unwrap().state(0, 4);
    let plan = Plan::new(10, &settings(3, Shuffle::Full, 5)).unwrap();
    let mut loader = loader(&plan, threads(1));
    let error = loader.resume(&state(11, Shuffle::Full)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the state does not match this data: expected 11 records shuffled, found 10 records shuffled, after 4 samples"
    );
    assert!(loader.resume(&state(10, Shuffle::None)).is_err());
    loader.resume(&state(10, Shuffle::Full)).unwrap();
    assert_eq!((loader.plan().seed(), loader.state().consumed), (0, 4));
}

#[test]
fn an_epoch_without_records_has_no_batches() {
    let plan = Plan::new(0, &settings(3, Shuffle::Full, 5)).unwrap();
    let mut loader = loader(&plan, threads(2));
    assert_eq!(rest(&mut loader), Vec::<Vec<u64>>::new());
    assert_eq!(rest(&mut loader), Vec::<Vec<u64>>::new());
    assert_eq!(loader.epoch(), 2);
}

/// A loader over a source that the test keeps hold of.
fn watched(source: &Arc<Numbers>, batch: u64, options: LoaderOptions) -> Loader {
    let plan = Plan::new(source.count().unwrap(), &settings(batch, Shuffle::Full, 1)).unwrap();
    Loader::new(source.clone(), plan, options).unwrap()
}

#[test]
fn no_more_batches_are_read_ahead_than_allowed() {
    let source = Arc::new(Numbers::new(400));
    let mut options = threads(3);
    options.prefetch = 5;
    let mut loader = watched(&source, 4, options);
    for step in 1..=100 {
        assert!(loader.next_batch().unwrap().is_some());
        source.wait_until_begun((step + 5).min(100));
        source.delivered();
    }
    // The source hears of a batch that was handed over a moment after the threads do.
    assert!((5..=6).contains(&source.most_ahead()), "{}", source.most_ahead());
}

#[test]
fn no_more_bytes_are_read_ahead_than_allowed() {
    let source = Arc::new(Numbers::of_size(400, 1000));
    let mut options = threads(2);
    (options.prefetch, options.max_bytes) = (100, 12_000);
    let mut loader = watched(&source, 4, options);
    for step in 1..=100 {
        assert!(loader.next_batch().unwrap().is_some());
        source.wait_until_begun((step + 3).min(100));
        source.delivered();
    }
    assert!((3..=4).contains(&source.most_ahead()), "{}", source.most_ahead());
}

#[test]
fn a_batch_over_the_bytes_allowed_still_comes() {
    let mut options = threads(2);
    options.max_bytes = 0;
    let plan = Plan::new(40, &settings(4, Shuffle::None, 0)).unwrap();
    assert_eq!(rest(&mut loader(&plan, options)).len(), 10);
}

#[test]
fn no_thread_starts_before_the_first_batch_and_none_is_left_after() {
    // Every thread of a loader holds its source.
    let source = Arc::new(Numbers::new(100));
    let mut loader = watched(&source, 5, threads(4));
    assert_eq!(Arc::strong_count(&source), 2);
    source.open_for(1);
    assert!(loader.next_batch().unwrap().is_some());
    // All four are inside a read; closing waits for that and leaves none of them.
    source.wait_until_begun(5);
    std::thread::scope(|scope| {
        scope.spawn(|| source.open_for(100));
        loader.close();
    });
    assert_eq!(Arc::strong_count(&source), 2);
    let second = loader.next_batch().unwrap().unwrap();
    assert_eq!(second.indices, watched(&source, 5, threads(1)).batches().nth(1).unwrap().unwrap().indices);
    drop(loader);
    assert_eq!(Arc::strong_count(&source), 1);
}

#[test]
fn waiting_ends_in_time_and_changes_nothing() {
    let source = Arc::new(Numbers::new(10));
    let mut loader = watched(&source, 5, threads(1));
    source.open_for(0);
    for _ in 0..3 {
        assert!(matches!(loader.next_batch_within(Duration::ZERO).unwrap(), Poll::Pending));
    }
    assert_eq!(loader.step(), 0);
    source.open_for(2);
    assert_eq!(rest(&mut loader).len(), 2);
}

#[test]
fn recycled_memory_is_used_again() {
    let plan = Plan::new(100, &settings(5, Shuffle::Full, 1)).unwrap();
    let mut options = threads(1);
    options.prefetch = 1;
    let mut loader = loader(&plan, options);
    let mut places = std::collections::HashSet::new();
    while let Some(loaded) = loader.next_batch().unwrap() {
        places.insert(loaded.records.buffer().as_ptr() as usize);
        loader.pool().give(loaded.records);
    }
    // One with the consumer, one being read, one on its way.
    assert!(places.len() <= 3, "{places:?}");
}
