//! Images as samples of a loader.

use crate::{Channels, Extent, Kind, Picture, Random, Recipe, Samples, sniff};
use anyrec::loader::{Decode, Sample};
use anyrec::{Error, Result};

/// Decodes records into training samples by a recipe, on the threads of a
/// [`Loader`](anyrec::loader::Loader).
///
/// A record is an encoded image or an MXNet image record. The random choices of the recipe depend
/// only on a seed (the plan's if none is given), the epoch and the sample's position in the epoch.
///
/// ```
/// # fn main() -> anyrec::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("images.ffr");
/// # let picture = Picture::new(4, 4, Channels::Rgb, Samples::Eight(vec![7; 48]))?;
/// # let mut writer = anyrec::create(&path)?;
/// # for _ in 0..6 {
/// #     writer.append(&encode_png(&picture, 3)?, &anyrec::Tags::none())?;
/// # }
/// # writer.finish()?;
/// # use anyrec_image::{Channels, Picture, Samples, encode_png};
/// use anyrec::loader::{Loader, LoaderOptions, Plan, PlanOptions};
/// use anyrec_image::{SampleType, Form, Images, Recipe, Step};
/// use std::sync::Arc;
///
/// let dataset = Arc::new(anyrec::open(&path)?);
/// let mut plan = PlanOptions::default();
/// plan.batch_size = 4;
/// let plan = Plan::new(dataset.len()?, &plan)?;
///
/// let mut form = Form::new((2, 2));
/// form.element = SampleType::U8;
/// let recipe = Recipe::new(vec![Step::RandomCrop((2, 2).into())], form)?;
/// let mut options = LoaderOptions::default();
/// options.decode = Some(Arc::new(Images::new(recipe, None)));
/// let mut loader = Loader::new(dataset, plan, options)?;
///
/// let batch = loader.next_batch()?.expect("a first batch");
/// assert_eq!(batch.records.len(), 4);
/// assert_eq!(batch.records.get(0), Some(&[7; 2 * 2 * 3][..]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Images {
    recipe: Recipe,
    seed: Option<u64>,
    /// The size and channels of records that are the samples of an image themselves.
    unencoded: Option<(Extent, Channels)>,
}

impl Images {
    /// Creates samples with this recipe.
    pub fn new(recipe: Recipe, seed: Option<u64>) -> Self {
        Images { recipe, seed, unencoded: None }
    }

    /// Reads records as the 8-bit samples of images of this size, instead of as encoded images.
    pub fn unencoded(mut self, size: Extent, channels: Channels) -> Self {
        self.unencoded = Some((size, channels));
        self
    }
}

impl Decode for Images {
    fn size(&self) -> usize {
        self.recipe.size()
    }

    fn accepts(&self, record: &[u8]) -> bool {
        self.unencoded.is_some() || matches!(sniff(record), Kind::Image { .. })
    }

    fn decode(&self, sample: &Sample, payload: &[u8], into: &mut [u8]) -> Result<()> {
        let key = [self.seed.unwrap_or(sample.seed), sample.epoch, sample.place];
        let mut random = Random::new(key);
        match self.unencoded {
            None => self.recipe.make(payload, &mut random, into),
            Some(((width, height), channels)) => {
                let mut samples = Vec::new();
                let size = payload.len();
                samples.try_reserve_exact(size).map_err(|_| Error::out_of_memory(size as u64))?;
                samples.extend_from_slice(payload);
                let picture = Picture::new(width, height, channels, Samples::Eight(samples))?;
                self.recipe.make_from(picture, &mut random, into)
            }
        }
    }
}
