//! The end of a recipe: pixels to the numbers a model takes.

use super::canvas::PIXEL;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// The order of a sample's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Channel by channel (NCHW, as torch and MXNet have it).
    #[default]
    Planes,
    /// Pixel by pixel (NHWC).
    Pixels,
}

/// The type of a sample's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Element {
    /// 0 to 255 as they are.
    U8,
    /// 16-bit floats of IEEE 754.
    F16,
    /// The upper halves of 32-bit floats.
    Bf16,
    /// 32-bit floats.
    #[default]
    F32,
}

impl Element {
    /// Bytes of a number.
    pub fn size(self) -> usize {
        match self {
            Element::U8 => 1,
            Element::F16 | Element::Bf16 => 2,
            Element::F32 => 4,
        }
    }
}

/// What each channel's values are multiplied by, and what is then added.
pub(super) type Scale = [(f32, f32); PIXEL];

/// Writes `width` wide pixels as a sample.
pub(super) fn write(
    pixels: &[[u8; PIXEL]],
    width: usize,
    mirrored: bool,
    (channels, layout, element): (usize, Layout, Element),
    scale: &Scale,
    into: &mut [u8],
) {
    let row_bytes = width * element.size();
    let rows = pixels.chunks_exact(width.max(1));
    let mut floats = vec![0f32; width * channels];
    match layout {
        Layout::Planes => {
            let plane = into.len() / channels.max(1);
            for ((channel, into), scale) in into.chunks_exact_mut(plane.max(1)).enumerate().zip(scale) {
                for (row, into) in rows.clone().zip(into.chunks_exact_mut(row_bytes.max(1))) {
                    if element == Element::U8 {
                        in_order(row, mirrored, into.iter_mut(), |pixel, into| *into = value(pixel, channel));
                    } else {
                        let floats = floats.get_mut(..width).unwrap_or_default();
                        in_order(row, mirrored, floats.iter_mut(), |pixel, into| {
                            *into = f32::from(value(pixel, channel)) * scale.0 + scale.1;
                        });
                        store(floats, element, into);
                    }
                }
            }
        }
        Layout::Pixels => {
            for (row, into) in rows.zip(into.chunks_exact_mut((row_bytes * channels).max(1))) {
                if element == Element::U8 {
                    in_order(row, mirrored, into.chunks_exact_mut(channels), |pixel, into| {
                        into.iter_mut().zip(pixel.to_le_bytes()).for_each(|(into, value)| *into = value);
                    });
                } else {
                    in_order(row, mirrored, floats.chunks_exact_mut(channels), |pixel, into| {
                        for ((into, value), scale) in into.iter_mut().zip(pixel.to_le_bytes()).zip(scale) {
                            *into = f32::from(value) * scale.0 + scale.1;
                        }
                    });
                    store(&floats, element, into);
                }
            }
        }
    }
}

/// Goes through a row's pixels (as numbers, red lowest) and the places for them.
#[inline(always)]
fn in_order<T>(
    row: &[[u8; PIXEL]],
    mirrored: bool,
    places: impl ExactSizeIterator<Item = T> + DoubleEndedIterator,
    mut write: impl FnMut(u32, T),
) {
    let pixels = row.iter().map(|pixel| u32::from_le_bytes(*pixel));
    if mirrored {
        pixels.rev().zip(places).for_each(|(pixel, place)| write(pixel, place));
    } else {
        pixels.zip(places).for_each(|(pixel, place)| write(pixel, place));
    }
}

/// One channel of a pixel.
#[inline(always)]
fn value(pixel: u32, channel: usize) -> u8 {
    // The lowest byte after the shift.
    #[allow(clippy::cast_possible_truncation)]
    let value = (pixel >> (8 * channel)) as u8;
    value
}

/// Floats as numbers of a type, in the machine's byte order.
fn store(floats: &[f32], element: Element, into: &mut [u8]) {
    match element {
        Element::U8 => {}
        Element::F32 => {
            for (float, into) in floats.iter().zip(into.as_chunks_mut::<4>().0) {
                *into = float.to_ne_bytes();
            }
        }
        Element::F16 => {
            let mut row = vec![f16::ZERO; floats.len()];
            row.convert_from_f32_slice(floats);
            for (number, into) in row.iter().zip(into.as_chunks_mut::<2>().0) {
                *into = number.to_ne_bytes();
            }
        }
        Element::Bf16 => {
            for (float, into) in floats.iter().zip(into.as_chunks_mut::<2>().0) {
                *into = bf16::from_f32(*float).to_ne_bytes();
            }
        }
    }
}
