//! Plans and loaders: the same batches whatever reads them, and exact resume.

mod errors;
mod mixing;
mod plans;
mod running;
mod source;
mod stats;

use anyrec::loader::{Loader, LoaderOptions, Plan, PlanOptions, Shuffle};
use source::Numbers;
use std::sync::Arc;

/// A plan's settings.
fn settings(batch_size: u64, shuffle: Shuffle, seed: u64) -> PlanOptions {
    let mut options = PlanOptions::default();
    (options.batch_size, options.shuffle, options.seed) = (batch_size, shuffle, seed);
    options
}

/// The same settings for one of several ranks.
fn ranked(options: &PlanOptions, rank: u64, world: u64) -> PlanOptions {
    let mut options = options.clone();
    (options.rank, options.world) = (rank, world);
    options
}

/// A loader's settings.
fn threads(threads: usize) -> LoaderOptions {
    let mut options = LoaderOptions::default();
    options.threads = threads;
    options
}

/// A loader over as many numbers as the plan wants.
fn loader(plan: &Plan, options: LoaderOptions) -> Loader {
    Loader::new(Arc::new(Numbers::new(plan.records())), plan.clone(), options).unwrap()
}

/// What is left of the epoch, batch by batch; every record must be the one its number says.
fn rest(loader: &mut Loader) -> Vec<Vec<u64>> {
    let mut batches = Vec::new();
    while let Some(loaded) = loader.next_batch().unwrap() {
        let records: Vec<u64> = loaded.records.iter().map(source::number_in).collect();
        assert_eq!(records, loaded.indices);
        batches.push(loaded.indices);
    }
    batches
}
