//! Arithmetic of index expressions, exact or refused.

use tilewright_kernel::KernelError;
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, LayoutError, Stride};

pub(crate) fn overflow() -> KernelError {
    LayoutError::Overflow { op: "product" }.into()
}
/// Quotient and remainder.
pub(crate) fn quotient(number: &Expr, by: &Expr) -> Result<(Expr, Expr), KernelError> {
    let quotient = number.floor_div(by).ok_or_else(overflow)?;
    let rest = number.minus(&times(&quotient, by)?).ok_or_else(overflow)?;
    Ok((quotient, rest))
}

pub(crate) fn plus(a: &Expr, b: &Expr) -> Result<Expr, KernelError> {
    Stride::plus(a, b).ok_or_else(overflow)
}

pub(crate) fn times(a: &Expr, b: &Expr) -> Result<Expr, KernelError> {
    Stride::times(a, b).ok_or_else(overflow)
}

pub(crate) fn minus(a: &Expr, b: &Expr) -> Result<Expr, KernelError> {
    a.minus(b).ok_or_else(overflow)
}
