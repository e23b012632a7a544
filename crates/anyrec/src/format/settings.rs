//! The options of formats by name: what command lines and other languages set.
//!
//! A format lists its settings ([`Format::open_settings`], [`Format::write_settings`]) and takes their
//! values ([`Format::set_open`], [`Format::set_write`]). So a front end has flags and keyword arguments
//! for every format without knowing any.

use super::{FORMATS, Format, OpenOptions, WriteOptions};
use crate::base::{Error, Result, Value};
use bstr::{BString, ByteSlice};

/// An option of a format, for front ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// Its name: a field of the format's own options.
    pub name: &'static str,
    /// How a command line calls it, where it can be given there.
    pub flag: Option<&'static str>,
    /// What a value looks like (`N`, `FILE`, `N,N,...`); empty for what is on or off.
    pub value: &'static str,
    /// Whether several values may be given one by one.
    pub repeated: bool,
    /// One line about it.
    pub help: &'static str,
}

impl Setting {
    /// A setting with that name and value.
    pub const fn new(name: &'static str, value: &'static str, help: &'static str) -> Self {
        Setting { name, flag: None, value, repeated: false, help }
    }

    /// The same setting, which a command line calls that.
    #[must_use]
    pub const fn with_flag(mut self, flag: &'static str) -> Self {
        self.flag = Some(flag);
        self
    }

    /// The same setting, which may be given several times.
    #[must_use]
    pub const fn repeated(mut self) -> Self {
        self.repeated = true;
        self
    }
}

/// The value of a [`Setting`], as a front end has it. A command line has text only; the accessors read
/// numbers and lists from it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SettingValue {
    /// One value.
    One(Value),
    /// Several.
    List(Vec<Value>),
    /// Several with names.
    Pairs(Vec<(BString, Value)>),
}

impl SettingValue {
    /// On or off.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for anything else; so have the others.
    pub fn flag(&self) -> Result<bool> {
        match self {
            SettingValue::One(Value::Bool(value)) => Ok(*value),
            _ => Err(Error::invalid("it is true or false")),
        }
    }

    /// A whole number.
    ///
    /// # Errors
    /// As [`flag`](SettingValue::flag).
    pub fn number(&self) -> Result<u64> {
        match self {
            SettingValue::One(value) => number(value),
            _ => Err(not_a_number()),
        }
    }

    /// Whole numbers; as text, with commas between them.
    ///
    /// # Errors
    /// As [`flag`](SettingValue::flag).
    pub fn numbers(&self) -> Result<Vec<u64>> {
        match self {
            SettingValue::One(Value::Text(text)) if text.is_empty() => Ok(Vec::new()),
            SettingValue::One(Value::Text(text)) => {
                text.split_str(",").map(|part| number(&Value::Text(part.into()))).collect()
            }
            SettingValue::List(values) => values.iter().map(number).collect(),
            _ => Err(Error::invalid("it is a list of whole numbers")),
        }
    }

    /// Text, or the bytes of a path.
    ///
    /// # Errors
    /// As [`flag`](SettingValue::flag).
    pub fn text(&self) -> Result<&BString> {
        match self {
            SettingValue::One(Value::Text(text)) => Ok(text),
            _ => Err(Error::invalid("it is text")),
        }
    }

    /// Several texts, or one.
    ///
    /// # Errors
    /// As [`flag`](SettingValue::flag).
    pub fn texts(&self) -> Result<Vec<BString>> {
        let text = |value: &Value| match value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err(Error::invalid("it is a list of texts")),
        };
        match self {
            SettingValue::One(value) => Ok(vec![text(value)?]),
            SettingValue::List(values) => values.iter().map(text).collect(),
            SettingValue::Pairs(_) => Err(Error::invalid("it is a list of texts")),
        }
    }

    /// Values with names.
    ///
    /// # Errors
    /// As [`flag`](SettingValue::flag).
    pub fn pairs(&self) -> Result<&[(BString, Value)]> {
        match self {
            SettingValue::Pairs(pairs) => Ok(pairs),
            SettingValue::List(values) if values.is_empty() => Ok(&[]),
            _ => Err(Error::invalid("it is a list of pairs")),
        }
    }
}

fn number(value: &Value) -> Result<u64> {
    match value {
        Value::Uint(number) => Ok(*number),
        Value::Int(number) => u64::try_from(*number).map_err(|_| not_a_number()),
        Value::Text(text) => text.to_str().ok().and_then(|text| text.parse().ok()).ok_or_else(not_a_number),
        Value::Bool(_) => Err(not_a_number()),
    }
}

fn not_a_number() -> Error {
    Error::invalid("it is a whole number, not below 0")
}

/// Sets an option of whichever format has it: what files will be opened is not known yet.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) for a name no format has, or a value that makes no sense.
pub fn set_open(options: &mut OpenOptions, name: &str, value: &SettingValue) -> Result<()> {
    let has = |format: &&&dyn Format| format.open_settings().iter().any(|setting| setting.name == name);
    let mut formats = FORMATS.iter().filter(has).peekable();
    if formats.peek().is_none() {
        return Err(Error::invalid(format!("there is no setting `{name}`")));
    }
    formats.try_for_each(|format| format.set_open(options, name, value).map_err(|error| about(name, error)))
}

/// Sets an option of a format for writing.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) for a name the format does not have, or a value that makes no
/// sense.
pub fn set_write(
    options: &mut WriteOptions,
    format: &'static dyn Format,
    name: &str,
    value: &SettingValue,
) -> Result<()> {
    if !format.write_settings().iter().any(|setting| setting.name == name) {
        return Err(Error::invalid(format!("{} files have no setting `{name}`", format.name())));
    }
    format.set_write(options, name, value).map_err(|error| about(name, error))
}

/// The error, with the setting it is about.
fn about(name: &str, error: Error) -> Error {
    match error.kind() {
        crate::ErrorKind::Invalid => Error::invalid(format!("the setting `{name}`: {}", error.message())),
        _ => error,
    }
}
