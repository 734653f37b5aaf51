//! What two layouts have in common: the elements that lie side by side in both.
//!
//! Law: `R = max_common_layout(a, b)` has `a(R(i)) = i` and `b(R(i)) = i` for every `i` below its size, with `R(i)` an index of both; so
//! elements `0 .. size(R)` can move between the two as one vector.
//!
//! *Where `a` (or `b`) is injective, this is the largest.* Then `R(i)` can only be the index at which `a` is `i`. Every common layout is a
//! right inverse of `a`, so it agrees with the largest one, `A`, wherever it is defined: it is `A` cut short. A layout cut short is a
//! layout exactly when the cut is after a multiple `q` of whole modes, `q` at most the extent of the next. How far `b` undoes a cut is
//! read off the composition, coalesced: as far as its first mode reaches, if that has stride 1. Where a composition does not exist, a shorter
//! cut may have one, and a shorter cut of what `b` undoes it undoes as well: so the longest is found by halving. Both hold
//! within the limits of the searches: [`crate::MAX_CANDIDATES`] for `A` and [`crate::MAX_CASES`] for the composition.
//!
//! *Otherwise* an offset may be at several indices, and the two must choose the same one. Let `G` be the greatest common domain of the
//! shapes; on it both layouts are linear mode by mode, with strides `d` and `d'`. With no value beyond `M` or `-M` and `K = 2*M + 1`, the
//! layout of strides `d + K*(d - d')` has a value `i` in `0 ..= M` exactly where both layouts are `i`. So a right inverse of it, taken
//! through `G` and cut, is common to both. The longest of the three results is returned; a longer common layout that runs across the
//! modes of `G` may exist. This last way is taken with numbers that are known.

use crate::algebra::domain::greatest_common_domain;
use crate::refusal::error::LayoutError;
use crate::refusal::evidence::Condition;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Truth};
use crate::value::tree::Leaves;

const OP: &str = "max_common_layout";

/// A layout of indices at which both layouts are 0, 1, 2, ..: the largest one, when one of them is injective (CuTe
/// `max_common_layout`).
///
/// It is flat, and `1:0` when the two have nothing but offset 0 in common. Beyond CuTe, it may go through several modes, and negative
/// strides are right. Where neither is injective, or not known to be, the law holds all the same, but a larger layout may exist.
///
/// Errors: a number is not representable; how much they have in common depends on numbers that are not known ([`LayoutError::Open`]).
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_layout::max_common_layout;
/// use tilewright_layout::symbolic::Declarations;
///
/// let common = |a: &str, b: &str| {
///     let (a, b): (Layout, Layout) = (a.parse().unwrap(), b.parse().unwrap());
///     max_common_layout(&a, &b).unwrap().to_string()
/// };
/// assert_eq!(common("(4,8):(8,1)", "(4,8):(16,1)"), "8:4"); // rows of eight in both
/// assert_eq!(common("(4,8):(1,4)", "(4,8):(8,1)"), "1:0");
///
/// // A matrix, and the same with rows of more room than they need.
/// let mut names = Declarations::new();
/// names.gather("M,K").unwrap();
/// let (a, b) = (names.layout("(M,K):(K,1)").unwrap(), names.layout("(M,K):(K+8,1)").unwrap());
/// assert_eq!(max_common_layout(&a, &b).unwrap().to_string(), "K:M");
/// ```
pub fn max_common_layout<N: Extent>(a: &Layout<N>, b: &Layout<N>) -> Result<Layout<N>, LayoutError> {
    let direct = || longest_cut(&a.right_inverse()?, b);
    // Where injectivity is not decided, the longer way round is right too.
    if a.is_injective().unwrap_or(false) {
        return direct();
    }
    let other = longest_cut(&b.right_inverse()?, a)?;
    let injective = b.is_injective().unwrap_or(false);
    let longer = |one: Layout<N>, than: Layout<N>| if than.size().less(&one.size()).proved() { one } else { than };
    let mut best = match direct() {
        Ok(direct) => longer(other, direct),
        // What the other way has found is the largest already.
        Err(LayoutError::Open { .. }) if injective => other,
        Err(error) => return Err(error),
    };
    if !injective && let Some(joint) = joint(a, b)? {
        best = longer(joint, best);
    }
    Ok(best)
}

/// How many elements lie side by side in both layouts: the size of [`max_common_layout`], at least 1 (CuTe `max_common_vector`).
///
/// Errors: as [`max_common_layout`].
///
/// ```
/// use tilewright_layout::{Layout, max_common_vector};
///
/// let vector = |a: &str, b: &str| {
///     let (a, b): (Layout, Layout) = (a.parse().unwrap(), b.parse().unwrap());
///     max_common_vector(&a, &b).unwrap()
/// };
/// assert_eq!(vector("(4,8):(1,4)", "(4,8):(1,8)"), 4);
/// assert_eq!(vector("(4,8):(1,4)", "(4,8):(1,4)"), 32);
/// ```
pub fn max_common_vector<N: Extent>(a: &Layout<N>, b: &Layout<N>) -> Result<N, LayoutError> {
    Ok(max_common_layout(a, b)?.size())
}

/// The first `size` indices of whole modes of `r`, when they are those of a layout: `q` of the last.
pub(crate) fn cut<N: Extent>(r: &Layout<N>, whole: usize, q: N) -> Result<Layout<N>, LayoutError> {
    let mut leaves: Leaves<Leaf<N>> = r.leaves().iter().take(whole + 1).cloned().collect();
    if q.is_one().proved() {
        leaves.truncate(whole);
    } else if let Some(last) = leaves.last_mut() {
        last.extent = q;
    }
    Layout::flat(leaves)
}

/// How many of the first indices of `cut` the layout undoes; none where the two have no composite.
fn undone<N: Extent>(layout: &Layout<N>, cut: &Layout<N>) -> Result<Option<N>, LayoutError> {
    let composite = match layout.compose_within(cut).and_then(|composite| composite.coalesce()) {
        Err(error @ LayoutError::Open { .. }) => return Err(error),
        Err(_) => return Ok(None),
        Ok(composite) => composite,
    };
    let mut covered = N::one();
    let mut leaves = composite.leaves();
    while let Some((leaf, later)) = leaves.split_first() {
        leaves = later;
        // Coalesced, so that what goes on evenly is one mode; of numbers that are not known, where that is seen.
        match leaf.stride.same(&covered) {
            Truth::Proved => covered = covered.times(&leaf.extent).ok_or_else(|| LayoutError::overflow(OP))?,
            _ if leaf.extent.is_one().proved() => {}
            Truth::Open => return Err(LayoutError::open(OP, Condition::Equal, &leaf.stride, &covered)),
            // Where this mode has one position, a later one must not go on instead of it.
            Truth::Refuted => match later.iter().find(|later| !later.stride.same(&covered).refuted()) {
                Some(_) if !N::one().less(&leaf.extent).proved() => {
                    return Err(LayoutError::open(OP, Condition::Less, &N::one(), &leaf.extent));
                }
                _ => break,
            },
        }
    }
    Ok(Some(covered))
}

/// The longest cut of a right inverse that is one of `layout` too.
fn longest_cut<N: Extent>(r: &Layout<N>, layout: &Layout<N>) -> Result<Layout<N>, LayoutError> {
    let overflow = || LayoutError::overflow(OP);
    let r = r.coalesce()?;
    let mut best = Layout::unit();
    let mut covered = N::one();
    for (whole, leaf) in r.leaves().iter().enumerate() {
        // The whole mode first: most often it is all or nothing.
        let good = match undone(layout, &cut(&r, whole, leaf.extent.clone())?)? {
            Some(count) => {
                let (good, rest) = count.divide(&covered).ok_or_else(overflow)?;
                if rest.is_zero() == Truth::Open {
                    return Err(LayoutError::open(OP, Condition::Divides, &covered, &count));
                }
                good
            }
            None => {
                let Some(extent) = leaf.extent.known() else {
                    return Err(LayoutError::open(OP, Condition::Known, &leaf.extent, &N::zero()));
                };
                // Up to `good` it is undone, and from `bad` on it is not.
                let (mut good, mut bad) = (1, extent);
                while bad - good > 1 {
                    let q = good + (bad - good) / 2;
                    let wanted = covered.times(&N::from(q)).ok_or_else(overflow)?;
                    match undone(layout, &cut(&r, whole, N::from(q))?)? {
                        Some(count) if count.same(&wanted).proved() => good = q,
                        _ => bad = q,
                    }
                }
                N::from(good)
            }
        };
        best = cut(&r, whole, good.clone())?;
        match good.same(&leaf.extent) {
            Truth::Proved => {}
            Truth::Refuted => break,
            Truth::Open => {
                // The next mode may go on only where this one is whole.
                if whole + 1 < r.leaves().len() {
                    return Err(LayoutError::open(OP, Condition::Equal, &good, &leaf.extent));
                }
            }
        }
        covered = covered.times(&leaf.extent).ok_or_else(overflow)?;
    }
    Ok(best)
}

/// A common layout by way of the greatest common domain; none where a number is not known or does not fit.
fn joint<N: Extent>(a: &Layout<N>, b: &Layout<N>) -> Result<Option<Layout<N>>, LayoutError> {
    let known = |layout: &Layout<N>| {
        layout.leaves().iter().all(|leaf| leaf.extent.known().is_some() && leaf.stride.known().is_some())
    };
    if !known(a) || !known(b) {
        return Ok(None);
    }
    let domain = greatest_common_domain(&a.shape(), &b.shape())?;
    let magnitude = |layout: &Layout<N>| {
        let (least, greatest) = layout.range()?;
        let below = N::zero().minus(&least);
        Ok::<Option<N>, LayoutError>(below.map(|below| if greatest.less(&below).proved() { below } else { greatest }))
    };
    let (Some(left), Some(right)) = (magnitude(a)?, magnitude(b)?) else { return Ok(None) };
    let most = if left.less(&right).proved() { right } else { left };
    let Some(factor) = most.plus(&most).and_then(|twice| twice.plus(&N::one())) else { return Ok(None) };
    let mut leaves = Leaves::new();
    for leaf in domain.leaves() {
        let (d, e) = (a.eval(&leaf.stride)?, b.eval(&leaf.stride)?);
        let Some(stride) = d.minus(&e).and_then(|apart| apart.times(&factor)?.plus(&d)) else { return Ok(None) };
        leaves.push(Leaf { extent: leaf.extent.clone(), stride });
    }
    let Ok(inverse) = Layout::flat(leaves)?.right_inverse() else { return Ok(None) };
    // Where the indices in the domain do not compose to a layout of indices, there is no joint one of this kind.
    let Ok(indices) = domain.compose_within(&inverse) else { return Ok(None) };
    Ok(Some(longest_cut(&longest_cut(&indices, a)?, b)?))
}
