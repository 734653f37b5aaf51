//! What the sums of a kernel are written to, and what is read beside them.
//!
//! Law: inputs that come ahead have one stage of their own. Those who write say when it is free;
//! those who load fill it between the copies of the factors, in pieces where the tile has them, so
//! that these copies do not wait for all of it.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Cursor, Element, KernelError, View};
use tilewright_layout::Extent;
use tilewright_layout::symbolic::Expr;

use super::teams::THREADS;
use super::{Beside, Ends, Epilogue};
use crate::gemm::fused::{self, Fetch};
use crate::gemm::matrix::Matrix;
use crate::gemm::partials;
use crate::gemm::problem::Written;
use crate::gemm::schedule::{Unit, minus, overflow, plus, times};

/// The most pieces in which a tile of an input comes.
const PIECES: i64 = 8;

impl Epilogue {
    /// The tensors of the inputs of the function, and shared memory through which a tile is stored.
    pub(in crate::gemm) fn inputs<'k>(&self, k: &'k Build) -> Result<Beside<'k>, KernelError> {
        let buffers = if self.through { self.buffers as usize * self.tiles } else { 0 };
        let (staged, rest) = match &self.rest {
            Some(rest) if buffers > 0 => {
                // The rows of the last part lie one behind the other, too, in the same place.
                let all = format!("{}:1", self.rows * self.part_columns);
                let all = k.shared_of(self.result, &all)?;
                (vec![all.compose(&self.panels)?], Some(all.compose(rest)?))
            }
            _ => {
                let staged = (0..buffers).map(|_| k.shared_of(self.result, &self.panels));
                (staged.collect::<Result<Vec<View<'k>>, _>>()?, None)
            }
        };
        let (tile, fetches) = ([self.rows, self.columns], (&self.fetches[..], staged.first()));
        let mut inputs: Vec<Vec<fused::Input<'k>>> = Vec::new();
        for (problem, fused) in self.fused.iter().enumerate() {
            // What comes ahead comes into the same place in all problems of a list.
            let first = inputs.first().map(Vec::as_slice);
            let own = if self.fused.len() > 1 { format!("_{problem}") } else { String::new() };
            let declared = |input: &Matrix| self.declared_of(input);
            let all = fused::inputs(k, (fused, &own), self.swapped, tile, (fetches.0, fetches.1, first), declared)?;
            inputs.push(all);
        }
        Ok(Beside { staged, rest, inputs })
    }

    /// How a kernel declares a matrix beside the sums.
    fn declared_of(&self, matrix: &Matrix) -> String {
        self.fold.as_ref().and_then(|fold| fold.beside(matrix)).unwrap_or_else(|| matrix.declared())
    }

    /// What is written: D, or the sums of each range of steps, and what is kept besides.
    pub(in crate::gemm) fn ends<'k>(
        &self,
        k: &'k Build,
        written: &[&Written],
        Beside { staged, rest, inputs }: Beside<'k>,
    ) -> Result<Ends<'k>, KernelError> {
        let declare = |(at, own): (usize, &&Written)| match self.splits {
            1 if written.len() > 1 => k.tensor_of(self.result, &format!("d{at}"), &own.tensors[2], Role::Output),
            // Rows that belong to no group, and tiles that are shared, keep what they have.
            1 if self.grouped || self.before => k.tensor_of(self.result, "d", &own.tensors[2], Role::Both),
            1 => k.tensor_of(self.result, "d", &own.tensors[2], Role::Output),
            splits if self.tail > 0 => {
                let layout = partials::lies([self.rows, self.columns], splits, self.tail);
                k.tensor_of(Element::F32, "sums", &layout, Role::Output)
            }
            splits => k.tensor_of(Element::F32, "sums", &own.sums(splits, self.each), Role::Output),
        };
        let d = written.iter().enumerate().map(declare).collect::<Result<Vec<_>, _>>()?;
        let kept = self.takers.iter().enumerate().map(|(at, taker)| taker.declare(k, &format!("kept{at}")));
        let kept = kept.collect::<Result<_, _>>()?;
        let warps = (self.part.threads() / 32) as u32;
        let ahead = self.fetches.iter().any(Option::is_some);
        let ahead = if ahead { Some(k.pipeline(1, warps)?) } else { None };
        let meetings = (0..self.teams).filter(|_| self.teams > 1).map(|_| k.meeting(THREADS as u32));
        let meetings = meetings.collect::<Result<_, _>>()?;
        Ok(Ends { d, kept, staged, rest, inputs, ahead, meetings })
    }

    /// Sets off the inputs of a part of the work of a problem, when those before have been used and
    /// what was written before has left shared memory: in pieces, each after the copies of so many
    /// steps more, which `copies` sets off, so that these do not wait for all of them.
    pub(in crate::gemm) fn fetch<'k>(
        &self,
        ends: &Ends<'k>,
        cursor: &Cursor<'k>,
        (unit, problem): (&Unit, usize),
        copies: impl Fn(Expr, Expr) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let strips = self.columns / self.strip;
        // Strips of columns are apart in panels of which the lines go along the rows.
        let apart = !self.along_rows && !self.plain && self.tile_comes() && strips <= PIECES;
        let pieces = if apart { strips } else { 1 };
        // The first half of the steps comes before; then the place is free.
        let half = unit.steps.divide_up(&Expr::from(2)).ok_or_else(overflow)?;
        copies(Expr::from(0), half.clone())?;
        let stage = cursor.stage()?;
        stage.acquire()?;
        let others = minus(&unit.steps, &half)?;
        let until = |piece: i64| {
            let part = times(&others, &Expr::from(piece))?.floor_div(&Expr::from(pieces)).ok_or_else(overflow)?;
            plus(&half, &part)
        };
        for piece in 0..pieces {
            for input in ends.inputs.get(problem).into_iter().flatten() {
                input.fetch(&stage, self.swapped, unit, [self.rows, self.columns], (piece, pieces))?;
            }
            if piece + 1 == pieces {
                stage.publish()?;
                cursor.advance()?;
            }
            copies(until(piece)?, until(piece + 1)?)?;
        }
        Ok(())
    }

    /// Whether a tile of an input comes ahead of the sums, not vectors alone.
    pub(in crate::gemm) fn tile_comes(&self) -> bool {
        self.fetches.contains(&Some(Fetch::Tile))
    }

    /// Lets the inputs of a part of the work come: by those who write, while it is multiplied.
    pub(in crate::gemm) fn let_come<'k>(&self, k: &'k Build, cursor: Option<&Cursor<'k>>) -> Result<(), KernelError> {
        let Some(cursor) = cursor else { return Ok(()) };
        self.single(k, || {
            k.wait_bulk(0);
            Ok(())
        })?;
        cursor.stage()?.release()
    }

    /// The place of a role in the stage of inputs that come ahead; those who fill it are one turn
    /// ahead, because its users say when it is free the first time, too.
    pub(in crate::gemm) fn cursor<'k>(&self, ends: &Ends<'k>, fills: bool) -> Result<Option<Cursor<'k>>, KernelError> {
        let Some(ahead) = &ends.ahead else { return Ok(None) };
        let cursor = ahead.cursor()?;
        if fills {
            cursor.advance()?;
        }
        Ok(Some(cursor))
    }
}
