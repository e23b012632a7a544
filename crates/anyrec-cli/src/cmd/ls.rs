//! `anyrec ls`: one row per record.

use crate::arguments::Reading;
use crate::output::{Out, Outcome, tell};
use crate::range::RecordRange;
use crate::term;
use anyhow::{Result, bail};
use anyrec::format::{Event, Format, Labels};
use anyrec::{Dataset, Key, Label, Place, Position, RecordSet, Tags};
use anyrec_image::sniff;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;

/// List records, one row each
///
/// The columns are number, byte offset (and item within the frame), size, key, id, label, and the
/// kind of payload. Damage is reported on stderr where it is found, and the listing continues.
#[derive(Debug, Args)]
pub struct Ls {
    /// A file, directory, glob pattern, or - for standard input
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Which records: 7, 0..10, -5.., .. (default: all)
    #[arg(value_name = "RANGE")]
    range: Option<RecordRange>,
    /// Add every record's SHA-256
    #[arg(long)]
    sha256: bool,
    /// One JSON object per record
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

/// A record's row.
struct Row {
    index: u64,
    position: Position,
    size: u64,
    sha256: Option<String>,
    tags: Tags,
    kind: String,
}

/// The columns shown.
#[derive(Clone, Copy)]
struct Columns {
    /// Key, id and label, which not every format has.
    with_tags: bool,
}

impl Columns {
    fn tags(self, key: &str, id: &str, label: &str) -> String {
        if self.with_tags { format!("{key:<12} {id:<12} {label:<16} ") } else { String::new() }
    }
}

fn has_tags(format: &dyn Format) -> bool {
    let capabilities = format.capabilities();
    capabilities.keys || capabilities.labels == Labels::InRecord
}

impl Ls {
    pub fn run(self) -> Result<Outcome> {
        let mut out = Out::new();
        let outcome = match self.range {
            Some(range) if super::is_stdin(&self.path) && range != RecordRange::ALL => {
                bail!("a stream can only be listed as a whole: save it to a file to select records")
            }
            Some(range) if range != RecordRange::ALL => self.list_range(&mut out, range)?,
            _ => self.list_all(&mut out)?,
        };
        out.finish()?;
        Ok(outcome)
    }

    /// Lists all records with a scan, which needs no index and continues past damage.
    fn list_all(&self, out: &mut Out) -> Result<Outcome> {
        let mut options = self.reading.options()?;
        options.skip_damage = true;
        let mut outcome = Outcome::Sound;
        let mut index = 0;
        let files = super::expand(std::slice::from_ref(&self.path))?;
        let mut columns = None;
        for path in &files {
            let input = super::open(path, &options)?;
            let (name, format) = (input.name().to_owned(), input.format());
            let shown = match columns {
                Some(shown) => shown,
                // Files may differ, so columns are dropped only for a single file.
                None => self.begin(out, files.len() > 1 || has_tags(format))?,
            };
            columns = Some(shown);
            let reader = input.reader_for_tags(&options)?;
            let mut scan = input.scan(&options)?;
            let mut local = 0;
            loop {
                match scan.next_event()? {
                    Event::Record(record) => {
                        let tags = match &reader {
                            Some(reader) => reader.tags(local, record.position, record.data)?,
                            None => format.tags(record.data),
                        };
                        self.print(out, shown, &self.row(index, record.position, record.data, tags))?;
                        index += 1;
                        local += 1;
                    }
                    Event::Damage(damage) => {
                        tell(format!(
                            "{}damage:{} {}",
                            term::RED,
                            term::RESET,
                            term::clean(&damage.into_error(&name).to_string())
                        ));
                        outcome = Outcome::Damage;
                    }
                    Event::End => break,
                    _ => {}
                }
            }
        }
        Ok(outcome)
    }

    fn list_range(&self, out: &mut Out, range: RecordRange) -> Result<Outcome> {
        let dataset = Dataset::open(&[&self.path], &self.reading.options()?)?;
        let numbers = range.resolve(dataset.len()?)?;
        let columns = self.begin(out, has_tags(dataset.format()))?;
        for index in numbers {
            let record = dataset.read(index)?;
            let Place { reader, index: local } = dataset.find(index)?;
            let position = reader.locate(local)?.position;
            let row = self.row(index, position, &record, reader.tags(local, position, &record)?);
            self.print(out, columns, &row)?;
        }
        Ok(Outcome::Sound)
    }

    fn row(&self, index: u64, position: Position, record: &[u8], tags: Tags) -> Row {
        let payload = record.get(tags.header_length..).unwrap_or(record);
        Row {
            index,
            position,
            size: record.len() as u64,
            sha256: self.sha256.then(|| super::sha256(record)),
            kind: sniff(payload).to_string(),
            tags,
        }
    }

    /// Prints the heading and returns the columns.
    fn begin(&self, out: &mut Out, with_tags: bool) -> Result<Columns> {
        let columns = Columns { with_tags };
        if !self.json {
            let tags = columns.tags("key", "id", "label");
            let sha256 = if self.sha256 { format!("{:<64}  ", "sha256") } else { String::new() };
            out.line(format!(
                "{}{:>9} {:>14} {:>6} {:>11}  {sha256}{tags}kind{}",
                term::DIM,
                "record",
                "offset",
                "item",
                "size",
                term::RESET
            ))?;
        }
        Ok(columns)
    }

    fn print(&self, out: &mut Out, columns: Columns, row: &Row) -> Result<()> {
        if self.json {
            return out.json(&self.to_json(row));
        }
        let cell = |text: Option<String>, width| term::shorten(&text.unwrap_or_default(), width);
        let key = cell(row.tags.key.as_ref().map(|key| term::clean(&key.to_string())), 12);
        let id = cell(row.tags.ids.map(|[id, _]| id.to_string()), 12);
        let label = cell(row.tags.label.as_ref().map(label_text), 16);
        let sha256 = row.sha256.as_ref().map_or(String::new(), |digest| format!("{digest}  "));
        out.line(format!(
            "{:>9} {:>14} {:>6} {:>11}  {sha256}{}{}",
            row.index,
            row.position.frame,
            row.position.item,
            row.size,
            columns.tags(&key, &id, &label),
            row.kind
        ))
    }

    fn to_json(&self, row: &Row) -> Value {
        let mut value = json!({
            "index": row.index,
            "offset": row.position.frame,
            "item": row.position.item,
            "size": row.size,
            "key": row.tags.key.as_ref().map(key_json),
            "id": row.tags.ids.map(|[id, _]| id),
            "id2": row.tags.ids.map(|[_, id2]| id2),
            "label": row.tags.label.as_ref().map(label_json),
            "kind": row.kind,
        });
        if let (Some(object), Some(digest)) = (value.as_object_mut(), &row.sha256) {
            object.insert("sha256".into(), digest.clone().into());
        }
        value
    }
}

/// A key as a number if JSON parsers can represent it exactly, else as text.
fn key_json(key: &Key) -> Value {
    match key {
        Key::Int(number) => match (i64::try_from(*number), u64::try_from(*number)) {
            (Ok(number), _) => number.into(),
            (_, Ok(number)) => number.into(),
            _ => number.to_string().into(),
        },
        Key::Text(text) => crate::json::text(text.as_ref()),
    }
}

/// A label as a number or a list of numbers. JSON has no infinities, so they are text.
pub fn label_json(label: &Label) -> Value {
    let number = |number: f64| {
        serde_json::Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number)
    };
    match label {
        Label::Scalar(label) => number(*label),
        Label::Array(labels) => labels.iter().map(|label| number(*label)).collect(),
    }
}

fn label_text(label: &Label) -> String {
    match label {
        Label::Scalar(label) => label.to_string(),
        Label::Array(labels) => {
            let texts: Vec<_> = labels.iter().take(20).map(f64::to_string).collect();
            format!("[{}]", texts.join(" "))
        }
    }
}
