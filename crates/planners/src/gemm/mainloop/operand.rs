//! An operand as the kernel reads it: tiles in global memory, and their parts in a stage.

use tilewright_kernel::{KernelError, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Slot, Tree};

use crate::gemm::index::tile_at;
use crate::gemm::problem::matrix::Contiguous;
use crate::gemm::schedule::unit::Unit;

/// One of several parts of a tile, of `lines` lines each.
pub(crate) fn part_of<'k>(tile: &View<'k>, [lines, depth]: [i64; 2], number: &Expr) -> Result<View<'k>, KernelError> {
    tile.local_tile((lines, depth), tile_at(number, Some(&Expr::from(0)))?)
}

/// An operand as the kernel reads it.
pub(crate) struct GemmOperand<'k> {
    pub(crate) view: View<'k>,
    /// The mode in which TMA reads it.
    pub(crate) contiguous: Contiguous,
    /// Whether it has a batch mode.
    pub(crate) batch: bool,
    /// Whether it has a mode for the member of a gated pair, after its columns and K.
    pub(crate) paired: bool,
    /// Whether halves of its tiles are multiplied by separate instructions.
    pub(crate) halved: bool,
    /// Whether it has row groups.
    pub(crate) grouped: bool,
}

impl<'k> GemmOperand<'k> {
    /// Its k-tiles, of `rows` rows each, for a work unit. If gated, first those of the first
    /// columns, then those of the second.
    pub(crate) fn tiles(&self, unit: &Unit, [rows, depth]: [i64; 2], row: &Expr) -> Result<Vec<View<'k>>, KernelError> {
        let count = if self.paired { 2 } else { 1 };
        let of = |number: i64| {
            let pair = self.paired.then_some(Slot::At(Expr::from(number)));
            let matrix = unit.matrix.clone().filter(|_| self.batch).map(Slot::At);
            let others: Vec<Slot<Expr>> = pair.into_iter().chain(matrix).collect();
            let operand = match others.is_empty() {
                true => self.view.clone(),
                false => self.view.slice(Tree::flat([Slot::All, Slot::All].into_iter().chain(others))?)?,
            };
            let operand = match unit.rows.as_ref().filter(|_| self.grouped) {
                None => operand,
                Some(rows) => rows.of(&operand)?,
            };
            operand.local_tile((rows / count, depth), tile_at(row, None)?)
        };
        (0..count).map(of).collect()
    }

    /// The part of a tile in shared memory that one instruction sequence multiplies: the first or
    /// second half, or all of it, up to an extent along K.
    pub(crate) fn part(
        &self,
        tile: &View<'k>,
        [rows, depth]: [i64; 2],
        along: i64,
        number: i64,
    ) -> Result<View<'k>, KernelError> {
        if !self.halved && along == depth {
            return Ok(tile.clone());
        }
        let (rows, number) = if self.halved { (rows / 2, number) } else { (rows, 0) };
        tile.local_tile((rows, along), tile_at(&Expr::from(number), Some(&Expr::from(0)))?)
    }
}
