//! IDX, the format of the MNIST files: one array, big-endian, with its type and shape in front.
//!
//! `train-images-idx3-ubyte` holds an array of 60000 x 28 x 28 bytes. As a record file it has 60000
//! records of 784 bytes, the slices along the first dimension. As an array it is read by
//! [`read_array`] and written by [`write_array`]. An array without dimensions is one record.
//! Gzipped files are detected by their content, not by their name.
//!
//! ```
//! use anyrec::format::idx::{self, Pair, Writer};
//! use anyrec::format::{OpenOptions, RecordReader, WriteOptions};
//! use anyrec::Label;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let folder = folder.path();
//! let options = WriteOptions::default().with(idx::WriteOptions::default().with_item_shape([2, 3]));
//! let mut images = Writer::create(folder.join("train-images-idx3-ubyte"), &options)?;
//! images.append_elements(&[1u8, 2, 3, 4, 5, 6])?;
//! images.append_elements(&[0u8; 6])?;
//! images.finish()?;
//!
//! let options = WriteOptions::default().with(idx::WriteOptions::default().with_item_shape([]));
//! let mut labels = Writer::create(folder.join("train-labels-idx1-ubyte"), &options)?;
//! labels.append_elements(&[7u8])?;
//! labels.append_elements(&[9u8])?;
//! labels.finish()?;
//!
//! let pair = Pair::open(folder.join("train-images-idx3-ubyte"), &OpenOptions::default())?;
//! assert_eq!(&pair.read(0)?[..], [1, 2, 3, 4, 5, 6]);
//! assert_eq!(pair.label(1)?, Label::Scalar(9.0));
//! # Ok::<(), anyrec::Error>(())
//! ```
//!
//! `docs/formats/idx.md` describes the byte layout.

#[cfg(feature = "ndarray")]
mod array;
mod deflate;
mod element;
mod gzip;
mod inflated;
mod labels;
mod layout;
mod options;
mod pair;
mod read;
mod replay;
mod scan;
mod write;

#[cfg(test)]
#[cfg(all(feature = "deflate", feature = "ndarray"))]
mod tests;

#[cfg(feature = "ndarray")]
pub use array::{Array, read_array, write_array};
pub use element::{Element, decode_number, encode_number};
pub(crate) use labels::{LabelReader, LabelWriter};
pub use layout::{Header, element_type, type_code};
pub use options::WriteOptions;
pub use pair::{Pair, partner, splits};
pub use read::Reader;
pub use write::Writer;

use super::{
    Capabilities, Content, Format, Labels, Likeness, OpenOptions, RecordReader, RecordWriter, Scan, Setting,
    SettingValue,
};
use crate::base::{ErrorKind, Limits, Result};
use crate::io::{MemorySource, Source, Window};
use bytes::Bytes;
use gzip::{Inflater, is_gzip};
use layout::MAX_HEADER;
use std::path::Path;
use std::sync::Arc;

/// The format, for [`FORMATS`](super::FORMATS).
pub static FORMAT: Idx = Idx;

/// IDX, plain or gzipped.
#[derive(Debug, Clone, Copy)]
pub struct Idx;

impl Format for Idx {
    fn id(&self) -> &'static str {
        "idx"
    }

    fn name(&self) -> &'static str {
        "IDX (MNIST)"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["idx3-ubyte", "idx1-ubyte", "idx3-ubyte.gz", "idx1-ubyte.gz"]
    }

    /// `x-idx3-ubyte`, `x.idx3-ubyte` or `x-idx3`, with any rank and any type, optionally followed
    /// by `.gz`. Not `x.idx`: that is MXNet's index file.
    fn has_name(&self, path: &Path) -> bool {
        pair::Spelling::of(path).is_some()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            checksummed: false,
            random_access: true,
            streamable: true,
            keys: false,
            labels: Labels::Beside,
            wants_count: false,
            fixed_size: true,
            // The largest value a header can express; `Header::new` rejects more.
            max_record: i64::MAX.unsigned_abs(),
        }
    }

    /// Certain if the shape matches the length exactly, or if the length is unknown (streams, gzip)
    /// and the header is complete. Possible if a valid type follows the two zeros.
    fn detect(&self, head: &[u8], length: Option<u64>) -> Likeness {
        if !is_gzip(head) {
            return likeness(head, length);
        }
        let source = MemorySource::new("", Bytes::copy_from_slice(head));
        let mut head = [0; MAX_HEADER];
        let inflater = Inflater::new(Window::new(Arc::new(source)), false, &Limits::default());
        match inflater.and_then(|mut inflater| inflater.fill(&mut head)) {
            Ok(length) => likeness(head.get(..length).unwrap_or_default(), None),
            // Opening the file reports the error.
            Err(error) if matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::Unsupported) => {
                Likeness::Possible
            }
            Err(_) => Likeness::No,
        }
    }

    /// Type and shape of its records. Whether to gzip depends on the new file's name.
    fn options_like(&self, _head: &[u8], contents: &[Content], _open: &OpenOptions) -> super::WriteOptions {
        let shape = contents.iter().find_map(|content| match content {
            Content::Shape { dtype, shape } => Some((*dtype, shape.get(1..).unwrap_or_default().to_vec())),
            _ => None,
        });
        let (dtype, item_shape) = shape.unzip();
        super::WriteOptions::default().with(WriteOptions { dtype, item_shape, gzip: None })
    }

    fn inherit(&self, options: &mut super::WriteOptions, like: &super::WriteOptions) {
        let (mut own, like): (WriteOptions, WriteOptions) = (options.own(), like.own());
        own.dtype = own.dtype.or(like.dtype);
        own.item_shape = own.item_shape.or(like.item_shape);
        options.set(own);
    }

    fn write_settings(&self) -> &'static [Setting] {
        options::WRITE
    }

    fn set_write(&self, options: &mut super::WriteOptions, name: &str, value: &SettingValue) -> Result<()> {
        options::set_write(options, name, value)
    }

    fn open(&self, source: Arc<dyn Source>, options: &OpenOptions) -> Result<Box<dyn RecordReader>> {
        Ok(Box::new(Reader::new(source, options)?))
    }

    fn create(&self, path: &Path, options: &super::WriteOptions) -> Result<Box<dyn RecordWriter>> {
        Ok(Box::new(Writer::create(path, options)?))
    }

    fn scan(&self, window: Window, options: &OpenOptions) -> Result<Box<dyn Scan>> {
        Ok(Box::new(scan::IdxScan::new(window, options)))
    }
}

fn likeness(head: &[u8], length: Option<u64>) -> Likeness {
    match Header::parse(head) {
        Ok(header) => match length {
            Some(length) if header.file_length() == length => Likeness::Certain,
            None if !header.shape().is_empty() => Likeness::Certain,
            _ => Likeness::Possible,
        },
        // A truncated or impossible header is still recognised, so that the fault can be reported.
        Err(_) => match head {
            [0, 0, code, _, ..] if element_type(*code).is_some() => Likeness::Possible,
            _ => Likeness::No,
        },
    }
}
