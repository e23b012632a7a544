//! The options specific to FFRecord.

use super::FORMAT;
use crate::base::{Error, Result};
use crate::format::{self, Format, FormatOptions, Setting, SettingValue};

/// The version of FFRecord to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Version {
    /// The table has a checksum.
    #[default]
    Current,
    /// The table has no checksum, as old writers left it.
    Old,
}

/// How `.ffr` files are written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The version.
    pub version: Version,
}

impl WriteOptions {
    /// Sets [`version`](WriteOptions::version).
    #[must_use]
    pub fn with_version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }
}

impl FormatOptions for WriteOptions {
    fn format() -> &'static dyn Format {
        &FORMAT
    }
}

pub(super) const WRITE: &[Setting] =
    &[Setting::new("version", "VERSION", "\"old\" leaves out the table's checksum")];

pub(super) fn set_write(options: &mut format::WriteOptions, name: &str, value: &SettingValue) -> Result<()> {
    let version = match (name, value.text()?.as_slice()) {
        ("version", b"") => Version::Current,
        ("version", b"old") => Version::Old,
        ("version", other) => {
            return Err(Error::invalid(format!(
                "FFRecord files have no version {:?}: use \"old\" or omit it",
                bstr::BStr::new(other)
            )));
        }
        _ => return Err(Error::invalid("no such setting")),
    };
    options.set(WriteOptions { version });
    Ok(())
}
