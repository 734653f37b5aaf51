//! Sums of indices, and coordinates, in the kernels that are written by hand.

use tilewright_kernel::KernelError;
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Extent, LayoutError, Slot, Stride, Tree};

pub(super) fn over() -> KernelError {
    LayoutError::Overflow { op: "attention" }.into()
}

pub(super) fn plus(a: &Expr, b: &Expr) -> Result<Expr, KernelError> {
    Stride::plus(a, b).ok_or_else(over)
}

pub(super) fn minus(a: &Expr, b: &Expr) -> Result<Expr, KernelError> {
    a.minus(b).ok_or_else(over)
}

pub(super) fn times(a: &Expr, by: i64) -> Result<Expr, KernelError> {
    Stride::times(a, &Expr::from(by)).ok_or_else(over)
}

/// A coordinate: whole modes, and then these.
pub(super) fn behind(whole: usize, at: &[&Expr]) -> Result<Coord<Expr>, KernelError> {
    let all = std::iter::repeat_n(Slot::All, whole);
    Ok(Tree::flat(all.chain(at.iter().map(|at| Slot::At((*at).clone()))))?)
}
