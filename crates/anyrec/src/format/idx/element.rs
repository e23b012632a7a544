//! The number types of IDX files and their encoding.

use crate::base::ElementType;

/// The element types of IDX files: `u8`, `i8`, `i16`, `i32`, `f32` and `f64`.
pub trait Element: sealed::Element {
    /// The type as named in files.
    const TYPE: ElementType;
}

mod sealed {
    pub trait Element: Copy + Send + Sync + 'static {
        /// Appends the elements decoded from big-endian bytes; an incomplete last element is
        /// ignored.
        fn decode(bytes: &[u8], elements: &mut Vec<Self>);

        /// Appends the elements' big-endian bytes.
        fn encode(elements: &[Self], bytes: &mut Vec<u8>);

        /// Converts to `f64`, exactly.
        fn number(self) -> f64;
    }
}

macro_rules! elements {
    ($($element:ident $variant:ident),*) => {$(
        impl Element for $element {
            const TYPE: ElementType = ElementType::$variant;
        }

        impl sealed::Element for $element {
            fn decode(bytes: &[u8], elements: &mut Vec<Self>) {
                let (chunks, _) = bytes.as_chunks();
                elements.extend(chunks.iter().map(|&chunk| Self::from_be_bytes(chunk)));
            }

            fn encode(elements: &[Self], bytes: &mut Vec<u8>) {
                const SIZE: usize = size_of::<$element>();
                let begin = bytes.len();
                bytes.resize(begin + elements.len() * SIZE, 0);
                let (chunks, _) = bytes.get_mut(begin..).unwrap_or_default().as_chunks_mut::<SIZE>();
                for (chunk, element) in chunks.iter_mut().zip(elements) {
                    *chunk = element.to_be_bytes();
                }
            }

            fn number(self) -> f64 {
                f64::from(self)
            }
        }
    )*};
}

elements!(u8 U8, i8 I8, i16 I16, i32 I32, f32 F32, f64 F64);

/// Decodes a number from big-endian bytes; `None` unless they are exactly one element.
///
/// ```
/// use anyrec::ElementType;
/// use anyrec::format::idx::{decode_number, encode_number};
///
/// assert_eq!(decode_number(&[0xff, 0xfe], ElementType::I16), Some(-2.0));
/// assert_eq!(encode_number(-2.0, ElementType::I16), Some(vec![0xff, 0xfe]));
/// assert_eq!(encode_number(256.0, ElementType::U8), None);
/// ```
pub fn decode_number(bytes: &[u8], dtype: ElementType) -> Option<f64> {
    match (numbers(dtype, bytes).as_slice(), bytes.len() as u64) {
        (&[number], length) if length == dtype.size() => Some(number),
        _ => None,
    }
}

/// Encodes a number as an element of that type, in big-endian bytes; `None` if the type cannot
/// represent it exactly (every float type can represent NaN).
pub fn encode_number(number: f64, dtype: ElementType) -> Option<Vec<u8>> {
    // Values out of range saturate and then fail the comparison below.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let bytes = match dtype {
        ElementType::U8 => (number as u8).to_be_bytes().to_vec(),
        ElementType::I8 => (number as i8).to_be_bytes().to_vec(),
        ElementType::I16 => (number as i16).to_be_bytes().to_vec(),
        ElementType::I32 => (number as i32).to_be_bytes().to_vec(),
        ElementType::F32 => (number as f32).to_be_bytes().to_vec(),
        ElementType::F64 => number.to_be_bytes().to_vec(),
    };
    let stored = decode_number(&bytes, dtype)?;
    (stored == number || (stored.is_nan() && number.is_nan())).then_some(bytes)
}

/// Decodes numbers from big-endian bytes.
pub(super) fn numbers(dtype: ElementType, bytes: &[u8]) -> Vec<f64> {
    fn read<T: Element>(bytes: &[u8]) -> Vec<f64> {
        let mut elements = Vec::new();
        T::decode(bytes, &mut elements);
        elements.into_iter().map(T::number).collect()
    }
    match dtype {
        ElementType::U8 => read::<u8>(bytes),
        ElementType::I8 => read::<i8>(bytes),
        ElementType::I16 => read::<i16>(bytes),
        ElementType::I32 => read::<i32>(bytes),
        ElementType::F32 => read::<f32>(bytes),
        ElementType::F64 => read::<f64>(bytes),
    }
}
