//! Converts CMYK pixels to colours, with OpenCV's arithmetic.

use super::Pixels;

/// Converts inverted cyan, magenta, yellow and black in place. If the new pixels are shorter, the
/// buffer shrinks.
pub(super) fn convert(samples: &mut Vec<u8>, pixels: Pixels) {
    let count = pixels.count();
    let quads = samples.len() / 4;
    for at in 0..quads {
        let Some(&[cyan, magenta, yellow, black]) = samples.get(4 * at..).and_then(<[u8]>::first_chunk)
        else {
            break;
        };
        let [red, green, blue] = [cyan, magenta, yellow].map(|ink| light(ink, black));
        let pixel = match pixels {
            Pixels::Gray => [luminance(red, green, blue), 0, 0, 0],
            Pixels::Rgb | Pixels::Rgbx => [red, green, blue, u8::MAX],
        };
        // Writing never overtakes reading: a pixel has at most four bytes.
        if let (Some(to), Some(from)) = (samples.get_mut(count * at..count * (at + 1)), pixel.get(..count)) {
            to.copy_from_slice(from);
        }
    }
    samples.truncate(count * quads);
}

/// The colour that remains under an ink and black, both inverted.
fn light(ink: u8, black: u8) -> u8 {
    let (ink, black) = (u32::from(ink), u32::from(black));
    // At most `black`, which has 8 bits.
    u8::try_from(black - (((255 - ink) * black) >> 8)).unwrap_or(u8::MAX)
}

/// Weights in 2^14ths that add up to one.
fn luminance(red: u8, green: u8, blue: u8) -> u8 {
    let sum = 4899 * u32::from(red) + 9617 * u32::from(green) + 1868 * u32::from(blue);
    u8::try_from((sum + (1 << 13)) >> 14).unwrap_or(u8::MAX)
}
