//! Sums of indices, and coordinates, in the kernels that are written by hand.

use tilewright_kernel::{Build, KernelError, Num};
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

/// Where the accumulators of this thread begin in a product whose warps are along the rows, 16 rows
/// each.
pub(super) struct OfThread<'k>(Num<'k>);

impl<'k> OfThread<'k> {
    pub(super) fn of(k: &'k Build) -> Result<OfThread<'k>, KernelError> {
        Ok(OfThread(k.index(&k.thread()?)?))
    }

    /// The row of the first accumulator.
    pub(super) fn row(&self) -> Num<'k> {
        let [two, four, five, lanes] = [2, 4, 5, 31].map(|number| self.0.like(f64::from(number)));
        self.0.shift_right(five).shift_left(four) + self.0.bit_and(lanes).shift_right(two)
    }

    /// The number of the warp.
    pub(super) fn warp(&self) -> Num<'k> {
        self.0.shift_right(self.0.like(5.0))
    }

    /// The row of the first accumulator in the rows of the warp.
    pub(super) fn row_of_warp(&self) -> Num<'k> {
        let [two, lanes] = [2, 31].map(|number| self.0.like(f64::from(number)));
        self.0.bit_and(lanes).shift_right(two)
    }

    /// The column of the first accumulator: one of even columns.
    pub(super) fn column(&self) -> Num<'k> {
        let [two, three] = [2, 3].map(|number| self.0.like(f64::from(number)));
        self.0.bit_and(three) * two
    }
}
