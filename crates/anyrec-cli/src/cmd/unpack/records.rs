//! Writes one file per record, from a scan of any format.

use super::Unpack;
use super::array::Item;
use super::faces::Faces;
use super::labels::Labels;
use super::target::{Target, UNLABELLED, class_name};
use crate::progress::Progress;
use anyhow::Result;
use anyrec::RecordFile;
use anyrec::format::{Event, Format, OpenOptions, RecordReader};
use anyrec::{Key, Label, Tags};
use anyrec_image::{Kind, sniff};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes the records of the files into a folder, numbered consecutively.
pub fn unpack(command: &Unpack, files: &[PathBuf], options: &OpenOptions, target: &mut Target) -> Result<()> {
    let inputs = files
        .iter()
        .map(|path| Ok((path.as_path(), crate::cmd::open(path, options)?)))
        .collect::<anyrec::Result<Vec<_>>>()?;
    let progress = Progress::new("unpack", inputs.iter().filter_map(|(_, input)| input.length()).sum());
    let named = command.labels.as_deref().map(|path| Labels::open(path, options)).transpose()?;
    let mut records = Records {
        // Several files may use the same keys.
        by_key: !command.by_number && files.len() == 1,
        by_class: match (command.by_class, command.flat) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        },
        target,
        number: 0,
        uncertain: false,
    };
    if let Some(labels) = named.as_ref().filter(|_| !command.skip_damage) {
        let mut count = 0;
        for (_, input) in &inputs {
            count += input.reader(options)?.map_or(Ok(0), |opened| opened.reader.count())?;
        }
        labels.check_count(count)?;
    }
    let mut done = 0;
    for (path, input) in inputs {
        let length = input.length().unwrap_or(0);
        let source = Prepared::of(path, &input, options, named.is_none())?;
        records.add(source, input, named.as_ref(), options, &|offset| progress.at(done + offset))?;
        done += length;
    }
    Ok(())
}

/// What is known about a file before its records are read.
struct Prepared {
    reader: Option<Arc<dyn RecordReader>>,
    format: &'static dyn Format,
    item: Option<Item>,
    labels: Option<Labels>,
    faces: Option<Faces>,
}

impl Prepared {
    fn of(path: &Path, input: &RecordFile, options: &OpenOptions, look_for_labels: bool) -> Result<Self> {
        let reader = input.reader_for_tags(options)?;
        let faces = match input.source() {
            Some(source) => Faces::open(source, input.format(), options)?,
            None => None,
        };
        let item = match &reader {
            Some(reader) => {
                let info = reader.info()?;
                let shape = info.shape.as_deref();
                info.dtype
                    .zip(shape)
                    .map(|(dtype, shape)| Item::new(dtype, shape.get(1..).unwrap_or_default()))
            }
            None => None,
        };
        let labels = match &item {
            Some(item) if look_for_labels => Labels::beside(path, item, options)?,
            _ => None,
        };
        if let (Some(labels), Some(reader)) = (&labels, reader.as_ref().filter(|_| !options.skip_damage)) {
            labels.check_count(reader.count()?)?;
        }
        Ok(Prepared { reader, format: input.format(), item, labels, faces })
    }
}

/// The state of writing records out.
struct Records<'a> {
    target: &'a mut Target,
    by_key: bool,
    /// Whether records are sorted into class folders. The first record decides if the user did not.
    by_class: Option<bool>,
    number: u64,
    /// Damage was found: from here on, record numbers may not match the label numbers.
    uncertain: bool,
}

impl Records<'_> {
    fn add(
        &mut self,
        mut source: Prepared,
        input: RecordFile,
        named: Option<&Labels>,
        options: &OpenOptions,
        progress: &dyn Fn(u64),
    ) -> Result<()> {
        let name = input.name().to_owned();
        let mut scan = input.scan(options)?;
        let mut local = 0;
        loop {
            match scan.next_event()? {
                Event::Record(record) => {
                    let mut tags = match &source.reader {
                        Some(reader) => reader.tags(local, record.position, record.data)?,
                        None => source.format.tags(record.data),
                    };
                    let label = match (named, &source.labels) {
                        (Some(labels), _) => Some(labels.get(self.number)),
                        (None, Some(labels)) => Some(labels.get(local)),
                        (None, None) => None,
                    };
                    let labelled = label.is_some();
                    if let Some(label) = label {
                        tags.label = if self.uncertain { None } else { Some(label?) };
                    }
                    self.put(&mut source, record.data, &tags, labelled)
                        .map_err(|error| error.in_file(name.clone()).in_record(local))?;
                    progress(record.span.end);
                    self.number += 1;
                    local += 1;
                }
                Event::Metadata(metadata) => {
                    if let (None, anyrec::format::Content::Shape { dtype, shape }) =
                        (&source.item, &metadata.content)
                    {
                        source.item = Some(Item::new(*dtype, shape.get(1..).unwrap_or_default()));
                    }
                }
                Event::Damage(damage) if options.skip_damage => {
                    self.target.ledger.damaged += 1;
                    self.target.ledger.skipped.push(damage.into_error(&name).to_string());
                    if (named.is_some() || source.labels.is_some()) && !self.uncertain {
                        self.target.ledger.notices.push(format!(
                            "after damage, labels can no longer be matched to records: records go to {UNLABELLED}"
                        ));
                    }
                    self.uncertain = true;
                }
                Event::Damage(damage) => return Err(damage.into_error(&name).into()),
                Event::End => break,
                _ => {}
            }
        }
        if named.is_none() {
            self.uncertain = false;
        }
        self.tell_of_faces(source.faces);
        Ok(())
    }

    /// Writes one record.
    fn put(
        &mut self,
        source: &mut Prepared,
        record: &[u8],
        tags: &Tags,
        labelled: bool,
    ) -> anyrec::Result<()> {
        let payload = record.get(tags.header_length..).unwrap_or(record);
        let mut key = tags.key.clone();
        if let Some(faces) = &mut source.faces {
            let number = Faces::key(tags);
            if !faces.is_face(number, payload) {
                return Ok(());
            }
            faces.check(number, tags.label.as_ref());
            key = key.or(number.map(|number| Key::Int(number.into())));
        }
        let encoded;
        let content = match &source.item {
            Some(item) => {
                encoded = item.encode(record)?;
                &encoded
            }
            None => payload,
        };
        let sure = source.faces.is_some() || labelled;
        let by_class = *self.by_class.get_or_insert_with(|| sure || is_labelled_image(tags, payload));
        let class = by_class.then(|| match &tags.label {
            Some(label) => class_name(label),
            None => UNLABELLED.to_owned(),
        });
        self.target.write(class.as_deref(), key.as_ref().filter(|_| self.by_key), self.number, content)
    }

    fn tell_of_faces(&mut self, faces: Option<Faces>) {
        let Some(faces) = faces else { return };
        let notices = &mut self.target.ledger.notices;
        if faces.left_out > 0 {
            notices.push(format!(
                "InsightFace: {} records hold only labels (the header, and one per person) and are not images",
                faces.left_out
            ));
        }
        if faces.mislabelled > 0 {
            notices.push(format!(
                "InsightFace: the labels of {} images differ from the identity records; folders follow the labels",
                faces.mislabelled
            ));
        }
        notices.extend(faces.notices);
    }
}

/// Whether a record is an image whose label is one whole number, which is then its class.
fn is_labelled_image(tags: &Tags, payload: &[u8]) -> bool {
    matches!(tags.label, Some(Label::Scalar(label)) if label.fract() == 0.0)
        && matches!(sniff(payload), Kind::Image { .. })
}
