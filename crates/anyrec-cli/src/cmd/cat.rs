//! `anyrec cat`: write raw records to stdout.

use crate::arguments::Reading;
use crate::output::Outcome;
use crate::range::RecordRange;
use anyhow::{Result, bail};
use anyrec::Dataset;
use anyrec::Key;
use anyrec::format::{Event, Format};
use clap::Args;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

/// Write the raw bytes of records to stdout
///
/// RANGE is a record number (7, or -1 for the last record) or a half-open range (0..10, 5.., ..).
/// With --key, records are selected by the keys of an MXNet index file.
#[derive(Debug, Args)]
pub struct Cat {
    /// A file, directory, glob pattern, or - for standard input
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Which records (default: all)
    #[arg(value_name = "RANGE")]
    ranges: Vec<RecordRange>,
    /// The record with this key (may be repeated)
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    key: Vec<String>,
    /// Write this after every record (\n, \t and \0 are understood)
    #[arg(long, value_name = "TEXT", default_value = "")]
    separator: String,
    /// MXNet image records: write the payload without its header
    #[arg(long)]
    strip_header: bool,
    /// Write binary data even if stdout is a terminal
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    reading: Reading,
}

impl Cat {
    pub fn run(self) -> Result<Outcome> {
        let mut output = Output {
            out: BufWriter::with_capacity(1 << 18, io::stdout().lock()),
            refuse_binary: io::stdout().is_terminal() && !self.force,
            separator: self.separator.replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\0"),
            strip_header: self.strip_header,
        };
        let options = self.reading.options()?;
        let everything = self.ranges.is_empty() && self.key.is_empty();
        if everything || super::is_stdin(&self.path) {
            if !everything {
                bail!("a stream can only be written as a whole: save it to a file to select records");
            }
            for path in super::expand(std::slice::from_ref(&self.path))? {
                let input = super::open(&path, &options)?;
                let (name, format) = (input.name().to_owned(), input.format());
                let mut scan = input.scan(&options)?;
                loop {
                    match scan.next_event()? {
                        Event::Record(record) => output.put(format, record.data)?,
                        Event::Damage(damage) => {
                            output.out.flush()?;
                            return Err(damage.into_error(&name).into());
                        }
                        Event::End => break,
                        _ => {}
                    }
                }
            }
        } else {
            let dataset = Dataset::open(&[&self.path], &options)?;
            for range in &self.ranges {
                for index in range.resolve(dataset.len()?)? {
                    output.put(dataset.format(), &dataset.read(index)?)?;
                }
            }
            for key in &self.key {
                output.put(dataset.format(), &dataset.read(find_key(&dataset, key)?)?)?;
            }
        }
        output.out.flush()?;
        Ok(Outcome::Sound)
    }
}

/// The number of the record with a key, which is a whole number if it parses as one and text
/// otherwise.
fn find_key(dataset: &Dataset, text: &str) -> Result<u64> {
    let as_text = Key::Text(text.into());
    let candidates = text.parse().ok().map(Key::Int).into_iter().chain([as_text]);
    for key in candidates {
        if let Some(index) = dataset.find_key(&key)? {
            return Ok(index);
        }
    }
    bail!("there is no record with the key {text:?}")
}

struct Output {
    out: BufWriter<io::StdoutLock<'static>>,
    refuse_binary: bool,
    separator: String,
    strip_header: bool,
}

impl Output {
    fn put(&mut self, format: &dyn Format, record: &[u8]) -> Result<()> {
        let header = if self.strip_header { format.tags(record).header_length } else { 0 };
        let record = record.get(header..).unwrap_or_default();
        let printable = |bytes: &[u8]| {
            std::str::from_utf8(bytes)
                .is_ok_and(|text| text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t')))
        };
        if self.refuse_binary && !printable(record) {
            bail!(
                "the record is binary and would garble the terminal: redirect it to a file or a pipe, or use --force"
            );
        }
        self.out.write_all(record)?;
        Ok(self.out.write_all(self.separator.as_bytes())?)
    }
}
