//! The producer: one thread issues the TMA loads of both operands, stage after stage.
//!
//! Law: the stages of a tile are filled in the order of K. Once every stage has been filled by
//! whole boxes, or by zeros, tiles at an edge are loaded without the lines outside
//! (`schedule/edges.rs`).
//! Epilogue inputs are loaded between the operands (`epilogue/beside.rs`). If D is staged in the
//! ring, it takes the stage after the last k-tile, which is published without a load.

use tilewright_kernel::{Cursor, KernelError, Stage, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Extent};

use crate::gemm::implicit::{Boxed, Fold};
use crate::gemm::index::at;
use crate::gemm::index::{minus, plus, times};
use crate::gemm::mainloop::declared::Declared;
use crate::gemm::mainloop::operand::{GemmOperand, part_of};
use crate::gemm::mainloop::outline::Clusters;
use crate::gemm::mainloop::pass::Pass;
use crate::gemm::schedule::edges::Loaded;
use crate::gemm::schedule::list::each;
use crate::gemm::schedule::unit::Unit;

/// The producer.
pub(crate) struct Loader<'a, 'k> {
    declared: &'a Declared<'a, 'k>,
    /// Its position in the ring of stages, and in the stage of prefetched inputs.
    cursor: Cursor<'k>,
    inputs: Option<Cursor<'k>>,
}

/// A tile that is being loaded.
struct LoadedTile<'a, 'k> {
    loader: &'a Loader<'a, 'k>,
    unit: &'a Unit,
    operands: &'a [GemmOperand<'k>; 2],
    /// The k-tiles of each operand in global memory; empty for implicit GEMM, whose boxes are
    /// computed for each k-tile.
    from: [Vec<View<'k>>; 2],
}

impl<'a, 'k> Loader<'a, 'k> {
    /// The role of the producer warps: the first thread of them loads all tiles of a block.
    pub(crate) fn role(declared: &'a Declared<'a, 'k>) -> Result<(), KernelError> {
        let (outline, multipliers) = (declared.outline, declared.outline.multipliers());
        declared.k.role(multipliers..multipliers + outline.copiers(), || Loader::load(declared))
    }

    /// Loads all tiles of a block.
    fn load(declared: &'a Declared<'a, 'k>) -> Result<(), KernelError> {
        let (k, outline) = (declared.k, declared.outline);
        if let Some([few, _]) = outline.plan.shares(outline.problem, outline.machine) {
            k.registers(few)?;
        }
        k.single(|| {
            let cursor = declared.cursor()?;
            let inputs = outline.epilogue.cursor(&declared.passes[0].ends, true)?;
            let loader = Loader { declared, cursor, inputs };
            declared.passes.iter().try_for_each(|pass| loader.load_pass(pass))
        })
    }

    fn load_pass(&self, pass: &Pass<'_, 'k>) -> Result<(), KernelError> {
        let Declared { k, outline, .. } = *self.declared;
        k.range(pass.own()?, |iteration| {
            let unit = pass.unit(&iteration)?;
            each(k, &unit, outline.problems.len(), &|problem| self.load_tile(pass, &unit, problem))?;
            if pass.epilogue.in_ring { self.leave_stage() } else { Ok(()) }
        })
    }

    /// Leaves the next stage to the epilogue, once the consumers have released it.
    fn leave_stage(&self) -> Result<(), KernelError> {
        let stage = self.cursor.stage()?;
        stage.acquire()?;
        stage.publish()?;
        self.cursor.advance()
    }

    /// Loads a tile of a problem, by the index of the problem.
    fn load_tile(&self, pass: &Pass<'_, 'k>, unit: &Unit, problem: usize) -> Result<(), KernelError> {
        let outline = self.declared.outline;
        let tile = self.tile(unit, problem)?;
        let is_plain = outline.clusters.iter().all(|clusters| clusters.edges.is_none());
        let stages = outline.plan.stages;
        let (zero, filled) = (Expr::from(0), Expr::from(stages));
        match &self.inputs {
            None if is_plain => tile.load_first(&zero, &unit.steps),
            None => {
                tile.load_first(&zero, &filled)?;
                tile.load_rest(&filled, &unit.steps)
            }
            Some(inputs) => pass.epilogue.fetch(&pass.ends, inputs, (unit, problem), |from, to| {
                // By then all stages have been filled by whole boxes.
                let late = from.known().is_some_and(|from| from >= stages);
                if is_plain || !late { tile.load_first(&from, &to) } else { tile.load_rest(&from, &to) }
            }),
        }
    }

    fn tile<'t>(&'t self, unit: &'t Unit, problem: usize) -> Result<LoadedTile<'t, 'k>, KernelError> {
        let outline = self.declared.outline;
        let (plan, depth) = (outline.plan, outline.problem.k_tile());
        let operands = &self.declared.operands[problem];
        let [left, right] = operands;
        let from = match &outline.fold {
            None => [
                left.tiles(unit, [plan.rows, depth], &unit.row)?,
                right.tiles(unit, [plan.columns, depth], &unit.column)?,
            ],
            Some(_) => [Vec::new(), Vec::new()],
        };
        Ok(LoadedTile { loader: self, unit, operands, from })
    }
}

impl<'k> LoadedTile<'_, 'k> {
    /// Loads a range of k-tiles into stages that may not have been filled: as whole boxes, or
    /// without the lines that are zeros already.
    fn load_first(&self, from: &Expr, to: &Expr) -> Result<(), KernelError> {
        let k = self.loader.declared.k;
        self.loader.declared.outline.clusters.iter().try_for_each(|clusters| {
            let own = self.phases_of(from, to, clusters)?;
            k.range(own, |phase| self.load_phase((from, &phase), clusters.edges.first(), clusters.side_by_side))
        })
    }

    /// Loads only the lines inside D of a range of k-tiles. All stages must have been filled
    /// before.
    fn load_rest(&self, from: &Expr, to: &Expr) -> Result<(), KernelError> {
        let k = self.loader.declared.k;
        self.loader.declared.outline.clusters.iter().try_for_each(|clusters| {
            let own = self.phases_of(from, to, clusters)?;
            clusters.edges.cases(self.unit)?.iter().try_for_each(|(tails, is)| {
                k.range(times(&own, is)?, |phase| self.load_phase((from, &phase), *tails, clusters.side_by_side))
            })
        })
    }

    /// The number of phases in which a cluster of this kind loads k-tiles: 0 if the cluster is of
    /// another kind.
    fn phases_of(&self, from: &Expr, to: &Expr, clusters: &Clusters) -> Result<Expr, KernelError> {
        let outline = self.loader.declared.outline;
        let all = minus(&outline.phase(to)?, &outline.phase(from)?)?;
        match &self.unit.above {
            None => Ok(all),
            Some(above) if clusters.side_by_side => times(&all, &minus(&Expr::from(1), above)?),
            Some(above) => times(&all, above),
        }
    }

    /// Fills the stages of the next phase with the k-tiles of a phase, counted from that of the
    /// k-tile `from`.
    fn load_phase(&self, (from, phase): (&Expr, &Expr), tails: Loaded, side_by_side: bool) -> Result<(), KernelError> {
        let outline = self.loader.declared.outline;
        let steps = outline.stages_of(&plus(&outline.phase(from)?, phase)?)?;
        let stage = self.loader.cursor.stage()?;
        stage.acquire()?;
        for ((_, step), (_, here)) in steps.into_iter().zip(outline.stages_of(stage.index())?) {
            let (step, here) = (plus(&self.unit.first, &step)?, at(&here)?);
            match (&outline.fold, &self.unit.boxed) {
                (Some(fold), Some(boxed)) => self.load_boxes((&stage, here), fold, boxed, &step)?,
                _ => {
                    self.load_operand((&stage, &here), 0, &step, (tails[0], side_by_side))?;
                    self.load_operand((&stage, &here), 1, &step, (tails[1], !side_by_side))?;
                }
            }
        }
        stage.publish()?;
        self.loader.cursor.advance()
    }

    /// Loads a k-tile of both operands with folded modes.
    fn load_boxes(
        &self,
        (stage, here): (&Stage<'k>, Coord<Expr>),
        fold: &Fold,
        boxed: &Boxed,
        step: &Expr,
    ) -> Result<(), KernelError> {
        let Declared { k, outline, rings: [left, right], .. } = self.loader.declared;
        let (columns, depth) = (outline.plan.columns, outline.problem.k_tile());
        let [a, b] = self.operands;
        stage.load(&fold.of_a(k, &a.view, boxed, (step, depth))?, &left.slice(here.clone())?)?;
        let from = fold.of_b(k, &b.view, (columns, &self.unit.column), (step, depth))?;
        stage.load(&from, &right.slice(here)?)
    }

    /// Loads a k-tile of one operand: all its lines, or those inside D. If the blocks of a cluster
    /// share the operand, each block multicasts a part.
    fn load_operand(
        &self,
        (stage, here): (&Stage<'k>, &Coord<Expr>),
        side: usize,
        step: &Expr,
        (tail, is_shared): (Option<i64>, bool),
    ) -> Result<(), KernelError> {
        let Declared { outline, rings, rank, .. } = self.loader.declared;
        let (plan, depth) = (outline.plan, outline.problem.k_tile());
        let (operand, lines) = (&self.operands[side], [plan.rows, plan.columns][side]);
        let (to, step) = (rings[side].slice(here.clone())?, at(step)?);
        if is_shared && plan.cluster > 1 {
            let own = [tail.unwrap_or(lines / plan.cluster), depth];
            let (from, to) = (self.from[side][0].slice(step)?, part_of(&to, own, rank)?);
            return stage.load_multicast(&part_of(&from, own, rank)?, &to, outline.all_blocks());
        }
        for (number, from) in (0..).zip(&self.from[side]) {
            let to = match operand.paired {
                true => operand.part(&to, [lines, depth], depth, number)?,
                false => to.clone(),
            };
            let (from, zero) = (from.slice(step.clone())?, Expr::from(0));
            match tail.map(|lines| [lines, depth]) {
                None => stage.load(&from, &to)?,
                Some(own) => stage.load(&part_of(&from, own, &zero)?, &part_of(&to, own, &zero)?)?,
            }
        }
        Ok(())
    }
}
