//! Runs: the pieces of a mode of B on which A is linear.
//!
//! Law: any layout with the function of one mode `s:d` of B after A has as first extent, coalesced,
//! the first `p` with `A(p*d) != p * A(d)`, or `s` when there is none; so `p` divides `s`, or no
//! composite exists, and the rest of the mode is `s/p : p*d`. Before the first carry `A` is linear
//! ([`crate::algebra::compose`], (1)). The first carry ends the run, unless several carries cancel.

use alloc::boxed::Box;

use super::{OP, Outer, overflow, unsigned};
use crate::algebra::carry;
use crate::refusal::error::{LayoutError, Overflow};
use crate::refusal::evidence::{BMode, Condition, Question, Uneven};
use crate::value::kind::ExtentKind;
use crate::value::layout::Leaf;
use crate::value::number::{Extent, Stride, Truth};
use crate::value::tree::TreeRef;

/// A piece `extent:step` of a mode of B on which A is linear from 0.
#[derive(Clone)]
pub(crate) struct LinearPiece<N> {
    pub(crate) extent: N,
    /// The magnitude of the step in B's codomain.
    pub(crate) step: N,
    pub(crate) negative: bool,
}

/// The extent of the first run of `extent:step`, which is the rest of mode `number` of B; and the
/// extent that remains after the run, which is 1 at the end.
#[inline(always)]
pub(super) fn first_run<D: Stride>(
    outer: &Outer<D>,
    b: TreeRef<'_, Leaf<D::Extent>>,
    number: usize,
    extent: &D::Extent,
    step: &D::Extent,
    value: &D,
) -> Result<(D::Extent, D::Extent), LayoutError> {
    let Some(FirstCarry { at, level, alone }) = first_carry(outer, extent, step)? else {
        return Ok((extent.clone(), D::Extent::one()));
    };
    let run = if alone { at } else { carry::first_break(outer, step.clone(), value.clone(), extent.clone(), at)? };
    if run == *extent {
        return Ok((run, D::Extent::one()));
    }
    let (quotient, remainder) = extent.divide(&run).ok_or_else(overflow::<D::Extent>)?;
    if !remainder.is_zero().proved() {
        let run = LinearPiece { extent: run, step: step.clone(), negative: false };
        return Err(uneven(outer, b, number, extent.clone(), run, level));
    }
    Ok((run, quotient))
}

/// The run for the case that it is not known whether a step stays below the end of a mode of A,
/// provided that the step divides the end: the run up to that end, the remaining extent, and the
/// value of a step. If the step equals the end, the run has one position, and its value is not
/// observed.
///
/// Errors: `refusal`, if its reason is another one or the step divides no end.
#[cold]
pub(super) fn run_to_end<D: Stride>(
    outer: &mut Outer<D>,
    extent: &D::Extent,
    step: &D::Extent,
    refusal: LayoutError,
) -> Result<(D::Extent, D::Extent, D), LayoutError> {
    match refusal {
        LayoutError::Open { .. } => dividing_run(outer, extent, step).ok_or(refusal),
        refusal => Err(refusal),
    }
}

fn dividing_run<D: Stride>(
    outer: &mut Outer<D>,
    extent: &D::Extent,
    step: &D::Extent,
) -> Option<(D::Extent, D::Extent, D)> {
    for number in 0..outer.levels.len() {
        let end = outer.levels.get(number).map(|level| level.end.clone())?;
        if !step.divides(&end).proved() {
            continue;
        }
        let (run, _) = end.divide(step)?;
        let (rest, left) = extent.divide(&run)?;
        if !left.is_zero().proved() || run.is_one().proved() {
            continue;
        }
        outer.forget_run();
        let (value, _) = outer.walk(step, &run.minus(&D::Extent::one())?, &run)?;
        if let Ok(None) = first_carry(outer, &run, step) {
            return Some((run, rest, value));
        }
    }
    None
}

/// Splits mode number `number` of B into runs and passes on each run.
pub(crate) fn split_mode<D: Stride>(
    outer: &mut Outer<D>,
    b: TreeRef<'_, Leaf<D::Extent>>,
    number: usize,
    mut emit: impl FnMut(LinearPiece<D::Extent>),
) -> Result<(), LayoutError> {
    let Some(leaf) = b.leaves.get(number) else { return Ok(()) };
    let negative = match leaf.stride.less(&D::Extent::zero()) {
        Truth::Open => return Err(unsigned(&leaf.stride)),
        sign => sign.proved(),
    };
    let mut step = leaf.stride.magnitude().ok_or_else(overflow::<D::Extent>)?;
    let mut extent = leaf.extent.clone();
    loop {
        let (value, _) = outer.walk(&step, &D::Extent::zero(), &extent).ok_or_else(overflow::<D::Extent>)?;
        let (run, next) = first_run(outer, b, number, &extent, &step, &value)?;
        let after = step.times(&run).ok_or_else(overflow::<D::Extent>)?;
        emit(LinearPiece { extent: run, step, negative });
        if next.is_one().proved() {
            return Ok(());
        }
        (step, extent) = (after, next);
    }
}

/// The first index within a mode at which a level carries.
struct FirstCarry<N> {
    at: N,
    level: usize,
    /// Whether only one level carries there, so that the carry cannot cancel.
    alone: bool,
}

#[inline(always)]
fn first_carry<D: Stride>(
    outer: &Outer<D>,
    extent: &D::Extent,
    step: &D::Extent,
) -> Result<Option<FirstCarry<D::Extent>>, LayoutError> {
    let last = extent.minus(&D::Extent::one()).ok_or_else(overflow::<D::Extent>)?;
    let mut levels = outer.levels.iter().enumerate();
    let mut first = loop {
        let Some((number, level)) = levels.next() else { return Ok(None) };
        if let Some(at) = level.carries(&last, extent, step)? {
            break FirstCarry { at, level: number, alone: true };
        }
    };
    for (number, level) in levels {
        if let Some(at) = level.carries(&last, extent, step)? {
            match (first.at.less_given(&at, &[extent]), at.less_given(&first.at, &[extent])) {
                (Truth::Proved, _) => {}
                (_, Truth::Proved) => first = FirstCarry { at, level: number, alone: true },
                (Truth::Refuted, Truth::Refuted) => first.alone = false,
                _ => return Err(LayoutError::open(OP, Condition::Ordered, &first.at, &at)),
            }
        }
    }
    Ok(Some(first))
}

#[cold]
fn uneven<D: Stride>(
    outer: &Outer<D>,
    b: TreeRef<'_, Leaf<D::Extent>>,
    number: usize,
    left: D::Extent,
    run: LinearPiece<D::Extent>,
    level: usize,
) -> LayoutError {
    let broken = outer.levels.get(level);
    let extent_of_a = broken.and_then(|level| level.extent.known());
    if let (Some(broken), Some(next)) = (broken, outer.steps(level + 1))
        && !broken.stride.continues(&broken.extent, next).refuted()
    {
        // For some values of the parameters the modes of A merge here, and the run does not end.
        let Some(end) = broken.stride.times(&broken.extent) else { return D::Extent::overflow(OP) };
        return LayoutError::Open { op: OP, question: Box::new(Question::plain(Condition::Equal, &end, next)) };
    }
    match (left.known(), run.extent.known(), run.step.known(), extent_of_a, b_mode(b, number)) {
        (Some(left), Some(run), Some(stride), Some(extent_of_a), Some(mode)) => {
            let uneven = Uneven { mode, left, run, stride, mode_of_a: level, extent_of_a };
            LayoutError::Uneven(Box::new(uneven))
        }
        // The condition is that the run divides the mode or that the mode stays below the end.
        (_, Some(_), ..) => LayoutError::open(OP, Condition::Divides, &run.extent, &left),
        _ => match broken.and_then(|level| Some((left.minus(&D::Extent::one())?.times(&level.part)?, &level.end))) {
            Some((reach, end)) => LayoutError::open(OP, Condition::Less, &reach, end),
            None => D::Extent::overflow(OP),
        },
    }
}

/// Mode number `number` of B, as error messages show it.
fn b_mode<N: Extent>(b: TreeRef<'_, Leaf<N>>, number: usize) -> Option<BMode> {
    let leaf = b.leaves.get(number)?;
    Some(BMode { path: b.profile.path(number), extent: leaf.extent.known()?, stride: leaf.stride.known()? })
}
