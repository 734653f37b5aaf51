//! Numbers of the element types.
//!
//! Law: every number of these types is representable in f64, except those of i64, which are kept as
//! bits. A sum, difference, product, quotient or square root of numbers of f32 that is rounded to
//! f64 and then to f32 equals the result rounded once.

use half::{bf16, f16};
use tilewright_kernel::Element;

use crate::program::{Binary, Comparison, Unary};

/// 2^53: whole numbers below it in magnitude convert to f64 and back without loss.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// A number of a tile: the bits of an i64 for that type, and the bits of the value as f64 for all
/// others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number(u64);

impl Number {
    /// A number of any type except i64.
    pub(crate) fn real(value: f64) -> Number {
        Number(value.to_bits())
    }

    /// A number of i64.
    pub(super) fn whole(value: i64) -> Number {
        Number(value as u64)
    }

    /// The value of a number whose type is not i64.
    pub(crate) fn to_real(self) -> f64 {
        f64::from_bits(self.0)
    }

    /// The value of a number of i64.
    pub(super) fn to_whole(self) -> i64 {
        self.0 as i64
    }

    /// The nearest number of a type. Integers of 64 bits saturate, and narrower ones wrap.
    pub(crate) fn of(value: f64, element: Element) -> Number {
        match element {
            Element::I64 => Number::whole(value as i64),
            element => Number::real(rounded(value, element)),
        }
    }

    /// The nearest number of a type, or the infinity of a type that has one; None for an i64 that
    /// f64 may not represent exactly.
    pub(crate) fn exact(value: f64, element: Element) -> Option<Number> {
        if element == Element::E5M2 && value.is_infinite() {
            return Some(Number::real(value));
        }
        let fits = element != Element::I64 || (value.fract() == 0.0 && value.abs() < WHOLE);
        fits.then(|| Number::of(value, element))
    }

    /// The value as f64; None for an i64 that f64 may not represent exactly.
    pub(crate) fn value(self, element: Element) -> Option<f64> {
        match element {
            Element::I64 => Some(self.to_whole() as f64).filter(|value| value.abs() < WHOLE),
            _ => Some(self.to_real()),
        }
    }

    /// The number with these bits in memory.
    pub(crate) fn of_bits(bits: u64, element: Element) -> Number {
        if element == Element::I64 { Number(bits) } else { Number::real(element.to_f64(bits)) }
    }

    /// The bits of the number in memory.
    pub(crate) fn to_bits(self, element: Element) -> u64 {
        if element == Element::I64 { self.0 } else { element.of_f64(self.to_real()) }
    }

    /// The value of an i32 or i64.
    pub(super) fn integer(self, element: Element) -> i64 {
        if element == Element::I64 { self.to_whole() } else { self.to_real() as i64 }
    }
}

/// The nearest number of a type that is not i64; integers wrap around.
pub(super) fn rounded(value: f64, element: Element) -> f64 {
    match element {
        Element::F32 => f64::from(value as f32),
        Element::F16 => f16::from_f64(value).to_f64(),
        Element::Bf16 => bf16::from_f64(value).to_f64(),
        Element::I32 => f64::from(value as i64 as i32),
        Element::I8 => f64::from(value as i64 as i8),
        Element::U8 => f64::from(value as i64 as u8),
        Element::E4M3 => narrowed(value, E4M3),
        Element::E5M2 => narrowed(value, E5M2),
        _ => value,
    }
}

/// Converts a number to another type: to floating point to nearest, and from floating point to
/// integers toward zero with saturation. Conversions between integers keep the lowest bits. NaN
/// becomes 0, or only the highest bit set if one of both types is f64 or i64.
pub(super) fn converted(value: Number, from: Element, to: Element) -> Number {
    if from == Element::I64 {
        let value = value.to_whole();
        return match to {
            Element::I64 => Number::whole(value),
            Element::I32 => Number::real(f64::from(value as i32)),
            Element::F32 => Number::real(f64::from(value as f32)),
            _ => Number::real(value as f64),
        };
    }
    let value = value.to_real();
    let is_wide = from == Element::F64;
    match to {
        Element::I64 if value.is_nan() => Number::whole(i64::MIN),
        Element::I64 => Number::whole(value as i64),
        Element::I32 if value.is_nan() && is_wide => Number::real(f64::from(i32::MIN)),
        Element::I32 => Number::real(f64::from(value as i32)),
        Element::I8 => Number::real(f64::from(value as i8)),
        Element::U8 => Number::real(f64::from(value as u8)),
        to => Number::real(rounded(value, to)),
    }
}

/// An 8-bit floating-point type: mantissa bits, the exponent of the smallest normal number, and the
/// largest number.
type Narrow = (i32, i32, f64);

const E4M3: Narrow = (3, -6, 448.0);
const E5M2: Narrow = (2, -14, 57344.0);

/// The nearest number of a type, with ties to even. It saturates.
fn narrowed(value: f64, (digits, least, greatest): Narrow) -> f64 {
    if value.is_nan() || value == 0.0 {
        return value;
    }
    let exponent = ((value.abs().to_bits() >> 52) as i32 - 1023).max(least);
    let unit = 2.0_f64.powi(exponent - digits);
    ((value / unit).round_ties_even() * unit).clamp(-greatest, greatest)
}

/// The same bits as a number of another type of the same width.
pub(super) fn recast(value: Number, to: Element) -> Number {
    match to {
        Element::I32 => Number::real(f64::from((value.to_real() as f32).to_bits() as i32)),
        Element::F32 => Number::real(f64::from(f32::from_bits(value.to_real() as i32 as u32))),
        // An i64 and an f64 are stored as their bits.
        _ => value,
    }
}

/// A 4-bit integer of a word of i32.
pub(super) fn nibble(word: f64, at: usize, signed: bool) -> f64 {
    let bits = (word as i32 as u32) >> (4 * at) & 15;
    f64::from(if signed && bits > 7 { bits as i32 - 16 } else { bits as i32 })
}

/// A word of Philox4x32-10 (Salmon et al., 2011) of the counter `(c,0,0,0)` and the key `(s,0)`.
pub(super) fn random(counter: f64, seed: f64, word: u8) -> f64 {
    let mut words = [counter as i32 as u32, 0, 0, 0];
    let mut key = [seed as i32 as u32, 0];
    for _ in 0..10 {
        let product = |a: u32, b: u32| {
            let whole = u64::from(a) * u64::from(b);
            [(whole >> 32) as u32, whole as u32]
        };
        let ([high0, low0], [high1, low1]) = (product(0xd251_1f53, words[0]), product(0xcd9e_8d57, words[2]));
        words = [high1 ^ words[1] ^ key[0], low1, high0 ^ words[3] ^ key[1], low0];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    f64::from(words.get(usize::from(word)).copied().unwrap_or(0) as i32)
}

/// A comparison for descending order. Floating-point numbers are ordered by their bits, as a
/// sign-magnitude integer, so that NaNs have a place.
pub(super) fn descending(element: Element) -> impl Fn(&Number, &Number) -> std::cmp::Ordering {
    move |a, b| match element {
        Element::I64 => b.to_whole().cmp(&a.to_whole()),
        _ => b.to_real().total_cmp(&a.to_real()),
    }
}

/// The error function by the series `2/sqrt(pi) e^(-x^2) (x + 2x^3/3 + 4x^5/15 + ..)`, all of whose
/// terms have the same sign. From 6 on, the result is 1 in f64.
fn erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 6.0 {
        return if x.is_nan() { x } else { x.signum() };
    }
    let (mut term, mut sum, mut at) = (x, x, 1.0);
    while term.abs() > sum.abs() * f64::EPSILON / 4.0 {
        at += 2.0;
        term *= 2.0 * x * x / at;
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// The nearest number with 11 significant bits and the exponent range of f32; ties away from 0.
fn tf32(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    // Below the smallest normal number of f32, the spacing stays the same.
    let exponent = ((x.abs().to_bits() >> 52) as i32 - 1023).max(-126);
    let unit = 2.0_f64.powi(exponent - 10);
    let near = (x / unit).round() * unit;
    if near.abs() >= 2.0_f64.powi(128) { x.signum() * f64::INFINITY } else { near }
}

pub(super) fn unary(function: Unary, x: Number, element: Element) -> Number {
    if element == Element::I64 {
        let x = x.to_whole();
        // Other functions of integers were refused.
        return Number::whole(if function == Unary::Negate { x.wrapping_neg() } else { x.wrapping_abs() });
    }
    let x = x.to_real();
    let value = match function {
        Unary::Negate => -x,
        Unary::Abs => x.abs(),
        Unary::Exp => x.exp(),
        Unary::Exp2 => x.exp2(),
        Unary::Log2 => x.log2(),
        Unary::Sqrt => x.sqrt(),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        Unary::Recip => 1.0 / x,
        Unary::Tanh => x.tanh(),
        Unary::Log => x.ln(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Erf => erf(x),
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => x.round_ties_even(),
        Unary::Tf32 => tf32(x),
    };
    // Integers have one zero. For floating-point numbers, the sign of zero counts.
    let value = if element == Element::I32 { value + 0.0 } else { value };
    Number::real(rounded(value, element))
}

/// The quotient of integers, rounded down; 0 if the divisor is 0.
fn quotient(a: i64, b: i64) -> i64 {
    let toward_zero = a.checked_div(b).unwrap_or(if b == 0 { 0 } else { i64::MIN });
    let is_below = b != 0 && a.wrapping_sub(toward_zero.wrapping_mul(b)) != 0 && (a < 0) != (b < 0);
    toward_zero - i64::from(is_below)
}

/// The result of a function of 32-bit or 64-bit integers, before it wraps.
fn of_integers(function: Binary, a: i64, b: i64, bits: u32) -> i64 {
    let (own, shift) = match bits {
        64 => (a as u64, b as u64),
        _ => (u64::from(a as u32), u64::from(b as u32)),
    };
    let shift = u32::try_from(shift).unwrap_or(u32::MAX);
    let is_shifted_out = shift >= bits;
    match function {
        Binary::Add => a.wrapping_add(b),
        Binary::Subtract => a.wrapping_sub(b),
        Binary::Multiply => a.wrapping_mul(b),
        Binary::Divide => quotient(a, b),
        Binary::Remainder => a.wrapping_sub(quotient(a, b).wrapping_mul(b)),
        Binary::Minimum => a.min(b),
        Binary::Maximum => a.max(b),
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::ShiftRight => a >> shift.min(bits - 1),
        Binary::ShiftLeft | Binary::ShiftDown if is_shifted_out => 0,
        Binary::ShiftLeft => a << shift,
        Binary::ShiftDown => (own >> shift) as i64,
    }
}

pub(super) fn binary(function: Binary, a: Number, b: Number, element: Element) -> Number {
    match element {
        Element::I32 => {
            let value = of_integers(function, a.integer(element), b.integer(element), 32);
            return Number::real(f64::from(value as i32));
        }
        Element::I64 => return Number::whole(of_integers(function, a.to_whole(), b.to_whole(), 64)),
        _ => {}
    }
    let (a, b) = (a.to_real(), b.to_real());
    let value = match function {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::Minimum | Binary::Maximum if a.is_nan() || b.is_nan() => f64::NAN,
        // If both are zeros, their signs decide.
        Binary::Minimum if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        Binary::Maximum if a == b => {
            if a.is_sign_negative() {
                b
            } else {
                a
            }
        }
        Binary::Minimum => a.min(b),
        Binary::Maximum => a.max(b),
        // These exist for integers alone. For other types, the program was refused.
        Binary::And | Binary::Or | Binary::Xor | Binary::ShiftLeft | Binary::ShiftRight | Binary::ShiftDown => f64::NAN,
        Binary::Remainder => f64::NAN,
    };
    Number::real(rounded(value, element))
}

pub(super) fn compares(comparison: Comparison, a: Number, b: Number, element: Element) -> bool {
    if element == Element::I64 {
        let (a, b) = (a.to_whole(), b.to_whole());
        return match comparison {
            Comparison::Less => a < b,
            Comparison::LessEqual => a <= b,
            Comparison::Equal => a == b,
        };
    }
    let (a, b) = (a.to_real(), b.to_real());
    match comparison {
        Comparison::Less => a < b,
        Comparison::LessEqual => a <= b,
        Comparison::Equal => a == b,
    }
}

/// `a * b + c` in f32 or f64, rounded once.
pub(super) fn multiply_add([a, b, c]: [Number; 3], element: Element) -> Number {
    let [a, b, c] = [a, b, c].map(Number::to_real);
    Number::real(match element {
        Element::F64 => a.mul_add(b, c),
        _ => f64::from((a as f32).mul_add(b as f32, c as f32)),
    })
}
