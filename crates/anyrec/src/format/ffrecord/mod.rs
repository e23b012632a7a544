//! FFRecord.
