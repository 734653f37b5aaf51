//! Lowers functions of numbers to those of the kernel language.

use tilewright_kernel::{Element, Flag, Num};

use super::smooth;
use crate::program::{Binary, Comparison, Reduction, Unary};

pub(super) fn unary<'k>(function: Unary, x: Num<'k>) -> Num<'k> {
    match function {
        Unary::Negate => -x,
        Unary::Abs => x.abs(),
        Unary::Exp => x.exp(),
        Unary::Exp2 => x.exp2(),
        Unary::Log2 => x.log2(),
        Unary::Sqrt => x.sqrt(),
        // Two rounded operations, because the instruction for f64 is approximate.
        Unary::Rsqrt if x.element() == Element::F64 => x.sqrt().recip(),
        Unary::Rsqrt => x.rsqrt(),
        Unary::Recip => x.recip(),
        Unary::Tanh => x.tanh(),
        Unary::Log => x.log2() * x.like(std::f64::consts::LN_2),
        Unary::Erf => smooth::erf(x),
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => x.round_even(),
        Unary::Tf32 => x.round_tf32(),
        // All values of a thread are computed together, by `smooth::sines`.
        Unary::Sin | Unary::Cos => x,
    }
}

pub(super) fn binary<'k>(function: Binary, a: Num<'k>, b: Num<'k>) -> Num<'k> {
    match function {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide if !a.element().is_float() => divided(a, b)[0],
        Binary::Divide => a / b,
        Binary::Remainder => divided(a, b)[1],
        Binary::Minimum => a.min(b),
        Binary::Maximum => a.max(b),
        Binary::And => a.bit_and(b),
        Binary::Or => a.bit_or(b),
        Binary::Xor => a.bit_xor(b),
        Binary::ShiftLeft => a.shift_left(places(b)),
        Binary::ShiftRight => a.shift_right(places(b)),
        Binary::ShiftDown => {
            let element = a.element();
            let own = if element == Element::I64 { Element::U64 } else { Element::U32 };
            a.recast(own).shift_right(places(b)).recast(element)
        }
    }
}

/// A shift count. A count of 64 bits is clamped to 32 bits; a count beyond the width shifts all
/// bits out.
fn places(b: Num<'_>) -> Num<'_> {
    match b.element() {
        Element::I64 => {
            let own = b.recast(Element::U64);
            own.min(own.like(64.0)).to(Element::U32)
        }
        _ => b,
    }
}

/// Quotient and remainder of integers, rounded down. The hardware rounds toward zero, and its
/// result is unspecified for a divisor of 0 and for the least number over -1.
fn divided<'k>(a: Num<'k>, b: Num<'k>) -> [Num<'k>; 2] {
    let zero = a.like(0.0);
    let (is_zero, is_minus) = (b.eq(zero), b.eq(a.like(-1.0)));
    let by = is_zero.or(is_minus).select(a.like(1.0), b);
    let quotient = a / by;
    let rest = a - quotient * by;
    let is_below = rest.bit_xor(by).lt(zero).and(rest.eq(zero).not());
    let below = quotient - a.like(1.0);
    let quotient = is_zero.select(zero, is_minus.select(-a, is_below.select(below, quotient)));
    [quotient, is_zero.select(a, is_below.select(rest + by, rest))]
}

/// Quotient and remainder for a divisor that is known and positive. `word` makes numbers of i32.
pub(super) fn divided_by<'k>(a: Num<'k>, by: i32, word: impl Fn(u32) -> Num<'k>) -> [Num<'k>; 2] {
    let divisor = a.like(by.into());
    if by.count_ones() == 1 {
        return [a.shift_right(word(by.trailing_zeros())), a.bit_and(divisor - a.like(1.0))];
    }
    let quotient = a / divisor;
    let rest = a - quotient * divisor;
    // All bits are 1 if the remainder is negative.
    let sign = rest.shift_right(word(a.element().bits() - 1));
    [quotient + sign, rest + sign.bit_and(divisor)]
}

pub(super) fn compared<'k>(comparison: Comparison, a: Num<'k>, b: Num<'k>) -> Flag<'k> {
    match comparison {
        Comparison::Less => a.lt(b),
        Comparison::LessEqual => a.le(b),
        Comparison::Equal => a.eq(b),
    }
}

pub(super) fn reductions(reduction: Reduction) -> tilewright_kernel::Reduction {
    match reduction {
        Reduction::Sum => tilewright_kernel::Reduction::Sum,
        Reduction::Product => tilewright_kernel::Reduction::Product,
        Reduction::Minimum => tilewright_kernel::Reduction::Minimum,
        Reduction::Maximum => tilewright_kernel::Reduction::Maximum,
    }
}
