//! Recipes: how encoded images become training samples.
//!
//! A [`Recipe`] is a list of [`Step`]s and the form of the result. It is a pure function: the same
//! bytes and the same [`Random`] give the same numbers.

mod canvas;
mod colour;
mod output;
mod random;
mod step;

pub use output::{Layout, SampleType};
pub use random::Random;
pub use step::{Crop, Extent, Jitter, Law, Range, Step};

use super::resize::shorter_edge;
use super::{Color, DecodeOptions, Picture};
use anyrec::{Error, Result};
use canvas::{Canvas, PIXEL, Workshop};
use output::Target;
use std::cell::RefCell;

/// Normalises at the end: `(value * scale - mean) / deviation`, per channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Normalise {
    /// The factor that values are multiplied by first.
    pub scale: f64,
    /// The mean to subtract; one for each channel, or one for all.
    pub mean: Vec<f64>,
    /// The deviation to divide by; one for each channel, or one for all.
    pub deviation: Vec<f64>,
}

/// The form of a recipe's samples.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Form {
    /// Width and height.
    pub size: Extent,
    /// 1 for gray, 3 for red, green and blue, 4 for these and alpha.
    pub channels: usize,
    /// The order of the values.
    pub layout: Layout,
    /// The type of the values.
    pub element: SampleType,
    /// How values are normalised. Without it, floats are 0 to 255.
    pub normalise: Option<Normalise>,
    /// Whether to apply the EXIF orientation first. Default false.
    pub exif_orientation: bool,
    /// Whether to accept a truncated or damaged JPEG and use what can be decoded. Default false.
    pub lenient: bool,
}

impl Form {
    /// Samples of this size: three channels in planes of 32-bit floats from 0 to 255.
    pub fn new(size: Extent) -> Self {
        Form {
            size,
            channels: 3,
            layout: Layout::Planes,
            element: SampleType::F32,
            normalise: None,
            exif_orientation: false,
            lenient: false,
        }
    }
}

/// How encoded images become samples.
///
/// ```
/// use anyrec_image::{Channels, Form, Picture, Random, Recipe, Samples, Step, encode_png};
///
/// let picture = Picture::new(3, 1, Channels::Gray, Samples::Eight(vec![10, 20, 30]))?;
/// let recipe = Recipe::new(vec![Step::CentreCrop((1, 1).into())], Form::new((1, 1)))?;
/// let mut sample = vec![0; recipe.size()];
/// recipe.make(&encode_png(&picture, 1)?, &mut Random::new([0; 3]), &mut sample)?;
/// assert_eq!(sample, [20f32; 3].map(f32::to_ne_bytes).concat());
/// # Ok::<(), anyrec::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Recipe {
    steps: Vec<Step>,
    form: Form,
    decode: DecodeOptions,
    scale: output::Scale,
}

thread_local! {
    static WORKSHOP: RefCell<Workshop> = RefCell::default();
}

impl Recipe {
    /// Creates a recipe.
    ///
    /// # Errors
    /// [`Invalid`](anyrec::ErrorKind::Invalid) for values out of range, for steps that do not
    /// produce the size, and for normalised bytes.
    pub fn new(steps: Vec<Step>, form: Form) -> Result<Recipe> {
        let channels = form.channels;
        if !matches!(channels, 1 | 3 | 4) {
            return Err(Error::invalid("channels of a sample").expected_found("1, 3 or 4", channels));
        }
        let mut size = None;
        for step in &steps {
            step.check()?;
            size = step.size_after(size);
        }
        let (width, height) = form.size;
        if size != Some(form.size) {
            let found = match (size, steps.last()) {
                (Some((width, height)), Some(last)) => format!("{width}x{height} after {}", last.name()),
                (None, Some(last)) => format!("any size after {}", last.name()),
                (_, None) => "no step".to_owned(),
            };
            return Err(Error::invalid("the steps do not produce the size of a sample")
                .expected_found(format!("{width}x{height}"), found)
                .with_hint("end with a crop or ResizeTo of that size"));
        }
        let bytes = [width, height].into_iter().try_fold(channels * form.element.size(), |bytes, side| {
            bytes.checked_mul(usize::try_from(side).ok()?)
        });
        if bytes.is_none_or(|bytes| bytes > 1 << 30) {
            return Err(Error::invalid("size of a sample")
                .expected_found("at most 1 GiB", format!("{width}x{height}")));
        }
        if form.element == SampleType::U8 && form.normalise.is_some() {
            return Err(Error::invalid("normalised samples must be floats, not uint8"));
        }
        let scale = match &form.normalise {
            None => [(1.0, 0.0); PIXEL],
            Some(normalise) => scale_of(normalise, channels)?,
        };
        let decode = DecodeOptions {
            exif_orientation: form.exif_orientation,
            lenient_jpeg: form.lenient,
            color: match channels {
                1 => Color::Gray,
                3 => Color::Rgb,
                _ => Color::AsStored,
            },
            ..DecodeOptions::default()
        };
        Ok(Recipe { steps, form, decode, scale })
    }

    /// The form of the samples.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// Bytes per sample.
    pub fn size(&self) -> usize {
        let (width, height) = self.form.size;
        width as usize * height as usize * self.form.channels * self.form.element.size()
    }

    /// Makes a sample from an encoded image.
    ///
    /// # Errors
    /// As [`decode`](super::decode), and if the image is too small for a crop.
    pub fn make(&self, encoded: &[u8], random: &mut Random, into: &mut [u8]) -> Result<()> {
        WORKSHOP.with(|workshop| {
            // A recipe calls no code that could start another image on this thread.
            let mut workshop = workshop.borrow_mut();
            let canvas = Canvas::open(encoded, &self.decode, &mut workshop)?;
            self.finish(canvas, random, into)
        })
    }

    /// Makes a sample from a decoded image.
    ///
    /// # Errors
    /// If the image is too small for a crop.
    pub fn make_from(&self, picture: Picture, random: &mut Random, into: &mut [u8]) -> Result<()> {
        WORKSHOP.with(|workshop| {
            // As above.
            let mut workshop = workshop.borrow_mut();
            let picture = if self.form.channels == 1 { picture.into_gray() } else { picture };
            let canvas = Canvas::of(picture, self.decode.limits.clone(), &mut workshop)?;
            self.finish(canvas, random, into)
        })
    }

    fn finish(&self, mut canvas: Canvas<'_, '_>, random: &mut Random, into: &mut [u8]) -> Result<()> {
        for step in &self.steps {
            apply(step, &mut canvas, random)?;
        }
        let Form { channels, layout, element, size, .. } = self.form;
        let (width, mirrored) = (size.0 as usize, canvas.is_mirrored());
        let target = Target { width, mirrored, channels, layout, element, scale: &self.scale };
        target.write(canvas.pixels()?, into);
        Ok(())
    }
}

fn scale_of(normalise: &Normalise, channels: usize) -> Result<output::Scale> {
    let each = |numbers: &[f64], name: &str| match numbers {
        [one] => Ok([*one; PIXEL]),
        numbers if numbers.len() == channels => {
            let mut all = [1.0; PIXEL];
            all.iter_mut().zip(numbers).for_each(|(all, number)| *all = *number);
            Ok(all)
        }
        _ => Err(Error::invalid(format!("number of values in the {name} of Normalise"))
            .expected_found(format!("1 or {channels}"), numbers.len())),
    };
    let (mean, deviation) = (each(&normalise.mean, "mean")?, each(&normalise.deviation, "std")?);
    if deviation.iter().chain(&mean).any(|number| !number.is_finite()) || deviation.contains(&0.0) {
        return Err(
            Error::invalid("Normalise").expected_found("finite numbers, std not 0", format!("{normalise:?}"))
        );
    }
    #[allow(clippy::cast_possible_truncation)] // samples are not more precise than that
    let pair =
        |(mean, deviation): (f64, f64)| ((normalise.scale / deviation) as f32, (-mean / deviation) as f32);
    let mut scale = [(1.0, 0.0); PIXEL];
    for (scale, numbers) in scale.iter_mut().zip(mean.into_iter().zip(deviation)) {
        *scale = pair(numbers);
    }
    Ok(scale)
}

fn apply(step: &Step, canvas: &mut Canvas<'_, '_>, random: &mut Random) -> Result<()> {
    match *step {
        Step::Resize { shorter, filter } => {
            let to = shorter_edge(canvas.size(), shorter)?;
            canvas.resize(to, filter)
        }
        Step::ResizeTo { to, filter } => canvas.resize(to, filter),
        Step::CentreCrop(crop) => {
            let (across, down) = canvas.room_for(crop)?;
            canvas.crop(across / 2, down / 2, crop.to)
        }
        Step::RandomCrop(crop) => {
            let (across, down) = canvas.room_for(crop)?;
            canvas.crop(random.up_to(across), random.up_to(down), crop.to)
        }
        Step::RandomResizedCrop { to, area, aspect, filter, law } => {
            match draw_part(canvas.size(), area, aspect, law, random) {
                Some((left, top, part)) => {
                    canvas.crop(left, top, part)?;
                    canvas.resize(to, filter)
                }
                None => apply(&Step::CentreCrop(Crop { to, enlarge: Some(filter) }), canvas, random),
            }
        }
        Step::Flip(probability) => {
            if random.happens(probability) {
                canvas.mirror();
            }
            Ok(())
        }
        Step::Jitter(ref jitter) => {
            colour::jitter(canvas.pixels()?, jitter, random);
            Ok(())
        }
        Step::Hls { hue, lightness, saturation } => {
            colour::hls(canvas.pixels()?, [hue, lightness, saturation], random);
            Ok(())
        }
        Step::PcaNoise(deviation) => {
            colour::pca_noise(canvas.pixels()?, deviation, random);
            Ok(())
        }
        Step::Rotate { degrees, fill, law } => canvas.rotate(degrees, fill, law, random),
        Step::Pad { border, fill } => canvas.pad(border, fill),
    }
}

/// The part to crop according to a [`Law`]: left, top and size.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates on floats
fn draw_part(
    whole: Extent,
    area: Range,
    aspect: Range,
    law: Law,
    random: &mut Random,
) -> Option<(u32, u32, Extent)> {
    let (width, height) = (f64::from(whole.0), f64::from(whole.1));
    for _ in 0..10 {
        let wanted = width * height * random.between(area.0, area.1);
        let proportion = match law {
            Law::Torchvision => random.between(aspect.0.ln(), aspect.1.ln()).exp(),
            Law::Mxnet => {
                let drawn = random.between(aspect.0, aspect.1);
                if random.happens(0.5) { 1.0 / drawn } else { drawn }
            }
        };
        let across = (wanted * proportion).sqrt().round_ties_even();
        let down = (wanted / proportion).sqrt().round_ties_even();
        if across >= 1.0 && down >= 1.0 && across <= width && down <= height {
            let part = (across as u32, down as u32);
            return Some((random.up_to(whole.0 - part.0), random.up_to(whole.1 - part.1), part));
        }
    }
    let part = match law {
        Law::Mxnet => return None,
        Law::Torchvision if width / height < aspect.0 => {
            (whole.0, ((width / aspect.0).round_ties_even() as u32).clamp(1, whole.1))
        }
        Law::Torchvision if width / height > aspect.1 => {
            (((height * aspect.1).round_ties_even() as u32).clamp(1, whole.0), whole.1)
        }
        Law::Torchvision => whole,
    };
    Some(((whole.0 - part.0) / 2, (whole.1 - part.1) / 2, part))
}

#[cfg(test)]
mod tests;
