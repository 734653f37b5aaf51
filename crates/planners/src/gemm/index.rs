//! Arithmetic of index expressions, exact or refused; coordinates, and facts of sizes.

use tilewright_kernel::KernelError;
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Extent, LayoutError, Slot, Stride, Tree};

pub(crate) fn overflow() -> KernelError {
    LayoutError::Overflow { op: "product" }.into()
}
/// The quotient and the remainder of a division.
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

/// The first of several numbers that divides a size, as a fact about the size, in text.
pub(crate) fn fact(size: i64, by: &[i64]) -> String {
    by.iter().find(|by| size % **by == 0).map_or(String::new(), |by| format!("{{div={by}}}"))
}

/// The coordinate `(_,_,index)`.
pub(crate) fn at(index: &Expr) -> Result<Coord<Expr>, KernelError> {
    Ok(Tree::flat([Slot::All, Slot::All, Slot::At(index.clone())])?)
}

/// The coordinate `(row,column)`, with `_` for a missing column.
pub(crate) fn tile_at(row: &Expr, column: Option<&Expr>) -> Result<Coord<Expr>, KernelError> {
    let column = column.map_or(Slot::All, |column| Slot::At(column.clone()));
    Ok(Tree::flat([Slot::At(row.clone()), column])?)
}
