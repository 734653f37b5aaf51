//! A part of the work of a launch: an output tile and a range of k-tiles.

use crate::gemm::implicit::Boxed;
use crate::gemm::index::minus;
use tilewright_kernel::{KernelError, View};
use tilewright_layout::symbolic::Expr;

/// A part of the work.
pub(crate) struct Unit {
    /// The tile along the rows.
    pub(crate) row: Expr,
    /// The tile along the columns.
    pub(crate) column: Expr,
    /// The matrix of the batch.
    pub(crate) matrix: Option<Expr>,
    /// Which of the splits of K, where there are several.
    pub(crate) split: Option<Expr>,
    /// The first k-tile.
    pub(crate) first: Expr,
    /// How many steps.
    pub(crate) steps: Expr,
    /// The rows of a group, in which the tile along them is the first one.
    pub(crate) rows: Option<Rows>,
    /// The rows of the tile along the axes of folded modes.
    pub(crate) boxed: Option<Boxed>,
    /// The number among the last tiles, which are shared.
    pub(crate) last: Option<Expr>,
    /// The problem of a list to which the tile belongs.
    pub(crate) problem: Option<Expr>,
    /// 1 where the tiles of a cluster are one above the other, else 0; none where all clusters are
    /// alike.
    pub(crate) above: Option<Expr>,
}

impl Unit {
    /// All k-tiles of a tile.
    pub(crate) fn of(Place { row, column, matrix, split }: Place, steps: Expr, rows: Option<Rows>) -> Unit {
        Unit {
            row,
            column,
            matrix,
            split,
            first: Expr::from(0),
            steps,
            rows,
            boxed: None,
            last: None,
            problem: None,
            above: None,
        }
    }
}
/// Where a part of the work is.
pub(crate) struct Place {
    pub(crate) row: Expr,
    pub(crate) column: Expr,
    pub(crate) matrix: Option<Expr>,
    pub(crate) split: Option<Expr>,
}

/// The rows of a tile that begins where its group does, or a whole number of tiles behind.
#[derive(Clone)]
pub(crate) struct Rows {
    /// The first one.
    pub(crate) first: Expr,
    /// Where the group ends.
    pub(crate) end: Expr,
    /// The number of the tile among those of all groups.
    pub(crate) tile: Expr,
}

impl Rows {
    /// A matrix from the first of the rows on.
    pub(crate) fn of<'k>(&self, matrix: &View<'k>) -> Result<View<'k>, KernelError> {
        let others = (1..matrix.layout().rank()).map(|_| Expr::from(0));
        matrix.domain_offset(&[self.first.clone()].into_iter().chain(others).collect::<Vec<_>>())
    }

    /// The rows of the group from the first of these on.
    pub(crate) fn left(&self) -> Result<Expr, KernelError> {
        minus(&self.end, &self.first)
    }

    /// What is written of a mode that goes along the rows: from the first of these on, and up to
    /// where the group ends.
    pub(crate) fn along<'k>(&self, written: &View<'k>, mode: usize) -> Result<View<'k>, KernelError> {
        let rank = written.layout().rank();
        let first = |own: usize| if own == mode { self.first.clone() } else { Expr::from(0) };
        written.ending_at(mode, &self.end)?.domain_offset(&(0..rank).map(first).collect::<Vec<_>>())
    }

    /// The same of what is written, which ends where the group does.
    pub(crate) fn written<'k>(&self, matrix: &View<'k>) -> Result<View<'k>, KernelError> {
        self.of(&matrix.ending_at(0, &self.end)?)
    }
}
