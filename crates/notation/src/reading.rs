//! What a value stands for where a number, a tuple, a coordinate or a tiler is needed.
//!
//! Law: a number is a leaf, a tuple without `_` is a coordinate, and a shape is its compact layout
//! or a tiler by mode. A reader gives nothing for a value that is not of its kind.

use std::borrow::Cow;

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{
    AnyCoord, AnyLayout, AnyTiler, AnyTree, Coord, Extent, Layout, LayoutError, Slot, Step, Tiler, Tree,
};

use crate::value::Value;

/// A number, a step or a tuple as a tree.
pub(crate) fn any_tree(value: &Value) -> Option<Cow<'_, AnyTree>> {
    match value {
        Value::Int(number) => Some(Cow::Owned(AnyTree::from(*number))),
        Value::Tree(tree) => Some(Cow::Borrowed(tree)),
        _ => None,
    }
}

/// A number or a tuple of numbers as a tree.
pub(crate) fn integer_tree(value: &Value) -> Option<Tree<i64>> {
    match value {
        Value::Int(number) => Some(Tree::leaf(*number)),
        Value::Tree(tree) => tree.integer().cloned(),
        _ => None,
    }
}

/// A number or a tuple of numbers, known or not, as a tree.
pub(crate) fn launch_tree(value: &Value) -> Option<Tree<Expr>> {
    any_tree(value)?.launch()
}

/// A number, known or not; a tuple of one number is that number, for parentheses group.
pub(crate) fn single(value: &Value) -> Option<Expr> {
    any_tree(value)?.number().map(Cow::into_owned)
}

/// A coordinate step or a number; a tuple of one of them is that one, as in [`single`].
pub(crate) fn single_step(value: &Value) -> Option<Step> {
    match any_tree(value)?.coordinate()?.leaves() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// The compact layout of a shape; none for steps.
pub(crate) fn compact(shape: &AnyTree) -> Option<Result<AnyLayout, LayoutError>> {
    match shape {
        AnyTree::Integer(shape) => Some(Layout::compact(shape).map(AnyLayout::from)),
        shape => Some(Layout::compact(&shape.launch()?).map(AnyLayout::from)),
    }
}

/// A number, a tuple of numbers or a coordinate as a coordinate.
pub(crate) fn coordinate(value: &Value) -> Option<AnyCoord> {
    match value {
        Value::Coord(coord) => Some(coord.clone()),
        value => match &*any_tree(value)? {
            AnyTree::Integer(tree) => Some(tree.map(|index| Slot::At(*index)).into()),
            tree => Some(tree.launch()?.map(|index| Slot::At(index.clone())).into()),
        },
    }
}

/// The tiler that a value stands for; none when it stands for none.
pub(crate) fn tiler_of(value: &Value) -> Option<Result<AnyTiler, LayoutError>> {
    match value {
        Value::Int(extent) => Some(Tiler::from_shape(&Tree::leaf(*extent)).map(AnyTiler::from)),
        Value::Tree(AnyTree::Integer(shape)) => Some(Tiler::from_shape(shape).map(AnyTiler::from)),
        Value::Tree(shape) => Some(Tiler::from_shape(&shape.launch()?).map(AnyTiler::from)),
        Value::Coord(AnyCoord::Integer(coord)) => Some(tiler_of_coord(coord).map(AnyTiler::from)),
        Value::Coord(AnyCoord::Launch(coord)) => Some(tiler_of_coord(coord).map(AnyTiler::from)),
        Value::Layout(layout) => Some(Ok(layout.clone().into())),
        Value::Tiler(tiler) => Some(Ok(tiler.clone())),
        Value::List(values) => {
            let items: Option<Result<Vec<AnyTiler>, LayoutError>> = values.iter().map(tiler_of).collect();
            match items?.and_then(|items| AnyTiler::modes(&items)) {
                // An item tiles no mode.
                Err(LayoutError::Kind { .. }) => None,
                tiler => Some(tiler),
            }
        }
        _ => None,
    }
}

/// Extents and `_` by mode.
fn tiler_of_coord<N: Extent>(coord: &Coord<N>) -> Result<Tiler<N>, LayoutError> {
    match (coord.is_leaf(), coord.leaves()) {
        (true, [Slot::All]) => Ok(Tiler::Keep),
        (true, [Slot::At(extent)]) => Tiler::from_shape(&Tree::leaf(extent.clone())),
        _ => Tiler::modes(coord.modes().map(|mode| tiler_of_coord(&mode)).collect::<Result<Vec<_>, _>>()?),
    }
}
