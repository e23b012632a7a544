//! Baseline JPEG with the settings of OpenCV's `imencode`.
//!
//! mozjpeg's own improvements are off, so the bytes are those of libjpeg-turbo.

use super::errors::{Errors, guarded};
use anyrec::{Error, Result};
use mozjpeg_sys::*;
use std::ffi::c_int;
use std::ptr::NonNull;

/// Rows to encode.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub width: u32,
    pub height: u32,
    /// The pixel format of `samples`: gray (one byte per pixel), RGB (three), or RGBX or CMYK
    /// (four).
    pub space: J_COLOR_SPACE,
    /// Rows from the top without gaps.
    pub samples: &'a [u8],
}

/// Encodes an image as JPEG. `adjust` can change libjpeg's settings before it starts.
///
/// # Errors
/// [`Invalid`](anyrec::ErrorKind::Invalid) if the samples do not match the size, or if libjpeg
/// refuses the image.
pub(crate) fn encode(
    source: Input<'_>,
    quality: u8,
    adjust: impl FnOnce(&mut jpeg_compress_struct),
) -> Result<Vec<u8>> {
    let Input { width, height, space, samples } = source;
    let count: u8 = match space {
        JCS_GRAYSCALE => 1,
        JCS_EXT_RGB => 3,
        _ => 4,
    };
    let row_length = width as usize * usize::from(count);
    if row_length == 0 || row_length.checked_mul(height as usize) != Some(samples.len()) {
        return Err(Error::invalid(format!("the sample buffer does not match a {width}x{height} jpeg")));
    }
    let mut compressor = Compressor::new()?;
    let info = compressor.info_mut();
    info.image_width = width;
    info.image_height = height;
    info.input_components = count.into();
    info.in_color_space = space;
    let run = guarded(|| {
        // SAFETY: a created object with a destination and an image description; the calls are in
        // libjpeg's order, and each row has the declared length.
        unsafe {
            jpeg_c_set_int_param(info, JINT_COMPRESS_PROFILE, JCP_FASTEST as c_int);
            jpeg_c_set_int_param(info, JINT_BASE_QUANT_TBL_IDX, 0);
            jpeg_set_defaults(info);
            jpeg_set_quality(info, quality.into(), 1);
            adjust(info);
            jpeg_start_compress(info, 1);
            for row in samples.chunks_exact(row_length) {
                jpeg_write_scanlines(info, &row.as_ptr(), 1);
            }
            jpeg_finish_compress(info);
        }
    });
    run.map_err(|error| Error::invalid(format!("cannot encode the image as jpeg: {error}")))?;
    Ok(compressor.take_bytes())
}

/// libjpeg's compression object and what it points to, at a fixed address.
struct Compressor(NonNull<State>);

struct State {
    info: jpeg_compress_struct,
    errors: Errors,
    destination: Destination,
}

/// The destination that libjpeg writes to.
#[repr(C)]
struct Destination {
    // The first field, so that its address is that of the struct.
    manager: jpeg_destination_mgr,
    bytes: Vec<u8>,
}

impl Compressor {
    fn new() -> Result<Self> {
        let manager = jpeg_destination_mgr {
            next_output_byte: std::ptr::null_mut(),
            free_in_buffer: 0,
            init_destination: Some(init_destination),
            empty_output_buffer: Some(empty_output_buffer),
            term_destination: Some(term_destination),
        };
        // SAFETY: a struct of numbers and pointers, for which zero is valid.
        let info: jpeg_compress_struct = unsafe { std::mem::zeroed() };
        let destination = Destination { manager, bytes: Vec::new() };
        let state = Box::new(State { info, errors: Errors::new(true), destination });
        let mut this = Compressor(NonNull::from(Box::leak(state)));
        let state = this.0.as_ptr();
        // SAFETY: `state` is valid, and no reference to it exists.
        let (errors, destination) =
            unsafe { (Errors::manager(&raw mut (*state).errors), &raw mut (*state).destination) };
        let info = this.info_mut();
        info.common.err = errors;
        // SAFETY: the struct is zero except for its error manager, as libjpeg requires.
        guarded(|| unsafe { jpeg_create_compress(info) })?;
        info.dest = destination.cast();
        Ok(this)
    }

    fn info_mut(&mut self) -> &mut jpeg_compress_struct {
        // SAFETY: valid until dropped, and borrowed like `self`.
        unsafe { &mut (*self.0.as_ptr()).info }
    }

    fn take_bytes(&mut self) -> Vec<u8> {
        // SAFETY: valid until dropped; no call into libjpeg is active.
        std::mem::take(unsafe { &mut (*self.0.as_ptr()).destination.bytes })
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: `new` made it from a box, and it is dropped once. Destroying is valid in any
        // state, even if creating failed (the struct is zero then), and does not fail.
        unsafe {
            jpeg_destroy_compress(&mut (*self.0.as_ptr()).info);
            drop(Box::from_raw(self.0.as_ptr()));
        }
    }
}

const FIRST_ROOM: usize = 16 << 10;

/// The destination of a compression object made here.
///
/// # Safety
/// `info` belongs to a [`Compressor`] whose destination is not borrowed elsewhere.
unsafe fn destination<'a>(info: &mut jpeg_compress_struct) -> &'a mut Destination {
    // SAFETY: its destination manager is the first field of a `Destination`.
    unsafe { &mut *info.dest.cast::<Destination>() }
}

impl Destination {
    /// Gives libjpeg the space after the bytes written so far.
    fn offer(&mut self, room: usize) {
        self.bytes.reserve(room);
        let spare = self.bytes.spare_capacity_mut();
        self.manager.next_output_byte = spare.as_mut_ptr().cast();
        self.manager.free_in_buffer = spare.len();
    }

    /// Accepts what libjpeg has written: all of the space except `free` bytes.
    ///
    /// # Safety
    /// That many bytes have been written.
    unsafe fn take(&mut self, free: usize) {
        let length = self.bytes.capacity().saturating_sub(free);
        // SAFETY: the caller guarantees that they are written.
        unsafe { self.bytes.set_len(length) };
    }
}

unsafe extern "C-unwind" fn init_destination(info: &mut jpeg_compress_struct) {
    // SAFETY: libjpeg calls this with an object created here.
    unsafe { destination(info) }.offer(FIRST_ROOM);
}

/// Called when the space is full, whatever the value of `free_in_buffer`.
unsafe extern "C-unwind" fn empty_output_buffer(info: &mut jpeg_compress_struct) -> boolean {
    // SAFETY: libjpeg calls this with an object created here, after writing all of the space.
    unsafe {
        let destination = destination(info);
        destination.take(0);
        destination.offer(destination.bytes.len());
    }
    1
}

unsafe extern "C-unwind" fn term_destination(info: &mut jpeg_compress_struct) {
    // SAFETY: libjpeg calls this with an object created here, after writing all but
    // `free_in_buffer` bytes.
    unsafe {
        let destination = destination(info);
        destination.take(destination.manager.free_in_buffer);
    }
}
