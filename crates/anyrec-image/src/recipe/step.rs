//! The steps of a recipe, as plain data.

use crate::resize::{Filter, shorter_edge};
use anyrec::{Error, Result};

/// Width and height in pixels.
pub type Extent = (u32, u32);

/// The range from which a number is drawn.
pub type Range = (f64, f64);

/// One step from a decoded image to a sample.
///
/// Colour steps work on 8-bit red, green and blue, round after each step, and leave alpha
/// unchanged.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Resizes so that the shorter side has this length. Proportions are kept, and the longer side
    /// is rounded down.
    Resize {
        /// Length of the shorter side.
        shorter: u32,
        /// The filter.
        filter: Filter,
    },
    /// Resizes to exactly this size.
    ResizeTo {
        /// Width and height.
        to: Extent,
        /// The filter.
        filter: Filter,
    },
    /// Crops the centre; odd margins are smaller on the left and top.
    CentreCrop(Crop),
    /// Crops a part at a random position.
    RandomCrop(Crop),
    /// Crops a part of random area, proportions and position, and resizes it.
    RandomResizedCrop {
        /// Width and height after resizing.
        to: Extent,
        /// The part's share of the image's area.
        area: Range,
        /// Its width over its height.
        aspect: Range,
        /// How the part is drawn.
        law: Law,
        /// The filter.
        filter: Filter,
    },
    /// Mirrors left to right with this probability.
    Flip(f64),
    /// Changes brightness, contrast, saturation and hue, those that are given, in random order.
    Jitter(Jitter),
    /// Shifts hue, lightness and saturation by integers up to these, in OpenCV's units (a full turn
    /// of the hue is 180, the others go up to 255): MXNet's `random_h`, `random_l`, `random_s`.
    Hls {
        /// The maximum shift of the hue, to either side.
        hue: u32,
        /// The maximum shift of the lightness.
        lightness: u32,
        /// The maximum shift of the saturation.
        saturation: u32,
    },
    /// Adds noise along the principal axes of natural images' colours, with this standard deviation
    /// (AlexNet's; 0.1 is usual).
    PcaNoise(f64),
    /// Rotates about the centre by this many degrees counterclockwise, with bilinear interpolation.
    /// Pixels from outside have the value `fill`.
    Rotate {
        /// Degrees.
        degrees: Range,
        /// The value of all channels outside.
        fill: u8,
        /// Which angles are drawn, and the centre of rotation.
        law: Law,
    },
    /// Adds a border of this many pixels on every side.
    Pad {
        /// Width of the border.
        border: u32,
        /// The value of all channels.
        fill: u8,
    },
}

/// The size of a crop, and what happens to smaller images.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crop {
    /// Width and height.
    pub to: Extent,
    /// The filter that enlarges smaller images first, as MXNet does; without it, they are an error.
    pub enlarge: Option<Filter>,
}

impl From<Extent> for Crop {
    fn from(to: Extent) -> Self {
        Crop { to, enlarge: None }
    }
}

/// Which library's definition of a step applies, where they differ.
///
/// Both try ten times to find a part that fits for [`Step::RandomResizedCrop`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Law {
    /// `RandomResizedCrop`: the logarithm of the aspect ratio is uniform; if nothing fits, the
    /// largest centred part with an allowed aspect ratio is used. `Rotate`: by any fraction of a
    /// degree.
    #[default]
    Torchvision,
    /// `RandomResizedCrop`: the aspect ratio is uniform, and inverted half of the time; if nothing
    /// fits, the centre is cropped to the final size without resizing. `Rotate`: by whole degrees,
    /// about the pixel at half the width and height, which is half a pixel below and to the right
    /// of the centre. `Jitter`: the gray value of a pixel uses red's weight for blue and blue's for
    /// red.
    Mxnet,
}

/// What [`Step::Jitter`] changes, and how far. Each value is drawn anew for every image.
///
/// As torchvision defines them: brightness multiplies; contrast ranges from the mean gray (0) past
/// the image (1); saturation ranges from the gray image (0) past the image (1); hue is shifted by a
/// fraction of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Jitter {
    /// Factors.
    pub brightness: Option<Range>,
    /// Factors.
    pub contrast: Option<Range>,
    /// Factors.
    pub saturation: Option<Range>,
    /// Turns, from -0.5 to 0.5.
    pub hue: Option<Range>,
    /// How gray is computed.
    pub law: Law,
}

impl Step {
    /// The name of the step in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Step::Resize { .. } => "Resize",
            Step::ResizeTo { .. } => "ResizeTo",
            Step::CentreCrop(_) => "CentreCrop",
            Step::RandomCrop(_) => "RandomCrop",
            Step::RandomResizedCrop { .. } => "RandomResizedCrop",
            Step::Flip(_) => "Flip",
            Step::Jitter(_) => "Jitter",
            Step::Hls { .. } => "Hls",
            Step::PcaNoise(_) => "PcaNoise",
            Step::Rotate { .. } => "Rotate",
            Step::Pad { .. } => "Pad",
        }
    }

    /// The size of an image after this step, given the size before it if known.
    pub(super) fn size_after(&self, before: Option<Extent>) -> Option<Extent> {
        match *self {
            Step::ResizeTo { to, .. } | Step::RandomResizedCrop { to, .. } => Some(to),
            Step::CentreCrop(crop) | Step::RandomCrop(crop) => Some(crop.to),
            Step::Resize { shorter, .. } => before.and_then(|size| shorter_edge(size, shorter).ok()),
            Step::Pad { border, .. } => {
                let grown = |side: u32| side.checked_add(border.checked_mul(2)?);
                before.and_then(|(width, height)| Some((grown(width)?, grown(height)?)))
            }
            Step::Flip(_) | Step::Jitter(_) | Step::Hls { .. } | Step::PcaNoise(_) | Step::Rotate { .. } => {
                before
            }
        }
    }

    /// Checks that the values are in range.
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |what: &str, expected: &str, found: String| {
            Err(Error::invalid(format!("{} of {}", what, self.name())).expected_found(expected, found))
        };
        let ordered =
            |range: Range, least: f64| range.0 >= least && range.0 <= range.1 && range.1.is_finite();
        match *self {
            Step::Resize { shorter, .. } if shorter == 0 => wrong("side", "at least 1", shorter.to_string()),
            Step::ResizeTo { to, .. }
            | Step::CentreCrop(Crop { to, .. })
            | Step::RandomCrop(Crop { to, .. })
            | Step::RandomResizedCrop { to, .. }
                if to.0 == 0 || to.1 == 0 =>
            {
                wrong("size", "at least 1x1", format!("{}x{}", to.0, to.1))
            }
            Step::RandomResizedCrop { area, .. } if !ordered(area, f64::MIN_POSITIVE) || area.1 > 1.0 => {
                wrong("area", "above 0, ascending, at most 1", format!("{area:?}"))
            }
            Step::RandomResizedCrop { aspect, .. } if !ordered(aspect, f64::MIN_POSITIVE) => {
                wrong("aspect", "above 0, ascending", format!("{aspect:?}"))
            }
            Step::Flip(probability) if !(0.0..=1.0).contains(&probability) => {
                wrong("probability", "0 to 1", probability.to_string())
            }
            Step::PcaNoise(deviation) if !(deviation.is_finite() && deviation >= 0.0) => {
                wrong("deviation", "0 or more", deviation.to_string())
            }
            Step::Rotate { degrees, .. } if !ordered(degrees, f64::MIN) => {
                wrong("degrees", "ascending", format!("{degrees:?}"))
            }
            Step::Jitter(Jitter { brightness, contrast, saturation, hue, .. }) => {
                for (what, range) in
                    [("brightness", brightness), ("contrast", contrast), ("saturation", saturation)]
                {
                    if range.is_some_and(|range| !ordered(range, 0.0)) {
                        return wrong(what, "0 or more, ascending", format!("{range:?}"));
                    }
                }
                if hue.is_some_and(|hue| !ordered(hue, -0.5) || hue.1 > 0.5) {
                    return wrong("hue", "-0.5 to 0.5, ascending", format!("{hue:?}"));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
