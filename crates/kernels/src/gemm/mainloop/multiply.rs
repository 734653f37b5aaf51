//! The role that multiplies: groups of four warps that take what has arrived, stage after stage,
//! and write the sums of each tile.
//!
//! Law: a stage is released when the products of the next one are set off, so that there are always
//! some under way. Where copies take longer than products, or each stage is needed again soon, it
//! is released as soon as its own are done.

use tilewright_kernel::{Build, Cursor, Fragment, KernelError};
use tilewright_layout::Coord;
use tilewright_layout::symbolic::Expr;

use super::declared::Declared;
use super::outline::Outline;
use super::pass::Pass;
use super::promote::Totals;
use crate::gemm::schedule::{Unit, minus};
use crate::product::at;

/// The role that multiplies.
pub(super) struct Multiplier<'a, 'k> {
    pub(super) declared: &'a Declared<'a, 'k>,
    /// The group, of those that take tiles in turn.
    group: usize,
    /// The sums of one product each; those of both halves of the columns, or one of them for each.
    pub(super) sums: Vec<Fragment<'k>>,
    /// The stages that are full next, and those that are released next.
    ahead: Cursor<'k>,
    behind: Cursor<'k>,
    /// The one stage of inputs that come ahead.
    pub(super) inputs: Option<Cursor<'k>>,
}

impl<'a, 'k> Multiplier<'a, 'k> {
    /// Multiplies all tiles of a group and writes them.
    pub(super) fn multiply(declared: &'a Declared<'a, 'k>, group: usize) -> Result<(), KernelError> {
        let Declared { k, outline, order, passes, .. } = declared;
        if let Some([_, many]) = outline.plan.shares(outline.problem) {
            k.registers(many)?;
        }
        let is_promoted = outline.problem.is_promoted();
        let totals = if is_promoted { Some(Totals::declare(k, outline)?) } else { None };
        let sums = sums(k, outline)?;
        let (ahead, behind) = (declared.pipeline.cursor()?, declared.pipeline.cursor()?);
        let inputs = outline.epilogue.cursor(&passes[0].ends, false)?;
        // Each product of sums that are promoted begins anew, in the same registers.
        sums.iter().for_each(Fragment::clear);
        let multiplier = Multiplier { declared, group, sums, ahead, behind, inputs };
        order.begin(group, [&multiplier.ahead, &multiplier.behind])?;
        passes.iter().try_for_each(|pass| multiplier.multiply_pass(pass, totals.as_ref()))?;
        order.end(k, &passes[0].own()?, group)?;
        outline.epilogue.end(k)
    }

    fn multiply_pass(&self, pass: &Pass<'_, 'k>, totals: Option<&Totals<'k>>) -> Result<(), KernelError> {
        let (Declared { k, order, .. }, inputs) = (self.declared, self.inputs.as_ref());
        k.range(order.own(&pass.own()?, self.group)?, |turn| {
            let unit = pass.unit(&order.turn(&turn, self.group)?)?;
            order.wait(self.group);
            let sums = match totals {
                None => {
                    self.multiply_tile(pass, &unit)?;
                    &self.sums
                }
                Some(totals) => totals.multiply_tile(self, pass, &unit)?,
            };
            pass.epilogue.write(k, sums, (&pass.ends, inputs), &unit, self.group)
        })
    }

    /// Multiplies all steps of a tile into the same sums.
    fn multiply_tile(&self, pass: &Pass<'_, 'k>, unit: &Unit) -> Result<(), KernelError> {
        let Declared { k, outline, order, .. } = self.declared;
        self.sums.iter().for_each(Fragment::clear);
        let at_once = outline.releases_at_once();
        // How many steps are set off before the loop.
        let first = if at_once { 0 } else { 1 };
        (0..first).try_for_each(|_| self.set_off(outline.problem.depth()))?;
        match &self.inputs {
            None => self.multiply_others(first, &unit.steps)?,
            Some(_) => {
                let early = pass.epilogue.until_inputs(&unit.steps)?;
                self.multiply_steps(minus(&early, &Expr::from(first))?, outline.problem.depth())?;
                pass.epilogue.let_come(k, self.inputs.as_ref())?;
                self.multiply_others(0, &minus(&unit.steps, &early)?)?;
            }
        }
        order.pass(self.group);
        k.wait_mma(0);
        (0..first).try_for_each(|_| self.release())?;
        order.skip([&self.ahead, &self.behind])
    }

    /// Multiplies the last steps, of which so many have been set off.
    fn multiply_others(&self, first: i64, steps: &Expr) -> Result<(), KernelError> {
        let depth = self.declared.outline.problem.depth();
        let all = minus(steps, &Expr::from(first))?;
        let Some(inside) = self.declared.outline.inside_last_step() else { return self.multiply_steps(all, depth) };
        self.multiply_steps(minus(&all, &Expr::from(1))?, depth)?;
        self.multiply_steps(Expr::from(1), inside)
    }

    /// Multiplies the next steps, so far along K of each.
    fn multiply_steps(&self, steps: Expr, along: i64) -> Result<(), KernelError> {
        let Declared { k, outline, .. } = self.declared;
        // How many products stay under way.
        let under_way = if outline.releases_at_once() { 0 } else { outline.plan.halves(outline.problem) as u32 };
        k.range(steps, |_| {
            self.set_off(along)?;
            k.wait_mma(under_way);
            self.release()
        })
    }

    /// Sets off the products of the stage that is full next.
    fn set_off(&self, along: i64) -> Result<(), KernelError> {
        let (outline, here) = (self.declared.outline, self.wait_for_stage()?);
        (0..outline.plan.halves(outline.problem) as usize).try_for_each(|number| self.product(number, &here, along))
    }

    /// Waits for the stage that is full next: where it is.
    pub(super) fn wait_for_stage(&self) -> Result<Coord<Expr>, KernelError> {
        let stage = self.ahead.stage()?;
        stage.wait()?;
        let here = at(stage.index())?;
        self.ahead.advance()?;
        Ok(here)
    }

    /// Sets off the product of one of the parts of a tile, so far along K of a stage.
    pub(super) fn product(&self, number: usize, here: &Coord<Expr>, along: i64) -> Result<(), KernelError> {
        let Declared { k, outline, factors, rings, .. } = self.declared;
        let (plan, depth, is_promoted) = (outline.plan, outline.problem.depth(), outline.problem.is_promoted());
        let own = self.sums[number % self.sums.len()].clone();
        let own = if outline.halved && !is_promoted { outline.epilogue.half_of(&own, number)? } else { own };
        let ([left, right], [ring_left, ring_right]) = (&factors[0], rings);
        let left = left.part(&ring_left.slice(here.clone())?, [plan.rows, depth], along, number as i64)?;
        let right = right.part(&ring_right.slice(here.clone())?, [plan.columns, depth], along, number as i64)?;
        match is_promoted {
            true => k.mma_anew(&outline.mma, &own, &left, &right),
            false => k.mma(&outline.mma, &own, &left, &right, &own),
        }
    }

    /// Releases the stage that is released next, to all who fill it.
    pub(super) fn release(&self) -> Result<(), KernelError> {
        let (outline, stage) = (self.declared.outline, self.behind.stage()?);
        match outline.plan.cluster {
            1 => stage.release()?,
            _ => stage.release_to(&outline.all_blocks(), 0)?,
        }
        self.behind.advance()
    }
}

/// The registers of the sums of products: of a tile, and of pairs those of both; of sums that are
/// promoted those of as many parts as are multiplied at once.
fn sums<'k>(k: &'k Build, outline: &Outline<'_>) -> Result<Vec<Fragment<'k>>, KernelError> {
    let epilogue = &outline.epilogue;
    if !outline.problem.is_promoted() {
        return epilogue.sums(k);
    }
    let at_once = outline.plan.at_once(outline.problem) as usize;
    if outline.halved {
        return (0..at_once).map(|_| epilogue.half(k)).collect();
    }
    Ok(epilogue.sums(k)?.into_iter().take(at_once).collect())
}
