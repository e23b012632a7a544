//! Rebuilds an index file from the records.
//!
//! The keys of a lost index file are not stored in the `.rec` file as such. Image records carry an
//! id, and writers set it to the key. If every record has an id and all ids differ, they are used
//! as the keys. This matters for InsightFace files, whose record 0 is written last: counting would
//! give every record a wrong key. Otherwise keys are ordinals, as in the original `rec2idx` tool.

use super::image_header::{ImageHeader, LabelWidth};
use super::image_survey::Survey;
use super::index_file::{Index, KeyType};
use crate::base::{Key, Result};
use crate::format::{BuiltIndex, Event, Scan};
use crate::io::Access;
use std::path::Path;

/// Where the keys of a rebuilt index come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeySource {
    /// The ids in the image headers.
    ImageIds,
    /// The records' numbers.
    Ordinals,
}

/// An index built from a scan, and how it was built.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rebuilt {
    /// The index, one entry per record, in file order.
    pub index: Index,
    /// Where its keys come from.
    pub key_source: KeySource,
    /// Why, in one sentence.
    pub reason: String,
    /// Number of ranges in the file without an intact record.
    pub damaged_stretches: u64,
}

impl Rebuilt {
    /// The file to write to `output`, with a report on it.
    pub(super) fn into_file(self, output: &Path, access: Access) -> Result<BuiltIndex> {
        let mut reason = self.reason;
        // An index file that cannot be parsed has no keys to compare.
        let old = output.is_file().then(|| Index::load(output, access, None).ok()).flatten();
        if let Some(changed @ 1..) = old.map(|old| self.index.keys_unlike(&old)) {
            let records = if changed == 1 { "1 record".to_owned() } else { format!("{changed} records") };
            reason.push_str(&format!("; {records} had another key in the index file that was replaced"));
        }
        let records = self.index.len() as u64;
        Ok(BuiltIndex::new(self.index.to_bytes()?, records, reason, self.damaged_stretches))
    }
}

impl Index {
    /// Builds an index from the records of a scan and reports the current offset to `progress`.
    ///
    /// ```
    /// use anyrec::format::mxnet::{FORMAT, Index, KeySource};
    /// use anyrec::format::{Format, OpenOptions};
    /// use anyrec::io::{MemorySource, Window};
    /// use std::sync::Arc;
    ///
    /// let bytes = b"\x0a\x23\xd7\xce\x01\0\0\0a\0\0\0\x0a\x23\xd7\xce\0\0\0\0";
    /// let window = Window::new(Arc::new(MemorySource::new("x.rec", bytes.to_vec())));
    /// let rebuilt = Index::rebuild(&mut *FORMAT.scan(window, &OpenOptions::default())?, &mut |_| {})?;
    /// assert_eq!(rebuilt.key_source, KeySource::Ordinals);
    /// assert_eq!(rebuilt.index.to_bytes()?, b"0\t0\n1\t12\n");
    /// # Ok::<(), anyrec::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the scan. Damage is not an error; the result lists it.
    pub fn rebuild(scan: &mut dyn Scan, progress: &mut dyn FnMut(u64)) -> Result<Rebuilt> {
        let mut offsets = Vec::new();
        let mut ids = Ids::default();
        let mut damaged_stretches = 0;
        loop {
            match scan.next_event()? {
                Event::Record(record) => {
                    ids.add(offsets.len() as u64, record.data);
                    offsets.push(record.position.frame);
                    progress(record.span.end);
                }
                Event::Damage(damage) => {
                    damaged_stretches += 1;
                    progress(damage.end);
                }
                Event::End => break,
                _ => {}
            }
        }
        let (keys, key_source, mut reason) = choose(ids.verdict());
        if key_source == KeySource::Ordinals && damaged_stretches > 0 {
            reason.push_str("; damaged stretches are not counted, so keys after them may be too small");
        }
        let mut index = Index::new(KeyType::Int);
        for (number, &offset) in offsets.iter().enumerate() {
            let key = keys.get(number).map_or(number as i128, |&id| i128::from(id));
            index.push(&Key::Int(key), offset)?;
        }
        Ok(Rebuilt { index, key_source, reason, damaged_stretches })
    }
}

/// The ids of the records so far, read with both header widths.
#[derive(Debug, Default)]
struct Ids {
    survey: Survey,
    narrow: Vec<u64>,
    wide: Vec<u64>,
}

impl Ids {
    fn add(&mut self, number: u64, record: &[u8]) {
        self.survey.add(number, record, &[number]);
        for (width, ids) in [(LabelWidth::Narrow, &mut self.narrow), (LabelWidth::Wide, &mut self.wide)] {
            match ImageHeader::unpack(record, width) {
                Ok((header, _)) if self.survey.allows(width) => ids.push(header.id),
                // This width is ruled out.
                _ => *ids = Vec::new(),
            }
        }
    }

    /// The ids, if every record has a header.
    fn verdict(self) -> Option<Vec<u64>> {
        match self.survey.verdict()? {
            LabelWidth::Narrow => Some(self.narrow),
            LabelWidth::Wide => Some(self.wide),
        }
    }
}

/// The ids to use as keys (empty for ordinals), and the reason.
fn choose(ids: Option<Vec<u64>>) -> (Vec<u64>, KeySource, String) {
    let ordinals = |reason| (Vec::new(), KeySource::Ordinals, reason);
    match ids {
        None => ordinals("keys are record numbers, as not all records begin with an image header".to_owned()),
        Some(ids) => {
            let mut sorted = ids.clone();
            sorted.sort_unstable();
            match sorted.windows(2).find(|pair| pair.first() == pair.last()).and_then(<[u64]>::first) {
                Some(&id) => {
                    let twins: Vec<String> = (0..)
                        .zip(&ids)
                        .filter(|(_, other)| **other == id)
                        .map(|(record, _): (u64, _)| record.to_string())
                        .take(2)
                        .collect();
                    let twins = twins.join(" and ");
                    ordinals(format!("keys are record numbers, as records {twins} have the same id {id}"))
                }
                None => {
                    let reason = "keys are the ids of the image headers: every record has one, all different";
                    (ids, KeySource::ImageIds, reason.to_owned())
                }
            }
        }
    }
}
