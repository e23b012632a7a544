//! Union for tests: numbers as records, with a gate and a count in front of them.

use anyrec::RecordSet;
use anyrec::Tags;
use anyrec::{Batch, Error, Result};
use std::sync::{Condvar, Mutex};

/// Record `n` is the number `n`.
pub struct Numbers {
    count: u64,
    /// Bytes a record is filled up to.
    size: usize,
    gate: Mutex<Gate>,
    moved: Condvar,
}

#[derive(Default)]
struct Gate {
    /// Batches that may be read; `None` for all.
    open_for: Option<u64>,
    begun: u64,
    delivered: u64,
    /// How many batches were begun beyond those delivered, at most.
    most_ahead: u64,
    /// The first batches that fail.
    failing: u64,
    /// For each batch: its first record, and how many threads may read it.
    threads: Vec<(u64, usize)>,
}

impl Numbers {
    pub fn new(count: u64) -> Self {
        Numbers { count, size: 8, gate: Mutex::default(), moved: Condvar::new() }
    }

    /// With records of that size.
    pub fn of_size(count: u64, size: usize) -> Self {
        Numbers { size, ..Self::new(count) }
    }

    /// Lets so many batches be read in all; others wait until more may.
    pub fn open_for(&self, batches: u64) {
        self.gate.lock().unwrap().open_for = Some(batches);
        self.moved.notify_all();
    }

    /// Makes the next batches fail.
    pub fn fail(&self, batches: u64) {
        self.gate.lock().unwrap().failing = batches;
    }

    /// Waits until so many batches were begun.
    pub fn wait_until_begun(&self, batches: u64) {
        let gate = self.gate.lock().unwrap();
        drop(self.moved.wait_while(gate, |gate| gate.begun < batches).unwrap());
    }

    /// Says that the consumer got a batch.
    pub fn delivered(&self) {
        self.gate.lock().unwrap().delivered += 1;
    }

    /// How many threads each batch may be read by, in the order of the records.
    pub fn threads(&self) -> Vec<usize> {
        let mut threads = self.gate.lock().unwrap().threads.clone();
        threads.sort_unstable();
        threads.into_iter().map(|(_, threads)| threads).collect()
    }

    pub fn most_ahead(&self) -> u64 {
        self.gate.lock().unwrap().most_ahead
    }
}

/// The number in a record.
pub fn number_in(record: &[u8]) -> u64 {
    u64::from_le_bytes(record[..8].try_into().unwrap())
}

impl RecordSet for Numbers {
    fn count(&self) -> Result<u64> {
        Ok(self.count)
    }

    fn fill(&self, numbers: &[u64], batch: &mut Batch, threads: usize) -> Result<()> {
        let mut gate = self.gate.lock().unwrap();
        gate.begun += 1;
        gate.threads.push((numbers[0], threads));
        gate.most_ahead = gate.most_ahead.max(gate.begun - gate.delivered);
        let mine = gate.begun;
        self.moved.notify_all();
        let mut gate = self.moved.wait_while(gate, |gate| gate.open_for.is_some_and(|n| mine > n)).unwrap();
        if gate.failing > 0 {
            gate.failing -= 1;
            return Err(Error::corrupt("this batch fails").in_file("numbers").in_record(numbers[0]));
        }
        drop(gate);
        batch.clear();
        for number in numbers {
            assert!(*number < self.count);
            let mut record = number.to_le_bytes().to_vec();
            record.resize(self.size, 0);
            batch.push(&record);
        }
        Ok(())
    }

    fn tags(&self, _number: u64, _record: &[u8]) -> Result<Tags> {
        Ok(Tags::none())
    }
}
