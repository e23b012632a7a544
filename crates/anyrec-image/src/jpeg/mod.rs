//! JPEG through libjpeg-turbo's code: its pixels to the bit, whole or in part, at full size or
//! scaled down while decoding.
//!
//! - [`Jpeg`] decodes; [`encode()`] writes what OpenCV's `imencode` writes.
//! - `huffman.c` decodes Huffman codes faster than libjpeg, to the same coefficients, warnings and
//!   errors (feature `fast-huffman`); `compare` holds it against libjpeg's own code.
//! - `markers` walks a file's segments without libjpeg; `errors` has libjpeg's complaints.
//!
//! All calls into libjpeg are in this folder.
//!
//! # What is held against the bytes
//! Before libjpeg allocates anything large: the size against the limits; the number of blocks
//! against the bytes (each costs at least a bit); scans and the blocks they visit against the
//! bytes, because a scan of a progressive file can visit all blocks in a few bytes. Strictly, the
//! end marker must be there, also when the last rows are not wanted.
//!
//! # Regions
//! libjpeg crops columns to whole units of blocks and skips rows. Upsampling looks at a
//! neighbour on either side and takes the border of a crop for that of the picture, so a crop is
//! a little wider than what is wanted. Rows below the region are not decoded.
//!
//! CMYK and YCCK are taken to be stored inverted, as every common writer stores them and as
//! OpenCV takes them.

#[cfg(any(test, feature = "testkit"))]
pub(crate) mod compare;
mod encode;
mod errors;
mod inks;
pub(super) mod markers;

pub(super) use encode::{Source, encode};

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

/// What a JPEG's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Declared and within the limits.
    pub size: Size,
    /// 1 (gray), 3 (colour) or 4 (inks).
    pub components: u8,
    /// How the picture has to be turned to stand upright.
    pub orientation: Orientation,
}

/// A rectangle of pixels of the whole picture at full size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

/// What was decoded, in pixels of the scaled picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

/// What a pixel is made of.
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

/// Columns that a crop is wider than what is wanted, on either side.
const MARGIN: u32 = 2;

/// No file of an encoder has nearly as many scans.
const MOST_SCANS: u64 = 500;

/// Blocks that all scans together may visit for each byte of a file, and for any file. A blank
/// progressive picture has about 40 for each byte.
const VISITS_PER_BYTE: u64 = 128;
const VISITS_AT_LEAST: u64 = 1 << 20;

/// A JPEG whose header has been read.
pub(crate) struct Jpeg<'a> {
    decompressor: Decompressor,
    header: Header,
    limits: DecodeLimits,
    /// Huffman codes are decoded by `huffman.c` where it can, else by libjpeg.
    faster: bool,
    /// libjpeg has their address.
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Jpeg<'a> {
    /// Reads the header and holds it against the limits; nothing large is allocated.
    ///
    /// # Errors
    /// [`Corrupt`](anyrec::ErrorKind::Corrupt) for a damaged header, a missing end, or a size that the
    /// bytes cannot hold; [`Limit`](anyrec::ErrorKind::Limit) and [`Unsupported`](anyrec::ErrorKind::Unsupported).
    pub fn open(bytes: &'a [u8], options: &DecodeOptions) -> Result<Self> {
        let survey = markers::survey(bytes);
        if !options.lenient_jpeg && !survey.has_end {
            return Err(corrupt(FORMAT, "cut short, the end-of-image marker is missing")
                .with_hint("`lenient_jpeg` decodes what is there"));
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
            return Err(corrupt(FORMAT, "more scans than a picture of this size can have"));
        }
        if !options.lenient_jpeg && survey.misses_scans {
            return Err(corrupt(FORMAT, "a component has no scan"));
        }
        let orientation = survey.exif.map_or_else(Default::default, Orientation::from_exif);
        let header = Header { size, components, orientation };
        let limits = options.limits.clone();
        Ok(Jpeg { decompressor, header, limits, faster: cfg!(feature = "fast-huffman"), bytes: PhantomData })
    }

    /// What the header says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The region that is the whole picture.
    pub fn whole(&self) -> Region {
        let Size { width, height } = self.header.size;
        Region { left: 0, top: 0, width, height }
    }

    /// Decodes at least `region` at `eighths` (1, 2, 4 or 8) eighths of full size. The pixels are
    /// those of a whole decode at that scale. `out` is cleared and gets rows without gaps; what it
    /// can hold is used again.
    ///
    /// # Errors
    /// [`Invalid`](anyrec::ErrorKind::Invalid) for a region that is empty or not within the picture and
    /// for other scales; [`Corrupt`](anyrec::ErrorKind::Corrupt), [`Limit`](anyrec::ErrorKind::Limit) and
    /// [`Unsupported`](anyrec::ErrorKind::Unsupported) by the data. `out` is empty then.
    pub fn decode_region(
        mut self,
        region: Region,
        eighths: u32,
        pixels: Pixels,
        out: &mut Vec<u8>,
    ) -> Result<Part> {
        self.decode_once(region, eighths, pixels, out)
    }

    /// As [`decode_region`](Self::decode_region), which can be called once.
    fn decode_once(
        &mut self,
        region: Region,
        eighths: u32,
        pixels: Pixels,
        out: &mut Vec<u8>,
    ) -> Result<Part> {
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
            |part: Part| limits.check(FORMAT, Size { width: part.width, height: part.height }, count, 8);
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

/// A region in pixels of the scaled picture, grown to whole ones.
fn scaled(region: Region, size: Size, eighths: u32) -> Result<Part> {
    if !matches!(eighths, 1 | 2 | 4 | 8) {
        return Err(Error::invalid("eighths of a jpeg's size").expected_found("1, 2, 4 or 8", eighths));
    }
    let Region { left, top, width, height } = region;
    let end = |begin: u32, length: u32, side: u32| {
        begin.checked_add(length).filter(|end| length > 0 && *end <= side)
    };
    let (Some(right), Some(bottom)) = (end(left, width, size.width), end(top, height, size.height)) else {
        return Err(Error::invalid(format!(
            "region of {width}x{height} pixels at ({left}, {top}) of a jpeg of {size} pixels"
        )));
    };
    // A JPEG's sides are below 2^16.
    let down = |at: u32| at * eighths / 8;
    let up = |at: u32| (at * eighths).div_ceil(8);
    let (left, top) = (down(left), down(top));
    Ok(Part { left, top, width: up(right) - left, height: up(bottom) - top })
}

/// libjpeg's decompression object and the error manager it points to, at a fixed address.
struct Decompressor(NonNull<State>);

struct State {
    info: jpeg_decompress_struct,
    errors: Errors,
    /// Memory of the faster decoder of Huffman codes.
    #[cfg(feature = "fast-huffman")]
    tables: Vec<u64>,
}

#[cfg(feature = "fast-huffman")]
unsafe extern "C-unwind" {
    /// Bytes that the faster decoder of Huffman codes (`huffman.c`) needs.
    fn anyrec_huffman_size() -> usize;
    /// Lets it take over, if the file is of a kind that it knows.
    fn anyrec_huffman_install(info: *mut jpeg_decompress_struct, memory: *mut std::ffi::c_void);
}

impl Decompressor {
    fn new(strict: bool) -> Result<Self> {
        // SAFETY: numbers and pointers, which may all be zero.
        let info: jpeg_decompress_struct = unsafe { std::mem::zeroed() };
        let state = Box::new(State {
            info,
            errors: Errors::new(strict),
            #[cfg(feature = "fast-huffman")]
            tables: Vec::new(),
        });
        let mut this = Decompressor(NonNull::from(Box::leak(state)));
        let state = this.0.as_ptr();
        // SAFETY: `state` is valid; no reference to it is alive.
        let errors = Errors::manager(unsafe { &raw mut (*state).errors });
        let info = this.info_mut();
        info.common.err = errors;
        // SAFETY: the struct is zero but for its error manager, as libjpeg wants it.
        guarded(|| unsafe { jpeg_create_decompress(info) })?;
        Ok(this)
    }

    fn info(&self) -> &jpeg_decompress_struct {
        // SAFETY: valid until dropped, and borrowed as `self` is.
        unsafe { &(*self.0.as_ptr()).info }
    }

    fn info_mut(&mut self) -> &mut jpeg_decompress_struct {
        // SAFETY: valid until dropped, and borrowed as `self` is.
        unsafe { &mut (*self.0.as_ptr()).info }
    }

    /// Reads up to the first scan. The bytes must live as long as `self` is used.
    fn read_header(&mut self, bytes: &[u8]) -> Result<()> {
        let info = self.info_mut();
        guarded(|| {
            // SAFETY: a created object that has not read anything, and as many bytes as there are.
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
        // SAFETY: libjpeg has allocated as many with the header, and keeps them.
        unsafe { std::slice::from_raw_parts(info.comp_info, count) }
    }

    /// 8x8 blocks of all components together.
    fn block_count(&self) -> u64 {
        let blocks = |c: &jpeg_component_info| u64::from(c.width_in_blocks) * u64::from(c.height_in_blocks);
        self.components().iter().map(blocks).sum()
    }

    /// Starts decoding at a scale; a file of several scans is read whole. Gives the part that the
    /// rows to be read now make up: `wanted`, with a few more columns where need be.
    fn start(&mut self, wanted: Part, eighths: u32, space: J_COLOR_SPACE, faster: bool) -> Result<Part> {
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
        let Part { mut left, mut top, .. } = wanted;
        let mut right = left + wanted.width;
        if self.is_smoothed() {
            // Takes the border of a crop for that of the picture, blocks away from it.
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
        Ok(Part { left, top, width: cropped, height: wanted.top + wanted.height - top })
    }

    /// Has most of libjpeg's work done by `huffman.c`, where it can.
    #[cfg(feature = "fast-huffman")]
    fn decode_codes_faster(&mut self) {
        // SAFETY: a number.
        let size = unsafe { anyrec_huffman_size() };
        // SAFETY: valid until dropped; nothing else refers to it now.
        let State { info, tables, .. } = unsafe { &mut *self.0.as_ptr() };
        tables.reserve(size.div_ceil(size_of::<u64>()));
        // SAFETY: decompression has started and no row is read; the memory is as large and aligned
        // as it must be, and is dropped after `info` is destroyed.
        unsafe { anyrec_huffman_install(info, tables.as_mut_ptr().cast()) };
    }

    /// libjpeg does all of its work.
    #[cfg(not(feature = "fast-huffman"))]
    fn decode_codes_faster(&mut self) {}

    /// Whether libjpeg guesses coefficients of a progressive picture that no scan has given.
    fn is_smoothed(&self) -> bool {
        /// Coefficients that are guessed, in their order within a block.
        const GUESSED: std::ops::Range<usize> = 1..10;
        let precision = self.info().coef_bits.cast::<[c_int; DCTSIZE2]>();
        if precision.is_null() {
            return false;
        }
        // SAFETY: libjpeg has one such array for each component.
        let precision = unsafe { std::slice::from_raw_parts(precision, self.components().len()) };
        precision.iter().any(|bits| bits.get(GUESSED).is_some_and(|bits| bits.iter().any(|bits| *bits != 0)))
    }

    /// Reads the rows of `part`, `count` bytes a pixel, into `out`, which is empty.
    fn read_rows(&mut self, part: Part, count: usize, out: &mut Vec<u8>) -> Result<()> {
        /// libjpeg gives at most as many rows at a time as there are in a unit of samples.
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
                    // SAFETY: within the room, which holds as many rows as the part has.
                    *row = unsafe { room.add(at as usize * row_length) };
                }
                // SAFETY: `ahead` of the rows are set, each with room for the output width.
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
        // SAFETY: made by `new` from a box, and dropped once. Destroying is right in any state,
        // also where creating failed (the struct is zero then), and does not fail.
        unsafe {
            jpeg_destroy_decompress(&mut (*self.0.as_ptr()).info);
            drop(Box::from_raw(self.0.as_ptr()));
        }
    }
}
