//! Plans alone: every record once an epoch, in an order that only seed and epoch choose.

use super::{ranked, settings};
use anyrec::loader::{Plan, PlanOptions, Shuffle};
use proptest::prelude::*;

fn shuffles() -> impl Strategy<Value = Shuffle> {
    prop_oneof![
        Just(Shuffle::None),
        Just(Shuffle::Full),
        (1u64..20, 1u64..6).prop_map(|(block, window)| Shuffle::Blocks { block, window }),
    ]
}

/// The global order of an epoch, as one rank with batches of one gets it.
fn order(count: u64, options: &PlanOptions, epoch: u64) -> Vec<u64> {
    let mut single = ranked(options, 0, 1);
    (single.batch_size, single.drop_last) = (1, false);
    let plan = Plan::new(count, &single).unwrap();
    let mut all = Vec::new();
    (0..count).for_each(|consumed| assert_eq!(plan.fill(epoch, consumed, &mut all), 0));
    all
}

/// What all ranks get in one step, rank after rank, without what only fills up; and the number of
/// samples consumed after it.
fn step(count: u64, options: &PlanOptions, world: u64, epoch: u64, consumed: u64) -> (Vec<u64>, u64) {
    let (mut all, mut sizes, mut after) = (Vec::new(), Vec::new(), Vec::new());
    for rank in 0..world {
        let plan = Plan::new(count, &ranked(options, rank, world)).unwrap();
        let mut batch = Vec::new();
        let padding = plan.fill(epoch, consumed, &mut batch) as usize;
        sizes.push(batch.len());
        after.push(plan.after(consumed));
        all.extend_from_slice(&batch[..batch.len() - padding]);
    }
    assert!(sizes.iter().all(|size| *size == sizes[0]), "ranks have batches of different sizes: {sizes:?}");
    assert!(after.iter().all(|consumed| *consumed == after[0]));
    (all, after[0])
}

proptest! {
    #[test]
    fn an_epoch_has_every_record_once(
        count in 0u64..500, shuffle in shuffles(), seed: u64, epoch in 0u64..4,
    ) {
        let mut all = order(count, &settings(1, shuffle, seed), epoch);
        all.sort_unstable();
        prop_assert_eq!(all, (0..count).collect::<Vec<_>>());
    }

    #[test]
    fn ranks_share_the_one_order_evenly(
        count in 0u64..300, shuffle in shuffles(), seed: u64, epoch in 0u64..3,
        batch in 1u64..20, world in 1u64..9, drop_last: bool,
    ) {
        let mut options = settings(batch, shuffle, seed);
        options.drop_last = drop_last;
        let plan = Plan::new(count, &ranked(&options, 0, world)).unwrap();
        let (mut all, mut consumed) = (Vec::new(), 0);
        for left in (1..=plan.steps(0)).rev() {
            prop_assert_eq!(plan.steps(consumed), left);
            let (part, after) = step(count, &options, world, epoch, consumed);
            all.extend(part);
            consumed = after;
        }
        prop_assert_eq!(plan.steps(consumed), 0);
        let dropped = if drop_last { count % (batch * world) } else { 0 };
        let mut expected = order(count, &options, epoch);
        expected.truncate((count - dropped) as usize);
        prop_assert_eq!(all, expected);
    }

    #[test]
    fn the_order_goes_on_when_ranks_and_batches_change(
        count in 1u64..400, shuffle in shuffles(), seed: u64, drop_last: bool,
        changes in proptest::collection::vec((1u64..9, 1u64..8, 0u64..8), 1..5), last in 1u64..9,
    ) {
        let (mut all, mut consumed) = (Vec::new(), 0);
        let ends = [(last, 3, u64::MAX)];
        for (world, batch, steps) in changes.into_iter().chain(ends) {
            let mut options = settings(batch, shuffle, seed);
            options.drop_last = drop_last;
            let plan = Plan::new(count, &ranked(&options, 0, world)).unwrap();
            for _ in 0..plan.steps(consumed).min(steps) {
                let (part, after) = step(count, &options, world, 5, consumed);
                all.extend(part);
                consumed = after;
            }
        }
        let mut expected = order(count, &settings(1, shuffle, seed), 5);
        prop_assert!(drop_last || all.len() == expected.len());
        prop_assert!(expected.len() - all.len() < (3 * last) as usize);
        expected.truncate(all.len());
        prop_assert_eq!(all, expected);
    }
}

#[test]
fn epochs_and_seeds_have_orders_of_their_own() {
    for shuffle in [Shuffle::Full, Shuffle::Blocks { block: 16, window: 4 }] {
        let one = order(1000, &settings(1, shuffle, 1), 0);
        assert_ne!(one, order(1000, &settings(1, shuffle, 1), 1));
        assert_ne!(one, order(1000, &settings(1, shuffle, 2), 0));
        assert_eq!(one, order(1000, &settings(1, shuffle, 1), 0));
    }
}

#[test]
fn the_order_of_a_seed_stays_what_it_is() {
    // A checkpoint outlives a release: these numbers may not change without saying so.
    let head = |shuffle| order(1000, &settings(1, shuffle, 42), 3)[..8].to_vec();
    assert_eq!(head(Shuffle::Full), FULL);
    assert_eq!(head(Shuffle::Blocks { block: 10, window: 5 }), BLOCKS);
}

const FULL: [u64; 8] = [918, 7, 535, 470, 325, 464, 851, 264];
const BLOCKS: [u64; 8] = [261, 396, 913, 918, 271, 75, 392, 272];

#[test]
fn block_shuffle_keeps_a_window_together_and_moves_its_boundaries() {
    let (block, window, count) = (50u64, 4u64, 1000u64);
    let shuffle = Shuffle::Blocks { block, window };
    let mut boundaries = std::collections::HashSet::new();
    for epoch in 0..20 {
        let all = order(count, &settings(1, shuffle, 9), epoch);
        for part in all.chunks((block * window) as usize) {
            // A window is made of as many stretches of consecutive records as it has blocks.
            let mut part = part.to_vec();
            part.sort_unstable();
            let starts: Vec<u64> = part
                .iter()
                .copied()
                .filter(|n| part.binary_search(&((n + count - 1) % count)).is_err())
                .collect();
            assert!(starts.len() <= window as usize, "{starts:?}");
            boundaries.extend(starts.iter().map(|start| start % block));
        }
    }
    assert!(boundaries.len() > 10, "{boundaries:?}");
}

#[test]
fn a_trillion_records_take_no_more_than_ten() {
    let mut options = settings(256, Shuffle::Full, 1);
    options.world = 8;
    let plan = Plan::new(1_000_000_000_000, &options).unwrap();
    let mut batch = Vec::new();
    assert_eq!(plan.fill(3, 999_999_999_000, &mut batch), 0);
    assert_eq!(batch.len(), 125);
    assert!(batch.iter().all(|number| *number < 1_000_000_000_000));
}

#[test]
fn settings_without_sense_are_refused() {
    let message = |options: &PlanOptions| Plan::new(10, options).unwrap_err().to_string();
    assert_eq!(
        message(&ranked(&settings(1, Shuffle::None, 0), 2, 2)),
        "there is no rank 2 among 2: ranks are numbered from 0"
    );
    assert!(message(&settings(0, Shuffle::None, 0)).contains("at least one record"));
    assert!(
        message(&settings(1, Shuffle::Blocks { block: 0, window: 1 }, 0)).contains("at least one record")
    );
    assert!(message(&settings(u64::MAX, Shuffle::None, 0)).contains("at most 2^32 - 1 records"));
}
