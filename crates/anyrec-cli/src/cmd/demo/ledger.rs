//! The table that `anyrec demo` prints.

use crate::output::Out;
use crate::term;
use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};
use std::time::{Duration, Instant};

/// The table's columns.
const HEADINGS: [&str; 6] = ["step", "what", "records", "bytes", "rate", "outcome"];
/// The columns that hold numbers.
const RIGHT: std::ops::Range<usize> = 2..5;

/// The rows so far.
#[derive(Default)]
pub struct Ledger {
    rows: Vec<[String; 6]>,
}

/// How much a step processed, and its result.
pub struct Done<T> {
    pub records: u64,
    pub bytes: u64,
    pub value: T,
}

impl Ledger {
    /// Runs a step with a timer, checks its result without one, and records both.
    pub fn step<T>(
        &mut self,
        step: &str,
        what: &str,
        work: impl FnOnce() -> Result<Done<T>>,
        judge: impl FnOnce(&T) -> Result<String>,
    ) -> Result<T> {
        let begun = Instant::now();
        let Done { records, bytes, value } = work()?;
        let rate = rate(bytes, begun.elapsed());
        let outcome = judge(&value)?;
        // The name of a step is shown only in the first of its rows.
        let step = if self.last_step() == Some(step) { "" } else { step };
        self.rows.push([step.into(), what.into(), term::count(records), term::bytes(bytes), rate, outcome]);
        Ok(value)
    }

    fn last_step(&self) -> Option<&str> {
        self.rows.iter().rev().find_map(|[step, ..]| (!step.is_empty()).then_some(step.as_str()))
    }

    /// Prints the table.
    pub fn print(&self, out: &mut Out) -> Result<()> {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(HEADINGS);
        for row in &self.rows {
            table.add_row(row);
        }
        for column in RIGHT {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for (number, line) in table.lines().enumerate() {
            let line = line.trim_end();
            match number {
                0 => out.line(format!("{}{line}{}", term::CYAN, term::RESET))?,
                _ => out.line(line)?,
            }
        }
        Ok(())
    }
}

/// `512.0 MiB/s`
fn rate(bytes: u64, time: Duration) -> String {
    let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1);
    let rate = u128::from(bytes) * 1_000_000 / u128::from(microseconds);
    format!("{}/s", term::bytes(u64::try_from(rate).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bytes_over_time() {
        assert_eq!(rate(1 << 20, Duration::from_millis(500)), "2.0 MiB/s");
        assert_eq!(rate(0, Duration::ZERO), "0 B/s");
    }
}
