//! The options specific to IDX.

use super::FORMAT;
use crate::base::{ElementType, Error, Result};
use crate::format::{self, Format, FormatOptions, Setting, SettingValue};
use bstr::ByteSlice;

/// How IDX files are written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The element type (default `uint8`).
    pub dtype: Option<ElementType>,
    /// The shape of one record (default: one dimension, as long as the first record).
    pub item_shape: Option<Vec<u64>>,
    /// Whether to gzip the file (default: if its name ends in `.gz`).
    pub gzip: Option<bool>,
}

impl WriteOptions {
    /// Sets [`dtype`](WriteOptions::dtype).
    #[must_use]
    pub fn with_dtype(mut self, dtype: ElementType) -> Self {
        self.dtype = Some(dtype);
        self
    }

    /// Sets [`item_shape`](WriteOptions::item_shape).
    #[must_use]
    pub fn with_item_shape(mut self, item_shape: impl Into<Vec<u64>>) -> Self {
        self.item_shape = Some(item_shape.into());
        self
    }

    /// Sets [`gzip`](WriteOptions::gzip).
    #[must_use]
    pub fn with_gzip(mut self, gzip: bool) -> Self {
        self.gzip = Some(gzip);
        self
    }
}

impl FormatOptions for WriteOptions {
    fn format() -> &'static dyn Format {
        &FORMAT
    }
}

pub(super) const WRITE: &[Setting] = &[
    Setting::new("dtype", "TYPE", "element type of the records (default uint8)").with_flag("dtype"),
    Setting::new("item_shape", "N,N,...", "shape of one record, e.g. 28,28").with_flag("shape"),
    Setting::new("gzip", "", "compress the file (default: if its name ends in .gz)"),
];

pub(super) fn set_write(options: &mut format::WriteOptions, name: &str, value: &SettingValue) -> Result<()> {
    let mut own: WriteOptions = options.own();
    match name {
        "dtype" => own.dtype = Some(dtype(value)?),
        "item_shape" => own.item_shape = Some(value.numbers()?),
        "gzip" => own.gzip = Some(value.flag()?),
        _ => return Err(Error::invalid("no such setting")),
    }
    options.set(own);
    Ok(())
}

fn dtype(value: &SettingValue) -> Result<ElementType> {
    let name = value.text()?;
    name.to_str().ok().and_then(ElementType::from_name).ok_or_else(|| {
        Error::invalid(format!(
            "unknown IDX element type {name:?}: expected uint8, int8, int16, int32, float32 or float64"
        ))
    })
}
