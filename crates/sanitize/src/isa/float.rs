//! f32 and f64: sums, products, quotients and square roots with all rounding modes.
//!
//! Law: results are rounded once from the exact value ([`super::format`]). With `.ftz`, subnormal
//! operands and results become 0 with their sign. With `.sat`, results are in `[0, 1]`, and NaN
//! becomes +0. A NaN result of f32 is `0x7fffffff`, also for `neg` and `abs`. A NaN result of f64
//! is the NaN of an operand, made quiet: of the second operand, else of the third, else of the
//! first. If no operand is NaN, it is `0xfff8000000000000`. An H200 has the same results.
//!
//! Rounding to nearest, which nearly all code uses, is the processor's own arithmetic, so that
//! loops over lanes become vector instructions. The `fma` of f32 is computed in f64 with rounding
//! to odd. The other modes use exact integers.

use super::format::{F32, F64, Rounding};

/// The rounding of a result, and the other modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FloatMode {
    /// `.rn`, `.rz`, `.rm` or `.rp`.
    pub rounding: Rounding,
    /// `.ftz`
    pub flush: bool,
    /// `.sat`
    pub saturate: bool,
}

/// The canonical NaN of f32.
pub const NAN_F32: u32 = 0x7fff_ffff;

/// With `flush`, a subnormal f32 becomes 0 with its sign.
#[inline(always)]
pub fn flush32(bits: u32, flush: bool) -> u32 {
    if flush && bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

/// The bits of an f32; NaN is the canonical one.
#[inline(always)]
pub(crate) fn canonical(value: f32) -> u32 {
    if value.is_nan() { NAN_F32 } else { value.to_bits() }
}

/// `.sat`: clamps to `[0, 1]`; NaN and -0 become +0.
#[inline(always)]
fn saturated(bits: u32) -> u32 {
    let value = f32::from_bits(bits);
    if value > 0.0 { value.min(1.0).to_bits() } else { 0 }
}

impl FloatMode {
    /// Applies `.ftz` and `.sat` to a result.
    #[inline(always)]
    pub(crate) fn finish(self, bits: u32) -> u32 {
        let bits = flush32(bits, self.flush);
        if self.saturate { saturated(bits) } else { bits }
    }

    /// Whether the processor uses this rounding.
    #[inline(always)]
    fn is_native(self) -> bool {
        matches!(self.rounding, Rounding::Nearest)
    }
}

/// `add.f32`.
#[inline(always)]
pub fn add32(a: u32, b: u32, mode: FloatMode) -> u32 {
    let (a, b) = (flush32(a, mode.flush), flush32(b, mode.flush));
    mode.finish(if mode.is_native() {
        canonical(f32::from_bits(a) + f32::from_bits(b))
    } else {
        F32.add(a.into(), b.into(), mode.rounding) as u32
    })
}

/// `sub.f32`.
#[inline(always)]
pub fn sub32(a: u32, b: u32, mode: FloatMode) -> u32 {
    add32(a, b ^ 0x8000_0000, mode)
}

/// `mul.f32`.
#[inline(always)]
pub fn mul32(a: u32, b: u32, mode: FloatMode) -> u32 {
    let (a, b) = (flush32(a, mode.flush), flush32(b, mode.flush));
    mode.finish(if mode.is_native() {
        canonical(f32::from_bits(a) * f32::from_bits(b))
    } else {
        F32.mul(a.into(), b.into(), mode.rounding) as u32
    })
}

/// `a * b + c` for operands whose product is exact in f64, rounded to odd: if the result is not
/// exact, it is the neighbour whose lowest bit is 1. A second rounding to at most 51 bits then has
/// the same result as rounding once.
#[inline(always)]
pub(crate) fn fma_to_odd(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    let sum = product + c;
    // The rounding error of the sum, exactly. It is NaN if an operand is infinite, and then no
    // comparison holds.
    let part = sum - product;
    let lost = (product - (sum - part)) + (c - part);
    let bits = sum.to_bits();
    let inexact = (lost < 0.0) | (lost > 0.0);
    let away = (lost > 0.0) == (sum > 0.0);
    let odd = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    f64::from_bits(if inexact & (bits & 1 == 0) { odd } else { bits })
}

/// `fma.f32`.
#[inline(always)]
pub fn fma32(a: u32, b: u32, c: u32, mode: FloatMode) -> u32 {
    let (a, b, c) = (flush32(a, mode.flush), flush32(b, mode.flush), flush32(c, mode.flush));
    mode.finish(if mode.is_native() {
        let [a, b, c] = [a, b, c].map(|bits| f64::from(f32::from_bits(bits)));
        canonical(fma_to_odd(a, b, c) as f32)
    } else {
        F32.fma(a.into(), b.into(), c.into(), mode.rounding) as u32
    })
}

/// `div.f32` with a rounding mode.
#[inline(always)]
pub fn div32(a: u32, b: u32, mode: FloatMode) -> u32 {
    let (a, b) = (flush32(a, mode.flush), flush32(b, mode.flush));
    mode.finish(if mode.is_native() {
        canonical(f32::from_bits(a) / f32::from_bits(b))
    } else {
        F32.div(a.into(), b.into(), mode.rounding) as u32
    })
}

/// `rcp.f32` with a rounding mode.
#[inline(always)]
pub fn rcp32(a: u32, mode: FloatMode) -> u32 {
    div32(1.0_f32.to_bits(), a, mode)
}

/// `sqrt.f32` with a rounding mode.
#[inline(always)]
pub fn sqrt32(a: u32, mode: FloatMode) -> u32 {
    let a = flush32(a, mode.flush);
    mode.finish(if mode.is_native() {
        canonical(f32::from_bits(a).sqrt())
    } else {
        F32.sqrt(a.into(), mode.rounding) as u32
    })
}

/// `neg.f32`.
#[inline(always)]
pub fn neg32(a: u32, flush: bool) -> u32 {
    let a = flush32(a, flush);
    if a & 0x7fff_ffff > 0x7f80_0000 { NAN_F32 } else { a ^ 0x8000_0000 }
}

/// `abs.f32`.
#[inline(always)]
pub fn abs32(a: u32, flush: bool) -> u32 {
    let a = flush32(a, flush);
    if a & 0x7fff_ffff > 0x7f80_0000 { NAN_F32 } else { a & 0x7fff_ffff }
}

/// How `min` and `max` treat NaN and signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ExtremeMode {
    /// Whether it is `max`. If not, it is `min`.
    pub max: bool,
    /// `.NaN`: the result is NaN if one operand is.
    pub nan: bool,
    /// `.xorsign.abs`: of the magnitudes, with the exclusive or of both signs.
    pub xorsign: bool,
    /// `.ftz`
    pub flush: bool,
}

/// Whether `min` or `max` selects `a`, for numbers that are given as integers of the same order.
#[inline(always)]
fn extreme(max: bool, a: i64, b: i64) -> bool {
    if max { a > b } else { a < b }
}

/// An f32 as an integer of the same order, with -0 below +0.
#[inline(always)]
fn rank32(bits: u32) -> i64 {
    let signed = bits as i32;
    i64::from(signed ^ ((signed >> 31) as u32 >> 1) as i32)
}

/// `min.f32` and `max.f32`. -0 is less than +0.
#[inline(always)]
pub fn extreme32(a: u32, b: u32, mode: ExtremeMode) -> u32 {
    let (mut a, mut b) = (flush32(a, mode.flush), flush32(b, mode.flush));
    let sign = (a ^ b) & 0x8000_0000;
    let (a_nan, b_nan) = (a & 0x7fff_ffff > 0x7f80_0000, b & 0x7fff_ffff > 0x7f80_0000);
    if mode.xorsign {
        a &= 0x7fff_ffff;
        b &= 0x7fff_ffff;
    }
    if (a_nan && b_nan) || (mode.nan && (a_nan || b_nan)) {
        return NAN_F32;
    }
    let first = b_nan || (!a_nan && extreme(mode.max, rank32(a), rank32(b)));
    let chosen = if first { a } else { b };
    if mode.xorsign { chosen | sign } else { chosen }
}

/// `copysign.f32`: `b` with the sign of `a`.
#[inline(always)]
pub fn copysign32(a: u32, b: u32) -> u32 {
    (a & 0x8000_0000) | (b & 0x7fff_ffff)
}

/// The property that `testp` tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TestProperty {
    /// Neither infinite nor NaN.
    Finite,
    /// Infinite.
    Infinite,
    /// Not NaN.
    Number,
    /// NaN.
    NotANumber,
    /// Neither infinite, NaN nor subnormal. 0 is normal, as on an H200.
    Normal,
    /// Subnormal.
    Subnormal,
}

/// `testp.f32`.
#[inline]
pub fn testp32(a: u32, property: TestProperty) -> bool {
    testp(f64::from(f32::from_bits(a)), f32::from_bits(a).is_subnormal(), property)
}

/// `testp.f64`.
#[inline]
pub fn testp64(a: u64, property: TestProperty) -> bool {
    testp(f64::from_bits(a), f64::from_bits(a).is_subnormal(), property)
}

fn testp(value: f64, subnormal: bool, property: TestProperty) -> bool {
    match property {
        TestProperty::Finite => value.is_finite(),
        TestProperty::Infinite => value.is_infinite(),
        TestProperty::Number => !value.is_nan(),
        TestProperty::NotANumber => value.is_nan(),
        TestProperty::Normal => value.is_finite() && !subnormal,
        TestProperty::Subnormal => subnormal,
    }
}

/// The NaN result of an operation on f64: that of the second operand, if it is NaN; else of a later
/// operand; else of the first. It is quiet.
#[inline(always)]
fn nan64(operands: &[u64]) -> u64 {
    let order = operands.iter().skip(1).chain(operands.first());
    let given = order.into_iter().find(|bits| f64::from_bits(**bits).is_nan());
    given.map_or(F64.nan(), |bits| bits | 1 << 51)
}

/// The bits of an f64 result. NaN is that of the hardware.
#[inline(always)]
fn finish64(value: u64, operands: &[u64]) -> u64 {
    if f64::from_bits(value).is_nan() { nan64(operands) } else { value }
}

/// `add.f64`.
#[inline(always)]
pub fn add64(a: u64, b: u64, rounding: Rounding) -> u64 {
    let sum = match rounding {
        Rounding::Nearest => (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
        _ => F64.add(a, b, rounding),
    };
    finish64(sum, &[a, b])
}

/// `sub.f64`.
#[inline(always)]
pub fn sub64(a: u64, b: u64, rounding: Rounding) -> u64 {
    let difference = match rounding {
        Rounding::Nearest => (f64::from_bits(a) - f64::from_bits(b)).to_bits(),
        _ => F64.add(a, b ^ 1 << 63, rounding),
    };
    finish64(difference, &[a, b])
}

/// `mul.f64`.
#[inline(always)]
pub fn mul64(a: u64, b: u64, rounding: Rounding) -> u64 {
    let product = match rounding {
        Rounding::Nearest => (f64::from_bits(a) * f64::from_bits(b)).to_bits(),
        _ => F64.mul(a, b, rounding),
    };
    finish64(product, &[a, b])
}

/// `fma.f64`.
#[inline]
pub fn fma64(a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
    let sum = match rounding {
        Rounding::Nearest => f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits(),
        _ => F64.fma(a, b, c, rounding),
    };
    finish64(sum, &[a, b, c])
}

/// `div.f64`.
#[inline(always)]
pub fn div64(a: u64, b: u64, rounding: Rounding) -> u64 {
    let quotient = match rounding {
        Rounding::Nearest => (f64::from_bits(a) / f64::from_bits(b)).to_bits(),
        _ => F64.div(a, b, rounding),
    };
    finish64(quotient, &[a, b])
}

/// `rcp.f64`.
#[inline(always)]
pub fn rcp64(a: u64, rounding: Rounding) -> u64 {
    div64(1.0_f64.to_bits(), a, rounding)
}

/// `sqrt.f64`.
#[inline(always)]
pub fn sqrt64(a: u64, rounding: Rounding) -> u64 {
    let root = match rounding {
        Rounding::Nearest => f64::from_bits(a).sqrt().to_bits(),
        _ => F64.sqrt(a, rounding),
    };
    finish64(root, &[a])
}

/// `min.f64` and `max.f64`. If one operand is NaN, the result is the other. -0 is less than +0.
#[inline(always)]
pub fn extreme64(a: u64, b: u64, max: bool) -> u64 {
    let rank = |bits: u64| (bits as i64) ^ ((bits as i64 >> 63) as u64 >> 1) as i64;
    let (a_nan, b_nan) = (f64::from_bits(a).is_nan(), f64::from_bits(b).is_nan());
    if a_nan && b_nan {
        return nan64(&[a, b]);
    }
    if b_nan || (!a_nan && extreme(max, rank(a), rank(b))) { a } else { b }
}

/// `copysign.f64`: `b` with the sign of `a`.
#[inline(always)]
pub fn copysign64(a: u64, b: u64) -> u64 {
    (a & 1 << 63) | (b & !(1 << 63))
}
