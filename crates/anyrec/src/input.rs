//! A file or stream whose format is known: where scanning begins.

use crate::error::{Error, ErrorKind, Result};
use crate::format::{self, Format, Notice, OpenOptions, RecordReader, Scan};
use crate::io::{ReadAt, Window, open_file};
use crate::table::Table;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// An input of one file or stream, its format detected.
#[derive(Debug)]
pub struct Input {
    format: &'static dyn Format,
    window: Window,
}

/// A reader by number, and what is to be said about the table beside its file.
pub struct OpenReader {
    /// The reader.
    pub reader: Box<dyn RecordReader>,
    /// Why a table that is there is not used.
    pub notice: Option<Notice>,
}

impl Input {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be read or is none of the known formats.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Input> {
        let source = open_file(path.as_ref(), options.access)?;
        let format = format::identify(&*source, options.format.as_deref())?;
        Ok(Input { format, window: Window::new(source) })
    }

    /// A source that is open already.
    pub(crate) fn over(source: Arc<dyn ReadAt>, format: &'static dyn Format) -> Input {
        Input { format, window: Window::new(source) }
    }

    /// The same, for a scan whose records are lent: see [`Window::lending`].
    #[must_use]
    pub(crate) fn lending(self) -> Input {
        Input { window: self.window.lending(), ..self }
    }

    /// The same, for a scan that goes through all of it: see [`Window::read_ahead`].
    #[must_use]
    pub(crate) fn read_ahead(self) -> Input {
        Input { window: self.window.read_ahead(), ..self }
    }

    /// Takes a stream, called `name` in messages.
    ///
    /// # Errors
    /// As [`Input::open`]; also when the format cannot be read from a stream.
    pub fn stream(name: &str, reader: impl Read + Send + 'static, options: &OpenOptions) -> Result<Input> {
        let mut window = Window::from_stream(name, reader);
        let format = format::identify_stream(window.peek(format::HEAD)?, options.format.as_deref())
            .map_err(|error| error.in_file(name))?;
        if !format.capabilities().streamable {
            return Err(Error::unsupported(format!("{} files cannot be read from a stream", format.name()))
                .in_file(name)
                .with_hint("save it to a file first"));
        }
        Ok(Input { format, window })
    }

    /// What to call it in messages.
    pub fn name(&self) -> &str {
        self.window.name()
    }

    /// Its format.
    pub fn format(&self) -> &'static dyn Format {
        self.format
    }

    /// Where the bytes come from, unless this is a stream.
    pub fn source(&self) -> Option<&Arc<dyn ReadAt>> {
        self.window.source()
    }

    /// Its length, unless this is a stream.
    pub fn length(&self) -> Option<u64> {
        self.source().map(|source| source.len())
    }

    /// Its first bytes, as many as detection sees.
    ///
    /// # Errors
    /// What the system says.
    pub fn head(&mut self) -> Result<&[u8]> {
        self.window.peek(format::HEAD)
    }

    /// A reader by number, with the table beside the file if there is one; none for a stream.
    ///
    /// A table that does not fit is refused and told in the notice; the reader then scans, since
    /// the records are what the caller came for.
    ///
    /// # Errors
    /// When what must be read at opening is damaged.
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
        let reader =
            self.format.open(source.clone(), &options).map_err(|error| error.in_file(source.name()))?;
        Ok(Some(OpenReader { reader, notice }))
    }

    /// [`reader`](Input::reader) for keys and labels beside a scan: none either where the file is
    /// too damaged to open and damage may be skipped.
    ///
    /// # Errors
    /// As [`reader`](Input::reader).
    pub fn reader_for_tags(&self, options: &OpenOptions) -> Result<Option<Box<dyn RecordReader>>> {
        match self.reader(options) {
            Ok(opened) => Ok(opened.map(|opened| opened.reader)),
            Err(error) if options.skip_damage && error.kind() == ErrorKind::Corrupt => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Starts the scan.
    ///
    /// # Errors
    /// As [`Format::scan`].
    pub fn scan(self, options: &OpenOptions) -> Result<Box<dyn Scan>> {
        self.format.scan(self.window, options)
    }

    /// The window over the bytes, at their beginning.
    pub(crate) fn into_window(self) -> Window {
        self.window
    }
}
