//! What a loader did, and how long it took.

use std::time::Duration;

/// What a loader did in an epoch, or in all ([`Loader::stats`](super::Loader::stats)).
///
/// It counts what was returned to the consumer, not what was prefetched and discarded. Times are
/// measured once per batch.
///
/// If `waited` is a large part of the time of an epoch, the consumer waits for its data. If
/// `decoding` is most of `loading`, more cores help; otherwise reading is slow. If `ready` is close
/// to the prefetch limit times `batches`, the loader waits for the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Number of batches.
    pub batches: u64,
    /// Number of records in them.
    pub records: u64,
    /// Size of the batches in bytes, after decoding.
    pub bytes: u64,
    /// Number of records that could not be read or decoded and were skipped, replaced or blanked.
    pub failed: u64,
    /// How long the consumer waited for batches, including those that ended in an error.
    pub waited: Duration,
    /// How long the threads worked on the batches, in total over the threads.
    pub loading: Duration,
    /// How much of `loading` was spent decoding. Records of a mapped file are read while they are
    /// decoded.
    pub decoding: Duration,
    /// Sum over all batches of the number of batches that were ready when one was requested;
    /// divided by `batches`, this is the average queue depth.
    pub ready: u64,
}

impl Stats {
    /// Adds another count.
    pub(super) fn add(&mut self, other: &Stats) {
        let Stats { batches, records, bytes, failed, waited, loading, decoding, ready } = other;
        let counts = [
            (&mut self.batches, batches),
            (&mut self.records, records),
            (&mut self.bytes, bytes),
            (&mut self.failed, failed),
            (&mut self.ready, ready),
        ];
        for (sum, count) in counts {
            *sum = sum.saturating_add(*count);
        }
        let times =
            [(&mut self.waited, waited), (&mut self.loading, loading), (&mut self.decoding, decoding)];
        for (sum, time) in times {
            *sum = sum.saturating_add(*time);
        }
    }
}
