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
        _ => value,
    }
}

/// A number of one type in another: to nearest, to integers toward zero and to the nearer end, NaN
/// to 0.
pub(super) fn converted(value: f64, to: Element) -> f64 {
    match to {
        Element::I32 => f64::from(value as i32),
        to => rounded(value, to),
    }
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
    };
    // There is one zero among integers.
    rounded(value + 0.0 * f64::from(element == Element::I32), element)
}

pub(super) fn binary(function: Binary, a: f64, b: f64, element: Element) -> f64 {
    if element == Element::I32 {
        let (a, b) = (a as i32, b as i32);
        return f64::from(match function {
            Binary::Add => a.wrapping_add(b),
            Binary::Subtract => a.wrapping_sub(b),
            Binary::Multiply => a.wrapping_mul(b),
            Binary::Divide => 0,
            Binary::Minimum => a.min(b),
            Binary::Maximum => a.max(b),
        });
    }
    let value = match function {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        // Of two zeros the one with the sign that counts.
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
