//! Converts images between encoded bytes and NumPy arrays, in OpenCV's channel order.

use crate::errors::raised;
use crate::payload::Payload;
use crate::progress::done;
use crate::sequences::{Many, bytes_to};
use anyrec::Error;
use anyrec_image::{self as image, Channels, DecodeOptions, Filter, Kind, Picture, Samples};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Encodes an array of height x width, or height x width x channels (BGR, BGRA), as a JPEG
/// (`quality` 1 to 100) or PNG (`quality` is zlib's level, 0 to 9).
#[pyfunction]
pub fn encode_image<'py>(
    py: Python<'py>,
    image: &Bound<'py, PyAny>,
    format: &str,
    quality: u8,
) -> PyResult<Bound<'py, PyBytes>> {
    let picture = picture_of(image, Picture::from_bgr)?;
    let format = format.trim_start_matches('.').to_ascii_lowercase();
    let encoded = done(py, || match format.as_str() {
        "jpg" | "jpeg" => image::encode_jpeg(&picture, quality),
        "png" => image::encode_png(&picture, quality),
        other => Err(Error::unsupported("image format").expected_found(".jpg, .jpeg or .png", other)),
    })?;
    bytes_to(py, &encoded)
}

/// Decodes a JPEG, PNG or WebP to an array: -1 as stored, 0 gray, 1 colour, or another sum of flags of
/// `cv2.imdecode` (not those that reduce an image).
/// With `rgb` the channel order is red, green, blue.
#[pyfunction]
#[pyo3(signature = (data, iscolor = -1, *, rgb = false), text_signature = "(data, iscolor=-1, *, rgb=False)")]
pub fn decode_image<'py>(
    py: Python<'py>,
    data: Payload,
    iscolor: i32,
    rgb: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (shape, samples) = done(py, || {
        let picture = image::decode(&data, &DecodeOptions::opencv(iscolor)?)?;
        let (height, width) = (picture.height() as usize, picture.width() as usize);
        let shape = match picture.channels() {
            Channels::Gray => vec![height, width],
            channels => vec![height, width, channels.count()],
        };
        let samples = if rgb { picture.into_samples() } else { picture.bgr_samples() };
        Ok((shape, samples))
    })?;
    array_of(py, samples, shape)
}

/// Resizes an array of height x width, or height x width x channels in any order. `interpolation` is
/// OpenCV's number, or MXNet's 9.
#[pyfunction]
pub fn resize_image<'py>(
    py: Python<'py>,
    image: &Bound<'py, PyAny>,
    width: u32,
    height: u32,
    interpolation: i32,
) -> PyResult<Bound<'py, PyAny>> {
    let Many(mut shape): Many<usize> = image.getattr("shape")?.extract()?;
    let picture = picture_of(image, Picture::new)?;
    let resized =
        done(py, || image::resize(&picture, width, height, Filter::from_inter_method(interpolation)?))?;
    shape.splice(..2, [height as usize, width as usize]);
    array_of(py, resized.into_samples(), shape)
}

fn array_of(py: Python<'_>, samples: Samples, shape: Vec<usize>) -> PyResult<Bound<'_, PyAny>> {
    Ok(match samples {
        Samples::Eight(samples) => PyArray1::from_vec(py, samples).reshape(shape)?.into_any(),
        Samples::Sixteen(samples) => PyArray1::from_vec(py, samples).reshape(shape)?.into_any(),
    })
}

/// The most pixels of an image that a thumbnail is made of.
const THUMBNAIL_PIXELS: u64 = 64 << 20;

/// What a record's bytes are, a PNG of at most `side` pixels in each direction if they are an image,
/// and why there is none if the image cannot be decoded.
#[pyfunction]
pub fn thumbnail<'py>(
    py: Python<'py>,
    data: Payload,
    side: u32,
) -> PyResult<(String, Option<Bound<'py, PyBytes>>, Option<String>)> {
    let kind = image::sniff(&data);
    if !matches!(kind, Kind::Image { .. }) {
        return Ok((kind.to_string(), None, None));
    }
    let make = || {
        let mut options = DecodeOptions::default();
        options.limits.pixels = THUMBNAIL_PIXELS;
        let picture = image::decode(&data, &options)?.into_8bit();
        let (width, height) = (picture.width(), picture.height());
        let longer = width.max(height);
        let fitted = |length: u32| {
            let scaled = u64::from(length) * u64::from(side) / u64::from(longer);
            u32::try_from(scaled).unwrap_or(side).max(1)
        };
        if longer <= side {
            return image::encode_png(&picture, 6);
        }
        image::encode_png(&image::resize(&picture, fitted(width), fitted(height), Filter::Area)?, 6)
    };
    Ok(match py.detach(make) {
        Ok(png) => (kind.to_string(), Some(bytes_to(py, &png)?), None),
        Err(error) => (kind.to_string(), None, Some(error.to_string())),
    })
}

/// The image in an array, made by `make`, which knows the order of its channels.
fn picture_of(
    image: &Bound<'_, PyAny>,
    make: impl FnOnce(u32, u32, Channels, Samples) -> anyrec::Result<Picture>,
) -> PyResult<Picture> {
    let Many(shape): Many<usize> = image.getattr("shape")?.extract()?;
    let (height, width, channels) = match shape[..] {
        [height, width] => (height, width, 1),
        [height, width, channels] => (height, width, channels),
        _ => {
            return Err(PyValueError::new_err(format!(
                "an image has 2 or 3 dimensions (height, width, channels), not {}",
                shape.len()
            )));
        }
    };
    let type_name: String = image.getattr("dtype")?.getattr("name")?.extract()?;
    let bytes = Payload::of(image)?;
    let samples = match type_name.as_str() {
        "uint8" => Samples::Eight(bytes.to_vec()),
        "uint16" => {
            let (pairs, _) = bytes.as_chunks();
            Samples::Sixteen(pairs.iter().map(|&pair| u16::from_ne_bytes(pair)).collect())
        }
        other => return Err(PyTypeError::new_err(format!("an image is uint8 or uint16, not {other}"))),
    };
    let channels = Channels::from_count(channels).map_err(raised)?;
    make(u32::try_from(width)?, u32::try_from(height)?, channels, samples).map_err(raised)
}
