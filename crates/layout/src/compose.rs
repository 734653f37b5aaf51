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

use smallvec::SmallVec;

use crate::carry;
use crate::coalesce::coalesced_z;
use crate::error::{BMode, LayoutError, Uneven};
use crate::layout::{Layout, Leaf};
use crate::number::{Extent, Stride, Truth};
use crate::profile::Builder;
use crate::tree::{Leaves, Tree};

pub(crate) const OP: &str = "composition";

/// The outer layout of a composition, as a function on all integers.
pub(crate) struct Outer<D: Stride> {
    /// Coalesced; the last one has no end.
    pub(crate) modes: Leaves<Leaf<D>>,
    /// `P_k`: how many indices the first `k+1` modes cover, for all modes but the last.
    pub(crate) ends: Leaves<D::Extent>,
}

/// A piece `extent:step` of a mode of B on which A is linear from 0.
#[derive(Clone)]
pub(crate) struct Run<N> {
    /// The leaf of B.
    pub(crate) leaf: usize,
    pub(crate) extent: N,
    /// The magnitude of the step in B's codomain.
    pub(crate) step: N,
    pub(crate) negative: bool,
}

/// One step of B seen from A: where it leads, and what is left of it below each level.
struct Walk<D: Stride> {
    value: D,
    /// `a_k`: the step modulo `P_k`. Above the last entry the whole step is below the level.
    below: SmallVec<[D::Extent; 8]>,
}

impl<D: Stride> Outer<D> {
    #[inline]
    pub(crate) fn new(layout: &[Leaf<D>]) -> Option<Outer<D>> {
        let modes = coalesced_z(layout)?;
        let mut ends = Leaves::new();
        if let Some((_, front)) = modes.split_last() {
            let mut end = D::Extent::one();
            for mode in front {
                end = end.times(&mode.extent)?;
                ends.push(end.clone());
            }
        }
        Some(Outer { modes, ends })
    }

    /// `A(index)`, and the parts of `index` below each level.
    #[inline]
    fn walk(&self, index: &D::Extent) -> Option<Walk<D>> {
        let mut below = SmallVec::new();
        let Some((last, front)) = self.modes.split_last() else {
            return Some(Walk { value: D::zero(), below });
        };
        let Some((first, _)) = front.split_first() else {
            return Some(Walk { value: last.stride.times(index)?, below });
        };
        let (mut rest, digit) = index.divide(&first.extent)?;
        let mut value = first.stride.times(&digit)?;
        below.push(digit);
        for (mode, end) in front[1..].iter().zip(&self.ends) {
            if rest.is_zero().proved() {
                return Some(Walk { value, below });
            }
            let (quotient, digit) = rest.divide(&mode.extent)?;
            value = value.plus(&mode.stride.times(&digit)?)?;
            let part = below.last()?.plus(&end.times(&digit)?)?;
            below.push(part);
            rest = quotient;
        }
        if !rest.is_zero().proved() {
            value = value.plus(&last.stride.times(&rest)?)?;
        }
        Some(Walk { value, below })
    }

    /// `A(index)`.
    #[inline]
    pub(crate) fn eval(&self, index: &D::Extent) -> Option<D> {
        crate::layout::eval_leaves(&self.modes, index)
    }
}

/// Sums of `(t_l - 1) * a_lk` and of `(t_l - 1) * e_l` over the runs of one sign.
struct Sums<N> {
    levels: SmallVec<[N; 8]>,
    reach: N,
}

/// A sum too large to represent is certainly past every level; it is remembered as `None`.
struct Budget<N> {
    rising: Option<Sums<N>>,
    falling: Option<Sums<N>>,
    mixed: (bool, bool),
}

impl<N: Extent> Budget<N> {
    #[inline]
    fn new(levels: usize) -> Budget<N> {
        let zeros = || Some(Sums { levels: SmallVec::from_elem(N::zero(), levels), reach: N::zero() });
        Budget { rising: zeros(), falling: None, mixed: (false, false) }
    }

    #[inline]
    fn add(&mut self, run: &Run<N>, below: &[N], levels: usize) {
        let side = if run.negative {
            if !self.mixed.1 {
                self.mixed.1 = true;
                self.falling = Some(Sums { levels: SmallVec::from_elem(N::zero(), levels), reach: N::zero() });
            }
            &mut self.falling
        } else {
            self.mixed.0 = true;
            &mut self.rising
        };
        if let Some(sums) = side
            && sums.add(run, below).is_none()
        {
            *side = None;
        }
    }

    /// Whether no level carries for any coordinate.
    #[inline]
    fn free(&self, ends: &[N]) -> Truth {
        match self.mixed {
            (true, true) => self.free_across_zero(ends),
            (_, true) => self.falling.as_ref().map_or(Truth::Open, |sums| sums.free(ends)),
            _ => self.rising.as_ref().map_or(Truth::Open, |sums| sums.free(ends)),
        }
    }

    fn free_across_zero(&self, ends: &[N]) -> Truth {
        let (Some(up), Some(down)) = (&self.rising, &self.falling) else { return Truth::Open };
        for (level, end) in ends.iter().enumerate() {
            let aligned = up.levels[level].is_zero().proved() && down.levels[level].is_zero().proved();
            let within = up.reach.less(end).proved() && down.reach.less(end).proved();
            if !aligned && !within {
                return Truth::Open;
            }
        }
        Truth::Proved
    }
}

impl<N: Extent> Sums<N> {
    #[inline]
    fn add(&mut self, run: &Run<N>, below: &[N]) -> Option<()> {
        let last = run.extent.minus(&N::one())?;
        let whole = last.times(&run.step)?;
        for (level, sum) in self.levels.iter_mut().enumerate() {
            *sum = match below.get(level) {
                Some(part) => sum.plus(&last.times(part)?)?,
                None => sum.plus(&whole)?,
            };
        }
        self.reach = self.reach.plus(&whole)?;
        Some(())
    }

    #[inline]
    fn free(&self, ends: &[N]) -> Truth {
        for (sum, end) in self.levels.iter().zip(ends) {
            if !sum.less(end).proved() {
                return Truth::Open;
            }
        }
        Truth::Proved
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
        let outer = Outer::new(self.leaves()).ok_or(LayoutError::overflow(OP))?;
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
pub(crate) fn compose_outer<D: Stride>(outer: &Outer<D>, b: &Layout<D::Extent>) -> Result<Layout<D>, LayoutError> {
    let levels = outer.ends.len();
    let mut leaves: Leaves<Leaf<D>> = Leaves::new();
    let mut runs: SmallVec<[Run<D::Extent>; 8]> = SmallVec::new();
    let mut counts: SmallVec<[u16; 8]> = SmallVec::new();
    let mut budget = Budget::new(levels);
    for (position, leaf) in b.leaves().iter().enumerate() {
        let before = leaves.len();
        if leaf.extent.is_one().proved() {
            leaves.push(Leaf { extent: D::Extent::one(), stride: D::zero() });
        } else if leaf.stride.is_zero().proved() {
            leaves.push(Leaf { extent: leaf.extent.clone(), stride: D::zero() });
        } else {
            split_mode(outer, b, position, &mut leaves, |run, below| {
                budget.add(&run, below, levels);
                runs.push(run);
            })?;
        }
        counts.push((leaves.len() - before) as u16);
    }
    if levels > 0 && !budget.free(&outer.ends).proved() {
        carry::decide(outer, b, &runs)?;
    }
    let profile = if counts.iter().all(|count| *count == 1) {
        b.profile().duplicate()
    } else {
        let mut builder = Builder::new();
        builder.substitute(b.profile().as_ref(), &mut |leaf, out| match counts[leaf] {
            1 => out.leaf(),
            count => out.flat(usize::from(count)),
        });
        builder.finish()?
    };
    Ok(Layout::from_valid(Tree::from_parts(profile, leaves)))
}

/// Splits one mode of B into runs, and hands over each with its parts below the levels.
#[inline]
fn split_mode<D: Stride>(
    outer: &Outer<D>,
    b: &Layout<D::Extent>,
    position: usize,
    leaves: &mut Leaves<Leaf<D>>,
    mut emit: impl FnMut(Run<D::Extent>, &[D::Extent]),
) -> Result<(), LayoutError> {
    let overflow = || LayoutError::overflow(OP);
    let leaf = &b.leaves()[position];
    let negative = leaf.stride.less(&D::Extent::zero()).proved();
    let mut left = leaf.extent.clone();
    let mut step = leaf.stride.magnitude().ok_or_else(overflow)?;
    loop {
        let walk = outer.walk(&step).ok_or_else(overflow)?;
        let found = first_carry(outer, &walk.below, &step, &left);
        let (run, level) = match found {
            None => (left.clone(), 0),
            Some(FirstCarry { at, level, alone: true }) => (at, level),
            Some(FirstCarry { at, level, alone: false }) => {
                (carry::first_break(outer, &step, &walk.value, &left, at)?, level)
            }
        };
        let stride = if negative { walk.value.times(&D::Extent::from(-1)).ok_or_else(overflow)? } else { walk.value };
        leaves.push(Leaf { extent: run.clone(), stride });
        emit(Run { leaf: position, extent: run.clone(), step: step.clone(), negative }, &walk.below);
        if run == left {
            return Ok(());
        }
        let (quotient, remainder) = left.divide(&run).ok_or_else(overflow)?;
        if !remainder.is_zero().proved() {
            return Err(uneven(outer, b, position, &left, &run, &step, level));
        }
        left = quotient;
        step = step.times(&run).ok_or_else(overflow)?;
    }
}

/// The first index within a mode at which a carry sets in.
#[derive(Clone)]
struct FirstCarry<N> {
    at: N,
    level: usize,
    /// Whether it is the only one there, so that it cannot be cancelled.
    alone: bool,
}

#[inline]
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
    b: &Layout<D::Extent>,
    position: usize,
    left: &D::Extent,
    run: &D::Extent,
    step: &D::Extent,
    level: usize,
) -> LayoutError {
    let known = (left.known(), run.known(), step.known(), outer.modes[level].extent.known());
    match (known, b_mode(b, position)) {
        ((Some(left), Some(run), Some(stride), Some(extent_of_a)), Some(mode)) => {
            LayoutError::Uneven(alloc::boxed::Box::new(Uneven {
                mode,
                left,
                run,
                stride,
                mode_of_a: level,
                extent_of_a,
            }))
        }
        _ => LayoutError::Open { op: OP, fact: alloc::format!("{run} divides {left}").into() },
    }
}

pub(crate) fn b_mode<N: Extent>(b: &Layout<N>, position: usize) -> Option<BMode> {
    let leaf = b.leaves().get(position)?;
    Some(BMode { path: b.profile().path(position), extent: leaf.extent.known()?, stride: leaf.stride.known()? })
}
