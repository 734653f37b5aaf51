//! Composition with strides in several modes at once (diagonals), for which carries in one mode may
//! compensate those in another.
//!
//! # Law
//!
//! As in [`super`]: `R(c)` is the sum over the paths `p` of `A_p(x_p)`, `x_p` the sum of the steps
//! at `p`. Whether it is a layout is decided for all paths together.
//!
//! # Criterion
//!
//! *If the steps at each path have one sign*, every `x_p` is a digit: its magnitude is below some
//! `N_p`, to which the last mode of `A_p` is extended. Concatenate the modes of all `A_p`, with
//! their strides multiplied by the sign of the path, because layouts mirror below zero. Give each
//! leaf of `B` the step that moves all its digits, `sum of |d_p| * (product of the N_q before p)`.
//! No digit ever carries into the next, so the composite of these layouts of integers is that of
//! `A` and `B`, and one exists exactly when the other does.
//!
//! *Otherwise* the values decide, up to [`MAX_CASES`] of them: along each leaf the first extent is
//! the first index at which the value is not that many steps, and then the sum is compared
//! everywhere.

use alloc::vec::Vec;

use super::{Coordinate, compose_parts, mode_at, moves};
use crate::algebra::compose::OP;
use crate::limits::MAX_CASES;
use crate::refusal::error::LayoutError;
use crate::value::layout::{Leaf, eval_leaves};
use crate::value::number::{Extent, Stride, Truth};
use crate::value::profile::{Nodes, ROOM, Splitting};
use crate::value::tree::{Leaves, TreeRef};

/// Appends `A o B` to a tree that is being written.
#[cold]
pub(super) fn compose_into<D: Stride>(
    a: TreeRef<'_, Leaf<D>>,
    b: TreeRef<'_, Leaf<Coordinate<D::Extent>>>,
    nodes: &mut Nodes,
    leaves: &mut Leaves<Leaf<D>>,
) -> Result<(), LayoutError> {
    if let Some(Concatenated { outer, inner }) = as_integers(a, b) {
        let flat = crate::value::profile::Profile::flat(outer.len())?;
        let (mut tree, mut found) = (Nodes::new(), Leaves::new());
        let outer = TreeRef { profile: flat.as_ref(), leaves: &outer };
        let inner = TreeRef { profile: b.profile, leaves: &inner };
        if compose_parts(outer, inner, &mut tree, &mut found).is_ok() {
            nodes.extend_from_slice(&tree);
            leaves.extend(found);
            return Ok(());
        }
    }
    match by_values(a, b) {
        Some(found) => {
            let mut room = ROOM;
            let mut tree = Splitting::new(b.profile, nodes, &mut room);
            for runs in found? {
                tree.leaf(runs.len() as u16);
                leaves.extend(runs);
            }
            tree.finish()
        }
        None => {
            let several = b.leaves.iter().position(|leaf| moves(leaf) && leaf.stride.term().is_none());
            let number = several.unwrap_or(0);
            let step = b.leaves.get(number).map(|leaf| alloc::format!("{}", leaf.stride)).unwrap_or_default();
            Err(LayoutError::Diagonal { op: OP, path: b.profile.path(number), step: step.into() })
        }
    }
}

/// The leaves of two integer layouts whose composition is that of `A` and `B`.
struct Concatenated<D: Stride> {
    outer: Leaves<Leaf<D>>,
    inner: Leaves<Leaf<D::Extent>>,
}

/// The concatenated modes of all paths, and `B` with steps in all of them; None if a path has steps
/// of both signs, or a number is not representable.
fn as_integers<D: Stride>(
    a: TreeRef<'_, Leaf<D>>,
    b: TreeRef<'_, Leaf<Coordinate<D::Extent>>>,
) -> Option<Concatenated<D>> {
    let moving = || b.leaves.iter().filter(|leaf| moves(leaf));
    let mut outer: Leaves<Leaf<D>> = Leaves::new();
    let mut inner: Leaves<Leaf<D::Extent>> =
        b.leaves.iter().map(|leaf| Leaf { extent: leaf.extent.clone(), stride: D::Extent::zero() }).collect();
    let mut begin = D::Extent::one();
    for (path, _) in super::super::paths_of(moving().map(|leaf| &leaf.stride)) {
        let (mut reach, mut sign) = (D::Extent::zero(), None);
        for (leaf, moved) in b.leaves.iter().zip(&mut inner).filter(|(leaf, _)| moves(leaf)) {
            let step = leaf.stride.scale_at(path);
            if step.is_zero().proved() {
                continue;
            }
            let negative = match step.less(&D::Extent::zero()) {
                Truth::Open => return None,
                negative => negative.proved(),
            };
            if *sign.get_or_insert(negative) != negative {
                return None;
            }
            let size = step.magnitude()?;
            reach = reach.plus(&leaf.extent.minus(&D::Extent::one())?.times(&size)?)?;
            moved.stride = moved.stride.plus(&size.times(&begin)?)?;
        }
        let (last, front) = mode_at(a, path)?.leaves.split_last()?;
        let mirrored =
            |stride: &D| if sign == Some(true) { stride.times(&D::Extent::from(-1)) } else { Some(stride.clone()) };
        let mut size = D::Extent::one();
        for leaf in front {
            size = size.times(&leaf.extent)?;
            outer.push(Leaf { extent: leaf.extent.clone(), stride: mirrored(&leaf.stride)? });
        }
        let extent = reach.plus(&D::Extent::one())?.divide_up(&size)?;
        begin = begin.times(&size.times(&extent)?)?;
        outer.push(Leaf { extent, stride: mirrored(&last.stride)? });
    }
    Some(Concatenated { outer, inner })
}

/// The image of each leaf of `B`, or the reason why there is none; None if there are too many
/// values, or sizes that are not known.
fn by_values<D: Stride>(
    a: TreeRef<'_, Leaf<D>>,
    b: TreeRef<'_, Leaf<Coordinate<D::Extent>>>,
) -> Option<Result<Vec<Leaves<Leaf<D>>>, LayoutError>> {
    if !D::DISTRIBUTES {
        return None;
    }
    let mut sizes: Leaves<i64> = Leaves::new();
    for leaf in b.leaves {
        sizes.push(leaf.extent.known()?);
    }
    let size = sizes.iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent))?;
    if usize::try_from(size).ok()? > MAX_CASES {
        return None;
    }
    let value = |place: &Coordinate<D::Extent>| {
        place.terms().try_fold(D::zero(), |sum, (path, index)| sum.plus(&eval_leaves(mode_at(a, path)?.leaves, index)?))
    };
    let refusal = |index: i64, value: &D, alone: &D| {
        let (value, alone) = (value.decimal()?, alone.decimal()?);
        Some(Err(LayoutError::NotAdditive { op: OP, index, value, alone }))
    };
    let mut found = Vec::new();
    let mut begin = 1_i64;
    for (leaf, size) in b.leaves.iter().zip(&sizes) {
        let along = |index: i64| value(&leaf.stride.times(&D::Extent::from(index))?);
        let mut runs: Leaves<Leaf<D>> = Leaves::new();
        let (mut left, mut step) = (*size, 1);
        while left > 1 {
            let stride = along(step)?;
            let mut run = 2;
            while run < left && along(run * step)? == stride.times(&D::Extent::from(run))? {
                run += 1;
            }
            if left % run != 0 {
                let alone = stride.times(&D::Extent::from(run))?;
                return refusal(run * step * begin, &along(run * step)?, &alone);
            }
            runs.push(Leaf { extent: D::Extent::from(run), stride });
            (left, step) = (left / run, step * run);
        }
        if runs.is_empty() {
            runs.push(Leaf { extent: leaf.extent.clone(), stride: D::zero() });
        }
        found.push(runs);
        begin *= size;
    }
    for index in 0..size {
        let (mut rest, mut place, mut sum) = (index, Coordinate::zero(), D::zero());
        for ((leaf, runs), size) in b.leaves.iter().zip(&found).zip(&sizes) {
            let digit = D::Extent::from(rest % size);
            place = place.plus(&leaf.stride.times(&digit)?)?;
            sum = sum.plus(&eval_leaves(runs, &digit)?)?;
            rest /= size;
        }
        let value = value(&place)?;
        if value != sum {
            return refusal(index, &value, &sum);
        }
    }
    Some(Ok(found))
}
