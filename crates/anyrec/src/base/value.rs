//! The small values that records and files carry besides their bytes.

use bstr::BString;
use std::fmt;

/// A record's key, where the format (or its index file) has keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A whole number.
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

/// A record's label. Numbers are kept as `f64`, which holds every `f32` exactly.
#[derive(Debug, Clone, PartialEq)]
pub enum Label {
    /// One number.
    Scalar(f64),
    /// Several.
    Array(Vec<f64>),
}

/// What belongs to a record besides its bytes.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Tags {
    /// The key, if any.
    pub key: Option<Key>,
    /// The label, if any.
    pub label: Option<Label>,
    /// The two ids of an MXNet image header.
    pub ids: Option<[u64; 2]>,
    /// How many bytes of the record are such a header; the payload follows it.
    pub header_length: usize,
}

impl Tags {
    /// No key, no label.
    pub fn none() -> Self {
        Self::default()
    }

    /// These tags with that key.
    pub fn with_key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// These tags with that label.
    pub fn with_label(mut self, label: Label) -> Self {
        self.label = Some(label);
        self
    }
}

/// A value of a file header's pair.
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
    /// All of them.
    pub const ALL: [ElementType; 6] = [
        ElementType::U8,
        ElementType::I8,
        ElementType::I16,
        ElementType::I32,
        ElementType::F32,
        ElementType::F64,
    ];

    /// Bytes an element takes.
    pub fn size(self) -> u64 {
        match self {
            ElementType::U8 | ElementType::I8 => 1,
            ElementType::I16 => 2,
            ElementType::I32 | ElementType::F32 => 4,
            ElementType::F64 => 8,
        }
    }

    /// NumPy's name for it.
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

    /// The type of that NumPy name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|element| element.name() == name)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
