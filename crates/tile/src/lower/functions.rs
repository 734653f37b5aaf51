//! Functions of numbers of a program as those of the kernel language.

use tilewright_kernel::{Element, Flag, Num};

use crate::program::{Binary, Comparison, Reduction, Unary};

pub(super) fn unary<'k>(function: Unary, x: Num<'k>) -> Num<'k> {
    match function {
        Unary::Negate => -x,
        Unary::Abs => x.abs(),
        Unary::Exp => x.exp(),
        Unary::Exp2 => x.exp2(),
        Unary::Log2 => x.log2(),
        Unary::Sqrt => x.sqrt(),
        Unary::Rsqrt => x.rsqrt(),
        Unary::Recip => x.recip(),
        Unary::Tanh => x.tanh(),
    }
}

pub(super) fn binary<'k>(function: Binary, a: Num<'k>, b: Num<'k>) -> Num<'k> {
    match function {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::Minimum => a.min(b),
        Binary::Maximum => a.max(b),
        Binary::And => a.bit_and(b),
        Binary::Or => a.bit_or(b),
        Binary::Xor => a.bit_xor(b),
        Binary::ShiftLeft => a.shift_left(b),
        Binary::ShiftRight => a.shift_right(b),
        Binary::ShiftDown => a.recast(Element::U32).shift_right(b).recast(Element::I32),
    }
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
