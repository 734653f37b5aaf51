//! Numbers of the types of elements, as f64.
//!
//! Law: every number of these types is one of f64, and a sum, difference, product, quotient or root
//! of two of f32 that is rounded to f64 and then to f32 is rounded as once.

use half::{bf16, f16};
use tilewright_kernel::Element;

use crate::program::{Binary, Comparison, Unary};

/// The nearest number of a type; integers wrap around.
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

/// A number of one type in another: to nearest, to integers toward zero and to the nearer end, NaN
/// to 0.
pub(super) fn converted(value: f64, to: Element) -> f64 {
    match to {
        Element::I32 => f64::from(value as i32),
        Element::I8 => f64::from(value as i8),
        Element::U8 => f64::from(value as u8),
        to => rounded(value, to),
    }
}

/// An 8-bit floating-point type: mantissa bits, the exponent of the smallest normal number, and the
/// largest number.
type Narrow = (i32, i32, f64);

const E4M3: Narrow = (3, -6, 448.0);
const E5M2: Narrow = (2, -14, 57344.0);

/// The nearest number of a type, ties to even; saturates.
fn narrowed(value: f64, (digits, least, greatest): Narrow) -> f64 {
    if value.is_nan() || value == 0.0 {
        return value;
    }
    let exponent = ((value.abs().to_bits() >> 52) as i32 - 1023).max(least);
    let unit = 2.0_f64.powi(exponent - digits);
    ((value / unit).round_ties_even() * unit).clamp(-greatest, greatest)
}

/// The same bits as a number of another 32-bit type.
pub(super) fn recast(value: f64, to: Element) -> f64 {
    match to {
        Element::I32 => f64::from((value as f32).to_bits() as i32),
        _ => f64::from(f32::from_bits(value as i32 as u32)),
    }
}

/// Four bits of a word of i32.
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

/// The greater first: of f32 by sign, exponent and digits as if they were one number.
pub(super) fn descending(a: &f64, b: &f64) -> std::cmp::Ordering {
    b.total_cmp(a)
}

/// The error function by its series `2/sqrt(pi) e^(-x^2) (x + 2x^3/3 + 4x^5/15 + ..)`, all of whose
/// terms have one sign; from 6 on it is 1 in f64.
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

pub(super) fn unary(function: Unary, x: f64, element: Element) -> f64 {
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
    };
    // There is one zero among integers; among others the sign counts.
    let value = if element == Element::I32 { value + 0.0 } else { value };
    rounded(value, element)
}

/// The greatest whole number up to a quotient, and 0 over 0.
fn quotient(a: i32, b: i32) -> i32 {
    let toward_zero = a.checked_div(b).unwrap_or(if b == 0 { 0 } else { i32::MIN });
    let is_below = b != 0 && a.wrapping_sub(toward_zero.wrapping_mul(b)) != 0 && (a < 0) != (b < 0);
    toward_zero - i32::from(is_below)
}

pub(super) fn binary(function: Binary, a: f64, b: f64, element: Element) -> f64 {
    if element == Element::I32 {
        let (a, b) = (a as i32, b as i32);
        return f64::from(match function {
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
            Binary::ShiftLeft => a.checked_shl(b as u32).unwrap_or(0),
            Binary::ShiftRight => a >> (b as u32).min(31),
            Binary::ShiftDown => (a as u32).checked_shr(b as u32).unwrap_or(0) as i32,
        });
    }
    let value = match function {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::Minimum | Binary::Maximum if a.is_nan() || b.is_nan() => f64::NAN,
        // Of two zeros, the one whose sign decides.
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
        // Integers alone have these; the program was refused.
        Binary::And | Binary::Or | Binary::Xor | Binary::ShiftLeft | Binary::ShiftRight | Binary::ShiftDown => f64::NAN,
        Binary::Remainder => f64::NAN,
    };
    rounded(value, element)
}

pub(super) fn compares(comparison: Comparison, a: f64, b: f64) -> bool {
    match comparison {
        Comparison::Less => a < b,
        Comparison::LessEqual => a <= b,
        Comparison::Equal => a == b,
    }
}

/// `a b + c` in f32, rounded once.
pub(super) fn multiply_add(a: f64, b: f64, c: f64) -> f64 {
    f64::from((a as f32).mul_add(b as f32, c as f32))
}
