//! What a value stands for where a number, a tuple, a coordinate or a tiler is needed.
//!
//! Law: each reader takes what the one before it takes, and more: numbers, numbers that may not be known, coordinate steps. It gives nothing
//! for a value that is not of its kind.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Extent, Layout, LayoutError, Slot, Stride, Tiler, Tree, Xor};

use crate::kinds::{self, Step};
use crate::value::Value;

/// A number or a tuple of numbers as a tree.
pub(crate) fn number_tree(value: &Value) -> Option<Tree<i64>> {
    match value {
        Value::Int(number) => Some(Tree::leaf(*number)),
        Value::Tree(tree) => Some(tree.clone()),
        _ => None,
    }
}

/// A number or a tuple of numbers, known or not, as a tree.
pub(crate) fn symbol_tree(value: &Value) -> Option<Tree<Expr>> {
    match value {
        Value::Symbol(number) => Some(Tree::leaf(number.clone())),
        Value::SymbolTree(tree) => Some((**tree).clone()),
        _ => number_tree(value).map(|tree| kinds::symbolic_tree(&tree)),
    }
}

/// A number, known or not; a tuple of one number is that number, for parentheses group.
pub(crate) fn single(value: &Value) -> Option<Expr> {
    match symbol_tree(value)?.leaves() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// A step or a tuple of steps, a number being a step in a codomain that is not a tuple.
pub(crate) fn step_tree(value: &Value) -> Option<Tree<Step>> {
    match value {
        Value::StepTree(tree) => Some((**tree).clone()),
        _ => symbol_tree(value).map(|tree| kinds::step_tree(&tree)),
    }
}

/// A coordinate step or a number; a tuple of one of them is that one, as in [`single`].
pub(crate) fn single_step(value: &Value) -> Option<Step> {
    match step_tree(value)?.leaves() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// An XOR step or a tuple of them; 0 is one.
pub(crate) fn xor_tree(value: &Value) -> Option<Tree<Xor>> {
    match value {
        Value::XorTree(tree) => Some(tree.clone()),
        _ => number_tree(value)?.try_map(|step| if *step == 0 { Ok(Xor::zero()) } else { Err(()) }).ok(),
    }
}

/// A number, a tuple of numbers or a coordinate as a coordinate.
pub(crate) fn coordinate(value: &Value) -> Option<Coord> {
    match value {
        Value::Int(number) => Some(Tree::leaf(Slot::At(*number))),
        Value::Tree(tree) => Some(tree.map(|index| Slot::At(*index))),
        Value::Coord(coord) => Some(coord.clone()),
        _ => None,
    }
}

/// As [`coordinate`], of numbers that may not be known.
pub(crate) fn symbol_coordinate(value: &Value) -> Option<Coord<Expr>> {
    match value {
        Value::SymbolCoord(coord) => Some((**coord).clone()),
        Value::Coord(coord) => Some(kinds::symbolic_coord(coord)),
        _ => symbol_tree(value).map(|tree| tree.map(|index| Slot::At(index.clone()))),
    }
}

/// The tiler that a value stands for; none when it stands for none.
pub(crate) fn tiler_of(value: &Value) -> Option<Result<Tiler, LayoutError>> {
    match value {
        Value::Int(extent) => Some(Tiler::from_shape(&Tree::leaf(*extent))),
        Value::Tree(shape) => Some(Tiler::from_shape(shape)),
        Value::Coord(coord) => Some(tiler_of_coord(coord)),
        Value::Layout(layout) => Some(Ok(Tiler::from(layout))),
        Value::Tiler(tiler) => Some(Ok(tiler.clone())),
        Value::List(values) => {
            let items: Option<Result<Vec<Tiler>, LayoutError>> = values.iter().map(tiler_of).collect();
            Some(items?.and_then(Tiler::modes))
        }
        _ => None,
    }
}

/// As [`tiler_of`], with numbers that may not be known.
pub(crate) fn symbol_tiler_of(value: &Value) -> Option<Result<Tiler<Expr>, LayoutError>> {
    match value {
        Value::Symbol(extent) => Some(Tiler::from_shape(&Tree::leaf(extent.clone()))),
        Value::SymbolTree(shape) => Some(Tiler::from_shape(shape)),
        Value::SymbolCoord(coord) => Some(tiler_of_coord(coord)),
        Value::SymbolLayout(layout) => Some(Ok(Tiler::from(&**layout))),
        Value::SymbolTiler(tiler) => Some(Ok((**tiler).clone())),
        Value::List(values) => {
            let items: Option<Result<Vec<Tiler<Expr>>, LayoutError>> = values.iter().map(symbol_tiler_of).collect();
            Some(items?.and_then(Tiler::modes))
        }
        _ => match tiler_of(value)? {
            Ok(tiler) => kinds::retiled(&tiler, &|layout| Some(Layout::from(layout))).map(Ok),
            Err(error) => Some(Err(error)),
        },
    }
}

/// As [`tiler_of`], with coordinate strides.
pub(crate) fn step_tiler_of(value: &Value) -> Option<Result<Tiler<Step>, LayoutError>> {
    match value {
        Value::StepLayout(layout) => Some(Ok(Tiler::from(&**layout))),
        Value::StepTiler(tiler) => Some(Ok((**tiler).clone())),
        Value::List(values) => {
            let items: Option<Result<Vec<Tiler<Step>>, LayoutError>> = values.iter().map(step_tiler_of).collect();
            Some(items?.and_then(Tiler::modes))
        }
        _ => match symbol_tiler_of(value)? {
            Ok(tiler) => kinds::retiled(&tiler, &kinds::step_layout).map(Ok),
            Err(error) => Some(Err(error)),
        },
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
