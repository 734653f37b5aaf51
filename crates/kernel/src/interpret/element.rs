//! Elements as numbers of f64.
//!
//! Law: [`Element::to_f64`] is exact, except for 64-bit integers, and [`Element::of_f64`] converts
//! its result back to the same bits, except for NaN and for the infinities of E5M2: out-of-range
//! numbers saturate there, as in the hardware's conversion.

use super::rounding::{BF16, E4M3, E5M2, F16, F32};
use crate::element::Element;
use crate::program::operation::Rounding;

impl Element {
    /// The number with these bits. Higher bits are ignored. For 64-bit integers, it is the nearest
    /// number of f64.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    ///
    /// assert_eq!(Element::Bf16.to_f64(0x3fc0), 1.5);
    /// assert_eq!(Element::I8.to_f64(0xff), -1.0);
    /// ```
    pub fn to_f64(self, bits: u64) -> f64 {
        match self {
            Element::U8 => f64::from(bits as u8),
            Element::I8 => f64::from(bits as i8),
            Element::U16 => f64::from(bits as u16),
            Element::I16 => f64::from(bits as i16),
            Element::U32 => f64::from(bits as u32),
            Element::I32 => f64::from(bits as i32),
            Element::U64 => bits as f64,
            Element::I64 => bits as i64 as f64,
            Element::E4M3 => E4M3.to_f64(bits & 0xff),
            Element::E5M2 => E5M2.to_f64(bits & 0xff),
            Element::F16 => F16.to_f64(bits & 0xffff),
            Element::Bf16 => BF16.to_f64(bits & 0xffff),
            Element::F32 => f64::from(f32::from_bits(bits as u32)),
            Element::F64 => f64::from_bits(bits),
        }
    }

    /// The bits of the nearest number to a value, ties to even. Numbers beyond the largest one
    /// become infinity, or the largest number in 8-bit types. NaN becomes 0 in integer types.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    ///
    /// assert_eq!(Element::F16.of_f64(1.0), 0x3c00);
    /// assert_eq!(Element::U8.of_f64(300.0), 255);
    /// ```
    pub fn of_f64(self, value: f64) -> u64 {
        let whole = value.round_ties_even();
        let nearest = Rounding::Nearest;
        match self {
            Element::U8 => u64::from(whole as u8),
            Element::I8 => u64::from(whole as i8 as u8),
            Element::U16 => u64::from(whole as u16),
            Element::I16 => u64::from(whole as i16 as u16),
            Element::U32 => u64::from(whole as u32),
            Element::I32 => u64::from(whole as i32 as u32),
            Element::U64 => whole as u64,
            Element::I64 => whole as i64 as u64,
            Element::E4M3 => E4M3.of_f64(value, nearest),
            Element::E5M2 => E5M2.of_f64(value, nearest),
            Element::F16 => F16.of_f64(value, nearest),
            Element::Bf16 => BF16.of_f64(value, nearest),
            Element::F32 => F32.of_f64(value, nearest),
            Element::F64 => value.to_bits(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_there_and_back() {
        for element in Element::ALL.into_iter().filter(|element| element.bits() <= 16) {
            for bits in 0..1_u64 << element.bits() {
                let value = element.to_f64(bits);
                if value.is_nan() || (element == Element::E5M2 && value.is_infinite()) {
                    continue;
                }
                assert_eq!(element.of_f64(value), bits, "of {element} is {value}");
            }
        }
        assert_eq!((Element::E5M2.to_f64(0x7c), Element::E5M2.of_f64(f64::INFINITY)), (f64::INFINITY, 0x7b));
        assert_eq!((Element::I32.of_f64(-1.0), Element::I32.to_f64(0xffff_ffff)), (0xffff_ffff, -1.0));
        assert_eq!((Element::F64.to_f64(Element::F64.of_f64(0.1)), Element::I8.of_f64(1000.0)), (0.1, 127));
    }
}
