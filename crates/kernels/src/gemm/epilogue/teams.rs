//! Groups of four warps that write their rows of a tile each on its own.
//!
//! Law: a group waits for the copies of its own rows and for its own threads, and stores its rows
//! itself, so that it begins the next tile while the other one still writes. Where all write
//! together, they are one such group.

use tilewright_kernel::{Build, Flag, KernelError, Meeting, Num, View};
use tilewright_layout::symbolic::Expr;

use super::{Ends, Epilogue};
use crate::gemm::list::each;
use crate::gemm::plan::WARPS;
use crate::gemm::schedule::Unit;
use crate::product::tile_at;

/// Threads of a group.
pub(super) const THREADS: i64 = 32 * WARPS;

impl Epilogue {
    /// The number of a thread in its group, and that of the group.
    fn member(&self, k: &Build) -> Result<[Expr; 2], KernelError> {
        let digits = k.coordinate(&k.thread()?, &[THREADS, self.teams])?;
        Ok([digits[0].clone(), digits[1].clone()])
    }

    /// What one thread does of those that write together.
    pub(super) fn single(&self, k: &Build, body: impl FnOnce() -> Result<(), KernelError>) -> Result<(), KernelError> {
        if self.teams == 1 {
            return k.single(body);
        }
        let [member, _] = self.member(k)?;
        k.when(first(k, k.index(&member)?), body)
    }

    /// Those that write together wait for each other.
    pub(super) fn meet(&self, k: &Build, ends: &Ends<'_>) -> Result<(), KernelError> {
        let [own, other] = &ends.meetings[..] else {
            k.barrier();
            return Ok(());
        };
        let [_, team] = self.member(k)?;
        let wait = |meeting: &Meeting<'_>| {
            meeting.wait();
            Ok(())
        };
        k.choose(first(k, k.index(&team)?), || wait(own), || wait(other))
    }

    /// Sets off the stores of a part of a tile from shared memory: of the rows of those that write
    /// together, which lie one behind the other in each panel.
    pub(super) fn store<'k>(
        &self,
        k: &'k Build,
        (staged, columns): (&View<'k>, i64),
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
                let panel = if self.along_rows { columns } else { self.panel };
                let tiler = format!("({},{panel})", self.rows / self.teams);
                (0..columns / panel).try_for_each(|number| {
                    let at = tile_at(&team, Some(&Expr::from(number)))?;
                    set_off(&staged.local_tile(&tiler, at.clone())?, &to.local_tile(&tiler, at)?)
                })
            })?;
            k.commit_bulk();
            Ok(())
        })
    }
}

/// Whether a number is the first one.
fn first<'k>(k: &'k Build, number: Num<'k>) -> Flag<'k> {
    number.lt(k.number(1_i32))
}
