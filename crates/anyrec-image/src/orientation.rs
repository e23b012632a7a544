//! The orientation in EXIF data, and rotating an image upright by it.

use super::picture::{Picture, Sample, Samples, map_samples};

/// How a stored image must be transformed to be upright: EXIF's values 1 to 8.
///
/// ```
/// use anyrec_image::{Channels, Orientation, Picture, Samples};
///
/// let stored = Picture::new(2, 1, Channels::Gray, Samples::Eight(vec![1, 2]))?;
/// let upright = stored.turned(Orientation::QuarterRight);
/// assert_eq!((upright.width(), upright.height()), (1, 2));
/// # Ok::<(), anyrec::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Orientation {
    /// 1: upright as stored.
    #[default]
    Upright,
    /// 2: mirrored left to right.
    Mirrored,
    /// 3: rotated by 180 degrees.
    Half,
    /// 4: mirrored top to bottom.
    Flipped,
    /// 5: rows and columns exchanged (transposed).
    Transposed,
    /// 6: needs a quarter turn clockwise.
    QuarterRight,
    /// 7: rows and columns exchanged along the other diagonal.
    Transversed,
    /// 8: needs a quarter turn counterclockwise.
    QuarterLeft,
}

impl Orientation {
    /// The orientation for EXIF's values 1 to 8; any other value is upright.
    pub fn from_exif_value(value: u16) -> Self {
        match value {
            2 => Orientation::Mirrored,
            3 => Orientation::Half,
            4 => Orientation::Flipped,
            5 => Orientation::Transposed,
            6 => Orientation::QuarterRight,
            7 => Orientation::Transversed,
            8 => Orientation::QuarterLeft,
            _ => Orientation::Upright,
        }
    }

    /// The orientation in EXIF data (a TIFF header and its first directory). Data without one, or
    /// data that is not EXIF, is upright: a wrong orientation is no reason to refuse an image.
    pub fn from_exif(exif: &[u8]) -> Self {
        let exif = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
        orientation_value(exif).map_or(Orientation::Upright, Self::from_exif_value)
    }
}

const ORIENTATION_TAG: u16 = 0x0112;
const TYPE_SHORT: u16 = 3;

fn orientation_value(tiff: &[u8]) -> Option<u16> {
    let big_endian = match tiff.first_chunk::<4>()? {
        b"MM\0*" => true,
        b"II*\0" => false,
        _ => return None,
    };
    let u16_at = |bytes: &[u8], at: usize| {
        let raw = *bytes.get(at..)?.first_chunk::<2>()?;
        Some(if big_endian { u16::from_be_bytes(raw) } else { u16::from_le_bytes(raw) })
    };
    let directory = {
        let raw = *tiff.get(4..)?.first_chunk::<4>()?;
        let offset = if big_endian { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) };
        tiff.get(usize::try_from(offset).ok()?..)?
    };
    let count = u16_at(directory, 0)?;
    let (entries, _) = directory.get(2..)?.as_chunks::<12>();
    entries
        .iter()
        .take(usize::from(count))
        .find(|entry| u16_at(*entry, 0) == Some(ORIENTATION_TAG) && u16_at(*entry, 2) == Some(TYPE_SHORT))
        .and_then(|entry| u16_at(entry, 8))
}

impl Picture {
    /// Returns the image rotated upright, given its stored orientation.
    pub fn turned(self, orientation: Orientation) -> Picture {
        use Orientation::*;
        if orientation == Upright {
            return self;
        }
        let (width, height) = (self.width(), self.height());
        let exchanged = matches!(orientation, Transposed | QuarterRight | Transversed | QuarterLeft);
        let (new_width, new_height) = if exchanged { (height, width) } else { (width, height) };
        // Maps the pixel at (x, y) of the new image to the stored one.
        let source = |x: u32, y: u32| match orientation {
            Upright => (x, y),
            Mirrored => (width - 1 - x, y),
            Half => (width - 1 - x, height - 1 - y),
            Flipped => (x, height - 1 - y),
            Transposed => (y, x),
            QuarterRight => (y, height - 1 - x),
            Transversed => (width - 1 - y, height - 1 - x),
            QuarterLeft => (width - 1 - y, x),
        };
        let channels = self.channels();
        let samples = map_samples!(self.samples(), values => {
            gather(values, channels.count(), width, new_width, new_height, source)
        });
        Picture::new(new_width, new_height, channels, samples).unwrap_or(self)
    }
}

/// The pixels of an image of the given width, collected in a new order.
pub(super) fn gather<S: Sample>(
    samples: &[S],
    channels: usize,
    width: u32,
    new_width: u32,
    new_height: u32,
    source: impl Fn(u32, u32) -> (u32, u32),
) -> Vec<S> {
    let mut gathered = Vec::with_capacity(samples.len());
    for y in 0..new_height {
        for x in 0..new_width {
            let (from_x, from_y) = source(x, y);
            let at = (from_y as usize * width as usize + from_x as usize) * channels;
            gathered.extend_from_slice(samples.get(at..at + channels).unwrap_or_default());
        }
    }
    gathered
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Channels;

    #[test]
    fn every_orientation_moves_the_pixels_as_exif_says() {
        // 1 2 3
        // 4 5 6
        let stored = Samples::Eight(vec![1, 2, 3, 4, 5, 6]);
        let stored = Picture::new(3, 2, Channels::Gray, stored).unwrap();
        for (value, width, expected) in [
            (1, 3, [1, 2, 3, 4, 5, 6]),
            (2, 3, [3, 2, 1, 6, 5, 4]),
            (3, 3, [6, 5, 4, 3, 2, 1]),
            (4, 3, [4, 5, 6, 1, 2, 3]),
            (5, 2, [1, 4, 2, 5, 3, 6]),
            (6, 2, [4, 1, 5, 2, 6, 3]),
            (7, 2, [6, 3, 5, 2, 4, 1]),
            (8, 2, [3, 6, 2, 5, 1, 4]),
        ] {
            let turned = stored.clone().turned(Orientation::from_exif_value(value));
            assert_eq!(turned.width(), width, "orientation {value}");
            assert_eq!(turned.samples(), &Samples::Eight(expected.to_vec()), "orientation {value}");
        }
    }

    #[test]
    fn exif_is_read_in_both_byte_orders_and_garbage_is_upright() {
        let big = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        let little = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x08\0\0\0\0\0\0\0";
        assert_eq!(Orientation::from_exif(big), Orientation::QuarterRight);
        assert_eq!(Orientation::from_exif(little), Orientation::QuarterLeft);
        for length in 0..18 {
            assert_eq!(Orientation::from_exif(&big[..length]), Orientation::Upright);
        }
        assert_eq!(Orientation::from_exif(b"II*\0\xFF\xFF\xFF\xFF"), Orientation::Upright);
    }
}
