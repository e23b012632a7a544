//! JPEG decoding with libjpeg-turbo's code: bit-exact pixels, whole or in part, at full size or
//! scaled down while decoding.
//!
//! - [`Jpeg`] decodes; [`encode()`] writes what OpenCV's `imencode` writes.
//! - `huffman.c` decodes Huffman codes faster than libjpeg, to the same coefficients, warnings and
//!   errors (feature `fast-huffman`); `compare` checks it against libjpeg's own code.
//! - `markers` walks a file's segments without libjpeg; `errors` converts libjpeg's errors.
//!
//! All calls into libjpeg are in this folder.
//!
//! # What is checked before decoding
//! Before libjpeg allocates anything large, three values are checked: the size against the limits;
//! the number of blocks against the number of bytes (each block costs at least a bit); and the
//! scans and the blocks they visit against the number of bytes, because a scan of a progressive
//! file can visit all blocks in a few bytes. In strict mode the end marker is required, even if the
//! last rows are not requested.
//!
//! # Regions
//! libjpeg crops columns to whole units of blocks and skips rows. Upsampling uses a neighbour on
//! either side and treats the border of a crop as the border of the image, so a crop is slightly
//! wider than requested. Rows below the region are not decoded.
//!
//! CMYK and YCCK are assumed to be stored inverted, as all common encoders do and as OpenCV
//! assumes.

#[cfg(any(test, feature = "testkit"))]
pub(crate) mod compare;
mod encode;
mod errors;
mod inks;
pub(super) mod markers;

pub(super) use encode::{Input, encode};

use super::decode::{DecodeLimits, DecodeOptions, corrupt, too_few_bytes};
use super::orientation::Orientation;
use super::sniff::{ImageFormat, Size};
use anyrec::{Error, Result};
use errors::{Errors, guarded};
use mozjpeg_sys::*;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::NonNull;

const FORMAT: ImageFormat = ImageFormat::Jpeg;

/// The contents of a JPEG's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The declared size, checked against the limits.
    pub size: Size,
    /// 1 (gray), 3 (colour) or 4 (CMYK).
    pub components: u8,
    /// How the image must be rotated to be upright.
    pub orientation: Orientation,
}

/// A rectangle of pixels of the whole image at full size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

/// The decoded rectangle, in pixels of the scaled image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cutout {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

/// The format of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pixels {
    /// One byte: luminance.
    Gray,
    /// Red, green, blue.
    Rgb,
    /// Red, green, blue and 255.
    Rgbx,
}

impl Pixels {
    /// Bytes per pixel.
    pub fn count(self) -> usize {
        match self {
            Pixels::Gray => 1,
            Pixels::Rgb => 3,
            Pixels::Rgbx => 4,
        }
    }
}

/// Extra columns of a crop on either side.
const MARGIN: u32 = 2;

/// The maximum number of scans. No encoder writes nearly as many.
const MOST_SCANS: u64 = 500;

/// How many blocks all scans together may visit, per byte of a file and for any file. A blank
/// progressive image has about 40 per byte.
const VISITS_PER_BYTE: u64 = 128;
const VISITS_AT_LEAST: u64 = 1 << 20;

/// A JPEG whose header has been read.
pub(crate) struct Jpeg<'a> {
    decompressor: Decompressor,
    header: Header,
    limits: DecodeLimits,
    /// `huffman.c` decodes Huffman codes where it can, libjpeg otherwise.
    faster: bool,
    /// libjpeg holds their address.
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Jpeg<'a> {
    /// Reads the header and checks it against the limits. Allocates nothing large.
    ///
    /// # Errors
    /// [`Corrupt`](anyrec::ErrorKind::Corrupt) for a damaged header, a missing end, or a size that the
    /// bytes cannot hold; [`Limit`](anyrec::ErrorKind::Limit) and [`Unsupported`](anyrec::ErrorKind::Unsupported).
    pub fn open(bytes: &'a [u8], options: &DecodeOptions) -> Result<Self> {
        let survey = markers::survey(bytes);
        if !options.lenient_jpeg && !survey.has_end {
            return Err(corrupt(FORMAT, "cut short, the end-of-image marker is missing")
                .with_hint("lenient decoding returns what is there"));
        }
        let mut decompressor = Decompressor::new(!options.lenient_jpeg)?;
        decompressor.read_header(bytes)?;
        let info = decompressor.info();
        let size = Size { width: info.image_width, height: info.image_height };
        let components = match (u8::try_from(info.num_components), info.jpeg_color_space) {
            (Ok(count @ (1 | 3 | 4)), space) if space != JCS_UNKNOWN => count,
            _ => {
                let count = info.num_components;
                return Err(Error::unsupported(format!("jpeg with {count} components")));
            }
        };
        options.limits.check(FORMAT, size, 1, 8)?;
        let least = decompressor.block_count() / 8;
        if least > bytes.len() as u64 {
            return Err(too_few_bytes(FORMAT, size, least, bytes));
        }
        let most = VISITS_AT_LEAST.saturating_add(VISITS_PER_BYTE.saturating_mul(bytes.len() as u64));
        if survey.scans > MOST_SCANS || survey.visits > most {
            return Err(corrupt(FORMAT, "more scans than an image of this size can have"));
        }
        if !options.lenient_jpeg && survey.misses_scans {
            return Err(corrupt(FORMAT, "a component has no scan"));
        }
        let orientation = survey.exif.map_or_else(Default::default, Orientation::from_exif);
        let header = Header { size, components, orientation };
        let limits = options.limits.clone();
        Ok(Jpeg { decompressor, header, limits, faster: cfg!(feature = "fast-huffman"), bytes: PhantomData })
    }

    /// The contents of the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The region that covers the whole image.
    pub fn whole(&self) -> Region {
        let Size { width, height } = self.header.size;
        Region { left: 0, top: 0, width, height }
    }

    /// Decodes at least `region` at `eighths` (1, 2, 4 or 8) eighths of full size. The pixels are
    /// those of a whole decode at that scale. `out` is cleared and filled with rows without gaps;
    /// its capacity is reused.
    ///
    /// # Errors
    /// [`Invalid`](anyrec::ErrorKind::Invalid) for a region that is empty or not within the image
    /// and for other scales; [`Corrupt`](anyrec::ErrorKind::Corrupt),
    /// [`Limit`](anyrec::ErrorKind::Limit) and [`Unsupported`](anyrec::ErrorKind::Unsupported)
    /// depending on the data. After an error `out` is empty.
    pub fn decode_region(
        mut self,
        region: Region,
        eighths: u32,
        pixels: Pixels,
        out: &mut Vec<u8>,
    ) -> Result<Cutout> {
        self.decode_once(region, eighths, pixels, out)
    }

    /// Implements [`decode_region`](Self::decode_region), which can be called once.
    fn decode_once(
        &mut self,
        region: Region,
        eighths: u32,
        pixels: Pixels,
        out: &mut Vec<u8>,
    ) -> Result<Cutout> {
        out.clear();
        let wanted = scaled(region, self.header.size, eighths)?;
        let inks = self.header.components == 4;
        let space = match pixels {
            _ if inks => JCS_CMYK,
            Pixels::Gray => JCS_GRAYSCALE,
            Pixels::Rgb => JCS_EXT_RGB,
            Pixels::Rgbx => JCS_EXT_RGBA,
        };
        let count = if inks { 4 } else { pixels.count() };
        let limits = &self.limits;
        let check =
            |part: Cutout| limits.check(FORMAT, Size { width: part.width, height: part.height }, count, 8);
        check(wanted)?;
        let part = self.decompressor.start(wanted, eighths, space, self.faster)?;
        check(part)?;
        self.decompressor.read_rows(part, count, out)?;
        if inks {
            inks::convert(out, pixels);
        }
        Ok(part)
    }
}

/// A region in pixels of the scaled image, rounded outwards to whole pixels.
fn scaled(region: Region, size: Size, eighths: u32) -> Result<Cutout> {
    if !matches!(eighths, 1 | 2 | 4 | 8) {
        return Err(Error::invalid("eighths of a jpeg's size").expected_found("1, 2, 4 or 8", eighths));
    }
    let Region { left, top, width, height } = region;
    let end = |begin: u32, length: u32, side: u32| {
        begin.checked_add(length).filter(|end| length > 0 && *end <= side)
    };
    let (Some(right), Some(bottom)) = (end(left, width, size.width), end(top, height, size.height)) else {
        return Err(Error::invalid(format!(
            "a {width}x{height} region at ({left}, {top}) is not within the {size} jpeg"
        )));
    };
    // A JPEG's sides are below 2^16.
    let down = |at: u32| at * eighths / 8;
    let up = |at: u32| (at * eighths).div_ceil(8);
    let (left, top) = (down(left), down(top));
    Ok(Cutout { left, top, width: up(right) - left, height: up(bottom) - top })
}

/// libjpeg's decompression object and the error manager it points to, at a fixed address.
struct Decompressor(NonNull<State>);

struct State {
    info: jpeg_decompress_struct,
    errors: Errors,
    /// Memory of the faster Huffman decoder.
    #[cfg(feature = "fast-huffman")]
    tables: Vec<u64>,
}

#[cfg(feature = "fast-huffman")]
unsafe extern "C-unwind" {
    /// Bytes that the faster Huffman decoder (`huffman.c`) needs.
    fn anyrec_huffman_size() -> usize;
    /// Installs it if it supports the file.
    fn anyrec_huffman_install(info: *mut jpeg_decompress_struct, memory: *mut std::ffi::c_void);
}

impl Decompressor {
    fn new(strict: bool) -> Result<Self> {
        // SAFETY: a struct of numbers and pointers, for which zero is valid.
        let info: jpeg_decompress_struct = unsafe { std::mem::zeroed() };
        let state = Box::new(State {
            info,
            errors: Errors::new(strict),
            #[cfg(feature = "fast-huffman")]
            tables: Vec::new(),
        });
        let mut this = Decompressor(NonNull::from(Box::leak(state)));
        let state = this.0.as_ptr();
        // SAFETY: `state` is valid, and no reference to it exists.
        let errors = Errors::manager(unsafe { &raw mut (*state).errors });
        let info = this.info_mut();
        info.common.err = errors;
        // SAFETY: the struct is zero except for its error manager, as libjpeg requires.
        guarded(|| unsafe { jpeg_create_decompress(info) })?;
        Ok(this)
    }

    fn info(&self) -> &jpeg_decompress_struct {
        // SAFETY: valid until dropped, and borrowed like `self`.
        unsafe { &(*self.0.as_ptr()).info }
    }

    fn info_mut(&mut self) -> &mut jpeg_decompress_struct {
        // SAFETY: valid until dropped, and borrowed like `self`.
        unsafe { &mut (*self.0.as_ptr()).info }
    }

    /// Reads up to the first scan. The bytes must outlive all use of `self`.
    fn read_header(&mut self, bytes: &[u8]) -> Result<()> {
        let info = self.info_mut();
        guarded(|| {
            // SAFETY: a created object that has not read anything, and the true number of bytes.
            unsafe {
                jpeg_mem_src(info, bytes.as_ptr(), bytes.len() as _);
                jpeg_read_header(info, 1);
            }
        })
    }

    fn components(&self) -> &[jpeg_component_info] {
        let info = self.info();
        let count = usize::try_from(info.num_components).unwrap_or(0);
        if info.comp_info.is_null() {
            return &[];
        }
        // SAFETY: libjpeg allocated that many with the header, and keeps them.
        unsafe { std::slice::from_raw_parts(info.comp_info, count) }
    }

    /// 8x8 blocks of all components together.
    fn block_count(&self) -> u64 {
        let blocks = |c: &jpeg_component_info| u64::from(c.width_in_blocks) * u64::from(c.height_in_blocks);
        self.components().iter().map(blocks).sum()
    }

    /// Starts decoding at a scale. A file with several scans is read completely. Returns the part
    /// that the following rows cover: `wanted`, with a few extra columns if necessary.
    fn start(&mut self, wanted: Cutout, eighths: u32, space: J_COLOR_SPACE, faster: bool) -> Result<Cutout> {
        let info = self.info_mut();
        info.scale_num = eighths;
        info.scale_denom = 8;
        info.out_color_space = space;
        info.dct_method = J_DCT_METHOD::JDCT_ISLOW;
        info.do_fancy_upsampling = 1;
        // SAFETY: the header has been read.
        guarded(|| unsafe { jpeg_start_decompress(info) })?;
        if faster {
            self.decode_codes_faster();
        }
        let info = self.info();
        let (width, subsampled) = (info.output_width, info.max_h_samp_factor > 1);
        let Cutout { mut left, mut top, .. } = wanted;
        let mut right = left + wanted.width;
        if self.is_smoothed() {
            // Smoothing treats the border of a crop as that of the image, with effects blocks away from it.
            (left, top, right) = (0, 0, width);
        } else if subsampled {
            left = left.saturating_sub(MARGIN);
            right = right.saturating_add(MARGIN).min(width);
        }
        let mut cropped = right - left;
        let info = self.info_mut();
        guarded(|| {
            // SAFETY: decoding has started and no row has been read.
            unsafe {
                jpeg_crop_scanline(info, &mut left, &mut cropped);
                if top > 0 {
                    jpeg_skip_scanlines(info, top);
                }
            }
        })?;
        Ok(Cutout { left, top, width: cropped, height: wanted.top + wanted.height - top })
    }

    /// Hands most of libjpeg's work to `huffman.c`, where possible.
    #[cfg(feature = "fast-huffman")]
    fn decode_codes_faster(&mut self) {
        // SAFETY: returns a number and has no preconditions.
        let size = unsafe { anyrec_huffman_size() };
        // SAFETY: valid until dropped; nothing else refers to it now.
        let State { info, tables, .. } = unsafe { &mut *self.0.as_ptr() };
        tables.reserve(size.div_ceil(size_of::<u64>()));
        // SAFETY: decompression has started and no row has been read; the memory has the required
        // size and alignment, and is dropped after `info` is destroyed.
        unsafe { anyrec_huffman_install(info, tables.as_mut_ptr().cast()) };
    }

    /// libjpeg does all of the work.
    #[cfg(not(feature = "fast-huffman"))]
    fn decode_codes_faster(&mut self) {}

    /// Whether libjpeg estimates coefficients of a progressive image that no scan has provided.
    fn is_smoothed(&self) -> bool {
        /// Coefficients that are estimated, in their order within a block.
        const GUESSED: std::ops::Range<usize> = 1..10;
        let precision = self.info().coef_bits.cast::<[c_int; DCTSIZE2]>();
        if precision.is_null() {
            return false;
        }
        // SAFETY: libjpeg has one such array for each component.
        let precision = unsafe { std::slice::from_raw_parts(precision, self.components().len()) };
        precision.iter().any(|bits| bits.get(GUESSED).is_some_and(|bits| bits.iter().any(|bits| *bits != 0)))
    }

    /// Reads the rows of `part`, `count` bytes per pixel, into the empty `out`.
    fn read_rows(&mut self, part: Cutout, count: usize, out: &mut Vec<u8>) -> Result<()> {
        /// libjpeg returns at most as many rows at a time as a unit of samples has.
        const AT_A_TIME: u32 = 4;
        let row_length = part.width as usize * count;
        let length = row_length * part.height as usize;
        out.try_reserve_exact(length).map_err(|_| Error::out_of_memory(length as u64))?;
        let room = out.spare_capacity_mut().as_mut_ptr().cast::<u8>();
        let info = self.info_mut();
        let fits = info.output_width == part.width && usize::try_from(info.output_components) == Ok(count);
        let mut done = 0;
        guarded(|| {
            while fits && done < part.height {
                let mut rows = [std::ptr::null_mut(); AT_A_TIME as usize];
                let ahead = AT_A_TIME.min(part.height - done);
                for (row, at) in rows.iter_mut().zip(done..done + ahead) {
                    // SAFETY: within the buffer, which has space for all rows of the part.
                    *row = unsafe { room.add(at as usize * row_length) };
                }
                // SAFETY: `ahead` of the rows are set, each with space for the output width.
                match unsafe { jpeg_read_scanlines(info, rows.as_mut_ptr(), ahead) } {
                    0 => break,
                    read => done += read,
                }
            }
        })?;
        if done < part.height {
            return Err(corrupt(FORMAT, "rows are missing"));
        }
        // SAFETY: libjpeg has written every byte of these rows.
        unsafe { out.set_len(length) };
        Ok(())
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: `new` made it from a box, and it is dropped once. Destroying is valid in any
        // state, even if creating failed (the struct is zero then), and does not fail.
        unsafe {
            jpeg_destroy_decompress(&mut (*self.0.as_ptr()).info);
            drop(Box::from_raw(self.0.as_ptr()));
        }
    }
}
