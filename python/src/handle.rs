//! An object that one thread at a time uses, and that belongs to one process.

use crate::errors::{closed, raised};
use crate::progress::unlocked;
use anyrec::format::RecordWriter;
use anyrec::{Error, Result};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

/// A reader or writer behind a lock. The lock is acquired with the GIL released, so that a thread
/// that waits for it never blocks the thread that holds it.
pub struct Handle<T: Send> {
    /// Its name in messages.
    what: &'static str,
    process: u32,
    /// Whether a forked child may continue to use it. A writer must not be used, because its file
    /// is the parent's.
    shared_by_forks: bool,
    /// The thread that uses it, so that a callback into the same object is an error, not a
    /// deadlock.
    holder: AtomicUsize,
    slot: Mutex<Option<T>>,
}

thread_local! {
    static MARK: u8 = const { 0 };
}

/// An id for this thread, unique among running threads.
fn this_thread() -> usize {
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

impl<T: Send> Handle<T> {
    /// Wraps a reader, which a forked child may use too.
    pub fn reader(what: &'static str, value: T) -> Self {
        Self::new(what, true, value)
    }

    /// Wraps a writer, which only this process may use.
    pub fn writer(what: &'static str, value: T) -> Self {
        Self::new(what, false, value)
    }

    fn new(what: &'static str, shared_by_forks: bool, value: T) -> Self {
        Handle {
            what,
            process: anyrec::generation(),
            shared_by_forks,
            holder: AtomicUsize::new(0),
            slot: Mutex::new(Some(value)),
        }
    }

    /// Whether it belongs only to the process that this one was forked from.
    pub fn is_anothers(&self) -> bool {
        anyrec::generation() != self.process && !self.shared_by_forks
    }

    /// Works with the value.
    pub fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> Result<R> + Send,
    ) -> PyResult<R> {
        self.with_slot(py, |slot| slot.as_mut().map(work))?.ok_or_else(|| closed(self.what))?.map_err(raised)
    }

    /// Works with the value without releasing the GIL, if no other thread uses it. For work that is
    /// quick and touches no Python object.
    pub fn at_once<R>(&self, work: impl FnOnce(&mut T) -> Option<R>) -> Option<R> {
        if self.is_anothers() {
            return None;
        }
        self.slot.try_lock().ok()?.as_mut().and_then(work)
    }

    /// Works with the slot itself: `None` means closed.
    pub fn with_slot<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Option<T>) -> R + Send,
    ) -> PyResult<R> {
        if self.holder.load(Ordering::Relaxed) == this_thread() {
            return Err(raised(Error::invalid(format!("{} was called from its own callback", self.what))));
        }
        if self.is_anothers() {
            return Err(raised(Error::invalid(format!(
                "{} belongs to another process and cannot be used after a fork",
                self.what
            ))));
        }
        let forked = anyrec::generation() != self.process;
        unlocked(py, || {
            let mut slot = match (forked, self.slot.try_lock()) {
                (_, Ok(slot)) => slot,
                // The thread that held it is not in this process, so it would never be released.
                (true, Err(TryLockError::WouldBlock)) => return None,
                _ => self.slot.lock().unwrap_or_else(PoisonError::into_inner),
            };
            self.holder.store(this_thread(), Ordering::Relaxed);
            let _release = Release(&self.holder);
            Some(work(&mut slot))
        })?
        .ok_or_else(|| {
            raised(Error::invalid(format!("{} was in use when this process was forked", self.what)))
        })
    }

    /// Whether it is closed. Another process's handle is reported as open, because its state is
    /// unknown here.
    pub fn is_closed(&self, py: Python<'_>) -> PyResult<bool> {
        if self.is_anothers() {
            return Ok(self.slot.try_lock().is_ok_and(|slot| slot.is_none()));
        }
        self.with_slot(py, |slot| slot.is_none())
    }

    /// Drops the value. Closing twice is allowed. Another process's value is left alone, so that a
    /// child that leaves a `with` block by an exception ends with that exception.
    pub fn drop_value(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_anothers() {
            return Ok(());
        }
        self.with_slot(py, |slot| drop(slot.take()))
    }
}

/// Larger records are not copied while other Python threads wait.
const SMALL: usize = 16 << 10;

impl<T: Send + RecordWriter> Handle<T> {
    /// Appends a record of this size. One that only goes into memory is written before another
    /// thread can run.
    pub fn append<R: Send>(
        &self,
        py: Python<'_>,
        size: usize,
        append: impl Fn(&mut T) -> Result<R> + Send,
    ) -> PyResult<R> {
        let is_quick = |writer: &T| size <= SMALL && writer.has_room(size);
        match self.at_once(|writer| is_quick(writer).then(|| append(writer))) {
            Some(appended) => appended.map_err(raised),
            None => self.with(py, append),
        }
    }
}

/// Clears the holder, even if the work panics.
struct Release<'a>(&'a AtomicUsize);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl<T: Send> Drop for Handle<T> {
    fn drop(&mut self) {
        let anothers = self.is_anothers();
        let slot = self.slot.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(value) = slot.take() else { return };
        if anothers {
            // Dropping it would write to the parent's file or wait for the parent's threads.
            std::mem::forget(value);
            return;
        }
        // Threads of the value may need the interpreter to finish.
        Python::try_attach(|py| py.detach(|| drop(value)));
    }
}
