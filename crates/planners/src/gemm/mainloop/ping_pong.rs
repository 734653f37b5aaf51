//! The order of two ping-pong warpgroups.
//!
//! Law: the first warpgroup computes the tiles `0, 2, ..` of a block, the second one `1, 3, ..`. A
//! warpgroup waits for the stages of its tile only after the other one has issued all wgmma of the
//! tile before. So stages are waited for in the order in which they are filled, and no phase is
//! missed. While one warpgroup multiplies, the other one runs its epilogue.

use crate::gemm::index::{minus, overflow, plus, times};
use crate::gemm::plan::Plan;
use tilewright_kernel::{Build, Cursor, KernelError, Meeting};
use tilewright_layout::symbolic::Expr;

/// The consumer warpgroups of a block.
pub(crate) struct Order<'k> {
    /// The named barrier at which each warpgroup waits; empty if all warpgroups share each tile.
    barriers: Vec<Meeting<'k>>,
    /// Stages of a tile.
    steps: i64,
}

impl<'k> Order<'k> {
    /// The order for a plan whose tiles have `steps` k-tiles.
    pub(crate) fn new(k: &'k Build, plan: &Plan, steps: i64) -> Result<Order<'k>, KernelError> {
        let threads = 128 * plan.warpgroups as u32;
        let barriers = if plan.ping_pong { vec![k.meeting(threads)?, k.meeting(threads)?] } else { Vec::new() };
        Ok(Order { barriers, steps })
    }

    /// The number of tiles of a block that a warpgroup computes.
    pub(crate) fn own(&self, all: &Expr, group: usize) -> Result<Expr, KernelError> {
        match self.barriers.len() {
            0 => Ok(all.clone()),
            _ => plus(all, &Expr::from(1 - group as i64))?.floor_div(&Expr::from(2)).ok_or_else(overflow),
        }
    }

    /// The index, in the block, of the next tile of a warpgroup.
    pub(crate) fn tile(&self, own: &Expr, group: usize) -> Result<Expr, KernelError> {
        match self.barriers.len() {
            0 => Ok(own.clone()),
            _ => plus(&times(own, &Expr::from(2))?, &Expr::from(group as i64)),
        }
    }

    /// Before the first tile: the second warpgroup skips the stages of the first tile, and the
    /// first warpgroup may begin.
    pub(crate) fn begin(&self, group: usize, cursors: [&Cursor<'k>; 2]) -> Result<(), KernelError> {
        match self.barriers.first().filter(|_| group == 1) {
            None => Ok(()),
            Some(first) => {
                first.arrive();
                self.skip(cursors)
            }
        }
    }

    /// Waits until a warpgroup may multiply.
    pub(crate) fn wait(&self, group: usize) {
        self.barriers.get(group).into_iter().for_each(Meeting::wait);
    }

    /// Lets the other warpgroup multiply.
    pub(crate) fn pass(&self, group: usize) {
        self.barriers.get(1 - group.min(1)).into_iter().for_each(Meeting::arrive);
    }

    /// Skips the stages of a tile of the other warpgroup.
    pub(crate) fn skip(&self, cursors: [&Cursor<'k>; 2]) -> Result<(), KernelError> {
        match self.barriers.len() {
            0 => Ok(()),
            _ => cursors.into_iter().try_for_each(|cursor| cursor.advance_by(self.steps)),
        }
    }

    /// After the last tile: consumes the signal that was sent to a warpgroup without another tile.
    pub(crate) fn end(&self, k: &'k Build, all: &Expr, group: usize) -> Result<(), KernelError> {
        let Some(barrier) = self.barriers.get(group) else { return Ok(()) };
        let [first, second] = [self.own(all, 0)?, self.own(all, 1)?];
        let left = match group {
            0 => minus(&plus(&second, &Expr::from(1))?, &first)?,
            _ => minus(&first, &second)?,
        };
        k.range(left, |_| {
            barrier.wait();
            Ok(())
        })
    }
}
