//! How long work takes, and how much of it was done.

use crate::options::{Failure, Options};
use std::fmt;
use std::time::{Duration, Instant};

/// What was done in which time.
#[derive(Debug, Default)]
pub struct Done {
    seconds: f64,
    bytes: u64,
    records: u64,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Done { seconds, bytes, records } = self;
        write!(f, "{{\"seconds\": {seconds}, \"bytes\": {bytes}, \"records\": {records}}}")
    }
}

/// Goes through the steps again and again: whole passes until `minimum=` is over, no step after
/// `maximum=`. A step says how many bytes and records it did.
pub fn repeat<T>(
    options: &Options,
    steps: &[T],
    mut step: impl FnMut(&T) -> Result<(u64, u64), Failure>,
) -> Result<Done, Failure> {
    let (minimum, maximum) = (options.seconds("minimum")?, options.seconds("maximum")?);
    let mut done = Done::default();
    if steps.is_empty() {
        return Err(Failure::new("there is nothing to do"));
    }
    let start = Instant::now();
    let mut elapsed = Duration::ZERO;
    while elapsed <= minimum && elapsed < maximum {
        for one in steps {
            let (bytes, records) = step(one)?;
            done.bytes += bytes;
            done.records += records;
            elapsed = start.elapsed();
            if elapsed >= maximum {
                break;
            }
        }
    }
    done.seconds = elapsed.as_secs_f64();
    Ok(done)
}

/// Does all of the work once.
pub fn once(work: impl FnOnce() -> Result<(u64, u64), Failure>) -> Result<Done, Failure> {
    let start = Instant::now();
    let (bytes, records) = work()?;
    Ok(Done { seconds: start.elapsed().as_secs_f64(), bytes, records })
}
