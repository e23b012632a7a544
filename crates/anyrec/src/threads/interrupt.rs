//! Long work that can be stopped: it asks now and then whether to go on.
//!
//! A caller who may want to stop it, such as Python on Ctrl-C, says how to find out. Only work on the
//! caller's own thread asks: threads of the library do pieces of it, and are waited for.

use crate::base::Result;
use std::cell::Cell;

/// Says whether to go on: an error ends the work, and is what its caller gets. It is called often, so
/// it should look at a clock before it does anything that takes time.
pub type Check = fn() -> Result<()>;

thread_local! {
    static CHECK: Cell<Option<Check>> = const { Cell::new(None) };
}

/// Asks once in so many records.
const OFTEN: usize = 1024;

/// Does some work, which asks `check` whether to go on.
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
    /// Puts back what was there before, also when the work panics.
    struct Restore(Option<Check>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CHECK.set(self.0);
        }
    }
    let _restore = Restore(CHECK.replace(Some(check)));
    work()
}

/// An error if the caller wants this thread's work to end.
///
/// # Errors
/// What the caller's check says.
#[inline]
pub fn go_on() -> Result<()> {
    match CHECK.get() {
        Some(check) => check(),
        None => Ok(()),
    }
}

/// [`go_on`] for a loop that has come to its round `at`: asks once in many.
///
/// # Errors
/// As [`go_on`].
#[inline]
pub fn go_on_at(at: usize) -> Result<()> {
    if at % OFTEN == OFTEN - 1 { go_on() } else { Ok(()) }
}
