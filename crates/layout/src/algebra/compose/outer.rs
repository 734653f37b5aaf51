//! The outer layout of a composition, and carries out of its modes.
//!
//! Law: with the modes, ends `P_k` and steps of [`crate::algebra::compose`], `A(i)` is the sum of
//! `digit * D_k` over the digits of `i`; the last mode continues without end. The part of a step
//! `e` at level `k` is `a_k = e mod P_k`, the value of its digits below the end of mode `k`. Runs
//! `t_l : e_l` of one sign carry nowhere exactly when `sum (t_l - 1) * a_lk < P_k` for every `k`;
//! so each level accumulates that sum over the runs.

use core::mem::replace;

use arrayvec::ArrayVec;

use super::{OP, overflow};
use crate::algebra::coalesce::each_coalesced;
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::Condition;
use crate::refusal::interrupt::Work;
use crate::value::kind::ExtentKind;
use crate::value::layout::Leaf;
use crate::value::number::{Extent, Stride, Truth};

/// The outer layout of a composition, as a function on all integers: `A(i)` is the sum of
/// `digit * stride` over the levels, plus the rest of `i` times the step of the last mode.
pub(crate) struct Outer<D: Stride> {
    /// The coalesced modes except the last.
    pub(crate) levels: ArrayVec<OuterLevel<D>, MAX_LEVELS>,
    /// The step of the last mode, which has no end.
    last: D,
    /// The remaining work limit of its searches; only a carry that cancels needs a search.
    pub(crate) work: Work,
}

/// A mode of the outer layout except the last, and the sum from which carries out of it are
/// decided.
pub(crate) struct OuterLevel<D: Stride> {
    /// `M_k`
    pub(crate) extent: D::Extent,
    /// `D_k`
    pub(super) stride: D,
    /// `P_k`: the number of indices that this mode and those before it cover.
    pub(crate) end: D::Extent,
    /// `a_k` of the current run: its step modulo `P_k`.
    pub(crate) part: D::Extent,
    /// The sum of `(t_l - 1) * a_lk` over the runs so far, the current one included, as long as no
    /// carry has occurred.
    sum: D::Extent,
    /// The same sum without the current run.
    before: D::Extent,
}

/// The largest number of modes of a coalesced outer layout. Sixty-two modes cover every size below
/// 2^63.
pub(crate) const MAX_LEVELS: usize = 64;

impl<D: Stride> Outer<D> {
    /// An outer layout into which [`Outer::read`] writes.
    #[inline(always)]
    pub(crate) fn blank() -> Outer<D> {
        Outer { levels: ArrayVec::new(), last: D::zero(), work: Work::new() }
    }

    /// Reads the modes of a layout.
    #[inline(always)]
    pub(crate) fn read(&mut self, leaves: &[Leaf<D>]) -> Result<(), LayoutError> {
        self.try_read(leaves).fits_as::<D::Extent>(OP)
    }

    #[inline(always)]
    fn try_read(&mut self, leaves: &[Leaf<D>]) -> Option<()> {
        let mut end = D::Extent::one();
        let last = each_coalesced(leaves, true, |mode| {
            end = end.times(&mode.extent)?;
            let zero = D::Extent::zero;
            let Leaf { extent, stride } = mode;
            let level = OuterLevel { extent, stride, end: end.clone(), part: zero(), sum: zero(), before: zero() };
            self.levels.try_push(level).ok()
        })?;
        if let Some(last) = last {
            self.last = last.stride;
        }
        Some(())
    }

    /// The stride of mode number `mode`.
    pub(super) fn steps(&self, mode: usize) -> Option<&D> {
        match self.levels.get(mode) {
            Some(level) => Some(&level.stride),
            None => (mode == self.levels.len()).then_some(&self.last),
        }
    }

    /// Adds a run of `extent` steps of `step`, the last one number `last`. Returns `A(step)` and
    /// whether no level carries. If none carries, the run does not split either, because its own
    /// part of a sum is no larger than the sum.
    ///
    /// A run of extent 1 stays at 0 and adds nothing, whatever `A(step)` is; so the extent may be
    /// assumed to be greater than 1.
    #[inline(always)]
    pub(super) fn walk(&mut self, step: &D::Extent, last: &D::Extent, extent: &D::Extent) -> Option<(D, bool)> {
        let (mut value, mut rest) = (D::zero(), step.clone());
        let (mut part, mut begin) = (D::Extent::zero(), D::Extent::one());
        let mut fits = true;
        for level in &mut self.levels {
            let (quotient, digit) = rest.divide_given(&level.extent, &[extent])?;
            value.add_times(&digit, &level.stride)?;
            part = part.plus(&begin.times(&digit)?)?;
            level.part = part.clone();
            fits &= level.takes(last, extent);
            (rest, begin) = (quotient, level.end.clone());
        }
        value.add_times(&rest, &self.last)?;
        Some((value, fits))
    }

    /// The first level that carries, or may carry, if the current run has extent `extent`, with the
    /// last step number `last`.
    #[inline]
    pub(super) fn carrying(&mut self, last: &D::Extent, extent: &D::Extent) -> Option<usize> {
        self.levels.iter_mut().position(|level| !level.fits(last, extent))
    }

    /// Removes the current run from the sums.
    pub(super) fn forget_run(&mut self) {
        for level in &mut self.levels {
            level.sum = level.before.clone();
        }
    }

    /// Removes all runs from the sums.
    pub(super) fn restart(&mut self) {
        for level in &mut self.levels {
            level.sum = D::Extent::zero();
        }
    }

    /// `A(step)` for a step of any sign, if A has a single mode.
    #[inline]
    pub(super) fn straight(&self, step: &D::Extent) -> Option<D> {
        self.last.times(step)
    }

    /// `A(index)`.
    #[inline]
    pub(crate) fn eval(&self, index: &D::Extent) -> Option<D> {
        let (mut value, mut rest) = (D::zero(), index.clone());
        for level in &self.levels {
            let (quotient, digit) = rest.divide(&level.extent)?;
            value.add_times(&digit, &level.stride)?;
            rest = quotient;
        }
        value.add_times(&rest, &self.last)?;
        Some(value)
    }
}

impl<D: Stride> OuterLevel<D> {
    /// Adds the current run, whose part is known, with steps up to number `last`. Returns whether
    /// all runs together certainly stay below the end.
    #[inline(always)]
    fn takes(&mut self, last: &D::Extent, extent: &D::Extent) -> bool {
        match last.times(&self.part).and_then(|reach| self.sum.plus(&reach)) {
            Some(sum) => {
                self.before = replace(&mut self.sum, sum);
                self.sum.less_given(&self.end, &[extent]).proved()
            }
            None => {
                self.before = self.sum.clone();
                false
            }
        }
    }

    /// The first step of the current run, below `extent` and at any coordinate of the other runs,
    /// at which this level carries.
    #[inline(always)]
    pub(super) fn carries(
        &self,
        last: &D::Extent,
        extent: &D::Extent,
        step: &D::Extent,
    ) -> Result<Option<D::Extent>, LayoutError> {
        let reach = last.times(&self.part);
        if self.part.is_zero().proved() || reach.is_some_and(|reach| reach.less_given(&self.end, &[extent]).proved()) {
            return Ok(None);
        }
        if !D::Extent::zero().less_given(&self.part, &[extent]).proved() {
            return Err(carrying_or_not(self, step, extent));
        }
        self.end.divide_up(&self.part).map(Some).ok_or_else(overflow::<D::Extent>)
    }

    /// Replaces the number of steps of the current run; returns the same as `takes`.
    #[inline(always)]
    fn fits(&mut self, last: &D::Extent, extent: &D::Extent) -> bool {
        match last.times(&self.part).and_then(|reach| self.before.plus(&reach)) {
            Some(sum) => {
                self.sum = sum;
                self.sum.less_given(&self.end, &[extent]).proved()
            }
            None => false,
        }
    }
}

/// The error if it is not known whether steps of a mode of B carry out of a mode of A.
#[cold]
fn carrying_or_not<D: Stride>(level: &OuterLevel<D>, step: &D::Extent, extent: &D::Extent) -> LayoutError {
    let (zero, one) = (D::Extent::zero(), D::Extent::one());
    if extent.known().is_some()
        && let Some(reach) = extent.minus(&one).and_then(|last| last.times(step))
        && reach.less(&level.end) == Truth::Open
    {
        return LayoutError::open(OP, Condition::Less, &reach, &level.end);
    }
    // The usual reason is that the mode of A may have only one position.
    match (one.less(&level.extent), step.less(&level.end)) {
        (Truth::Open, _) => LayoutError::open(OP, Condition::Less, &one, &level.extent),
        (_, Truth::Open) => LayoutError::open(OP, Condition::Less, step, &level.end),
        _ => LayoutError::open(OP, Condition::Less, &zero, &level.part),
    }
}
