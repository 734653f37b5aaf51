//! Composition: `A o B` is `A` after `B`.
//!
//! # Law
//!
//! `R = A o B` is the layout with `R(c) = A(B(c))` for every coordinate `c` of `B`, whose shape refines `B`'s, each leaf of
//! `B` replaced by one leaf or a flat tuple, coalesced there. `A` is read on all integers: it goes on in its last mode past the
//! end and mirrors below zero. `R` is unique when it exists. [`Layout::compose`] returns it exactly when it exists.
//!
//! # The criterion
//!
//! Coalesce `A` as a function on all integers: modes `M_1..M_n`, steps `D_1..D_n`, the last mode endless, and let
//! `P_k = M_1 * .. * M_k` for `k < n`: mode `k+1` begins every `P_k` indices. Put `K_k = D_(k+1) - M_k * D_k`, which is never 0,
//! or the modes would have merged. Writing the digits of `i >= 0` as differences of quotients,
//!
//! ```text
//! A(i) = i * D_1 + sum over k of K_k * floor(i / P_k)                                          (1)
//! ```
//!
//! (for `i < 0` truncate instead of floor). So `A` fails to be additive only through carries into the `P_k`.
//!
//! *One mode of `B`.* For a mode `s:d` let `h(x) = A(x * d)`. Any layout with this function, coalesced, has as first extent the first
//! `p` with `h(p) != p * h(1)`, or `s` when there is none; so `p` must divide `s` (else: refused, [`LayoutError::Uneven`]), and the rest is the
//! mode `s/p : p*d`. By (1), with `a_k = |d| mod P_k`, the first index at which anything can happen is the least `ceil(P_k / a_k)`
//! over the `k` with `a_k != 0`: there some carries set in together, and `h` breaks unless their `K_k` cancel, in which case the
//! next carry is tried. This splits every mode of `B` into *runs* `t:e` on each of which `A` is linear from 0.
//!
//! *Across modes.* Let the runs of all modes be `t_l : e_l`. A composite exists if and only if `A(sum c_l e_l) = sum c_l A(e_l)` for every
//! `0 <= c_l < t_l`: sufficient, because the right side is the layout with leaves `t_l : A(e_l)`; necessary, because the runs are forced,
//! and a layout adds up over its leaves. When all `e_l` have one sign, (1) turns this into
//!
//! ```text
//! sum over k of K_k * g_k(c) = 0 for every c,   g_k(c) = floor(sum c_l * a_lk / P_k),   a_lk = |e_l| mod P_k      (2)
//! ```
//!
//! with every `g_k >= 0` growing in `c`. Hence:
//!
//! * **No carry**, `sum (t_l - 1) * a_lk < P_k` for every `k`: the composite exists. Both passes cost one division a leaf and level, and there are at most 63 levels.
//! * **A carry** whose `K_k` do not cancel at the first `c` where one sets in: none exists. Two runs usually show it, the one with which
//!   the sum first reaches `P_k` and the one before it with the largest part there, and then that `c` is shown at once.
//! * **Carries that cancel** there (`(2,2,2):(1,1,3) o (2,2):(3,3)` is `(2,2):(2,2)`: at `3+3` the carries out of the first and of the
//!   second mode weigh -1 and +1) leave (2) open. Deciding it for arbitrary strides contains the knapsack problem, so it is decided by
//!   splitting the box of coordinates until each part is free of carries ([`crate::carry`]), within a stated limit.
//!
//! With steps of both signs the sum crosses zero. Then level `k` is free of carries when all `e_l` are multiples of `P_k`, or
//! when the sum stays strictly between `-P_k` and `P_k`; otherwise the box is split in the same way.

use core::mem::swap;

use alloc::boxed::Box;

use arrayvec::ArrayVec;

use crate::carry;
use crate::coalesce::each_coalesced;
use crate::error::{LayoutError, Limit};
use crate::evidence::{BMode, Condition, Question, Uneven};
use crate::inner::Inner;
use crate::layout::{Layout, Leaf};
use crate::number::{Extent, Stride, Truth};
use crate::profile::{MAX_NODES, Nodes, Splitting};
use crate::tree::{Leaves, TreeRef};

pub(crate) const OP: &str = "composition";

/// The outer layout of a composition, as a function on all integers: `A(i)` adds up `digit * stride` over the levels and, for what is
/// left of `i`, the step of the last mode.
pub(crate) struct Outer<D: Stride> {
    /// The coalesced modes but the last.
    pub(crate) levels: ArrayVec<Level<D>, MAX_LEVELS>,
    /// The step of the last mode, which has no end.
    last: D,
    /// Whether the sums may be other than zero.
    used: bool,
}

/// A mode of the outer layout that ends, and what is known about carries out of it.
pub(crate) struct Level<D: Stride> {
    /// `M_k`
    pub(crate) extent: D::Extent,
    /// `D_k`
    stride: D,
    /// `P_k`: how many indices this mode and those before it cover.
    pub(crate) end: D::Extent,
    /// `a_k` of the run at hand: its step modulo `P_k`.
    part: D::Extent,
    /// The sum of `(t_l - 1) * a_lk` over the runs so far, the one at hand included, as long as no carry has set in.
    sum: D::Extent,
    /// The same without the run at hand.
    before: D::Extent,
}

/// The most modes that the outer layout of a composition may have once it is coalesced. Sixty-two cover every size below 2^63.
pub(crate) const MAX_LEVELS: usize = 64;

/// A piece `extent:step` of a mode of B on which A is linear from 0.
#[derive(Clone)]
pub(crate) struct Run<N> {
    pub(crate) extent: N,
    /// The magnitude of the step in B's codomain.
    pub(crate) step: N,
    pub(crate) negative: bool,
}

impl<D: Stride> Outer<D> {
    /// An outer layout that is about to be read.
    #[inline(always)]
    pub(crate) fn blank() -> Outer<D> {
        Outer { levels: ArrayVec::new(), last: D::zero(), used: false }
    }

    /// Reads a layout.
    #[inline(always)]
    pub(crate) fn read(&mut self, leaves: &[Leaf<D>]) -> Result<(), LayoutError> {
        self.try_read(leaves).ok_or_else(|| LayoutError::overflow(OP))
    }

    #[inline(always)]
    fn try_read(&mut self, leaves: &[Leaf<D>]) -> Option<()> {
        let mut end = D::Extent::one();
        let last = each_coalesced(leaves, true, |mode| {
            end = end.times(&mode.extent)?;
            let zero = D::Extent::zero;
            let Leaf { extent, stride } = mode;
            let level = Level { extent, stride, end: end.clone(), part: zero(), sum: zero(), before: zero() };
            self.levels.try_push(level).ok()
        })?;
        if let Some(last) = last {
            self.last = last.stride;
        }
        Some(())
    }

    /// The step of mode number `mode`.
    fn steps(&self, mode: usize) -> Option<&D> {
        match self.levels.get(mode) {
            Some(level) => Some(&level.stride),
            None => (mode == self.levels.len()).then_some(&self.last),
        }
    }

    /// Takes up a run of `extent` steps of `step`, the last one number `last`, and gives `A(step)` and whether no level carries with it. If
    /// so, its mode does not split here either: its own part of a sum is no larger than the sum.
    ///
    /// A run of one step is at 0 and its parts add nothing, whatever `A(step)` is; so it may be taken for granted that there are more.
    #[inline(always)]
    fn walk(&mut self, step: &D::Extent, last: &D::Extent, extent: &D::Extent) -> Option<(D, bool)> {
        let (mut value, mut rest) = (D::zero(), step.clone());
        let (mut part, mut begin) = (D::Extent::zero(), D::Extent::one());
        let mut fits = true;
        for level in &mut self.levels {
            let (quotient, digit) = rest.divide_given(&level.extent, &[extent])?;
            value = value.plus(&level.stride.times(&digit)?)?;
            part = part.plus(&begin.times(&digit)?)?;
            level.part = part.clone();
            swap(&mut level.before, &mut level.sum);
            fits &= level.fits(last, extent);
            (rest, begin) = (quotient, level.end.clone());
        }
        Some((value.plus(&self.last.times(&rest)?)?, fits))
    }

    /// The first level that carries, or may carry, if the run at hand makes `extent` steps, the last one number `last`.
    #[inline]
    fn carrying(&mut self, last: &D::Extent, extent: &D::Extent) -> Option<usize> {
        self.levels.iter_mut().position(|level| !level.fits(last, extent))
    }

    /// No runs so far.
    #[inline(always)]
    fn start(&mut self) {
        if self.used {
            for level in &mut self.levels {
                level.sum = D::Extent::zero();
            }
        }
        self.used = true;
    }

    /// `A(step)` for a step of any sign, where A is a line.
    #[inline]
    fn straight(&self, step: &D::Extent) -> Option<D> {
        self.last.times(step)
    }

    /// `A(index)`.
    #[inline]
    pub(crate) fn eval(&self, index: &D::Extent) -> Option<D> {
        let (mut value, mut rest) = (D::zero(), index.clone());
        for level in &self.levels {
            let (quotient, digit) = rest.divide(&level.extent)?;
            value = value.plus(&level.stride.times(&digit)?)?;
            rest = quotient;
        }
        value.plus(&self.last.times(&rest)?)
    }
}

impl<D: Stride> Level<D> {
    /// Whether the steps of the run at hand up to number `last`, together with the runs so far, surely stay below the end.
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

impl<D: Stride> Layout<D> {
    /// `A o B`: the layout `R` with `R(c) = A(B(c))` at every coordinate of `b` (CuTe `composition(A, B)`).
    ///
    /// The strides of `b` are integers, and its values indices of `self`; or they are steps in modes, such as `3@1`, and its values are
    /// coordinates of `self` ([`Inner`]).
    ///
    /// The shape of `R` refines that of `b`. Where `b` leaves the domain of `self`, `self` goes on in its last mode; see
    /// [`Layout::compose_within`] for the form that refuses this.
    ///
    /// Errors: no such layout exists ([`LayoutError::Carry`], [`LayoutError::Uneven`]); a step of `b` is in a mode that `self` does not have
    /// ([`LayoutError::NoPath`]); a stride is not representable.
    ///
    /// ```
    /// use tilewright_layout::{Coordinate, Layout};
    ///
    /// let a: Layout = "(6,2):(8,2)".parse().unwrap();
    /// let b: Layout = "(4,3):(3,1)".parse().unwrap();
    /// assert_eq!(a.compose(&b).unwrap().to_string(), "((2,2),3):((24,2),8)");
    ///
    /// let transpose: Layout<Coordinate> = "(2,6):(1@1,1@0)".parse().unwrap();
    /// assert_eq!(a.compose(&transpose).unwrap().to_string(), "(2,6):(2,8)");
    /// ```
    #[inline]
    pub fn compose<B: Inner<D>>(&self, b: &Layout<B>) -> Result<Layout<D>, LayoutError> {
        B::compose(self, b)
    }

    /// The strict composition: as [`Layout::compose`], but `b` must stay within `0..size` of `self`.
    ///
    /// Errors: as [`Layout::compose`], and [`LayoutError::OutOfDomain`].
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let a: Layout = "4:1".parse().unwrap();
    /// let b: Layout = "8:2".parse().unwrap();
    /// assert_eq!(a.compose(&b).unwrap().to_string(), "8:2");
    /// assert_eq!(a.compose_within(&b).unwrap_err().code(), "E0109");
    /// ```
    pub fn compose_within<B: Inner<D>>(&self, b: &Layout<B>) -> Result<Layout<D>, LayoutError> {
        B::within(self, b)?;
        self.compose(b)
    }
}

/// Refuses offsets of B that are no index of a mode of A with so many.
pub(crate) fn stays_within<N: Extent>((least, greatest): (N, N), size: N, mode: &[usize]) -> Result<(), LayoutError> {
    const OP: &str = "composition_within";
    let zero = N::zero();
    if !least.less(&zero).refuted() || !greatest.less(&size).proved() {
        return Err(match (least.known(), greatest.known(), size.known()) {
            (Some(least), Some(greatest), Some(size)) => {
                LayoutError::OutOfDomain { mode: mode.to_vec(), least, greatest, size }
            }
            _ if !least.less(&zero).refuted() => LayoutError::open(OP, Condition::AtMost, &zero, &least),
            _ => LayoutError::open(OP, Condition::Less, &greatest, &size),
        });
    }
    Ok(())
}

/// Appends `A o B`, where `B` has integer strides, to a tree that is being written: the one way from modes of layouts to their composite.
#[inline]
pub(crate) fn compose_parts<D: Stride>(
    a: TreeRef<'_, Leaf<D>>,
    b: TreeRef<'_, Leaf<D::Extent>>,
    nodes: &mut Nodes,
    leaves: &mut Leaves<Leaf<D>>,
) -> Result<(), LayoutError> {
    if D::DISTRIBUTES {
        let mut outer = Outer::blank();
        outer.read(a.leaves)?;
        return compose_into(&mut outer, b, nodes, leaves);
    }
    let composed = D::compose_layouts(&Layout::from_valid(a.to_owned()), &Layout::from_valid(b.to_owned()))?;
    nodes.extend_from_slice(composed.profile().as_ref().nodes());
    leaves.extend(composed.leaves().iter().cloned());
    if nodes.len() > MAX_NODES {
        return Err(LayoutError::TooLarge { limit: Limit::Nodes, value: nodes.len() });
    }
    Ok(())
}

/// `A o B` where counts act as integers do.
#[inline(always)]
pub(crate) fn compose_integers<D: Stride>(a: &Layout<D>, b: &Layout<D::Extent>) -> Result<Layout<D>, LayoutError> {
    let mut outer = Outer::blank();
    outer.read(a.leaves())?;
    compose_outer(&mut outer, b)
}

/// `A o B` for an outer layout that has been read.
#[inline(always)]
pub(crate) fn compose_outer<D: Stride>(outer: &mut Outer<D>, b: &Layout<D::Extent>) -> Result<Layout<D>, LayoutError> {
    let mut result = Layout::blank();
    let (nodes, leaves) = result.parts_mut();
    compose_into(outer, b.as_ref(), nodes, leaves)?;
    Ok(result)
}

/// Appends `A o B` to a tree that is being written.
#[inline(always)]
pub(crate) fn compose_into<D: Stride>(
    outer: &mut Outer<D>,
    b: TreeRef<'_, Leaf<D::Extent>>,
    nodes: &mut Nodes,
    leaves: &mut Leaves<Leaf<D>>,
) -> Result<(), LayoutError> {
    let overflow = || LayoutError::overflow(OP);
    outer.start();
    let (mut rising, mut falling, mut open) = (false, false, false);
    let first = leaves.len();
    let mut tree = Splitting::new(b.profile, nodes);
    for (number, leaf) in b.leaves.iter().enumerate() {
        if leaf.extent.is_one().proved() || leaf.stride.is_zero().proved() {
            leaves.push(Leaf { extent: leaf.extent.clone(), stride: D::zero() });
            tree.leaf(nodes, 1);
            continue;
        }
        let negative = match leaf.stride.less(&D::Extent::zero()) {
            Truth::Proved => true,
            Truth::Refuted => false,
            // Whether it rises or falls is all the same to a line.
            Truth::Open if outer.levels.is_empty() => {
                let stride = outer.straight(&leaf.stride).ok_or_else(overflow)?;
                leaves.push(Leaf { extent: leaf.extent.clone(), stride });
                tree.leaf(nodes, 1);
                continue;
            }
            Truth::Open => return Err(unsigned(&leaf.stride)),
        };
        rising |= !negative;
        falling |= negative;
        let mut extent = leaf.extent.clone();
        let mut step = leaf.stride.magnitude().ok_or_else(overflow)?;
        let mut runs = 1;
        loop {
            let last = extent.minus(&D::Extent::one()).ok_or_else(overflow)?;
            let (value, fits) = outer.walk(&step, &last, &extent).ok_or_else(overflow)?;
            if fits {
                leaves.push(Leaf { extent, stride: signed(value, negative).ok_or_else(overflow)? });
                break;
            }
            let (run, rest) = first_run(outer, b, number, &extent, &step, &value)?;
            let stride = signed(value, negative).ok_or_else(overflow)?;
            match outer.carrying(&run.minus(&D::Extent::one()).ok_or_else(overflow)?, &run) {
                None => {}
                Some(level) => {
                    // The first carry decides, unless it cancels; with steps of both signs the sums say nothing.
                    if !(open || rising && falling) {
                        let placed = leaves.get(first..).unwrap_or_default();
                        let run = Run { extent: run.clone(), step: step.clone(), negative };
                        if let Some(refusal) = carry::refute(outer, b, placed, number, &run, &stride, level) {
                            return Err(refusal);
                        }
                    }
                    open = true;
                }
            }
            step = step.times(&run).ok_or_else(overflow)?;
            leaves.push(Leaf { extent: run, stride });
            match rest {
                Some(rest) => extent = rest,
                None => break,
            }
            runs += 1;
        }
        tree.leaf(nodes, runs);
    }
    tree.finish(nodes)?;
    if open || (rising && falling && !outer.levels.is_empty()) { carry::decide(outer, b) } else { Ok(()) }
}

#[inline(always)]
fn signed<D: Stride>(value: D, negative: bool) -> Option<D> {
    if negative { value.times(&D::Extent::from(-1)) } else { Some(value) }
}

/// The extent of the first run of `extent:step`, which is what is left of mode number `number` of B and has been walked; then the
/// extent of what remains.
#[inline(always)]
fn first_run<D: Stride>(
    outer: &Outer<D>,
    b: TreeRef<'_, Leaf<D::Extent>>,
    number: usize,
    extent: &D::Extent,
    step: &D::Extent,
    value: &D,
) -> Result<(D::Extent, Option<D::Extent>), LayoutError> {
    let Some(FirstCarry { at, level, alone }) = first_carry(outer, extent, step)? else {
        return Ok((extent.clone(), None));
    };
    let run = if alone { at } else { carry::first_break(outer, step, value, extent, at)? };
    if run == *extent {
        return Ok((run, None));
    }
    let (quotient, remainder) = extent.divide(&run).ok_or_else(|| LayoutError::overflow(OP))?;
    if !remainder.is_zero().proved() {
        return Err(uneven(outer, b, number, extent, &Run { extent: run, step: step.clone(), negative: false }, level));
    }
    Ok((run, Some(quotient)))
}

/// Splits mode number `number` of B into runs, and hands over each.
pub(crate) fn split_mode<D: Stride>(
    outer: &mut Outer<D>,
    b: TreeRef<'_, Leaf<D::Extent>>,
    number: usize,
    mut emit: impl FnMut(Run<D::Extent>),
) -> Result<(), LayoutError> {
    let overflow = || LayoutError::overflow(OP);
    let Some(leaf) = b.leaves.get(number) else { return Ok(()) };
    let negative = match leaf.stride.less(&D::Extent::zero()) {
        Truth::Open => return Err(unsigned(&leaf.stride)),
        sign => sign.proved(),
    };
    let mut step = leaf.stride.magnitude().ok_or_else(overflow)?;
    let mut rest = Some(leaf.extent.clone());
    while let Some(extent) = rest {
        let (value, _) = outer.walk(&step, &D::Extent::zero(), &extent).ok_or_else(overflow)?;
        let (run, next) = first_run(outer, b, number, &extent, &step, &value)?;
        let after = step.times(&run).ok_or_else(overflow)?;
        emit(Run { extent: run, step, negative });
        (step, rest) = (after, next);
    }
    Ok(())
}

/// The first index within a mode at which a carry sets in.
struct FirstCarry<N> {
    at: N,
    level: usize,
    /// Whether it is the only one there, so that it cannot be cancelled.
    alone: bool,
}

#[inline(always)]
fn first_carry<D: Stride>(
    outer: &Outer<D>,
    extent: &D::Extent,
    step: &D::Extent,
) -> Result<Option<FirstCarry<D::Extent>>, LayoutError> {
    let overflow = || LayoutError::overflow(OP);
    let last = extent.minus(&D::Extent::one()).ok_or_else(overflow)?;
    let mut found: Option<FirstCarry<D::Extent>> = None;
    for (number, level) in outer.levels.iter().enumerate() {
        let reach = last.times(&level.part);
        if level.part.is_zero().proved() || reach.is_some_and(|reach| reach.less_given(&level.end, &[extent]).proved())
        {
            continue;
        }
        if !D::Extent::zero().less_given(&level.part, &[extent]).proved() {
            return Err(carrying_or_not(level, step, extent));
        }
        let at = level.end.divide_up(&level.part).ok_or_else(overflow)?;
        match &mut found {
            Some(first) => match (first.at.less_given(&at, &[extent]), at.less_given(&first.at, &[extent])) {
                (Truth::Proved, _) => {}
                (_, Truth::Proved) => *first = FirstCarry { at, level: number, alone: true },
                (Truth::Refuted, Truth::Refuted) => first.alone = false,
                _ => return Err(LayoutError::open(OP, Condition::Ordered, &first.at, &at)),
            },
            None => found = Some(FirstCarry { at, level: number, alone: true }),
        }
    }
    Ok(found)
}

/// It is not known whether steps of a mode of B carry out of a mode of A at all.
#[cold]
fn carrying_or_not<D: Stride>(level: &Level<D>, step: &D::Extent, extent: &D::Extent) -> LayoutError {
    let (zero, one) = (D::Extent::zero(), D::Extent::one());
    if extent.known().is_some()
        && let Some(reach) = extent.minus(&one).and_then(|last| last.times(step))
        && reach.less(&level.end) == Truth::Open
    {
        return LayoutError::open(OP, Condition::Less, &reach, &level.end);
    }
    // Most often it is not known whether the mode of A has more than one position.
    match (one.less(&level.extent), step.less(&level.end)) {
        (Truth::Open, _) => LayoutError::open(OP, Condition::Less, &one, &level.extent),
        (_, Truth::Open) => LayoutError::open(OP, Condition::Less, step, &level.end),
        _ => LayoutError::open(OP, Condition::Less, &zero, &level.part),
    }
}

#[cold]
fn unsigned<N: Extent>(stride: &N) -> LayoutError {
    LayoutError::open(OP, Condition::AtMost, &N::zero(), stride)
}

#[cold]
fn uneven<D: Stride>(
    outer: &Outer<D>,
    b: TreeRef<'_, Leaf<D::Extent>>,
    number: usize,
    left: &D::Extent,
    run: &Run<D::Extent>,
    level: usize,
) -> LayoutError {
    let broken = outer.levels.get(level);
    let extent_of_a = broken.and_then(|level| level.extent.known());
    if let (Some(broken), Some(next)) = (broken, outer.steps(level + 1))
        && !broken.stride.continues(&broken.extent, next).refuted()
    {
        // For some values the modes of A merge here, and nothing breaks.
        let Some(end) = broken.stride.times(&broken.extent) else { return LayoutError::overflow(OP) };
        return LayoutError::Open { op: OP, question: Box::new(Question::new(Condition::Equal, &end, next)) };
    }
    match (left.known(), run.extent.known(), run.step.known(), extent_of_a, b_mode(b, number)) {
        (Some(left), Some(run), Some(stride), Some(extent_of_a), Some(mode)) => {
            let uneven = Uneven { mode, left, run, stride, mode_of_a: level, extent_of_a };
            LayoutError::Uneven(Box::new(uneven))
        }
        // Either the runs divide the mode, or it stays below the end.
        (_, Some(_), ..) => LayoutError::open(OP, Condition::Divides, &run.extent, left),
        _ => match broken.and_then(|level| Some((left.minus(&D::Extent::one())?.times(&level.part)?, &level.end))) {
            Some((reach, end)) => LayoutError::open(OP, Condition::Less, &reach, end),
            None => LayoutError::overflow(OP),
        },
    }
}

/// Mode number `number` of B, as an error shows it.
fn b_mode<N: Extent>(b: TreeRef<'_, Leaf<N>>, number: usize) -> Option<BMode> {
    let leaf = b.leaves.get(number)?;
    Some(BMode { path: b.profile.path(number), extent: leaf.extent.known()?, stride: leaf.stride.known()? })
}
