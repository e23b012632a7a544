//! State that stays usable in a forked child.
//!
//! A child has a copy of its parent's memory but only the thread that forked. A lock that another
//! thread held at that moment stays locked in the child forever, and what it guards may be half
//! updated. So nothing here waits for a lock of another process: [`Lock`] starts over with an empty
//! value in a child, and [`Once`] has no lock at all.

use once_cell::race::OnceBox;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A value that is created once and then shared. Threads that arrive at the same time may both
/// create it; the first result is kept. It never waits, so it is safe in a forked child.
pub(crate) struct Once<T>(OnceBox<T>);

impl<T> Once<T> {
    pub(crate) const fn new() -> Self {
        Once(OnceBox::new())
    }

    pub(crate) fn of(value: T) -> Self {
        Once(OnceBox::with_value(Box::new(value)))
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get()
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(|| Box::new(make()))
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl<T: Clone> Clone for Once<T> {
    fn clone(&self) -> Self {
        self.get().cloned().map_or_else(Self::new, Self::of)
    }
}

static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCHED: AtomicBool = AtomicBool::new(false);

/// A number that differs between this process and any child it forks. Whatever belongs to one
/// process (threads, rings, open writers) stores it.
pub fn generation() -> u32 {
    // Without a lock: a child forked while another thread was in here must not wait for it. Threads
    // that arrive at the same time both register the handler, which then counts by two.
    if !WATCHED.load(Ordering::Acquire) {
        // SAFETY: the handler may run in a child of a process with threads; it only increments an
        // atomic.
        unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
        WATCHED.store(true, Ordering::Release);
    }
    FORKS.load(Ordering::Relaxed)
}

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A value that every process has its own copy of, created on first use.
pub(crate) struct PerProcess<T> {
    current: AtomicPtr<Owned<T>>,
}

struct Owned<T> {
    generation: u32,
    value: T,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        PerProcess { current: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// This process's value, created if necessary; `None` if it cannot be created.
    #[inline]
    pub(crate) fn get(&self, make: impl FnOnce() -> Option<T>) -> Option<&T> {
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: the pointer is null or comes from `Box::into_raw` in `make`, and its target is
        // freed only when `self` is dropped.
        match unsafe { current.as_ref() } {
            Some(owned) if owned.generation == generation() => Some(&owned.value),
            _ => self.make(current, make()?),
        }
    }

    #[cold]
    fn make(&self, before: *mut Owned<T>, value: T) -> Option<&T> {
        let generation = generation();
        let made = Box::into_raw(Box::new(Owned { generation, value }));
        // What the parent created is leaked: its threads do not exist here, and its locks may be
        // held.
        let stays = match self.current.compare_exchange(before, made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made,
            Err(other) => {
                // SAFETY: it was never shared, because another thread of this process was faster.
                drop(unsafe { Box::from_raw(made) });
                other
            }
        };
        // SAFETY: as in `get`.
        unsafe { stays.as_ref() }.map(|owned| &owned.value)
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let current = *self.current.get_mut();
        // SAFETY: as in `get`; `self` is not shared any more.
        if unsafe { current.as_ref() }.is_some_and(|owned| owned.generation == generation()) {
            // SAFETY: it comes from `Box::into_raw`, and is dropped only here.
            drop(unsafe { Box::from_raw(current) });
        }
    }
}

// SAFETY: it owns the value as a `Box` does; threads share it by reference only.
unsafe impl<T: Send> Send for PerProcess<T> {}
// SAFETY: as above; one thread may drop what another created.
unsafe impl<T: Send + Sync> Sync for PerProcess<T> {}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A mutex for optional state (caches, spare memory, an "in progress" flag). In a forked child it
/// is unlocked, and what it guards is empty.
pub(crate) struct Lock<T> {
    mutex: PerProcess<Mutex<T>>,
}

impl<T: Default> Lock<T> {
    pub(crate) const fn new() -> Self {
        Lock { mutex: PerProcess::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        loop {
            if let Some(mutex) = self.mutex.get(|| Some(Mutex::default())) {
                // A thread that panicked while holding it left a valid or empty cache behind.
                return mutex.lock().unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl<T: Default> Default for Lock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// The exit status of a forked child that runs this.
    fn in_child(work: impl FnOnce() -> bool) -> i32 {
        // SAFETY: the child touches nothing that another thread may hold, which is what this tests.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let failed = !work();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(failed)) };
        }
        let mut status = 1;
        // SAFETY: waits for the child just created.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        status
    }

    #[test]
    fn a_forked_child_has_another_number() {
        let before = generation();
        assert_eq!(in_child(|| generation() != before), 0);
        assert_eq!(generation(), before);
    }

    #[test]
    fn a_lock_that_another_thread_holds_is_open_and_empty_in_a_child() {
        static LOCK: Lock<Vec<u8>> = Lock::new();
        LOCK.lock().push(1);
        let (held, is_held) = channel();
        let (done, is_done) = channel::<()>();
        let holder = std::thread::spawn(move || {
            let _guard = LOCK.lock();
            held.send(()).unwrap();
            let _ = is_done.recv();
        });
        is_held.recv().unwrap();
        assert_eq!(in_child(|| LOCK.lock().is_empty()), 0);
        drop(done);
        holder.join().unwrap();
        assert_eq!(*LOCK.lock(), [1]);
    }
}
