//! Warpgroups that store their own rows of a tile.
//!
//! Law: each warpgroup waits for its own threads and for the loads of its own rows, and stores its
//! rows itself. So it begins the next tile while other warpgroups still store. If all warpgroups
//! store together, they count as one.

use tilewright_kernel::{Build, Flag, KernelError, Meeting, Num, View};
use tilewright_layout::symbolic::Expr;

use crate::gemm::epilogue::outline::{Ends, Epilogue};
use crate::gemm::index::plus;
use crate::gemm::index::tile_at;
use crate::gemm::plan::{WARPGROUP_ROWS, WARPGROUP_THREADS};
use crate::gemm::schedule::list::each;
use crate::gemm::schedule::unit::Unit;

impl Epilogue {
    /// The index of a thread in its warpgroup, and of the warpgroup.
    fn member(&self, k: &Build) -> Result<[Expr; 2], KernelError> {
        let digits = k.coordinate(&k.thread()?, &[WARPGROUP_THREADS, self.teams])?;
        Ok([digits[0].clone(), digits[1].clone()])
    }

    /// Runs `body` in one thread of those that store together.
    pub(crate) fn single(&self, k: &Build, body: impl FnOnce() -> Result<(), KernelError>) -> Result<(), KernelError> {
        if self.teams == 1 {
            return k.single(body);
        }
        let [member, _] = self.member(k)?;
        k.when(first(k, k.index(&member)?), body)
    }

    /// The barrier of the threads that store together.
    pub(crate) fn meet(&self, k: &Build, ends: &Ends<'_>) -> Result<(), KernelError> {
        if self.teams == 1 {
            k.barrier();
            return Ok(());
        }
        let [_, team] = self.member(k)?;
        wait_of(k, k.index(&team)?, (1, &ends.meetings))
    }

    /// Issues the stores of a part of a tile from shared memory: the rows of the threads that store
    /// together, or a strip of them that is a panel. With three warpgroups, the second one has the
    /// blocks 1, 4, .. of 64 rows. The rows of a block are contiguous in each panel.
    pub(crate) fn store<'k>(
        &self,
        k: &'k Build,
        (staged, columns, strip): (&View<'k>, i64, Option<i64>),
        (ends, unit): (&Ends<'k>, &Unit),
        tile: impl Fn(usize) -> Result<View<'k>, KernelError>,
    ) -> Result<(), KernelError> {
        let set_off = |from: &View<'k>, to: &View<'k>| match self.once {
            true => k.store_bulk_once(from, to),
            false => k.store_bulk(from, to),
        };
        self.single(k, || {
            each(k, unit, ends.d.len(), &|which| {
                let to = tile(which)?;
                if self.teams == 1 {
                    return set_off(staged, &to);
                }
                let [_, team] = self.member(k)?;
                let panel = if self.along_rows { columns } else { self.panel.min(columns) };
                let tiler = (WARPGROUP_ROWS, panel);
                let blocks = (0..self.rows / WARPGROUP_ROWS).step_by(self.teams as usize);
                let panels = strip.map_or(0..columns / panel, |strip| strip..strip + 1);
                panels.into_iter().try_for_each(|panel| {
                    blocks.clone().try_for_each(|block| {
                        let at = tile_at(&plus(&team, &block.into())?, Some(&panel.into()))?;
                        set_off(&staged.local_tile(tiler, at.clone())?, &to.local_tile(tiler, at)?)
                    })
                })
            })?;
            k.commit_bulk();
            Ok(())
        })
    }
}

/// Waits at the barrier of warpgroup `number`: at the first barrier if the number is less than
/// `next`.
fn wait_of<'k>(k: &'k Build, number: Num<'k>, (next, meetings): (i32, &[Meeting<'k>])) -> Result<(), KernelError> {
    let wait = |meeting: &Meeting<'k>| {
        meeting.wait();
        Ok(())
    };
    match meetings {
        [] => Ok(()),
        [last] => wait(last),
        [own, others @ ..] => {
            let others = || wait_of(k, number, (next + 1, others));
            k.choose(number.lt(k.number(next)), || wait(own), others)
        }
    }
}

/// Whether a number is 0.
fn first<'k>(k: &'k Build, number: Num<'k>) -> Flag<'k> {
    number.lt(k.number(1_i32))
}
