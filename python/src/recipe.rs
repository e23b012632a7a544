//! Builds image recipes from the plain values that `anyrec.image` makes of its steps.

use crate::errors::raised;
use crate::options::{choice, pairs, unknown};
use crate::sequences::Many;
use anyrec_image::Images;
use anyrec_image::{
    Channels, Crop, Extent, Filter, Form, Jitter, Law, Layout, Normalise, Range, Recipe, SampleType, Step,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Steps by name, with their values. `Normalise`, if present, is the last one.
type Steps<'py> = Many<(String, Bound<'py, PyDict>)>;

/// Builds the recipe for samples of images: the steps, and the form of the samples.
pub fn images(options: &Bound<'_, PyAny>) -> PyResult<Images> {
    let mut form = Form::new((0, 0));
    let (mut steps, mut seed, mut unencoded) = (Vec::new(), None, None);
    for (name, value) in pairs(Some(options.cast::<PyDict>()?))? {
        match name.as_str() {
            "steps" => (steps, form.normalise) = steps_from(value.extract()?)?,
            "size" => form.size = extent(&value)?,
            "channels" => form.channels = value.extract()?,
            "layout" => {
                form.layout = match value.extract::<String>()?.as_str() {
                    "NCHW" => Layout::Planes,
                    "NHWC" => Layout::Pixels,
                    other => return Err(choice("layout", other, "NCHW or NHWC")),
                };
            }
            "dtype" => {
                form.element = match value.extract::<String>()?.as_str() {
                    "uint8" => SampleType::U8,
                    "float16" => SampleType::F16,
                    "bfloat16" => SampleType::Bf16,
                    "float32" => SampleType::F32,
                    other => return Err(choice("dtype", other, "uint8, float16, bfloat16 or float32")),
                };
            }
            "exif" => form.exif_orientation = value.extract()?,
            "lenient" => form.lenient = value.extract()?,
            "augment_seed" => seed = value.extract()?,
            "unencoded" => unencoded = value.extract::<Option<(u32, u32, usize)>>()?,
            _ => return Err(unknown(&name)),
        }
    }
    let images = Images::new(Recipe::new(steps, form).map_err(raised)?, seed);
    Ok(match unencoded {
        Some((height, width, channels)) => {
            images.unencoded((width, height), Channels::from_count(channels).map_err(raised)?)
        }
        None => images,
    })
}

fn steps_from(described: Steps<'_>) -> PyResult<(Vec<Step>, Option<Normalise>)> {
    let (mut steps, mut normalise) = (Vec::new(), None);
    for (name, values) in described.0 {
        if normalise.is_some() {
            return Err(PyValueError::new_err(format!("Normalise is the last step, but {name} follows it")));
        }
        match name.as_str() {
            "Normalise" => normalise = Some(normalise_from(&values)?),
            name => steps.push(step(name, &values)?),
        }
    }
    Ok((steps, normalise))
}

fn step(name: &str, values: &Bound<'_, PyDict>) -> PyResult<Step> {
    let value = |name: &str| values.as_any().get_item(name);
    let crop = || {
        let enlarge = value("enlarge")?;
        let enlarge = if enlarge.is_none() { None } else { Some(filter(&enlarge)?) };
        Ok::<_, PyErr>(Crop { to: extent(&value("size")?)?, enlarge })
    };
    Ok(match name {
        "Resize" => {
            Step::Resize { shorter: value("shorter")?.extract()?, filter: filter(&value("filter")?)? }
        }
        "ResizeTo" => Step::ResizeTo {
            to: (value("width")?.extract()?, value("height")?.extract()?),
            filter: filter(&value("filter")?)?,
        },
        "CentreCrop" => Step::CentreCrop(crop()?),
        "RandomCrop" => Step::RandomCrop(crop()?),
        "RandomResizedCrop" => Step::RandomResizedCrop {
            to: extent(&value("size")?)?,
            area: value("area")?.extract()?,
            aspect: value("aspect")?.extract()?,
            law: law(&value("law")?)?,
            filter: filter(&value("filter")?)?,
        },
        "Flip" => Step::Flip(value("probability")?.extract()?),
        "Jitter" => Step::Jitter(Jitter {
            brightness: range(&value("brightness")?, Some(1.0))?,
            contrast: range(&value("contrast")?, Some(1.0))?,
            saturation: range(&value("saturation")?, Some(1.0))?,
            hue: range(&value("hue")?, None)?,
            law: law(&value("law")?)?,
        }),
        "Hsl" => Step::Hls {
            hue: value("h")?.extract()?,
            saturation: value("s")?.extract()?,
            lightness: value("l")?.extract()?,
        },
        "PcaNoise" => Step::PcaNoise(value("std")?.extract()?),
        "Rotate" => Step::Rotate {
            degrees: range(&value("degrees")?, None)?.unwrap_or_default(),
            fill: value("fill")?.extract()?,
            law: law(&value("law")?)?,
        },
        "Pad" => Step::Pad { border: value("pixels")?.extract()?, fill: value("fill")?.extract()? },
        other => return Err(PyValueError::new_err(format!("there is no step {other}"))),
    })
}

fn normalise_from(values: &Bound<'_, PyDict>) -> PyResult<Normalise> {
    let value = |name: &str| values.as_any().get_item(name);
    let numbers = |name: &str| {
        let value = value(name)?;
        value
            .extract::<f64>()
            .map(|number| vec![number])
            .or_else(|_| value.extract::<Many<_>>().map(|several| several.0))
    };
    Ok(Normalise { scale: value("scale")?.extract()?, mean: numbers("mean")?, deviation: numbers("std")? })
}

/// A number for a square, or (height, width) as in array shapes.
fn extent(size: &Bound<'_, PyAny>) -> PyResult<Extent> {
    if let Ok(side) = size.extract::<u32>() {
        return Ok((side, side));
    }
    let (height, width) = size.extract()?;
    Ok((width, height))
}

/// Two numbers, or one for an equal distance to either side of `middle` (0 if none; otherwise the
/// lower end is at least 0).
fn range(value: &Bound<'_, PyAny>, middle: Option<f64>) -> PyResult<Option<Range>> {
    if value.is_none() {
        return Ok(None);
    }
    match (value.extract::<f64>(), middle) {
        (Ok(most), Some(middle)) => Ok(Some(((middle - most).max(0.0), middle + most))),
        (Ok(most), None) => Ok(Some((-most, most))),
        (Err(_), _) => value.extract().map(Some),
    }
}

fn law(name: &Bound<'_, PyAny>) -> PyResult<Law> {
    match name.extract::<String>()?.as_str() {
        "torchvision" => Ok(Law::Torchvision),
        "mxnet" => Ok(Law::Mxnet),
        other => Err(choice("law", other, "torchvision or mxnet")),
    }
}

fn filter(name: &Bound<'_, PyAny>) -> PyResult<Filter> {
    Ok(match name.extract::<String>()?.as_str() {
        "bilinear" => Filter::SmoothBilinear,
        "bicubic" => Filter::SmoothCubic,
        "lanczos" => Filter::SmoothLanczos,
        "cv-nearest" => Filter::Nearest,
        "cv-linear" => Filter::Bilinear,
        "cv-cubic" => Filter::Cubic,
        "cv-area" => Filter::Area,
        "cv-lanczos4" => Filter::Lanczos,
        "cv-auto" => Filter::Automatic,
        other => {
            let known = "bilinear, bicubic, lanczos, cv-nearest, cv-linear, cv-cubic, cv-area, cv-lanczos4 or cv-auto";
            return Err(choice("filter", other, known));
        }
    })
}
