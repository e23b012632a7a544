//! The end of a recipe: converts pixels to the values a model takes.

use super::canvas::PIXEL;
use half::f16;
use half::slice::HalfFloatSliceExt;

/// The order of a sample's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Channel by channel (NCHW, as in torch and MXNet).
    #[default]
    Planes,
    /// Pixel by pixel (NHWC).
    Pixels,
}

/// The type of a sample's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SampleType {
    /// Unsigned bytes, 0 to 255.
    U8,
    /// IEEE 754 16-bit floats.
    F16,
    /// bfloat16: the upper halves of 32-bit floats.
    Bf16,
    /// 32-bit floats.
    #[default]
    F32,
}

impl SampleType {
    /// Bytes per value.
    pub fn size(self) -> usize {
        match self {
            SampleType::U8 => 1,
            SampleType::F16 | SampleType::Bf16 => 2,
            SampleType::F32 => 4,
        }
    }
}

/// The factor that each channel's values are multiplied by, and the offset that is then added.
pub(super) type Scale = [(f32, f32); PIXEL];

/// How a sample is written.
pub(super) struct Target<'a> {
    /// Pixels per row.
    pub width: usize,
    /// Whether rows are written from right to left.
    pub mirrored: bool,
    pub channels: usize,
    pub layout: Layout,
    pub element: SampleType,
    pub scale: &'a Scale,
}

impl Target<'_> {
    /// Writes pixels as a sample.
    pub fn write(&self, pixels: &[[u8; PIXEL]], into: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor supports the features that the function is compiled for.
            unsafe { self.write_avx2(pixels, into) };
            return;
        }
        self.write_anywhere(pixels, into);
    }

    /// [`write_anywhere`](Target::write_anywhere), compiled for wider registers.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn write_avx2(&self, pixels: &[[u8; PIXEL]], into: &mut [u8]) {
        self.write_anywhere(pixels, into);
    }

    #[inline(always)]
    fn write_anywhere(&self, pixels: &[[u8; PIXEL]], into: &mut [u8]) {
        let Target { width, mirrored, channels, layout, element, scale } = *self;
        let rows = pixels.chunks_exact(width.max(1));
        match layout {
            Layout::Planes => {
                let (plane, row_bytes) = (into.len() / channels.max(1), width * element.size());
                let mut floats = vec![0f32; width];
                for ((channel, into), scale) in into.chunks_exact_mut(plane.max(1)).enumerate().zip(scale) {
                    for (row, into) in rows.clone().zip(into.chunks_exact_mut(row_bytes.max(1))) {
                        if element == SampleType::U8 {
                            for (pixel, into) in row.iter().zip(into.iter_mut()) {
                                *into = value(pixel, channel);
                            }
                            if mirrored {
                                into.reverse();
                            }
                            continue;
                        }
                        for (pixel, float) in row.iter().zip(&mut floats) {
                            *float = f32::from(value(pixel, channel)) * scale.0 + scale.1;
                        }
                        if mirrored {
                            floats.reverse();
                        }
                        store(&floats, element, into);
                    }
                }
            }
            Layout::Pixels => {
                let mut row_of = vec![[0u8; PIXEL]; width];
                let mut floats = vec![0f32; width * channels];
                for (row, into) in rows.zip(into.chunks_exact_mut((width * channels * element.size()).max(1)))
                {
                    row_of.copy_from_slice(row);
                    if mirrored {
                        row_of.reverse();
                    }
                    if element == SampleType::U8 {
                        for (pixel, into) in row_of.iter().zip(into.chunks_exact_mut(channels)) {
                            into.iter_mut().zip(pixel).for_each(|(into, value)| *into = *value);
                        }
                        continue;
                    }
                    for (pixel, floats) in row_of.iter().zip(floats.chunks_exact_mut(channels)) {
                        for ((float, value), scale) in floats.iter_mut().zip(pixel).zip(scale) {
                            *float = f32::from(*value) * scale.0 + scale.1;
                        }
                    }
                    store(&floats, element, into);
                }
            }
        }
    }
}

/// One channel of a pixel. Extracting it from the pixel as an integer lets the compiler process
/// eight pixels at a time.
#[inline(always)]
fn value(pixel: &[u8; PIXEL], channel: usize) -> u8 {
    // The lowest byte after the shift.
    #[allow(clippy::cast_possible_truncation)]
    let value = (u32::from_le_bytes(*pixel) >> (8 * channel)) as u8;
    value
}

/// Converts floats to a type, in native byte order.
#[inline(always)]
fn store(floats: &[f32], element: SampleType, into: &mut [u8]) {
    match element {
        SampleType::U8 => {}
        SampleType::F32 => {
            for (float, into) in floats.iter().zip(into.as_chunks_mut::<4>().0) {
                *into = float.to_ne_bytes();
            }
        }
        SampleType::F16 => {
            let mut row = vec![f16::ZERO; floats.len()];
            row.convert_from_f32_slice(floats);
            for (number, into) in row.iter().zip(into.as_chunks_mut::<2>().0) {
                *into = number.to_ne_bytes();
            }
        }
        SampleType::Bf16 => {
            for (float, into) in floats.iter().zip(into.as_chunks_mut::<2>().0) {
                *into = to_bf16(*float).to_ne_bytes();
            }
        }
    }
}

/// The nearest number that is the upper half of a float, ties to even. This would be wrong for NaN,
/// but samples are never NaN. A crate's function that checks for NaN takes ten times as long.
#[inline(always)]
fn to_bf16(float: f32) -> u16 {
    let bits = float.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
    // The upper half.
    #[allow(clippy::cast_possible_truncation)]
    let half = (rounded >> 16) as u16;
    half
}
