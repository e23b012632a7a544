//! Long work without the interpreter: progress told now and then, Ctrl-C heard.

use crate::errors::raised;
use anyrec::Result;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// How often Python is asked.
const INTERVAL: Duration = Duration::from_millis(50);

/// The exception that ends the work.
struct Stopped(PyErr);

/// Runs `work` with the interpreter let go. The function it is given calls `callback` with the
/// number told: at once, then at most every 50 ms; an exception there, or Ctrl-C, ends the work by
/// unwinding, so that everything begun is dropped (and no output appears). The last call comes when
/// the work is done.
pub fn run<R: Send>(
    py: Python<'_>,
    callback: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(u64)) -> Result<R> + Send,
) -> PyResult<R> {
    let outcome = py.detach(|| {
        catch_unwind(AssertUnwindSafe(|| {
            let mut last: Option<Instant> = None;
            let mut told = 0;
            let mut tell = |reached: u64| {
                if last.is_none_or(|last| last.elapsed() >= INTERVAL) {
                    last = Some(Instant::now());
                    told = reached;
                    if let Err(error) = ask(callback.as_ref(), reached) {
                        resume_unwind(Box::new(Stopped(error)));
                    }
                }
            };
            let mut reached = 0;
            let done = work(&mut |now| {
                reached = now;
                tell(now);
            });
            if reached != told
                && let Err(error) = ask(callback.as_ref(), reached)
            {
                resume_unwind(Box::new(Stopped(error)));
            }
            done
        }))
    });
    match outcome {
        Ok(done) => done.map_err(raised),
        Err(payload) => match payload.downcast::<Stopped>() {
            Ok(stopped) => Err(stopped.0),
            Err(panic) => resume_unwind(panic),
        },
    }
}

fn ask(callback: Option<&Py<PyAny>>, reached: u64) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        match callback {
            Some(callback) => callback.call1(py, (reached,)).map(drop),
            None => Ok(()),
        }
    })
}
