//! Everything the user sees: data on stdout, messages on stderr, and the exit code.

use crate::hints;
use crate::json;
use crate::term;
use anyhow::Result;
use anyrec::ErrorKind;
use anyrec::format::Notice;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Everything is sound.
    Sound,
    /// The command finished and found damage.
    Damage,
    /// Something could not be done, and was reported.
    Failure,
}

/// Buffered standard output. Styles are stripped where the output does not support them.
pub struct Out(Option<BufWriter<anstream::AutoStream<io::StdoutLock<'static>>>>);

impl Out {
    pub fn new() -> Self {
        let stdout = io::stdout().lock();
        Out(Some(BufWriter::with_capacity(1 << 16, anstream::AutoStream::auto(stdout))))
    }

    /// For a command that wrote a file. If the file is standard output (`/dev/stdout`), messages
    /// about it go to standard error.
    pub fn about(output: &Path) -> Self {
        let is_stdout = output.starts_with("/dev") || output.starts_with("/proc");
        match is_stdout && output.canonicalize().ok() == Path::new("/dev/stdout").canonicalize().ok() {
            true => Out(None),
            false => Self::new(),
        }
    }

    /// Writes one line.
    pub fn line(&mut self, text: impl std::fmt::Display) -> Result<()> {
        match &mut self.0 {
            Some(out) => writeln!(out, "{text}")?,
            None => tell(text),
        }
        Ok(())
    }

    /// Writes one line of JSON.
    pub fn json(&mut self, value: &serde_json::Value) -> Result<()> {
        let mut line = String::new();
        json::write(value, &mut line);
        self.line(line)
    }

    /// Writes what is buffered.
    pub fn flush(&mut self) -> Result<()> {
        self.0.as_mut().map_or(Ok(()), |out| Ok(out.flush()?))
    }

    /// Flushes the buffer.
    pub fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), |mut out| Ok(out.flush()?))
    }
}

/// Prints a message to stderr.
pub fn tell(text: impl std::fmt::Display) {
    // If stderr is closed, there is nowhere to report it.
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Prints notices to stderr, one per line.
pub fn tell_notices(file: &str, notices: &[Notice]) {
    for notice in notices {
        let place = notice.offset.map_or(String::new(), |offset| format!(" (byte {offset})"));
        let file = if file.is_empty() { String::new() } else { format!("{file}: ") };
        let hint = notice.hint.as_ref().map_or(String::new(), |hint| format!("; {}", hints::words(hint)));
        let message = term::clean(&format!("{}{hint}", notice.message));
        tell(format!("{}note:{} {file}{message}{place}", term::YELLOW, term::RESET));
    }
}

/// Reports the error, if there is one, and returns the exit code of the process.
pub fn exit_code(result: Result<Outcome>) -> u8 {
    let error = match result {
        Ok(Outcome::Sound) => return 0,
        Ok(Outcome::Damage) => return 1,
        Ok(Outcome::Failure) => return 2,
        Err(error) => error,
    };
    if is_closed_pipe(&error) {
        // The reader closed the pipe: `anyrec ls FILE | head`.
        return 0;
    }
    exit_code(Ok(tell_error(&error)))
}

/// Prints a hint about the next command to stderr.
pub fn tell_hint(text: &str) {
    tell(format!("{}hint:{} {}", term::CYAN, term::RESET, term::clean(text)));
}

/// Reports an error with its hint, and returns the outcome it stands for.
pub fn tell_error(error: &anyhow::Error) -> Outcome {
    tell(format!("{}error:{} {}", term::RED, term::RESET, term::clean(&chain(error))));
    let known = error.downcast_ref::<anyrec::Error>();
    if let Some(hint) = known.and_then(anyrec::Error::hint) {
        tell("");
        tell_hint(&hints::words(hint));
    }
    match known.map(anyrec::Error::kind) {
        Some(ErrorKind::Corrupt) => Outcome::Damage,
        _ => Outcome::Failure,
    }
}

/// An error and its causes on one line. The message of a library error already includes its cause.
fn chain(error: &anyhow::Error) -> String {
    match error.downcast_ref::<anyrec::Error>() {
        Some(known) => known.to_string(),
        None => format!("{error:#}"),
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.downcast_ref::<io::Error>().is_some_and(closed)
        || error.downcast_ref::<anyrec::Error>().and_then(anyrec::Error::io_error).is_some_and(closed)
}
