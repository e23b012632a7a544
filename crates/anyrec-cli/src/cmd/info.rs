//! `anyrec info`: describe a file and its contents.

use super::ls::label_json;
use super::unpack::faces;
use crate::arguments::Reading;
use crate::output::{Out, Outcome, tell_error, tell_notices};
use crate::progress::Progress;
use crate::term;
use anyhow::Result;
use anyrec::format::{Content, Event, Format, IndexState, Notice, OpenOptions};
use anyrec::{ErrorKind, Label, PositionList, RecordFile, Sizes, Table, Tags, Value as HeaderValue};
use anyrec_image::sniff;
use clap::Args;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Describe files and their contents
///
/// Shows format and version, records, sizes, checksums, header, trailer, shape, labels and index.
/// Reads the whole file once without computing checksums; `anyrec verify` computes them.
#[derive(Debug, Args)]
pub struct Info {
    /// Files, directories, glob patterns, or - for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// One JSON object per file
    #[arg(long)]
    json: bool,
    /// Count the records of every label, not only of the most frequent ones
    #[arg(long)]
    labels: bool,
    #[command(flatten)]
    reading: Reading,
}

/// The most distinct labels that are counted; a file with more has regression targets, not classes.
const CLASSES: usize = 1_000_000;
/// The most sizes kept for an exact median; beyond that, every n-th size is enough.
const SAMPLED_SIZES: usize = 1 << 20;

/// The metadata as JSON.
#[derive(Debug, Default)]
pub struct Description {
    pub header: Value,
    pub trailer: Value,
    pub shape: Value,
    pub dtype: Value,
}

impl Description {
    pub fn from_contents(contents: &[Content]) -> Description {
        let mut description = Description::default();
        for content in contents {
            match content {
                Content::Header(pairs) => {
                    description.header = pairs
                        .iter()
                        .map(|(key, value)| json!([crate::json::text(key), header_json(value)]))
                        .collect();
                }
                Content::Trailer(trailer) => {
                    description.trailer = json!({"size": trailer.len(), "sha256": super::sha256(trailer)});
                }
                Content::Shape { dtype, shape } => {
                    description.shape = json!(shape);
                    description.dtype = dtype.name().into();
                }
                _ => {}
            }
        }
        description
    }
}

fn header_json(value: &HeaderValue) -> Value {
    match value {
        HeaderValue::Bool(value) => json!(value),
        HeaderValue::Int(value) => json!(value),
        HeaderValue::Uint(value) => json!(value),
        other => other.to_string().into(),
    }
}

/// What one pass over a file collects.
#[derive(Default)]
struct Gathered {
    sizes: Sizes,
    sampled: Vec<u64>,
    stride: u64,
    kinds: BTreeMap<String, u64>,
    labelled: u64,
    classes: HashMap<u64, u64>,
    label_width: usize,
    contents: Vec<Content>,
    damage: Vec<Value>,
    notices: Vec<Notice>,
    positions: PositionList,
    bytes: u64,
}

impl Gathered {
    fn add(&mut self, record: &[u8], tags: &Tags) {
        let size = record.len() as u64;
        if self.sizes.count.is_multiple_of(self.stride.max(1)) {
            self.sampled.push(size);
            if self.sampled.len() > SAMPLED_SIZES {
                let mut at = 0;
                self.sampled.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.stride = self.stride.max(1) * 2;
            }
        }
        self.sizes.add(size);
        let payload = record.get(tags.header_length..).unwrap_or(record);
        // `jpeg 500x375` counts as jpeg.
        let kind = sniff(payload).to_string();
        let kind = kind.split(' ').next().unwrap_or_default();
        match self.kinds.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(self.kinds.insert(kind.to_owned(), 1)),
        }
        if payload.is_empty() && tags.header_length > 0 {
            // A record that holds only labels describes other records (InsightFace's ranges of
            // keys), not this one.
            return;
        }
        let (first, width) = match &tags.label {
            // What a record without a label has in a file of labels.
            Some(Label::Scalar(label)) if label.is_nan() => return,
            Some(Label::Scalar(label)) => (Some(*label), 1),
            Some(Label::Array(labels)) => (labels.first().copied(), labels.len()),
            None => return,
        };
        self.labelled += 1;
        self.label_width = self.label_width.max(width);
        if let Some(first) = first
            && (self.classes.len() < CLASSES || self.classes.contains_key(&first.to_bits()))
        {
            *self.classes.entry(first.to_bits()).or_insert(0) += 1;
        }
    }

    /// The number of records of each label, in the order of the labels.
    fn counts(&self) -> Vec<(f64, u64)> {
        let mut all: Vec<(f64, u64)> =
            self.classes.iter().map(|(bits, count)| (f64::from_bits(*bits), *count)).collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        all
    }

    /// The most frequent labels, most frequent first.
    fn frequent(&self) -> Vec<(f64, u64)> {
        let mut all = self.counts();
        all.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.total_cmp(&other.0)));
        all.truncate(5);
        all
    }

    /// The sizes must be sorted.
    fn median(&self) -> u64 {
        self.sampled.get(self.sampled.len() / 2).copied().unwrap_or(0)
    }

    fn mean(&self) -> u64 {
        self.sizes.sum.checked_div(self.sizes.count).unwrap_or(0)
    }
}

impl Info {
    pub fn run(self) -> Result<Outcome> {
        let mut options = self.reading.options()?;
        options.verify = false;
        options.skip_damage = true;
        let mut out = Out::new();
        let mut outcome = Outcome::Sound;
        let mut first = true;
        for path in super::expand_all(&self.paths, &mut outcome) {
            let subject = match Subject::read(&path, &options) {
                Ok(subject) => subject,
                // Continue with the other files.
                Err(error) => {
                    outcome = outcome.max(tell_error(&error));
                    continue;
                }
            };
            if self.json {
                out.json(&to_json(&subject, self.labels))?;
            } else {
                if !std::mem::take(&mut first) {
                    out.line("")?;
                }
                print(&mut out, &subject, self.labels)?;
                tell_notices(&subject.name, &subject.gathered.notices);
            }
            if !subject.gathered.damage.is_empty() {
                outcome = outcome.max(Outcome::Damage);
            }
        }
        out.finish()?;
        Ok(outcome)
    }
}

/// Everything known about a file.
struct Subject {
    name: String,
    /// The same as JSON.
    path: Value,
    format: &'static dyn Format,
    version: &'static str,
    companions: Companions,
    gathered: Gathered,
}

impl Subject {
    fn read(path: &Path, options: &OpenOptions) -> Result<Subject> {
        let mut input = super::open(path, options)?;
        let version = input.format().version(input.head()?);
        let (name, format) = (input.name().to_owned(), input.format());
        let path = input.source().and_then(|source| source.path());
        let path = path.map_or_else(|| name.as_str().into(), crate::json::path);
        let companions = Companions::of(&input, options)?;
        let source = input.source().cloned();
        let mut gathered = gather(input, options)?;
        if let Some(source) = source {
            let noticed = format.check_companions(&source, options, &gathered.positions)?;
            gathered.notices.extend(noticed);
        }
        gathered.sampled.sort_unstable();
        Ok(Subject { name, path, format, version, companions, gathered })
    }
}

fn gather(input: RecordFile, options: &OpenOptions) -> Result<Gathered> {
    let progress = Progress::new("info", input.length().unwrap_or(0));
    let mut gathered = Gathered::default();
    let reader = input.reader_for_tags(options)?;
    let format = input.format();
    let mut scan = input.scan(options)?;
    let mut has_labels_beside = true;
    loop {
        let end = match scan.next_event()? {
            Event::Record(record) => {
                let number = gathered.sizes.count;
                let mut tags = match &reader {
                    Some(reader) => reader.tags(number, record.position, record.data)?,
                    None => format.tags(record.data),
                };
                if let (None, Some(reader), true) = (&tags.label, &reader, has_labels_beside) {
                    match reader.label_beside(number) {
                        Ok(label) => tags.label = label,
                        Err(error) if error.kind() == ErrorKind::OutOfMemory => return Err(error.into()),
                        // The file itself can still be described.
                        Err(error) => gathered.notices.push(Notice::new(error.to_string())),
                    }
                    has_labels_beside = tags.label.is_some();
                }
                gathered.add(record.data, &tags);
                gathered.positions.push(record.position)?;
                record.span.end
            }
            Event::Metadata(metadata) => {
                gathered.contents.push(metadata.content);
                metadata.span.end
            }
            Event::Damage(damage) => {
                gathered.damage.push(super::verify::damage_json(&damage));
                damage.end
            }
            Event::Notice(notice) => {
                gathered.notices.push(notice);
                continue;
            }
            _ => return Ok(gathered),
        };
        gathered.bytes = gathered.bytes.max(end);
        progress.at(end);
    }
}

/// Describes the companions of a file.
#[derive(Debug, Default)]
struct Companions {
    index: Option<String>,
    table: Option<String>,
    insightface: Option<String>,
}

impl Companions {
    fn of(input: &RecordFile, options: &OpenOptions) -> Result<Companions> {
        let mut companions = Companions::default();
        let Some(source) = input.source() else { return Ok(companions) };
        if let Some(path) = source.path().filter(|path| Table::path_for(path).exists()) {
            companions.table = Some(match Table::load(path) {
                Ok(table) => format!("fits the file ({})", term::plural(table.positions().len(), "record")),
                Err(error) if error.kind() == ErrorKind::OutOfMemory => return Err(error.into()),
                Err(error) => error.to_string(),
            });
        }
        if source.path().and_then(|path| input.format().index_file_for(path)).is_none() {
            return Ok(companions);
        }
        let reader = input.format().open(source.clone(), options)?;
        companions.index = match reader.index_file() {
            Ok(IndexState::Present { path, keys }) => {
                Some(format!("{} ({})", super::show(&path), term::plural(keys, "key")))
            }
            Ok(IndexState::Missing) => Some("none: `anyrec index` writes one".to_owned()),
            Ok(_) => None,
            Err(error) if error.kind() == ErrorKind::OutOfMemory => return Err(error.into()),
            Err(error) => Some(error.to_string()),
        };
        companions.insightface = faces::describe(source, input.format(), options);
        Ok(companions)
    }
}

fn to_json(subject: &Subject, all_labels: bool) -> Value {
    let Subject { path, format, version, companions, gathered, .. } = subject;
    let description = Description::from_contents(&gathered.contents);
    let counted = |counts: Vec<(f64, u64)>| -> Value {
        let one = |(label, count)| json!({"label": label_json(&Label::Scalar(label)), "count": count});
        counts.into_iter().map(one).collect()
    };
    let labels = (gathered.labelled > 0).then(|| {
        let mut labels = json!({
            "count": gathered.labelled,
            "classes": gathered.classes.len(),
            "width": gathered.label_width,
            "most_frequent": counted(gathered.frequent()),
        });
        if all_labels && let Some(labels) = labels.as_object_mut() {
            labels.insert("counts".to_owned(), counted(gathered.counts()));
        }
        labels
    });
    json!({
        "path": path,
        "format": format.id(),
        "version": version,
        "records": gathered.sizes.count,
        "bytes": gathered.bytes,
        "checksummed": format.capabilities().checksummed,
        "header": description.header,
        "trailer": description.trailer,
        "shape": description.shape,
        "dtype": description.dtype,
        "damage": gathered.damage,
        "sizes": {
            "min": gathered.sizes.min,
            "median": gathered.median(),
            "mean": gathered.mean(),
            "max": gathered.sizes.max,
            "total": gathered.sizes.sum,
        },
        "kinds": gathered.kinds,
        "labels": labels,
        "index": companions.index,
        "table": companions.table,
        "insightface": companions.insightface,
        "notices": gathered.notices.iter().map(|notice| &notice.message).collect::<Vec<_>>(),
    })
}

fn print(out: &mut Out, subject: &Subject, all_labels: bool) -> Result<()> {
    let Subject { name, format, version, companions, gathered, .. } = subject;
    let mut row =
        |label: &str, text: String| out.line(format!("{}{label:<12}{} {text}", term::CYAN, term::RESET));
    let version = if version.is_empty() { String::new() } else { format!(", version {version}") };
    row("file", name.to_owned())?;
    row("format", format!("{}{version}", format.name()))?;
    row("records", term::count(gathered.sizes.count))?;
    let rounded =
        if gathered.bytes < 1024 { String::new() } else { format!(" ({})", term::bytes(gathered.bytes)) };
    row("bytes", format!("{}{rounded}", term::count(gathered.bytes)))?;
    let (median, mean, sizes) = (gathered.median(), gathered.mean(), &gathered.sizes);
    if sizes.count > 0 {
        row(
            "sizes",
            format!(
                "min {}, median {}, mean {}, max {}",
                term::bytes(sizes.min),
                term::bytes(median),
                term::bytes(mean),
                term::bytes(sizes.max)
            ),
        )?;
        for (bits, &count) in sizes.histogram.iter().enumerate().filter(|(_, count)| **count > 0) {
            row("", histogram_line(bits, count, sizes.histogram.iter().copied().max().unwrap_or(1)))?;
        }
    }
    row(
        "checksums",
        if format.capabilities().checksummed {
            "yes (`anyrec verify` computes them)".into()
        } else {
            "none in this format".into()
        },
    )?;
    for content in &gathered.contents {
        match content {
            Content::Header(pairs) => {
                for (key, value) in pairs {
                    let value = term::escape(value.to_string().as_bytes());
                    row("header", format!("{} = {}", term::escape(key), term::shorten(&value, 100)))?;
                }
            }
            Content::Trailer(trailer) => row("trailer", term::bytes(trailer.len() as u64))?,
            Content::Shape { dtype, shape } => row("array", format!("{dtype} {shape:?}"))?,
            _ => {}
        }
    }
    let kinds: Vec<String> =
        gathered.kinds.iter().map(|(kind, count)| format!("{kind} {}", term::count(*count))).collect();
    if !kinds.is_empty() {
        row("payloads", kinds.join(", "))?;
    }
    if gathered.labelled > 0 {
        let frequent: Vec<_> = gathered
            .frequent()
            .iter()
            .map(|(label, count)| format!("{label} ({})", term::count(*count)))
            .collect();
        row(
            "labels",
            format!(
                "{} labelled, {} classes, most frequent {}",
                term::plural(gathered.labelled, "record"),
                term::count(gathered.classes.len() as u64),
                frequent.join(", ")
            ),
        )?;
        for (label, count) in gathered.counts().into_iter().filter(|_| all_labels) {
            row("", format!("{label:>14} {}", term::count(count)))?;
        }
    }
    for (label, text) in [
        ("index file", &companions.index),
        ("table", &companions.table),
        ("InsightFace", &companions.insightface),
    ] {
        if let Some(text) = text {
            row(label, term::clean(text))?;
        }
    }
    if !gathered.damage.is_empty() {
        let places = term::plural(gathered.damage.len() as u64, "place");
        let told = format!("{}in {places}{}: run `anyrec verify` for details", term::RED, term::RESET);
        row("damage", told)?;
    }
    Ok(())
}

/// `64..127 B  ████████ 1 024`
fn histogram_line(bits: usize, count: u64, most: u64) -> String {
    const WIDTH: u64 = 32;
    let range = match bits {
        0 => "empty".to_owned(),
        _ => format!("from {}", term::bytes(1u64 << (bits - 1))),
    };
    let length = usize::try_from(count.saturating_mul(WIDTH).div_ceil(most.max(1))).unwrap_or(0);
    format!("{range:>14} {} {}", "█".repeat(length), term::count(count))
}
