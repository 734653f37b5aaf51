//! Types of elements and of scalar arguments.
//!
//! Law: a type has one name, that of PTX, and one size in bytes.

use std::fmt;

use bytemuck::Pod;
use half::{bf16, f16};

mod sealed {
    pub trait Sealed {}
}

/// An element type that both the device and the host support.
pub trait Element: sealed::Sealed + Pod + Send + Sync + fmt::Debug {
    /// The element type.
    const TYPE: ElementType;
}

macro_rules! elements {
    ($($(#[$about:meta])* $name:ident $kind:ty: $text:literal;)+) => {
        /// The type of an element or a scalar.
        ///
        /// ```
        /// use tilewright_gpu::{Element, ElementType};
        ///
        /// assert_eq!((f32::TYPE, f32::TYPE.bytes(), f32::TYPE.name()), (ElementType::F32, 4, "f32"));
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ElementType {
            $($(#[$about])* $name,)+
        }

        impl ElementType {
            /// All types.
            pub const ALL: &[ElementType] = &[$(ElementType::$name),+];

            /// The size in bytes.
            pub const fn bytes(self) -> usize {
                match self {
                    $(ElementType::$name => size_of::<$kind>(),)+
                }
            }

            /// The name, as in PTX.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ElementType::$name => $text,)+
                }
            }
        }

        $(
            impl sealed::Sealed for $kind {}

            impl Element for $kind {
                const TYPE: ElementType = ElementType::$name;
            }
        )+
    };
}

elements! {
    /// An unsigned integer of 8 bits; also used for floating-point numbers of 8 bits, which the
    /// host lacks.
    U8 u8: "u8";
    /// A signed integer of 8 bits.
    S8 i8: "s8";
    /// An unsigned integer of 16 bits.
    U16 u16: "u16";
    /// A signed integer of 16 bits.
    S16 i16: "s16";
    /// IEEE half precision.
    F16 f16: "f16";
    /// bfloat16: the upper half of an f32.
    BF16 bf16: "bf16";
    /// An unsigned integer of 32 bits.
    U32 u32: "u32";
    /// A signed integer of 32 bits.
    S32 i32: "s32";
    /// IEEE single precision.
    F32 f32: "f32";
    /// An unsigned integer of 64 bits.
    U64 u64: "u64";
    /// A signed integer of 64 bits.
    S64 i64: "s64";
    /// IEEE double precision.
    F64 f64: "f64";
}

impl ElementType {
    /// Whether it is a floating-point number.
    pub const fn is_float(self) -> bool {
        matches!(self, ElementType::F16 | ElementType::BF16 | ElementType::F32 | ElementType::F64)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
