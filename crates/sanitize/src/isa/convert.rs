//! `cvt` between all types.
//!
//! Law: a conversion rounds the exact value of its operand once to the format of the result.
//! Integers that are too large for an integer type are truncated to its bits, or clamped with
//! `.sat`. Floating-point numbers that are too large for an integer type become its least or
//! greatest number. NaN becomes 0, or only the highest bit set if one of both types is f64 or a
//! 64-bit integer. With `.sat`, a floating-point result is in `[0, 1]`, and NaN becomes +0. With
//! `.relu`, a negative result becomes +0, and NaN stays. With `.satfinite`, a result that is too
//! large becomes the greatest number of its sign. The bits of NaN are those of an H200: a NaN of
//! f64 keeps its sign and its highest bits.
//!
//! A result has 64 bits: integers are extended by their sign, everything else by zeros.

use super::float::{NAN_F32, flush32};
use super::format::{BF16, E4M3, E5M2, Exact, F16, F32, F64, Format, Rounding, TF32, Value};
use super::half::Half;

/// The operand and result types of `cvt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NumberType {
    /// `.u8`
    U8,
    /// `.s8`
    S8,
    /// `.u16`
    U16,
    /// `.s16`
    S16,
    /// `.u32`
    U32,
    /// `.s32`
    S32,
    /// `.u64`
    U64,
    /// `.s64`
    S64,
    /// `.f16`
    F16,
    /// `.bf16`
    Bf16,
    /// `.f32`
    F32,
    /// `.f64`
    F64,
}

impl NumberType {
    /// The number of bits.
    #[inline(always)]
    pub const fn bits(self) -> u32 {
        match self {
            NumberType::U8 | NumberType::S8 => 8,
            NumberType::U16 | NumberType::S16 | NumberType::F16 | NumberType::Bf16 => 16,
            NumberType::U32 | NumberType::S32 | NumberType::F32 => 32,
            NumberType::U64 | NumberType::S64 | NumberType::F64 => 64,
        }
    }

    /// Whether it is an integer type with a sign.
    #[inline(always)]
    pub const fn is_signed(self) -> bool {
        matches!(self, NumberType::S8 | NumberType::S16 | NumberType::S32 | NumberType::S64)
    }

    /// The floating-point format; None for integers.
    #[inline(always)]
    pub const fn format(self) -> Option<Format> {
        match self {
            NumberType::F16 => Some(F16),
            NumberType::Bf16 => Some(BF16),
            NumberType::F32 => Some(F32),
            NumberType::F64 => Some(F64),
            _ => None,
        }
    }
}

/// The rounding of a `cvt`, and its other modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ConvertMode {
    /// `.rn`, `.rz` and so on, or `.rni`, `.rzi` and so on.
    pub rounding: Rounding,
    /// Whether a floating-point result is rounded to an integral number: `.rni` and so on between
    /// floating-point types.
    pub integral: bool,
    /// `.ftz`
    pub flush: bool,
    /// `.sat`
    pub saturate: bool,
    /// `.relu`
    pub relu: bool,
    /// `.satfinite`: a floating-point result that is too large or infinite becomes the greatest
    /// finite number of its format.
    pub finite: bool,
}

/// A mask of this many lowest bits.
#[inline(always)]
fn low(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// The lowest bits as an integer of a type.
#[inline(always)]
fn integer(bits: u64, of: NumberType) -> i128 {
    let up = bits << (64 - of.bits());
    if of.is_signed() { i128::from(up as i64 >> (64 - of.bits())) } else { i128::from(up >> (64 - of.bits())) }
}

/// The least and the greatest integer of a type.
#[inline(always)]
fn ends(of: NumberType) -> (i128, i128) {
    let bits = of.bits();
    if of.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// `cvt`.
///
/// ```
/// use tilewright_sanitize::isa::convert::{ConvertMode, NumberType, convert};
///
/// let mode = ConvertMode::default();
/// assert_eq!(convert(NumberType::F32, NumberType::F16, mode, 1.0_f32.to_bits().into()), 0x3c00);
/// assert_eq!(convert(NumberType::F32, NumberType::U8, mode, 300.0_f32.to_bits().into()), 255);
/// ```
#[inline]
pub fn convert(from: NumberType, to: NumberType, mode: ConvertMode, bits: u64) -> u64 {
    match (from.format(), to.format()) {
        (None, None) => {
            let value = integer(bits, from);
            let (least, greatest) = ends(to);
            let value = if mode.saturate { value.clamp(least, greatest) } else { value };
            integer(value as u64, to) as u64
        }
        (None, Some(format)) => {
            let result = format.round(Exact::integer(integer(bits, from)), mode.rounding);
            finish(result, to, format, mode)
        }
        (Some(format), None) => to_integer(flushed(bits, from, mode), from, format, to, mode),
        (Some(source), Some(target)) => between(flushed(bits, from, mode), (from, source), (to, target), mode),
    }
}

/// The lowest bits of a register. With `.ftz`, a subnormal f32 becomes 0.
#[inline(always)]
fn flushed(bits: u64, of: NumberType, mode: ConvertMode) -> u64 {
    match of {
        NumberType::F32 => flush32(bits as u32, mode.flush).into(),
        _ => bits & low(of.bits()),
    }
}

fn to_integer(bits: u64, from: NumberType, format: Format, to: NumberType, mode: ConvertMode) -> u64 {
    let (least, greatest) = ends(to);
    let value = match format.value(bits) {
        Value::Nan if from == NumberType::F64 || to.bits() == 64 => return integer(1 << (to.bits() - 1), to) as u64,
        Value::Nan => 0,
        Value::Infinite(true) => least,
        Value::Infinite(false) => greatest,
        Value::Finite(exact) => exact.rounded(mode.rounding).clamp(least, greatest),
    };
    value as u64
}

#[inline(always)]
fn between(
    bits: u64,
    (from, source): (NumberType, Format),
    (to, target): (NumberType, Format),
    mode: ConvertMode,
) -> u64 {
    let result = match (from, to) {
        _ if mode.integral && from == NumberType::F64 && source.value(bits) == Value::Nan => bits | 1 << 51,
        _ if mode.integral => {
            let whole = source.integral(bits, mode.rounding);
            if from == to { whole } else { target.of_value(source.value(whole), Rounding::Nearest) }
        }
        // A copy keeps all bits, also those of NaN, unless it flushes.
        _ if from == to && mode.flush && source.value(bits) == Value::Nan => target.nan(),
        _ if from == to => bits,
        // NaN of f64 keeps its sign and highest bits, and becomes quiet.
        (NumberType::F64, _) if source.value(bits) == Value::Nan => narrowed_nan(bits, target),
        (NumberType::F16, NumberType::F64) if source.value(bits) == Value::Nan => {
            (bits & 0x8000) << 48 | 0x7ff8 << 48 | (bits & 0x3ff) << 42
        }
        (NumberType::Bf16, NumberType::F32) => bits << 16,
        (NumberType::F16, NumberType::F32) => match source.value(bits) {
            Value::Nan => NAN_F32.into(),
            _ => Half::F16.widen(bits as u16).to_bits().into(),
        },
        (NumberType::F32, NumberType::F64) => widened(bits as u32),
        (NumberType::F32, NumberType::F16) if mode.rounding == Rounding::Nearest => {
            Half::F16.narrow(f32::from_bits(bits as u32)).into()
        }
        (NumberType::F32, NumberType::Bf16) if mode.rounding == Rounding::Nearest => {
            Half::Bf16.narrow(f32::from_bits(bits as u32)).into()
        }
        _ => target.of_value(source.value(bits), mode.rounding),
    };
    finish(result, to, target, mode)
}

/// NaN of f64 in a narrower format.
fn narrowed_nan(bits: u64, target: Format) -> u64 {
    let infinity = target.infinity(false);
    let fraction = infinity & infinity.wrapping_neg();
    let kept = (bits | 1 << 51) & ((1 << 52) - 1);
    (if bits >> 63 == 1 { target.sign() } else { 0 }) | infinity | kept >> (52 - fraction.trailing_zeros())
}

/// An f32 as f64. NaN keeps its bits.
#[inline(always)]
fn widened(bits: u32) -> u64 {
    let value = f32::from_bits(bits);
    if value.is_nan() {
        let (sign, fraction) = (u64::from(bits >> 31), u64::from(bits & 0x7f_ffff));
        return sign << 63 | 0x7ff8 << 48 | fraction << 29;
    }
    f64::from(value).to_bits()
}

/// Applies `.sat`, `.relu` and `.satfinite` to a rounded floating-point result.
#[inline(always)]
fn finish(bits: u64, to: NumberType, format: Format, mode: ConvertMode) -> u64 {
    let bits = if to == NumberType::F32 { flush32(bits as u32, mode.flush).into() } else { bits };
    if !mode.saturate && !mode.relu && !mode.finite {
        return bits;
    }
    let bits = if mode.finite && bits & (format.sign() - 1) == format.infinity(false) {
        bits & format.sign() | format.greatest()
    } else {
        bits
    };
    let nan = bits & (format.sign() - 1) > format.infinity(false);
    let negative = bits & format.sign() != 0;
    if mode.saturate {
        let one = format.round(Exact::integer(1), Rounding::Nearest);
        return if nan || negative { 0 } else { bits.min(one) };
    }
    if nan {
        format.nan()
    } else if negative && mode.relu {
        0
    } else {
        bits
    }
}

/// Two f32 as a pair of f16 or bf16, `upper` in the upper half: `cvt.f16x2.f32 d, upper, lower`.
#[inline]
pub fn pair_of_f32(to: Half, mode: ConvertMode, upper: u32, lower: u32) -> u32 {
    let to = match to {
        Half::F16 => NumberType::F16,
        Half::Bf16 => NumberType::Bf16,
    };
    let each = |bits: u32| convert(NumberType::F32, to, mode, bits.into()) as u32;
    each(upper) << 16 | each(lower)
}

/// Formats of one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quarter {
    /// `.e4m3`
    E4m3,
    /// `.e5m2`
    E5m2,
}

impl Quarter {
    /// The format.
    #[inline(always)]
    pub const fn format(self) -> Format {
        match self {
            Quarter::E4m3 => E4M3,
            Quarter::E5m2 => E5M2,
        }
    }

    /// The value of one byte.
    #[inline(always)]
    pub fn value(self, bits: u8) -> Value {
        self.format().value(bits.into())
    }

    /// Converts to one byte with `.satfinite`: a value that is too large or infinite becomes the
    /// greatest number.
    #[inline]
    fn narrow(self, value: Value, relu: bool) -> u16 {
        let format = self.format();
        let bits = match value {
            Value::Nan => return format.nan() as u16,
            Value::Infinite(negative) => (if negative { format.sign() } else { 0 }) | format.greatest(),
            Value::Finite(exact) => {
                let bits = format.round(exact, Rounding::Nearest);
                let magnitude = (bits & (format.sign() - 1)).min(format.greatest());
                bits & format.sign() | magnitude
            }
        };
        if relu && bits & format.sign() != 0 { 0 } else { bits as u16 }
    }
}

/// `cvt.rn.satfinite.e4m3x2.f32 d, upper, lower`, and the same to `e5m2x2`.
#[inline]
pub fn quarters_of_f32(to: Quarter, relu: bool, upper: u32, lower: u32) -> u16 {
    to.narrow(F32.value(upper.into()), relu) << 8 | to.narrow(F32.value(lower.into()), relu)
}

/// `cvt.rn.satfinite.e4m3x2.f16x2`, and the same to `e5m2x2`.
#[inline]
pub fn quarters_of_f16(to: Quarter, relu: bool, pair: u32) -> u16 {
    let each = |bits: u32| to.narrow(F16.value(u64::from(bits & 0xffff)), relu);
    each(pair >> 16) << 8 | each(pair)
}

/// `cvt.rn.f16x2.e4m3x2`, and the same from `e5m2x2`.
#[inline]
pub fn f16_of_quarters(from: Quarter, relu: bool, pair: u16) -> u32 {
    let each = |bits: u16| {
        let bits = F16.of_value(from.value(bits as u8), Rounding::Nearest) as u32;
        if relu && bits & 0x8000 != 0 { 0 } else { bits }
    };
    each(pair >> 8) << 16 | each(pair)
}

/// `cvt.tf32.f32`: the lowest 13 bits of the result are 0.
#[inline]
pub fn tf32(mode: ConvertMode, bits: u32) -> u32 {
    let value = F32.value(bits.into());
    if value == Value::Nan {
        // As on an H200: the upper bits of the NaN, or those of the canonical NaN.
        let keeps = mode.rounding == Rounding::NearestAway && !mode.relu;
        return if keeps { bits & 0xffff_e000 } else { NAN_F32 & 0xffff_e000 };
    }
    let rounded = TF32.of_value(value, mode.rounding);
    let is_infinite = rounded & (TF32.sign() - 1) == TF32.infinity(false);
    let rounded = if mode.finite && is_infinite { rounded & TF32.sign() | TF32.greatest() } else { rounded };
    let result = (rounded << 13) as u32;
    if mode.relu && result >> 31 == 1 { 0 } else { result }
}

/// `cvt.pack.sat`: two numbers of 32 bits, clamped to `width` bits (2, 4, 8 or 16), with `a` above
/// `b`. If `c` is given, its lowest bits are above both.
#[inline]
pub fn pack_sat(a: i32, b: i32, c: Option<u32>, width: u32, signed: bool) -> u32 {
    let (least, greatest) =
        if signed { (-(1_i64 << (width - 1)), (1_i64 << (width - 1)) - 1) } else { (0, (1_i64 << width) - 1) };
    let each = |value: i32| (i64::from(value).clamp(least, greatest) as u32) & low(width) as u32;
    let pair = each(a) << width | each(b);
    c.map_or(pair, |c| c.checked_shl(2 * width).unwrap_or(0) | pair)
}
