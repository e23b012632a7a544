//! A progress bar on stderr, shown only on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// A bar that is cleared when dropped.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar that counts bytes.
    pub fn new(what: &str, length: u64) -> Self {
        Self::with_template(what, length, "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} left")
    }

    /// A bar that counts records.
    pub fn records(what: &str, count: u64) -> Self {
        Self::with_template(what, count, "{msg} {bar:30} {pos}/{len} records {per_sec} {eta} left")
    }

    fn with_template(what: &str, length: u64, template: &str) -> Self {
        let shown = std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(length), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(crate::term::escape(what.as_bytes()));
        Progress(bar)
    }

    /// Sets the position.
    pub fn at(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Advances the position.
    pub fn add(&self, more: u64) {
        self.0.inc(more);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
