//! Work without the interpreter: Ctrl-C heard, panics caught, progress told now and then.

use crate::errors::{carried, internal, raised};
use anyrec::Result;
use anyrec::interrupt::interruptible;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// How often Python is asked.
const INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// When the work of this thread asked last; none before its first time.
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
    /// The exception that ends the work of this thread, whatever the work makes of it.
    static STOPPED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Runs `work` with the interpreter let go. Ctrl-C is heard before it, and within it where the library
/// asks whether to go on. A panic is an `InternalError`.
pub fn unlocked<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    // A loop in C, such as that of `list`, has no other moment for it.
    py.check_signals()?;
    let outcome = py.detach(|| {
        ASKED.set(None);
        catch_unwind(AssertUnwindSafe(|| interruptible(check, work)))
    });
    match (STOPPED.take(), outcome) {
        (Some(stopped), _) => Err(stopped),
        (None, Ok(done)) => Ok(done),
        (None, Err(panic)) => Err(internal(&words_of(&*panic))),
    }
}

/// The same for work that may fail.
pub fn done<R: Send>(py: Python<'_>, work: impl FnOnce() -> Result<R> + Send) -> PyResult<R> {
    unlocked(py, work)?.map_err(raised)
}

/// Runs `work` as [`done`] does. The function it is given calls `callback` with the number told: at
/// once, then at most every 50 ms; an exception there, or Ctrl-C, ends the work by unwinding, so that
/// everything begun is dropped (and no output appears). The last call comes when the work is done.
pub fn run<R: Send>(
    py: Python<'_>,
    callback: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(u64)) -> Result<R> + Send,
) -> PyResult<R> {
    done(py, || {
        let mut last: Option<Instant> = None;
        let (mut reached, mut told) = (0, 0);
        let done = work(&mut |now| {
            reached = now;
            if last.is_none_or(|last| last.elapsed() >= INTERVAL) {
                last = Some(Instant::now());
                told = now;
                ask(callback.as_ref(), now).unwrap_or_else(stop);
            }
        });
        if reached != told {
            ask(callback.as_ref(), reached).unwrap_or_else(stop);
        }
        done
    })
}

fn ask(callback: Option<&Py<PyAny>>, reached: u64) -> PyResult<()> {
    // Without an interpreter, which is about to end, there is nobody to be asked.
    let asked = Python::try_attach(|py| {
        py.check_signals()?;
        match callback {
            Some(callback) => callback.call1(py, (reached,)).map(drop),
            None => Ok(()),
        }
    });
    asked.unwrap_or(Ok(()))
}

/// Ends the work from within a function that cannot fail.
fn stop(error: PyErr) {
    STOPPED.set(Some(error));
    resume_unwind(Box::new("stopped"));
}

/// What the library asks: whether Python has an exception for this thread.
fn check() -> Result<()> {
    match ASKED.get() {
        Some(asked) if asked.elapsed() < INTERVAL => return Ok(()),
        // Most work is over before it is worth asking.
        None => ASKED.set(Some(Instant::now())),
        Some(_) => {
            ASKED.set(Some(Instant::now()));
            if let Err(error) = ask(None, 0) {
                let text = Python::attach(|py| error.clone_ref(py));
                STOPPED.set(Some(error));
                return Err(carried(text));
            }
        }
    }
    Ok(())
}

/// What a panic said.
fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason was given").to_owned()
}
