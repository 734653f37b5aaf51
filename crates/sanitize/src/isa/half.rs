//! f16 and bf16, single and in pairs.
//!
//! Law: results are rounded once to nearest from the exact value. Sums and products are computed in
//! f32: its precision of 24 bits is at least twice 11 plus two, so rounding twice equals rounding
//! once. `fma` uses f64 with rounding to odd. With `.ftz` (f16), subnormal operands and results
//! become 0 with their sign. With `.sat`, results are in `[0, 1]`, and NaN becomes +0. With
//! `.relu`, negative results become +0, and NaN stays. A NaN result is `0x7fff`, also for `neg` and
//! `abs`. A result of `fma.ftz` that is subnormal before rounding is flushed, as on an H200.

use super::float::fma_to_odd;
use super::format::{BF16, Exact, F16, Format, Rounding, Value};

/// A format of 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Half {
    /// `.f16`
    F16,
    /// `.bf16`
    Bf16,
}

/// The modifiers of an operation besides rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct HalfMode {
    /// `.ftz`
    pub flush: bool,
    /// `.sat`
    pub saturate: bool,
    /// `.relu`
    pub relu: bool,
    /// `.oob` of `fma`: the result is +0 if a factor is the NaN, of either sign, with which tensor
    /// maps fill elements outside of the tensor.
    pub outside: bool,
}

/// The canonical NaN of both formats.
pub const NAN_16: u16 = 0x7fff;
/// The NaN with which tensor maps fill elements outside of the tensor, as on an H200.
pub const OUTSIDE_16: u16 = 0x7ff7;

impl Half {
    /// The format.
    #[inline(always)]
    pub const fn format(self) -> Format {
        match self {
            Half::F16 => F16,
            Half::Bf16 => BF16,
        }
    }

    /// The number as f32, which is exact.
    #[inline(always)]
    pub fn widen(self, bits: u16) -> f32 {
        match self {
            Half::F16 => half::f16::from_bits(bits).to_f32(),
            Half::Bf16 => f32::from_bits(u32::from(bits) << 16),
        }
    }

    /// An f32 rounded to nearest, ties to even.
    #[inline(always)]
    pub fn narrow(self, value: f32) -> u16 {
        if value.is_nan() {
            return NAN_16;
        }
        match self {
            Half::F16 => half::f16::from_f32(value).to_bits(),
            Half::Bf16 => {
                // Adds half of the last kept place, less one if that place is 0: so ties go to
                // even.
                let bits = value.to_bits();
                ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
            }
        }
    }

    #[inline(always)]
    fn flushed(self, bits: u16, flush: bool) -> u16 {
        let exponent = match self {
            Half::F16 => 0x7c00,
            Half::Bf16 => 0x7f80,
        };
        if flush && bits & exponent == 0 { bits & 0x8000 } else { bits }
    }

    #[inline(always)]
    fn is_nan(self, bits: u16) -> bool {
        let infinity = match self {
            Half::F16 => 0x7c00,
            Half::Bf16 => 0x7f80,
        };
        bits & 0x7fff > infinity
    }

    /// Applies the modifiers to a result.
    #[inline(always)]
    fn finish(self, bits: u16, mode: HalfMode) -> u16 {
        let bits = self.flushed(bits, mode.flush);
        let negative = bits & 0x8000 != 0;
        if mode.relu && negative && !self.is_nan(bits) {
            return 0;
        }
        if !mode.saturate {
            return bits;
        }
        let one = match self {
            Half::F16 => 0x3c00,
            Half::Bf16 => 0x3f80,
        };
        if negative || self.is_nan(bits) { 0 } else { bits.min(one) }
    }

    /// `add`.
    #[inline(always)]
    pub fn add(self, a: u16, b: u16, mode: HalfMode) -> u16 {
        let (a, b) = (self.flushed(a, mode.flush), self.flushed(b, mode.flush));
        self.finish(self.narrow(self.widen(a) + self.widen(b)), mode)
    }

    /// `sub`.
    #[inline(always)]
    pub fn sub(self, a: u16, b: u16, mode: HalfMode) -> u16 {
        self.add(a, b ^ 0x8000, mode)
    }

    /// `mul`.
    #[inline(always)]
    pub fn mul(self, a: u16, b: u16, mode: HalfMode) -> u16 {
        let (a, b) = (self.flushed(a, mode.flush), self.flushed(b, mode.flush));
        self.finish(self.narrow(self.widen(a) * self.widen(b)), mode)
    }

    /// `fma`.
    #[inline(always)]
    pub fn fma(self, a: u16, b: u16, c: u16, mode: HalfMode) -> u16 {
        if mode.outside && [a, b].iter().any(|factor| factor & 0x7fff == OUTSIDE_16) {
            return 0;
        }
        let [a, b, c] = [a, b, c].map(|bits| f64::from(self.widen(self.flushed(bits, mode.flush))));
        let sum = fma_to_odd(a, b, c);
        // A result that rounding would make normal is flushed before rounding.
        let tiny = mode.flush && sum.abs() < f64::from(self.widen(0x0400));
        let bits = of_f64(self, if tiny { sum * 0.0 } else { sum }, Rounding::Nearest);
        self.finish(bits, mode)
    }

    /// `neg`.
    #[inline(always)]
    pub fn neg(self, a: u16, flush: bool) -> u16 {
        if self.is_nan(a) { NAN_16 } else { self.flushed(a, flush) ^ 0x8000 }
    }

    /// `abs`.
    #[inline(always)]
    pub fn abs(self, a: u16, flush: bool) -> u16 {
        if self.is_nan(a) { NAN_16 } else { self.flushed(a, flush) & 0x7fff }
    }

    /// `min` and `max`, with the rules of f32.
    #[inline(always)]
    pub fn extreme(self, a: u16, b: u16, mode: super::float::ExtremeMode) -> u16 {
        let (mut a, mut b) = (self.flushed(a, mode.flush), self.flushed(b, mode.flush));
        let sign = (a ^ b) & 0x8000;
        let (a_nan, b_nan) = (self.is_nan(a), self.is_nan(b));
        if mode.xorsign {
            a &= 0x7fff;
            b &= 0x7fff;
        }
        if (a_nan && b_nan) || (mode.nan && (a_nan || b_nan)) {
            return NAN_16;
        }
        let rank = |bits: u16| (bits as i16) ^ ((bits as i16 >> 15) as u16 >> 1) as i16;
        let (rank_a, rank_b) = (rank(a), rank(b));
        let less = if mode.max { rank_a > rank_b } else { rank_a < rank_b };
        let chosen = if b_nan || (!a_nan && less) { a } else { b };
        if mode.xorsign { chosen | sign } else { chosen }
    }
}

/// Applies an operation to both halves of a register.
#[inline(always)]
pub fn pair1(a: u32, operation: impl Fn(u16) -> u16) -> u32 {
    u32::from(operation(a as u16)) | u32::from(operation((a >> 16) as u16)) << 16
}

/// Applies an operation to both halves of two registers.
#[inline(always)]
pub fn pair2(a: u32, b: u32, operation: impl Fn(u16, u16) -> u16) -> u32 {
    let upper = operation((a >> 16) as u16, (b >> 16) as u16);
    u32::from(operation(a as u16, b as u16)) | u32::from(upper) << 16
}

/// Applies an operation to both halves of three registers.
#[inline(always)]
pub fn pair3(a: u32, b: u32, c: u32, operation: impl Fn(u16, u16, u16) -> u16) -> u32 {
    let upper = operation((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16);
    u32::from(operation(a as u16, b as u16, c as u16)) | u32::from(upper) << 16
}

/// An f64 rounded once.
#[inline]
pub(crate) fn of_f64(kind: Half, value: f64, rounding: Rounding) -> u16 {
    let format = kind.format();
    if value.is_nan() {
        return NAN_16;
    }
    if value.is_infinite() {
        return format.infinity(value < 0.0) as u16;
    }
    let bits = value.to_bits();
    let field = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let magnitude = if field == 0 { fraction } else { fraction | 1 << 52 };
    let exact =
        Exact { negative: value.is_sign_negative(), magnitude: magnitude.into(), exponent: field.max(1) - 1075 };
    format.of_value(Value::Finite(exact), rounding) as u16
}
