//! Arithmetic of one warp.
//!
//! Law: integers wrap. Floating-point numbers are rounded once, to nearest with ties to even, and
//! subnormal numbers are kept. Sums, products, quotients and square roots of f16 and bf16 are
//! computed in f32: its precision of 24 bits is at least twice 11 plus two, so rounding twice
//! equals rounding once. `a * b + c` uses f64 with rounding to odd. Approximate instructions of the
//! hardware are computed in f64.

use super::lanes::{Lanes, has_sign, low, one, signed, three, two};
use super::rounding::{BF16, F16, from_bf16, from_f16, multiply_add_to_odd, to_bf16, to_f16};
use crate::program::operation::{Binary, Comparison, Number, Rounding, Unary};

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn bits_of_f32(value: f32) -> u64 {
    u64::from(value.to_bits())
}

/// A function of both halves of 32 bits.
fn halves(value: u64, f: impl Fn(u64) -> u64) -> u64 {
    (f(value & 0xffff) & 0xffff) | (f(value >> 16 & 0xffff) & 0xffff) << 16
}

/// A function of both halves of two 32-bit values.
fn halves_of_two(a: u64, b: u64, f: impl Fn(u64, u64) -> u64) -> u64 {
    (f(a & 0xffff, b & 0xffff) & 0xffff) | (f(a >> 16 & 0xffff, b >> 16 & 0xffff) & 0xffff) << 16
}

/// The sign bit of each number in a register.
fn signs(number: Number) -> u64 {
    match number {
        Number::F16 | Number::Bf16 => 0x8000,
        Number::F16x2 | Number::Bf16x2 => 0x8000_8000,
        Number::F32 => 0x8000_0000,
        _ => 1 << 63,
    }
}

/// `operation(a)`, for registers with the bits of `mask`.
pub(super) fn unary(operation: Unary, number: Number, mask: u64, a: &Lanes, out: &mut Lanes) {
    let bits = number.bits();
    match operation {
        Unary::Not => one(a, out, |a| !a & mask),
        Unary::CountOnes => one(a, out, |a| u64::from((a & low(bits)).count_ones())),
        Unary::CountLeadingZeros => one(a, out, |a| u64::from((a & low(bits)).leading_zeros() - (64 - bits))),
        Unary::Negate if number.is_float() => one(a, out, |a| a ^ signs(number)),
        Unary::Negate => one(a, out, |a| a.wrapping_neg() & low(bits)),
        Unary::Magnitude if number.is_float() => one(a, out, |a| a & !signs(number)),
        Unary::Magnitude if has_sign(number) => one(a, out, |a| signed(a, bits).unsigned_abs() & low(bits)),
        Unary::Magnitude => *out = *a,
        _ => match number {
            Number::F64 => one(a, out, |a| real(operation, f64::from_bits(a)).to_bits()),
            Number::F32 => one(a, out, |a| bits_of_f32(single(operation, f32_of(a)))),
            Number::F16 => one(a, out, |a| half_of(operation, a)),
            Number::Bf16 => one(a, out, |a| bfloat_of(operation, a)),
            Number::F16x2 => one(a, out, |a| halves(a, |a| half_of(operation, a))),
            Number::Bf16x2 => one(a, out, |a| halves(a, |a| bfloat_of(operation, a))),
            // Not defined for integers; the program was refused.
            _ => *out = [0; 32],
        },
    }
}

/// A function of a number, in f64.
fn real(operation: Unary, a: f64) -> f64 {
    match operation {
        Unary::Reciprocal => 1.0 / a,
        Unary::SquareRoot => a.sqrt(),
        Unary::ReciprocalSquareRoot => 1.0 / a.sqrt(),
        Unary::Exp2 => a.exp2(),
        Unary::Log2 => a.log2(),
        Unary::Sine => a.sin(),
        Unary::Cosine => a.cos(),
        Unary::HyperbolicTangent => a.tanh(),
        Unary::Floor => a.floor(),
        Unary::Ceiling => a.ceil(),
        Unary::RoundEven => a.round_ties_even(),
        _ => a,
    }
}

fn single(operation: Unary, a: f32) -> f32 {
    match operation {
        Unary::SquareRoot => return a.sqrt(),
        Unary::RoundTf32 => return tf32(a),
        _ => {}
    }
    let value = real(operation, f64::from(a)) as f32;
    if operation == Unary::Exp2 && value.is_subnormal() { 0.0 } else { value }
}

/// The nearest number of tf32, ties away from 0; infinity if that is too large.
fn tf32(a: f32) -> f32 {
    if a.is_nan() { f32::NAN } else { f32::from_bits((a.to_bits() + (1 << 12)) & !0x1fff) }
}

fn half_of(operation: Unary, a: u64) -> u64 {
    F16.of_f64(real(operation, f64::from(from_f16(a))), Rounding::Nearest)
}

fn bfloat_of(operation: Unary, a: u64) -> u64 {
    BF16.of_f64(real(operation, f64::from(from_bf16(a))), Rounding::Nearest)
}

/// `operation(a, b)`.
pub(super) fn binary(operation: Binary, number: Number, a: &Lanes, b: &Lanes, out: &mut Lanes) {
    match operation {
        Binary::And => two(a, b, out, |a, b| a & b),
        Binary::Or => two(a, b, out, |a, b| a | b),
        Binary::Xor => two(a, b, out, |a, b| a ^ b),
        _ => match number {
            Number::F32 => float(operation, a, b, out),
            Number::F64 => two(a, b, out, |a, b| double(operation, f64::from_bits(a), f64::from_bits(b)).to_bits()),
            Number::F16 => two(a, b, out, |a, b| half_of_two(operation, a, b)),
            Number::Bf16 => two(a, b, out, |a, b| bfloat_of_two(operation, a, b)),
            Number::F16x2 => two(a, b, out, |a, b| halves_of_two(a, b, |a, b| half_of_two(operation, a, b))),
            Number::Bf16x2 => two(a, b, out, |a, b| halves_of_two(a, b, |a, b| bfloat_of_two(operation, a, b))),
            _ => integer(operation, number, a, b, out),
        },
    }
}

fn integer(operation: Binary, number: Number, a: &Lanes, b: &Lanes, out: &mut Lanes) {
    let bits = number.bits();
    let mask = low(bits);
    let sign = has_sign(number);
    match operation {
        Binary::Add => two(a, b, out, |a, b| a.wrapping_add(b) & mask),
        Binary::Subtract => two(a, b, out, |a, b| a.wrapping_sub(b) & mask),
        Binary::Multiply => two(a, b, out, |a, b| a.wrapping_mul(b) & mask),
        _ => two(a, b, out, |a, b| integer_of_two(operation, bits, sign, a, b)),
    }
}

/// An operation on integers with some number of bits.
pub(super) fn integer_of_two(operation: Binary, bits: u32, sign: bool, a: u64, b: u64) -> u64 {
    let mask = low(bits);
    let (sa, sb) = (signed(a, bits), signed(b, bits));
    match operation {
        Binary::Add => a.wrapping_add(b) & mask,
        Binary::Subtract => a.wrapping_sub(b) & mask,
        Binary::Multiply => a.wrapping_mul(b) & mask,
        Binary::MultiplyHigh if sign => ((i128::from(sa) * i128::from(sb)) >> bits) as u64 & mask,
        Binary::MultiplyHigh => ((u128::from(a) * u128::from(b)) >> bits) as u64 & mask,
        Binary::MultiplyWide if sign => sa.wrapping_mul(sb) as u64,
        Binary::MultiplyWide => a.wrapping_mul(b),
        Binary::Divide if b == 0 => 0,
        Binary::Divide if sign => sa.wrapping_div(sb) as u64 & mask,
        Binary::Divide => a / b,
        Binary::Remainder if b == 0 => a,
        Binary::Remainder if sign => sa.wrapping_rem(sb) as u64 & mask,
        Binary::Remainder => a % b,
        Binary::Minimum | Binary::MinimumNan if sign => sa.min(sb) as u64 & mask,
        Binary::Minimum | Binary::MinimumNan => a.min(b),
        Binary::Maximum | Binary::MaximumNan if sign => sa.max(sb) as u64 & mask,
        Binary::Maximum | Binary::MaximumNan => a.max(b),
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::ShiftLeft => (a & mask).checked_shl(b as u32).filter(|_| (b as u32) < bits).unwrap_or(0) & mask,
        Binary::ShiftRight if sign => (sa >> (b as u32).min(bits - 1)) as u64 & mask,
        Binary::ShiftRight => (a & mask).checked_shr(b as u32).unwrap_or(0),
    }
}

fn float(operation: Binary, a: &Lanes, b: &Lanes, out: &mut Lanes) {
    match operation {
        Binary::Add => two(a, b, out, |a, b| bits_of_f32(f32_of(a) + f32_of(b))),
        Binary::Subtract => two(a, b, out, |a, b| bits_of_f32(f32_of(a) - f32_of(b))),
        Binary::Multiply => two(a, b, out, |a, b| bits_of_f32(f32_of(a) * f32_of(b))),
        _ => two(a, b, out, |a, b| bits_of_f32(float_of_two(operation, f32_of(a), f32_of(b)))),
    }
}

fn float_of_two(operation: Binary, a: f32, b: f32) -> f32 {
    match operation {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        // The result is one of the two numbers, so f64 is exact as well.
        _ => double(operation, f64::from(a), f64::from(b)) as f32,
    }
}

fn double(operation: Binary, a: f64, b: f64) -> f64 {
    match operation {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::MinimumNan | Binary::MaximumNan if a.is_nan() || b.is_nan() => f64::NAN,
        _ if a.is_nan() => b,
        _ if b.is_nan() => a,
        // -0 is less than +0.
        Binary::Minimum | Binary::MinimumNan if a < b || (a == b && a.is_sign_negative()) => a,
        Binary::Minimum | Binary::MinimumNan => b,
        _ if a > b || (a == b && a.is_sign_positive()) => a,
        _ => b,
    }
}

fn half_of_two(operation: Binary, a: u64, b: u64) -> u64 {
    u64::from(to_f16(float_of_two(operation, from_f16(a), from_f16(b))))
}

fn bfloat_of_two(operation: Binary, a: u64, b: u64) -> u64 {
    u64::from(to_bf16(float_of_two(operation, from_bf16(a), from_bf16(b))))
}

/// `a * b + c`.
pub(super) fn multiply_add(number: Number, a: &Lanes, b: &Lanes, c: &Lanes, out: &mut Lanes) {
    let half = |a, b, c| {
        let sum = multiply_add_to_odd(from_f16(a).into(), from_f16(b).into(), from_f16(c).into());
        F16.of_f64(sum, Rounding::Nearest)
    };
    let bfloat = |a, b, c| {
        let sum = multiply_add_to_odd(from_bf16(a).into(), from_bf16(b).into(), from_bf16(c).into());
        BF16.of_f64(sum, Rounding::Nearest)
    };
    match number {
        Number::F32 => three(a, b, c, out, |a, b, c| bits_of_f32(f32_of(a).mul_add(f32_of(b), f32_of(c)))),
        Number::F64 => {
            three(a, b, c, out, |a, b, c| f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits())
        }
        Number::F16 => three(a, b, c, out, half),
        Number::Bf16 => three(a, b, c, out, bfloat),
        Number::F16x2 => three(a, b, c, out, |a, b, c| {
            half(a & 0xffff, b & 0xffff, c & 0xffff) | half(a >> 16, b >> 16, c >> 16) << 16
        }),
        Number::Bf16x2 => three(a, b, c, out, |a, b, c| {
            bfloat(a & 0xffff, b & 0xffff, c & 0xffff) | bfloat(a >> 16, b >> 16, c >> 16) << 16
        }),
        _ => three(a, b, c, out, |a, b, c| a.wrapping_mul(b).wrapping_add(c) & low(number.bits())),
    }
}

/// `a * b + c` of two integers of 32 bits and one of 64.
pub(super) fn multiply_add_wide(number: Number, a: &Lanes, b: &Lanes, c: &Lanes, out: &mut Lanes) {
    let sign = has_sign(number);
    three(a, b, c, out, |a, b, c| integer_of_two(Binary::MultiplyWide, 32, sign, a, b).wrapping_add(c));
}

/// 1 if the comparison holds, otherwise 0.
pub(super) fn compare(comparison: Comparison, number: Number, a: &Lanes, b: &Lanes, out: &mut Lanes) {
    let bits = number.bits();
    match number {
        Number::F32 => two(a, b, out, |a, b| holds(comparison, f32_of(a).partial_cmp(&f32_of(b)))),
        Number::F64 => {
            two(a, b, out, |a, b| holds(comparison, f64::from_bits(a).partial_cmp(&f64::from_bits(b))));
        }
        Number::F16 => two(a, b, out, |a, b| holds(comparison, from_f16(a).partial_cmp(&from_f16(b)))),
        Number::Bf16 => two(a, b, out, |a, b| holds(comparison, from_bf16(a).partial_cmp(&from_bf16(b)))),
        _ if has_sign(number) => {
            two(a, b, out, |a, b| holds(comparison, Some(signed(a, bits).cmp(&signed(b, bits)))));
        }
        _ => two(a, b, out, |a, b| holds(comparison, Some(a.cmp(&b)))),
    }
}

/// Whether a comparison holds, given the order of its sides; None if one is NaN.
fn holds(comparison: Comparison, order: Option<std::cmp::Ordering>) -> u64 {
    let holds = match (comparison, order) {
        (Comparison::NotEqual, None) => true,
        (_, None) => false,
        (Comparison::Equal, Some(order)) => order.is_eq(),
        (Comparison::NotEqual, Some(order)) => order.is_ne(),
        (Comparison::Less, Some(order)) => order.is_lt(),
        (Comparison::LessEqual, Some(order)) => order.is_le(),
        (Comparison::Greater, Some(order)) => order.is_gt(),
        (Comparison::GreaterEqual, Some(order)) => order.is_ge(),
    };
    u64::from(holds)
}
