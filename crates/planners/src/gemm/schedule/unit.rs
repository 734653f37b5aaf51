//! A work unit of a GEMM: an output tile and a range of k-tiles.

use crate::gemm::implicit::Boxed;
use crate::gemm::index::minus;
use tilewright_kernel::{KernelError, View};
use tilewright_layout::symbolic::Expr;

/// A work unit.
pub(crate) struct Unit {
    /// The tile along the rows.
    pub(crate) row: Expr,
    /// The tile along the columns.
    pub(crate) column: Expr,
    /// The matrix of the batch.
    pub(crate) matrix: Option<Expr>,
    /// The index of the split of K, with split-K.
    pub(crate) split: Option<Expr>,
    /// The first k-tile.
    pub(crate) first: Expr,
    /// The number of k-tiles.
    pub(crate) steps: Expr,
    /// The rows of a row group; the tile along the rows is then the first one.
    pub(crate) rows: Option<TileRows>,
    /// The rows of the tile along the axes of folded modes.
    pub(crate) boxed: Option<Boxed>,
    /// The index among the tiles of a split tail.
    pub(crate) last: Option<Expr>,
    /// The problem that the tile belongs to, in a list.
    pub(crate) problem: Option<Expr>,
    /// 1 if the tiles of the cluster are one above the other, else 0; None if all clusters are of
    /// the same kind.
    pub(crate) above: Option<Expr>,
}

impl Unit {
    /// The unit of all k-tiles of a tile.
    pub(crate) fn of(UnitPlace { row, column, matrix, split }: UnitPlace, steps: Expr, rows: Option<TileRows>) -> Unit {
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
/// The position of a work unit.
pub(crate) struct UnitPlace {
    pub(crate) row: Expr,
    pub(crate) column: Expr,
    pub(crate) matrix: Option<Expr>,
    pub(crate) split: Option<Expr>,
}

/// The rows of a tile of a row group, which begins with its group or a whole number of tiles later.
#[derive(Clone)]
pub(crate) struct TileRows {
    /// The first row.
    pub(crate) first: Expr,
    /// The end of the group.
    pub(crate) end: Expr,
    /// The index of the tile among those of all groups.
    pub(crate) tile: Expr,
}

impl TileRows {
    /// A matrix from the first of the rows on.
    pub(crate) fn of<'k>(&self, matrix: &View<'k>) -> Result<View<'k>, KernelError> {
        let others = (1..matrix.layout().rank()).map(|_| Expr::from(0));
        matrix.domain_offset(&[self.first.clone()].into_iter().chain(others).collect::<Vec<_>>())
    }

    /// The rows of the group from the first row of the tile on.
    pub(crate) fn left(&self) -> Result<Expr, KernelError> {
        minus(&self.end, &self.first)
    }

    /// The part of an output mode that goes along the rows: from the first row of the tile to the
    /// end of the group.
    pub(crate) fn along<'k>(&self, written: &View<'k>, mode: usize) -> Result<View<'k>, KernelError> {
        let rank = written.layout().rank();
        let first = |own: usize| if own == mode { self.first.clone() } else { Expr::from(0) };
        written.ending_at(mode, &self.end)?.domain_offset(&(0..rank).map(first).collect::<Vec<_>>())
    }

    /// The part of an output matrix, up to the end of the group.
    pub(crate) fn written<'k>(&self, matrix: &View<'k>) -> Result<View<'k>, KernelError> {
        self.of(&matrix.ending_at(0, &self.end)?)
    }
}
