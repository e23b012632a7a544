//! Where the writers' bytes go: a file that appears when it is whole, or any [`Write`].

use crate::error::{Error, Result};
use crate::io::{AtomicFile, FileSet};
use std::io::Write;

pub(super) enum Sink<'a> {
    File(AtomicFile),
    Stream(Box<dyn Write + Send + 'a>),
}

impl<'a> Sink<'a> {
    pub(super) fn stream(stream: impl Write + Send + 'a) -> Self {
        Sink::Stream(Box::new(stream))
    }

    pub(super) fn append(&mut self, data: &[u8]) -> Result<()> {
        match self {
            Sink::File(file) => file.append(data),
            Sink::Stream(stream) => stream.write_all(data).map_err(|error| Error::io("cannot write", error)),
        }
    }

    /// Completes the output: a file is ready to be published, a stream is flushed.
    pub(super) fn complete(self) -> Result<FileSet> {
        match self {
            Sink::File(file) => Ok(FileSet::of(file.complete()?)),
            Sink::Stream(mut stream) => {
                stream.flush().map_err(|error| Error::io("cannot write", error))?;
                Ok(FileSet::default())
            }
        }
    }
}
