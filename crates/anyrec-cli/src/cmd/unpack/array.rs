//! Writes an array record to a file: a PNG if it is an image, a NumPy array otherwise.

use anyrec::ElementType;
use anyrec::Result;
use anyrec_image::{Channels, Picture, Samples, encode_png};

/// What the records of an array contain.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    dtype: ElementType,
    shape: Vec<u64>,
    picture: Option<Layout>,
}

/// How a record represents an image.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Layout {
    width: u32,
    height: u32,
    channels: Channels,
    /// Channels are stored one after the other (planar) instead of pixel by pixel.
    planar: bool,
}

impl Item {
    /// The records of an array with this element type and record shape.
    pub fn new(dtype: ElementType, shape: &[u64]) -> Self {
        let picture = if dtype == ElementType::U8 { Layout::of(shape) } else { None };
        Item { dtype, shape: shape.to_vec(), picture }
    }

    /// Whether records become PNG images.
    pub fn is_picture(&self) -> bool {
        self.picture.is_some()
    }

    /// The file content of a record.
    pub fn encode(&self, record: &[u8]) -> Result<Vec<u8>> {
        match self.picture {
            Some(layout) => encode_png(&layout.picture(record)?, PNG_LEVEL),
            None => Ok(self.npy(record)),
        }
    }

    /// A NumPy file, version 1.0. The elements stay big-endian, as the type in the header declares.
    fn npy(&self, record: &[u8]) -> Vec<u8> {
        let kind = match self.dtype {
            ElementType::U8 => "|u1",
            ElementType::I8 => "|i1",
            ElementType::I16 => ">i2",
            ElementType::I32 => ">i4",
            ElementType::F32 => ">f4",
            ElementType::F64 => ">f8",
            // No type that this build does not know gets here: formats list theirs.
            _ => "|V1",
        };
        let mut shape: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        if shape.len() == 1 {
            // A tuple of one element needs a comma.
            shape.push(String::new());
        }
        let shape = shape.join(", ");
        let mut header =
            format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}", shape.trim_end());
        // Magic, version, length and header are padded to a multiple of 64 bytes and end with a
        // newline.
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        // An array has at most 255 dimensions of at most 10 digits.
        let length = u16::try_from(header.len()).unwrap_or(u16::MAX);
        [&b"\x93NUMPY\x01\x00"[..], &length.to_le_bytes(), header.as_bytes(), record].concat()
    }
}

/// A zlib level that gives most of the compression for little of the time.
const PNG_LEVEL: u8 = 4;

impl Layout {
    /// Height and width, with the channels after or before them.
    fn of(shape: &[u64]) -> Option<Self> {
        let (height, width, channels, planar) = match *shape {
            [height, width] => (height, width, 1, false),
            [height, width, channels @ (1 | 3 | 4)] => (height, width, channels, false),
            [channels @ (1 | 3 | 4), height, width] => (height, width, channels, true),
            _ => return None,
        };
        let side = |length: u64| u32::try_from(length).ok().filter(|&length| length > 0);
        Some(Layout {
            width: side(width)?,
            height: side(height)?,
            channels: Channels::from_count(usize::try_from(channels).ok()?).ok()?,
            planar,
        })
    }

    fn picture(self, record: &[u8]) -> Result<Picture> {
        let count = self.channels.count();
        let samples = if self.planar && count > 1 {
            let plane = record.len() / count;
            let sample = |at: usize| record.get(at % count * plane + at / count).copied().unwrap_or(0);
            (0..record.len()).map(sample).collect()
        } else {
            record.to_vec()
        };
        Picture::new(self.width, self.height, self.channels, Samples::Eight(samples))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyrec_image::{DecodeOptions, decode};

    #[test]
    fn bytes_of_two_or_three_dimensions_are_pictures() {
        let is_picture = |shape: &[u64]| Item::new(ElementType::U8, shape).is_picture();
        assert!(is_picture(&[28, 28]) && is_picture(&[2, 2, 3]) && is_picture(&[3, 32, 32]));
        assert!(!is_picture(&[]) && !is_picture(&[7]) && !is_picture(&[0, 5]) && !is_picture(&[5, 5, 5]));
        assert!(!Item::new(ElementType::F32, &[28, 28]).is_picture());
    }

    #[test]
    fn planes_and_pixels_give_the_same_picture() {
        let decoded = |shape: &[u64], record: &[u8]| {
            let png = Item::new(ElementType::U8, shape).encode(record).unwrap();
            decode(&png, &DecodeOptions::default()).unwrap()
        };
        let pixels = decoded(&[1, 2, 3], &[1, 2, 3, 4, 5, 6]);
        assert_eq!((pixels.width(), pixels.height()), (2, 1));
        assert_eq!(pixels, decoded(&[3, 1, 2], &[1, 4, 2, 5, 3, 6]));
    }

    #[test]
    fn a_numpy_file_has_an_aligned_header_and_the_bytes_as_they_were() {
        let of = |dtype, shape: &[u64], record: &[u8]| Item::new(dtype, shape).npy(record);
        let file = of(ElementType::I16, &[2], &[0, 1, 0, 2]);
        assert_eq!(file.len(), 128 + 4);
        assert!(file[10..].starts_with(b"{'descr': '>i2', 'fortran_order': False, 'shape': (2,), } "));
        assert_eq!(file[127..], [b'\n', 0, 1, 0, 2]);
        assert!(String::from_utf8_lossy(&of(ElementType::U8, &[], &[5])).contains("'|u1'"));
        assert!(String::from_utf8_lossy(&of(ElementType::U8, &[], &[5])).contains("'shape': (), }"));
        assert!(String::from_utf8_lossy(&of(ElementType::F64, &[2, 3, 4], &[])).contains("(2, 3, 4)"));
    }
}
