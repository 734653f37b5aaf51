//! Approximations: `.approx` and `.full`.
//!
//! Law: the result is the exact value rounded to nearest (for f64, to the bits that the instruction
//! computes), which is within every bound that the PTX ISA states. The hardware may differ from it
//! in the last places. The argument of `sin` and `cos` is first multiplied by 1 / 2 pi in f32,
//! truncated toward 0, as on an H200; the ISA states nothing for large arguments. The results at
//! zeros, infinities and NaN are those of the ISA's tables. Values are computed in f64, and the
//! last of its 53 bits may be wrong. So the result is the nearest number, except for values that
//! are within 2^-50 of the middle between two numbers.

use super::float::{canonical, flush32};
use super::format::{BF16, F16, F32, Format, Rounding, Value};
use super::half::{Half, of_f64};

/// The approximated functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// `rcp.approx`
    Reciprocal,
    /// `sqrt.approx`
    SquareRoot,
    /// `rsqrt.approx`
    ReciprocalSquareRoot,
    /// `ex2.approx`
    Exp2,
    /// `lg2.approx`
    Log2,
    /// `sin.approx`
    Sine,
    /// `cos.approx`
    Cosine,
    /// `tanh.approx`
    Tanh,
}

impl Function {
    /// The value in f64.
    #[inline]
    pub(crate) fn of(self, a: f64) -> f64 {
        match self {
            Function::Reciprocal => 1.0 / a,
            Function::SquareRoot => a.sqrt(),
            Function::ReciprocalSquareRoot => 1.0 / a.sqrt(),
            Function::Exp2 => a.exp2(),
            Function::Log2 => a.log2(),
            Function::Sine => a.sin(),
            Function::Cosine => a.cos(),
            Function::Tanh => a.tanh(),
        }
    }
}

/// A function of f32.
///
/// ```
/// use tilewright_sanitize::isa::approximate::{Function, approx32};
///
/// let root = approx32(Function::ReciprocalSquareRoot, 4.0_f32.to_bits(), false);
/// assert_eq!(f32::from_bits(root), 0.5);
/// ```
#[inline]
pub fn approx32(function: Function, a: u32, flush: bool) -> u32 {
    let a = flush32(a, flush);
    let value = match function {
        Function::Sine | Function::Cosine => turned(function, a),
        _ => function.of(f64::from(f32::from_bits(a))),
    };
    flush32(canonical(value as f32), flush)
}

/// Sine and cosine. The argument in turns is the product with 1 / 2 pi, truncated to f32.
fn turned(function: Function, a: u32) -> f64 {
    const PER_TURN: u64 = 0x3e22_f983;
    let turns = f64::from(f32::from_bits(F32.mul(a.into(), PER_TURN, Rounding::Zero) as u32));
    // This subtraction is exact. A negative 0 keeps its sign.
    let part = turns - turns.round_ties_even();
    function.of(if part == 0.0 { part.copysign(turns) } else { part * std::f64::consts::TAU })
}

/// `div.approx.f32` and `div.full.f32`. If `|b|` is above 2^126, `.approx` gives 0, or NaN if `a`
/// is infinite.
#[inline]
pub fn div_approx32(a: u32, b: u32, full: bool, flush: bool) -> u32 {
    let (a, b) = (flush32(a, flush), flush32(b, flush));
    let (a, b) = (f32::from_bits(a), f32::from_bits(b));
    let quotient = a / b;
    let huge = !full && b.is_finite() && b.abs() > f32::from_bits(0x7e80_0000);
    let quotient = match huge {
        true if a.is_infinite() => f32::NAN,
        true => quotient * 0.0,
        false => quotient,
    };
    flush32(canonical(quotient), flush)
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: they read the upper 32 bits of the operand, and
/// compute the upper 32 bits of the result.
#[inline]
pub fn approx64(function: Function, a: u64) -> u64 {
    let flushed = |bits: u64| if bits & 0x7ff0_0000_0000_0000 == 0 { bits & 1 << 63 } else { bits };
    let upper = flushed(a & 0xffff_ffff_0000_0000);
    if f64::from_bits(a).is_nan() {
        return 0x7fff_ffff_0000_0000;
    }
    let value = function.of(f64::from_bits(upper));
    if value.is_nan() {
        return 0x7fff_ffff_0000_0000;
    }
    flushed(value.to_bits()) & 0xffff_ffff_0000_0000
}

/// `rsqrt.approx.f64`, which the assembler expands to many instructions. All bits but the last are
/// exact, and subnormal numbers are supported.
///
/// ```
/// use tilewright_sanitize::isa::approximate::rsqrt64;
///
/// assert_eq!(f64::from_bits(rsqrt64(0.25_f64.to_bits())), 2.0);
/// assert_eq!(f64::from_bits(rsqrt64(4)), 2.0_f64.powi(536));
/// ```
#[inline]
pub fn rsqrt64(a: u64) -> u64 {
    let a = f64::from_bits(a);
    let value = 1.0 / a.sqrt();
    if value.is_nan() { super::format::F64.nan() } else { value.to_bits() }
}

/// A function of f16 or bf16: `ex2.approx` and `tanh.approx`.
#[inline]
pub fn approx16(function: Function, kind: Half, a: u16, flush: bool) -> u16 {
    let format: Format = match kind {
        Half::F16 => F16,
        Half::Bf16 => BF16,
    };
    let a = if flush { format.flushed(a.into()) as u16 } else { a };
    let Value::Finite(_) = format.value(a.into()) else {
        let value = function.of(kind.widen(a).into());
        return of_f64(kind, value, Rounding::Nearest);
    };
    let bits = of_f64(kind, function.of(kind.widen(a).into()), Rounding::Nearest);
    if flush { format.flushed(bits.into()) as u16 } else { bits }
}
