//! Turns libjpeg's errors and warnings into this library's errors.
//!
//! libjpeg expects its error handler not to return. This handler unwinds through libjpeg's frames
//! (which are compiled for that) up to [`guarded`]. Nothing is ever printed.

use super::FORMAT;
use crate::decode::corrupt;
use anyrec::{Error, ErrorKind, Result};
use mozjpeg_sys::*;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The error manager that libjpeg sees. It must not move while libjpeg holds its address.
#[repr(C)]
pub(super) struct Errors {
    // The first field, so that its address is that of the struct.
    manager: jpeg_error_mgr,
    strict: bool,
    /// The codes of the warnings, in order.
    #[cfg(any(test, feature = "testkit"))]
    pub warnings: Vec<c_int>,
}

impl Errors {
    /// Creates a manager. If `strict`, it turns warnings about lost data into errors.
    pub fn new(strict: bool) -> Self {
        // SAFETY: a struct of optional functions, numbers and pointers, for which zero is valid.
        let mut manager: jpeg_error_mgr = unsafe { std::mem::zeroed() };
        // SAFETY: sets the functions and the message table, nothing else.
        unsafe { jpeg_std_error(&mut manager) };
        manager.error_exit = Some(error_exit);
        manager.emit_message = Some(emit_message);
        manager.output_message = Some(output_message);
        Errors {
            manager,
            strict,
            #[cfg(any(test, feature = "testkit"))]
            warnings: Vec::new(),
        }
    }

    /// The address to pass to libjpeg.
    pub fn manager(this: *mut Self) -> *mut jpeg_error_mgr {
        this.cast()
    }
}

/// The payload that unwinds from libjpeg's error handler.
struct Failure {
    code: c_int,
    message: String,
}

/// Runs calls into libjpeg and catches its errors. After an error, the object in use can only be
/// destroyed.
///
/// # Errors
/// libjpeg's message, with a matching kind.
pub(super) fn guarded<T>(calls: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(calls)).map_err(|payload| match payload.downcast::<Failure>() {
        Ok(failure) => failure.into_error(),
        Err(panic) => resume_unwind(panic),
    })
}

impl Failure {
    fn into_error(self) -> Error {
        let Failure { code, message } = self;
        match code {
            JERR_ARITH_NOTIMPL
            | JERR_BAD_PRECISION
            | JERR_CCIR601_NOTIMPL
            | JERR_CONVERSION_NOTIMPL
            | JERR_FRACT_SAMPLE_NOTIMPL
            | JERR_IMAGE_TOO_BIG
            | JERR_NOTIMPL
            | JERR_NOT_COMPILED
            | JERR_SOF_UNSUPPORTED => Error::unsupported(format!("unsupported jpeg coding: {message}")),
            JERR_OUT_OF_MEMORY => Error::new(ErrorKind::OutOfMemory, format!("jpeg: {message}")),
            _ => corrupt(FORMAT, message),
        }
    }
}

unsafe extern "C-unwind" fn error_exit(common: &mut jpeg_common_struct) {
    resume_unwind(Box::new(failure(common)));
}

/// Level -1 is a warning; other levels are ignored.
unsafe extern "C-unwind" fn emit_message(common: &mut jpeg_common_struct, level: c_int) {
    // SAFETY: the manager of every object created here is the first field of an `Errors`.
    let errors = unsafe { &mut *common.err.cast::<Errors>() };
    #[cfg(any(test, feature = "testkit"))]
    if level == -1 {
        errors.warnings.push(errors.manager.msg_code);
    }
    if level == -1 && errors.strict && tells_of_lost_data(errors.manager.msg_code) {
        resume_unwind(Box::new(failure(common)));
    }
}

unsafe extern "C-unwind" fn output_message(_: &mut jpeg_common_struct) {}

/// The other warnings concern stray bytes between segments and unusual header values.
fn tells_of_lost_data(warning: c_int) -> bool {
    matches!(
        warning,
        JWRN_BOGUS_PROGRESSION | JWRN_HIT_MARKER | JWRN_HUFF_BAD_CODE | JWRN_JPEG_EOF | JWRN_MUST_RESYNC
    )
}

/// libjpeg's JMSG_LENGTH_MAX.
const MESSAGE_LENGTH: usize = 200;

fn failure(common: &mut jpeg_common_struct) -> Failure {
    type FormatMessage = unsafe extern "C-unwind" fn(*mut jpeg_common_struct, *mut u8);

    let mut buffer = [0u8; MESSAGE_LENGTH];
    // SAFETY: the manager outlives the object it belongs to.
    let manager = unsafe { &*common.err };
    let code = manager.msg_code;
    if let Some(format) = manager.format_message {
        // SAFETY: the same function as declared in C; the binding declares too short a buffer.
        let format = unsafe {
            std::mem::transmute::<
                unsafe extern "C-unwind" fn(&mut jpeg_common_struct, &[u8; 80]),
                FormatMessage,
            >(format)
        };
        // SAFETY: writes one line of at most MESSAGE_LENGTH bytes, including the terminating zero.
        unsafe { format(common, buffer.as_mut_ptr()) };
    }
    let text = buffer.split(|byte| *byte == 0).next().unwrap_or_default();
    Failure { code, message: String::from_utf8_lossy(text).into_owned() }
}
