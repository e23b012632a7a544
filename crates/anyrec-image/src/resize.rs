//! Resizing and cropping.
//!
//! Every channel is treated alike, including alpha, as OpenCV does.

use super::area;
use super::decode::DecodeLimits;
use super::orientation::gather;
use super::picture::{Channels, Picture, Samples, map_samples};
use anyrec::{Error, ErrorKind, Result};
use fast_image_resize as fir;
use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelTrait, PixelType, ResizeAlg, ResizeOptions, Resizer};

/// How new pixels are computed from old ones.
///
/// The first five are OpenCV's, with its `inter_method` numbers. As in OpenCV, all but `Area` read
/// the same few pixels however much an image is shrunk, so fine detail turns to noise. The others
/// widen with the ratio (antialiasing), as in Pillow and torchvision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Filter {
    /// 0, `INTER_NEAREST`: the pixel at or before the exact position.
    Nearest,
    /// 1, `INTER_LINEAR`: between 2x2 pixels.
    Bilinear,
    /// 2, `INTER_CUBIC`: between 4x4 pixels.
    Cubic,
    /// 3, `INTER_AREA`: the mean of the covered area; bilinear along an axis that grows.
    Area,
    /// 4, `INTER_LANCZOS4`: between 8x8 pixels.
    Lanczos,
    /// MXNet's 9: cubic when both sides grow, area when both shrink, bilinear otherwise.
    Automatic,
    /// Bilinear with antialiasing.
    SmoothBilinear,
    /// Bicubic (Catmull-Rom) with antialiasing.
    SmoothCubic,
    /// Lanczos over three lobes with antialiasing.
    SmoothLanczos,
}

impl Filter {
    /// The filter for OpenCV's number, as in MXNet's `inter_method`.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) for numbers other than 0 to 4 and 9. For MXNet's 10
    /// (random), the caller must draw a number.
    ///
    /// ```
    /// use anyrec_image::Filter;
    ///
    /// assert_eq!(Filter::from_inter_method(3)?, Filter::Area);
    /// # Ok::<(), anyrec::Error>(())
    /// ```
    pub fn from_inter_method(number: i32) -> Result<Self> {
        match number {
            0 => Ok(Filter::Nearest),
            1 => Ok(Filter::Bilinear),
            2 => Ok(Filter::Cubic),
            3 => Ok(Filter::Area),
            4 => Ok(Filter::Lanczos),
            9 => Ok(Filter::Automatic),
            _ => Err(Error::invalid("inter_method").expected_found("0 to 4 or 9", number)),
        }
    }

    /// The filter itself; for [`Automatic`](Filter::Automatic), the filter it selects for these
    /// sizes, (width, height) each.
    pub(super) fn resolved(self, from: (u32, u32), to: (u32, u32)) -> Self {
        match self {
            Filter::Automatic if to.0 > from.0 && to.1 > from.1 => Filter::Cubic,
            Filter::Automatic if to.0 < from.0 && to.1 < from.1 => Filter::Area,
            Filter::Automatic => Filter::Bilinear,
            filter => filter,
        }
    }
}

/// Resizes to exactly this size, without keeping proportions.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) for a zero width or height, [`Limit`](ErrorKind::Limit)
/// for more than 256 Mi pixels.
///
/// ```
/// use anyrec_image::{Channels, Filter, Picture, Samples, resize};
///
/// let picture = Picture::new(2, 2, Channels::Gray, Samples::Eight(vec![0, 10, 20, 30]))?;
/// let pixel = resize(&picture, 1, 1, Filter::Area)?;
/// assert_eq!(pixel.samples(), &Samples::Eight(vec![15]));
/// # Ok::<(), anyrec::Error>(())
/// ```
pub fn resize(picture: &Picture, width: u32, height: u32, filter: Filter) -> Result<Picture> {
    if width == 0 || height == 0 {
        return Err(Error::invalid(format!("an image of {width}x{height} pixels is empty")));
    }
    // Resizing a 60000x1 image by its shorter side would take all memory.
    let limit = DecodeLimits::default().pixels;
    if u64::from(width) * u64::from(height) > limit {
        let message = format!("resizing to {width}x{height} is over the limit of {limit} pixels");
        return Err(Error::new(ErrorKind::Limit, message));
    }
    let (old_width, old_height) = (picture.width(), picture.height());
    if (width, height) == (old_width, old_height) {
        return Ok(picture.clone());
    }
    let channels = picture.channels();
    let filter = filter.resolved((old_width, old_height), (width, height));
    let samples = match filter {
        Filter::Nearest => {
            let place = |new: u32, old: u32, count: u32| {
                let exact = u64::from(new) * u64::from(old) / u64::from(count);
                u32::try_from(exact).unwrap_or(u32::MAX)
            };
            map_samples!(picture.samples(), values => {
                gather(values, channels.count(), old_width, width, height, |x, y| {
                    (place(x, old_width, width), place(y, old_height, height))
                })
            })
        }
        Filter::Area if width <= old_width && height <= old_height => {
            map_samples!(picture.samples(), values => {
                area::shrink(values, channels.count(), (old_width, old_height), (width, height))
            })
        }
        _ => convolve(picture, width, height, algorithm(filter)?)?,
    };
    Picture::new(width, height, channels, samples)
}

/// Resizes so that the shorter side has `length` pixels. Proportions are kept, and the longer side
/// is rounded down, as in `im2rec`.
///
/// # Errors
/// As [`resize`].
///
/// ```
/// use anyrec_image::{Channels, Filter, Picture, Samples, resize_shorter_edge};
///
/// let picture = Picture::new(50, 37, Channels::Gray, Samples::Eight(vec![0; 1850]))?;
/// let small = resize_shorter_edge(&picture, 10, Filter::SmoothBilinear)?;
/// assert_eq!((small.width(), small.height()), (13, 10));
/// # Ok::<(), anyrec::Error>(())
/// ```
pub fn resize_shorter_edge(picture: &Picture, length: u32, filter: Filter) -> Result<Picture> {
    let (width, height) = shorter_edge((picture.width(), picture.height()), length)?;
    resize(picture, width, height, filter)
}

/// The size (width, height) of an image after its shorter side is resized to that length.
pub(super) fn shorter_edge((width, height): (u32, u32), shorter: u32) -> Result<(u32, u32)> {
    let longer = u64::from(shorter) * u64::from(width.max(height)) / u64::from(width.min(height)).max(1);
    let longer = u32::try_from(longer).map_err(|_| {
        let what = format!("cannot resize the shorter side of a {width}x{height} image to {shorter}");
        Error::new(ErrorKind::Limit, what)
    })?;
    Ok(if width <= height { (shorter, longer) } else { (longer, shorter) })
}

/// The part of an image that is `width` by `height` pixels large and starts at (`left`, `top`).
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) if the part is empty or not within the image.
pub fn crop(picture: &Picture, left: u32, top: u32, width: u32, height: u32) -> Result<Picture> {
    let inside = |start: u32, length: u32, whole: u32| {
        length > 0 && start.checked_add(length).is_some_and(|end| end <= whole)
    };
    if !inside(left, width, picture.width()) || !inside(top, height, picture.height()) {
        let part = format!("{width}x{height} pixels from ({left}, {top})");
        return Err(Error::invalid("crop region")
            .expected_found(format!("within {}x{}", picture.width(), picture.height()), part));
    }
    let channels = picture.channels();
    let row_length = picture.width() as usize * channels.count();
    let first = left as usize * channels.count();
    let length = width as usize * channels.count();
    let samples = map_samples!(picture.samples(), values => {
        values
            .chunks_exact(row_length)
            .skip(top as usize)
            .take(height as usize)
            .filter_map(|row| row.get(first..first + length))
            .flatten()
            .copied()
            .collect()
    });
    Picture::new(width, height, channels, samples)
}

/// The centre of an image, `width` by `height` pixels large. Odd margins are smaller on the left
/// and top.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) if the part is empty or does not fit.
///
/// ```
/// use anyrec_image::{Channels, Picture, Samples, centre_crop};
///
/// let picture = Picture::new(4, 1, Channels::Gray, Samples::Eight(vec![1, 2, 3, 4]))?;
/// assert_eq!(centre_crop(&picture, 1, 1)?.samples(), &Samples::Eight(vec![2]));
/// assert!(centre_crop(&picture, 5, 1).is_err());
/// # Ok::<(), anyrec::Error>(())
/// ```
pub fn centre_crop(picture: &Picture, width: u32, height: u32) -> Result<Picture> {
    let left = picture.width().saturating_sub(width) / 2;
    let top = picture.height().saturating_sub(height) / 2;
    crop(picture, left, top, width, height)
}

/// The resizing library's name for a filter. `Interpolation` reads a fixed number of pixels,
/// `Convolution` as many as the ratio requires.
pub(super) fn algorithm(filter: Filter) -> Result<ResizeAlg> {
    let custom = |name, function, support| {
        fir::Filter::new(name, function, support)
            .map(|filter| ResizeAlg::Interpolation(FilterType::Custom(filter)))
            .map_err(|error| Error::invalid(format!("filter {name}: {error}")))
    };
    Ok(match filter {
        Filter::Nearest => ResizeAlg::Nearest,
        Filter::Bilinear | Filter::Area | Filter::Automatic => ResizeAlg::Interpolation(FilterType::Bilinear),
        Filter::Cubic => custom("cubic", opencv_cubic, 2.0)?,
        Filter::Lanczos => custom("lanczos4", lanczos4, 4.0)?,
        Filter::SmoothBilinear => ResizeAlg::Convolution(FilterType::Bilinear),
        Filter::SmoothCubic => ResizeAlg::Convolution(FilterType::CatmullRom),
        Filter::SmoothLanczos => ResizeAlg::Convolution(FilterType::Lanczos3),
    })
}

/// The cubic kernel with OpenCV's coefficient -0.75 (Catmull-Rom has -0.5).
fn opencv_cubic(x: f64) -> f64 {
    const A: f64 = -0.75;
    let x = x.abs();
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A
    } else {
        0.0
    }
}

/// A sinc windowed by another of four times its width.
fn lanczos4(x: f64) -> f64 {
    let sinc = |x: f64| {
        let x = x * std::f64::consts::PI;
        if x == 0.0 { 1.0 } else { x.sin() / x }
    };
    if x.abs() < 4.0 { sinc(x) * sinc(x / 4.0) } else { 0.0 }
}

fn convolve(picture: &Picture, width: u32, height: u32, algorithm: ResizeAlg) -> Result<Samples> {
    let (old_width, old_height) = (picture.width(), picture.height());
    let run = |source: &ImageRef<'_>| {
        let mut target = Image::new(width, height, source.pixel_type());
        let options = ResizeOptions::new().resize_alg(algorithm).use_alpha(false);
        Resizer::new().resize(source, &mut target, &options).map_err(failure)?;
        Ok(target)
    };
    match picture.samples() {
        Samples::Eight(values) => {
            let pixels = match picture.channels() {
                Channels::Gray => PixelType::U8,
                Channels::GrayAlpha => PixelType::U8x2,
                Channels::Rgb => PixelType::U8x3,
                Channels::Rgba => PixelType::U8x4,
            };
            let source = ImageRef::new(old_width, old_height, values, pixels).map_err(failure)?;
            run(&source).map(|target| Samples::Eight(target.into_vec()))
        }
        Samples::Sixteen(values) => {
            let target = match picture.channels() {
                Channels::Gray => {
                    let pixels = pixels(values, |[gray]| fir::pixels::U16::new(gray));
                    run(&image(old_width, old_height, &pixels)?)
                }
                Channels::GrayAlpha => {
                    let pixels = pixels(values, fir::pixels::U16x2::new);
                    run(&image(old_width, old_height, &pixels)?)
                }
                Channels::Rgb => {
                    let pixels = pixels(values, fir::pixels::U16x3::new);
                    run(&image(old_width, old_height, &pixels)?)
                }
                Channels::Rgba => {
                    let pixels = pixels(values, fir::pixels::U16x4::new);
                    run(&image(old_width, old_height, &pixels)?)
                }
            }?;
            let (pairs, _) = target.buffer().as_chunks::<2>();
            Ok(Samples::Sixteen(pairs.iter().map(|pair| u16::from_ne_bytes(*pair)).collect()))
        }
    }
}

/// 16-bit samples as the resizing library's pixels. This copies them, because the library's pixels
/// are types of their own and samples cannot be borrowed as such without `unsafe`.
fn pixels<P, const COUNT: usize>(samples: &[u16], pixel: impl Fn([u16; COUNT]) -> P) -> Vec<P> {
    samples.as_chunks::<COUNT>().0.iter().map(|values| pixel(*values)).collect()
}

fn image<P: PixelTrait>(width: u32, height: u32, pixels: &[P]) -> Result<ImageRef<'_>> {
    ImageRef::from_pixels(width, height, pixels).map_err(failure)
}

pub(super) fn failure(error: impl std::fmt::Display) -> Error {
    Error::invalid(format!("cannot resize the image: {error}"))
}
