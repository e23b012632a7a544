//! Where the writers' bytes go: a file that is published only when complete, or any [`Write`].

use crate::base::{Error, Result};
use crate::io::{AtomicFile, FileSet};
use std::io::Write;

pub(super) enum Output<'a> {
    File(AtomicFile),
    Stream(Box<dyn Write + Send + 'a>),
}

impl<'a> Output<'a> {
    pub(super) fn stream(stream: impl Write + Send + 'a) -> Self {
        Output::Stream(Box::new(stream))
    }

    pub(super) fn append(&mut self, data: &[u8]) -> Result<()> {
        match self {
            Output::File(file) => file.append(data),
            Output::Stream(stream) => {
                stream.write_all(data).map_err(|error| Error::io("cannot write", error))
            }
        }
    }

    /// Completes the output: a file is ready to be published, a stream is flushed.
    pub(super) fn complete(self) -> Result<FileSet> {
        match self {
            Output::File(file) => Ok(FileSet::of(file.complete()?)),
            Output::Stream(mut stream) => {
                stream.flush().map_err(|error| Error::io("cannot write", error))?;
                Ok(FileSet::default())
            }
        }
    }
}
