//! Mixtures: shares as the weights say, every part gone through before it begins again.

use super::{loader, rest, settings, threads};
use anyrec::loader::{Plan, Shuffle};
use anyrec::{RecordSet, Union};
use std::sync::Arc;

const PARTS: [(u64, f64); 3] = [(100, 7.0), (37, 2.0), (1000, 1.0)];

fn samples(plan: &Plan, epoch: u64) -> Vec<u64> {
    let (mut all, mut consumed) = (Vec::new(), 0);
    while plan.steps(consumed) > 0 {
        plan.fill(epoch, consumed, &mut all);
        consumed = plan.after(consumed);
    }
    all
}

fn part_of(number: u64) -> usize {
    [100, 137].iter().filter(|start| number >= **start).count()
}

#[test]
fn parts_have_their_shares_and_are_used_up_in_turn() {
    for shuffle in [Shuffle::None, Shuffle::Full, Shuffle::Blocks { block: 8, window: 4 }] {
        let plan = Plan::mix(&PARTS, 16384 * 5 / 2, &settings(64, shuffle, 3)).unwrap();
        // Two epochs are five rounds: shares are then exact.
        let both = [samples(&plan, 0), samples(&plan, 1)].concat();
        let mut uses = [Vec::new(), Vec::new(), Vec::new()];
        both.iter().for_each(|&number| uses[part_of(number)].push(number));
        for (uses, share) in uses.iter().zip([0.7, 0.2, 0.1]) {
            assert!((uses.len() as f64 / both.len() as f64 - share).abs() < 1.0 / 16384.0);
        }
        // A part's records all come once before one comes a second time, all the way.
        for (uses, (count, _)) in uses.iter().zip(PARTS) {
            for pass in uses.chunks(count as usize) {
                let mut numbers = pass.to_vec();
                numbers.sort_unstable();
                numbers.dedup();
                assert_eq!(numbers.len(), pass.len(), "{shuffle:?}");
            }
        }
        if shuffle == Shuffle::None {
            assert!(uses[1].iter().zip(0u64..).all(|(number, at)| *number == 100 + at % 37));
        } else {
            assert_ne!(uses[1][..37], uses[1][37..74]);
        }
    }
}

#[test]
fn a_part_by_itself_is_gone_through_pass_by_pass() {
    let plan = Plan::mix(&[(11, 1.0)], 4400, &settings(4, Shuffle::Full, 5)).unwrap();
    let all = samples(&plan, 0);
    for pass in all.chunks(11) {
        let mut numbers = pass.to_vec();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..11).collect::<Vec<u64>>());
    }
    assert_ne!(all[..11], all[11..22]);
}

#[test]
fn a_mixture_is_spread_as_evenly_as_its_weights_let_it() {
    let plan = Plan::mix(&[(10, 1.0), (10, 1.0), (10, 2.0)], 16384, &settings(1, Shuffle::None, 0)).unwrap();
    for four in samples(&plan, 0).chunks(4) {
        let mut parts: Vec<u64> = four.iter().map(|number| number / 10).collect();
        parts.sort_unstable();
        assert_eq!(parts, [0, 1, 2, 2]);
    }
}

#[test]
fn a_mixture_resumes_like_anything_else() {
    let options = settings(50, Shuffle::Full, 11);
    let plan = Plan::mix(&PARTS, 1000, &options).unwrap();
    let mut whole = loader(&plan, threads(3));
    let all: Vec<_> = (0..3).map(|_| rest(&mut whole)).collect();
    assert_ne!(all[0], all[1]);
    for epoch in 0..3 {
        for step in 0..20 {
            let mut first = loader(&plan, threads(1));
            first.set_epoch(epoch);
            first.set_step(step);
            let state = first.state();
            let mut again = loader(&plan, threads(2));
            again.resume(&state).unwrap();
            assert_eq!(rest(&mut again), all[epoch as usize][step as usize..]);
        }
    }
}

#[test]
fn weights_without_sense_are_refused() {
    let options = settings(1, Shuffle::None, 0);
    for parts in
        [&[][..], &[(0, 1.0)], &[(1, 0.0)], &[(1, f64::NAN)], &[(1, f64::INFINITY)], &[(1, 1.0), (1, -1.0)]]
    {
        assert!(Plan::mix(parts, 10, &options).is_err(), "{parts:?}");
    }
    let error = Plan::mix(&[(1, 1.0), (1, 1e-9)], 10, &options).unwrap_err();
    assert!(error.to_string().contains("less than 1/16384"), "{error}");
}

#[test]
fn sources_are_numbered_through() {
    let parts: Vec<Arc<dyn RecordSet>> = vec![
        Arc::new(super::Numbers::new(3)),
        Arc::new(super::Numbers::new(0)),
        Arc::new(super::Numbers::new(4)),
    ];
    let sources = Union::new(parts).unwrap();
    assert_eq!(sources.count().unwrap(), 7);
    let sources: &dyn RecordSet = &sources;
    let batch = sources.read_batch(&[6, 0, 3, 2, 6], 1).unwrap();
    let numbers: Vec<u64> = batch.iter().map(super::source::number_in).collect();
    assert_eq!(numbers, [3, 0, 0, 2, 3]);
    let error = sources.read_batch(&[7], 1).unwrap_err();
    assert_eq!(error.to_string(), "there is no record 7: the file has 7 records, numbers 0 to 6");
}
