//! Tests of the whole crate: round trips, golden records, hostile bytes.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod golden;
mod hostile;
#[cfg(feature = "fast-huffman")]
mod huffman;
mod make;
mod regions;
mod resizing;
mod round_trip;

use super::*;

/// Decodes with a colour and default options.
fn decode_as(bytes: &[u8], color: Color) -> Picture {
    decode(bytes, &DecodeOptions { color, ..DecodeOptions::default() }).unwrap()
}

fn eight(picture: &Picture) -> &[u8] {
    match picture.samples() {
        Samples::Eight(samples) => samples,
        Samples::Sixteen(_) => panic!("16-bit samples"),
    }
}

fn largest_difference(one: &Picture, other: &Picture) -> u8 {
    assert_eq!((one.width(), one.height()), (other.width(), other.height()));
    assert_eq!(one.channels(), other.channels());
    eight(one).iter().zip(eight(other)).map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}
