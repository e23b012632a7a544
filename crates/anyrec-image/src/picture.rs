//! A decoded image: samples in rows from the top, channels interleaved, RGB order.

use anyrec::{Error, Result};

/// The channels of an image, in the order they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Channels {
    /// One channel: luminance.
    Gray,
    /// Luminance and alpha.
    GrayAlpha,
    /// Red, green, blue.
    Rgb,
    /// Red, green, blue and alpha.
    Rgba,
}

impl Channels {
    /// The number of samples per pixel.
    pub fn count(self) -> usize {
        match self {
            Channels::Gray => 1,
            Channels::GrayAlpha => 2,
            Channels::Rgb => 3,
            Channels::Rgba => 4,
        }
    }

    /// The channels of an image with `count` samples per pixel.
    ///
    /// # Errors
    /// [`Invalid`](anyrec::ErrorKind::Invalid) unless `count` is 1 to 4.
    pub fn from_count(count: usize) -> Result<Self> {
        match count {
            1 => Ok(Channels::Gray),
            2 => Ok(Channels::GrayAlpha),
            3 => Ok(Channels::Rgb),
            4 => Ok(Channels::Rgba),
            _ => Err(Error::invalid("channels of an image").expected_found("1 to 4", count)),
        }
    }

    /// Whether the last channel is alpha.
    pub fn has_alpha(self) -> bool {
        matches!(self, Channels::GrayAlpha | Channels::Rgba)
    }
}

/// The samples of an image, 8 or 16 bits each.
#[derive(Clone, PartialEq, Eq)]
pub enum Samples {
    /// 8 bits, 0 to 255.
    Eight(Vec<u8>),
    /// 16 bits, 0 to 65535.
    Sixteen(Vec<u16>),
}

impl Samples {
    /// The number of samples.
    pub fn len(&self) -> usize {
        match self {
            Samples::Eight(samples) => samples.len(),
            Samples::Sixteen(samples) => samples.len(),
        }
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bits per sample: 8 or 16.
    pub fn depth(&self) -> u8 {
        match self {
            Samples::Eight(_) => 8,
            Samples::Sixteen(_) => 16,
        }
    }

    /// The samples as bytes; 16-bit samples are little-endian.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        match self {
            Samples::Eight(samples) => samples.clone(),
            Samples::Sixteen(samples) => samples.iter().flat_map(|s| s.to_le_bytes()).collect(),
        }
    }
}

impl std::fmt::Debug for Samples {
    /// Shows only depth and count: an image has too many samples to print.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} samples of {} bits", self.len(), self.depth())
    }
}

/// What 8- and 16-bit samples have in common, so that each operation is written once.
pub(super) trait Sample: Copy + Default + Into<u32> + Into<f32> + 'static {
    /// The value of full opacity.
    const MAX: Self;
    /// The value, saturated to the type.
    fn saturating(value: u32) -> Self;
}

impl Sample for u8 {
    const MAX: u8 = u8::MAX;
    fn saturating(value: u32) -> u8 {
        u8::try_from(value).unwrap_or(u8::MAX)
    }
}

impl Sample for u16 {
    const MAX: u16 = u16::MAX;
    fn saturating(value: u32) -> u16 {
        u16::try_from(value).unwrap_or(u16::MAX)
    }
}

/// Applies a function that is generic over the sample type to either kind of samples.
macro_rules! map_samples {
    ($samples:expr, $values:ident => $result:expr) => {
        match $samples {
            Samples::Eight($values) => Samples::Eight($result),
            Samples::Sixteen($values) => Samples::Sixteen($result),
        }
    };
}
pub(super) use map_samples;

/// A decoded image.
///
/// Never empty: width and height are at least 1, and there are exactly
/// `width * height * channels` samples.
///
/// ```
/// use anyrec_image::{Channels, Picture, Samples};
///
/// let red = Picture::new(1, 1, Channels::Rgb, Samples::Eight(vec![255, 0, 0]))?;
/// assert_eq!(red.bgr_samples(), Samples::Eight(vec![0, 0, 255]));
/// assert_eq!(red.into_gray().samples(), &Samples::Eight(vec![76]));
/// # Ok::<(), anyrec::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    width: u32,
    height: u32,
    channels: Channels,
    samples: Samples,
}

impl Picture {
    /// Creates an image from its samples: rows from the top, channels interleaved, RGB order.
    ///
    /// # Errors
    /// [`Invalid`](anyrec::ErrorKind::Invalid) for a zero width or height, or if the number of
    /// samples does not match the size.
    pub fn new(width: u32, height: u32, channels: Channels, samples: Samples) -> Result<Self> {
        if width == 0 || height == 0 {
            return Err(Error::invalid(format!("an image of {width}x{height} pixels is empty")));
        }
        let expected = u64::from(width)
            .checked_mul(u64::from(height))
            .and_then(|pixels| pixels.checked_mul(channels.count() as u64));
        if expected != Some(samples.len() as u64) {
            let expected = expected.map_or("more than fits in memory".to_owned(), |n| n.to_string());
            return Err(Error::invalid(format!(
                "samples of a {width}x{height} image with {} channels",
                channels.count()
            ))
            .expected_found(expected, samples.len()));
        }
        Ok(Picture { width, height, channels, samples })
    }

    /// Creates an image from samples in OpenCV's channel order (BGR, BGRA; gray stays gray).
    ///
    /// # Errors
    /// As [`Picture::new`].
    pub fn from_bgr(width: u32, height: u32, channels: Channels, bgr: Samples) -> Result<Self> {
        let mut picture = Self::new(width, height, channels, bgr)?;
        swap_red_blue(&mut picture.samples, channels);
        Ok(picture)
    }

    /// Width in pixels, at least 1.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Height in pixels, at least 1.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The channels, in the order they are stored.
    pub fn channels(&self) -> Channels {
        self.channels
    }

    /// Bits per sample: 8 or 16.
    pub fn depth(&self) -> u8 {
        self.samples.depth()
    }

    /// The samples.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// Returns the samples without a copy.
    pub fn into_samples(self) -> Samples {
        self.samples
    }

    /// The samples in OpenCV's channel order (BGR, BGRA; gray stays gray).
    pub fn bgr_samples(&self) -> Samples {
        let mut samples = self.samples.clone();
        swap_red_blue(&mut samples, self.channels);
        samples
    }

    /// Converts to one channel without alpha, with the weights and the rounding of OpenCV's
    /// `cvtColor`.
    pub fn into_gray(self) -> Self {
        let colour = self.without_alpha();
        match colour.channels {
            Channels::Rgb => {
                let samples = map_samples!(&colour.samples, values => gray(values));
                Picture { channels: Channels::Gray, samples, ..colour }
            }
            _ => colour,
        }
    }

    /// Converts to three channels without alpha.
    pub fn into_rgb(self) -> Self {
        let colour = self.without_alpha();
        match colour.channels {
            Channels::Gray => {
                let samples = map_samples!(&colour.samples, values => {
                    expand(values, |[gray]| [gray, gray, gray])
                });
                Picture { channels: Channels::Rgb, samples, ..colour }
            }
            _ => colour,
        }
    }

    /// Converts to four channels; an image without alpha becomes opaque.
    pub fn into_rgba(self) -> Self {
        let samples = match self.channels {
            Channels::Rgba => self.samples,
            Channels::Gray => map_samples!(&self.samples, values => {
                expand(values, |[gray]| [gray, gray, gray, Sample::MAX])
            }),
            Channels::GrayAlpha => map_samples!(&self.samples, values => {
                expand(values, |[gray, alpha]| [gray, gray, gray, alpha])
            }),
            Channels::Rgb => map_samples!(&self.samples, values => {
                expand(values, |[red, green, blue]| [red, green, blue, Sample::MAX])
            }),
        };
        Picture { channels: Channels::Rgba, samples, ..self }
    }

    /// Removes the alpha channel without applying it.
    pub fn without_alpha(self) -> Self {
        let (channels, samples) = match self.channels {
            Channels::Gray | Channels::Rgb => return self,
            Channels::GrayAlpha => {
                (Channels::Gray, map_samples!(&self.samples, values => expand(values, |[gray, _]| [gray])))
            }
            Channels::Rgba => (
                Channels::Rgb,
                map_samples!(&self.samples, values => {
                    expand(values, |[red, green, blue, _]| [red, green, blue])
                }),
            ),
        };
        Picture { channels, samples, ..self }
    }

    /// Converts to 8 bits per sample by keeping the upper byte of each, as OpenCV does.
    pub fn into_8bit(self) -> Self {
        match self.samples {
            Samples::Eight(_) => self,
            Samples::Sixteen(values) => {
                let upper = values.iter().map(|value| value.to_be_bytes()[0]).collect();
                Picture { samples: Samples::Eight(upper), ..self }
            }
        }
    }
}

/// Rewrites every pixel of `FROM` samples as a pixel of `TO` samples.
fn expand<S: Sample, const FROM: usize, const TO: usize>(
    samples: &[S],
    pixel: impl Fn([S; FROM]) -> [S; TO],
) -> Vec<S> {
    let (pixels, _) = samples.as_chunks::<FROM>();
    pixels.iter().flat_map(|from| pixel(*from)).collect()
}

/// RGB to gray with weights in 2^15ths that add up to one.
fn gray<S: Sample>(rgb: &[S]) -> Vec<S> {
    expand(rgb, |[red, green, blue]| {
        let [red, green, blue]: [u32; 3] = [red.into(), green.into(), blue.into()];
        // At most 65535 * 2^15 + 2^14, which fits.
        [S::saturating((9798 * red + 19235 * green + 3735 * blue + (1 << 14)) >> 15)]
    })
}

fn swap_red_blue(samples: &mut Samples, channels: Channels) {
    fn swap<S: Sample, const COUNT: usize>(samples: &mut [S]) {
        let (pixels, _) = samples.as_chunks_mut::<COUNT>();
        for pixel in pixels {
            pixel.swap(0, 2);
        }
    }
    match (channels, samples) {
        (Channels::Gray | Channels::GrayAlpha, _) => {}
        (Channels::Rgb, Samples::Eight(values)) => swap::<_, 3>(values),
        (Channels::Rgb, Samples::Sixteen(values)) => swap::<_, 3>(values),
        (Channels::Rgba, Samples::Eight(values)) => swap::<_, 4>(values),
        (Channels::Rgba, Samples::Sixteen(values)) => swap::<_, 4>(values),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn conversions_keep_the_pixels_they_can_keep() {
        let samples = Samples::Sixteen(vec![1 << 8, 2 << 8, 3 << 8, 9, 4 << 8, 5 << 8, 6 << 8, 0]);
        let picture = Picture::new(2, 1, Channels::Rgba, samples).unwrap();
        let rgb = picture.clone().into_8bit().into_rgb();
        assert_eq!(rgb.samples(), &Samples::Eight(vec![1, 2, 3, 4, 5, 6]));
        assert_eq!(rgb.bgr_samples(), Samples::Eight(vec![3, 2, 1, 6, 5, 4]));
        let bgr = Picture::from_bgr(2, 1, Channels::Rgb, rgb.bgr_samples()).unwrap();
        assert_eq!(bgr, rgb);
        assert_eq!(rgb.into_rgba().samples(), &Samples::Eight(vec![1, 2, 3, 255, 4, 5, 6, 255]));
        assert_eq!(picture.clone().into_rgba(), picture);
    }

    #[test]
    fn gray_of_gray_colours_is_exact_at_every_value() {
        for value in [0u16, 1, 254, 255, 256, 65534, 65535] {
            let colour = Picture::new(1, 1, Channels::Rgb, Samples::Sixteen(vec![value; 3]));
            assert_eq!(colour.unwrap().into_gray().samples(), &Samples::Sixteen(vec![value]));
        }
    }

    #[test]
    fn size_that_does_not_fit_the_samples_is_refused() {
        for (width, height, count) in [(0, 1, 0), (1, 0, 0), (2, 2, 3), (u32::MAX, u32::MAX, 1)] {
            let samples = Samples::Eight(vec![0; count]);
            let error = Picture::new(width, height, Channels::Gray, samples).unwrap_err();
            assert_eq!(error.kind(), anyrec::ErrorKind::Invalid);
        }
    }
}
