//! Gzip under a scan: compressed bytes that can be read twice, and uncompressed bytes as a stream.

use super::gzip::{Inflater, Survey};
use crate::base::{Error, Limits, Result};
use crate::io::{Source, Window};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a stream copied at a time.
const SPOOL: usize = 1 << 20;

/// A compressed file that can be read more than once.
#[derive(Debug)]
pub(super) enum Replay {
    Source(Arc<dyn Source>),
    /// A stream copied to a temporary file, and its name.
    Spooled(String, File),
}

impl Replay {
    /// The contents of `window` from its beginning.
    pub(super) fn of(mut window: Window, limits: &Limits) -> Result<Self> {
        if let Some(source) = window.source() {
            return Ok(Replay::Source(source.clone()));
        }
        let name = window.name().to_owned();
        let failed = |error| Error::io("cannot copy the stream to a temporary file", error);
        let mut file = tempfile::tempfile().map_err(failed)?;
        loop {
            let chunk = window.peek(SPOOL)?;
            if chunk.is_empty() {
                return Ok(Replay::Spooled(name, file));
            }
            file.write_all(chunk).map_err(failed)?;
            let count = chunk.len() as u64;
            window.skip(count)?;
            // A stream that never ends must not fill the disk.
            if window.offset() > limits.decompressed {
                return Err(
                    Limits::exceeded("compressed size", window.offset(), limits.decompressed).in_file(name)
                );
            }
        }
    }

    /// A window at the beginning. Only one at a time may be used, because they share the file's
    /// position.
    pub(super) fn window(&self) -> Result<Window> {
        match self {
            Replay::Source(source) => Ok(Window::new(source.clone())),
            Replay::Spooled(name, file) => {
                let rewound = file.try_clone().and_then(|mut file| file.rewind().map(|()| file));
                let file =
                    rewound.map_err(|error| Error::io("cannot read again", error).in_file(name.clone()))?;
                Ok(Window::from_stream(name.clone(), file))
            }
        }
    }
}

/// The uncompressed bytes as a stream, for a window.
#[derive(Debug)]
pub(super) struct GzipStream {
    inflater: Inflater,
    progress: Progress,
}

/// What a [`GzipStream`] reports to its reader.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    offset: u64,
    survey: Option<Survey>,
    /// An error that would lose its kind in `std::io`.
    error: Option<Error>,
}

impl GzipStream {
    pub(super) fn new(inflater: Inflater) -> (Self, Progress) {
        let progress = Progress::default();
        (GzipStream { inflater, progress: progress.clone() }, progress)
    }
}

impl Progress {
    /// The current offset in the compressed file.
    pub(super) fn offset(&self) -> u64 {
        self.state().offset
    }

    /// Inspects the survey of the entire file, once the stream has ended.
    pub(super) fn with_survey<T: Default>(&self, look: impl FnOnce(&Survey) -> T) -> T {
        self.state().survey.as_ref().map(look).unwrap_or_default()
    }

    /// Takes the error that ended the stream.
    pub(super) fn error(&self) -> Option<Error> {
        self.state().error.take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for GzipStream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inflater.read(buffer);
        let mut state = self.progress.state();
        state.offset = self.inflater.offset();
        match read {
            Ok(count) => {
                if count == 0 && !buffer.is_empty() && state.survey.is_none() {
                    state.survey = Some(self.inflater.take_survey());
                }
                Ok(count)
            }
            Err(error) => {
                let message = error.to_string();
                state.error = Some(error);
                Err(std::io::Error::other(message))
            }
        }
    }
}
