//! A file or stream whose format is known.

use super::table::Table;
use crate::base::{Error, ErrorKind, Result};
use crate::format::{self, Format, Notice, OpenOptions, RecordReader, Scan};
use crate::io::{Source, Window, open_file};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// One file or stream with its detected format: what tasks work on.
#[derive(Debug)]
pub struct RecordFile {
    format: &'static dyn Format,
    window: Window,
}

/// A reader by number, and what there is to say about the table beside its file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenReader {
    /// The reader.
    pub reader: Arc<dyn RecordReader>,
    /// Why an existing table is not used.
    pub notice: Option<Notice>,
}

impl RecordFile {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read or has no known format.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<RecordFile> {
        let source = open_file(path.as_ref(), options.access)?;
        let format = format::identify(&*source, options.format)?;
        Ok(Self::over(source, format))
    }

    /// Wraps a source that is already open.
    pub fn over(source: Arc<dyn Source>, format: &'static dyn Format) -> RecordFile {
        RecordFile { format, window: Window::new(source) }
    }

    /// Wraps a stream, called `name` in messages.
    ///
    /// # Errors
    /// As [`RecordFile::open`]; also if the format cannot be read from a stream.
    pub fn stream(
        name: &str,
        reader: impl Read + Send + 'static,
        options: &OpenOptions,
    ) -> Result<RecordFile> {
        let mut window = Window::from_stream(name, reader);
        let format = format::identify_stream(window.peek(format::HEAD)?, options.format)
            .map_err(|error| error.in_file(name))?;
        if !format.capabilities().streamable {
            return Err(Error::unsupported(format!("{} files cannot be read from a stream", format.name()))
                .in_file(name)
                .with_hint("save it to a file first"));
        }
        Ok(RecordFile { format, window })
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        self.window.name()
    }

    /// The format.
    pub fn format(&self) -> &'static dyn Format {
        self.format
    }

    /// The source of the bytes, unless this is a stream.
    pub fn source(&self) -> Option<&Arc<dyn Source>> {
        self.window.source()
    }

    /// The length, unless this is a stream.
    pub fn length(&self) -> Option<u64> {
        self.source().map(|source| source.len())
    }

    /// The first bytes, as many as detection reads.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn head(&mut self) -> Result<&[u8]> {
        self.window.peek(format::HEAD)
    }

    /// A reader by number, which uses the table beside the file if there is one; `None` for a
    /// stream. A table that does not match is not used, and the notice says why: the reader then
    /// scans, because the caller needs the records.
    ///
    /// # Errors
    /// If what must be read at opening is damaged.
    pub fn reader(&self, options: &OpenOptions) -> Result<Option<OpenReader>> {
        let Some(source) = self.source() else { return Ok(None) };
        let mut options = options.clone();
        let mut notice = None;
        if options.positions.is_none() {
            match Table::find(source, self.format) {
                Ok(table) => options.positions = table.map(|table| Arc::new(table.into_positions())),
                Err(error) if error.kind() == ErrorKind::OutOfMemory => return Err(error),
                Err(error) => notice = Some(Notice::new(error.to_string())),
            }
        }
        let reader = self.format.open(source.clone(), &options);
        let reader = reader.map_err(|error| error.in_file(source.name()))?;
        Ok(Some(OpenReader { reader: Arc::from(reader), notice }))
    }

    /// Like [`reader`](RecordFile::reader), to look up keys and labels during a scan. Also `None`
    /// if the file is too damaged to open and damage may be skipped.
    ///
    /// # Errors
    /// As [`reader`](RecordFile::reader).
    pub fn reader_for_tags(&self, options: &OpenOptions) -> Result<Option<Arc<dyn RecordReader>>> {
        match self.reader(options) {
            Ok(opened) => Ok(opened.map(|opened| opened.reader)),
            Err(error) if options.skip_damage && error.kind() == ErrorKind::Corrupt => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Starts a scan.
    ///
    /// # Errors
    /// As [`Format::scan`].
    pub fn scan(self, options: &OpenOptions) -> Result<Box<dyn Scan>> {
        self.format.scan(self.window, options)
    }

    /// A window over the bytes, at their beginning.
    pub(crate) fn into_window(self) -> Window {
        self.window
    }
}
