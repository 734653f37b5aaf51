//! Numbers in narrow formats.
//!
//! Law: a number is rounded once, from its exact value, to the format by the given rounding mode.
//! If it is too large for the format, it becomes infinity, or the largest number if the conversion
//! saturates. NaN becomes the NaN of the format in which all bits except the sign are set, as in
//! the hardware.

use crate::program::operation::Rounding;

/// A binary floating-point format.
#[derive(Debug, Clone, Copy)]
pub(super) struct Narrow {
    /// The number of exponent bits.
    exponent: u32,
    /// The number of fraction bits.
    mantissa: u32,
    /// The bits of the greatest finite number, without the sign.
    greatest: u64,
    /// The bits of infinity; None if numbers saturate.
    infinity: Option<u64>,
}

pub(super) const F16: Narrow = Narrow { exponent: 5, mantissa: 10, greatest: 0x7bff, infinity: Some(0x7c00) };
pub(super) const BF16: Narrow = Narrow { exponent: 8, mantissa: 7, greatest: 0x7f7f, infinity: Some(0x7f80) };
pub(super) const E4M3: Narrow = Narrow { exponent: 4, mantissa: 3, greatest: 0x7e, infinity: None };
pub(super) const E5M2: Narrow = Narrow { exponent: 5, mantissa: 2, greatest: 0x7b, infinity: None };
pub(super) const F32: Narrow = Narrow { exponent: 8, mantissa: 23, greatest: 0x7f7f_ffff, infinity: Some(0x7f80_0000) };
pub(super) const F64: Narrow =
    Narrow { exponent: 11, mantissa: 52, greatest: 0x7fef_ffff_ffff_ffff, infinity: Some(0x7ff0_0000_0000_0000) };

impl Narrow {
    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// The number of bits.
    pub(super) fn bits(self) -> u32 {
        1 + self.exponent + self.mantissa
    }

    /// The sign bit of a number.
    fn sign(self, negative: bool) -> u64 {
        u64::from(negative) << (self.exponent + self.mantissa)
    }

    fn not_a_number(self) -> u64 {
        (1 << (self.exponent + self.mantissa)) - 1
    }

    /// The bits of `magnitude * 2^exponent` with a sign, rounded.
    fn round(self, negative: bool, magnitude: u64, exponent: i32, rounding: Rounding) -> u64 {
        let sign = self.sign(negative);
        if magnitude == 0 {
            return sign;
        }
        let top = exponent + 63 - magnitude.leading_zeros() as i32;
        // The weight of the last kept bit. Below the smallest normal number, it stays the same.
        let mut last = top.max(1 - self.bias()) - self.mantissa as i32;
        let dropped = last - exponent;
        let mut kept = if dropped <= 0 {
            // All bits are kept and fit: the highest is at or below the position of the leading
            // one.
            magnitude << dropped.unsigned_abs()
        } else {
            let dropped = dropped.unsigned_abs().min(66);
            let wide = u128::from(magnitude);
            let (kept, rest, half) = (wide >> dropped, wide & ((1 << dropped) - 1), 1_u128 << (dropped - 1));
            let up = match rounding {
                Rounding::Nearest => rest > half || (rest == half && kept & 1 == 1),
                Rounding::Zero => false,
                Rounding::Down => negative && rest > 0,
                Rounding::Up => !negative && rest > 0,
            };
            kept as u64 + u64::from(up)
        };
        if kept == 1 << (self.mantissa + 1) {
            kept >>= 1;
            last += 1;
        }
        if kept < 1 << self.mantissa {
            return sign | kept;
        }
        let field = u64::from((last + self.mantissa as i32 + self.bias()).unsigned_abs());
        let bits = (field << self.mantissa) + (kept - (1 << self.mantissa));
        if bits <= self.greatest { sign | bits } else { sign | self.beyond(negative, rounding) }
    }

    /// The result for a number that is too large.
    fn beyond(self, negative: bool, rounding: Rounding) -> u64 {
        let away = match rounding {
            Rounding::Nearest => true,
            Rounding::Zero => false,
            Rounding::Down => negative,
            Rounding::Up => !negative,
        };
        self.infinity.filter(|_| away).unwrap_or(self.greatest)
    }

    /// The bits of a number, rounded.
    pub(super) fn of_f64(self, value: f64, rounding: Rounding) -> u64 {
        if value.is_nan() {
            return self.not_a_number();
        }
        if value.is_infinite() {
            return self.sign(value < 0.0) | self.infinity.unwrap_or(self.greatest);
        }
        let bits = value.to_bits();
        let field = (bits >> 52 & 0x7ff) as i32;
        let fraction = bits & ((1 << 52) - 1);
        let magnitude = if field == 0 { fraction } else { fraction | 1 << 52 };
        self.round(value.is_sign_negative(), magnitude, field.max(1) - 1075, rounding)
    }

    /// The bits of an integer, rounded.
    pub(super) fn of_integer(self, value: i128, rounding: Rounding) -> u64 {
        let magnitude = u64::try_from(value.unsigned_abs()).unwrap_or(u64::MAX);
        self.round(value < 0, magnitude, 0, rounding)
    }

    /// The value of these bits, which is exact.
    pub(super) fn to_f64(self, bits: u64) -> f64 {
        let sign = if bits & self.sign(true) == 0 { 1.0 } else { -1.0 };
        let bits = bits & self.not_a_number();
        // E4M3 has one NaN and no infinity; the others, including E5M2, have both beyond their
        // largest number.
        if bits > self.greatest {
            let infinite = bits == self.greatest + 1 && bits & ((1 << self.mantissa) - 1) == 0;
            return if infinite { sign * f64::INFINITY } else { f64::NAN };
        }
        let (field, fraction) = (bits >> self.mantissa, bits & ((1 << self.mantissa) - 1));
        let magnitude = if field == 0 { fraction } else { fraction | 1 << self.mantissa };
        let exponent = field.max(1) as i32 - self.bias() - self.mantissa as i32;
        sign * magnitude as f64 * power_of_two(exponent)
    }
}

/// `2^exponent`, for exponents from -149 to 127.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023).unsigned_abs() as u64) << 52)
}

/// The nearest f16 with ties to even; an f32 is exact in f64.
pub(super) fn to_f16(value: f32) -> u16 {
    F16.of_f64(f64::from(value), Rounding::Nearest) as u16
}

/// The nearest bf16 with ties to even.
pub(super) fn to_bf16(value: f32) -> u16 {
    if value.is_nan() {
        return 0x7fff;
    }
    let bits = value.to_bits();
    // Adds half of the last kept bit, less one if that bit is 0: so ties go to even.
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

pub(super) fn from_f16(bits: u64) -> f32 {
    half::f16::from_bits(bits as u16).to_f32()
}

pub(super) fn from_bf16(bits: u64) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

/// `a * b + c` for operands of at most 26 bits, rounded to odd if it is not exact, so that a second
/// rounding to half as many bits is correct.
pub(super) fn multiply_add_to_odd(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    let sum = product + c;
    if !sum.is_finite() {
        return sum;
    }
    // The rounding error of the addition, exactly (Knuth's two-sum).
    let part = sum - product;
    let lost = (product - (sum - part)) + (c - part);
    if lost == 0.0 || sum.to_bits() & 1 == 1 {
        return sum;
    }
    // An even sum that is not exact: its neighbour on the side of the exact value is odd.
    let away = (lost > 0.0) == (sum > 0.0);
    f64::from_bits(if away { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
}
