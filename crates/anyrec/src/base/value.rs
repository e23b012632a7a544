//! The small values that records and files carry in addition to their bytes.

use bstr::BString;
use std::fmt;

/// A record's key, if the format (or its index file) has keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// An integer.
    Int(i128),
    /// Anything else.
    Text(BString),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Int(number) => number.fmt(f),
            Key::Text(text) => text.fmt(f),
        }
    }
}

/// A record's label. Numbers are stored as `f64`, which represents every `f32` exactly.
#[derive(Debug, Clone, PartialEq)]
pub enum Label {
    /// One number.
    Scalar(f64),
    /// Several numbers.
    Array(Vec<f64>),
}

/// What belongs to a record in addition to its bytes.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Tags {
    /// The key, if any.
    pub key: Option<Key>,
    /// The label, if any.
    pub label: Option<Label>,
    /// The two ids of an MXNet image header.
    pub ids: Option<[u64; 2]>,
    /// The number of bytes of the record that are such a header; the payload follows it.
    pub header_length: usize,
}

impl Tags {
    /// No key, no label.
    pub fn none() -> Self {
        Self::default()
    }

    /// Sets the key.
    pub fn with_key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets the label.
    pub fn with_label(mut self, label: Label) -> Self {
        self.label = Some(label);
        self
    }
}

/// A value in a file header.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A string (usually UTF-8, not always).
    Text(BString),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => value.fmt(f),
            Value::Int(value) => value.fmt(f),
            Value::Uint(value) => value.fmt(f),
            Value::Text(value) => value.fmt(f),
        }
    }
}

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementType {
    /// Unsigned byte.
    U8,
    /// Signed byte.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
}

impl ElementType {
    /// All element types.
    pub const ALL: [ElementType; 6] = [
        ElementType::U8,
        ElementType::I8,
        ElementType::I16,
        ElementType::I32,
        ElementType::F32,
        ElementType::F64,
    ];

    /// Bytes per element.
    pub fn size(self) -> u64 {
        match self {
            ElementType::U8 | ElementType::I8 => 1,
            ElementType::I16 => 2,
            ElementType::I32 | ElementType::F32 => 4,
            ElementType::F64 => 8,
        }
    }

    /// The NumPy name.
    pub fn name(self) -> &'static str {
        match self {
            ElementType::U8 => "uint8",
            ElementType::I8 => "int8",
            ElementType::I16 => "int16",
            ElementType::I32 => "int32",
            ElementType::F32 => "float32",
            ElementType::F64 => "float64",
        }
    }

    /// The type with this NumPy name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|element| element.name() == name)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
