//! Long work that can be interrupted: it periodically asks whether to continue.
//!
//! A caller that may want to stop the work, such as Python on Ctrl-C, provides a check. Only work
//! on the caller's own thread runs the check. Threads of the library do parts of the work, and the
//! caller's thread waits for them.

use crate::base::Result;
use std::cell::Cell;

/// Decides whether to continue. An error ends the work and is returned to its caller. It is called
/// often, so it should look at a clock before it does anything slow.
pub type Check = fn() -> Result<()>;

thread_local! {
    static CHECK: Cell<Option<Check>> = const { Cell::new(None) };
}

/// The check runs once per this many records.
const OFTEN: usize = 1024;

/// Runs work that asks `check` whether to continue.
///
/// ```
/// # fn main() -> anyrec::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("three.ffr");
/// # let mut writer = anyrec::create(&path)?;
/// # writer.append(b"one", &anyrec::Tags::none())?;
/// # writer.finish()?;
/// let dataset = anyrec::open(&path)?;
/// let stopped = || Err(anyrec::Error::invalid("stopped"));
/// let read = anyrec::interrupt::interruptible(stopped, || dataset.read_batch(&[0]));
/// assert_eq!(read.unwrap_err().message(), "stopped");
/// # Ok(())
/// # }
/// ```
pub fn interruptible<R>(check: Check, work: impl FnOnce() -> R) -> R {
    /// Restores the previous check, even if the work panics.
    struct Restore(Option<Check>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CHECK.set(self.0);
        }
    }
    let _restore = Restore(CHECK.replace(Some(check)));
    work()
}

/// Returns an error if the caller wants this thread's work to end.
///
/// # Errors
/// The error of the caller's check.
#[inline]
pub fn go_on() -> Result<()> {
    match CHECK.get() {
        Some(check) => check(),
        None => Ok(()),
    }
}

/// Like [`go_on`], for a loop at iteration `at`: checks only once in many iterations.
///
/// # Errors
/// As [`go_on`].
#[inline]
pub fn go_on_at(at: usize) -> Result<()> {
    if at % OFTEN == OFTEN - 1 { go_on() } else { Ok(()) }
}
