//! A set for tests: numbers as records, with a gate and a count in front of them.

use anyrec::format::{Format, Info, RecordReader};
use anyrec::io::{RangeRead, Source};
use anyrec::{Error, Location, Place, Plain, Position, RecordSet, Result};
use std::borrow::Cow;
use std::sync::{Arc, Condvar, Mutex};

/// Record `n` is the number `n`.
#[derive(Debug)]
pub struct Numbers {
    gated: Arc<Gated>,
    source: Arc<dyn Source>,
}

/// Where the numbers come from. A batch is read by one call.
#[derive(Debug)]
struct Gated {
    count: u64,
    /// Bytes a record is filled up to.
    size: u64,
    gate: Mutex<Gate>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Gate {
    /// Batches that may be read; `None` for all.
    open_for: Option<u64>,
    begun: u64,
    delivered: u64,
    /// How many batches were begun beyond those delivered, at most.
    most_ahead: u64,
    /// The first batches that fail.
    failing: u64,
}

impl Numbers {
    pub fn new(count: u64) -> Self {
        Self::of_size(count, 8)
    }

    /// With records of that size.
    pub fn of_size(count: u64, size: u64) -> Self {
        let gated = Arc::new(Gated { count, size, gate: Mutex::default(), moved: Condvar::new() });
        Numbers { source: gated.clone(), gated }
    }

    /// Lets so many batches be read in all; others wait until more may.
    pub fn open_for(&self, batches: u64) {
        self.gated.gate.lock().unwrap().open_for = Some(batches);
        self.gated.moved.notify_all();
    }

    /// Makes the next batches fail.
    pub fn fail(&self, batches: u64) {
        self.gated.gate.lock().unwrap().failing = batches;
    }

    /// Waits until so many batches were begun.
    pub fn wait_until_begun(&self, batches: u64) {
        let gate = self.gated.gate.lock().unwrap();
        drop(self.gated.moved.wait_while(gate, |gate| gate.begun < batches).unwrap());
    }

    /// Says that the consumer got a batch.
    pub fn delivered(&self) {
        self.gated.gate.lock().unwrap().delivered += 1;
    }

    pub fn most_ahead(&self) -> u64 {
        self.gated.gate.lock().unwrap().most_ahead
    }
}

/// The number in a record.
pub fn number_in(record: &[u8]) -> u64 {
    u64::from_le_bytes(record[..8].try_into().unwrap())
}

impl RecordSet for Numbers {
    fn count(&self) -> Result<u64> {
        Ok(self.gated.count)
    }

    fn find(&self, number: u64) -> Result<Place<'_>> {
        Ok(Place::new(self, number))
    }
}

impl RecordReader for Numbers {
    fn format(&self) -> &'static dyn Format {
        anyrec::format::by_id("ffrecord").unwrap()
    }

    fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    fn info(&self) -> Result<Info> {
        Ok(Info::default())
    }

    fn count(&self) -> Result<u64> {
        Ok(self.gated.count)
    }

    fn locate(&self, index: u64) -> Result<Location> {
        assert!(index < self.gated.count);
        let range = index * self.gated.size..(index + 1) * self.gated.size;
        Ok(Location::plain(Position::of_frame(range.start), Plain::new(range, None)))
    }

    fn decode<'a>(&self, _: u64, _: &Location, frame: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        Ok(Cow::Borrowed(frame))
    }
}

impl Source for Gated {
    fn len(&self) -> u64 {
        self.count * self.size
    }

    fn name(&self) -> &str {
        "numbers"
    }

    fn read_ranges(&self, reads: &mut [RangeRead<'_>]) -> Result<()> {
        let mut gate = self.gate.lock().unwrap();
        gate.begun += 1;
        gate.most_ahead = gate.most_ahead.max(gate.begun - gate.delivered);
        let mine = gate.begun;
        self.moved.notify_all();
        let mut gate = self.moved.wait_while(gate, |gate| gate.open_for.is_some_and(|n| mine > n)).unwrap();
        if gate.failing > 0 {
            gate.failing -= 1;
            let first = reads[0].offset / self.size;
            return Err(Error::corrupt("this batch fails").in_file("numbers").in_record(first));
        }
        drop(gate);
        for read in reads {
            read.buffer.fill(0);
            read.buffer[..8].copy_from_slice(&(read.offset / self.size).to_le_bytes());
        }
        Ok(())
    }
}
