//! The epilogue of a tile, strip by strip.
//!
//! Law: each strip of a tile is computed, converted and stored once. Parts alternate between the
//! buffers in shared memory: a buffer is reused after the stores of its former part have read it.

use tilewright_kernel::{Build, Cursor, Distributed, Element, Fragment, KernelError, Num, View};
use tilewright_layout::atoms::{CopyEnd, Operand};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Slot, Tree};

use crate::gemm::epilogue::inputs::{self, Fetch, Input};
use crate::gemm::epilogue::outline::{Ends, Epilogue};
use crate::gemm::index::tile_at;
use crate::gemm::index::{overflow, plus, times};
use crate::gemm::problem::Fused;
use crate::gemm::schedule::list::each;
use crate::gemm::schedule::unit::Unit;

impl Epilogue {
    /// The accumulators of a tile, in registers: those of an instruction, and blocks of rows. If
    /// gated, first those of the first columns, then those of the second.
    pub(crate) fn accumulators<'k>(&self, k: &'k Build) -> Result<Vec<Fragment<'k>>, KernelError> {
        let blocks = inputs::count_of(&self.part, self.rows);
        let shape = ((2, 2, self.columns / 8), blocks, 1);
        (0..self.each).map(|_| k.register(self.accumulator, shape)).collect()
    }

    /// The accumulators of a tile of mma.sync. If gated, those of both columns of the pairs, as
    /// slices of the same registers.
    pub(crate) fn warp_accumulators<'k>(
        &self,
        all: &Fragment<'k>,
        part: &[i64; 3],
    ) -> Result<Vec<Fragment<'k>>, KernelError> {
        let [_, blocks, eights] = *part;
        if self.each == 1 {
            return Ok(vec![all.clone()]);
        }
        // Blocks of rows come before blocks of columns.
        let (step, beside) = (4, 4 * blocks);
        let halves = match self.swapped {
            true => Layout::strided(((2, 2), blocks / 2, eights, 2), ((1, 2), step, beside, step * blocks / 2)),
            false => Layout::strided(((2, 2), blocks, eights / 2, 2), ((1, 2), step, beside, beside * eights / 2)),
        };
        let halves = all.with_layout(&halves?)?;
        let half = |number: i64| halves.slice(Tree::flat([Slot::All, Slot::All, Slot::All, Slot::At(number)])?);
        Ok(vec![half(0)?, half(1)?])
    }

    /// The accumulators of half of the columns of a tile, in registers.
    pub(crate) fn half<'k>(&self, k: &'k Build) -> Result<Fragment<'k>, KernelError> {
        let blocks = inputs::count_of(&self.part, self.rows);
        k.register(self.accumulator, ((2, 2, self.columns / 16), blocks, 1))
    }

    /// The first or the second half of the accumulators of a tile.
    pub(crate) fn half_of<'k>(&self, accumulators: &Fragment<'k>, number: usize) -> Result<Fragment<'k>, KernelError> {
        let (blocks, own) = (inputs::count_of(&self.part, self.rows), self.columns / 2);
        let all = Layout::strided(((2, 2, self.columns / 16), blocks, 1, 2), ((1, 2, 4), own, 0, own / 2))?;
        accumulators.with_layout(&all)?.slice(Tree::flat([Slot::All, Slot::All, Slot::All, Slot::At(number as i64)])?)
    }

    /// The accumulators of a strip.
    fn strip_of<'k>(&self, accumulators: &Fragment<'k>, number: i64) -> Result<Fragment<'k>, KernelError> {
        if self.by_warps {
            let steps: Vec<(i64, i64)> =
                accumulators.layout().leaves().iter().map(|leaf| (leaf.extent, leaf.stride)).collect();
            let [_, _, (blocks, down), (eights, across)] = steps[..] else { return Err(overflow()) };
            let count = self.columns / self.strip;
            let shape = ((2, 2), blocks, eights / count, count);
            let strips = Layout::strided(shape, ((1, 2), down, across, across * eights / count))?;
            return accumulators.with_layout(&strips)?.slice(Tree::flat([
                Slot::All,
                Slot::All,
                Slot::All,
                Slot::At(number),
            ])?);
        }
        let (blocks, own) = (inputs::count_of(&self.part, self.rows), self.columns / 2);
        let (count, held) = (self.columns / self.strip, self.strip / 2);
        let all = Layout::strided(((2, 2, self.strip / 8), blocks, 1, count), ((1, 2, 4), own, 0, held))?;
        accumulators.with_layout(&all)?.slice(Tree::flat([Slot::All, Slot::All, Slot::All, Slot::At(number)])?)
    }

    /// The output tile of a work unit, with columns counted in parts. In a split tail, it is the
    /// tile of partial accumulators; if gated, of the first or of the second columns.
    fn tile<'k>(
        &self,
        d: &View<'k>,
        unit: &Unit,
        (columns, column): (i64, &Expr),
        sum: usize,
    ) -> Result<View<'k>, KernelError> {
        let own = unit.matrix.clone().unwrap_or(Expr::from(0));
        let number = match &unit.split {
            None => own,
            Some(split) => {
                let number =
                    if self.batch == 1 { split.clone() } else { plus(&times(split, &self.batch.into())?, &own)? };
                plus(&times(&number, &Expr::from(self.each as i64))?, &Expr::from(sum as i64))?
            }
        };
        let d = match self.split_k * self.batch {
            1 => d.clone(),
            _ => d.slice(Tree::flat([Slot::All, Slot::All, Slot::At(number)])?)?,
        };
        if let Some(boxed) = &unit.boxed {
            return boxed.of(&d, columns, column);
        }
        let d = match &unit.rows {
            None => d,
            Some(rows) => rows.written(&d)?,
        };
        let d = if self.swapped { d.select(&[1, 0])? } else { d };
        d.local_tile((self.rows, columns), tile_at(&unit.row, Some(column))?)
    }

    /// `columns` columns of an output matrix, from column `from` of the tile on.
    fn tile_from<'k>(&self, d: &View<'k>, unit: &Unit, (columns, from): (i64, i64)) -> Result<View<'k>, KernelError> {
        let (zero, column) = (Expr::from(0), plus(&times(&unit.column, &self.columns.into())?, &from.into())?);
        let others = (2..d.layout().rank()).map(|_| zero.clone());
        let at = if self.swapped { [column, zero.clone()] } else { [zero.clone(), column] };
        let behind = d.domain_offset(&at.into_iter().chain(others).collect::<Vec<_>>())?;
        self.tile(&behind, unit, (columns, &zero), 0)
    }

    /// The index of a strip of a work unit among the strips of D.
    fn column(&self, unit: &Unit, number: i64) -> Result<Expr, KernelError> {
        plus(&times(&unit.column, &Expr::from(self.columns / self.strip))?, &Expr::from(number))
    }

    /// Loads the epilogue inputs of a strip.
    fn read<'k>(
        &self,
        k: &'k Build,
        accumulators: &[Fragment<'k>],
        inputs: &[Vec<Input<'k>>],
        unit: &Unit,
        number: i64,
    ) -> Result<Vec<Vec<Num<'k>>>, KernelError> {
        let (tile, column) = ([self.rows, self.strip], self.column(unit, number)?);
        let first = inputs.first().map_or(&[][..], Vec::as_slice);
        let read = first.iter().enumerate().map(|(at, input)| match (&input.fetched, &self.load) {
            (Some((Fetch::Tile, shared)), Some(load)) => {
                let at = tile_at(&Expr::from(0), Some(&Expr::from(number)))?;
                let strip = shared.local_tile((self.rows, self.strip), at)?;
                let fragment =
                    k.register(self.result, &self.strip_of(&accumulators[0], number)?.shape().to_string())?;
                k.copy(load, &strip, &fragment.retile(load, CopyEnd::Destination)?)?;
                Ok(fragment.numbers()?.into_iter().map(|number| number.to(self.computed)).collect())
            }
            // Each problem of a list has its own inputs.
            (None, _) if inputs.len() > 1 => {
                let held = k.register(self.computed, &self.strip_of(&accumulators[0], number)?.shape().to_string())?;
                held.clear();
                each(k, unit, inputs.len(), &|which| {
                    let own = &inputs[which][at];
                    held.set(&own.numbers(&self.part, self.swapped, unit, tile, (number, &column))?)
                })?;
                held.numbers()
            }
            _ => input.numbers(&self.part, self.swapped, unit, tile, (number, &column)),
        });
        read.collect()
    }

    /// The values that are stored for a strip, in the type of D: the accumulators, or the epilogue
    /// function of them and the inputs. Reductions of rows and columns are taken here.
    fn values<'k>(
        &self,
        k: &'k Build,
        accumulators: &[Fragment<'k>],
        kept: &[View<'k>],
        unit: &Unit,
        (number, read): (i64, &[Vec<Num<'k>>]),
        taken: &mut [Option<Distributed<'k>>],
    ) -> Result<Fragment<'k>, KernelError> {
        let strips = accumulators
            .iter()
            .map(|accumulators| self.strip_of(accumulators, number))
            .collect::<Result<Vec<_>, _>>()?;
        let made = match self.fused.first() {
            None => strips[0].clone(),
            Some(fused) => computed(k, self.computed, fused, &strips, read)?,
        };
        if !self.takers.is_empty() {
            let (numbers, column) = (made.numbers()?, self.column(unit, number)?);
            for ((taker, to), taken) in self.takers.iter().zip(kept).zip(taken) {
                taker.take(k, &numbers, to, unit, &column, taken)?;
            }
        }
        made.to(self.result)
    }

    /// Writes the accumulators of a work unit. `group` is the number of tiles that are in flight
    /// before this one; `stage` is the stage of the ring in which D is staged, if it is.
    pub(crate) fn write<'k>(
        &self,
        k: &'k Build,
        accumulators: &[Fragment<'k>],
        (ends, cursor, stage): (&Ends<'k>, Option<&Cursor<'k>>, Option<&Expr>),
        unit: &Unit,
        group: usize,
    ) -> Result<(), KernelError> {
        let mut taken: Vec<Option<Distributed<'k>>> = vec![None; self.takers.len()];
        self.write_strips(k, accumulators, (ends, cursor, stage), (unit, group), &mut taken)?;
        for ((taker, to), taken) in self.takers.iter().zip(&ends.kept).zip(taken) {
            taker.leave(to, unit, taken)?;
        }
        Ok(())
    }

    fn write_strips<'k>(
        &self,
        k: &'k Build,
        accumulators: &[Fragment<'k>],
        (ends, cursor, stage): (&Ends<'k>, Option<&Cursor<'k>>, Option<&Expr>),
        (unit, group): (&Unit, usize),
        taken: &mut [Option<Distributed<'k>>],
    ) -> Result<(), KernelError> {
        let count = self.columns / self.strip;
        if self.split_k > 1 {
            return (0..count).try_for_each(|number| self.write_shared(accumulators, ends, unit, number));
        }
        let read = |number: i64| self.read(k, accumulators, &ends.inputs, unit, number);
        if ends.staged.is_empty() {
            for number in 0..count {
                let values = self.values(k, accumulators, &ends.kept, unit, (number, &read(number)?), taken)?;
                each(k, unit, ends.d.len(), &|which| {
                    let tile = self.tile(&ends.d[which], unit, (self.strip, &self.column(unit, number)?), 0)?;
                    tile.partition_mma(&self.part, Operand::C)?.store_predicated(&values)
                })?;
            }
            return Ok(());
        }
        for part in 0..self.parts {
            // Buffers alternate, starting with the first one in each tile.
            let staged = &ends.staged[group * self.buffers as usize + (part % self.buffers) as usize];
            let columns = self.part_columns.min(self.columns - part * self.part_columns);
            let staged = ends.rest.as_ref().filter(|_| columns < self.part_columns).unwrap_or(staged);
            let staged = &match stage {
                Some(stage) => staged.slice(Tree::flat([Slot::All, Slot::All, Slot::At(stage.clone())])?)?,
                None => staged.clone(),
            };
            let last = (self.parts - 1) % self.buffers;
            let under_way = if part == 0 && last == 0 { 0 } else { self.buffers as u32 - 1 };
            match cursor.filter(|_| part == 0) {
                // The thread that allowed the inputs to be loaded has waited until the former tile
                // had been read from shared memory.
                Some(cursor) => cursor.stage()?.wait()?,
                // The ring says when its stage is free.
                None if stage.is_some() && part == 0 => {}
                // Warps have left the operands, or the part before, in the same memory.
                None if self.by_warps => k.barrier(),
                None => {
                    self.single(k, || {
                        k.wait_bulk(under_way);
                        Ok(())
                    })?;
                    self.meet(k, ends)?;
                }
            }
            let tile = |which: usize| match self.rest {
                Some(_) => self.tile_from(&ends.d[which], unit, (columns, part * self.part_columns)),
                None => {
                    let at = plus(&times(&unit.column, &Expr::from(self.parts))?, &Expr::from(part))?;
                    self.tile(&ends.d[which], unit, (columns, &at), 0)
                }
            };
            let leave = |strip: Option<i64>| {
                k.fence_async();
                self.meet(k, ends)?;
                self.store(k, (staged, columns, strip), (ends, unit), tile)
            };
            let (first, strips) = (part * self.part_columns / self.strip, columns / self.strip);
            // The inputs of a strip are loaded before the former strip is stored.
            let mut next = read(first)?;
            for at in 0..strips {
                let number = first + at;
                let own = std::mem::take(&mut next);
                if at + 1 < strips {
                    next = read(number + 1)?;
                }
                let values = self.values(k, accumulators, &ends.kept, unit, (number, &own), taken)?;
                let place = tile_at(&Expr::from(0), Some(&Expr::from(at)))?;
                let strip = staged.local_tile((self.rows, self.strip), place)?;
                match &self.store {
                    Some(store) => k.copy(store, &values.retile(store, CopyEnd::Source)?, &strip)?,
                    None => strip.partition_mma(&self.part, Operand::C)?.store(&values)?,
                }
                if self.by_strips {
                    leave(Some(at))?;
                }
            }
            if let Some(spread) = &self.spread {
                k.barrier();
                each(k, unit, ends.d.len(), &|which| k.copy_predicated(spread, staged, &tile(which)?))?;
            } else if !self.by_strips {
                leave(None)?;
            }
        }
        cursor.map_or(Ok(()), Cursor::advance)
    }

    /// Writes a strip of partial accumulators in a split tail.
    fn write_shared<'k>(
        &self,
        accumulators: &[Fragment<'k>],
        ends: &Ends<'k>,
        unit: &Unit,
        number: i64,
    ) -> Result<(), KernelError> {
        let d = &ends.d[0];
        for (sum, own) in accumulators.iter().enumerate() {
            let tile = match (&unit.last, &unit.split) {
                (Some(last), Some(split)) => {
                    let at = Tree::flat([Slot::All, Slot::All, Slot::At(split.clone()), Slot::At(last.clone())])?;
                    let at_strip = tile_at(&Expr::from(0), Some(&Expr::from(number)))?;
                    d.slice(at)?.local_tile((self.rows, self.strip), at_strip)?
                }
                _ => self.tile(d, unit, (self.strip, &self.column(unit, number)?), sum)?,
            };
            tile.partition_mma(&self.part, Operand::C)?.store_predicated(&self.strip_of(own, number)?)?;
        }
        Ok(())
    }

    /// Waits for the last stores.
    pub(crate) fn end(&self, k: &Build) -> Result<(), KernelError> {
        if !self.through || self.spread.is_some() {
            return Ok(());
        }
        self.single(k, || {
            k.wait_bulk(0);
            Ok(())
        })
    }
}

/// The epilogue function of the accumulators of a strip and of its inputs, in a type.
fn computed<'k>(
    k: &'k Build,
    element: Element,
    fused: &Fused,
    strips: &[Fragment<'k>],
    read: &[Vec<Num<'k>>],
) -> Result<Fragment<'k>, KernelError> {
    let accumulators: Vec<Vec<Num<'k>>> = strips.iter().map(Fragment::numbers).collect::<Result<_, _>>()?;
    let mut computed = Vec::with_capacity(strips[0].size());
    for at in 0..strips[0].size() {
        let own = accumulators.iter().map(|accumulators| accumulators[at].to(element));
        let elements: Vec<Num<'k>> = own.chain(read.iter().map(|numbers| numbers[at])).collect();
        computed.push(fused.expression.number(k, element, &elements));
    }
    let values = k.register(element, &strips[0].shape().to_string())?;
    values.set(&computed)?;
    Ok(values)
}
