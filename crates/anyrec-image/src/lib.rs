//! Images in records, on top of [`anyrec`]: decoding, encoding, resizing, and batches for training.
//!
//! - [`sniff`] identifies a payload from its first bytes, without decoding anything.
//! - [`decode`] turns JPEG, PNG and WebP bytes into a [`Picture`]; declared sizes are checked
//!   against limits before anything is allocated, and truncated bytes are an error.
//! - [`encode_jpeg`] and [`encode_png`] encode a [`Picture`].
//! - A [`Recipe`] makes training samples from encoded images and decodes only the part that it
//!   needs; [`Images`] is a recipe for `anyrec`'s [`Loader`](anyrec::loader::Loader).
//! - [`resize`], [`resize_shorter_edge`], [`crop`] and [`centre_crop`] change the size of an image.
//!
//! Where MXNet's tools use OpenCV (`pack_img`, `unpack_img`, `im2rec`), this crate makes OpenCV's
//! choices: see [`DecodeOptions::opencv`], [`Filter::from_inter_method`] and
//! [`Picture::bgr_samples`].
//!
//! ```
//! use anyrec_image::{self as image, Channels, DecodeOptions, Filter, Picture, Samples};
//!
//! let picture = Picture::new(4, 2, Channels::Gray, Samples::Eight(vec![7; 8]))?;
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
//! # Features
//! - `fast-huffman` (off): decodes the Huffman codes of JPEGs with this crate's own C code, which works
//!   on libjpeg's internal state. The pixels are the same, and decoding is faster.
//! - `testkit` (off): compares that C code with libjpeg's own, for tests and fuzz targets.
//!
//! JPEGs are decoded by libjpeg-turbo's code, so this crate needs a C compiler, and `nasm` for the
//! fast x86 routines. GIF, BMP and animated WebP are recognised but not decoded. Colour profiles
//! are not applied.

#![warn(missing_debug_implementations)]

mod area;
mod decode;
mod encode;
mod images;
mod jpeg;
mod memory;
mod orientation;
mod picture;
mod recipe;
mod resize;
mod sniff;

pub use decode::{Color, DecodeLimits, DecodeOptions, decode};
pub use encode::{encode_jpeg, encode_png};
pub use images::Images;
#[cfg(feature = "testkit")]
pub use jpeg::compare::compare_huffman_decoders;
pub use orientation::Orientation;
pub use picture::{Channels, Picture, Samples};
pub use recipe::{
    Crop, Extent, Form, Jitter, Law, Layout, Normalise, Random, Range, Recipe, SampleType, Step,
};
pub use resize::{Filter, centre_crop, crop, resize, resize_shorter_edge};
pub use sniff::{ImageFormat, Kind, Size, sniff};

#[cfg(test)]
mod tests;
