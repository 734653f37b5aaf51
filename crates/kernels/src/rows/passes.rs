//! Passes over the rows that a block holds: reductions of the rows, and the results.

use tilewright_kernel::program::operation;
use tilewright_kernel::{Build, Distributed, Element, Flag, KernelError, Num, Reduction, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, LayoutError, Slot, Tree};

use super::{AHEAD, Beside, Held, Rows, at_run};

/// Tiles combined element by element; there is one at least.
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

impl Rows {
    /// Writes to a matrix what becomes of each run in f32, by what goes with it. That is read
    /// before earlier runs are written, where there are several: nothing is read past a write.
    pub(crate) fn write<'k>(
        &self,
        k: &'k Build,
        held: &Held<'k>,
        beside: &[Beside<'k>],
        matrix: &View<'k>,
        each: impl Fn(Distributed<'k>, &[Distributed<'k>]) -> Result<Distributed<'k>, KernelError>,
    ) -> Result<(), KernelError> {
        let tile = self.tile(k, matrix)?;
        let ahead = match (self.vectors, self.blocks) {
            (..=2, _) => 0,
            (_, ..=1) => AHEAD,
            // What blocks of a cluster read is spread over more memory, and comes later. Where rows
            // end within a run, there are registers for less.
            (runs, _) if self.ends_in(runs as usize - 1) => AHEAD - 1,
            _ => AHEAD + 1,
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

    /// Writes to a matrix what becomes of runs that were kept.
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

    /// The sums of rows, `(R,1,1)`, of what is made of each run in f32.
    pub(crate) fn sum<'k>(
        &self,
        k: &'k Build,
        held: &Held<'k>,
        each: impl Fn(usize, Distributed<'k>) -> Result<Distributed<'k>, KernelError>,
    ) -> Result<Distributed<'k>, KernelError> {
        let part = |(number, run): (usize, Result<Distributed<'k>, KernelError>)| each(number, run?.to(Element::F32)?);
        self.sum_of_row(k, &together(held.runs(k).enumerate().map(part), Reduction::Sum)?)
    }

    /// What the blocks of a cluster have of a row, together: numbers that all threads of a block
    /// hold, one for each tile. Each block writes its own to all others, and puts all together in
    /// one order.
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
        let own = k.register(Element::F32, &count.to_string())?;
        let numbers = parts.iter().map(|part| Ok(part.fragment().numbers()?[0]));
        own.set(&numbers.collect::<Result<Vec<_>, KernelError>>()?)?;
        let array = k.shared_of(Element::F32, &format!("({},{count}):({count},1)", self.blocks))?;
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
            let fragment = k.register(Element::F32, "1")?;
            fragment.fill(number)?;
            fragment.distributed(part.distribution())
        });
        together.collect()
    }

    /// Whether a thread's elements of a run are in the row, those of a part of it; none where all
    /// threads' are. A vector divides a row, so it is in it as a whole, or not at all.
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
        let modes = format!("({},1,1):(1,0,0)", self.rows);
        let tile = column.local_tile(&format!("({},1)", self.rows), at)?.compose_layout(&modes.parse()?)?;
        tile.store_distributed_predicated(values)
    }

    /// Whether some thread has elements of a run that are past the end of a row.
    pub(crate) fn ends_in(&self, run: usize) -> bool {
        let length = self.vector * self.lanes * self.warps;
        ((self.blocks - 1) * self.vectors + run as i64 + 1) * length > self.columns
    }

    /// Whether a thread's elements of a run of this block's rows count; none where all do.
    pub(crate) fn counts<'k>(&self, k: &'k Build, run: usize) -> Result<Option<Flag<'k>>, KernelError> {
        let part = if self.blocks > 1 { self.at(k)?[1].clone() } else { Expr::from(0) };
        self.inside(k, run, &part)
    }
}

/// What the blocks of a cluster have, a power of two, in pairs, pairs of pairs and so on: each time
/// of as many blocks on both sides. Few are in registers at a time.
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

/// Numbers of a run where they count, and 0 elsewhere.
pub(crate) fn counted<'k>(tile: Distributed<'k>, counts: Option<Flag<'k>>) -> Result<Distributed<'k>, KernelError> {
    match counts {
        None => Ok(tile),
        Some(counts) => tile.map(|x| Ok(counts.select(x, x.like(0.0)))),
    }
}
