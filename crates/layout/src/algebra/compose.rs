//! Composition: `A o B` is `A` after `B`.
//!
//! # Law
//!
//! `R = A o B` is the layout with `R(c) = A(B(c))` for every coordinate `c` of `B`. The shape of
//! `R` refines that of `B`: one leaf or a flat, coalesced tuple replaces each leaf of `B`. `A` is a
//! function on all integers: past its end the last mode continues, and `A(-i) = -A(i)`. `R` is
//! unique if it exists. [`Layout::compose`] returns it exactly when it exists.
//!
//! # The criterion
//!
//! Coalesce `A` as a function on all integers: modes `M_1..M_n`, steps `D_1..D_n`, the last mode
//! endless, and let `P_k = M_1 * .. * M_k` for `k < n`: mode `k+1` begins every `P_k` indices. Put
//! `K_k = D_(k+1) - M_k * D_k`, which is never 0, or the modes would have merged. Writing the
//! digits of `i >= 0` as differences of quotients,
//!
//! ```text
//! A(i) = i * D_1 + sum over k of K_k * floor(i / P_k)                                          (1)
//! ```
//!
//! (for `i < 0` truncate instead of floor). So `A` fails to be additive only through carries into
//! the `P_k`.
//!
//! *One mode of `B`.* For a mode `s:d` let `h(x) = A(x * d)`. Any layout with this function,
//! coalesced, has as first extent the first `p` with `h(p) != p * h(1)`, or `s` when there is none;
//! so `p` must divide `s` (else: refused, [`LayoutError::Uneven`]), and the rest is the mode
//! `s/p : p*d`. By (1), with `a_k = |d| mod P_k`, the first index at which anything can happen is
//! the least `ceil(P_k / a_k)` over the `k` with `a_k != 0`: there some carries set in together,
//! and `h` breaks unless their `K_k` cancel, in which case the next carry is examined. This splits
//! every mode of `B` into *runs* `t:e` on each of which `A` is linear from 0.
//!
//! *Across modes.* Let the runs of all modes be `t_l : e_l`. A composite exists if and only if
//! `A(sum c_l e_l) = sum c_l A(e_l)` for every `0 <= c_l < t_l`: sufficient, because the right side
//! is the layout with leaves `t_l : A(e_l)`; necessary, because the runs are forced, and a layout
//! adds up over its leaves. When all `e_l` have one sign, (1) turns this into
//!
//! ```text
//! sum over k of K_k * g_k(c) = 0 for every c,   g_k(c) = floor(sum c_l * a_lk / P_k),   a_lk = |e_l| mod P_k      (2)
//! ```
//!
//! with every `g_k >= 0` growing in `c`. Hence:
//!
//! * **No carry**, `sum (t_l - 1) * a_lk < P_k` for every `k`: the composite exists. Both passes
//!   cost one division a leaf and level, and there are at most 63 levels.
//! * **A carry** whose `K_k` do not cancel at the first `c` where one sets in: none exists. Two
//!   runs usually show it, the one with which the sum first reaches `P_k` and the one before it
//!   with the largest part there, and then that `c` is shown at once.
//! * **Carries that cancel** there (`(2,2,2):(1,1,3) o (2,2):(3,3)` is `(2,2):(2,2)`: at `3+3` the
//!   carries out of the first and of the second mode weigh -1 and +1) leave (2) open. Deciding it
//!   for arbitrary strides contains the knapsack problem, so it is decided by splitting the box of
//!   coordinates until each part is free of carries ([`super::carry`]), within a stated limit.
//!
//! With steps of both signs the sum crosses zero. Then level `k` is free of carries when all `e_l`
//! are multiples of `P_k`, or when the sum stays strictly between `-P_k` and `P_k`; otherwise the
//! box is split in the same way.

mod outer;
mod run;

pub(crate) use outer::{MAX_LEVELS, Outer, OuterLevel};
pub(crate) use run::{LinearPiece, split_mode};
use run::{first_run, run_to_end};

use crate::algebra::carry;
use crate::algebra::inner::Inner;
use crate::limits::MAX_NODES;
use crate::refusal::error::{LayoutError, Limit};
use crate::refusal::evidence::Condition;
use crate::value::kind::ExtentKind;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride, Truth};
use crate::value::profile::{Nodes, ROOM, Splitting};
use crate::value::tree::{Leaves, TreeRef};

pub(crate) const OP: &str = "composition";

impl<D: Stride> Layout<D> {
    /// `A o B`: the layout `R` with `R(c) = A(B(c))` at every coordinate of `b` (CuTe
    /// `composition(A, B)`).
    ///
    /// If the strides of `b` are integers, its values are indices of `self`. If the strides are
    /// steps in modes, such as `3@1`, its values are coordinates of `self` ([`Inner`]).
    ///
    /// The shape of `R` refines that of `b`. If `b` leaves the domain of `self`, the last mode of
    /// `self` continues; see [`Layout::compose_within`] for the form that refuses this.
    ///
    /// Errors: no such layout exists ([`LayoutError::Carry`], [`LayoutError::Uneven`]); a step of
    /// `b` is in a mode that `self` does not have ([`LayoutError::NoPath`]); a stride is not
    /// representable.
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

    /// The strict composition: as [`Layout::compose`], but `b` must stay within `0..size` of
    /// `self`.
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

/// Refuses offsets of B that are not indices of a mode of A with this extent.
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

/// Appends `A o B`, where `B` has integer strides, to a tree that is being built. This is the only
/// code that composes modes of layouts.
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

/// `A o B` for strides that are multiplied and compared as integers are.
#[inline(always)]
pub(crate) fn compose_integers<D: Stride>(a: &Layout<D>, b: &Layout<D::Extent>) -> Result<Layout<D>, LayoutError> {
    let mut outer = Outer::blank();
    outer.read(a.leaves())?;
    // The result is written in place: each move of a layout would cost as much as composing a mode.
    let mut result = Layout::blank();
    let (nodes, leaves) = result.parts_mut();
    compose_into(&mut outer, b.as_ref(), nodes, leaves)?;
    Ok(result)
}

/// `A o B` for an outer layout whose levels have been read.
pub(crate) fn compose_outer<D: Stride>(outer: &mut Outer<D>, b: &Layout<D::Extent>) -> Result<Layout<D>, LayoutError> {
    outer.restart();
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
    let (mut rising, mut falling, mut open) = (false, false, false);
    let first = leaves.len();
    let mut room = ROOM;
    let mut tree = Splitting::new(b.profile, nodes, &mut room);
    for (number, leaf) in b.leaves.iter().enumerate() {
        if leaf.extent.is_one().proved() || leaf.stride.is_zero().proved() {
            leaves.push(Leaf { extent: leaf.extent.clone(), stride: D::zero() });
            tree.leaf(1);
            continue;
        }
        let (negative, mut step) = match leaf.stride.less(&D::Extent::zero()) {
            Truth::Proved => {
                falling = true;
                (true, mirrored(leaf.stride.clone())?)
            }
            Truth::Refuted => {
                rising = true;
                (false, leaf.stride.clone())
            }
            // If the outer layout has one mode, the sign of the step does not matter.
            Truth::Open if outer.levels.is_empty() => {
                let stride = outer.straight(&leaf.stride).ok_or_else(overflow::<D::Extent>)?;
                leaves.push(Leaf { extent: leaf.extent.clone(), stride });
                tree.leaf(1);
                continue;
            }
            Truth::Open => return Err(unsigned(&leaf.stride)),
        };
        let mut extent = leaf.extent.clone();
        let mut runs = 1;
        loop {
            let last = extent.minus(&D::Extent::one()).ok_or_else(overflow::<D::Extent>)?;
            let (value, fits) = outer.walk(&step, &last, &extent).ok_or_else(overflow::<D::Extent>)?;
            if fits {
                leaves.push(Leaf { extent, stride: signed(value, negative)? });
                break;
            }
            // This path is only for numbers that are not known; known numbers do not pay for it.
            let mut to_end = None;
            let (run, rest) = match first_run(outer, b, number, &extent, &step, &value) {
                Ok(run) => run,
                Err(error) if D::Extent::KNOWN => return Err(error),
                Err(error) => {
                    let (run, rest, value) = run_to_end(outer, &extent, &step, error)?;
                    to_end = Some(value);
                    (run, rest)
                }
            };
            let stride = signed(to_end.unwrap_or(value), negative)?;
            match outer.carrying(&run.minus(&D::Extent::one()).ok_or_else(overflow::<D::Extent>)?, &run) {
                None => {}
                Some(level) => {
                    // The first carry decides, unless it cancels; if steps have both signs, the
                    // sums do not decide.
                    if !(open || rising && falling) {
                        let placed = leaves.get(first..).unwrap_or_default();
                        let run = LinearPiece { extent: run.clone(), step: step.clone(), negative };
                        if let Some(refusal) = carry::refute(outer, b, placed, number, run, stride.clone(), level) {
                            return Err(refusal);
                        }
                    }
                    open = true;
                }
            }
            step = step.times(&run).ok_or_else(overflow::<D::Extent>)?;
            leaves.push(Leaf { extent: run, stride });
            if rest.is_one().proved() {
                break;
            }
            extent = rest;
            runs += 1;
        }
        tree.leaf(runs);
    }
    tree.finish()?;
    if open || (rising && falling && !outer.levels.is_empty()) { carry::decide(outer, b) } else { Ok(()) }
}

#[inline(always)]
fn signed<D: Stride>(value: D, negative: bool) -> Result<D, LayoutError> {
    if negative { mirrored(value) } else { Ok(value) }
}

/// Negative steps are rare; this function is kept out of the fast path.
#[cold]
#[inline(never)]
fn mirrored<D: Stride>(step: D) -> Result<D, LayoutError> {
    step.times(&D::Extent::from(-1)).ok_or_else(overflow::<D::Extent>)
}

/// The error for a number of a composition that is not representable.
#[cold]
#[inline(never)]
fn overflow<N: Extent>() -> LayoutError {
    N::overflow(OP)
}

#[cold]
fn unsigned<N: Extent>(stride: &N) -> LayoutError {
    LayoutError::open(OP, Condition::AtMost, &N::zero(), stride)
}
