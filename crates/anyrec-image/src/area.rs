//! Downscaling by area: each new sample is the mean of the old samples it covers, where samples at
//! its edges are weighted by the covered fraction. This is OpenCV's `INTER_AREA`. The box filters
//! of resizing libraries count a pixel either fully or not at all, which is visible at ratios that
//! are not integers.

use super::picture::Sample;

/// The old samples that one new sample covers along one axis.
struct Cover {
    first: usize,
    weights: Vec<f32>,
}

/// Divides an axis of `from` samples into `to` equal ranges. `to` is at most `from`.
#[allow(clippy::cast_possible_truncation)] // weights: single precision is enough
fn covers(from: u32, to: u32) -> Vec<Cover> {
    let (from, to) = (u64::from(from), u64::from(to));
    // In units of 1/to of an old sample, so that all boundaries are integers.
    (0..to)
        .map(|new| {
            let (begin, end) = (new * from, (new + 1) * from);
            let (first, last) = (begin / to, (end - 1) / to);
            let weights = (first..=last)
                .map(|old| {
                    let covered = end.min((old + 1) * to) - begin.max(old * to);
                    (covered as f64 / from as f64) as f32
                })
                .collect();
            Cover { first: first as usize, weights }
        })
        .collect()
}

/// Downscales the samples of an image (at most four channels) to the `new` width and height, each
/// at most the `old` one.
pub(super) fn shrink<S: Sample>(samples: &[S], channels: usize, old: (u32, u32), new: (u32, u32)) -> Vec<S> {
    let columns = covers(old.0, new.0);
    let row_length = old.0 as usize * channels;
    let mut shrunk = Vec::with_capacity(new.0 as usize * new.1 as usize * channels);
    let mut sums = vec![0f32; row_length];
    for rows in covers(old.1, new.1) {
        sums.fill(0.0);
        let stretch = samples.chunks_exact(row_length).skip(rows.first);
        for (row, weight) in stretch.zip(&rows.weights) {
            for (sum, sample) in sums.iter_mut().zip(row) {
                let value: f32 = (*sample).into();
                *sum += value * weight;
            }
        }
        for column in &columns {
            let mut means = [0f32; 4];
            let pixels = sums.chunks_exact(channels).skip(column.first);
            for (pixel, weight) in pixels.zip(&column.weights) {
                for (mean, sum) in means.iter_mut().zip(pixel) {
                    *mean += sum * weight;
                }
            }
            shrunk.extend(means.into_iter().take(channels).map(round::<S>));
        }
    }
    shrunk
}

/// Rounds to the nearest sample value. Means of samples are never negative or too large.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates on floats
fn round<S: Sample>(value: f32) -> S {
    S::saturating((value + 0.5) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_ratio_is_the_mean_of_each_square() {
        let samples = [1u8, 3, 10, 20, 5, 7, 30, 40];
        assert_eq!(shrink(&samples, 1, (4, 2), (2, 1)), [4, 25]);
    }

    #[test]
    fn broken_ratio_counts_the_covered_part() {
        // 3 to 2: the middle sample contributes half to each side.
        assert_eq!(shrink(&[0u16, 300, 600], 1, (3, 1), (2, 1)), [100, 500]);
        assert_eq!(shrink(&[0u8, 9, 30, 39, 60, 69], 2, (3, 1), (2, 1)), [10, 19, 50, 59]);
    }

    #[test]
    fn flat_picture_stays_flat() {
        for value in [0u8, 1, 127, 254, 255] {
            let shrunk = shrink(&vec![value; 97 * 31 * 3], 3, (97, 31), (13, 30));
            assert!(shrunk.iter().all(|sample| *sample == value));
            assert_eq!(shrunk.len(), 13 * 30 * 3);
        }
    }
}
