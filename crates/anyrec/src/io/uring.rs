//! Many reads at once by io_uring.

use super::positional::Job;
use io_uring::{IoUring, opcode, types};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

/// Reads in flight.
const DEPTH: u32 = 128;

/// The most that one read is asked for; the rest is asked for when that has come.
const MOST: usize = 1 << 30;

/// Rings that are not in use just now. A ring serves one call at a time, and belongs to the process
/// that made it.
#[derive(Default)]
pub(super) struct Rings {
    free: Mutex<Vec<(u32, IoUring)>>,
    /// The system does not let us have any (containers often do not).
    refused: AtomicBool,
}

impl Rings {
    /// Does all the reads; `None` where there is no io_uring.
    pub(super) fn read(&self, file: &File, jobs: &mut [Job<'_>]) -> Option<Result<(), (u64, io::Error)>> {
        let mut ring = self.take()?;
        let outcome = read(&mut ring, file, jobs);
        if let Ok(mut free) = self.free.try_lock() {
            free.push((crate::process::generation(), ring));
        }
        Some(outcome)
    }

    fn take(&self) -> Option<IoUring> {
        if self.refused.load(Ordering::Relaxed) {
            return None;
        }
        let process = crate::process::generation();
        let mut free = match self.free.try_lock() {
            Ok(free) => free,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            // Another thread is at it; or was, when this process was forked.
            Err(TryLockError::WouldBlock) => return self.make(),
        };
        while let Some((owner, ring)) = free.pop() {
            if owner == process {
                return Some(ring);
            }
            // The parent's ring is not ours to use; closing our copy leaves the parent's alone.
            drop(ring);
        }
        drop(free);
        self.make()
    }

    fn make(&self) -> Option<IoUring> {
        let made = IoUring::new(DEPTH).ok();
        if made.is_none() {
            self.refused.store(true, Ordering::Relaxed);
        }
        made
    }
}

impl std::fmt::Debug for Rings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rings")
    }
}

fn read(ring: &mut IoUring, file: &File, jobs: &mut [Job<'_>]) -> Result<(), (u64, io::Error)> {
    let descriptor = types::Fd(file.as_raw_fd());
    let mut done = vec![0usize; jobs.len()];
    // Jobs to be (re)started, the next one last.
    let mut waiting: Vec<usize> = (0..jobs.len()).rev().filter(|&at| needed(jobs, at) > 0).collect();
    let mut in_flight = 0u32;
    let mut failure = None;
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
            // SAFETY: the buffer outlives the read, as this function does not return while any is
            // in flight, and no two jobs share memory.
            if unsafe { ring.submission().push(&entry) }.is_err() {
                waiting.push(at);
                break;
            }
            in_flight += 1;
        }
        if in_flight == 0 {
            return failure.map_or(Ok(()), Err);
        }
        match ring.submit_and_wait(1) {
            Ok(_) => {}
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {}
            Err(error) => {
                // What is in flight writes into the buffers: it must come to its end first.
                failure = failure.or(Some((0, error)));
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
        }
        for entry in ring.completion() {
            in_flight -= 1;
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
