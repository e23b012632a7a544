//! Compares recipes with their steps applied one by one to whole images.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use super::*;
use crate::{self as image, Channels, Filter, Picture, Samples, encode_jpeg, encode_png};
use anyrec::ErrorKind;

/// An image with detail everywhere: waves of several lengths.
fn waves(width: u32, height: u32) -> Picture {
    let wave = |x: u32, y: u32, length: f64| {
        let at = (f64::from(x) * 0.7 + f64::from(y) * 1.1) / length;
        (127.0 + 100.0 * at.sin()) as u8
    };
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let samples = pixels.flat_map(|(x, y)| [wave(x, y, 9.0), wave(y, x, 23.0), wave(x, x ^ y, 50.0)]);
    Picture::new(width, height, Channels::Rgb, Samples::Eight(samples.collect())).unwrap()
}

fn bytes_form(size: Extent) -> Form {
    let mut form = Form::new(size);
    (form.layout, form.element) = (Layout::Pixels, SampleType::U8);
    form
}

/// The output of a recipe, as height x width x 3 bytes.
fn make(encoded: &[u8], steps: Vec<Step>, size: Extent, seed: u64) -> Vec<u8> {
    let recipe = Recipe::new(steps, bytes_form(size)).unwrap();
    let mut sample = vec![0; recipe.size()];
    recipe.make(encoded, &mut Random::new([seed, 0, 0]), &mut sample).unwrap();
    sample
}

fn bytes(picture: Picture) -> Vec<u8> {
    let Samples::Eight(samples) = picture.into_samples() else { panic!("8 bits") };
    samples
}

fn decoded(encoded: &[u8]) -> Picture {
    let options = DecodeOptions { color: Color::Rgb, ..DecodeOptions::default() };
    image::decode(encoded, &options).unwrap()
}

fn farthest(one: &[u8], other: &[u8]) -> u8 {
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(|(one, other)| one.abs_diff(*other)).max().unwrap_or(0)
}

#[test]
fn random_crops_of_a_jpeg_are_parts_of_the_whole_picture() {
    let jpeg = encode_jpeg(&waves(157, 93), 90).unwrap();
    let whole = decoded(&jpeg);
    for seed in 0..60 {
        let to = (1 + seed as u32 * 7 % 150, 1 + seed as u32 * 5 % 90);
        let mut random = Random::new([seed, 0, 0]);
        let (left, top) = (random.up_to(157 - to.0), random.up_to(93 - to.1));
        let expected = bytes(image::crop(&whole, left, top, to.0, to.1).unwrap());
        assert_eq!(make(&jpeg, vec![Step::RandomCrop(to.into())], to, seed), expected, "{to:?}");
    }
}

#[test]
fn a_random_resized_crop_is_a_crop_that_is_resized() {
    let jpeg = encode_jpeg(&waves(157, 93), 90).unwrap();
    let whole = decoded(&jpeg);
    let (area, aspect, to) = ((0.2, 1.0), (0.7, 1.5), (61, 53));
    for seed in 0..60 {
        let mut random = Random::new([seed, 0, 0]);
        let (left, top, part) = draw_part((157, 93), area, aspect, Law::Torchvision, &mut random).unwrap();
        let cut = image::crop(&whole, left, top, part.0, part.1).unwrap();
        let expected = bytes(image::resize(&cut, to.0, to.1, Filter::SmoothBilinear).unwrap());
        let step = Step::RandomResizedCrop {
            to,
            area,
            aspect,
            law: Law::Torchvision,
            filter: Filter::SmoothBilinear,
        };
        assert!(farthest(&make(&jpeg, vec![step], to, seed), &expected) <= 1);
    }
}

#[test]
fn a_crop_of_a_resized_picture_sees_the_pixels_around_it() {
    let jpeg = encode_jpeg(&waves(157, 93), 90).unwrap();
    let filters = [
        Filter::Nearest,
        Filter::Bilinear,
        Filter::Cubic,
        Filter::Area,
        Filter::Lanczos,
        Filter::Automatic,
        Filter::SmoothBilinear,
        Filter::SmoothCubic,
        Filter::SmoothLanczos,
    ];
    for (filter, shorter) in filters.into_iter().flat_map(|filter| [(filter, 70), (filter, 120)]) {
        let resized = image::resize_shorter_edge(&decoded(&jpeg), shorter, filter).unwrap();
        let expected = bytes(image::centre_crop(&resized, 50, 40).unwrap());
        let steps = vec![Step::Resize { shorter, filter }, Step::CentreCrop((50, 40).into())];
        assert!(farthest(&make(&jpeg, steps, (50, 40), 0), &expected) <= 1, "{filter:?} {shorter}");
    }
}

#[test]
fn crops_of_mirrored_pictures_are_mirrored_crops() {
    let png = encode_png(&waves(50, 20), 1).unwrap();
    let crop = Step::RandomCrop((10, 8).into());
    for seed in 0..20 {
        let mut random = Random::new([seed, 0, 0]);
        // Mirroring draws first.
        random.happens(1.0);
        let (left, top) = (random.up_to(40), random.up_to(12));
        let part = image::crop(&waves(50, 20), 50 - left - 10, top, 10, 8).unwrap();
        let rows = bytes(part);
        let mirrored: Vec<u8> =
            rows.chunks(30).flat_map(|row| row.chunks(3).rev().flatten().copied()).collect();
        assert_eq!(make(&png, vec![Step::Flip(1.0), crop.clone()], (10, 8), seed), mirrored);
    }
}

#[test]
fn small_scales_of_a_jpeg_are_near_the_whole_resized() {
    let jpeg = encode_jpeg(&waves(1200, 900), 90).unwrap();
    for to in [(300, 225), (150, 113), (80, 60), (12, 9)] {
        let expected = bytes(image::resize(&decoded(&jpeg), to.0, to.1, Filter::SmoothBilinear).unwrap());
        let result = make(&jpeg, vec![Step::ResizeTo { to, filter: Filter::SmoothBilinear }], to, 0);
        let sum: u32 = result.iter().zip(&expected).map(|(one, other)| u32::from(one.abs_diff(*other))).sum();
        assert!(f64::from(sum) / (result.len() as f64) < 1.5, "{to:?}: {sum}");
    }
}

#[test]
fn pictures_of_extreme_shapes_take_no_extreme_memory() {
    for size in [(20_000, 1), (1, 20_000), (1, 1)] {
        let picture = Picture::new(
            size.0,
            size.1,
            Channels::Rgb,
            Samples::Eight(vec![90; (size.0 * size.1 * 3) as usize]),
        );
        let picture = picture.unwrap();
        for encoded in [encode_jpeg(&picture, 90).unwrap(), encode_png(&picture, 1).unwrap()] {
            let steps = vec![
                Step::Resize { shorter: 256, filter: Filter::SmoothBilinear },
                Step::CentreCrop((224, 224).into()),
            ];
            assert!(make(&encoded, steps, (224, 224), 0).iter().all(|value| value.abs_diff(90) <= 2));
        }
    }
    let long =
        encode_png(&Picture::new(20_000, 1, Channels::Gray, Samples::Eight(vec![0; 20_000])).unwrap(), 1);
    let steps = vec![
        Step::Resize { shorter: 200_000, filter: Filter::SmoothBilinear },
        Step::PcaNoise(0.1),
        Step::CentreCrop((9, 9).into()),
    ];
    let recipe = Recipe::new(steps, bytes_form((9, 9))).unwrap();
    let mut sample = vec![0; recipe.size()];
    let error = recipe.make(&long.unwrap(), &mut Random::new([0; 3]), &mut sample).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

#[test]
fn mxnets_law_falls_back_to_the_middle() {
    // No part with this aspect ratio fits into the image.
    let drawn = draw_part((10, 100), (1.0, 1.0), (1.0, 1.0), Law::Mxnet, &mut Random::new([1; 3]));
    assert_eq!(drawn, None);
    let drawn = draw_part((10, 100), (1.0, 1.0), (1.0, 1.0), Law::Torchvision, &mut Random::new([1; 3]));
    assert_eq!(drawn, Some((0, 45, (10, 10))));
}

#[test]
fn a_quarter_turn_moves_every_pixel_of_a_square() {
    let picture = waves(21, 21);
    let png = encode_png(&picture, 1).unwrap();
    let steps = vec![
        Step::Rotate { degrees: (90.0, 90.0), fill: 0, law: Law::Torchvision },
        Step::CentreCrop((21, 21).into()),
    ];
    let turned = bytes(picture.turned(image::Orientation::QuarterLeft));
    assert_eq!(make(&png, steps, (21, 21), 0), turned);
}

#[test]
fn hue_of_a_whole_turn_changes_nothing() {
    let png = encode_png(&waves(30, 30), 1).unwrap();
    let plain = make(&png, vec![Step::CentreCrop((30, 30).into())], (30, 30), 0);
    let turned = |turns: f64| {
        let jitter = Jitter { hue: Some((turns, turns)), ..Jitter::default() };
        make(&png, vec![Step::CentreCrop((30, 30).into()), Step::Jitter(jitter)], (30, 30), 0)
    };
    assert!(farthest(&turned(0.0), &plain) <= 1);
    let half = turned(0.5);
    assert!(farthest(&half, &plain) > 50);
}
