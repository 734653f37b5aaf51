//! The types of the values that instructions read and write.
//!
//! Law: a type has one name and one width in bits. The name is the one in the names of instructions
//! (`F32`, `BF16`, `S8`), and parses to the type.

use core::str::FromStr;

use crate::atoms::error::AtomError;
use crate::ground::words::words;

words! {
    /// The type of one value of an operand.
    ///
    /// ```
    /// use tilewright_layout::atoms::ValueType;
    ///
    /// assert_eq!((ValueType::BF16.name(), ValueType::BF16.bits()), ("BF16", 16));
    /// assert_eq!("E4M3".parse::<ValueType>().unwrap(), ValueType::E4M3);
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum ValueType {
        /// A sum of complex products as three sums of [`ValueType::F64`] (Gauss).
        GC64 = "GC64",
        /// A complex number of two [`ValueType::F64`].
        C64 = "C64",
        /// IEEE binary64.
        F64 = "F64",
        /// IEEE binary32.
        F32 = "F32",
        /// A binary32 number of which the instruction reads 19 bits; it occupies 32 bits.
        TF32 = "TF32",
        /// A signed integer of 32 bits.
        S32 = "S32",
        /// IEEE binary16.
        F16 = "F16",
        /// The upper half of a binary32.
        BF16 = "BF16",
        /// A signed integer of 16 bits.
        S16 = "S16",
        /// 8 bits: 4 of exponent, 3 of mantissa.
        E4M3 = "E4M3",
        /// 8 bits: 5 of exponent, 2 of mantissa.
        E5M2 = "E5M2",
        /// A power of two in 8 bits, as a scale factor.
        UE8M0 = "UE8M0",
        /// 8 bits without a sign: 4 of exponent, 3 of mantissa, as a scale factor.
        UE4M3 = "UE4M3",
        /// A signed integer of 8 bits.
        S8 = "S8",
        /// An unsigned integer of 8 bits.
        U8 = "U8",
        /// 6 bits: 3 of exponent, 2 of mantissa.
        E3M2 = "E3M2",
        /// 6 bits: 2 of exponent, 3 of mantissa.
        E2M3 = "E2M3",
        /// 4 bits: 2 of exponent, 1 of mantissa.
        E2M1 = "E2M1",
        /// A signed integer of 4 bits.
        S4 = "S4",
        /// An unsigned integer of 4 bits.
        U4 = "U4",
        /// One bit.
        U1 = "U1",
    }
}

impl ValueType {
    /// The number of bits of a value.
    pub fn bits(self) -> i64 {
        match self {
            ValueType::GC64 => 192,
            ValueType::C64 => 128,
            ValueType::F64 => 64,
            ValueType::F32 | ValueType::TF32 | ValueType::S32 => 32,
            ValueType::F16 | ValueType::BF16 | ValueType::S16 => 16,
            ValueType::E4M3 | ValueType::E5M2 | ValueType::UE8M0 | ValueType::UE4M3 => 8,
            ValueType::S8 | ValueType::U8 => 8,
            ValueType::E3M2 | ValueType::E2M3 => 6,
            ValueType::E2M1 | ValueType::S4 | ValueType::U4 => 4,
            ValueType::U1 => 1,
        }
    }
}

impl FromStr for ValueType {
    type Err = AtomError;

    /// Parses a name in upper or lower case.
    fn from_str(text: &str) -> Result<ValueType, AtomError> {
        let found = ValueType::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| AtomError::unknown("value type", text, ValueType::ALL.map(ValueType::name)))
    }
}
