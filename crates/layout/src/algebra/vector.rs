//! Common vectors of two layouts: elements that are contiguous in both.
//!
//! Law: `R = max_common_layout(a, b)` has `a(R(i)) = i` and `b(R(i)) = i` for every `i` below its
//! size, with `R(i)` an index of both; so elements `0 .. size(R)` can move between the two as one
//! vector.
//!
//! *Where `a` (or `b`) is injective, this is the largest.* Then `R(i)` can only be the index at
//! which `a` is `i`. Every common layout is a right inverse of `a`, so it agrees with the largest
//! one, `A`, wherever it is defined: it is a prefix of `A`. A prefix of a layout is a layout
//! exactly when it consists of whole modes and of the first `q` positions of the next mode. The
//! coalesced composition of `b` with a prefix shows how much of it `b` inverts: the extent of its
//! first mode, if that has stride 1. If a composition does not exist, one with a shorter prefix may
//! exist; and `b` inverts every prefix of a prefix that it inverts. So the longest is found by
//! bisection. Both hold within the limits of the searches: [`crate::limits::MAX_CANDIDATES`] for
//! `A` and [`crate::limits::MAX_CASES`] for the composition.
//!
//! *Otherwise* several indices may have the same offset, and both layouts must use the same one.
//! Let `G` be the greatest common domain of the shapes; on it both layouts are linear mode by mode,
//! with strides `d` and `d'`. With no value beyond `M` or `-M` and `K = 2*M + 1`, the layout of
//! strides `d + K*(d - d')` has a value `i` in `0 ..= M` exactly where both layouts are `i`. So a
//! right inverse of it, composed with `G` and cut to a prefix, is common to both. The longest of
//! the three results is returned; a longer common layout that steps across the modes of `G` may
//! exist. This method needs known numbers. With numbers that are not known, the result consists of
//! modes of `G`, and of diagonals of two of them, in which both layouts have the same step; it is
//! returned if it is as long as a right inverse of one of the two can be.

use alloc::vec::Vec;

use crate::algebra::compose::{Outer, compose_outer, stays_within};
use crate::algebra::domain::greatest_common_domain;
use crate::algebra::inverse::right_inverse_within;
use crate::limits::MAX_CANDIDATES;
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::Condition;
use crate::refusal::interrupt::Work;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Truth};
use crate::value::tree::Leaves;

const OP: &str = "max_common_layout";

/// A layout of indices at which both layouts are 0, 1, 2, ..: the largest one, when one of them is
/// injective (CuTe `max_common_layout`).
///
/// The result is flat; it is `1:0` if the two have only offset 0 in common. Unlike in CuTe, it may
/// step through several modes, and negative strides are handled. If neither layout is known to be
/// injective, the law still holds, but a larger layout may exist.
///
/// Errors: a number is not representable; the result depends on numbers that are not known
/// ([`LayoutError::Open`]).
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
/// assert_eq!(common("(4,8):(8,1)", "(4,8):(16,1)"), "8:4"); // both have contiguous rows of eight
/// assert_eq!(common("(4,8):(1,4)", "(4,8):(8,1)"), "1:0");
///
/// // A matrix, and the same matrix with padded rows.
/// let mut names = Declarations::new();
/// names.gather("M,K").unwrap();
/// let (a, b) = (names.layout("(M,K):(K,1)").unwrap(), names.layout("(M,K):(K+8,1)").unwrap());
/// assert_eq!(max_common_layout(&a, &b).unwrap().to_string(), "K:M");
/// ```
pub fn max_common_layout<N: Extent>(a: &Layout<N>, b: &Layout<N>) -> Result<Layout<N>, LayoutError> {
    if a == b {
        return a.right_inverse();
    }
    match common(a, b) {
        Err(open @ LayoutError::Open { .. }) => match along_lines(a, b) {
            Ok(found) => as_long_as_any(found, a, b).map_err(|_| open),
            Err(_) => Err(open),
        },
        found => found,
    }
}

/// As [`max_common_layout`], for two different layouts, by their right inverses.
fn common<N: Extent>(a: &Layout<N>, b: &Layout<N>) -> Result<Layout<N>, LayoutError> {
    let work = Work::new();
    // If injectivity is undecided, the slower method is correct, too.
    let (first, second) = (injective(a)?, injective(b)?);
    // A common layout is a right inverse of both, and no longer than both.
    let most = |layout: &Layout<N>| layout.size().known().unwrap_or(i64::MAX);
    let through = |r: &Layout<N>, other: &Layout<N>| {
        let (inverse, whole) = right_inverse_within(r, most(other))?;
        let (cut, exact) = longest_cut(&inverse, other, &work)?;
        Ok((cut, whole && exact))
    };
    let mut direct = Ok((Layout::unit(), false));
    for (inverted, other, one_to_one) in [(a, b, first), (b, a, second)] {
        if one_to_one {
            direct = through(inverted, other);
            if let Ok((_, true)) = direct {
                return direct.map(|(layout, _)| layout);
            }
        }
    }
    let longer = |one: Layout<N>, than: Layout<N>| if than.size().less(&one.size()).proved() { one } else { than };
    if first || second {
        let (found, _) = direct?;
        return as_long_as_any(found, a, b);
    }
    let (one, other) = (through(a, b)?.0, through(b, a)?.0);
    let best = longer(one, other);
    match joint(a, b, &work)? {
        Some(joint) => Ok(longer(joint, best)),
        None => as_long_as_any(best, a, b),
    }
}

/// Whether a layout is known to be injective.
fn injective<N: Extent>(layout: &Layout<N>) -> Result<bool, LayoutError> {
    match layout.is_injective() {
        Err(error @ LayoutError::Interrupted { .. }) => Err(error),
        answer => Ok(answer.unwrap_or(false)),
    }
}

/// Returns a common layout that is as long as a right inverse of one of the two can be, so that no
/// longer one exists; otherwise the missing fact.
fn as_long_as_any<N: Extent>(found: Layout<N>, a: &Layout<N>, b: &Layout<N>) -> Result<Layout<N>, LayoutError> {
    for layout in [a, b] {
        match right_inverse_within(layout, i64::MAX) {
            Ok((inverse, true)) if inverse.size().same(&found.size()).proved() => return Ok(found),
            Err(error @ LayoutError::Interrupted { .. }) => return Err(error),
            _ => {}
        }
    }
    let numbers =
        || [a, b].into_iter().flat_map(|layout| layout.leaves()).flat_map(|leaf| [&leaf.extent, &leaf.stride]);
    match numbers().find(|number| number.known().is_none()) {
        Some(number) => Err(LayoutError::open(OP, Condition::Known, number, &N::zero())),
        None => Err(LayoutError::Undecided { op: OP, limit: MAX_CANDIDATES }),
    }
}

/// The number of elements that are contiguous in both layouts: the size of [`max_common_layout`],
/// at least 1 (CuTe `max_common_vector`).
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

/// The first `size` indices of `r`: its first `whole` modes, and `q` positions of the next one.
pub(crate) fn cut<N: Extent>(r: &Layout<N>, whole: usize, q: N) -> Result<Layout<N>, LayoutError> {
    let mut leaves: Leaves<Leaf<N>> = r.leaves().iter().take(whole + 1).cloned().collect();
    if q.is_one().proved() {
        leaves.truncate(whole);
    } else if let Some(last) = leaves.last_mut() {
        last.extent = q;
    }
    Layout::flat(leaves)
}

/// A layout, and whether its compositions with prefixes were all decided.
struct Undoing<'a, N: Extent> {
    outer: Outer<N>,
    layout: &'a Layout<N>,
    /// Whether every composition was decided.
    exact: bool,
}

/// The number of first indices of `cut` that the layout inverts; None if the composition does not
/// exist.
fn undone<N: Extent>(by: &mut Undoing<'_, N>, cut: &Layout<N>) -> Result<Option<N>, LayoutError> {
    let within = cut.range().and_then(|range| stays_within(range, by.layout.size(), &[]));
    let composite = within.and_then(|()| compose_outer(&mut by.outer, cut)).and_then(|composite| composite.coalesce());
    let composite = match composite {
        Err(error @ (LayoutError::Open { .. } | LayoutError::Interrupted { .. })) => return Err(error),
        Err(LayoutError::Undecided { .. }) => {
            by.exact = false;
            return Ok(None);
        }
        Err(_) => return Ok(None),
        Ok(composite) => composite,
    };
    let mut covered = N::one();
    let mut leaves = composite.leaves();
    while let Some((leaf, later)) = leaves.split_first() {
        leaves = later;
        // The composition is coalesced, so that contiguous modes are one mode; for sizes known at
        // launch, if that can be proved.
        match leaf.stride.same(&covered) {
            Truth::Proved => covered = covered.times(&leaf.extent).fits_as::<N>(OP)?,
            _ if leaf.extent.is_one().proved() => {}
            Truth::Open => return Err(LayoutError::open(OP, Condition::Equal, &leaf.stride, &covered)),
            // If this mode has one position, a later one must not continue instead of it.
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

/// The longest prefix of a right inverse `r` that is also a right inverse of `layout`, and whether
/// it is certainly the longest.
fn longest_cut<N: Extent>(r: &Layout<N>, layout: &Layout<N>, work: &Work) -> Result<(Layout<N>, bool), LayoutError> {
    let mut by = Undoing { outer: Outer::blank(), layout, exact: true };
    by.outer.read(layout.leaves())?;
    by.outer.work.take_up(work);
    let best = cut_undone(r, &mut by);
    work.take_up(&by.outer.work);
    Ok((best?, by.exact))
}

fn cut_undone<N: Extent>(r: &Layout<N>, by: &mut Undoing<'_, N>) -> Result<Layout<N>, LayoutError> {
    let r = r.coalesce()?;
    let mut best = Layout::unit();
    let mut covered = N::one();
    for (whole, leaf) in r.leaves().iter().enumerate() {
        // The whole mode is tried first: usually it is inverted completely or not at all.
        let good = match undone(by, &cut(&r, whole, leaf.extent.clone())?)? {
            Some(count) => {
                let (good, rest) = count.divide(&covered).fits_as::<N>(OP)?;
                if rest.is_zero() == Truth::Open {
                    return Err(LayoutError::open(OP, Condition::Divides, &covered, &count));
                }
                good
            }
            None => {
                let Some(extent) = leaf.extent.known() else {
                    return Err(LayoutError::open(OP, Condition::Known, &leaf.extent, &N::zero()));
                };
                // A prefix of `good` positions is inverted, and one of `bad` is not.
                let (mut good, mut bad) = (1, extent);
                while bad - good > 1 {
                    let q = good + (bad - good) / 2;
                    let wanted = covered.times(&N::from(q)).fits_as::<N>(OP)?;
                    match undone(by, &cut(&r, whole, N::from(q))?)? {
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
                // The next mode may follow only if this one is whole.
                if whole + 1 < r.leaves().len() {
                    return Err(LayoutError::open(OP, Condition::Equal, &good, &leaf.extent));
                }
            }
        }
        covered = covered.times(&leaf.extent).fits_as::<N>(OP)?;
    }
    Ok(best)
}

/// A common layout from lines in the greatest common domain, for numbers that are not known. A line
/// is a mode of the domain in which both layouts have the same step, or a diagonal of two modes in
/// which both have. No mode of the domain is in two lines.
fn along_lines<N: Extent>(a: &Layout<N>, b: &Layout<N>) -> Result<Layout<N>, LayoutError> {
    let domain = greatest_common_domain(&a.shape(), &b.shape())?;
    let mut steps = Vec::new();
    for leaf in domain.leaves() {
        steps.push((leaf, a.eval(&leaf.stride)?, b.eval(&leaf.stride)?));
    }
    // For each line: its modes, its layout in the domain, and the step of both layouts along it.
    let mut lines: Vec<(usize, usize, Leaf<N>, N)> = Vec::new();
    for (p, (first, d, e)) in steps.iter().enumerate() {
        if d.same(e).proved() {
            lines.push((p, p, (*first).clone(), d.clone()));
        }
        for (q, (second, f, g)) in steps.iter().enumerate().skip(p + 1) {
            let extent = match (second.extent.less(&first.extent), first.extent.less(&second.extent)) {
                (Truth::Refuted, _) => first.extent.clone(),
                (_, Truth::Refuted) => second.extent.clone(),
                _ => continue,
            };
            let (left, right) = d.plus(f).zip(e.plus(g)).fits_as::<N>(OP)?;
            if left.same(&right).proved() {
                let stride = first.stride.plus(&second.stride).fits_as::<N>(OP)?;
                lines.push((p, q, Leaf { extent, stride }, left));
            }
        }
    }
    let (mut covered, mut leaves, mut used) = (N::one(), Leaves::new(), Vec::new());
    while let Some((p, q, leaf, _)) = lines.iter().find(|(p, q, leaf, step)| {
        step.same(&covered).proved()
            && !leaf.extent.is_one().proved()
            && !used.iter().any(|mode| [p, q].contains(&mode))
    }) {
        covered = covered.times(&leaf.extent).fits_as::<N>(OP)?;
        leaves.push(leaf.clone());
        used.extend([*p, *q]);
    }
    if leaves.is_empty() { Ok(Layout::unit()) } else { Layout::flat(leaves)?.coalesce() }
}

/// A common layout by the greatest common domain; None if a number is not known or not
/// representable.
fn joint<N: Extent>(a: &Layout<N>, b: &Layout<N>, work: &Work) -> Result<Option<Layout<N>>, LayoutError> {
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
    // If the composition of the domain with the indices does not exist, there is no common layout
    // of this form.
    let Ok(indices) = domain.compose_within(&inverse) else { return Ok(None) };
    Ok(Some(longest_cut(&longest_cut(&indices, a, work)?.0, b, work)?.0))
}
