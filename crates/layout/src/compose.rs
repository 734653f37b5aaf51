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
//! * **A carry** whose `K_k` do not cancel at the first `c` where one sets in: none exists, and that `c` is shown.
//! * **Carries that cancel** there (`(2,2,2):(1,1,3) o (2,2):(3,3)` is `(2,2):(2,2)`: at `3+3` the carries out of the first and of the
//!   second mode weigh -1 and +1) leave (2) open. Deciding it for arbitrary strides contains the knapsack problem, so it is decided by
//!   splitting the box of coordinates until each part is free of carries ([`crate::carry`]), within a stated limit.
//!
//! With steps of both signs the sum crosses zero. Then level `k` is free of carries when all `e_l` are multiples of `P_k`, or
//! when the sum stays strictly between `-P_k` and `P_k`; otherwise the box is split in the same way.

use arrayvec::ArrayVec;

use crate::carry;
use crate::coalesce::push_coalesced_z;
use crate::error::{BMode, LayoutError, Uneven};
use crate::layout::{Layout, Leaf};
use crate::number::{Extent, Stride};
use crate::profile::Nodes;
use crate::tree::{Leaves, TreeRef};

pub(crate) const OP: &str = "composition";

/// The outer layout of a composition, as a function on all integers.
pub(crate) struct Outer<D: Stride> {
    /// Coalesced; the last one has no end.
    pub(crate) modes: Leaves<Leaf<D>>,
    /// `P_k`: how many indices the first `k+1` modes cover, for all modes but the last.
    pub(crate) ends: Levels<D::Extent>,
}

/// The most modes that the outer layout of a composition may have once it is coalesced. Sixty-two cover every size below 2^63.
pub(crate) const MAX_LEVELS: usize = 64;

/// A number for each level.
pub(crate) type Levels<N> = ArrayVec<N, MAX_LEVELS>;

/// A piece `extent:step` of a mode of B on which A is linear from 0.
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
        Outer { modes: Leaves::new(), ends: Levels::new() }
    }

    /// Reads a layout.
    #[inline(always)]
    pub(crate) fn read(&mut self, leaves: &[Leaf<D>]) -> Result<(), LayoutError> {
        self.try_read(leaves).ok_or_else(|| LayoutError::overflow(OP))
    }

    #[inline(always)]
    fn try_read(&mut self, leaves: &[Leaf<D>]) -> Option<()> {
        push_coalesced_z(&mut self.modes, leaves)?;
        if let Some((_, front)) = self.modes.split_last() {
            let mut end = D::Extent::one();
            for mode in front {
                end = end.times(&mode.extent)?;
                self.ends.try_push(end.clone()).ok()?;
            }
        }
        Some(())
    }

    /// `A(step)`. Writes the `a_k`, `step` modulo `P_k`, to `below`; above its last entry the whole step is below the level.
    #[inline(always)]
    fn walk(&self, step: &D::Extent, below: &mut Levels<D::Extent>) -> Option<D> {
        below.clear();
        let Some((last, front)) = self.modes.split_last() else { return Some(D::zero()) };
        let Some((first, middle)) = front.split_first() else { return last.stride.times(step) };
        let (mut rest, digit) = step.divide(&first.extent)?;
        let mut value = first.stride.times(&digit)?;
        let mut part = digit.clone();
        below.try_push(digit).ok()?;
        for (mode, end) in middle.iter().zip(&self.ends) {
            if rest.is_zero().proved() {
                return Some(value);
            }
            let (quotient, digit) = rest.divide(&mode.extent)?;
            value = value.plus(&mode.stride.times(&digit)?)?;
            part = part.plus(&end.times(&digit)?)?;
            below.try_push(part.clone()).ok()?;
            rest = quotient;
        }
        if rest.is_zero().proved() {
            return Some(value);
        }
        value.plus(&last.stride.times(&rest)?)
    }

    /// `A(index)`.
    #[inline]
    pub(crate) fn eval(&self, index: &D::Extent) -> Option<D> {
        crate::layout::eval_leaves(&self.modes, index)
    }
}

/// The sums of `(t_l - 1) * a_lk`, for the first of the two tests across modes.
struct Sums<N> {
    levels: Levels<N>,
    rising: bool,
    falling: bool,
    /// Whether a sum grew too large to represent: it is then certainly past its level.
    full: bool,
}

impl<N: Extent> Sums<N> {
    #[inline(always)]
    fn add(&mut self, run: &Run<N>, below: &[N]) {
        self.rising |= !run.negative;
        self.falling |= run.negative;
        let Some(last) = run.extent.minus(&N::one()) else { return };
        for (level, sum) in self.levels.iter_mut().enumerate() {
            let part = below.get(level).unwrap_or(&run.step);
            match last.times(part).and_then(|reach| sum.plus(&reach)) {
                Some(next) => *sum = next,
                None => self.full = true,
            }
        }
    }

    /// Whether no level carries for any coordinate. Steps of both signs are left to the other test.
    #[inline(always)]
    fn free(&self, ends: &[N]) -> bool {
        !(self.full || (self.rising && self.falling))
            && self.levels.iter().zip(ends).all(|(sum, end)| sum.less(end).proved())
    }
}

impl<D: Stride> Layout<D> {
    /// `A o B`: the layout `R` with `R(c) = A(B(c))` at every coordinate of `b` (CuTe `composition(A, B)`).
    ///
    /// The shape of `R` refines that of `b`. Where `b` leaves the domain of `self`, `self` goes on in its last mode; see
    /// [`Layout::compose_within`] for the form that refuses this.
    ///
    /// Errors: no such layout exists ([`LayoutError::Carry`], [`LayoutError::Uneven`]); a stride is not representable.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let a: Layout = "(6,2):(8,2)".parse().unwrap();
    /// let b: Layout = "(4,3):(3,1)".parse().unwrap();
    /// assert_eq!(a.compose(&b).unwrap().to_string(), "((2,2),3):((24,2),8)");
    /// ```
    #[inline]
    pub fn compose(&self, b: &Layout<D::Extent>) -> Result<Layout<D>, LayoutError> {
        let mut outer = Outer::blank();
        outer.read(self.leaves())?;
        compose_outer(&outer, b)
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
    pub fn compose_within(&self, b: &Layout<D::Extent>) -> Result<Layout<D>, LayoutError> {
        let (least, greatest) = b.range()?;
        let size = self.size();
        if least.less(&D::Extent::zero()).proved() || !greatest.less(&size).proved() {
            return Err(match (least.known(), greatest.known(), size.known()) {
                (Some(least), Some(greatest), Some(size)) => LayoutError::OutOfDomain { least, greatest, size },
                _ => LayoutError::Open { op: "composition_within", fact: alloc::format!("{greatest} < {size}").into() },
            });
        }
        self.compose(b)
    }
}

/// `A o B` for an outer layout that is already coalesced.
#[inline]
pub(crate) fn compose_outer<D: Stride>(outer: &Outer<D>, b: &Layout<D::Extent>) -> Result<Layout<D>, LayoutError> {
    let mut result = Layout::blank();
    let (nodes, leaves) = result.parts_mut();
    compose_into(outer, b.as_ref(), nodes, leaves)?;
    Ok(result)
}

/// A leaf of B that became several leaves: its number, and how many.
pub(crate) type Split = (usize, usize);

/// Appends `A o B` to a tree that is being written.
#[inline]
pub(crate) fn compose_into<D: Stride>(
    outer: &Outer<D>,
    b: TreeRef<'_, Leaf<D::Extent>>,
    nodes: &mut Nodes,
    leaves: &mut Leaves<Leaf<D>>,
) -> Result<(), LayoutError> {
    let mut sums = Sums { levels: Levels::new(), rising: false, falling: false, full: false };
    for _ in &outer.ends {
        sums.levels.push(D::Extent::zero());
    }
    let mut below = Levels::new();
    let mut splits: ArrayVec<Split, MAX_LEVELS> = ArrayVec::new();
    for (number, leaf) in b.leaves.iter().enumerate() {
        if leaf.extent.is_one().proved() {
            leaves.push(Leaf { extent: D::Extent::one(), stride: D::zero() });
        } else if leaf.stride.is_zero().proved() {
            leaves.push(Leaf { extent: leaf.extent.clone(), stride: D::zero() });
        } else {
            let before = leaves.len();
            split_mode(outer, b, number, &mut below, |run, value, below| {
                sums.add(run, below);
                leaves.push(Leaf { extent: run.extent.clone(), stride: value });
            })?;
            let count = leaves.len() - before;
            if count > 1 {
                splits.try_push((number, count)).map_err(|_| LayoutError::overflow(OP))?;
            }
        }
    }
    b.profile.write_split(&splits, nodes)?;
    if sums.free(&outer.ends) { Ok(()) } else { carry::decide(outer, b) }
}

/// Splits mode number `number` of B into runs, and hands over each with its value in A and its parts below the levels.
#[inline(always)]
pub(crate) fn split_mode<D: Stride>(
    outer: &Outer<D>,
    b: TreeRef<'_, Leaf<D::Extent>>,
    number: usize,
    below: &mut Levels<D::Extent>,
    mut emit: impl FnMut(&Run<D::Extent>, D, &[D::Extent]),
) -> Result<(), LayoutError> {
    let overflow = || LayoutError::overflow(OP);
    let Some(leaf) = b.leaves.get(number) else { return Ok(()) };
    let negative = leaf.stride.less(&D::Extent::zero()).proved();
    let mut left = leaf.extent.clone();
    let mut step = leaf.stride.magnitude().ok_or_else(overflow)?;
    loop {
        let value = outer.walk(&step, below).ok_or_else(overflow)?;
        let (extent, level) = match first_carry(outer, below, &step, &left) {
            None => (left.clone(), 0),
            Some(FirstCarry { at, level, alone: true }) => (at, level),
            Some(FirstCarry { at, level, alone: false }) => {
                (carry::first_break(outer, &step, &value, &left, at)?, level)
            }
        };
        let stride = if negative { value.times(&D::Extent::from(-1)).ok_or_else(overflow)? } else { value };
        let run = Run { extent, step, negative };
        emit(&run, stride, below);
        if run.extent == left {
            return Ok(());
        }
        let (quotient, remainder) = left.divide(&run.extent).ok_or_else(overflow)?;
        if !remainder.is_zero().proved() {
            return Err(uneven(outer, b, number, &left, &run, level));
        }
        left = quotient;
        step = run.step.times(&run.extent).ok_or_else(overflow)?;
    }
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
    below: &[D::Extent],
    step: &D::Extent,
    extent: &D::Extent,
) -> Option<FirstCarry<D::Extent>> {
    let last = extent.minus(&D::Extent::one())?;
    let mut found: Option<FirstCarry<D::Extent>> = None;
    for (level, end) in outer.ends.iter().enumerate() {
        let part = below.get(level).unwrap_or(step);
        if !part.is_zero().proved() && !last.times(part).is_some_and(|reach| reach.less(end).proved()) {
            let at = end.divide_up(part)?;
            match &mut found {
                Some(first) if first.at.less(&at).proved() => {}
                Some(first) if first.at == at => first.alone = false,
                _ => found = Some(FirstCarry { at, level, alone: true }),
            }
        }
        if below.len() <= level {
            // The whole step is below this level; the levels above carry later.
            break;
        }
    }
    found
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
    let extent_of_a = outer.modes.get(level).and_then(|mode| mode.extent.known());
    match (left.known(), run.extent.known(), run.step.known(), extent_of_a, b_mode(b, number)) {
        (Some(left), Some(run), Some(stride), Some(extent_of_a), Some(mode)) => {
            let uneven = Uneven { mode, left, run, stride, mode_of_a: level, extent_of_a };
            LayoutError::Uneven(alloc::boxed::Box::new(uneven))
        }
        _ => LayoutError::Open { op: OP, fact: alloc::format!("{} divides {left}", run.extent).into() },
    }
}

/// Mode number `number` of B, as an error shows it.
pub(crate) fn b_mode<N: Extent>(b: TreeRef<'_, Leaf<N>>, number: usize) -> Option<BMode> {
    let leaf = b.leaves.get(number)?;
    Some(BMode { path: b.profile.path(number), extent: leaf.extent.known()?, stride: leaf.stride.known()? })
}
