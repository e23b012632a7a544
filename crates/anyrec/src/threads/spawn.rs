//! A thread that ends with its owner.

use super::fork::generation;
use crate::base::{Error, Result};
use std::thread::{Builder, JoinHandle};

/// A thread of this process. Dropping it waits for the thread to end, except in a forked child,
/// which has the handle but not the thread.
#[derive(Debug)]
pub(crate) struct Thread {
    handle: Option<JoinHandle<()>>,
    process: u32,
}

/// Starts a thread. The caller must make sure that the work ends, because dropping the [`Thread`]
/// waits for it.
///
/// # Errors
/// The operating system's error if no more threads can be created.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<Thread> {
    let started = Builder::new().name(name.to_owned()).spawn(work);
    let handle = started.map_err(|error| Error::io("cannot start a thread", error))?;
    Ok(Thread { handle: Some(handle), process: generation() })
}

impl Thread {
    /// Detaches the thread.
    pub(super) fn detach(mut self) {
        self.handle = None;
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        match self.process == generation() {
            // A panic was already reported to the caller that waited for the thread's work.
            true => drop(handle.join()),
            false => std::mem::forget(handle),
        }
    }
}
