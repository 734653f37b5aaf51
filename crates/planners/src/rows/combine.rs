//! Reductions of the rows that a block holds, and stores of the results.
//!
//! Law: the numbers of threads are combined within their warp by shuffles. The results of the warps
//! of a row are exchanged through shared memory, with one barrier, and each warp combines them for
//! itself. If there are few warps, each thread combines them; otherwise each lane takes those of
//! one warp. The blocks of a cluster write their results into each other's shared memory.

use tilewright_kernel::program::operation;
use tilewright_kernel::{Build, Distributed, Distribution, Element, Flag, KernelError, Num, Reduction, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Stride, Tree};

use super::{Held, RowVector, RowsPlan, at_run};
use crate::law::{DATA_REGISTERS, REGISTER_VECTORS};
use crate::units::{LANES, power_from};

/// Combines tiles element by element; there must be at least one.
pub(crate) fn together<'k>(
    tiles: impl Iterator<Item = Result<Distributed<'k>, KernelError>>,
    reduction: Reduction,
) -> Result<Distributed<'k>, KernelError> {
    let mut all: Option<Distributed<'k>> = None;
    for tile in tiles {
        all = Some(match all {
            None => tile?,
            Some(all) => all.combine(&tile?, reduction)?,
        });
    }
    all.ok_or(LayoutError::Overflow { op: "runs" }.into())
}

/// The number of runs by which loads of weights are ahead of the run that is written.
const RUNS_AHEAD: usize = REGISTER_VECTORS as usize / 2;

impl RowsPlan {
    /// Applies `to` to each run in f32 and to the matching runs of weights and bias, and writes the
    /// results to a matrix. If there are several runs, weights are loaded before earlier runs are
    /// stored, because no load is moved past a store.
    pub(crate) fn write<'k>(
        &self,
        k: &'k Build,
        held: &Held<'k>,
        beside: &[RowVector<'k>],
        matrix: &View<'k>,
        each: impl Fn(Distributed<'k>, &[Distributed<'k>]) -> Result<Distributed<'k>, KernelError>,
    ) -> Result<(), KernelError> {
        let tile = self.tile(k, matrix)?;
        let ahead = match (self.vectors, self.blocks) {
            (..=2, _) => 0,
            (_, ..=1) => RUNS_AHEAD,
            // Blocks of a cluster read from more places, so their loads take longer. If rows end
            // within a run, there are fewer registers for loads ahead.
            (runs, _) if self.ends_in(runs as usize - 1) => RUNS_AHEAD - 1,
            _ => RUNS_AHEAD + 1,
        };
        let mut read: Vec<Vec<Distributed<'k>>> = Vec::new();
        for (number, run) in held.runs(k).enumerate() {
            while read.len() <= (number + ahead).min(self.vectors as usize - 1) {
                let next = read.len();
                read.push(beside.iter().map(|row| row.run(next)).collect::<Result<_, _>>()?);
            }
            let others: Vec<Distributed<'k>> =
                read[number].iter().map(|row| row.to(Element::F32)).collect::<Result<_, _>>()?;
            let result = each(run?.to(Element::F32)?, &others)?;
            tile.slice(at_run(number)?)?.store_distributed_predicated(&result.to(self.element)?)?;
        }
        Ok(())
    }

    /// Applies `to` to runs that were kept, and writes the results to a matrix.
    pub(crate) fn write_kept<'k>(
        &self,
        k: &'k Build,
        runs: &[Distributed<'k>],
        matrix: &View<'k>,
        each: impl Fn(&Distributed<'k>) -> Result<Distributed<'k>, KernelError>,
    ) -> Result<(), KernelError> {
        let tile = self.tile(k, matrix)?;
        for (number, run) in runs.iter().enumerate() {
            tile.slice(at_run(number)?)?.store_distributed_predicated(&each(run)?.to(self.element)?)?;
        }
        Ok(())
    }

    /// The sums of rows, `(R,1,1)`, over a function of each run in f32.
    pub(crate) fn sum<'k>(
        &self,
        k: &'k Build,
        held: &Held<'k>,
        each: impl Fn(usize, Distributed<'k>) -> Result<Distributed<'k>, KernelError>,
    ) -> Result<Distributed<'k>, KernelError> {
        let part = |(number, run): (usize, Result<Distributed<'k>, KernelError>)| each(number, run?.to(Element::F32)?);
        self.sum_of_row(k, &together(held.runs(k).enumerate().map(part), Reduction::Sum)?)
    }

    /// Combines the results of the blocks of a cluster for a row: numbers that all threads of a
    /// block hold, one for each tile. Each block writes its own to all others, and combines all in
    /// the same order.
    pub(crate) fn across<'k>(
        &self,
        k: &'k Build,
        parts: Vec<Distributed<'k>>,
        combine: impl Fn(&[Num<'k>], &[Num<'k>]) -> Vec<Num<'k>>,
    ) -> Result<Vec<Distributed<'k>>, KernelError> {
        if self.blocks == 1 {
            return Ok(parts);
        }
        let count = parts.len();
        let own = k.register(Element::F32, count)?;
        let numbers = parts.iter().map(|part| Ok(part.fragment().numbers()?[0]));
        own.set(&numbers.collect::<Result<Vec<_>, KernelError>>()?)?;
        let array = k.shared_of(Element::F32, Layout::strided((self.blocks, count), (count, 1)))?;
        let of = |rank: Expr| -> Result<View<'k>, KernelError> {
            let at: Coord<Expr> = Tree::flat([Slot::At(rank), Slot::All])?;
            array.slice(at)
        };
        k.cluster_wait();
        let first = k.index(&k.thread()?)?.eq(k.number(0));
        k.when(first, || {
            let mine = of(k.rank())?;
            mine.store(&own)?;
            (1..self.blocks as u32).try_for_each(|by| mine.of_block(k.rank_after(by)?)?.store(&own))
        })?;
        k.cluster_barrier();
        let all = in_pairs(self.blocks, |rank| of(Expr::from(rank))?.load()?.numbers(), combine)?;
        let together = all.into_iter().zip(&parts).map(|(number, part)| {
            let fragment = k.register(Element::F32, 1)?;
            fragment.fill(number)?;
            fragment.distributed(part.distribution())
        });
        together.collect()
    }

    /// Whether the elements of a thread in a run are inside the row, for a part of it; None if they
    /// are in all threads. A vector divides a row, so it is inside as a whole or not at all.
    pub(super) fn inside<'k>(&self, k: &'k Build, run: usize, part: &Expr) -> Result<Option<Flag<'k>>, KernelError> {
        if !self.ends_in(run) {
            return Ok(None);
        }
        let length = self.vector * self.lanes;
        let integer = |value: i64| k.number(value as i32);
        let [lane, _, warp] = self.place_of(k)?;
        let before = integer(run as i64 * length * self.warps);
        let mut column = k.index(&lane)? * integer(self.vector) + k.index(&warp)? * integer(length) + before;
        if self.blocks > 1 {
            column = column + k.index(part)? * integer(length * self.warps * self.vectors);
        }
        Ok(Some(column.lt(integer(self.columns))))
    }

    /// Writes one number for each row, `(R,1,1)`, to a column `(M,1)`.
    pub(crate) fn store_results<'k>(
        &self,
        k: &'k Build,
        column: &View<'k>,
        values: &Distributed<'k>,
    ) -> Result<(), KernelError> {
        let at: Coord<Expr> = Tree::flat([Slot::At(k.block_number(operation::Axis::X)), Slot::At(Expr::from(0))])?;
        let modes = Layout::strided((self.rows, 1, 1), (1, 0, 0))?;
        let tile = column.local_tile((self.rows, 1), at)?.compose(&modes)?;
        tile.store_distributed_predicated(values)
    }

    /// Whether some thread has elements of a run that are past the end of a row.
    pub(crate) fn ends_in(&self, run: usize) -> bool {
        let length = self.vector * self.lanes * self.warps;
        ((self.blocks - 1) * self.vectors + run as i64 + 1) * length > self.columns
    }

    /// Whether the elements of a thread in a run of this block are inside the row; None if all are.
    pub(crate) fn counts<'k>(&self, k: &'k Build, run: usize) -> Result<Option<Flag<'k>>, KernelError> {
        let part = if self.blocks > 1 { self.at(k)?[1].clone() } else { Expr::from(0) };
        self.inside(k, run, &part)
    }
}

/// Combines the results of the blocks of a cluster, a power of two, in pairs, pairs of pairs and so
/// on, so that both operands come from equally many blocks. Few results are in registers at a time.
pub(super) fn in_pairs<'k>(
    blocks: i64,
    of: impl Fn(i64) -> Result<Vec<Num<'k>>, KernelError>,
    combine: impl Fn(&[Num<'k>], &[Num<'k>]) -> Vec<Num<'k>>,
) -> Result<Vec<Num<'k>>, KernelError> {
    let mut open: Vec<(u32, Vec<Num<'k>>)> = Vec::new();
    for rank in 0..blocks {
        let (mut level, mut all) = (0, of(rank)?);
        while let Some((_, before)) = open.pop_if(|(own, _)| *own == level) {
            (level, all) = (level + 1, combine(&before, &all));
        }
        open.push((level, all));
    }
    open.pop().map(|(_, all)| all).ok_or(LayoutError::Overflow { op: "blocks" }.into())
}

/// The numbers of a run inside the row, and 0 elsewhere.
pub(crate) fn counted<'k>(tile: Distributed<'k>, counts: Option<Flag<'k>>) -> Result<Distributed<'k>, KernelError> {
    match counts {
        None => Ok(tile),
        Some(counts) => tile.map(|x| Ok(counts.select(x, x.like(0.0)))),
    }
}

/// Combines numbers in pairs, pairs of pairs and so on, which makes short dependency chains. There
/// is at least one number.
pub(crate) fn pairwise<'k>(mut numbers: Vec<Num<'k>>, combine: impl Fn(Num<'k>, Num<'k>) -> Num<'k>) -> Num<'k> {
    while numbers.len() > 1 {
        let pair = |pair: &[Num<'k>]| pair[1..].iter().fold(pair[0], |a, b| combine(a, *b));
        numbers = numbers.chunks(2).map(pair).collect();
    }
    numbers[0]
}

impl RowsPlan {
    /// One number of each thread for its row, as `(R,A,W)`.
    pub(crate) fn of_each<'k>(&self, k: &'k Build, number: Num<'k>) -> Result<Distributed<'k>, KernelError> {
        let fragment = k.register(number.element(), "1")?;
        fragment.fill(number)?;
        self.of_threads(&fragment)
    }

    /// Exchanges one number of each warp of a row. Returns those of all warps, as tiles `(1,P)`,
    /// with P at least the number of warps; the rest is neutral. Blocks of a cluster synchronize
    /// here once: each warp writes its numbers to all blocks.
    pub(crate) fn of_warps<'k>(
        &self,
        k: &'k Build,
        numbers: &[Num<'k>],
        nothing: &[Num<'k>],
    ) -> Result<Vec<Distributed<'k>>, KernelError> {
        let (warps, count) = (self.warps * self.blocks, numbers.len() as i64);
        let all = self.takes_all(count);
        let places = if all { warps } else { power_from(warps) };
        let left = if places > warps { 2 * warps } else { warps };
        let array = k.shared_of(Element::F32, Layout::strided((count, left), (1, count)))?;
        let [lane, _, warp] = self.place_of(k)?;
        let lane = k.index(&lane)?;
        let overflow = || LayoutError::Overflow { op: "warps" };
        let warp = if self.is_shared() {
            let before = Stride::times(&k.rank(), &Expr::from(self.warps)).ok_or_else(overflow)?;
            // The other blocks have started, so their memory may be written.
            k.cluster_wait();
            Stride::plus(&warp, &before).ok_or_else(overflow)?
        } else {
            warp
        };
        // The first lanes of all warps write the numbers, and the second lanes write neutral
        // numbers after them.
        let leave = |by: i32, first: i64, numbers: &[Num<'k>]| {
            k.when(lane.eq(k.number(by)), || {
                let own = k.register(Element::F32, count)?;
                own.set(numbers)?;
                let place = Stride::plus(&warp, &Expr::from(first)).ok_or_else(overflow)?;
                let at: Coord<Expr> = Tree::flat([Slot::All, Slot::At(place)])?;
                let place = array.slice(at)?;
                place.store(&own)?;
                (1..self.blocks as u32).try_for_each(|by| place.of_block(k.rank_after(by)?)?.store(&own))
            })
        };
        leave(0, 0, numbers)?;
        if places > warps {
            leave(1, warps, nothing)?;
        }
        if self.is_shared() {
            k.cluster_barrier()
        } else {
            k.barrier()
        }
        let threads = self.warps * LANES;
        let (taken, one) = if all {
            (Layout::strided((threads, (count, places)), (0, (1, count)))?, Layout::strided((threads, places), (0, 1))?)
        } else {
            let lanes = places.min(LANES);
            let (by, each) = ((lanes, threads / lanes), places / lanes);
            let taken = Layout::strided((by, (count, each)), ((count, 0), (1, count * lanes)))?;
            (taken, Layout::strided((by, each), ((1, 0), lanes))?)
        };
        let taken = Distribution::new((count, places), &taken)?;
        let one = Distribution::new((1, places), &one)?;
        let first = array.compose(&Layout::strided((count, places), (1, count))?)?;
        let taken = first.load_distributed(&taken)?.fragment().numbers()?;
        let tile = |first: usize| {
            let numbers: Vec<Num<'k>> = taken.iter().skip(first).step_by(numbers.len()).copied().collect();
            let fragment = k.register(Element::F32, numbers.len())?;
            fragment.set(&numbers)?;
            fragment.distributed(&one)
        };
        (0..numbers.len()).map(tile).collect()
    }

    /// Whether each thread reads the numbers of all warps, `count` numbers of each.
    fn takes_all(&self, count: i64) -> bool {
        let warps = self.warps * self.blocks;
        // If the number of warps is a power of two, each lane can read those of one warp instead.
        warps * count <= if warps.count_ones() > 1 { DATA_REGISTERS } else { DATA_REGISTERS / 2 }
    }

    /// Combines the numbers of all threads, `(R,A,W)` each, for their row, `(R,1,1)`: in a warp by
    /// shuffles, then over all warps with one barrier. `nothing` is neutral.
    pub(crate) fn of_all<'k>(
        &self,
        k: &'k Build,
        own: &[Distributed<'k>],
        nothing: &[Num<'k>],
        combine: impl Fn(&[Num<'k>], &[Num<'k>]) -> Vec<Num<'k>>,
    ) -> Result<Vec<Distributed<'k>>, KernelError> {
        let together = |tiles: &[Distributed<'k>]| {
            k.reduce_together(&tiles.iter().collect::<Vec<_>>(), &[1], |a, b| Ok(combine(a, b)))
        };
        let mut all = together(own)?;
        if self.meet() {
            let of_warp = all.iter().map(|tile| Ok(tile.fragment().numbers()?[0]));
            all = together(&self.of_warps(k, &of_warp.collect::<Result<Vec<_>, KernelError>>()?, nothing)?)?;
        }
        all.iter().map(|tile| self.of_row(tile)).collect()
    }

    /// The sum over a row, `(R,1,1)`, of the numbers of its threads, `(R,A,W)`.
    pub(crate) fn sum_of_row<'k>(&self, k: &'k Build, own: &Distributed<'k>) -> Result<Distributed<'k>, KernelError> {
        let in_registers = self.is_shared() && !self.rereads();
        if in_registers || !self.is_shared() && self.meet() && self.takes_all(1) {
            let of_warp = own.reduce(&[1], Reduction::Sum)?.fragment().numbers()?;
            let zero = k.number_of(Element::F32, 0.0);
            let all = self.of_warps(k, &of_warp, &[zero])?.remove(0).reduce(&[1], Reduction::Sum)?;
            return self.of_row(&all);
        }
        let of_block = own.reduce(&[1, 2], Reduction::Sum)?;
        Ok(self.across(k, vec![of_block], |a, b| vec![a[0] + b[0]])?.remove(0))
    }

    /// A number that all threads of a block have, as the number of its row, `(R,1,1)`.
    fn of_row<'k>(&self, number: &Distributed<'k>) -> Result<Distributed<'k>, KernelError> {
        number.fragment().distributed(&self.run.reduced(&[1, 2])?)
    }
}
