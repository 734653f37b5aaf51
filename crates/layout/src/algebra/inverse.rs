//! Inverses.
//!
//! # Laws
//!
//! * Right: `L(R(i)) = i` for every `i` below the size of `R`, with `R(i)` an index of `L`; the
//!   largest such layout.
//! * Left: `L(R(L(k))) = L(k)` for every index `k` of `L`. On an injective layout this says
//!   `R(L(k)) = k`.
//! * Nullspace: `L(K(i)) = 0`, `K` injective, made of the stride-0 modes, so that
//!   `size(K) * size(filter(L)) = size(L)` when `L` has no modes of extent 1 with a stride.
//!
//! # Right
//!
//! Sort the modes by stride and follow the chain: the first must have stride 1, and each next one
//! the stride that the modes so far cover, `c`. When it breaks at a stride above `c` and no stride
//! is negative, the offset `c` is not in the image at all: the modes so far reach at most `c - 1`,
//! and every other stride is larger. So no longer right inverse exists. If a stride is less than
//! `c`, modes overlap, and a longer right inverse may step in several modes at once: `(4,2):(1,2)`
//! covers 0..5, and `(3,2):(1,5)` is its right inverse. In this case, and with negative strides,
//! the candidates are searched ([`super::search`]).
//!
//! # Left
//!
//! Sort the modes with nonzero strides by `|d|`. If all have one sign, and `d_k | d_(k+1)`,
//! `s_k * d_k <= d_(k+1)`, then the digits of an offset in the bases `d_1, d_2/d_1, ..` are the
//! coordinates. The layout that maps each digit to the index step of its mode is a left inverse.
//! Otherwise candidates are searched.

use smallvec::SmallVec;

use crate::algebra::coalesce::{coalesced, push_merged, unsettled_zero};
use crate::algebra::complement::{ascending, moving, no_magnitude};
use crate::algebra::search;
use crate::limits::MAX_CANDIDATES;
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::Condition;
use crate::refusal::interrupt;
use crate::value::layout::{Layout, Leaf, index_steps};
use crate::value::number::{Extent, Stride, Truth};

/// A mode of a coalesced layout with more than one offset.
struct InvertedMode<N> {
    extent: N,
    /// The magnitude of the stride.
    stride: N,
    /// The index step of the mode: the difference between the indices of neighbours along it.
    step: N,
}

/// The modes with nonzero strides, by increasing stride, and whether all strides are positive, or
/// all negative.
struct Sorted<N> {
    modes: SmallVec<[InvertedMode<N>; 8]>,
    positive: bool,
    negative: bool,
}

fn sorted<N: Extent>(op: &'static str, layout: &Layout<N>) -> Result<Sorted<N>, LayoutError> {
    let leaves = coalesced(layout.leaves()).fits_as::<N>(op)?;
    let steps = index_steps(&leaves).fits_as::<N>(op)?;
    let mut sorted = Sorted { modes: SmallVec::new(), positive: true, negative: true };
    for (leaf, step) in leaves.iter().zip(&steps) {
        if leaf.stride.is_zero().proved() {
            continue;
        }
        if leaf.stride.less(&N::zero()).proved() {
            sorted.positive = false;
        } else {
            sorted.negative = false;
        }
        let stride = leaf.stride.magnitude().ok_or_else(|| no_magnitude(op, &leaf.stride))?;
        moving(op, &leaf.stride, &stride)?;
        let mut at = sorted.modes.len();
        while let Some(before) = at.checked_sub(1).and_then(|before| sorted.modes.get(before)) {
            match stride.less_given(&before.stride, &[&before.extent, &leaf.extent]) {
                Truth::Proved => at -= 1,
                Truth::Refuted => break,
                Truth::Open => return Err(LayoutError::open(op, Condition::AtMost, &before.stride, &stride)),
            }
        }
        sorted.modes.insert(at, InvertedMode { extent: leaf.extent.clone(), stride, step: step.clone() });
    }
    ascending(op, &sorted.modes, |mode| (&mode.extent, &mode.stride))?;
    Ok(sorted)
}

/// Refuses modes with unknown numbers if a search would need them.
fn known<N: Extent>(op: &'static str, sorted: &Sorted<N>) -> Result<(), LayoutError> {
    let numbers = || sorted.modes.iter().flat_map(|mode| [&mode.extent, &mode.stride, &mode.step]);
    let Some(unknown) = numbers().find(|number| number.known().is_none()) else { return Ok(()) };
    // The stride that the chain needs at this place.
    for pair in sorted.modes.windows(2) {
        let [inner, outer] = pair else { continue };
        if inner.stride.divides(&outer.stride) == Truth::Open {
            return Err(LayoutError::open(op, Condition::Divides, &inner.stride, &outer.stride));
        }
        if let Some(covered) = inner.stride.times(&inner.extent)
            && outer.stride.less(&covered) == Truth::Open
        {
            return Err(LayoutError::open(op, Condition::AtMost, &covered, &outer.stride));
        }
    }
    Err(LayoutError::open(op, Condition::Known, unknown, &N::zero()))
}

impl<N: Extent> Layout<N> {
    /// The largest layout `R` with `L(R(i)) = i` for every `i` below its size (CuTe
    /// `right_inverse`).
    ///
    /// It is `1:0` if offset 1 is not in the image. If modes overlap or strides are negative,
    /// candidates are searched; the result is never smaller than CuTe's.
    ///
    /// Errors: a number is not representable; the search tries [`MAX_CANDIDATES`] candidates
    /// without proving which one is the largest ([`LayoutError::Undecided`]).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let right = |text: &str| text.parse::<Layout>().unwrap().right_inverse().unwrap().to_string();
    /// assert_eq!(right("(4,3):(3,1)"), "(3,4):(4,1)");
    /// assert_eq!(right("(4,8):(1,5)"), "4:1"); // offset 4 is a hole
    /// assert_eq!(right("(2,4):(-1,2)"), "(2,3):(3,2)"); // offset 1 is at index 3
    /// ```
    pub fn right_inverse(&self) -> Result<Layout<N>, LayoutError> {
        let mut result = Layout::blank();
        let (covered, overlaps) = right_chain(self, &mut result)?;
        result.nest_flat()?;
        if overlaps {
            return match searched(self, result, &covered, i64::MAX)? {
                (found, true) => Ok(found),
                (_, false) => Err(LayoutError::Undecided { op: "right_inverse", limit: MAX_CANDIDATES }),
            };
        }
        Ok(result)
    }

    /// A layout `R` with `L(R(L(k))) = L(k)` for every index `k`: it maps an offset of the layout
    /// to an index with that offset (CuTe `left_inverse`).
    ///
    /// Errors: no layout does this ([`LayoutError::NoLeftInverse`]); the search for one, where
    /// strides do not divide each other, reached its limit ([`LayoutError::Undecided`]).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let left = |text: &str| text.parse::<Layout>().unwrap().left_inverse().unwrap().to_string();
    /// assert_eq!(left("(4,8):(1,5)"), "(5,8):(1,4)");
    /// assert_eq!(left("4:2"), "(2,4):(0,1)");
    /// assert_eq!(left("(2,2):(2,3)"), "(2,3):(1,1)"); // maps 0, 2, 3, 5 to 0, 1, 2, 3
    /// ```
    pub fn left_inverse(&self) -> Result<Layout<N>, LayoutError> {
        let mut result = Layout::blank();
        if !left_chain(self, &mut result)? {
            return search::left_inverse(self);
        }
        result.nest_flat()?;
        Ok(result)
    }
}

/// A right inverse, and whether it is known to be the largest or to have at least `most` indices.
pub(crate) fn right_inverse_within<N: Extent>(layout: &Layout<N>, most: i64) -> Result<(Layout<N>, bool), LayoutError> {
    let mut result = Layout::blank();
    let (covered, overlaps) = right_chain(layout, &mut result)?;
    result.nest_flat()?;
    if overlaps { searched(layout, result, &covered, most) } else { Ok((result, true)) }
}

/// The same by a search, for overlapping modes; the chain has reached `chain`, which covers
/// `covered` offsets.
#[cold]
fn searched<N: Extent>(
    layout: &Layout<N>,
    chain: Layout<N>,
    covered: &N,
    most: i64,
) -> Result<(Layout<N>, bool), LayoutError> {
    let found = search::right_inverse(layout, covered, most);
    interrupt::check("right_inverse")?;
    Ok((found.longer.unwrap_or(chain), found.complete))
}

/// Writes the modes of the right inverse that follows the chain of strides. Returns the number of
/// offsets that it covers, and whether a longer one may exist because modes overlap or strides have
/// both signs.
#[inline(always)]
pub(crate) fn right_chain<N: Extent>(layout: &Layout<N>, result: &mut Layout<N>) -> Result<(N, bool), LayoutError> {
    const OP: &str = "right_inverse";
    let sorted = match sorted(OP, layout) {
        Err(error @ LayoutError::Open { .. }) => return right_chain_unsorted(layout, result).ok_or(error),
        sorted => sorted?,
    };
    let leaves = result.leaves_mut();
    let mut covered = N::one();
    let mut overlaps = !sorted.positive && !sorted.negative;
    if sorted.positive {
        for (number, mode) in sorted.modes.iter().enumerate() {
            if mode.stride.same(&covered).proved() {
                let leaf = Leaf { extent: mode.extent.clone(), stride: mode.step.clone() };
                push_merged(leaves, &leaf).fits_as::<N>(OP)?;
                covered = covered.times(&mode.extent).fits_as::<N>(OP)?;
                continue;
            }
            match covered.less_given(&mode.stride, &[&mode.extent]) {
                Truth::Proved if mode.extent.known().is_some() => break,
                // If this mode has one position, the next one must not continue the chain instead
                // of it.
                Truth::Proved => {
                    let later = sorted.modes.get(number + 1..).unwrap_or_default();
                    let on = |later: &&InvertedMode<N>| !covered.less_given(&later.stride, &[&later.extent]).proved();
                    match later.iter().find(on) {
                        Some(later) => return Err(LayoutError::open(OP, Condition::Less, &covered, &later.stride)),
                        None => break,
                    }
                }
                Truth::Refuted => overlaps = true,
                Truth::Open => return Err(LayoutError::open(OP, Condition::Less, &covered, &mode.stride)),
            }
        }
    }
    if overlaps {
        known(OP, &sorted)?;
    }
    Ok((covered, overlaps))
}

/// As [`right_chain`], if the order of the strides is not known: a mode continues the chain if all
/// other modes are certainly above the covered offsets. None if that is not known either.
#[cold]
fn right_chain_unsorted<N: Extent>(layout: &Layout<N>, result: &mut Layout<N>) -> Option<(N, bool)> {
    let leaves = coalesced(layout.leaves())?;
    let steps = index_steps(&leaves)?;
    let mut modes: SmallVec<[(&Leaf<N>, &N); 8]> =
        leaves.iter().zip(&steps).filter(|(leaf, _)| !leaf.stride.is_zero().proved()).collect();
    let mut covered = N::one();
    loop {
        let next = modes.iter().position(|(leaf, _)| leaf.stride.same(&covered).proved());
        let next = next.map(|next| modes.remove(next));
        if !modes.iter().all(|(leaf, _)| covered.less_given(&leaf.stride, &[&leaf.extent]).proved()) {
            return None;
        }
        let Some((leaf, step)) = next else { return Some((covered, false)) };
        push_merged(result.leaves_mut(), &Leaf { extent: leaf.extent.clone(), stride: step.clone() })?;
        covered = covered.times(&leaf.extent)?;
    }
}

/// Writes the modes of the left inverse that reads the digits of an offset. Returns whether the
/// strides form the chain that this needs.
#[inline(always)]
pub(crate) fn left_chain<N: Extent>(layout: &Layout<N>, result: &mut Layout<N>) -> Result<bool, LayoutError> {
    const OP: &str = "left_inverse";
    let sorted = sorted(OP, layout)?;
    let chain = sorted.modes.windows(2).all(|pair| {
        let [inner, outer] = pair else { return false };
        let covered = inner.stride.times(&inner.extent);
        inner.stride.divides(&outer.stride).proved()
            && covered.is_some_and(|covered| outer.stride.less(&covered).refuted())
    });
    if !chain || !(sorted.positive || sorted.negative) {
        known(OP, &sorted)?;
        return Ok(false);
    }
    let leaves = result.leaves_mut();
    let mut push = |extent: N, stride: &N| {
        if extent.is_one().proved() {
            return Some(());
        }
        let stride = if sorted.negative { N::zero().minus(stride)? } else { stride.clone() };
        push_merged(leaves, &Leaf { extent, stride })
    };
    let (mut begin, mut step) = (N::one(), N::zero());
    for mode in &sorted.modes {
        let (extent, _) = mode.stride.divide(&begin).fits_as::<N>(OP)?;
        push(extent, &step).fits_as::<N>(OP)?;
        (begin, step) = (mode.stride.clone(), mode.step.clone());
    }
    if let Some(last) = sorted.modes.last() {
        push(last.extent.clone(), &step).fits_as::<N>(OP)?;
    }
    Ok(true)
}

impl<D: Stride> Layout<D> {
    /// The layout of the indices that the stride-0 modes generate: `L(K(i)) = 0` (CuTe
    /// `nullspace`).
    ///
    /// Indices at which nonzero strides cancel, as in `(2,2):(1,-1)`, are not part of it.
    ///
    /// Errors: a number is not representable.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(2,4,6):(1,2,0)".parse().unwrap();
    /// assert_eq!(layout.nullspace().unwrap().to_string(), "6:8");
    /// ```
    pub fn nullspace(&self) -> Result<Layout<D::Extent>, LayoutError> {
        let steps = index_steps(self.leaves()).fits_as::<D::Extent>("nullspace")?;
        let mut result = Layout::blank();
        let leaves = result.leaves_mut();
        for (leaf, step) in self.leaves().iter().zip(&steps) {
            let still = leaf.stride.is_zero();
            if still == Truth::Open {
                return Err(unsettled_zero("nullspace", &leaf.stride));
            }
            if still.proved() && !leaf.extent.is_one().proved() {
                let mode = Leaf { extent: leaf.extent.clone(), stride: step.clone() };
                push_merged(leaves, &mode).fits_as::<D::Extent>("nullspace")?;
            }
        }
        result.nest_flat()?;
        Ok(result)
    }
}
