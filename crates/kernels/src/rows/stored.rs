//! Runs of rows in shared memory, filled behind the threads' backs.
//!
//! Law: each thread copies those 16 bytes of a run that it reads itself, so nobody waits for
//! others' copies.

use tilewright_atoms::{CopyAtom, TiledCopy};
use tilewright_kernel::{KernelError, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Stride, Tree};

use super::Rows;

impl Rows {
    /// Elements of a run of a block.
    pub(super) fn run_length(&self) -> i64 {
        self.lanes * self.warps * self.vector
    }

    /// How the threads of a block copy a run.
    pub(super) fn copy_of_runs(&self) -> Result<TiledCopy, KernelError> {
        let (threads, vector) = (self.lanes * self.warps, self.vector);
        Ok(TiledCopy::new(
            CopyAtom::named("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>")?,
            i64::from(self.element.bits()),
            &format!("(1,{threads}):({threads},1)").parse()?,
            &format!("(1,{vector}):({vector},1)").parse()?,
        )?)
    }

    /// A run of the part that a block has of a row.
    pub(super) fn run_of<'k>(
        &self,
        matrix: &View<'k>,
        [row, part]: [&Expr; 2],
        run: i64,
    ) -> Result<View<'k>, KernelError> {
        let overflow = || LayoutError::Overflow { op: "run" };
        let before = Stride::times(part, &Expr::from(self.vectors)).ok_or_else(overflow)?;
        let column = Stride::plus(&before, &Expr::from(run)).ok_or_else(overflow)?;
        let at: Coord<Expr> = Tree::flat([Slot::At(row.clone()), Slot::At(column)])?;
        matrix.local_tile(&format!("(1,{})", self.run_length()), at)
    }

    /// A run in shared memory as `(R,A,W)`.
    pub(super) fn by_warps<'k>(&self, run: &View<'k>) -> Result<View<'k>, KernelError> {
        let (own, warps) = (self.vector * self.lanes, self.warps);
        let modes: Layout = format!("(1,{own},{warps}):(0,1,{own})").parse()?;
        run.compose_layout(&modes)
    }
}
