//! Pictures in records: what a payload looks like, decoding, encoding, resizing.
//!
//! - [`sniff`] names a payload from its first bytes, without decoding anything.
//! - [`decode`] turns JPEG, PNG and WebP bytes into a [`Picture`]; declared sizes are held against
//!   limits before anything is allocated, and bytes that are cut short are an error.
//! - [`encode_jpeg`] and [`encode_png`] go the other way.
//! - A [`Recipe`] makes samples for training of encoded pictures, decoding no more of them than
//!   that takes.
//! - [`resize`], [`resize_shorter_edge`], [`crop`] and [`centre_crop`] change a picture's size.
//!
//! Where MXNet's tools lean on OpenCV (`pack_img`, `unpack_img`, `im2rec`), the choices here are
//! OpenCV's: see [`DecodeOptions::opencv`], [`Filter::from_inter_method`] and
//! [`Picture::bgr_samples`].
//!
//! ```
//! use anyrec::image::{self, DecodeOptions, Filter, Picture, Samples};
//!
//! let picture = Picture::new(4, 2, image::Channels::Gray, Samples::Eight(vec![7; 8]))?;
//! let bytes = image::encode_png(&picture, 3)?;
//! assert_eq!(image::sniff(&bytes).to_string(), "png 4x2");
//!
//! let again = image::decode(&bytes, &DecodeOptions::default())?;
//! assert_eq!(again, picture);
//! let small = image::resize(&again, 2, 1, Filter::Area)?;
//! assert_eq!(small.samples(), &Samples::Eight(vec![7; 2]));
//! # Ok::<(), anyrec::Error>(())
//! ```
//!
//! This module does not read GIF, BMP or animated WebP (they are recognised, not decoded), and
//! does not apply colour profiles.

mod area;
mod decode;
mod encode;
mod jpeg;
mod orientation;
mod picture;
mod recipe;
mod resize;
mod sniff;

pub use decode::{Color, DecodeLimits, DecodeOptions, decode};
pub use encode::{encode_jpeg, encode_png};
#[cfg(feature = "testkit")]
#[doc(hidden)]
pub use jpeg::compare::compare_huffman_decoders;
pub use orientation::Orientation;
pub use picture::{Channels, Picture, Samples};
pub use recipe::{Crop, Element, Extent, Form, Jitter, Law, Layout, Normalise, Random, Range, Recipe, Step};
pub use resize::{Filter, centre_crop, crop, resize, resize_shorter_edge};
pub use sniff::{ImageFormat, Kind, Size, sniff};

#[cfg(test)]
mod tests;
