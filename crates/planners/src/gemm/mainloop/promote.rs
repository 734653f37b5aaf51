//! Promotion: the accumulators of each k-tile are multiplied by their scales, if there are any
//! (`scales.rs`), and added to totals in f32.
//!
//! Law: while one part of a tile is promoted, the other part is multiplied. If there are registers
//! for the accumulators of one part only, another warpgroup multiplies meanwhile.

use tilewright_kernel::{Fragment, KernelError, Num};
use tilewright_layout::symbolic::Expr;

use crate::gemm::index::{at, minus, plus};
use crate::gemm::mainloop::declared::Declared;
use crate::gemm::mainloop::multiply::Multiplier;
use crate::gemm::mainloop::pass::Pass;
use crate::gemm::mainloop::scales::promote;
use crate::gemm::schedule::unit::Unit;

impl<'k> Multiplier<'_, 'k> {
    /// Multiplies a tile into its totals.
    pub(crate) fn multiply_promoted_tile(&self, pass: &Pass<'_, 'k>, unit: &Unit) -> Result<(), KernelError> {
        let Declared { k, outline, scaling, .. } = self.declared;
        self.totals.iter().for_each(Fragment::clear);
        let left = minus(&unit.steps, &Expr::from(1))?;
        let ask = |step: &Expr| match scaling {
            Some(scaling) => scaling.ask(&outline.mma, unit, &plus(&unit.first, step)?),
            None => Ok(Vec::new()),
        };
        let multiply = |scales: &[Vec<Num<'k>>]| self.multiply_promoted_k_tile(scales);
        let come = || pass.epilogue.let_come(k, self.inputs.as_ref());
        match scaling.as_ref().and(outline.plan.scales_ahead(outline.problem, outline.machine)) {
            Some(ahead) => ahead.multiply(k, left, ask, multiply, come),
            None => {
                multiply(&ask(&Expr::from(0))?)?;
                come()?;
                k.range(left, |step| multiply(&ask(&plus(&step, &Expr::from(1))?)?))
            }
        }
    }

    /// Multiplies the next full stage, and adds its accumulators to the totals.
    fn multiply_promoted_k_tile(&self, scales: &[Vec<Num<'k>>]) -> Result<(), KernelError> {
        let Declared { k, outline, .. } = self.declared;
        let (depth, parts) = (outline.problem.k_tile(), outline.plan.halves(outline.problem) as usize);
        let (held, here) = (self.accumulators.len(), at(&self.wait_for_phase()?)?);
        (0..held).try_for_each(|number| self.product(number, &here, depth))?;
        for number in 0..parts {
            if number >= held {
                self.product(number, &here, depth)?;
            }
            let others = if held == parts { parts - 1 - number } else { 0 };
            k.wait_mma(others as u32);
            if number + 1 == parts {
                self.release()?;
            }
            self.promote_part(number, scales)?;
        }
        Ok(())
    }

    /// Adds the accumulators of one part of a tile.
    fn promote_part(&self, number: usize, scales: &[Vec<Num<'k>>]) -> Result<(), KernelError> {
        let Declared { outline, scaling, .. } = self.declared;
        let total = match outline.halved {
            true => outline.epilogue.half_of(&self.totals[0], number)?,
            false => self.totals[number].clone(),
        };
        let scales = scaling.as_ref().map(|scaling| scaling.of_part(&outline.mma, scales, number));
        promote(&total, &self.accumulators[number % self.accumulators.len()], scales.unwrap_or_default())
    }
}
