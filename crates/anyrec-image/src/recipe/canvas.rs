//! An image that passes through the steps, materialised as late and as small as possible.
//!
//! Resizing, cropping and mirroring are only recorded at first: which part of the source is used
//! (`area`), its final size (`size`), and the border beyond which no pixel contributes (`clip`). A
//! step that needs pixels applies the recorded operations, and so does the end of the recipe. Only
//! then is that part of a JPEG decoded, at the smallest scale that still has enough pixels, and
//! resized once.

use super::random::Random;
use super::step::{Crop, Extent, Law, Range};
use crate::decode::{self, DecodeOptions};
use crate::jpeg::{Cutout, Jpeg, Pixels, Region};
use crate::memory::reserve;
use crate::resize::{Filter, algorithm, failure, resize};
use crate::{Channels, Color, Orientation, Picture, Samples};
use anyrec::{Error, ErrorKind, Result};
use fast_image_resize::images::{CroppedImage, Image, ImageRef};
use fast_image_resize::{PixelType, ResizeOptions, Resizer};

/// Bytes per pixel while processing: red, green, blue, alpha. Resizing four is faster than three.
pub(super) const PIXEL: usize = 4;

/// Memory that is reused from image to image.
#[derive(Default)]
pub(super) struct Workshop {
    resizer: Resizer,
    decoded: Vec<u8>,
    spare: Vec<u8>,
}

/// Where the pixels of the pending operations come from.
enum Input<'a> {
    Jpeg(Jpeg<'a>, Pixels),
    /// Pixels in the workshop's `decoded`.
    Decoded(Extent),
}

/// A rectangle with fractional coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Area {
    fn whole((width, height): Extent) -> Self {
        Area { left: 0.0, top: 0.0, width: width.into(), height: height.into() }
    }
}

/// The pending operations.
struct View {
    area: Area,
    clip: Area,
    size: Extent,
    filter: Option<Filter>,
    mirrored: bool,
}

impl View {
    fn whole(size: Extent) -> Self {
        View { area: Area::whole(size), clip: Area::whole(size), size, filter: None, mirrored: false }
    }
}

/// An image being processed.
pub(super) struct Canvas<'a, 'w> {
    source: Input<'a>,
    view: View,
    workshop: &'w mut Workshop,
    limits: decode::DecodeLimits,
}

/// The samples of an 8-bit image.
fn bytes_of(picture: Picture) -> Result<Vec<u8>> {
    match picture.into_samples() {
        Samples::Eight(samples) => Ok(samples),
        Samples::Sixteen(_) => Err(Error::invalid("the image has more than 8 bits per sample")),
    }
}

impl<'a, 'w> Canvas<'a, 'w> {
    /// An encoded image. Only the header of a JPEG is decoded at first.
    pub fn open(bytes: &'a [u8], options: &DecodeOptions, workshop: &'w mut Workshop) -> Result<Self> {
        let limits = options.limits.clone();
        if decode::is_jpeg(bytes) {
            let jpeg = Jpeg::open(bytes, options)?;
            let header = jpeg.header();
            if !options.exif_orientation || header.orientation == Orientation::Upright {
                let view = View::whole((header.size.width, header.size.height));
                let pixels = if options.color == Color::Gray { Pixels::Gray } else { Pixels::Rgbx };
                return Ok(Canvas { source: Input::Jpeg(jpeg, pixels), view, workshop, limits });
            }
        }
        Self::of(decode::decode(bytes, options)?, limits, workshop)
    }

    /// A decoded image.
    pub fn of(picture: Picture, limits: decode::DecodeLimits, workshop: &'w mut Workshop) -> Result<Self> {
        let picture = picture.into_8bit().into_rgba();
        let size = (picture.width(), picture.height());
        workshop.decoded = bytes_of(picture)?;
        Ok(Canvas { source: Input::Decoded(size), view: View::whole(size), workshop, limits })
    }

    /// Width and height.
    pub fn size(&self) -> Extent {
        self.view.size
    }

    /// Whether the pixels must still be mirrored, which the caller does as it reads them.
    pub fn is_mirrored(&self) -> bool {
        self.view.mirrored
    }

    /// Mirrors left to right.
    pub fn mirror(&mut self) {
        self.view.mirrored = !self.view.mirrored;
    }

    /// How much larger the image is than a crop, after enlarging it if necessary.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates on floats
    pub fn room_for(&mut self, crop: Crop) -> Result<Extent> {
        let scaled = |to: u32, from: u32, other: u32| (to as f32 / from as f32 * other as f32) as u32;
        if let Some(filter) = crop.enlarge {
            let (width, height) = self.size();
            if height < crop.to.1 {
                self.resize((scaled(crop.to.1, height, width).max(1), crop.to.1), filter)?;
            }
            let (width, height) = self.size();
            if width < crop.to.0 {
                self.resize((crop.to.0, scaled(crop.to.0, width, height).max(1)), filter)?;
            }
        }
        let (width, height) = self.size();
        Ok((width.saturating_sub(crop.to.0), height.saturating_sub(crop.to.1)))
    }

    /// Crops a part, starting at (left, top).
    pub fn crop(&mut self, left: u32, top: u32, to: Extent) -> Result<()> {
        let (width, height) = self.view.size;
        let fits =
            |from: u32, length: u32, whole: u32| from.checked_add(length).is_some_and(|end| end <= whole);
        if !fits(left, to.0, width) || !fits(top, to.1, height) {
            return Err(Error::invalid("size of a crop")
                .expected_found(format!("at most {width}x{height}"), format!("{}x{}", to.0, to.1))
                .with_hint("resize before cropping"));
        }
        let left = if self.view.mirrored { width - left - to.0 } else { left };
        let area = self.view.area;
        let (across, down) = (area.width / f64::from(width), area.height / f64::from(height));
        self.view.area = Area {
            left: area.left + f64::from(left) * across,
            top: area.top + f64::from(top) * down,
            width: f64::from(to.0) * across,
            height: f64::from(to.1) * down,
        };
        self.view.size = to;
        if self.view.filter.is_none() {
            self.view.clip = self.view.area;
        }
        Ok(())
    }

    /// Resizes.
    pub fn resize(&mut self, to: Extent, filter: Filter) -> Result<()> {
        if to == self.view.size {
            return Ok(());
        }
        if self.view.filter.is_some() {
            self.settle()?;
        }
        let filter = filter.resolved(self.view.size, to);
        if matches!(filter, Filter::Nearest | Filter::Area) {
            // These filters work on whole images only.
            self.settle()?;
            self.check_size(to)?;
            let (width, height) = self.view.size;
            let pixels = Samples::Eight(std::mem::take(&mut self.workshop.decoded));
            let picture = Picture::new(width, height, Channels::Rgba, pixels)?;
            self.workshop.decoded = bytes_of(resize(&picture, to.0, to.1, filter)?)?;
            self.source = Input::Decoded(to);
            self.view = View { mirrored: self.view.mirrored, ..View::whole(to) };
            return Ok(());
        }
        (self.view.size, self.view.filter) = (to, Some(filter));
        Ok(())
    }

    fn check_size(&self, (width, height): Extent) -> Result<()> {
        let pixels = u64::from(width) * u64::from(height);
        if pixels > self.limits.pixels {
            let message =
                format!("an image of {width}x{height} pixels is over the limit of {}", self.limits.pixels);
            return Err(Error::new(ErrorKind::Limit, message));
        }
        Ok(())
    }

    /// Applies the pending operations to the pixels; only mirroring stays pending.
    pub fn settle(&mut self) -> Result<()> {
        let View { area, clip, size, filter, mirrored } = self.view;
        if let (Input::Decoded(whole), None) = (&self.source, filter)
            && area == Area::whole(*whole)
        {
            return Ok(());
        }
        self.check_size(size)?;
        // The part of the source that contributes: the area and the surroundings that the filter
        // reads.
        let wanted = match filter {
            None => area,
            Some(filter) => grown(area, size, filter, clip),
        };
        let region = rounded_out(wanted);
        // Where `decoded` lies, in pixels of a source `scale` times as large.
        let (part, scale) = match std::mem::replace(&mut self.source, Input::Decoded((0, 0))) {
            Input::Decoded(whole) => (Cutout { left: 0, top: 0, width: whole.0, height: whole.1 }, 1.0),
            Input::Jpeg(jpeg, pixels) => {
                let eighths = eighths(area, size, filter);
                let gray = matches!(pixels, Pixels::Gray);
                let part = jpeg.decode_region(region, eighths, pixels, &mut self.workshop.decoded)?;
                if gray {
                    self.workshop.decoded =
                        self.workshop.decoded.iter().flat_map(|&gray| [gray, gray, gray, u8::MAX]).collect();
                }
                (part, f64::from(eighths) / 8.0)
            }
        };
        let shift = |area: Area| Area {
            left: area.left * scale - f64::from(part.left),
            top: area.top * scale - f64::from(part.top),
            width: area.width * scale,
            height: area.height * scale,
        };
        let (area, clip) = (shift(area), within(rounded_out(shift(clip)), part));
        match filter {
            None => self.cut(part, rounded_out(area)),
            Some(filter) => self.convolve(part, clip, area, size, filter)?,
        }
        std::mem::swap(&mut self.workshop.decoded, &mut self.workshop.spare);
        self.source = Input::Decoded(size);
        self.view = View { mirrored, ..View::whole(size) };
        Ok(())
    }

    /// Crops the decoded pixels.
    fn cut(&mut self, part: Cutout, wanted: Region) {
        let Workshop { decoded, spare, .. } = &mut *self.workshop;
        let row = part.width as usize * PIXEL;
        let columns = wanted.left as usize * PIXEL..(wanted.left as usize + wanted.width as usize) * PIXEL;
        spare.clear();
        for row in decoded.chunks_exact(row.max(1)).skip(wanted.top as usize).take(wanted.height as usize) {
            spare.extend_from_slice(row.get(columns.clone()).unwrap_or_default());
        }
    }

    /// Resizes the decoded pixels; nothing outside `clip` contributes.
    fn convolve(&mut self, part: Cutout, clip: Region, area: Area, to: Extent, filter: Filter) -> Result<()> {
        let Workshop { decoded, spare, resizer } = &mut *self.workshop;
        let source = ImageRef::new(part.width, part.height, decoded, PixelType::U8x4).map_err(failure)?;
        let source =
            CroppedImage::new(&source, clip.left, clip.top, clip.width, clip.height).map_err(failure)?;
        let size = to.0 as usize * to.1 as usize * PIXEL;
        // Every byte is overwritten, so the old contents need not be cleared.
        if spare.len() < size {
            let more = size - spare.len();
            reserve(spare, more)?;
            spare.resize(size, 0);
        }
        spare.truncate(size);
        let mut target = Image::from_slice_u8(to.0, to.1, spare, PixelType::U8x4).map_err(failure)?;
        let fit = |from: f64, length: f64, whole: u32| {
            let from = from.clamp(0.0, f64::from(whole));
            (from, length.min(f64::from(whole) - from))
        };
        let (left, width) = fit(area.left - f64::from(clip.left), area.width, clip.width);
        let (top, height) = fit(area.top - f64::from(clip.top), area.height, clip.height);
        let options = ResizeOptions::new()
            .resize_alg(algorithm(filter)?)
            .use_alpha(false)
            .crop(left, top, width, height);
        resizer.resize(&source, &mut target, &options).map_err(failure)
    }

    /// The pixels, to be changed in place; they may still have to be mirrored.
    pub fn pixels(&mut self) -> Result<&mut [[u8; PIXEL]]> {
        self.settle()?;
        Ok(self.workshop.decoded.as_chunks_mut().0)
    }

    /// The pixels and their size, for a step that computes new pixels from them.
    fn remade(&mut self, to: Extent, make: impl FnOnce(&[[u8; PIXEL]], Extent, &mut Vec<u8>)) -> Result<()> {
        let mirrored = self.view.mirrored;
        self.view.mirrored = false;
        self.check_size(to)?;
        let size = self.view.size;
        let pixels = self.pixels()?;
        if mirrored {
            pixels.chunks_exact_mut(size.0.max(1) as usize).for_each(<[_]>::reverse);
        }
        let Workshop { decoded, spare, .. } = &mut *self.workshop;
        spare.clear();
        make(decoded.as_chunks().0, size, spare);
        std::mem::swap(decoded, spare);
        self.source = Input::Decoded(to);
        self.view = View::whole(to);
        Ok(())
    }

    /// Adds a border on all sides.
    pub fn pad(&mut self, border: u32, fill: u8) -> Result<()> {
        let (width, height) = self.size();
        let grown = |side: u32| side.checked_add(border.checked_mul(2)?);
        let (Some(wide), Some(high)) = (grown(width), grown(height)) else {
            return Err(Error::new(ErrorKind::Limit, format!("a border of {border} pixels is too large")));
        };
        let filled = |pixels: u64| std::iter::repeat_n(fill, usize::try_from(pixels).unwrap_or(0) * PIXEL);
        self.remade((wide, high), |pixels, (width, _), padded| {
            let outside = u64::from(wide) * u64::from(border);
            padded.extend(filled(outside));
            for row in pixels.chunks_exact(width.max(1) as usize) {
                padded.extend(filled(border.into()));
                padded.extend_from_slice(row.as_flattened());
                padded.extend(filled(border.into()));
            }
            padded.extend(filled(outside));
        })
    }

    /// Rotates about the centre, counterclockwise.
    pub fn rotate(&mut self, degrees: Range, fill: u8, law: Law, random: &mut Random) -> Result<()> {
        let (low, high) = degrees;
        let (width, height) = self.size();
        let middle = |side: u32| f64::from(side) / 2.0;
        let (angle, centre) = match law {
            Law::Torchvision => (random.between(low, high), (middle(width) - 0.5, middle(height) - 0.5)),
            // Every integer has an equal share of the range, including both ends.
            Law::Mxnet => {
                let whole = random.between(low.ceil(), high.floor() + 1.0).floor().min(high);
                (whole, (middle(width), middle(height)))
            }
        };
        let turn =
            |pixels: &[_], size, turned: &mut _| turn(pixels, size, angle.to_radians(), centre, fill, turned);
        self.remade((width, height), turn)
    }
}

/// Rotates an image about a pixel or a point between pixels, counterclockwise.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates on floats
fn turn(
    pixels: &[[u8; PIXEL]],
    (width, height): Extent,
    angle: f64,
    centre: (f64, f64),
    fill: u8,
    turned: &mut Vec<u8>,
) {
    let (sine, cosine) = angle.sin_cos();
    let at = |x: f64, y: f64| {
        let inside = x >= 0.0 && y >= 0.0 && x < f64::from(width) && y < f64::from(height);
        let found = if inside { pixels.get(y as usize * width as usize + x as usize) } else { None };
        found.copied().unwrap_or([fill; PIXEL])
    };
    for y in 0..height {
        for x in 0..width {
            let (dx, dy) = (f64::from(x) - centre.0, f64::from(y) - centre.1);
            let (from_x, from_y) = (cosine * dx - sine * dy + centre.0, sine * dx + cosine * dy + centre.1);
            let (left, top) = (from_x.floor(), from_y.floor());
            let (right_share, lower_share) = (from_x - left, from_y - top);
            let corners =
                [at(left, top), at(left + 1.0, top), at(left, top + 1.0), at(left + 1.0, top + 1.0)];
            let shares = [
                (1.0 - right_share) * (1.0 - lower_share),
                right_share * (1.0 - lower_share),
                (1.0 - right_share) * lower_share,
                right_share * lower_share,
            ];
            turned.extend((0..PIXEL).map(|channel| {
                let value = corners
                    .iter()
                    .zip(shares)
                    .map(|(corner, share)| f64::from(corner.get(channel).copied().unwrap_or(fill)) * share)
                    .sum::<f64>();
                (value + 0.5) as u8
            }));
        }
    }
}

/// How far a filter reaches to either side, in pixels of its input.
fn reach(from: f64, to: u32, filter: Filter) -> f64 {
    let ratio = (from / f64::from(to)).max(1.0);
    match filter {
        Filter::Nearest | Filter::Bilinear | Filter::Area | Filter::Automatic => 1.0,
        Filter::Cubic => 2.0,
        Filter::Lanczos => 4.0,
        Filter::SmoothBilinear => ratio,
        Filter::SmoothCubic => 2.0 * ratio,
        Filter::SmoothLanczos => 3.0 * ratio,
    }
}

/// What a filter reads to compute the area; nothing outside `clip`.
fn grown(area: Area, size: Extent, filter: Filter, clip: Area) -> Area {
    // One extra pixel for rounding.
    let across = reach(area.width, size.0, filter) + 1.0;
    let down = reach(area.height, size.1, filter) + 1.0;
    let left = (area.left - across).max(clip.left);
    let top = (area.top - down).max(clip.top);
    let right = (area.left + area.width + across).min(clip.left + clip.width);
    let bottom = (area.top + area.height + down).min(clip.top + clip.height);
    Area { left, top, width: right - left, height: bottom - top }
}

/// The smallest rectangle of whole pixels around an area.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates on floats
fn rounded_out(area: Area) -> Region {
    // Products of fractions are slightly off where they should be integers.
    const SLACK: f64 = 1e-6;
    let (left, top) = ((area.left + SLACK).floor().max(0.0), (area.top + SLACK).floor().max(0.0));
    let right = (area.left + area.width - SLACK).ceil();
    let bottom = (area.top + area.height - SLACK).ceil();
    Region {
        left: left as u32,
        top: top as u32,
        width: (right - left).max(1.0) as u32,
        height: (bottom - top).max(1.0) as u32,
    }
}

/// The intersection of a rectangle with a decoded part (which begins at 0, 0).
fn within(region: Region, part: Cutout) -> Region {
    let left = region.left.min(part.width - 1);
    let top = region.top.min(part.height - 1);
    Region {
        left,
        top,
        width: region.width.min(part.width - left),
        height: region.height.min(part.height - top),
    }
}

/// The scale to decode a JPEG at: the smallest that still has two pixels for each requested one in
/// either direction (with one, the result is off by 2 levels on average instead of 0.7). Only a
/// filter that widens with the ratio can resize from there.
fn eighths(area: Area, size: Extent, filter: Option<Filter>) -> u32 {
    let smooth = matches!(filter, Some(Filter::SmoothBilinear | Filter::SmoothCubic | Filter::SmoothLanczos));
    let ratio = (area.width / f64::from(size.0)).min(area.height / f64::from(size.1));
    match ratio {
        _ if !smooth => 8,
        ratio if ratio >= 16.0 => 1,
        ratio if ratio >= 8.0 => 2,
        ratio if ratio >= 4.0 => 4,
        _ => 8,
    }
}
