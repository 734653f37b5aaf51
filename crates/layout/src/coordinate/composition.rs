//! Composition `A o B` for a `B` whose values are coordinates of `A`.
//!
//! # Law
//!
//! `R(c) = A(B(c))`. A coordinate is the sum of its terms, and the scale of a term is an index into
//! the mode of `A` at its path: `A(x)` is the sum of `A_p(x_p)` over the paths `p` of `x`. A path
//! that ends at a tuple mode of `A` gives an index into all of it; mode 0 of a leaf is the leaf. As
//! everywhere, each mode continues past its end, and `A(-i) = -A(i)`.
//!
//! # Criterion
//!
//! `A o B` is the sum of the functions `A_p o B_p`, where `B_p` has the scales of the strides at
//! `p`, and these are compositions after integers. If each stride has one term, every leaf of
//! `B` belongs to one path, so the functions depend on different leaves: their sum is additive over
//! the leaves of `B` exactly when each of them is, and along one leaf it is one of them. So the
//! composite exists if and only if every `A_p o B_p` does, and consists of their leaves.
//!
//! A stride of several terms belongs to several of the functions. If all of them are layouts, their
//! sum is additive over the leaves, and it is a layout exactly when along each leaf the sum is one
//! ([`Layout::add`]). If one of them is not a layout, deviations might cancel in the sum, and the
//! paths are decided together ([`diagonal`]).

mod diagonal;

use alloc::boxed::Box;
use alloc::string::ToString;

use smallvec::SmallVec;

use super::{Coordinate, ModePath};
use crate::algebra::compose::{OP, compose_parts, stays_within};
use crate::algebra::inner::{Inner, InnerKind};
use crate::limits::MAX_NODES;
use crate::refusal::error::{Fits, LayoutError, Limit};
use crate::tile::divide::write_parts;
use crate::value::layout::{Layout, Leaf, eval_leaves};
use crate::value::number::{Extent, Stride, Truth};
use crate::value::pairs::Pairs;
use crate::value::profile::{LEAF, Nodes, Profile, ProfileRef, ROOM, Splitting, push_flat};
use crate::value::shape::product;
use crate::value::tree::{Gatherer, Leaves, Tree, TreeRef};

/// The mode of a layout at a path; a leaf is its own mode 0.
fn mode_at<T>(layout: TreeRef<'_, T>, path: ModePath) -> Option<TreeRef<'_, T>> {
    path.modes().try_fold(layout, TreeRef::mode)
}

/// Whether a leaf may have more than one position and a nonzero stride.
#[inline]
pub(crate) fn moves<D: Stride>(leaf: &Leaf<D>) -> bool {
    !leaf.extent.is_one().proved() && !leaf.stride.is_zero().proved()
}

#[cold]
fn no_path<N: Extent>(b: ProfileRef<'_>, number: usize, step: &Coordinate<N>, a: ProfileRef<'_>) -> LayoutError {
    LayoutError::NoPath { op: OP, path: b.path(number), step: step.to_string().into(), profile: Box::new(a.to_owned()) }
}

/// The leaves whose only term is at one path, by number.
struct PathGroup<'a, D: Stride> {
    path: ModePath,
    mode: TreeRef<'a, Leaf<D>>,
    members: SmallVec<[u16; 8]>,
}

/// The leaves of `B` grouped by the path of their only term; None if a stride has several terms.
fn groups<'a, D: Stride>(
    a: TreeRef<'a, Leaf<D>>,
    b: TreeRef<'_, Leaf<Coordinate<D::Extent>>>,
) -> Result<Option<SmallVec<[PathGroup<'a, D>; 4]>>, LayoutError> {
    let mut groups: SmallVec<[PathGroup<'a, D>; 4]> = SmallVec::new();
    for (number, leaf) in b.leaves.iter().enumerate().filter(|(_, leaf)| moves(leaf)) {
        let Some((path, _)) = leaf.stride.term() else { return Ok(None) };
        let member = number as u16;
        match groups.iter_mut().find(|group| group.path == path) {
            Some(group) => group.members.push(member),
            None => {
                let mode = mode_at(a, path).ok_or_else(|| no_path(b.profile, number, &leaf.stride, a.profile))?;
                groups.push(PathGroup { path, mode, members: SmallVec::from_elem(member, 1) });
            }
        }
    }
    Ok(Some(groups))
}

/// `B` with the scales at `path` as strides.
fn component<N: Extent>(b: TreeRef<'_, Leaf<Coordinate<N>>>, path: ModePath) -> Leaves<Leaf<N>> {
    b.leaves.iter().map(|leaf| Leaf { extent: leaf.extent.clone(), stride: leaf.stride.scale_at(path) }).collect()
}

/// Appends `A o B` if every step of `B` is in a leaf of `A`. Leaves continue past their ends, so
/// each is linear, and `t:k@p` after `s:d` is `t:k*d`. Returns whether this applies; if not,
/// nothing is appended.
fn compose_lines<D: Stride>(
    a: TreeRef<'_, Leaf<D>>,
    b: TreeRef<'_, Leaf<Coordinate<D::Extent>>>,
    nodes: &mut Nodes,
    leaves: &mut Leaves<Leaf<D>>,
) -> Result<bool, LayoutError> {
    let before = leaves.len();
    for leaf in b.leaves {
        let mut line = Leaf { extent: leaf.extent.clone(), stride: D::zero() };
        if moves(leaf) {
            let step = leaf.stride.term().and_then(|(path, scale)| match mode_at(a, path)?.leaves {
                [only] => Some((scale, &only.stride)),
                _ => None,
            });
            let Some((scale, stride)) = step else {
                leaves.truncate(before);
                return Ok(false);
            };
            line.stride.add_times(scale, stride).fits_as::<D::Extent>(OP)?;
        }
        leaves.push(line);
    }
    nodes.extend_from_slice(b.profile.nodes());
    if nodes.len() > MAX_NODES {
        return Err(LayoutError::TooLarge { limit: Limit::Nodes, value: nodes.len() });
    }
    Ok(true)
}

/// Appends `A o B` to a tree that is being written.
fn compose_into<D: Stride>(
    a: TreeRef<'_, Leaf<D>>,
    b: TreeRef<'_, Leaf<Coordinate<D::Extent>>>,
    nodes: &mut Nodes,
    leaves: &mut Leaves<Leaf<D>>,
) -> Result<(), LayoutError> {
    if D::DISTRIBUTES && compose_lines(a, b, nodes, leaves)? {
        return Ok(());
    }
    let Some(groups) = groups(a, b)? else { return compose_terms(a, b, nodes, leaves) };
    // The image of each leaf of B, as a range of the leaves in `pool`.
    let mut pool: Leaves<Leaf<D>> = Leaves::new();
    let mut places: SmallVec<[(usize, u16); 8]> = SmallVec::from_elem((0, 0), b.leaves.len());
    for group in &groups {
        let members = || group.members.iter().filter_map(|member| b.leaves.get(usize::from(*member)));
        let part: Leaves<Leaf<D::Extent>> = members()
            .filter_map(|leaf| Some(Leaf { extent: leaf.extent.clone(), stride: leaf.stride.term()?.1.clone() }))
            .collect();
        let (mut flat, mut written, mut at) = (Nodes::new(), Nodes::new(), pool.len());
        push_flat(&mut flat, part.len())?;
        let composed = compose_parts(
            group.mode,
            TreeRef { profile: ProfileRef::of_nodes(&flat), leaves: &part },
            &mut written,
            &mut pool,
        );
        if let Err(error) = composed {
            // The same error, with the paths of the leaves in B.
            let whole = component(b, group.path);
            let whole = TreeRef { profile: b.profile, leaves: &whole };
            let again = compose_parts(group.mode, whole, &mut Nodes::new(), &mut Leaves::new());
            return Err(again.err().unwrap_or(error));
        }
        for (member, mode) in group.members.iter().zip(ProfileRef::of_nodes(&written).modes()) {
            let count = mode.nodes().iter().filter(|node| **node == LEAF).count();
            if let Some(place) = places.get_mut(usize::from(*member)) {
                *place = (at, count as u16);
            }
            at += count;
        }
    }
    let mut room = ROOM;
    let mut tree = Splitting::new(b.profile, nodes, &mut room);
    for (leaf, (first, count)) in b.leaves.iter().zip(places) {
        if count == 0 {
            leaves.push(Leaf { extent: leaf.extent.clone(), stride: D::zero() });
            tree.leaf(1);
        } else {
            leaves.extend(pool.get(first..first + usize::from(count)).unwrap_or_default().iter().cloned());
            tree.leaf(count);
        }
    }
    tree.finish()
}

/// As [`compose_into`] for strides with several terms: the sum over all paths.
fn compose_terms<D: Stride>(
    a: TreeRef<'_, Leaf<D>>,
    b: TreeRef<'_, Leaf<Coordinate<D::Extent>>>,
    nodes: &mut Nodes,
    leaves: &mut Leaves<Leaf<D>>,
) -> Result<(), LayoutError> {
    let strides = b.leaves.iter().enumerate().filter(|(_, leaf)| moves(leaf)).map(|(_, leaf)| &leaf.stride);
    let mut sums: Option<SmallVec<[Layout<D>; 8]>> = None;
    for (path, _) in super::paths_of(strides) {
        let part = component(b, path);
        let owner = b.leaves.iter().enumerate().find(|(_, leaf)| !leaf.stride.scale_at(path).is_zero().proved());
        let (number, step) = owner.map_or((0, Coordinate::zero()), |(number, leaf)| (number, leaf.stride.clone()));
        let mode = mode_at(a, path).ok_or_else(|| no_path(b.profile, number, &step, a.profile))?;
        let (mut written, mut values) = (Nodes::new(), Leaves::new());
        let flat = Profile::flat(part.len())?;
        let composed =
            compose_parts(mode, TreeRef { profile: flat.as_ref(), leaves: &part }, &mut written, &mut values);
        if let Err(error) = composed {
            return match error {
                LayoutError::Carry(_) | LayoutError::Uneven(_) => diagonal::compose_into(a, b, nodes, leaves),
                other => Err(other),
            };
        }
        let composed = Layout::from_valid(Tree::from_parts(Profile::from_nodes(written), values));
        sums = Some(match sums {
            None => composed.modes().collect(),
            Some(sums) => sums
                .iter()
                .zip(composed.modes())
                .map(|(sum, mode)| D::add_layouts(sum, &mode))
                .collect::<Result<_, _>>()
                .map_err(as_composition)?,
        });
    }
    let sums = sums.unwrap_or_default();
    let mut room = ROOM;
    let mut tree = Splitting::new(b.profile, nodes, &mut room);
    for (number, leaf) in b.leaves.iter().enumerate() {
        match sums.get(number).map(Layout::leaves).filter(|_| moves(leaf)) {
            Some(modes) => {
                leaves.extend(modes.iter().cloned());
                tree.leaf(modes.len() as u16);
            }
            None => {
                leaves.push(Leaf { extent: leaf.extent.clone(), stride: D::zero() });
                tree.leaf(1);
            }
        }
    }
    tree.finish()
}

#[cold]
fn as_composition(error: LayoutError) -> LayoutError {
    match error {
        LayoutError::NotALayout { runs, .. } => LayoutError::NotALayout { op: OP, runs },
        LayoutError::Open { question, .. } => LayoutError::Open { op: OP, question },
        other => other,
    }
}

/// Refuses coordinates `offset + B(c)` that leave the shape of `A`.
pub(crate) fn within<D: Stride>(
    a: &Layout<D>,
    offset: &Coordinate<D::Extent>,
    b: &Layout<Coordinate<D::Extent>>,
) -> Result<(), LayoutError> {
    let strides = b.leaves().iter().map(|leaf| &leaf.stride);
    for (path, number) in super::paths_of(strides.chain(core::iter::once(offset))) {
        let part = Layout::from_valid(Tree::from_parts(b.profile().duplicate(), component(b.as_ref(), path)));
        let step = || b.leaves().get(number).map_or(offset.clone(), |leaf| leaf.stride.clone());
        let mode = mode_at(a.as_ref(), path)
            .ok_or_else(|| no_path(b.profile().as_ref(), number, &step(), a.profile().as_ref()))?;
        let extents: Leaves<D::Extent> = mode.leaves.iter().map(|leaf| leaf.extent.clone()).collect();
        let modes: SmallVec<[usize; 8]> = path.modes().collect();
        let (least, greatest) = part.range()?;
        let first = offset.scale_at(path);
        let ends = least.plus(&first).zip(greatest.plus(&first)).fits_as::<D::Extent>(OP)?;
        stays_within(ends, product(&extents).fits_as::<D::Extent>(OP)?, &modes)?;
    }
    Ok(())
}

impl<N: Extent, D: Stride<Extent = N>> Inner<D> for Coordinate<N> {}

impl<N: Extent, D: Stride<Extent = N>> InnerKind<D> for Coordinate<N> {
    const INDICES: bool = false;

    fn compose(a: &Layout<D>, b: &Layout<Coordinate<N>>) -> Result<Layout<D>, LayoutError> {
        let mut result = Layout::blank();
        let (nodes, leaves) = result.parts_mut();
        compose_into(a.as_ref(), b.as_ref(), nodes, leaves)?;
        Ok(result)
    }

    fn compose_into(
        a: TreeRef<'_, Leaf<D>>,
        b: &Layout<Coordinate<N>>,
        out: &mut Gatherer<Leaf<D>>,
    ) -> Result<(), LayoutError> {
        let (nodes, leaves) = out.parts_mut();
        compose_into(a, b.as_ref(), nodes, leaves)
    }

    fn within(a: &Layout<D>, b: &Layout<Coordinate<N>>) -> Result<(), LayoutError> {
        within(a, &Coordinate::zero(), b)
    }

    fn divide(a: TreeRef<'_, Leaf<D>>, tile: &Layout<Coordinate<N>>, pairs: &mut Pairs<D>) -> Result<(), LayoutError> {
        let extents = a.leaves.iter().map(|leaf| leaf.extent.clone()).collect();
        let shape = Tree::from_parts(a.profile.to_owned(), extents);
        let rest = tile.complement(&shape).map_err(LayoutError::in_divide)?;
        let both = Layout::tuple([tile, &rest])?;
        let mut divided = Layout::blank();
        let (nodes, leaves) = divided.parts_mut();
        compose_into(a, both.as_ref(), nodes, leaves)?;
        write_parts(&divided, pairs);
        Ok(())
    }
}

impl<D: Stride> Layout<D> {
    /// The value at a coordinate that is a sum of steps in modes: the sum over its terms of the
    /// value of the mode at the path of the term.
    ///
    /// A path to a tuple mode gives an index into all of it; modes that no path names have index 0.
    /// Errors: there is no mode at a path ([`LayoutError::NoPath`]); the value is not
    /// representable.
    ///
    /// ```
    /// use tilewright_layout::{Coordinate, Layout};
    ///
    /// let layout: Layout = "(4,(2,4)):(2,(1,8))".parse().unwrap();
    /// let at = |coordinate: &str| layout.eval_coordinate(&coordinate.parse::<Coordinate>().unwrap()).unwrap();
    /// assert_eq!(at("2@0+1@1@1"), 12);
    /// assert_eq!(at("2@0+2@1"), 12); // index 2 of (2,4) is (0,1)
    /// ```
    pub fn eval_coordinate(&self, coordinate: &Coordinate<D::Extent>) -> Result<D, LayoutError> {
        const OP: &str = "eval";
        let mut value = D::zero();
        for (path, index) in coordinate.terms() {
            let mode = mode_at(self.as_ref(), path);
            let mode = mode.filter(|mode| !mode.leaves.is_empty() || index.is_zero() == Truth::Proved);
            let mode = mode.ok_or_else(|| LayoutError::NoPath {
                op: OP,
                path: Default::default(),
                step: coordinate.to_string().into(),
                profile: Box::new(self.profile().clone()),
            })?;
            let part = eval_leaves(mode.leaves, index);
            value = part.and_then(|part| value.plus(&part)).fits_as::<D::Extent>(OP)?;
        }
        Ok(value)
    }
}
