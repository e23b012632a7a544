//! What reaches the user: data on stdout, everything else on stderr, and the exit code.

use crate::hints;
use crate::json;
use crate::term;
use anyhow::Result;
use anyrec::ErrorKind;
use anyrec::format::Notice;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Everything was as it should be.
    Sound,
    /// The work was done, and damage was found.
    Damage,
    /// Something could not be done, and was told.
    Failure,
}

/// Buffered standard output. Plain text goes in; styles are kept only where they are wanted.
pub struct Out(Option<BufWriter<anstream::AutoStream<io::StdoutLock<'static>>>>);

impl Out {
    pub fn new() -> Self {
        let stdout = io::stdout().lock();
        Out(Some(BufWriter::with_capacity(1 << 16, anstream::AutoStream::auto(stdout))))
    }

    /// For a command that wrote a file: where that went to standard output (`/dev/stdout`), what is
    /// said about it goes to standard error.
    pub fn about(output: &Path) -> Self {
        let is_stdout = output.starts_with("/dev") || output.starts_with("/proc");
        match is_stdout && output.canonicalize().ok() == Path::new("/dev/stdout").canonicalize().ok() {
            true => Out(None),
            false => Self::new(),
        }
    }

    /// One line.
    pub fn line(&mut self, text: impl std::fmt::Display) -> Result<()> {
        match &mut self.0 {
            Some(out) => writeln!(out, "{text}")?,
            None => tell(text),
        }
        Ok(())
    }

    /// One line of JSON.
    pub fn json(&mut self, value: &serde_json::Value) -> Result<()> {
        let mut line = String::new();
        json::write(value, &mut line);
        self.line(line)
    }

    /// Writes out what is buffered.
    pub fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), |mut out| Ok(out.flush()?))
    }
}

/// A message about the work, on stderr.
pub fn tell(text: impl std::fmt::Display) {
    // Nobody is left to tell if stderr is closed.
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Notices, one a line, on stderr.
pub fn tell_notices(file: &str, notices: &[Notice]) {
    for notice in notices {
        let place = notice.offset.map_or(String::new(), |offset| format!(" (byte {offset})"));
        let file = if file.is_empty() { String::new() } else { format!("{file}: ") };
        let hint = notice.hint.as_ref().map_or(String::new(), |hint| format!("; {}", hints::words(hint)));
        let message = term::clean(&format!("{}{hint}", notice.message));
        tell(format!("{}note:{} {file}{message}{place}", term::YELLOW, term::RESET));
    }
}

/// Reports an error, if there is one, and gives the process's exit code.
pub fn exit_code(result: Result<Outcome>) -> ExitCode {
    let error = match result {
        Ok(Outcome::Sound) => return ExitCode::SUCCESS,
        Ok(Outcome::Damage) => return ExitCode::from(1),
        Ok(Outcome::Failure) => return ExitCode::from(2),
        Err(error) => error,
    };
    if is_closed_pipe(&error) {
        // The reader has seen enough: `anyrec ls FILE | head`.
        return ExitCode::SUCCESS;
    }
    exit_code(Ok(tell_error(&error)))
}

/// A message about what to type next, on stderr.
pub fn tell_hint(text: &str) {
    tell(format!("{}hint:{} {}", term::CYAN, term::RESET, term::clean(text)));
}

/// Reports an error with its hint, and says what it amounts to.
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

/// An error and its causes in one line. A library error's sentence includes its cause already.
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
