//! Resizing and cropping.

use super::make::*;
use super::*;

const FILTERS: [Filter; 8] = [
    Filter::Nearest,
    Filter::Bilinear,
    Filter::Cubic,
    Filter::Area,
    Filter::Lanczos,
    Filter::SmoothBilinear,
    Filter::SmoothCubic,
    Filter::SmoothLanczos,
];
const ALL_CHANNELS: [Channels; 4] = [Channels::Gray, Channels::GrayAlpha, Channels::Rgb, Channels::Rgba];

#[test]
fn flat_picture_stays_flat_with_every_filter_depth_and_channels() {
    for filter in FILTERS {
        for channels in ALL_CHANNELS {
            for (width, height) in [(1, 1), (5, 31), (40, 3), (90, 70)] {
                let count = 40 * 30 * channels.count();
                let new_count = (width * height) as usize * channels.count();
                let picture = Picture::new(40, 30, channels, Samples::Eight(vec![200; count]));
                let resized = resize(&picture.unwrap(), width, height, filter).unwrap();
                assert_eq!(resized.samples(), &Samples::Eight(vec![200; new_count]), "{filter:?}");

                let picture = Picture::new(40, 30, channels, Samples::Sixteen(vec![51234; count]));
                let resized = resize(&picture.unwrap(), width, height, filter).unwrap();
                let Samples::Sixteen(samples) = resized.samples() else { panic!() };
                assert_eq!(samples.len(), new_count);
                assert!(samples.iter().all(|s| s.abs_diff(51234) <= 1), "{filter:?}");
            }
        }
    }
}

#[test]
fn sixteen_bits_resize_like_eight() {
    for filter in FILTERS {
        for channels in ALL_CHANNELS {
            let eight_bit = smooth(60, 40, channels);
            let wide = eight(&eight_bit).iter().map(|s| u16::from(*s) * 257).collect();
            let wide = Picture::new(60, 40, channels, Samples::Sixteen(wide)).unwrap();
            let expected = resize(&eight_bit, 25, 31, filter).unwrap();
            let found = resize(&wide, 25, 31, filter).unwrap().into_8bit();
            // One for the truncated lower byte, one for intermediate rounding.
            assert!(largest_difference(&found, &expected) <= 2, "{filter:?} {channels:?}");
        }
    }
}

#[test]
fn nearest_takes_the_pixel_at_or_before_the_place() {
    let row = Picture::new(5, 1, Channels::Gray, Samples::Eight(vec![0, 1, 2, 3, 4])).unwrap();
    assert_eq!(eight(&resize(&row, 2, 1, Filter::Nearest).unwrap()), [0, 2]);
    assert_eq!(eight(&resize(&row, 8, 1, Filter::Nearest).unwrap()), [0, 0, 1, 1, 2, 3, 3, 4]);
}

#[test]
fn fixed_filters_ignore_what_lies_between_and_smooth_ones_do_not() {
    // Stripes of one pixel: the mean is 127.5, but single pixels are black or white.
    let stripes = (0..64 * 8).map(|at| if at % 2 == 0 { 0 } else { 255 }).collect();
    let stripes = Picture::new(64, 8, Channels::Gray, Samples::Eight(stripes)).unwrap();
    let smooth = resize(&stripes, 7, 1, Filter::SmoothBilinear).unwrap();
    assert!(eight(&smooth).iter().all(|s| s.abs_diff(127) <= 8), "{:?}", eight(&smooth));
    let fixed = resize(&stripes, 7, 1, Filter::Bilinear).unwrap();
    assert!(eight(&fixed).iter().any(|s| s.abs_diff(127) > 30), "{:?}", eight(&fixed));
}

#[test]
fn bilinear_enlargement_is_aligned_at_pixel_centres() {
    let row = Picture::new(2, 1, Channels::Gray, Samples::Eight(vec![0, 100])).unwrap();
    assert_eq!(eight(&resize(&row, 4, 1, Filter::Bilinear).unwrap()), [0, 25, 75, 100]);
}

#[test]
fn shorter_edge_rounds_the_longer_one_down() {
    let wide = smooth(50, 37, Channels::Gray);
    let small = resize_shorter_edge(&wide, 25, Filter::Bilinear).unwrap();
    assert_eq!((small.width(), small.height()), (33, 25));
    let tall = smooth(37, 50, Channels::Gray);
    let small = resize_shorter_edge(&tall, 25, Filter::Bilinear).unwrap();
    assert_eq!((small.width(), small.height()), (25, 33));
}

#[test]
fn extreme_proportions_do_not_take_all_memory() {
    let line = smooth(60000, 1, Channels::Gray);
    let error = resize_shorter_edge(&line, 256, Filter::Bilinear).unwrap_err();
    assert_eq!(error.kind(), anyrec::ErrorKind::Limit);
    assert!(resize_shorter_edge(&line, u32::MAX, Filter::Nearest).is_err());
    assert!(resize(&line, 0, 1, Filter::Nearest).is_err());
}

#[test]
fn crop_is_that_part() {
    let picture = noise(10, 8, Channels::Rgb, 8);
    let part = crop(&picture, 3, 2, 4, 5).unwrap();
    for y in 0..5 {
        let whole = ((y + 2) * 10 + 3) * 3;
        assert_eq!(eight(&part)[y * 12..][..12], eight(&picture)[whole..][..12]);
    }
    assert_eq!(crop(&picture, 0, 0, 10, 8).unwrap(), picture);
    assert_eq!(centre_crop(&picture, 4, 5).unwrap(), crop(&picture, 3, 1, 4, 5).unwrap());
    for (left, top, width, height) in [(0, 0, 11, 8), (7, 0, 4, 1), (0, 0, 0, 1), (u32::MAX, 0, 2, 2)] {
        assert!(crop(&picture, left, top, width, height).is_err());
    }
}

#[test]
fn filters_have_opencvs_numbers() {
    for (number, filter) in FILTERS.iter().take(5).enumerate() {
        assert_eq!(Filter::from_inter_method(number as i32).unwrap(), *filter);
    }
    assert!(Filter::from_inter_method(5).is_err());
    assert_eq!(Filter::Automatic.resolved((10, 10), (20, 20)), Filter::Cubic);
    assert_eq!(Filter::Automatic.resolved((10, 10), (5, 5)), Filter::Area);
    assert_eq!(Filter::Automatic.resolved((10, 10), (5, 20)), Filter::Bilinear);
}
