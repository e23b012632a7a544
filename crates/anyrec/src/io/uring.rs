//! Many concurrent reads through io_uring.

use super::positional::Job;
use crate::threads::fork::Lock;
use io_uring::{IoUring, opcode, types};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum number of reads in flight.
const DEPTH: u32 = 128;

/// Maximum size of one read; the rest is requested when it completes.
const MOST: usize = 1 << 30;

/// How many times in a row the kernel may be busy, and how long to wait each time, before the reads
/// are done without a ring.
const TRIES: u32 = 1000;
const PAUSE: Duration = Duration::from_micros(100);

/// Idle rings. A ring serves one call at a time, in the process that created it.
#[derive(Default)]
pub(super) struct Rings {
    free: Lock<Vec<IoUring>>,
    /// The kernel does not allow rings (containers often block them), or they stopped working.
    refused: AtomicBool,
}

/// Why reads ended early.
enum Stop {
    /// The read at that offset failed.
    Read(u64, io::Error),
    /// The ring accepts no more reads.
    Ring,
}

impl Rings {
    /// Performs all reads; `None` if io_uring is unavailable: the caller must read another way.
    pub(super) fn read(&self, file: &File, jobs: &mut [Job<'_>]) -> Option<Result<(), (u64, io::Error)>> {
        if self.refused.load(Ordering::Relaxed) {
            return None;
        }
        let unused = self.free.lock().pop();
        let ring = unused.map_or_else(|| IoUring::new(DEPTH), Ok);
        let outcome = ring.map_err(|_| Stop::Ring).and_then(|mut ring| match read(&mut ring, file, jobs) {
            Err(Stop::Ring) => Err(Stop::Ring),
            outcome => {
                self.free.lock().push(ring);
                outcome
            }
        });
        match outcome {
            Ok(()) => Some(Ok(())),
            Err(Stop::Read(offset, error)) => Some(Err((offset, error))),
            Err(Stop::Ring) => {
                self.refused.store(true, Ordering::Relaxed);
                None
            }
        }
    }
}

impl std::fmt::Debug for Rings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rings")
    }
}

fn read(ring: &mut IoUring, file: &File, jobs: &mut [Job<'_>]) -> Result<(), Stop> {
    let descriptor = types::Fd(file.as_raw_fd());
    let mut done = vec![0usize; jobs.len()];
    // Jobs to (re)start, the next one last.
    let mut waiting: Vec<usize> = (0..jobs.len()).rev().filter(|&at| needed(jobs, at) > 0).collect();
    let mut in_flight = 0u32;
    let mut failure = None;
    let mut tries_left = TRIES;
    loop {
        while in_flight < DEPTH
            && failure.is_none()
            && let Some(at) = waiting.pop()
        {
            let (Some(job), Some(&done)) = (jobs.get_mut(at), done.get(at)) else { continue };
            let offset = job.offset + done as u64;
            let rest = job.buffer.get_mut(done..).unwrap_or_default();
            // At most 2^30.
            #[allow(clippy::cast_possible_truncation)]
            let size = rest.len().min(MOST) as u32;
            let entry = opcode::Read::new(descriptor, rest.as_mut_ptr(), size)
                .offset(offset)
                .build()
                .user_data(at as u64);
            // SAFETY: the buffer outlives the read, because this function does not return while any
            // read is in flight, and no two jobs share memory.
            if unsafe { ring.submission().push(&entry) }.is_err() {
                waiting.push(at);
                break;
            }
            in_flight += 1;
        }
        if in_flight == 0 {
            return failure.map_or(Ok(()), |(offset, error)| Err(Stop::Read(offset, error)));
        }
        if let Err(error) = ring.submit_and_wait(1) {
            tries_left = match error.raw_os_error() {
                Some(libc::EINTR) => tries_left,
                Some(libc::EAGAIN | libc::EBUSY) => tries_left - 1,
                _ => 0,
            };
            if tries_left == 0 {
                // The kernel writes into the buffers of the reads it accepted, so these must
                // complete first. The others were never accepted, and are dropped with the ring.
                while in_flight as usize > ring.submission().len() {
                    std::thread::sleep(PAUSE);
                    in_flight -= u32::try_from(ring.completion().count()).unwrap_or(in_flight);
                }
                return Err(Stop::Ring);
            }
            std::thread::sleep(PAUSE);
        }
        for entry in ring.completion() {
            in_flight -= 1;
            tries_left = TRIES;
            let at = usize::try_from(entry.user_data()).unwrap_or(usize::MAX);
            let (Some(job), Some(done)) = (jobs.get(at), done.get_mut(at)) else { continue };
            let place = job.offset + *done as u64;
            match usize::try_from(entry.result()) {
                Ok(0) => failure = failure.or(Some((place, io::ErrorKind::UnexpectedEof.into()))),
                Ok(got) => {
                    *done += got;
                    if *done < job.needed {
                        waiting.push(at);
                    }
                }
                Err(_) if matches!(-entry.result(), libc::EINTR | libc::EAGAIN) => waiting.push(at),
                Err(_) => {
                    failure = failure.or(Some((place, io::Error::from_raw_os_error(-entry.result()))));
                }
            }
        }
    }
}

fn needed(jobs: &[Job<'_>], at: usize) -> usize {
    jobs.get(at).map_or(0, |job| job.needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens to two reads through a ring whose descriptor was replaced by another file's.
    #[test]
    fn a_ring_that_takes_no_reads_is_given_up_and_the_caller_reads_without_it() {
        let Ok(ring) = IoUring::new(DEPTH) else {
            eprintln!("SKIPPED: this machine has no io_uring");
            return;
        };
        let null = File::open("/dev/null").unwrap();
        // SAFETY: both descriptors are open; the ring is only used again to see it fail.
        assert!(unsafe { libc::dup2(null.as_raw_fd(), ring.as_raw_fd()) } >= 0);
        let rings = Rings::default();
        rings.free.lock().push(ring);
        let file = File::open("/dev/zero").unwrap();
        let mut buffers = [[1; 8]; 2];
        let mut jobs: Vec<Job<'_>> =
            buffers.iter_mut().map(|buffer| Job { offset: 0, needed: buffer.len(), buffer }).collect();
        assert!(rings.read(&file, &mut jobs).is_none());
        assert!(rings.read(&file, &mut jobs).is_none(), "refused from then on");
    }
}
