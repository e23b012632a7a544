//! Generated images: shaded shapes over gradients, with noise.
//!
//! The same number always gives the same image, so that what is read from a file can be compared
//! with what was written.

use rayon::prelude::*;

/// Width and height.
pub const SIDE: u32 = 64;
/// Red, green, blue.
pub const CHANNELS: u32 = 3;
/// The classes of images. The index in this list is the label.
pub const CLASSES: [&str; 8] =
    ["ball", "ring", "square", "triangle", "cross", "stripes", "checkers", "crescent"];

/// An image and its class.
pub struct Sample {
    /// Rows of red, green and blue.
    pub pixels: Vec<u8>,
    /// An index into [`CLASSES`].
    pub class: u8,
}

/// The first `count` images.
pub fn draw_all(count: u64) -> Vec<Sample> {
    (0..count).into_par_iter().map(draw).collect()
}

fn draw(number: u64) -> Sample {
    let mut chance = Chance(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // Below 8, the number of classes.
    let class = u8::try_from(chance.next() % CLASSES.len() as u64).unwrap_or(0);
    let (from, to, paint) = (chance.colour(), chance.colour(), chance.colour());
    let centre = (chance.between(-0.25, 0.25), chance.between(-0.25, 0.25));
    let (size, turn) = (chance.between(0.3, 0.6), chance.between(0.0, std::f32::consts::TAU));
    let (lean, light) = (chance.between(-1.0, 1.0), chance.between(0.0, std::f32::consts::TAU));
    let mut pixels = Vec::new();
    for row in 0..SIDE {
        for column in 0..SIDE {
            let (x, y) = (place(column), place(row));
            let blend = ((y + lean * x) / (1.0 + lean.abs()) + 1.0) / 2.0;
            let (dx, dy) = ((x - centre.0) / size, (y - centre.1) / size);
            let (u, v) = (dx * turn.cos() + dy * turn.sin(), dy * turn.cos() - dx * turn.sin());
            // Sharp edges would not look like a photograph, so they are blurred over a pixel and a
            // half.
            let cover = (0.5 - distance(class, u, v) * size * 20.0).clamp(0.0, 1.0);
            let shade = 0.75 + 0.35 * (dx * light.cos() + dy * light.sin()).clamp(-1.0, 1.0);
            for channel in 0..3 {
                let pick = |colour: [f32; 3]| colour.get(channel).copied().unwrap_or(0.0);
                let ground = pick(from) * (1.0 - blend) + pick(to) * blend;
                let value = ground * (1.0 - cover) + pick(paint) * shade * cover;
                pixels.push(to_byte(value + chance.between(-0.03, 0.03)));
            }
        }
    }
    Sample { pixels, class }
}

/// A pixel's coordinate between -1 and 1.
fn place(pixel: u32) -> f32 {
    let side = f32::from(u16::try_from(SIDE).unwrap_or(1));
    (f32::from(u16::try_from(pixel).unwrap_or(0)) + 0.5) / side * 2.0 - 1.0
}

/// The distance of a point from a shape of about size 1; negative inside.
fn distance(class: u8, x: f32, y: f32) -> f32 {
    let radius = x.hypot(y);
    let square = x.abs().max(y.abs()) - 0.8;
    match class {
        0 => radius - 1.0,
        1 => (radius - 0.8).abs() - 0.22,
        2 => square,
        3 => (y - 0.6).max(x.abs() * 0.87 - y * 0.5 - 0.5),
        4 => (x.abs() - 0.25).max(y.abs() - 0.9).min((y.abs() - 0.25).max(x.abs() - 0.9)),
        5 => square.max(0.12 - (x * 2.5).rem_euclid(1.0).min(1.0 - (x * 2.5).rem_euclid(1.0))),
        6 => square.max(-0.3 * (x * 4.0).sin() * (y * 4.0).sin()),
        _ => (radius - 1.0).max(0.85 - (x - 0.45).hypot(y)),
    }
}

fn to_byte(value: f32) -> u8 {
    // Clamped to 0..=255 just before.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let byte = (value * 255.0).clamp(0.0, 255.0) as u8;
    byte
}

/// Pseudo-random numbers (SplitMix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn between(&mut self, low: f32, high: f32) -> f32 {
        let sixteen_bits = u16::try_from(self.next() >> 48).unwrap_or(0);
        low + (high - low) * f32::from(sixteen_bits) / f32::from(u16::MAX)
    }

    fn colour(&mut self) -> [f32; 3] {
        std::array::from_fn(|_| self.between(0.1, 0.95))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_drawn_and_no_two_pictures_are_alike() {
        let samples = draw_all(200);
        let mut seen = [0; CLASSES.len()];
        for sample in &samples {
            seen[usize::from(sample.class)] += 1;
            assert_eq!(sample.pixels.len(), (SIDE * SIDE * CHANNELS) as usize);
        }
        assert!(seen.iter().all(|&count| count > 5), "{seen:?}");
        let different: std::collections::HashSet<_> = samples.iter().map(|sample| &sample.pixels).collect();
        assert_eq!(different.len(), 200);
        assert_eq!(draw(7).pixels, samples[7].pixels);
    }
}
