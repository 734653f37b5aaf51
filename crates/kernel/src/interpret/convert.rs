//! Conversions of one warp.
//!
//! Law: a conversion rounds the exact value of its operand once to the format of the result.
//! Integers that are too large for an integer format are truncated to its bits; floating-point
//! numbers that are too large become its least or greatest number. NaN becomes 0, or only the
//! highest bit set if one of both types is f64 or a 64-bit integer (PTX ISA, `cvt`).

use super::lanes::{Lanes, has_sign, low, one, signed};
use super::rounding::{BF16, E4M3, E5M2, F16, F32, F64, Narrow, from_f16, to_bf16, to_f16};
use crate::program::operation::{Format, Number, Rounding};

/// The kind of a format.
enum FormatKind {
    /// An integer: its number of bits, and whether it is signed.
    Integer(u32, bool),
    /// A floating-point number.
    Float(Narrow),
}

fn kind(format: Format) -> FormatKind {
    match format {
        Format::I8 => FormatKind::Integer(8, true),
        Format::U8 => FormatKind::Integer(8, false),
        Format::E4M3 => FormatKind::Float(E4M3),
        Format::E5M2 => FormatKind::Float(E5M2),
        Format::Number(Number::F16 | Number::F16x2) => FormatKind::Float(F16),
        Format::Number(Number::Bf16 | Number::Bf16x2) => FormatKind::Float(BF16),
        Format::Number(Number::F32) => FormatKind::Float(F32),
        Format::Number(Number::F64) => FormatKind::Float(F64),
        Format::Number(number) => FormatKind::Integer(number.bits(), has_sign(number)),
    }
}

/// The number of bits of a register for a format.
pub(crate) fn register_bits(format: Format) -> u32 {
    match format {
        Format::Number(number) => number.bits(),
        Format::I8 | Format::U8 | Format::E4M3 | Format::E5M2 => 16,
    }
}

fn float(narrow: Narrow, bits: u64) -> f64 {
    // The two formats that the host supports need no decoding.
    match narrow.bits() {
        64 => f64::from_bits(bits),
        32 => f64::from(f32::from_bits(bits as u32)),
        _ => narrow.to_f64(bits),
    }
}

/// a -> value
pub(super) fn convert(from: Format, to: Format, rounding: Rounding, a: &Lanes, out: &mut Lanes) {
    if from == to && !matches!(from, Format::I8 | Format::U8) {
        *out = *a;
        return;
    }
    // Registers of bytes have zeros in their upper half, as in PTX, whatever the sign is.
    let register = match to {
        Format::I8 | Format::U8 => low(8),
        other => low(register_bits(other)),
    };
    match (from, to, rounding) {
        (Format::Number(Number::F32), Format::Number(Number::Bf16), Rounding::Nearest) => {
            return one(a, out, |a| u64::from(to_bf16(f32::from_bits(a as u32))));
        }
        (Format::Number(Number::F32), Format::Number(Number::F16), Rounding::Nearest) => {
            return one(a, out, |a| u64::from(to_f16(f32::from_bits(a as u32))));
        }
        (Format::Number(Number::Bf16), Format::Number(Number::F32), _) => {
            return one(a, out, |a| (a & 0xffff) << 16);
        }
        (Format::Number(Number::F16), Format::Number(Number::F32), _) => {
            return one(a, out, |a| u64::from(from_f16(a).to_bits()));
        }
        _ => {}
    }
    match (kind(from), kind(to)) {
        (FormatKind::Integer(bits, sign), FormatKind::Integer(kept, with_sign)) => one(a, out, |a| {
            let value = if sign { signed(a, bits) as u64 } else { a & low(bits) };
            let value = if with_sign { signed(value, kept) as u64 } else { value & low(kept) };
            value & register
        }),
        (FormatKind::Integer(bits, sign), FormatKind::Float(narrow)) => one(a, out, |a| {
            let value = if sign { i128::from(signed(a, bits)) } else { i128::from(a & low(bits)) };
            narrow.of_integer(value, rounding)
        }),
        (FormatKind::Float(narrow), FormatKind::Integer(bits, sign)) => {
            let nothing = if narrow.bits() == 64 || bits == 64 { 1 << (bits - 1) } else { 0 };
            one(a, out, |a| match float(narrow, a) {
                value if value.is_nan() => nothing,
                value => to_integer(value, bits, sign, rounding) & register,
            });
        }
        (FormatKind::Float(narrow), FormatKind::Float(target)) => {
            one(a, out, |a| target.of_f64(float(narrow, a), rounding));
        }
    }
}

/// The integer nearest to a number, or the end of the range of integers with this many bits.
fn to_integer(value: f64, bits: u32, sign: bool, rounding: Rounding) -> u64 {
    let whole = match rounding {
        Rounding::Nearest => value.round_ties_even(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    };
    let (least, greatest) =
        if sign { (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1) } else { (0, (1_i128 << bits) - 1) };
    (whole as i128).clamp(least, greatest) as u64
}

/// low, high -> value
pub(super) fn convert_pair(to: Format, a: &Lanes, b: &Lanes, out: &mut Lanes) {
    let narrowed =
        |value: u64, narrow: Narrow| narrow.of_f64(f64::from(f32::from_bits(value as u32)), Rounding::Nearest);
    for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
        *out = match to {
            Format::E4M3 => narrowed(*a, E4M3) | narrowed(*b, E4M3) << 8,
            Format::E5M2 => narrowed(*a, E5M2) | narrowed(*b, E5M2) << 8,
            Format::Number(Number::Bf16) => {
                let bits = |value: u64| u64::from(to_bf16(f32::from_bits(value as u32)));
                bits(*a) | bits(*b) << 16
            }
            _ => narrowed(*a, F16) | narrowed(*b, F16) << 16,
        };
    }
}

/// pair -> value
pub(super) fn widen_pair(from: Format, a: &Lanes, out: &mut Lanes) {
    let narrow = if from == Format::E4M3 { E4M3 } else { E5M2 };
    let wide = |bits: u64| F16.of_f64(narrow.to_f64(bits), Rounding::Nearest);
    one(a, out, |a| wide(a & 0xff) | wide(a >> 8 & 0xff) << 16);
}

/// The exact value of an e4m3 number.
pub(super) fn from_e4m3(bits: u8) -> f32 {
    E4M3.to_f64(u64::from(bits)) as f32
}

/// The exact value of an e5m2 number.
pub(super) fn from_e5m2(bits: u8) -> f32 {
    E5M2.to_f64(u64::from(bits)) as f32
}
