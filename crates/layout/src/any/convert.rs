//! Conversions from one kind of number to another, for layouts, tuples and tilers.
//!
//! Law: a conversion changes no value. A conversion to a greater kind (a constant to an expression,
//! an expression to a step in a codomain that is not a tuple) always exists. A conversion to a
//! lesser kind returns None if a number has no counterpart. The conversion of a number is written
//! once, for tuples and layouts.

use alloc::vec::Vec;

use super::CoordinateStep;
use crate::composed::{Composed, OuterMap};
use crate::coordinate::{Coordinate, ModePath};
use crate::refusal::error::LayoutError;
use crate::symbolic::Expr;
use crate::tile::tiler::Tiler;
use crate::value::coord::{Coord, Slot};
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride};
use crate::value::tree::Tree;
use crate::xor::Xor;

/// A layout with its numbers converted; None if one has no counterpart.
fn renumbered<D: Stride, E: Stride>(
    layout: &Layout<D>,
    extent: impl Fn(&D::Extent) -> Option<E::Extent>,
    stride: impl Fn(&D) -> Option<E>,
) -> Option<Layout<E>> {
    let leaves =
        layout.leaves().iter().map(|leaf| Some(Leaf { extent: extent(&leaf.extent)?, stride: stride(&leaf.stride)? }));
    let leaves: Vec<Leaf<E>> = leaves.collect::<Option<_>>()?;
    Layout::from_tree(Tree::new(layout.profile().clone(), leaves).ok()?).ok()
}

/// A tuple with its numbers converted; None if one has no counterpart.
pub(crate) fn renumbered_tree<T, U>(tree: &Tree<T>, number: impl Fn(&T) -> Option<U>) -> Option<Tree<U>> {
    tree.try_map(|leaf| number(leaf).ok_or(())).ok()
}

/// The XOR step that equals a number; only 0 has one.
pub(crate) fn no_step(number: &i64) -> Option<Xor> {
    number.is_zero().proved().then(Xor::zero)
}

/// The number that equals an XOR step; only 0 has one.
pub(crate) fn no_bits(step: &Xor) -> Option<i64> {
    step.is_zero().proved().then_some(0)
}

/// The step with known numbers; None if a number is not known.
fn known_step(step: &CoordinateStep) -> Option<Coordinate> {
    let terms = step.terms().map(|(path, scale)| Some(Coordinate::step(scale.known()?, path)));
    terms.collect::<Option<Vec<Coordinate>>>()?.iter().try_fold(Coordinate::zero(), |sum, term| sum.plus(term))
}

pub(crate) fn symbolic_tree(tree: &Tree<i64>) -> Tree<Expr> {
    tree.map(|number| Expr::from(*number))
}

pub(crate) fn known_tree(tree: &Tree<Expr>) -> Option<Tree<i64>> {
    renumbered_tree(tree, Extent::known)
}

pub(crate) fn symbolic_coord(coord: &Coord) -> Coord<Expr> {
    coord.map(|slot| match slot {
        Slot::All => Slot::All,
        Slot::At(index) => Slot::At(Expr::from(*index)),
    })
}

pub(crate) fn known_coord(coord: &Coord<Expr>) -> Option<Coord> {
    let known = |slot: &Slot<Expr>| match slot {
        Slot::All => Ok(Slot::All),
        Slot::At(index) => index.known().map(Slot::At).ok_or(()),
    };
    coord.try_map(known).ok()
}

pub(crate) fn known_layout(layout: &Layout<Expr>) -> Option<Layout> {
    renumbered(layout, Extent::known, Extent::known)
}

/// The number that equals a coordinate stride in a codomain that is not a tuple; None otherwise.
fn plain(step: &CoordinateStep) -> Option<Expr> {
    step.terms().all(|(path, _)| path.is_empty()).then(|| step.scale_at(ModePath::ROOT))
}

pub(crate) fn step_tree(tree: &Tree<Expr>) -> Tree<CoordinateStep> {
    tree.map(|number| CoordinateStep::integer(number.clone()))
}

pub(crate) fn plain_tree(tree: &Tree<CoordinateStep>) -> Option<Tree<Expr>> {
    renumbered_tree(tree, plain)
}

pub(crate) fn step_layout(layout: &Layout<Expr>) -> Option<Layout<CoordinateStep>> {
    renumbered(layout, |extent| Some(extent.clone()), |stride| Some(CoordinateStep::integer(stride.clone())))
}

pub(crate) fn plain_layout(layout: &Layout<CoordinateStep>) -> Option<Layout<Expr>> {
    renumbered(layout, |extent| Some(extent.clone()), plain)
}

/// The coordinate layout with known numbers; None if a number is not known.
pub(crate) fn known_steps(layout: &Layout<CoordinateStep>) -> Option<Layout<Coordinate>> {
    renumbered(layout, Extent::known, known_step)
}

/// The coordinate layout with expressions as numbers.
pub(crate) fn launch_steps(layout: &Layout<Coordinate>) -> Layout<CoordinateStep> {
    let leaf =
        |leaf: &Leaf<Coordinate>| Leaf { extent: Expr::from(leaf.extent), stride: CoordinateStep::from(&leaf.stride) };
    Layout::from_valid(layout.tree().map(leaf))
}

/// The layout with XOR strides; None unless all strides are 0.
pub(crate) fn xor_layout(layout: &Layout) -> Option<Layout<Xor>> {
    renumbered(layout, |extent| Some(*extent), no_step)
}

/// The layout with integer strides; None unless all XOR strides are 0.
pub(crate) fn without_bits(layout: &Layout<Xor>) -> Option<Layout> {
    renumbered(layout, |extent| Some(*extent), no_bits)
}

/// A tiler with its layouts converted; None if one has no counterpart.
pub(crate) fn retiled<D: Stride, E: Stride>(
    tiler: &Tiler<D>,
    layout: &impl Fn(&Layout<D>) -> Option<Layout<E>>,
) -> Option<Tiler<E>> {
    match tiler {
        Tiler::Keep => Some(Tiler::Keep),
        Tiler::Layout(tile) => layout(tile).map(Tiler::Layout),
        Tiler::Modes(modes) => {
            let items = modes.items().iter().map(|item| retiled(item, layout));
            Tiler::modes(items.collect::<Option<Vec<_>>>()?).ok()
        }
    }
}

/// The outer map with expressions as numbers.
pub(crate) fn symbolic_map(map: &OuterMap) -> Result<OuterMap<Expr>, LayoutError> {
    Ok(match map {
        OuterMap::Layout(layout) => OuterMap::Layout(Layout::from(layout)),
        OuterMap::Swizzle(swizzle) => OuterMap::Swizzle(*swizzle),
        OuterMap::Bits(matrix) => OuterMap::Bits(matrix.clone()),
        OuterMap::Chain(chain) => {
            symbolic_map(chain.outer())?.after(&Expr::from(*chain.offset()), &symbolic_map(chain.inner())?)?
        }
    })
}

impl OuterMap {
    /// The same map, with expressions as numbers.
    ///
    /// Errors: an offset is not representable.
    pub fn at_launch(&self) -> Result<OuterMap<Expr>, LayoutError> {
        symbolic_map(self)
    }
}

pub(crate) fn symbolic_composed(map: &Composed) -> Result<Composed<Expr>, LayoutError> {
    Composed::new(symbolic_map(map.outer())?, Expr::from(*map.offset()), Layout::from(map.inner()))
}

/// The outer map with known numbers; None if a number is not known.
fn known_map(map: &OuterMap<Expr>) -> Option<OuterMap> {
    Some(match map {
        OuterMap::Layout(layout) => OuterMap::Layout(known_layout(layout)?),
        OuterMap::Swizzle(swizzle) => OuterMap::Swizzle(*swizzle),
        OuterMap::Bits(matrix) => OuterMap::Bits(matrix.clone()),
        OuterMap::Chain(chain) => {
            known_map(chain.outer())?.after(&chain.offset().known()?, &known_map(chain.inner())?).ok()?
        }
    })
}

pub(crate) fn known_composed(map: &Composed<Expr>) -> Option<Composed> {
    Composed::new(known_map(map.outer())?, map.offset().known()?, known_layout(map.inner())?).ok()
}
