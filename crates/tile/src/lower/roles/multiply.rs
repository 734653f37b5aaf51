//! `dot` by wgmma.
//!
//! Law: wgmma is issued when its operands have arrived, and its stages are released when it has
//! finished. A stage that is not used in the body that loads it is held for the inner loops after
//! it, until the last of them has finished.

use tilewright_kernel::{Element, Fragment, KernelError, Num, Stage, View};
use tilewright_layout::{IntoShape, Tree};

use super::super::{Lowering, ThreadValue, over, staged};
use super::Groups;
use crate::matrix::{self, Tiling};
use crate::program::statement::definitions;
use crate::program::{Operation, Statement, ValueId};
use crate::roles::is_zero;

/// A wgmma in flight.
pub(super) struct UnderWay<'k> {
    pub(super) sums: Fragment<'k>,
    stages: Vec<Stage<'k>>,
}

impl UnderWay<'_> {
    /// Releases the stages of a wgmma that has finished.
    pub(super) fn release(&self) -> Result<(), KernelError> {
        self.stages.iter().try_for_each(Stage::release)
    }
}

impl<'k> Lowering<'k, '_> {
    pub(super) fn by_groups(&self) -> Result<&Groups<'k, '_>, KernelError> {
        self.groups.as_ref().ok_or_else(over)
    }

    fn tiling(&self, result: ValueId) -> Result<&Tiling, KernelError> {
        self.placed.tilings.get(&result).ok_or_else(over)
    }

    /// The shape of the accumulator fragment of `dot`.
    fn shape_of_sums(&self, result: ValueId) -> Result<Tree<i64>, KernelError> {
        let shape = &self.placed.program.type_of(result).shape;
        let tiling = self.tiling(result)?;
        let rows = shape[0] / (16 * tiling.warps[0]);
        let columns = shape[1] / tiling.beside;
        Ok(((2, 2, tiling.beside / 8), rows, columns).into_shape()?)
    }

    /// An operand in shared memory, with the mode of its rows before K.
    fn shared_operand(&self, value: ValueId, left: bool, stage: &Stage<'k>) -> Result<View<'k>, KernelError> {
        let groups = self.by_groups()?;
        let (ring, part) = groups.plan.of.get(&value).copied().ok_or_else(over)?;
        // A staged tile has the layout of the tensor. An operand may also read it transposed.
        let Operation::Stage { modes, .. } = self.stage_of(value)? else { return Err(over()) };
        let along = if left { modes } else { [modes[1], modes[0]] };
        let tile = groups.rings[ring].parts[part].slice(staged(stage.index())?)?;
        if along[0] < along[1] { Ok(tile) } else { tile.select(&[1, 0]) }
    }

    /// The initial accumulators of `dot`, in registers of their own, and whether there are any.
    pub(super) fn begun(&self, result: ValueId, sums: ValueId) -> Result<(Fragment<'k>, bool), KernelError> {
        let fragment = self.k.register(Element::F32, self.shape_of_sums(result)?)?;
        if is_zero(&self.placed.program, sums) {
            fragment.clear();
            return Ok((fragment, false));
        }
        fragment.set(&self.numbers(sums)?)?;
        Ok((fragment, true))
    }

    /// Operand A in registers, in the layout of the instruction.
    pub(super) fn rows_of(&self, result: ValueId, value: ValueId) -> Result<Fragment<'k>, KernelError> {
        let program = &self.placed.program;
        let shape = &program.type_of(value).shape;
        let rows = shape[0] / (16 * self.tiling(result)?.warps[0]);
        let element = program.type_of(value).element;
        let text = ((32 / element.bits(), 2, 2), rows, shape[1] / matrix::depth(element));
        let fragment = self.k.register(element, text)?;
        if let Some(ThreadValue::Tile(tile)) = self.values.get(&value) {
            return tile.fragment().with_layout(fragment.layout());
        }
        fragment.set(&self.numbers(value)?)?;
        Ok(fragment)
    }

    /// Waits for the operands of `dot`.
    pub(super) fn await_factors(&self, operands: &[ValueId]) -> Result<(), KernelError> {
        let groups = self.by_groups()?;
        let mut rings: Vec<usize> =
            operands[..2].iter().filter_map(|value| groups.plan.of.get(value)).map(|own| own.0).collect();
        rings.dedup();
        let new = rings.into_iter().filter(|ring| !groups.kept.contains_key(ring));
        new.into_iter().try_for_each(|ring| groups.cursors[ring].stage()?.wait())
    }

    /// Issues the wgmma of `dot` after its operands have arrived, with A in registers if it was
    /// computed.
    pub(super) fn set_off(
        &self,
        result: ValueId,
        operands: &[ValueId],
        (sums, adds): (&Fragment<'k>, bool),
        rows: Option<&Fragment<'k>>,
    ) -> Result<UnderWay<'k>, KernelError> {
        let groups = self.by_groups()?;
        let mma = &self.tiling(result)?.mma;
        let mut stages: Vec<(usize, Stage<'k>, bool)> = Vec::new();
        for value in &operands[..2] {
            let Some((ring, _)) = groups.plan.of.get(value).copied() else { continue };
            if stages.iter().all(|own| own.0 != ring) {
                let stage = groups.cursors[ring].stage()?;
                let kept = groups.kept.contains_key(&ring);
                if !kept {
                    groups.cursors[ring].advance()?;
                }
                stages.push((ring, stage, kept));
            }
        }
        let shared_operand = |value: ValueId, left: bool| {
            let ring = groups.plan.of.get(&value).map(|own| own.0);
            let stage = stages.iter().find(|own| Some(own.0) == ring).ok_or_else(over)?;
            self.shared_operand(value, left, &stage.1)
        };
        let b = shared_operand(operands[1], false)?;
        let k = self.k;
        match (rows, adds) {
            (Some(rows), true) => k.mma(mma, sums, rows, &b, sums)?,
            (Some(rows), false) => k.mma_anew(mma, sums, rows, &b)?,
            (None, true) => k.mma(mma, sums, &shared_operand(operands[0], true)?, &b, sums)?,
            (None, false) => k.mma_anew(mma, sums, &shared_operand(operands[0], true)?, &b)?,
        }
        let stages = stages.into_iter().filter(|own| !own.2).map(|own| own.1).collect();
        Ok(UnderWay { sums: sums.clone(), stages })
    }

    /// Emits a `dot` and waits until it has finished.
    pub(in crate::lower) fn multiplied_by_groups(
        &self,
        result: ValueId,
        operands: &[ValueId],
    ) -> Result<Vec<Num<'k>>, KernelError> {
        let (sums, adds) = self.begun(result, operands[2])?;
        let rows = match self.by_groups()?.plan.of.contains_key(&operands[0]) {
            true => None,
            false => Some(self.rows_of(result, operands[0])?),
        };
        self.await_factors(operands)?;
        let under_way = self.set_off(result, operands, (&sums, adds), rows.as_ref())?;
        self.k.wait_mma(0);
        under_way.release()?;
        under_way.sums.numbers()
    }

    /// Waits for a tile that inner loops, or several `dot` of the body, use, and holds its stage.
    pub(in crate::lower) fn hold(&mut self, value: ValueId, body: &[Statement]) -> Result<(), KernelError> {
        let groups = self.by_groups()?;
        let Some((ring, part)) = groups.plan.of.get(&value).copied() else { return Ok(()) };
        let operands = groups.operands(value);
        if groups.plan.again.contains_key(&value) || taken(body, &operands) == 1 && !is_used_inside(body, &operands) {
            return Ok(());
        }
        if let Some((other, _)) = groups.kept.get(&ring) {
            // The parts of a ring arrive together. A second tile would be in another stage.
            let is_other_part = groups.plan.of.get(other).is_some_and(|own| own.1 != part);
            return if is_other_part { Ok(()) } else { Err(over()) };
        }
        groups.cursors[ring].stage()?.wait()?;
        let depth = self.depth;
        if let Some(groups) = &mut self.groups {
            groups.kept.insert(ring, (value, depth));
        }
        Ok(())
    }

    /// Releases the stages that no later statement reads. That happens in the body that holds them,
    /// because other iterations of an inner loop still read them.
    pub(in crate::lower) fn let_go(&mut self, here: &[Statement], behind: &[Statement]) -> Result<(), KernelError> {
        let Some(groups) = &mut self.groups else { return Ok(()) };
        let is_over = |(value, depth): &(ValueId, usize)| {
            let operands = groups.operands(*value);
            *depth == self.depth && is_used(here, &operands) && !is_used(behind, &operands)
        };
        let over: Vec<usize> = groups.kept.iter().filter(|own| is_over(own.1)).map(|own| *own.0).collect();
        for ring in over {
            groups.cursors[ring].stage()?.release()?;
            groups.cursors[ring].advance()?;
            groups.kept.remove(&ring);
        }
        Ok(())
    }
}

impl Groups<'_, '_> {
    /// A loaded tile, and the other operands that read the same stage.
    fn operands(&self, value: ValueId) -> Vec<ValueId> {
        let again = self.plan.again.iter().filter(|own| *own.1 == value).map(|own| *own.0);
        std::iter::once(value).chain(again).collect()
    }
}

/// How many `dot` of a body, without its inner loops, use one of some values.
fn taken(body: &[Statement], values: &[ValueId]) -> usize {
    let takes = |statement: &&Statement| match statement {
        Statement::Let { operation: Operation::Dot, operands, .. } => {
            operands[..2].iter().any(|own| values.contains(own))
        }
        _ => false,
    };
    body.iter().filter(takes).count()
}

/// Whether an inner loop of a body uses one of some values.
fn is_used_inside(body: &[Statement], values: &[ValueId]) -> bool {
    body.iter().any(|statement| matches!(statement, Statement::Loop(own) if is_used(&own.body, values)))
}

/// Whether statements, or loops among them, use one of some values.
fn is_used(body: &[Statement], values: &[ValueId]) -> bool {
    definitions(body).any(|own| own.2.iter().any(|own| values.contains(own)))
}
