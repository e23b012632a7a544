//! InsightFace datasets: which records are faces, and whose.

use crate::term;
use anyrec::format::mxnet::{FORMAT, InsightFace, Reader};
use anyrec::format::{Format, OpenOptions};
use anyrec::io::Source;
use anyrec::{ErrorKind, Result};
use anyrec::{Key, Label, Tags};
use std::ops::Range;
use std::sync::Arc;

/// Describes an InsightFace dataset, if the file is one.
pub fn describe(source: &Arc<dyn Source>, format: &dyn Format, options: &OpenOptions) -> Option<String> {
    if format.id() != FORMAT.id() {
        return None;
    }
    let reader = Reader::open(source.clone(), options).ok()?;
    // Other files return an error here and are not described.
    let faces = InsightFace::open(&reader).ok()?;
    (faces.has_header() || faces.property().is_some()).then(|| describe_faces(&faces))
}

/// `5 822 653 images of 85 742 identities, 112x112`
fn describe_faces(faces: &InsightFace<'_>) -> String {
    let identities = faces.identity_keys();
    let size = faces.property().map_or(String::new(), |property| {
        format!(
            ", {} classes of {}x{} in `property`",
            term::count(property.classes),
            property.width,
            property.height
        )
    });
    let images = term::plural(faces.image_count(), "image");
    if !faces.has_header() {
        return format!("{images}, no header record: every key is an image{size}");
    }
    format!("{images} of {} identities{size}", term::count(identities.end.saturating_sub(identities.start)))
}

/// What is known about an InsightFace dataset.
#[derive(Debug)]
pub struct Faces {
    has_header: bool,
    /// Keys of the records that list a person's images.
    identity_keys: Range<u64>,
    /// The keys of each person's images, in order.
    identities: Vec<Range<u64>>,
    /// Records that hold only labels and are not images.
    pub left_out: u64,
    /// Images whose label differs from the number of the person in whose range they are.
    pub mislabelled: u64,
    pub notices: Vec<String>,
}

impl Faces {
    /// Returns the dataset if the file is one: it has a header record, or there is a `property`
    /// file beside it.
    ///
    /// If damage may be skipped, damaged identity records are skipped too: the images' own labels
    /// identify them.
    pub fn open(
        source: &Arc<dyn Source>,
        format: &dyn Format,
        options: &OpenOptions,
    ) -> Result<Option<Self>> {
        if format.id() != FORMAT.id() {
            return Ok(None);
        }
        let reader = Reader::open(source.clone(), options)?;
        let faces = match InsightFace::open(&reader) {
            Ok(faces) if faces.has_header() || faces.property().is_some() => faces,
            Ok(_) => return Ok(None),
            // In a file of other records, record 0 has no special meaning.
            Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut notices: Vec<String> = faces.notices().iter().map(|notice| notice.message.clone()).collect();
        let mut identities = Vec::new();
        let mut unreadable = 0u64;
        for identity in faces.identities() {
            match identity {
                Ok(identity) => identities.push(identity.images),
                Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::OutOfRange) => {
                    unreadable += 1;
                }
                Err(error) => return Err(error),
            }
        }
        if unreadable > 0 {
            notices.push(format!(
                "{unreadable} identity records cannot be read; persons are identified by label"
            ));
            // Their indices in the list would no longer match the persons' numbers.
            identities.clear();
        }
        Ok(Some(Faces {
            has_header: faces.has_header(),
            identity_keys: faces.identity_keys(),
            identities,
            left_out: 0,
            mislabelled: 0,
            notices,
        }))
    }

    /// Whether a record is a face. The header and the identity records have no payload, and keys of
    /// their own.
    pub fn is_face(&mut self, key: Option<u64>, payload: &[u8]) -> bool {
        let of_labels = self.has_header
            && payload.is_empty()
            && key.is_none_or(|key| key == 0 || self.identity_keys.contains(&key));
        self.left_out += u64::from(of_labels);
        !of_labels
    }

    /// Compares an image's label with the ranges of the identity records.
    pub fn check(&mut self, key: Option<u64>, label: Option<&Label>) {
        let Some(key) = key.filter(|_| !self.identities.is_empty()) else { return };
        let person = self.identities.partition_point(|images| images.end <= key);
        let within = self.identities.get(person).is_some_and(|images| images.contains(&key));
        let class = match label {
            Some(Label::Scalar(class)) => Some(*class),
            Some(Label::Array(labels)) => labels.first().copied(),
            None => None,
        };
        // There are far fewer than 2^53 persons.
        #[allow(clippy::cast_precision_loss)]
        let number = person as f64;
        self.mislabelled += u64::from(!within || class != Some(number));
    }

    /// The key of a record: from the index file, or else the id in its header, as `anyrec index`
    /// would assign it.
    pub fn key(tags: &Tags) -> Option<u64> {
        match &tags.key {
            Some(Key::Int(key)) => u64::try_from(*key).ok(),
            Some(Key::Text(_)) => None,
            None => tags.ids.map(|[id, _]| id),
        }
    }
}
