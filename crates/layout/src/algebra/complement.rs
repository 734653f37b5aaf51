//! Complements: layouts of the offsets that are missing from a layout.
//!
//! # Laws
//!
//! `complement(L, M)` is the one sorted, coalesced layout `C` such that `(L, C)`, with `L`'s
//! stride-0 modes left out, is a bijection onto `[0, N)`, where `N` is `M` rounded up to what `L`
//! tiles. Sort the modes `s:d` of `L` (extent > 1, stride > 0) by stride, and let `c = 1` before
//! the first mode and `c = s * d` after each mode. `C` exists exactly when `c` divides the next `d`
//! every time. Its modes are the gaps `d/c : c` and, after the last mode, `ceil(M/c) : c`.
//! Necessity: the offsets `1, 2, ..` below the least stride can only come from `C`, which must
//! therefore run through `0..d` in steps of 1, a whole number of times in each step of the next
//! mode; repeat above it.
//!
//! `weak_complement(L, M)` requires less: `C` is sorted, and disjoint from `L` (`(L, C)` repeats no
//! offset that `L` does not repeat). The extents of the gaps are `floor(d/c)`, so padding remains a
//! hole, as in CuTe's complement of `(4,6):(1,6)`. It exists if the modes do not overlap, `c <= d`.
//! The signs of strides do not matter, because a reversed mode has the same offsets, shifted.
//!
//! Without a target the last mode is open: its extent is 1, and its stride is the offset at which
//! the next copy of the whole would begin. In a composition the last mode continues without end,
//! which a product needs.

use alloc::boxed::Box;

use smallvec::SmallVec;

use crate::algebra::coalesce::push_merged;
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::{Chain, Condition};
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Truth};

/// A mode with more than one offset: extent, magnitude of the stride, and the number of its leaf.
pub(crate) type MovingMode<N> = (N, N, usize);

/// The modes that reach more than one offset, by increasing stride; equal strides keep their order.
pub(crate) fn by_stride<N: Extent>(
    op: &'static str,
    layout: &Layout<N>,
) -> Result<SmallVec<[MovingMode<N>; 8]>, LayoutError> {
    let mut modes: SmallVec<[MovingMode<N>; 8]> = SmallVec::new();
    for (position, leaf) in layout.leaves().iter().enumerate() {
        if leaf.extent.is_one().proved() || leaf.stride.is_zero().proved() {
            continue;
        }
        let stride = leaf.stride.magnitude().ok_or_else(|| no_magnitude(op, &leaf.stride))?;
        moving(op, &leaf.stride, &stride)?;
        // At most 62 modes have more than one position, so insertion is as good as sorting.
        let mut at = modes.len();
        while let Some((extent, before, _)) = at.checked_sub(1).and_then(|before| modes.get(before)) {
            match stride.less_given(before, &[extent, &leaf.extent]) {
                Truth::Proved => at -= 1,
                Truth::Refuted => break,
                Truth::Open => return Err(LayoutError::open(op, Condition::AtMost, before, &stride)),
            }
        }
        modes.insert(at, (leaf.extent.clone(), stride, position));
    }
    ascending(op, &modes, |(extent, stride, _)| (extent, stride))?;
    Ok(modes)
}

/// Refuses modes sorted by stride if two of them, both with more than one position, may be out of
/// order.
///
/// Only neighbours have been compared. If the mode between two others has one position, the order
/// of the other two does not follow from that.
#[inline]
pub(crate) fn ascending<N: Extent, M>(
    op: &'static str,
    modes: &[M],
    parts: impl Fn(&M) -> (&N, &N),
) -> Result<(), LayoutError> {
    if modes.iter().all(|mode| parts(mode).1.known().is_some()) {
        return Ok(());
    }
    for (place, outer) in modes.iter().enumerate() {
        let (many, stride) = parts(outer);
        for (extent, before) in modes.iter().take(place).map(&parts) {
            if !stride.less_given(before, &[extent, many]).refuted() {
                return Err(LayoutError::open(op, Condition::AtMost, before, stride));
            }
        }
    }
    Ok(())
}

/// Refuses a stride that is not known to be zero or nonzero.
#[inline(always)]
pub(crate) fn moving<N: Extent>(op: &'static str, stride: &N, magnitude: &N) -> Result<(), LayoutError> {
    match stride.is_zero() {
        Truth::Open => Err(LayoutError::open(op, Condition::Less, &N::zero(), magnitude)),
        _ => Ok(()),
    }
}

/// The error for a stride without a magnitude: its sign is not known, or the magnitude is too
/// large.
#[cold]
pub(crate) fn no_magnitude<N: Extent>(op: &'static str, stride: &N) -> LayoutError {
    match stride.less(&N::zero()) {
        Truth::Open => LayoutError::open(op, Condition::AtMost, &N::zero(), stride),
        _ => N::overflow(op),
    }
}

/// How the gaps between modes are filled.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Filling {
    /// Exactly: the complement leaves no hole.
    Whole,
    /// The complement is disjoint and may leave holes.
    Holes,
    /// As `Holes`, but correct on all integers: if the last mode has one position and no mode
    /// follows, the gap before it continues instead.
    Copies,
}

impl<N: Extent> Layout<N> {
    /// The layout that together with this one covers each offset of `[0, target)` once: sorted,
    /// coalesced and disjoint (CuTe `complement(L, M)`, where that is exact).
    ///
    /// A target that the layout does not tile is rounded up.
    /// Errors: a stride is negative; the strides, sorted, do not form a divisibility chain
    /// ([`LayoutError::NotChain`]).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(2,2):(4,1)".parse().unwrap();
    /// assert_eq!(layout.complement(&24).unwrap().to_string(), "(2,3):(2,8)");
    /// assert_eq!("4:32".parse::<Layout>().unwrap().complement(&256).unwrap().to_string(), "(32,2):(1,128)");
    /// ```
    pub fn complement(&self, target: &N) -> Result<Layout<N>, LayoutError> {
        fill("complement", self, Filling::Whole, Some(target))
    }

    /// The complement without a target: the last mode has extent 1, and its stride is the offset of
    /// the next copy.
    ///
    /// Errors: as [`Layout::complement`].
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "4:2".parse().unwrap();
    /// assert_eq!(layout.complement_open().unwrap().to_string(), "(2,1):(1,8)");
    /// ```
    pub fn complement_open(&self) -> Result<Layout<N>, LayoutError> {
        fill("complement", self, Filling::Whole, None)
    }

    /// A sorted, coalesced layout that is disjoint from this one and fills the gaps below `target`
    /// with as many whole copies as fit; it may leave holes (CuTe `complement` on padded layouts).
    ///
    /// Errors: modes overlap ([`LayoutError::Overlap`]).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let padded: Layout = "(4,6):(1,6)".parse().unwrap();
    /// assert_eq!(padded.complement(&72).unwrap_err().code(), "E0111");
    /// assert_eq!(padded.weak_complement(&72).unwrap().to_string(), "2:36");
    /// ```
    pub fn weak_complement(&self, target: &N) -> Result<Layout<N>, LayoutError> {
        fill("weak_complement", self, Filling::Holes, Some(target))
    }

    /// The weak complement without a target: the last mode has extent 1, and its stride is the
    /// offset of the next copy.
    ///
    /// Errors: as [`Layout::weak_complement`].
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let padded: Layout = "(4,2):(1,5)".parse().unwrap();
    /// assert_eq!(padded.weak_complement_open().unwrap().to_string(), "1:10");
    /// ```
    pub fn weak_complement_open(&self) -> Result<Layout<N>, LayoutError> {
        fill("weak_complement", self, Filling::Holes, None)
    }

    /// The open weak complement, correct as a function on all integers: the layout by which a
    /// product places copies of a block.
    #[inline]
    pub(crate) fn copies(&self) -> Result<Layout<N>, LayoutError> {
        fill("weak_complement", self, Filling::Copies, None)
    }
}

pub(crate) fn fill<N: Extent>(
    op: &'static str,
    layout: &Layout<N>,
    filling: Filling,
    target: Option<&N>,
) -> Result<Layout<N>, LayoutError> {
    if let Some(target) = target
        && !N::zero().less(target).proved()
    {
        return Err(match target.known() {
            Some(value) => LayoutError::Argument { op, what: "the target", value, wanted: "positive" },
            None => LayoutError::open(op, Condition::Less, &N::zero(), target),
        });
    }
    let modes = by_stride(op, layout)?;
    if filling == Filling::Whole {
        refuse_negative(op, layout)?;
    }
    let mut result = Layout::blank();
    let leaves = result.leaves_mut();
    let mut covered = N::one();
    // A mode that may have only one position; if it has, `covered` may be too large or the gaps
    // before it too small.
    let mut vanishing: Option<&N> = None;
    for (number, (extent, stride, _)) in modes.iter().enumerate() {
        let (gap, hole) = stride.divide(&covered).fits_as::<N>(op)?;
        let whole = hole.is_zero().proved();
        let fits = whole || (filling != Filling::Whole && gap.is_zero().refuted());
        if !fits {
            return Err(refuse(op, layout, filling, &modes, number, &covered));
        }
        // An extent that is known to be 1 has been left out.
        let several = extent.known().is_some() || N::one().less(extent).proved();
        if !whole && let Some(extent) = vanishing.or(Some(extent).filter(|_| !several)) {
            return Err(LayoutError::open(op, Condition::Less, &N::one(), extent));
        }
        if several {
            vanishing = None;
        } else if !gap.is_one().proved() {
            vanishing = Some(extent);
        }
        if !gap.is_one().proved() {
            push_merged(leaves, &Leaf { extent: gap, stride: covered }).fits_as::<N>(op)?;
        }
        covered = stride.times(extent).fits_as::<N>(op)?;
    }
    if let Some(extent) = vanishing
        && filling != Filling::Copies
        && !target.is_some_and(|target| covered.divides(target).proved())
    {
        return Err(LayoutError::open(op, Condition::Less, &N::one(), extent));
    }
    match target {
        None => leaves.push(Leaf { extent: N::one(), stride: covered }),
        Some(target) => {
            let rest = target.divide_up(&covered).fits_as::<N>(op)?;
            if !rest.is_one().proved() {
                push_merged(leaves, &Leaf { extent: rest, stride: covered }).fits_as::<N>(op)?;
            }
        }
    }
    // The size of the complement may exceed the range although every mode is within it.
    leaves.iter().try_fold(N::one(), |size, leaf| size.times(&leaf.extent)).fits_as::<N>(op)?;
    result.nest_flat()?;
    Ok(result)
}

/// Refuses a layout with an offset below zero.
pub(crate) fn refuse_negative<N: Extent>(op: &'static str, layout: &Layout<N>) -> Result<(), LayoutError> {
    for (position, leaf) in layout.leaves().iter().enumerate() {
        if leaf.stride.less(&N::zero()).proved() && !leaf.extent.is_one().proved() {
            let path = layout.profile().path(position);
            return Err(match leaf.stride.known() {
                Some(stride) => LayoutError::Negative { op, path, stride },
                None => LayoutError::open(op, Condition::AtMost, &N::zero(), &leaf.stride),
            });
        }
    }
    Ok(())
}

#[cold]
fn refuse<N: Extent>(
    op: &'static str,
    layout: &Layout<N>,
    filling: Filling,
    modes: &[MovingMode<N>],
    number: usize,
    covered: &N,
) -> LayoutError {
    let mode =
        |(extent, stride, leaf): &MovingMode<N>| Some((layout.profile().path(*leaf), extent.known()?, stride.known()?));
    let inner = number.checked_sub(1).and_then(|number| modes.get(number));
    let outer = modes.get(number).and_then(mode);
    match (inner.map(mode), outer, covered.known()) {
        (None, Some(outer), Some(covered)) => refusal(filling, Chain { op, inner: None, covered, outer }),
        (Some(Some(inner)), Some(outer), Some(covered)) => {
            refusal(filling, Chain { op, inner: Some(inner), covered, outer })
        }
        _ => {
            let condition = if filling == Filling::Whole { Condition::Divides } else { Condition::AtMost };
            match modes.get(number) {
                Some((_, stride, _)) => LayoutError::open(op, condition, covered, stride),
                None => N::overflow(op),
            }
        }
    }
}

fn refusal(filling: Filling, chain: Chain) -> LayoutError {
    match filling {
        Filling::Whole => LayoutError::NotChain(Box::new(chain)),
        Filling::Holes | Filling::Copies => LayoutError::Overlap(Box::new(chain)),
    }
}
