//! Outputs and inputs of an epilogue: declarations and prefetch.
//!
//! Law: inputs that are prefetched have one stage of their own. Consumers say when it is free. The
//! producer fills it between the loads of the operands, in pieces if it is a tile, so that these
//! loads do not wait for all of it.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Cursor, KernelError, LayoutArgument, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Layout, LayoutError};

use crate::gemm::epilogue::cut::Rest;
use crate::gemm::epilogue::inputs::{self, Fetch};
use crate::gemm::epilogue::outline::{Ends, Epilogue, EpilogueInputs};
use crate::gemm::epilogue::split_k;
use crate::gemm::index::tile_at;
use crate::gemm::index::{minus, overflow, plus, times};
use crate::gemm::plan::{WARPGROUP_ROWS, WARPGROUP_THREADS};
use crate::gemm::problem::matrix::Matrix;
use crate::gemm::problem::text::Written;
use crate::gemm::schedule::unit::Unit;

/// The most pieces in which a tile of an input is loaded.
const STRIPS: i64 = 8;
/// K-tiles that are multiplied before a tile's inputs may be loaded, and before the loads are
/// issued. The number is the first one, or the k-tiles of the tile divided by the second one if
/// that is less.
const MULTIPLIED: [i64; 2] = [4, 4];
const LOADED: [i64; 2] = [8, 2];

impl Epilogue {
    /// The epilogue inputs, and the shared memory through which a tile is stored: `memory`, or its
    /// own.
    pub(crate) fn inputs<'k>(
        &self,
        k: &'k Build,
        memory: Option<&View<'k>>,
    ) -> Result<EpilogueInputs<'k>, KernelError> {
        let buffers = if self.through { self.buffers as usize * self.tiles } else { 0 };
        let (staged, rest) = match &self.rest {
            None if buffers == 1 && memory.is_some() => {
                let staged = memory.map(|memory| memory.recast(self.result, &self.panels));
                (staged.into_iter().collect::<Result<Vec<View<'k>>, _>>()?, None)
            }
            Some(Rest::Rows(rest)) if buffers > 0 => {
                // In the last part, too, rows are contiguous, in the same buffer.
                let all = k.shared_of(self.result, Layout::strided(self.rows * self.part_columns, 1))?;
                (vec![all.compose(&self.panels)?], Some(all.compose(rest)?))
            }
            rest => {
                let staged = (0..buffers).map(|_| k.shared_of(self.result, &self.panels));
                let staged = staged.collect::<Result<Vec<View<'k>>, _>>()?;
                let rest = match (rest, staged.first()) {
                    (Some(Rest::Columns(rest)), Some(staged)) => {
                        let first = tile_at(&Expr::from(0), Some(&Expr::from(0)))?;
                        Some(staged.local_tile((self.rows, *rest), first)?)
                    }
                    _ => None,
                };
                (staged, rest)
            }
        };
        let (tile, fetches) = ([self.rows, self.columns], (&self.fetches[..], staged.first()));
        let mut inputs: Vec<Vec<inputs::Input<'k>>> = Vec::new();
        for (problem, fused) in self.fused.iter().enumerate() {
            // Prefetched inputs use the same buffer in all problems of a list.
            let first = inputs.first().map(Vec::as_slice);
            let own = if self.fused.len() > 1 { format!("_{problem}") } else { String::new() };
            let declared = |input: &Matrix| self.declared_of(input);
            let all = inputs::inputs(
                k,
                (fused, &own),
                self.swapped,
                tile,
                (fetches.0, fetches.1, first),
                self.computed,
                declared,
            )?;
            inputs.push(all);
        }
        Ok(EpilogueInputs { staged, rest, inputs })
    }

    /// The layout that a kernel declares for a matrix with the shape of D.
    ///
    /// Errors: an element has no offset that is a number.
    fn declared_of(&self, matrix: &Matrix) -> Result<LayoutArgument, LayoutError> {
        self.fold.as_ref().and_then(|fold| fold.beside(matrix)).map_or_else(|| matrix.declared(), Ok)
    }

    /// What is written: D, or the partial accumulators of split-K, and the partial reductions.
    pub(crate) fn ends<'k>(
        &self,
        k: &'k Build,
        written: &[&Written],
        EpilogueInputs { staged, rest, inputs }: EpilogueInputs<'k>,
    ) -> Result<Ends<'k>, KernelError> {
        let declare = |(at, own): (usize, &&Written)| match self.split_k {
            1 if written.len() > 1 => k.tensor_of(self.result, &format!("d{at}"), &own.tensors[2], Role::Output),
            // Rows that belong to no group, and tiles of a split tail, keep what they have.
            1 if self.grouped || self.before => k.tensor_of(self.result, "d", &own.tensors[2], Role::Both),
            1 => k.tensor_of(self.result, "d", &own.tensors[2], Role::Output),
            split_k if self.tail > 0 => {
                let layout = split_k::partials_layout([self.rows, self.columns], split_k, self.tail);
                k.tensor_of(self.accumulator, "partials", layout, Role::Output)
            }
            split_k => k.tensor_of(self.accumulator, "partials", &own.partials(split_k, self.each), Role::Output),
        };
        let d = written.iter().enumerate().map(declare).collect::<Result<Vec<_>, _>>()?;
        let kept = self.takers.iter().enumerate().map(|(at, taker)| taker.declare(k, &format!("kept{at}")));
        let kept = kept.collect::<Result<_, _>>()?;
        let warps = (self.part.threads() / 32) as u32;
        let ahead = self.fetches.iter().any(Option::is_some);
        let ahead = if ahead { Some(k.pipeline(1, warps)?) } else { None };
        let meetings = (0..self.teams).filter(|_| self.teams > 1).map(|_| k.meeting(WARPGROUP_THREADS as u32));
        let meetings = meetings.collect::<Result<_, _>>()?;
        Ok(Ends { d, kept, staged, rest, inputs, ahead, meetings })
    }

    /// Issues the loads of the inputs of a work unit, once the former inputs have been used and the
    /// former output has left shared memory. They are issued in pieces, each after the operand
    /// loads of a few more k-tiles, which `copies` issues, so that operand loads do not wait for
    /// all of them.
    pub(crate) fn fetch<'k>(
        &self,
        ends: &Ends<'k>,
        cursor: &Cursor<'k>,
        (unit, problem): (&Unit, usize),
        copies: impl Fn(Expr, Expr) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let strips = self.columns / self.strip;
        // If panels go along rows, strips of columns are separate in shared memory; so are blocks
        // of rows of a strip that is one panel.
        let apart = !self.along_rows && !self.plain && self.tile_comes() && strips <= STRIPS;
        let blocks = if self.strip == self.panel { self.rows / WARPGROUP_ROWS } else { 1 };
        let pieces = if apart { [blocks, strips] } else { [1, 1] };
        // The loads of the first k-tiles come first; then the buffer is free.
        let first = beginning(&unit.steps, LOADED)?;
        copies(Expr::from(0), first.clone())?;
        let stage = cursor.stage()?;
        stage.acquire()?;
        // A piece every two k-tiles, or more often if there are few.
        let others = minus(&unit.steps, &first)?;
        let all = pieces[0] * pieces[1];
        let until = |piece: i64| {
            if piece == all {
                return Ok(unit.steps.clone());
            }
            let part = times(&others, &piece.into())?.floor_div(&all.into()).ok_or_else(overflow)?;
            plus(&first, &part.minimum(&(2 * piece).into()).ok_or_else(overflow)?)
        };
        for piece in 0..all {
            for input in ends.inputs.get(problem).into_iter().flatten() {
                let at = [piece % pieces[0], piece / pieces[0]];
                input.fetch(&stage, self.swapped, unit, [self.rows, self.columns], (at, pieces))?;
            }
            if piece + 1 == all {
                stage.publish()?;
                cursor.advance()?;
            }
            copies(until(piece)?, until(piece + 1)?)?;
        }
        Ok(())
    }

    /// How many k-tiles of a tile are multiplied before its inputs may be loaded. By then the
    /// former tile has left their buffer in shared memory, so no warp waits for it.
    pub(crate) fn until_inputs(&self, steps: &Expr) -> Result<Expr, KernelError> {
        beginning(steps, MULTIPLIED)
    }

    /// Whether a whole tile of an input is prefetched, not only vectors.
    pub(crate) fn tile_comes(&self) -> bool {
        self.fetches.contains(&Some(Fetch::Tile))
    }

    /// Called by the warps that write: allows the inputs of a work unit to be loaded while it is
    /// multiplied.
    pub(crate) fn let_come<'k>(&self, k: &'k Build, cursor: Option<&Cursor<'k>>) -> Result<(), KernelError> {
        let Some(cursor) = cursor else { return Ok(()) };
        self.single(k, || {
            k.wait_bulk(0);
            Ok(())
        })?;
        cursor.stage()?.release()
    }

    /// The position of a role in the stage of prefetched inputs. The producer is one phase ahead,
    /// because consumers also release the stage before its first use.
    pub(crate) fn cursor<'k>(&self, ends: &Ends<'k>, fills: bool) -> Result<Option<Cursor<'k>>, KernelError> {
        let Some(ahead) = &ends.ahead else { return Ok(None) };
        let cursor = ahead.cursor()?;
        if fills {
            cursor.advance()?;
        }
        Ok(Some(cursor))
    }
}

/// The first k-tiles of a tile: `most` of them, or one in `part` of all if that is less.
fn beginning(steps: &Expr, [most, part]: [i64; 2]) -> Result<Expr, KernelError> {
    let part = steps.divide_up(&part.into()).ok_or_else(overflow)?;
    part.minimum(&most.into()).ok_or_else(overflow)
}
