//! Encodes and decodes again: PNG and lossless WebP exactly, JPEG closely.

use super::make::*;
use super::*;
use mozjpeg_sys::J_COLOR_SPACE::{JCS_RGB, JCS_YCCK};

const ALL_CHANNELS: [Channels; 4] = [Channels::Gray, Channels::GrayAlpha, Channels::Rgb, Channels::Rgba];

#[test]
fn png_of_every_type_and_level_is_exact() {
    for channels in ALL_CHANNELS {
        for depth in [8, 16] {
            for (width, height) in [(1, 1), (13, 7), (1, 40), (64, 3)] {
                let picture = noise(width, height, channels, depth);
                for level in 0..=9 {
                    let bytes = encode_png(&picture, level).unwrap();
                    assert_eq!(decode_as(&bytes, Color::AsStored), picture);
                }
            }
        }
    }
}

#[test]
fn higher_png_level_is_smaller() {
    let picture = smooth(200, 100, Channels::Rgb);
    let sizes = [0, 1, 9].map(|level| encode_png(&picture, level).unwrap().len());
    assert!(sizes[0] > sizes[1] && sizes[1] >= sizes[2], "{sizes:?}");
}

#[test]
fn png_with_few_bits_is_spread_over_the_whole_range() {
    // One row of four pixels with the values 0, 1, 2, 3 (or 0, 1, 0, 1 in one bit).
    let cases: [(u8, &[u8], [u8; 4]); 3] = [
        (1, &[0, 0b0101_0000], [0, 255, 0, 255]),
        (2, &[0, 0b00_01_10_11], [0, 85, 170, 255]),
        (4, &[0, 0x01, 0x23], [0, 17, 34, 51]),
    ];
    for (bits, raw, expected) in cases {
        let bytes = png((4, 1), (bits, GRAY), false, &[], raw);
        let picture = decode_as(&bytes, Color::AsStored);
        assert_eq!(picture.channels(), Channels::Gray);
        assert_eq!(eight(&picture), expected);
    }
}

#[test]
fn png_palette_becomes_rgb_and_with_transparency_rgba() {
    let palette: &[u8] = &[1, 2, 3, 40, 50, 60, 70, 80, 90];
    for (bits, raw) in [(2, &[0, 0b00_01_10_00][..]), (4, &[0, 0x01, 0x20]), (8, &[0, 0, 1, 2])] {
        let bytes = png((3, 1), (bits, PALETTE), false, &[(b"PLTE", palette)], raw);
        let picture = decode_as(&bytes, Color::AsStored);
        assert_eq!((picture.channels(), eight(&picture)), (Channels::Rgb, palette));

        let chunks: &[(&[u8; 4], &[u8])] = &[(b"PLTE", palette), (b"tRNS", &[9, 128])];
        let bytes = png((3, 1), (bits, PALETTE), false, chunks, raw);
        let picture = decode_as(&bytes, Color::AsStored);
        assert_eq!(picture.channels(), Channels::Rgba);
        assert_eq!(eight(&picture), [1, 2, 3, 9, 40, 50, 60, 128, 70, 80, 90, 255]);
        assert_eq!(eight(&decode_as(&bytes, Color::Rgb)), palette);
    }
}

#[test]
fn png_transparent_colour_becomes_opacity() {
    let bytes = png((2, 1), (8, GRAY), false, &[(b"tRNS", &[0, 7])], &[0, 7, 8]);
    let picture = decode_as(&bytes, Color::AsStored);
    assert_eq!((picture.channels(), eight(&picture)), (Channels::GrayAlpha, &[7, 0, 8, 255][..]));
}

#[test]
fn interlaced_png_is_the_same_picture() {
    for (width, height) in [(1, 1), (3, 2), (8, 8), (13, 11)] {
        for (channels, color) in [(Channels::Gray, GRAY), (Channels::Rgb, RGB)] {
            let picture = noise(width, height, channels, 8);
            let raw = interlaced_rows(&picture);
            let bytes = png((width, height), (8, color), true, &[], &raw);
            assert_eq!(decode_as(&bytes, Color::AsStored), picture, "{width}x{height}");
        }
    }
}

#[test]
fn sixteen_bits_become_eight_in_gray_and_colour() {
    let samples = Samples::Sixteen(vec![0x12FF, 0x3400, 0x5601, 0xFFFF]);
    let picture = Picture::new(1, 1, Channels::Rgba, samples).unwrap();
    let bytes = encode_png(&picture, 1).unwrap();
    assert_eq!(eight(&decode_as(&bytes, Color::Rgb)), [0x12, 0x34, 0x56]);
    let gray = decode_as(&bytes, Color::Gray);
    assert_eq!((gray.channels(), gray.depth()), (Channels::Gray, 8));
}

#[test]
fn webp_is_exact_when_lossless() {
    for channels in [Channels::Rgb, Channels::Rgba] {
        for (width, height) in [(1, 1), (17, 5), (100, 40)] {
            let picture = noise(width, height, channels, 8);
            assert_eq!(decode_as(&webp(&picture, None), Color::AsStored), picture);
        }
    }
    let gray = webp(&smooth(20, 10, Channels::Gray), None);
    assert_eq!(decode_as(&gray, Color::Gray), smooth(20, 10, Channels::Gray));
}

#[test]
fn lossy_webp_is_decoded() {
    let frame = flat_lossy_frame(20, 12);
    let picture = decode_as(&riff(&[(b"VP8 ", &frame)]), Color::AsStored);
    assert_eq!((picture.width(), picture.height(), picture.channels()), (20, 12, Channels::Rgb));
    assert!(eight(&picture).iter().all(|sample| sample.abs_diff(128) <= 8));
}

#[test]
fn jpeg_is_close_at_high_quality_in_every_sampling_and_coding() {
    for (width, height) in [(1, 1), (7, 9), (8, 8), (16, 16), (33, 17), (100, 75), (129, 250)] {
        let colour = smooth(width, height, Channels::Rgb);
        for (horizontal, vertical) in [(1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (1, 4), (4, 2), (2, 4)] {
            let plain = Coding::sampled(horizontal, vertical);
            for coding in [plain, plain.restart(3), plain.split(), plain.progressive()] {
                let bytes = jpeg(&colour, coding);
                let what = format!("{width}x{height} {coding:?}");
                let decoded = decode_as(&bytes, Color::AsStored);
                let difference = largest_difference(&decoded, &colour);
                assert!(difference <= 24, "{difference} in colour of {what}");
                let gray = decode_as(&bytes, Color::Gray);
                let difference = largest_difference(&gray, &colour.clone().into_gray());
                assert!(difference <= 3, "{difference} in gray of {what}");
            }
        }
        for coding in [Coding::PLAIN, Coding::PLAIN.progressive()] {
            let gray = smooth(width, height, Channels::Gray);
            let bytes = jpeg(&gray, coding);
            let decoded = decode_as(&bytes, Color::AsStored);
            assert_eq!(decoded.channels(), Channels::Gray);
            assert!(largest_difference(&decoded, &gray) <= 4);
            assert_eq!(decode_as(&bytes, Color::Rgb), decoded.into_rgb());
        }
    }
}

#[test]
fn jpeg_stored_as_rgb_is_rgb() {
    let colour = smooth(40, 30, Channels::Rgb);
    let bytes = jpeg(&colour, Coding::PLAIN.stored(JCS_RGB));
    assert!(largest_difference(&decode_as(&bytes, Color::AsStored), &colour) <= 4);
    assert!(largest_difference(&decode_as(&bytes, Color::Gray), &colour.into_gray()) <= 4);
}

#[test]
fn jpeg_in_four_inks_becomes_rgb() {
    // Stored inverted: 255 is no ink.
    let colour = smooth(40, 30, Channels::Rgb);
    let inks = colour.clone().into_rgba();
    for plain in [Coding::PLAIN, Coding::PLAIN.stored(JCS_YCCK)] {
        for coding in [plain, plain.progressive()] {
            let bytes = jpeg(&inks, coding);
            let decoded = decode_as(&bytes, Color::AsStored);
            assert!(largest_difference(&decoded, &colour) <= 6, "{coding:?}");
            assert!(largest_difference(&decode_as(&bytes, Color::Gray), &colour.clone().into_gray()) <= 6);
        }
    }
}

#[test]
fn encode_jpeg_drops_opacity_and_follows_quality() {
    for channels in ALL_CHANNELS {
        let picture = smooth(60, 45, channels);
        let decoded = decode_as(&encode_jpeg(&picture, 95).unwrap(), Color::AsStored);
        assert!(largest_difference(&decoded, &picture.without_alpha()) <= 8);
    }
    let picture = noise(64, 64, Channels::Rgb, 8);
    let sizes = [1, 50, 95, 100].map(|quality| encode_jpeg(&picture, quality).unwrap().len());
    assert!(sizes.is_sorted(), "{sizes:?}");
}

#[test]
fn encoders_refuse_what_they_cannot_write() {
    let picture = smooth(4, 4, Channels::Rgb);
    assert!(encode_jpeg(&picture, 0).is_err());
    assert!(encode_jpeg(&picture, 101).is_err());
    assert!(encode_png(&picture, 10).is_err());
    let error = encode_jpeg(&noise(4, 4, Channels::Rgb, 16), 90).unwrap_err();
    assert_eq!(error.to_string(), "bits per sample of a jpeg: expected 8, found 16");
    assert!(encode_jpeg(&smooth(65536, 1, Channels::Gray), 90).is_err());
}

#[test]
fn exif_turns_the_picture_only_when_asked() {
    let stored = smooth(48, 16, Channels::Rgb);
    let jpeg = with_exif(&jpeg(&stored, Coding::PLAIN), &exif(6));
    let raw: Vec<u8> = eight(&stored).chunks(48 * 3).flat_map(|row| [&[0], row].concat()).collect();
    let png = png((48, 16), (8, RGB), false, &[(b"eXIf", &exif(6))], &raw);
    let webp = webp(&stored, Some(exif(6)));
    for bytes in [jpeg, png, webp] {
        let plain = decode_as(&bytes, Color::AsStored);
        assert!(largest_difference(&plain, &stored) <= 4);
        let upright = decode(&bytes, &DecodeOptions::opencv(1).unwrap()).unwrap();
        assert_eq!(upright, plain.turned(Orientation::QuarterRight));
        assert_eq!((upright.width(), upright.height()), (16, 48));
    }
}
