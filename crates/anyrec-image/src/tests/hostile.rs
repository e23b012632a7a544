//! Bytes made to break a decoder: truncated, with flipped bits, and with false sizes.

use super::make::*;
use super::*;
use anyrec::ErrorKind;
use mozjpeg_sys::J_COLOR_SPACE::JCS_YCCK;
use proptest::prelude::*;

/// Small images of every format and coding.
fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let colour = smooth(23, 18, Channels::Rgb);
    let gray = noise(9, 17, Channels::Gray, 8);
    let inks = noise(9, 10, Channels::Rgba, 8);
    let interlaced = interlaced_rows(&colour);
    let palette: &[(&[u8; 4], &[u8])] = &[(b"PLTE", &[1, 2, 3, 4, 5, 6]), (b"tRNS", &[3])];
    vec![
        ("baseline", jpeg(&colour, Coding::sampled(2, 2))),
        ("restarts", jpeg(&colour, Coding::PLAIN.restart(2))),
        ("progressive", jpeg(&colour, Coding::sampled(2, 2).progressive())),
        ("split jpeg", jpeg(&colour, Coding::sampled(2, 1).split())),
        ("gray jpeg", jpeg(&gray, Coding::PLAIN)),
        ("gray progressive", jpeg(&gray, Coding::PLAIN.progressive())),
        ("inks", jpeg(&inks, Coding::PLAIN.stored(JCS_YCCK))),
        ("progressive inks", jpeg(&inks, Coding::PLAIN.progressive())),
        ("png", encode_png(&colour, 9).unwrap()),
        ("deep png", encode_png(&noise(5, 4, Channels::Rgba, 16), 3).unwrap()),
        ("interlaced png", png((23, 18), (8, RGB), true, &[], &interlaced)),
        ("palette png", png((8, 2), (1, PALETTE), false, palette, &[0, 0xA5, 0, 0x5A])),
        ("webp", webp(&colour, None)),
        ("webp with exif", webp(&smooth(9, 5, Channels::Rgba), Some(exif(3)))),
        ("lossy webp", riff(&[(b"VP8 ", &flat_lossy_frame(20, 12))])),
    ]
}

fn all_options() -> Vec<DecodeOptions> {
    let mut all: Vec<_> = [-1, 0, 1].map(|flag| DecodeOptions::opencv(flag).unwrap()).into();
    all.push(DecodeOptions { lenient_jpeg: true, ..DecodeOptions::default() });
    all
}

#[test]
fn image_cut_at_any_length_is_an_error() {
    for (name, bytes) in samples() {
        assert!(decode(&bytes, &DecodeOptions::default()).is_ok(), "{name}");
        for length in 0..bytes.len() {
            for color in [Color::AsStored, Color::Gray] {
                let options = DecodeOptions { color, ..DecodeOptions::default() };
                let error = decode(&bytes[..length], &options)
                    .expect_err(&format!("{name} cut to {length} of {} bytes", bytes.len()));
                assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported));
            }
        }
    }
}

#[test]
fn image_with_any_bit_flipped_never_panics() {
    for (_, bytes) in samples() {
        let mut flipped = bytes;
        for bit in 0..flipped.len() * 8 {
            flipped[bit / 8] ^= 1 << (bit % 8);
            for options in all_options() {
                if let Err(error) = decode(&flipped, &options) {
                    assert!(!error.to_string().contains(char::is_control));
                }
            }
            flipped[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn flipped_bit_in_png_data_is_an_error() {
    let bytes = encode_png(&noise(8, 8, Channels::Rgb, 8), 3).unwrap();
    let data = memchr::memmem::find(&bytes, b"IDAT").unwrap();
    for bit in data * 8..(bytes.len() - 12) * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&flipped, &DecodeOptions::default()).is_err(), "bit {bit}");
    }
}

#[test]
fn lenient_jpeg_gives_what_is_there() {
    let whole = smooth(64, 64, Channels::Rgb);
    let bytes = jpeg(&whole, Coding::PLAIN);
    let options = DecodeOptions { lenient_jpeg: true, ..DecodeOptions::default() };
    let picture = decode(&bytes[..bytes.len() - 40], &options).unwrap();
    assert_eq!((picture.width(), picture.height()), (64, 64));
    let above = |picture: &Picture| crop(picture, 0, 0, 64, 32).unwrap();
    assert!(largest_difference(&above(&picture), &above(&whole)) <= 8);
}

/// The same JPEG with its last scan repeated.
fn with_last_scan(bytes: &[u8], times: usize) -> Vec<u8> {
    let end = bytes.len() - 2;
    let scan = bytes.windows(2).rposition(|pair| pair == b"\xFF\xDA").unwrap();
    [&bytes[..scan], &bytes[scan..end].repeat(times), &bytes[end..]].concat()
}

#[test]
fn scans_out_of_proportion_are_refused_before_any_is_decoded() {
    let small = jpeg(&smooth(16, 16, Channels::Gray), Coding::PLAIN.progressive());
    let blank = Picture::new(2048, 1024, Channels::Gray, Samples::Eight(vec![9; 2 << 20])).unwrap();
    let blank = jpeg(&blank, Coding::PLAIN.progressive());
    for bytes in [with_last_scan(&small, 600), with_last_scan(&blank, 100)] {
        for options in all_options() {
            let error = decode(&bytes, &options).unwrap_err().to_string();
            assert_eq!(error, "damaged jpeg: more scans than an image of this size can have");
        }
    }
    for color in [Color::AsStored, Color::Gray] {
        decode_as(&blank, color);
    }
}

#[test]
fn component_without_a_scan_is_an_error() {
    let bytes = jpeg(&smooth(16, 16, Channels::Rgb), Coding::sampled(2, 1).split());
    let bytes = with_last_scan(&bytes, 0);
    let error = decode(&bytes, &DecodeOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "damaged jpeg: a component has no scan");
    let options = DecodeOptions { lenient_jpeg: true, ..DecodeOptions::default() };
    assert!(decode(&bytes, &options).is_ok());
}

#[test]
fn jpeg_codings_that_are_not_decoded_are_unsupported() {
    let bytes = jpeg(&smooth(16, 16, Channels::Rgb), Coding::PLAIN);
    let frame = bytes.windows(2).position(|pair| pair == b"\xFF\xC0").unwrap();
    // Lossless, arithmetic, twelve bits.
    for (at, byte) in [(1, 0xC3), (1, 0xC9), (4, 12)] {
        let mut other = bytes.clone();
        other[frame + at] = byte;
        let error = decode(&other, &DecodeOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
}

#[test]
fn odd_but_harmless_jpeg_is_decoded() {
    let bytes = jpeg(&smooth(16, 16, Channels::Rgb), Coding::PLAIN);
    let expected = decode_as(&bytes, Color::AsStored);
    let mut version = bytes.clone();
    let jfif = bytes.windows(5).position(|five| five == b"JFIF\0").unwrap();
    version[jfif + 5] = 7;
    let table = bytes.windows(2).position(|pair| pair == b"\xFF\xDB").unwrap();
    let stray = [&bytes[..table], b"stray", &bytes[table..]].concat();
    let trailing = [&bytes[..], b"trailing"].concat();
    for odd in [version, stray, trailing] {
        assert_eq!(decode_as(&odd, Color::AsStored), expected);
    }
}

/// libjpeg prints its messages by default.
#[test]
fn nothing_is_printed() {
    let this = std::env::current_exe().unwrap();
    let tests = ["tests::hostile::lenient_jpeg", "tests::hostile::image_cut", "--nocapture"];
    let ran = std::process::Command::new(this).args(tests).output().unwrap();
    assert!(ran.status.success());
    assert!(String::from_utf8_lossy(&ran.stdout).contains("2 passed"));
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
}

/// The same JPEG with another size in its frame header.
fn with_jpeg_size(bytes: &[u8], width: u16, height: u16) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    let header = bytes.windows(4).position(|w| matches!(w, [0xFF, 0xC0 | 0xC2, 0, 11 | 17])).unwrap();
    changed[header + 5..header + 7].copy_from_slice(&height.to_be_bytes());
    changed[header + 7..header + 9].copy_from_slice(&width.to_be_bytes());
    changed
}

#[test]
fn huge_declared_size_is_refused_before_anything_is_allocated() {
    for coding in [Coding::sampled(2, 2), Coding::sampled(2, 2).progressive()] {
        let bytes = jpeg(&smooth(16, 16, Channels::Rgb), coding);
        let error = decode(&with_jpeg_size(&bytes, 65535, 65535), &DecodeOptions::default());
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Unsupported);
        let error = decode(&with_jpeg_size(&bytes, 65500, 65500), &DecodeOptions::default());
        assert_eq!(
            error.unwrap_err().to_string(),
            "jpeg of 65500x65500 pixels is over the limit of 268435456 pixels",
        );
        for options in all_options() {
            let error = decode(&with_jpeg_size(&bytes, 16000, 16000), &options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            let expected = "damaged jpeg: too few bytes for 16000x16000 pixels: expected at least";
            assert!(error.to_string().starts_with(expected), "{error}");
        }
        assert!(decode(&with_jpeg_size(&bytes, 0, 16), &DecodeOptions::default()).is_err());
    }

    let mut bytes = png((1 << 31, 1 << 31), (8, RGB), false, &[], &[0; 100]);
    let error = decode(&bytes, &DecodeOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    bytes = png((16000, 16000), (8, RGB), false, &[], &[0; 100]);
    let error = decode(&bytes, &DecodeOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().starts_with("damaged png: too few bytes"), "{error}");

    let error = decode(&riff(&[(b"VP8 ", &flat_lossy_frame(16383, 16383))]), &small_limits());
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Limit);
    let canvas = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let chunks: &[(&[u8; 4], &[u8])] = &[(b"VP8X", &canvas), (b"VP8 ", &flat_lossy_frame(16383, 16383))];
    let error = decode(&riff(chunks), &small_limits()).unwrap_err();
    assert!(error.to_string().ends_with("expected 1x1, found 16383x16383"), "{error}");
}

fn small_limits() -> DecodeOptions {
    let mut options = DecodeOptions::default();
    options.limits.pixels = 1 << 20;
    options
}

#[test]
fn limits_of_the_caller_are_kept() {
    let mut options = DecodeOptions::default();
    options.limits.pixels = 100;
    let image = encode_png(&smooth(11, 10, Channels::Gray), 3).unwrap();
    assert_eq!(decode(&image, &options).unwrap_err().kind(), ErrorKind::Limit);
    options.limits.pixels = 110;
    assert!(decode(&image, &options).is_ok());
    options.limits.bytes = 109;
    assert_eq!(decode(&image, &options).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn animated_webp_and_other_images_are_unsupported() {
    let canvas = [2, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut frame = vec![0; 16];
    frame.extend(&webp(&smooth(1, 1, Channels::Rgb), None)[12..]);
    let animated: &[(&[u8; 4], &[u8])] = &[(b"VP8X", &canvas), (b"ANIM", &[0; 6]), (b"ANMF", &frame)];
    for bytes in [riff(animated), b"GIF89a\x02\0\x03\0".to_vec()] {
        let error = decode(&bytes, &DecodeOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn image_with_a_stretch_of_garbage_never_panics(
        which in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        garbage in prop::collection::vec(any::<u8>(), 1..40),
        remove in 0usize..40,
    ) {
        let all = samples();
        let (_, bytes) = which.get(&all);
        let begin = place.index(bytes.len());
        let end = bytes.len().min(begin + remove);
        let broken = [&bytes[..begin], &garbage, &bytes[end..]].concat();
        for options in all_options() {
            let _ = decode(&broken, &options);
        }
    }
}
