//! Converts between formats.
//!
//! Records come from the inputs' scans, which other threads prefetch, and go to a writer one at a
//! time, so memory does not grow with the files. Keys and labels are kept if both sides can store
//! them; what cannot be stored is counted and reported in the result.
//!
//! An MXNet image record contains its label, in a header before the image. It stays there unless
//! [`ConvertOptions::strip_header`] is set. Then the payload alone is the record, and the label
//! becomes a label of the output, if the output has labels.

mod shards;

use crate::base::{ElementType, Error, Hint, Result, Tags};
use crate::dataset::{Dataset, RecordFile};
use crate::format::{
    self, Event, Format, LabelReader, Labels, Notice, OpenOptions, RecordReader, RecordWriter, Scan,
    WriteOptions, Written, scan_ahead,
};
use crate::io::{FileSet, Source};
use shards::ShardWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The options for a conversion.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ConvertOptions {
    /// How to open inputs. `skip_damage` skips damage instead of stopping at it.
    pub open: OpenOptions,
    /// How to write outputs. Between files of one format, settings left at their defaults are
    /// copied from the first input.
    pub write: WriteOptions,
    /// Records with a header (MXNet's image records): write only the payload.
    pub strip_header: bool,
    /// How the output is split into files.
    pub shards: Shards,
    /// A label file (IDX, one number per record) that belongs to the inputs' records, in order.
    pub labels: Option<PathBuf>,
    /// Writes the labels to this IDX file, beside the output.
    pub label_output: Option<PathBuf>,
    /// Element type of `label_output` (default `uint8`).
    pub label_dtype: Option<ElementType>,
}

/// How an output is split into files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Shards {
    /// One file, with the given name.
    #[default]
    One,
    /// This many files with equal numbers of records: `name-00000-of-00008.rec`.
    Count(u64),
    /// As many files as needed for each to hold at most this many bytes of records (a larger record
    /// gets its own file): `name-00000.rec`.
    Bytes(u64),
}

/// The result of a conversion.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Conversion {
    /// The files written, in order, with their contents.
    pub outputs: Vec<(PathBuf, Written)>,
    /// Records written.
    pub records: u64,
    /// Damage that was skipped, as errors with their position.
    pub skipped: Vec<String>,
    /// What could not be kept, and other notices.
    pub notices: Vec<Notice>,
}

/// Writes the records of `inputs`, in order, to `output`.
///
/// # Errors
/// Damage (unless `options.open.skip_damage`), a record the output's format cannot store, an
/// existing output (unless `options.write.overwrite`), or the operating system's error. After an
/// error there is no output: several files are published together, when all are complete.
pub fn convert(
    mut inputs: Vec<RecordFile>,
    output: &Path,
    to: &'static dyn Format,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Conversion> {
    for input in &inputs {
        check_is_not(input.source(), output)?;
    }
    let write = match inputs.first_mut() {
        Some(first) => options_for(first, to, options)?,
        None => return Err(Error::invalid("no input was named")),
    };
    let write = with_count(write, &inputs, to, options);
    let total = || inputs.iter().map(|input| count(input, &options.open)).sum();
    let mut sink = ShardWriter::new(output, to, &write, options, total)?;
    let labels = options.labels.as_deref().map(|path| LabelReader::open(path, &options.open)).transpose()?;
    let mut done = 0;
    for input in inputs {
        let name = input.name().to_owned();
        let length = input.length().unwrap_or(0);
        let format = input.format();
        let [embedded, embeds] = [format, to].map(|format| format.capabilities().labels == Labels::InRecord);
        let reader = input.reader_for_tags(&options.open)?;
        if labels.is_none() && to.capabilities().labels != Labels::Beside {
            sink.result.notices.extend(reader.as_deref().and_then(labels_left_behind));
        }
        let mut scan = scan_ahead(format, input.into_window(), &options.open)?;
        let mut number = 0;
        loop {
            match scan.next_event()? {
                Event::Record(record) => {
                    let place = |error: Error| {
                        error.in_file(name.clone()).at(record.position.frame).in_record(number)
                    };
                    let mut tags = match &reader {
                        Some(reader) => reader.tags(number, record.position, record.data).map_err(place)?,
                        None => format.tags(record.data),
                    };
                    let mut payload = record.data;
                    if options.strip_header {
                        payload = record
                            .data
                            .get(tags.header_length..)
                            .filter(|_| tags.header_length > 0)
                            .ok_or_else(|| {
                                place(Error::invalid("the record has no image header to strip"))
                            })?;
                    } else if embedded && labels.is_some() && embeds {
                        // A header with the new label and the old ids takes the place of this one.
                        payload = record.data.get(tags.header_length..).unwrap_or_default();
                    } else if embedded {
                        tags.label = None;
                    }
                    if payload.len() < record.data.len() {
                        tags.header_length = 0;
                    }
                    if let Some(labels) = &labels {
                        tags.label = Some(labels.get(sink.result.records)?);
                    }
                    // An error of the output; the offset of the record in the input would not help.
                    sink.append(payload, &tags).map_err(|error| error.in_record(number))?;
                    progress(done + record.span.end);
                    number += 1;
                }
                Event::Damage(damage) if options.open.skip_damage => {
                    sink.result.skipped.push(damage.into_error(&name).to_string());
                }
                Event::Damage(damage) => return Err(damage.into_error(&name)),
                Event::End => break,
                _ => {}
            }
        }
        done += length;
    }
    if let Some(labels) = &labels {
        labels.check_all_used(sink.result.records)?;
    }
    let (conversion, files) = sink.complete()?;
    files.publish()?;
    Ok(conversion)
}

/// Writes the records of a dataset with these numbers, in this order, to `output`: shuffling,
/// splitting, selecting. The output's settings and notices are as for [`convert`].
///
/// # Errors
/// As [`convert`]; damage in a selected record is always an error.
pub fn select(
    dataset: &Dataset,
    numbers: impl ExactSizeIterator<Item = u64>,
    output: &Path,
    to: &'static dyn Format,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Conversion> {
    select_parts(dataset, vec![(output.to_owned(), numbers)], to, options, progress)
}

/// Like [`select`], into several files, which are published together.
///
/// # Errors
/// As [`select`].
pub fn select_parts(
    dataset: &Dataset,
    parts: Vec<(PathBuf, impl ExactSizeIterator<Item = u64>)>,
    to: &'static dyn Format,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Conversion> {
    let mut whole = Conversion::default();
    let mut all_files = FileSet::default();
    for (output, numbers) in parts {
        let before = whole.records;
        let (part, files) =
            select_part(dataset, numbers, &output, to, options, &mut |done| progress(before + done))?;
        all_files.append(files);
        whole.records += part.records;
        whole.outputs.extend(part.outputs);
        whole.notices.extend(part.notices);
    }
    all_files.publish()?;
    Ok(whole)
}

fn select_part(
    dataset: &Dataset,
    numbers: impl ExactSizeIterator<Item = u64>,
    output: &Path,
    to: &'static dyn Format,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<(Conversion, FileSet)> {
    let mut write = options.write.clone();
    if let (Some(first), true) = (dataset.readers().next(), dataset.format().id() == to.id()) {
        let source = first.source();
        let head = source.bytes(0..source.len().min(format::HEAD as u64))?;
        to.inherit(&mut write, &to.options_like(&head, &first.info()?.contents(), dataset.options()));
    }
    for reader in dataset.readers() {
        check_is_not(Some(reader.source()), output)?;
    }
    let total = numbers.len() as u64;
    let mut sink = ShardWriter::new(output, to, &write, options, || Ok(total))?;
    for (done, number) in numbers.enumerate() {
        let record = dataset.read(number)?;
        let mut tags = dataset.stored_tags_of(number, &record)?;
        // A record that contains its label stays unchanged.
        if dataset.format().capabilities().labels == Labels::InRecord {
            tags.label = None;
        }
        sink.append(&record, &tags).map_err(|error| error.in_record(number))?;
        progress(done as u64 + 1);
    }
    sink.complete()
}

/// Says that a file beside this one has labels, which are not converted.
fn labels_left_behind(reader: &dyn RecordReader) -> Option<Notice> {
    let is_there = reader.count().is_ok_and(|count| count > 0) && reader.label_beside(0).ok()?.is_some();
    let notice = || Notice::new("the labels in the file beside it are not converted");
    is_there.then(|| notice().with_hint(Hint::ConvertLabels))
}

/// Passes every intact record of a scan, with its key, to a writer of the same format. `instead`
/// replaces the record with that number.
pub(crate) fn append_scanned(
    scan: &mut dyn Scan,
    reader: Option<&dyn RecordReader>,
    writer: &mut dyn RecordWriter,
    instead: Option<(u64, Vec<u8>)>,
) -> Result<()> {
    let mut number = 0;
    loop {
        match scan.next_event()? {
            Event::Record(record) => {
                let mut tags = match reader {
                    Some(reader) => reader.tags(number, record.position, record.data)?,
                    None => Tags::none(),
                };
                // Within one format, the label is already part of the record's bytes.
                tags.label = None;
                let data = match &instead {
                    Some((replaced, data)) if *replaced == number => data,
                    _ => record.data,
                };
                writer.append(data, &tags)?;
                number += 1;
            }
            Event::End => return Ok(()),
            _ => {}
        }
    }
}

/// Tells the output how many records to expect, if that is known and the output uses it.
fn with_count(
    mut write: WriteOptions,
    inputs: &[RecordFile],
    to: &'static dyn Format,
    options: &ConvertOptions,
) -> WriteOptions {
    let known = options.shards == Shards::One
        && !options.open.skip_damage
        && inputs.iter().all(|input| input.format().capabilities().random_access);
    if known && to.capabilities().wants_count {
        // A file that cannot be counted is reported when its records are read.
        let counts = inputs.iter().map(|input| count(input, &options.open).ok());
        write.count = write.count.or(counts.sum());
    }
    write
}

fn count(input: &RecordFile, options: &OpenOptions) -> Result<u64> {
    match input.reader(options)? {
        Some(opened) => opened.reader.count(),
        None => Err(Error::unsupported("a number of files needs the number of records beforehand")
            .in_file(input.name())
            .with_hint("cut by size instead")),
    }
}

fn check_is_not(source: Option<&Arc<dyn Source>>, output: &Path) -> Result<()> {
    let path = source.and_then(|source| source.path());
    match path.zip(output.canonicalize().ok()) {
        Some((path, found)) if path.canonicalize().ok().as_ref() == Some(&found) => {
            Err(Error::invalid("the input is never written over").in_file(output).with_hint(
                "give another name, and replace the old file yourself once you have seen the result",
            ))
        }
        _ => Ok(()),
    }
}

/// The write options, completed from an input that has the output's format.
fn options_for(
    input: &mut RecordFile,
    to: &'static dyn Format,
    options: &ConvertOptions,
) -> Result<WriteOptions> {
    let mut write = options.write.clone();
    if input.format().id() != to.id() || options.strip_header {
        return Ok(write);
    }
    let contents = match input.reader_for_tags(&options.open)? {
        Some(reader) => reader.info()?.contents(),
        None => Vec::new(),
    };
    let like = to.options_like(input.head()?, &contents, &options.open);
    to.inherit(&mut write, &like);
    Ok(write)
}
