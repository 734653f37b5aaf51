//! The consumer: warpgroups multiply full stages and run the epilogue of each tile.
//!
//! Law: a stage is released when the wgmma of the next one has been issued, so that the tensor
//! cores always have work. If loads take longer than MMA, or the ring is short, a stage is released
//! as soon as its own wgmma is done.

use tilewright_kernel::{Build, Cursor, Fragment, KernelError};
use tilewright_layout::Coord;
use tilewright_layout::symbolic::Expr;

use crate::gemm::index::at;
use crate::gemm::index::minus;
use crate::gemm::mainloop::declared::Declared;
use crate::gemm::mainloop::outline::Outline;
use crate::gemm::mainloop::pass::Pass;
use crate::gemm::schedule::unit::Unit;

/// The consumer role.
pub(crate) struct Multiplier<'a, 'k> {
    pub(crate) declared: &'a Declared<'a, 'k>,
    /// The number of the warpgroup in a ping-pong schedule.
    group: usize,
    /// Accumulators: those of the whole tile, or of one instruction each.
    pub(crate) accumulators: Vec<Fragment<'k>>,
    /// The totals to which accumulators are promoted, if any.
    pub(crate) totals: Vec<Fragment<'k>>,
    /// The next stage to wait for, and the next one to release.
    ahead: Cursor<'k>,
    behind: Cursor<'k>,
    /// The stage of prefetched inputs of the epilogue.
    pub(crate) inputs: Option<Cursor<'k>>,
}

impl<'a, 'k> Multiplier<'a, 'k> {
    /// Multiplies all tiles of a warpgroup and runs their epilogues.
    pub(crate) fn multiply(declared: &'a Declared<'a, 'k>, group: usize) -> Result<(), KernelError> {
        let Declared { k, outline, order, passes, .. } = declared;
        if let Some([_, many]) = outline.plan.shares(outline.problem, outline.machine) {
            k.registers(many)?;
        }
        let totals = if outline.problem.is_promoted() { outline.epilogue.accumulators(k)? } else { Vec::new() };
        let accumulators = accumulators(k, outline)?;
        let (ahead, behind) = (declared.cursor()?, declared.cursor()?);
        let inputs = outline.epilogue.cursor(&passes[0].ends, false)?;
        // Promoted accumulators start from zero for each block of K, in the same registers.
        accumulators.iter().for_each(Fragment::clear);
        let multiplier = Multiplier { declared, group, accumulators, totals, ahead, behind, inputs };
        order.begin(group, [&multiplier.ahead, &multiplier.behind])?;
        passes.iter().try_for_each(|pass| multiplier.multiply_pass(pass))?;
        order.end(k, &passes[0].own()?, group)?;
        outline.epilogue.end(k)
    }

    fn multiply_pass(&self, pass: &Pass<'_, 'k>) -> Result<(), KernelError> {
        let (Declared { k, order, .. }, inputs) = (self.declared, self.inputs.as_ref());
        k.range(order.own(&pass.own()?, self.group)?, |iteration| {
            let unit = pass.unit(&order.tile(&iteration, self.group)?)?;
            order.wait(self.group);
            let accumulators = if self.totals.is_empty() {
                self.multiply_tile(pass, &unit)?;
                &self.accumulators
            } else {
                self.multiply_promoted_tile(pass, &unit)?;
                &self.totals
            };
            pass.epilogue.write(k, accumulators, (&pass.ends, inputs, None), &unit, self.group)
        })
    }

    /// The mainloop of an output tile, into the same accumulators.
    fn multiply_tile(&self, pass: &Pass<'_, 'k>, unit: &Unit) -> Result<(), KernelError> {
        let Declared { k, outline, order, .. } = self.declared;
        self.accumulators.iter().for_each(Fragment::clear);
        let at_once = outline.releases_at_once();
        // Phases that are issued before the loop.
        let first = if at_once { 0 } else { 1 };
        (0..first).try_for_each(|_| self.set_off(outline.problem.k_tile()))?;
        match &self.inputs {
            None => self.multiply_others(minus(&outline.phase(&unit.steps)?, &Expr::from(first))?)?,
            Some(_) => {
                let early = outline.phase(&pass.epilogue.until_inputs(&unit.steps)?)?;
                self.multiply_phases(minus(&early, &Expr::from(first))?, outline.problem.k_tile())?;
                pass.epilogue.let_come(k, self.inputs.as_ref())?;
                self.multiply_others(minus(&outline.phase(&unit.steps)?, &early)?)?;
            }
        }
        order.pass(self.group);
        k.wait_mma(0);
        (0..first).try_for_each(|_| self.release())?;
        order.skip([&self.ahead, &self.behind])
    }

    /// Multiplies the k-tiles of the last phases of a tile.
    fn multiply_others(&self, phases: Expr) -> Result<(), KernelError> {
        let depth = self.declared.outline.problem.k_tile();
        let Some(inside) = self.declared.outline.inside_last_step() else { return self.multiply_phases(phases, depth) };
        self.multiply_phases(minus(&phases, &Expr::from(1))?, depth)?;
        self.multiply_phases(Expr::from(1), inside)
    }

    /// Multiplies the k-tiles of the next phases, the last one of each up to an extent along K.
    fn multiply_phases(&self, phases: Expr, along: i64) -> Result<(), KernelError> {
        let Declared { k, outline, .. } = self.declared;
        // How many wgmma groups stay in flight.
        let groups = outline.plan.halves(outline.problem) * outline.stages_of_phase();
        let under_way = if outline.releases_at_once() { 0 } else { groups as u32 };
        k.range(phases, |_| {
            self.set_off(along)?;
            k.wait_mma(under_way);
            self.release()
        })
    }

    /// Waits for the stages of the next phase and issues their wgmma, those of the last one up to
    /// an extent along K.
    fn set_off(&self, along: i64) -> Result<(), KernelError> {
        let outline = self.declared.outline;
        let depth = outline.problem.k_tile();
        for (own, stage) in outline.stages_of(&self.wait_for_phase()?)? {
            let (here, along) = (at(&stage)?, if own + 1 == outline.stages_of_phase() { along } else { depth });
            let parts = outline.plan.halves(outline.problem) as usize;
            (0..parts).try_for_each(|number| self.product(number, &here, along))?;
        }
        Ok(())
    }

    /// Waits until the stages of the next phase are full, and returns its number in the ring.
    pub(crate) fn wait_for_phase(&self) -> Result<Expr, KernelError> {
        let stage = self.ahead.stage()?;
        stage.wait()?;
        let here = stage.index().clone();
        self.ahead.advance()?;
        Ok(here)
    }

    /// Issues the wgmma of one part of a tile, up to an extent along K of a stage.
    pub(crate) fn product(&self, number: usize, here: &Coord<Expr>, along: i64) -> Result<(), KernelError> {
        let Declared { k, outline, operands, rings, .. } = self.declared;
        let (plan, depth, is_promoted) = (outline.plan, outline.problem.k_tile(), outline.problem.is_promoted());
        let own = self.accumulators[number % self.accumulators.len()].clone();
        let own = if outline.halved && !is_promoted { outline.epilogue.half_of(&own, number)? } else { own };
        let ([left, right], [ring_left, ring_right]) = (&operands[0], rings);
        let left = left.part(&ring_left.slice(here.clone())?, [plan.rows, depth], along, number as i64)?;
        let right = right.part(&ring_right.slice(here.clone())?, [plan.columns, depth], along, number as i64)?;
        match is_promoted {
            true => k.mma_anew(&outline.mma, &own, &left, &right),
            false => k.mma(&outline.mma, &own, &left, &right, &own),
        }
    }

    /// Releases the oldest stage to all producers that fill it.
    pub(crate) fn release(&self) -> Result<(), KernelError> {
        let (outline, stage) = (self.declared.outline, self.behind.stage()?);
        match outline.plan.cluster {
            1 => stage.release()?,
            _ => stage.release_to(outline.all_blocks())?,
        }
        self.behind.advance()
    }
}

/// The registers of accumulators: of a tile, or of both gated columns. If they are promoted, of the
/// parts that are in flight together.
fn accumulators<'k>(k: &'k Build, outline: &Outline<'_>) -> Result<Vec<Fragment<'k>>, KernelError> {
    let epilogue = &outline.epilogue;
    if !outline.problem.is_promoted() {
        return epilogue.accumulators(k);
    }
    let at_once = outline.plan.at_once(outline.problem, outline.machine) as usize;
    if outline.halved {
        return (0..at_once).map(|_| epilogue.half(k)).collect();
    }
    Ok(epilogue.accumulators(k)?.into_iter().take(at_once).collect())
}
