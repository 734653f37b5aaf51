//! The kinds of numbers that extents and strides may be, and the step from one kind to another.
//!
//! | kind | extents | strides |
//! |---|---|---|
//! | integer | `i64` | `i64` |
//! | symbolic | [`Expr`] | [`Expr`] |
//! | coordinate | [`Expr`] | [`Coordinate`] of [`Expr`] |
//! | XOR | `i64` | [`Xor`] |
//!
//! Law: a value has the least kind that holds it. A symbolic number that is known is an integer; a coordinate in a codomain that is not
//! a tuple is a symbolic number; a layout whose strides are all 0 has integer strides. An operation takes its operands to the kind
//! that holds them all, and its result goes back to the least. XOR steps mix with no other; 0 is a step of every kind.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{
    Composed, Coord, Coordinate, Extent, Layout, LayoutError, Leaf, ModePath, OuterMap, Slot, Stride, Tiler, Tree, Xor,
};

/// A step whose scales may be known later.
pub(crate) type Step = Coordinate<Expr>;

/// A layout with its numbers replaced; none where one has no counterpart.
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

pub(crate) fn symbolic_tree(tree: &Tree<i64>) -> Tree<Expr> {
    tree.map(|number| Expr::from(*number))
}

pub(crate) fn known_tree(tree: &Tree<Expr>) -> Option<Tree<i64>> {
    tree.try_map(|number| number.known().ok_or(())).ok()
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
    renumbered(layout, Expr::known, Expr::known)
}

/// Coordinate strides of which each is a plain number: a coordinate in a codomain that is not a tuple.
fn plain(step: &Step) -> Option<Expr> {
    step.terms().all(|(path, _)| path.is_empty()).then(|| step.scale_at(ModePath::ROOT))
}

pub(crate) fn step_tree(tree: &Tree<Expr>) -> Tree<Step> {
    tree.map(|number| Step::integer(number.clone()))
}

pub(crate) fn plain_tree(tree: &Tree<Step>) -> Option<Tree<Expr>> {
    tree.try_map(|step| plain(step).ok_or(())).ok()
}

pub(crate) fn step_layout(layout: &Layout<Expr>) -> Option<Layout<Step>> {
    renumbered(layout, |extent| Some(extent.clone()), |stride| Some(Step::integer(stride.clone())))
}

pub(crate) fn plain_layout(layout: &Layout<Step>) -> Option<Layout<Expr>> {
    renumbered(layout, |extent| Some(extent.clone()), plain)
}

/// A coordinate layout with known numbers.
pub(crate) fn known_steps(layout: &Layout<Step>) -> Option<Layout<Coordinate>> {
    let step = |step: &Step| {
        let terms = step.terms().map(|(path, scale)| Some(Coordinate::step(scale.known()?, path)));
        terms.collect::<Option<Vec<Coordinate>>>()?.iter().try_fold(Coordinate::zero(), |sum, term| sum.plus(term))
    };
    renumbered(layout, Expr::known, step)
}

/// The layout with XOR strides, where its strides are 0.
pub(crate) fn xor_layout(layout: &Layout) -> Option<Layout<Xor>> {
    renumbered(layout, |extent| Some(*extent), |stride| stride.is_zero().proved().then(Xor::zero))
}

/// The layout with integer strides, where its strides are 0.
pub(crate) fn without_bits(layout: &Layout<Xor>) -> Option<Layout> {
    renumbered(layout, |extent| Some(*extent), |stride| stride.is_zero().proved().then_some(0))
}

/// A tiler with its layouts replaced; none where one has no counterpart.
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

/// The map on offsets with symbolic numbers.
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

pub(crate) fn symbolic_composed(map: &Composed) -> Result<Composed<Expr>, LayoutError> {
    Composed::new(symbolic_map(map.outer())?, Expr::from(*map.offset()), Layout::from(map.inner()))
}

/// The map on offsets with known numbers; none where one is not known.
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
