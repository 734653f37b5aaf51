//! Sums that are promoted: those of each step along K are added to totals in f32, times their
//! scales, where there are some (`scales.rs`).
//!
//! Law: while one part of a tile is added to its totals, the other one is multiplied; or another
//! group multiplies, where registers hold the sums of one part alone.

use tilewright_kernel::{Build, Fragment, KernelError, Num};
use tilewright_layout::symbolic::Expr;

use super::declared::Declared;
use super::multiply::Multiplier;
use super::outline::Outline;
use super::pass::Pass;
use crate::gemm::scales::promote;
use crate::gemm::schedule::{Unit, minus, plus};

/// The totals of a tile.
pub(super) struct Totals<'k>(Vec<Fragment<'k>>);

impl<'k> Totals<'k> {
    /// Their registers.
    pub(super) fn declare(k: &'k Build, outline: &Outline<'_>) -> Result<Totals<'k>, KernelError> {
        Ok(Totals(outline.epilogue.sums(k)?))
    }

    /// Multiplies a tile: its totals.
    pub(super) fn multiply_tile(
        &self,
        multiplier: &Multiplier<'_, 'k>,
        pass: &Pass<'_, 'k>,
        unit: &Unit,
    ) -> Result<&[Fragment<'k>], KernelError> {
        let Declared { k, outline, scaling, .. } = multiplier.declared;
        self.0.iter().for_each(Fragment::clear);
        let left = minus(&unit.steps, &Expr::from(1))?;
        let ask = |step: &Expr| match scaling {
            Some(scaling) => scaling.ask(&outline.mma, unit, &plus(&unit.first, step)?),
            None => Ok(Vec::new()),
        };
        let multiply = |scales: &[Vec<Num<'k>>]| self.multiply_step(multiplier, scales);
        let come = || pass.epilogue.let_come(k, multiplier.inputs.as_ref());
        match scaling.as_ref().and(outline.plan.scales_ahead(outline.problem)) {
            Some(ahead) => ahead.multiply(k, left, ask, multiply, come)?,
            None => {
                multiply(&ask(&Expr::from(0))?)?;
                come()?;
                k.range(left, |step| multiply(&ask(&plus(&step, &Expr::from(1))?)?))?;
            }
        }
        Ok(&self.0)
    }

    /// Multiplies the stage that is full next, and adds its sums.
    fn multiply_step(&self, multiplier: &Multiplier<'_, 'k>, scales: &[Vec<Num<'k>>]) -> Result<(), KernelError> {
        let Declared { k, outline, .. } = multiplier.declared;
        let (depth, parts) = (outline.problem.depth(), outline.plan.halves(outline.problem) as usize);
        let (held, here) = (multiplier.sums.len(), multiplier.wait_for_stage()?);
        (0..held).try_for_each(|number| multiplier.product(number, &here, depth))?;
        for number in 0..parts {
            if number >= held {
                multiplier.product(number, &here, depth)?;
            }
            let others = if held == parts { parts - 1 - number } else { 0 };
            k.wait_mma(others as u32);
            if number + 1 == parts {
                multiplier.release()?;
            }
            self.add(multiplier, number, scales)?;
        }
        Ok(())
    }

    /// Adds the sums of one of the parts of a tile.
    fn add(&self, multiplier: &Multiplier<'_, 'k>, number: usize, scales: &[Vec<Num<'k>>]) -> Result<(), KernelError> {
        let Declared { outline, scaling, .. } = multiplier.declared;
        let total = match outline.halved {
            true => outline.epilogue.half_of(&self.0[0], number)?,
            false => self.0[number].clone(),
        };
        let scales = scaling.as_ref().map(|scaling| scaling.of_part(&outline.mma, scales, number));
        promote(&total, &multiplier.sums[number % multiplier.sums.len()], scales.unwrap_or_default())
    }
}
