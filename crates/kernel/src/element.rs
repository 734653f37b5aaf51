//! Element types of tensors.
//!
//! Law: an element has a fixed number of bits, a power of two from 8 to 64. A register holds
//! adjacent elements, the first in the lowest bits, as memory does.

use std::fmt;

use half::{bf16, f16};

/// The element type of a tensor.
///
/// ```
/// use tilewright_kernel::Element;
///
/// assert_eq!((Element::Bf16.to_string().as_str(), Element::Bf16.bits()), ("bf16", 16));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Element {
    /// An unsigned integer of 8 bits.
    U8,
    /// A signed integer of 8 bits.
    I8,
    /// An unsigned integer of 16 bits.
    U16,
    /// A signed integer of 16 bits.
    I16,
    /// An unsigned integer of 32 bits.
    U32,
    /// A signed integer of 32 bits.
    I32,
    /// An unsigned integer of 64 bits.
    U64,
    /// A signed integer of 64 bits.
    I64,
    /// 8 bits: 4 exponent bits, 3 mantissa bits, no infinity.
    E4M3,
    /// 8 bits: 5 exponent bits, 2 mantissa bits.
    E5M2,
    /// IEEE half precision.
    F16,
    /// bfloat16: the upper half of an f32.
    Bf16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl Element {
    /// All types.
    pub const ALL: [Element; 14] = [
        Element::U8,
        Element::I8,
        Element::U16,
        Element::I16,
        Element::U32,
        Element::I32,
        Element::U64,
        Element::I64,
        Element::E4M3,
        Element::E5M2,
        Element::F16,
        Element::Bf16,
        Element::F32,
        Element::F64,
    ];

    /// The number of bits of an element.
    pub fn bits(self) -> u32 {
        match self {
            Element::U8 | Element::I8 | Element::E4M3 | Element::E5M2 => 8,
            Element::U16 | Element::I16 | Element::F16 | Element::Bf16 => 16,
            Element::U32 | Element::I32 | Element::F32 => 32,
            Element::U64 | Element::I64 | Element::F64 => 64,
        }
    }

    /// The number of bytes of an element.
    pub fn bytes(self) -> u32 {
        self.bits() / 8
    }

    /// The name: `f32`, `bf16`, `e4m3`, ...
    pub fn name(self) -> &'static str {
        match self {
            Element::U8 => "u8",
            Element::I8 => "i8",
            Element::U16 => "u16",
            Element::I16 => "i16",
            Element::U32 => "u32",
            Element::I32 => "i32",
            Element::U64 => "u64",
            Element::I64 => "i64",
            Element::E4M3 => "e4m3",
            Element::E5M2 => "e5m2",
            Element::F16 => "f16",
            Element::Bf16 => "bf16",
            Element::F32 => "f32",
            Element::F64 => "f64",
        }
    }

    /// The type of this name.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    ///
    /// assert_eq!(Element::named("bf16"), Some(Element::Bf16));
    /// assert_eq!(Element::named("bfloat"), None);
    /// ```
    pub fn named(name: &str) -> Option<Element> {
        Element::ALL.into_iter().find(|element| element.name() == name)
    }

    /// Whether it is a floating-point number.
    pub fn is_float(self) -> bool {
        matches!(self, Element::E4M3 | Element::E5M2 | Element::F16 | Element::Bf16 | Element::F32 | Element::F64)
    }

    /// Whether it is a signed integer.
    pub fn is_signed_integer(self) -> bool {
        matches!(self, Element::I8 | Element::I16 | Element::I32 | Element::I64)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type whose values are elements of tensors.
///
/// The bits of a value are those in device memory.
pub trait ElementType: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The type of the elements.
    const ELEMENT: Element;

    /// The bits, lowest first.
    fn to_bits(self) -> u64;

    /// The value with these bits; higher bits are ignored.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! element_types {
    ($($rust:ty, $element:ident, $to:expr, $from:expr;)*) => {
        $(
            impl sealed::Sealed for $rust {}

            impl ElementType for $rust {
                const ELEMENT: Element = Element::$element;

                #[inline]
                fn to_bits(self) -> u64 {
                    let to: fn($rust) -> u64 = $to;
                    to(self)
                }

                #[inline]
                fn from_bits(bits: u64) -> $rust {
                    let from: fn(u64) -> $rust = $from;
                    from(bits)
                }
            }
        )*
    };
}

element_types! {
    u8, U8, |value| u64::from(value), |bits| bits as u8;
    i8, I8, |value| u64::from(value as u8), |bits| bits as i8;
    u16, U16, |value| u64::from(value), |bits| bits as u16;
    i16, I16, |value| u64::from(value as u16), |bits| bits as i16;
    u32, U32, |value| u64::from(value), |bits| bits as u32;
    i32, I32, |value| u64::from(value as u32), |bits| bits as i32;
    u64, U64, |value| value, |bits| bits;
    i64, I64, |value| value as u64, |bits| bits as i64;
    f16, F16, |value| u64::from(value.to_bits()), |bits| f16::from_bits(bits as u16);
    bf16, Bf16, |value| u64::from(value.to_bits()), |bits| bf16::from_bits(bits as u16);
    f32, F32, |value| u64::from(value.to_bits()), |bits| f32::from_bits(bits as u32);
    f64, F64, |value| value.to_bits(), f64::from_bits;
}
