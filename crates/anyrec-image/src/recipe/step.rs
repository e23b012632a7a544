//! The steps of a recipe, as plain data.

use crate::resize::{Filter, shorter_edge};
use anyrec::{Error, Result};

/// Width and height in pixels.
pub type Extent = (u32, u32);

/// Two numbers between which one is drawn.
pub type Range = (f64, f64);

/// One step on the way from a decoded picture to a sample.
///
/// Colour steps work on red, green and blue of 8 bits, rounded after each, and leave opacity alone.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Resizes so that the shorter side has this length; proportions are kept, the longer side is
    /// rounded down.
    Resize {
        /// Length of the shorter side.
        shorter: u32,
        /// How.
        filter: Filter,
    },
    /// Resizes to exactly this size.
    ResizeTo {
        /// Width and height.
        to: Extent,
        /// How.
        filter: Filter,
    },
    /// The middle; odd margins are smaller on the left and top.
    CentreCrop(Crop),
    /// A part, anywhere.
    RandomCrop(Crop),
    /// A part of random area and proportions, anywhere, resized to one size.
    RandomResizedCrop {
        /// Width and height afterwards.
        to: Extent,
        /// The part's share of the picture's area.
        area: Range,
        /// Its width over its height.
        aspect: Range,
        /// How it is drawn.
        law: Law,
        /// How it is resized.
        filter: Filter,
    },
    /// Mirrored left to right with this probability.
    Flip(f64),
    /// Brightness, contrast, saturation and hue are changed, those that are given, in random order.
    Jitter(Jitter),
    /// Hue, lightness and saturation moved by whole numbers of up to these, in OpenCV's units (a
    /// turn of the hue is 180, the others go to 255): MXNet's `random_h`, `random_l`, `random_s`.
    Hls {
        /// Most that the hue is moved, to either side.
        hue: u32,
        /// Most that the lightness is moved.
        lightness: u32,
        /// Most that the saturation is moved.
        saturation: u32,
    },
    /// Noise along the main axes of natural images' colours, with this standard deviation
    /// (AlexNet's; 0.1 is usual).
    PcaNoise(f64),
    /// Turned about its centre by so many degrees counterclockwise, between pixels bilinearly; what
    /// comes from outside has the value `fill`.
    Rotate {
        /// Degrees.
        degrees: Range,
        /// Value of all channels outside.
        fill: u8,
        /// By how many of them, and about which centre.
        law: Law,
    },
    /// A border of this many pixels on every side.
    Pad {
        /// Pixels.
        border: u32,
        /// Value of all channels.
        fill: u8,
    },
}

/// The size of a crop, and what happens to pictures that are smaller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crop {
    /// Width and height.
    pub to: Extent,
    /// How smaller pictures are enlarged first, as MXNet does it; without, they are an error.
    pub enlarge: Option<Filter>,
}

impl From<Extent> for Crop {
    fn from(to: Extent) -> Self {
        Crop { to, enlarge: None }
    }
}

/// Whose definition of a step is meant, where they differ.
///
/// [`Step::RandomResizedCrop`] tries ten times to find a part that fits, by either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Law {
    /// `RandomResizedCrop`: the logarithms of proportions are equally likely; if nothing fits, the
    /// largest part in the middle whose proportions are allowed. `Rotate`: by any part of a degree.
    #[default]
    Torchvision,
    /// `RandomResizedCrop`: proportions are equally likely, and turned over half of the time; if
    /// nothing fits, the middle, of the final size, not resized. `Rotate`: by whole degrees, about the
    /// pixel of half the width and height, which lies half a pixel below and right of the centre.
    /// `Jitter`: a pixel's gray has red's weight for blue and blue's for red.
    Mxnet,
}

/// What [`Step::Jitter`] changes, and how far: each is drawn anew for every picture.
///
/// As torchvision defines them: brightness multiplies; contrast goes from the mean gray (0) past the
/// picture (1); saturation from the gray picture (0) past the picture (1); hue is moved by a share of
/// a turn.
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
    /// What gray is.
    pub law: Law,
}

impl Step {
    /// Its name, as messages have it.
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

    /// The size that pictures have after this step, given that of those before where it is known.
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

    /// Whether its numbers make sense.
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
