//! Steps that change colours, pixel by pixel. A pixel is red, green, blue and alpha.

use super::random::Random;
use super::step::{Jitter, Law, Range};

/// Rounds to the nearest level and saturates.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates on floats
fn level(value: f32) -> u8 {
    (value + 0.5) as u8
}

/// Applies `change` to red, green and blue of every pixel.
fn each(pixels: &mut [[u8; 4]], mut change: impl FnMut([f32; 3]) -> [f32; 3]) {
    for [red, green, blue, _] in pixels {
        let changed = change([f32::from(*red), f32::from(*green), f32::from(*blue)]);
        [*red, *green, *blue] = changed.map(level);
    }
}

fn gray([red, green, blue]: [f32; 3], law: Law) -> f32 {
    match law {
        Law::Torchvision => 0.299 * red + 0.587 * green + 0.114 * blue,
        // MXNet stores blue first and treats it as red here.
        Law::Mxnet => 0.114 * red + 0.587 * green + 0.299 * blue,
    }
}

/// Interpolates between two values (below 1) or extrapolates beyond them (above 1).
fn blend(from: f32, to: f32, share: f32) -> f32 {
    from + (to - from) * share
}

#[allow(clippy::cast_possible_truncation)] // single precision is enough for 256 levels
fn draw(random: &mut Random, range: Range) -> f32 {
    random.between(range.0, range.1) as f32
}

/// See [`Jitter`].
pub(super) fn jitter(pixels: &mut [[u8; 4]], jitter: &Jitter, random: &mut Random) {
    type Change = fn(&mut [[u8; 4]], f32, Law);
    let all: [(Option<Range>, Change); 4] = [
        (jitter.brightness, brightness),
        (jitter.contrast, contrast),
        (jitter.saturation, saturation),
        (jitter.hue, hue),
    ];
    let mut given: Vec<(Range, Change)> =
        all.into_iter().filter_map(|(range, change)| Some((range?, change))).collect();
    while !given.is_empty() {
        let last = u32::try_from(given.len() - 1).unwrap_or(0);
        let (range, change) = given.swap_remove(random.up_to(last) as usize);
        change(pixels, draw(random, range), jitter.law);
    }
}

fn brightness(pixels: &mut [[u8; 4]], factor: f32, _: Law) {
    let table: [u8; 256] = std::array::from_fn(|value| level(value as f32 * factor));
    look_up(pixels, &table);
}

fn contrast(pixels: &mut [[u8; 4]], factor: f32, law: Law) {
    let sum: f64 = pixels
        .iter()
        .map(|&[red, green, blue, _]| f64::from(gray([red, green, blue].map(f32::from), law)))
        .sum();
    #[allow(clippy::cast_possible_truncation)]
    let mean = (sum / pixels.len().max(1) as f64) as f32;
    let table: [u8; 256] = std::array::from_fn(|value| level(blend(mean, value as f32, factor)));
    look_up(pixels, &table);
}

fn look_up(pixels: &mut [[u8; 4]], table: &[u8; 256]) {
    let new = |value: u8| table.get(usize::from(value)).copied().unwrap_or(value);
    for [red, green, blue, _] in pixels {
        [*red, *green, *blue] = [new(*red), new(*green), new(*blue)];
    }
}

fn saturation(pixels: &mut [[u8; 4]], factor: f32, law: Law) {
    each(pixels, |colour| {
        let gray = gray(colour, law);
        colour.map(|value| blend(gray, value, factor))
    });
}

fn hue(pixels: &mut [[u8; 4]], turns: f32, _: Law) {
    each(pixels, |colour| {
        let (hue, saturation, value) = to_hsv(colour);
        from_hsv((hue + turns).rem_euclid(1.0), saturation, value)
    });
}

/// The hue as a fraction of a turn, and the largest and smallest value.
fn hue_of([red, green, blue]: [f32; 3]) -> (f32, f32, f32) {
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    let spread = most - least;
    if spread == 0.0 {
        return (0.0, most, least);
    }
    let sixths = if most == red {
        (green - blue) / spread
    } else if most == green {
        2.0 + (blue - red) / spread
    } else {
        4.0 + (red - green) / spread
    };
    ((sixths / 6.0).rem_euclid(1.0), most, least)
}

fn to_hsv(colour: [f32; 3]) -> (f32, f32, f32) {
    let (hue, most, least) = hue_of(colour);
    (hue, if most == 0.0 { 0.0 } else { (most - least) / most }, most)
}

fn from_hsv(hue: f32, saturation: f32, value: f32) -> [f32; 3] {
    on_circle(hue, value * (1.0 - saturation), value)
}

/// The colour with this hue whose values lie between these.
fn on_circle(hue: f32, least: f32, most: f32) -> [f32; 3] {
    let place = |shift: f32| {
        // 0 at one end of the circle's third, 1 at the other: a trapezium over the sixths.
        let sixth = (hue * 6.0 + shift).rem_euclid(6.0);
        let share = (2.0 - (sixth - 3.0).abs()).clamp(0.0, 1.0);
        most - (most - least) * share
    };
    [place(0.0), place(4.0), place(2.0)]
}

/// Shifts hue, lightness and saturation: see [`Step::Hls`](super::Step::Hls).
pub(super) fn hls(pixels: &mut [[u8; 4]], most: [u32; 3], random: &mut Random) {
    // MXNet's distribution: one draw with little weight and one with much, so that the middle is
    // likelier.
    let [hue_moved, lightness_moved, saturation_moved] = most.map(|most| {
        let most = f64::from(most);
        let drawn = draw(random, (-most, most)) / 5.0 + draw(random, (-most, most)) * 4.0 / 5.0;
        drawn.trunc()
    });
    each(pixels, |colour| {
        let (hue, high, low) = hue_of(colour);
        let lightness = (high + low) / 2.0;
        let room = if lightness < 127.5 { high + low } else { 510.0 - high - low };
        let saturation = if room == 0.0 { 0.0 } else { (high - low) / room * 255.0 };
        let hue = (hue + hue_moved / 180.0).clamp(0.0, 1.0);
        let lightness = (lightness + lightness_moved).clamp(0.0, 255.0);
        let saturation = (saturation + saturation_moved).clamp(0.0, 255.0) / 255.0;
        let room = if lightness < 127.5 { lightness } else { 255.0 - lightness };
        on_circle(hue, lightness - room * saturation, lightness + room * saturation)
    });
}

/// The principal axes of the colours of ImageNet's images (Krizhevsky 2012), in levels, and how far
/// colours spread along each.
const AXES: [([f64; 3], f64); 3] = [
    ([-0.5675, -0.5808, -0.5836], 55.46),
    ([0.7192, -0.0045, -0.6948], 4.794),
    ([0.4009, -0.8140, 0.4203], 1.148),
];

/// See [`Step::PcaNoise`](super::Step::PcaNoise).
#[allow(clippy::cast_possible_truncation)]
pub(super) fn pca_noise(pixels: &mut [[u8; 4]], deviation: f64, random: &mut Random) {
    let mut added = [0.0f64; 3];
    for (axis, spread) in AXES {
        let along = random.normal(deviation) * spread;
        for (added, part) in added.iter_mut().zip(axis) {
            *added += along * part;
        }
    }
    let [red, green, blue] = added.map(|value| value as f32);
    each(pixels, |[r, g, b]| [r + red, g + green, b + blue]);
}
