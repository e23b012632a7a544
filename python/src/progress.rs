//! Work with the GIL released: checks for Ctrl-C, catches panics and reports progress.

use crate::errors::{carried, internal, raised};
use anyrec::Result;
use anyrec::interrupt::interruptible;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// How often Python is checked.
const INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// When this thread's work last checked; `None` before the first time.
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
    /// The exception that ends this thread's work, whatever error the work returns.
    static STOPPED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Runs `work` with the GIL released. Ctrl-C is checked before it, and during it where the library
/// asks whether to continue. A panic becomes an `InternalError`.
pub fn unlocked<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    // A loop in C, such as that of `list`, never checks for signals otherwise.
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

/// Like [`done`], for work that may fail.
pub fn done<R: Send>(py: Python<'_>, work: impl FnOnce() -> Result<R> + Send) -> PyResult<R> {
    unlocked(py, work)?.map_err(raised)
}

/// Runs `work` like [`done`]. The function passed to it calls `callback` with its number: at once,
/// then at most every 50 ms. An exception in the callback, or Ctrl-C, ends the work by unwinding,
/// so that everything begun is dropped (and no output is published). The last call comes when the
/// work is done.
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
    // During interpreter shutdown, Python cannot be called.
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

/// The library's check: whether Python has an exception for this thread.
fn check() -> Result<()> {
    match ASKED.get() {
        Some(asked) if asked.elapsed() < INTERVAL => return Ok(()),
        // Most work ends before a check is worthwhile.
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

/// The message of a panic.
fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason was given").to_owned()
}
