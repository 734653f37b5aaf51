//! What two layouts have in common: the elements that lie side by side in both.
//!
//! Law: `R = max_common_layout(a, b)` has `a(R(i)) = i` and `b(R(i)) = i` for every `i` below its size, with `R(i)` an index of both; so
//! elements `0 .. size(R)` can move between the two as one vector.
//!
//! *Where `a` (or `b`) is injective, this is the largest.* Then `R(i)` can only be the index at which `a` is `i`. Every common layout is a
//! right inverse of `a`, so it agrees with the largest one, `A`, wherever it is defined: it is `A` cut short. A layout cut short is a
//! layout exactly when the cut is after a multiple `q` of whole modes, `q` at most the extent of the next. Whether `b` undoes a cut is
//! asked of the composition, and a shorter cut of what `b` undoes it undoes as well: so the longest is found by halving. Both hold
//! within the limits of the searches: [`crate::MAX_CANDIDATES`] for `A` and [`crate::MAX_CASES`] for the composition.
//!
//! *Otherwise* an offset may be at several indices, and the two must choose the same one. Let `G` be the greatest common domain of the
//! shapes; on it both layouts are linear mode by mode, with strides `d` and `d'`. With no value beyond `M` or `-M` and `K = 2*M + 1`, the
//! layout of strides `d + K*(d - d')` has a value `i` in `0 ..= M` exactly where both layouts are `i`. So a right inverse of it, taken
//! through `G` and cut, is common to both. The longest of the three results is returned; a longer common layout that runs across the
//! modes of `G` may exist.

use crate::domain::greatest_common_domain;
use crate::error::LayoutError;
use crate::layout::{Layout, Leaf};
use crate::tree::Leaves;

/// A layout of indices at which both layouts are 0, 1, 2, ..: the largest one, when one of them is injective (CuTe
/// `max_common_layout`).
///
/// It is flat, and `1:0` when the two have nothing but offset 0 in common. Beyond CuTe, it may go through several modes, and negative
/// strides are right. Where neither is injective the law holds all the same, but a larger layout may exist.
///
/// Errors: a number is not representable.
///
/// ```
/// use tilewright_layout::max_common_layout;
///
/// let common = |a: &str, b: &str| max_common_layout(&a.parse().unwrap(), &b.parse().unwrap()).unwrap().to_string();
/// assert_eq!(common("(4,8):(8,1)", "(4,8):(16,1)"), "8:4"); // rows of eight in both
/// assert_eq!(common("(4,8):(1,4)", "(4,8):(8,1)"), "1:0");
/// ```
pub fn max_common_layout(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
    let direct = longest_cut(&a.right_inverse()?, b)?;
    // Where injectivity is not decided, the longer way round is right too.
    if a.is_injective().unwrap_or(false) {
        return Ok(direct);
    }
    let other = longest_cut(&b.right_inverse()?, a)?;
    let mut best = if other.size() > direct.size() { other } else { direct };
    if !b.is_injective().unwrap_or(false)
        && let Some(joint) = joint(a, b)?
        && joint.size() > best.size()
    {
        best = joint;
    }
    Ok(best)
}

/// How many elements lie side by side in both layouts: the size of [`max_common_layout`], at least 1 (CuTe `max_common_vector`).
///
/// Errors: as [`max_common_layout`].
///
/// ```
/// use tilewright_layout::max_common_vector;
///
/// let vector = |a: &str, b: &str| max_common_vector(&a.parse().unwrap(), &b.parse().unwrap()).unwrap();
/// assert_eq!(vector("(4,8):(1,4)", "(4,8):(1,8)"), 4);
/// assert_eq!(vector("(4,8):(1,4)", "(4,8):(1,4)"), 32);
/// ```
pub fn max_common_vector(a: &Layout, b: &Layout) -> Result<i64, LayoutError> {
    Ok(max_common_layout(a, b)?.size())
}

/// The first `size` indices of whole modes of `r`, when they are those of a layout: `q` of the last.
pub(crate) fn cut(r: &Layout, whole: usize, q: i64) -> Result<Layout, LayoutError> {
    let mut leaves: Leaves<Leaf> = r.leaves().iter().copied().take(whole + 1).collect();
    if q == 1 {
        leaves.truncate(whole);
    } else if let Some(last) = leaves.last_mut() {
        last.extent = q;
    }
    Layout::flat(leaves)
}

/// The longest cut of a right inverse that is one of `layout` too.
fn longest_cut(r: &Layout, layout: &Layout) -> Result<Layout, LayoutError> {
    let r = r.coalesce()?;
    // The identity, coalesced: one mode of stride 1, or none.
    let undone = |cut: &Layout| match layout.compose_within(cut).and_then(|composite| composite.coalesce()) {
        Ok(composite) => match composite.leaves() {
            [leaf] => leaf.extent == cut.size() && leaf.stride == i64::from(leaf.extent > 1),
            _ => false,
        },
        Err(_) => false,
    };
    let mut best = Layout::unit();
    for (whole, leaf) in r.leaves().iter().enumerate() {
        // The whole mode first: most often it is all or nothing.
        let (mut good, mut bad, mut q) = (1, leaf.extent, leaf.extent);
        // Up to `good` it is undone, and from `bad` on it is not.
        loop {
            let candidate = cut(&r, whole, q)?;
            if undone(&candidate) {
                (good, best) = (q, candidate);
            } else {
                bad = q;
            }
            if bad - good <= 1 {
                break;
            }
            q = good + (bad - good) / 2;
        }
        if good < leaf.extent {
            break;
        }
    }
    Ok(best)
}

/// A common layout by way of the greatest common domain; none where a number does not fit.
fn joint(a: &Layout, b: &Layout) -> Result<Option<Layout>, LayoutError> {
    let domain = greatest_common_domain(&a.shape(), &b.shape())?;
    let magnitude = |layout: &Layout| {
        let (least, greatest) = layout.range()?;
        Ok::<i64, LayoutError>(greatest.max(least.checked_neg().unwrap_or(i64::MAX)))
    };
    let most = magnitude(a)?.max(magnitude(b)?);
    let Some(factor) = most.checked_mul(2).and_then(|twice| twice.checked_add(1)) else { return Ok(None) };
    let mut leaves = Leaves::new();
    for leaf in domain.leaves() {
        let (d, e) = (a.eval(&leaf.stride)?, b.eval(&leaf.stride)?);
        let stride = d.checked_sub(e).and_then(|apart| apart.checked_mul(factor)?.checked_add(d));
        let Some(stride) = stride else { return Ok(None) };
        leaves.push(Leaf { extent: leaf.extent, stride });
    }
    let Ok(inverse) = Layout::flat(leaves)?.right_inverse() else { return Ok(None) };
    // Where the indices in the domain do not compose to a layout of indices, there is no joint one of this kind.
    let Ok(indices) = domain.compose_within(&inverse) else { return Ok(None) };
    Ok(Some(longest_cut(&longest_cut(&indices, a)?, b)?))
}
