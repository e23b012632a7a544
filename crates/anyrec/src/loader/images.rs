//! Pictures as samples.

use super::load::{Decode, Sample};
use crate::base::{Result, Tags};
use crate::format::mxnet;
use crate::image::{self, Kind, Random, Recipe};

/// Makes samples of encoded pictures by a recipe.
///
/// Records are pictures themselves, or MXNet's image records. What is random in the recipe depends
/// on a seed (the plan's if it is not given), the epoch and the sample's place in it alone.
pub struct Images {
    recipe: Recipe,
    seed: Option<u64>,
}

impl Images {
    /// Samples by this recipe.
    pub fn new(recipe: Recipe, seed: Option<u64>) -> Self {
        Images { recipe, seed }
    }
}

impl Decode for Images {
    fn size(&self) -> usize {
        self.recipe.size()
    }

    /// One odd record in a file is enough that none is taken for an image record for sure; each
    /// alone still may be one.
    fn tags(&self, record: &[u8], stored: Tags) -> Tags {
        if stored.header_length > 0 || matches!(image::sniff(record), Kind::Image { .. }) {
            return stored;
        }
        let guessed = mxnet::guess_tags(record);
        Tags { key: stored.key, label: stored.label.or(guessed.label), ..guessed }
    }

    fn decode(&self, sample: &Sample, payload: &[u8], into: &mut [u8]) -> Result<()> {
        let key = [self.seed.unwrap_or(sample.seed), sample.epoch, sample.place];
        self.recipe.make(payload, &mut Random::new(key), into)
    }
}
