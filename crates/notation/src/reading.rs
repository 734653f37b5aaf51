//! Conversions of a value to a number, a tuple, a coordinate or a tiler.
//!
//! Law: a number is a leaf, a tuple without `_` is a coordinate, and a shape is its compact layout
//! or a tiler by mode. A conversion returns None for a value of another kind.

use std::borrow::Cow;

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{
    AnyCoord, AnyLayout, AnyTiler, AnyTree, Coord, CoordinateStep, Extent, Layout, LayoutError, Mixed, Slot, Tiler,
    Tree,
};

use crate::value::{Value, list_of};

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

/// A number or a tuple of numbers, which may contain parameters, as a tree.
pub(crate) fn launch_tree(value: &Value) -> Option<Tree<Expr>> {
    any_tree(value)?.launch()
}

/// A number, which may be a parameter. A tuple of one number is that number, because parentheses
/// only group.
pub(crate) fn single(value: &Value) -> Option<Expr> {
    any_tree(value)?.number().map(Cow::into_owned)
}

/// A coordinate step or a number; a tuple of one is its item, as in [`single`].
pub(crate) fn single_step(value: &Value) -> Option<CoordinateStep> {
    match any_tree(value)?.coordinate()?.leaves() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// The compact layout of a shape; None for steps.
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

/// A value as a tiler; None if it cannot be one.
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
                // An item of this kind cannot tile a mode.
                Err(LayoutError::Kind { .. }) => None,
                tiler => Some(tiler),
            }
        }
        _ => None,
    }
}

/// The tiler of extents and `_`, one for each mode.
fn tiler_of_coord<N: Extent>(coord: &Coord<N>) -> Result<Tiler<N>, LayoutError> {
    match (coord.is_leaf(), coord.leaves()) {
        (true, [Slot::All]) => Ok(Tiler::Keep),
        (true, [Slot::At(extent)]) => Tiler::from_shape(&Tree::leaf(extent.clone())),
        _ => Tiler::modes(coord.modes().map(|mode| tiler_of_coord(&mode)).collect::<Result<Vec<_>, _>>()?),
    }
}

impl Value {
    /// The tuple of these values, as a program writes it with a comma after the last: a tuple of
    /// numbers, a coordinate, or a list.
    ///
    /// Errors: the kinds of steps cannot be combined; the tuple is larger or nests deeper than a
    /// tree may.
    ///
    /// ```
    /// use tilewright_notation::Value;
    ///
    /// let tuple = Value::tuple(vec![Value::from(4), Value::open()]).unwrap();
    /// assert_eq!((tuple.to_string(), tuple.kind()), ("(4,_)".to_owned(), "coordinate"));
    /// ```
    pub fn tuple(values: Vec<Value>) -> Result<Value, LayoutError> {
        tuple_of(values, true)
    }

    /// The value as a layout, with a shape meaning its compact layout, as functions read their
    /// arguments.
    ///
    /// ```
    /// use tilewright_notation::{Environment, evaluate};
    ///
    /// let shape = evaluate("(4,8)", &mut Environment::new()).unwrap();
    /// assert_eq!(shape.operand_layout().unwrap().to_string(), "(4,8):(1,4)");
    /// ```
    pub fn operand_layout(&self) -> Option<AnyLayout> {
        match self {
            Value::Layout(layout) => Some(layout.clone()),
            value => compact(&*any_tree(value)?)?.ok(),
        }
    }

    /// The value as a tuple of integers; an integer is a leaf.
    pub fn integer_tree(&self) -> Option<Tree<i64>> {
        integer_tree(self)
    }

    /// The value as a tiler without parameters: a layout is itself, a shape tiles by mode, `_`
    /// keeps its mode. None if it cannot be a tiler.
    ///
    /// Errors: an extent of a shape is not positive.
    ///
    /// ```
    /// use tilewright_notation::{Environment, evaluate};
    ///
    /// let value = evaluate("(4,_)", &mut Environment::new()).unwrap();
    /// assert_eq!(value.to_tiler().unwrap().unwrap().to_string(), "[4:1;_]");
    /// ```
    pub fn to_tiler(&self) -> Option<Result<Tiler, LayoutError>> {
        match self.any_tiler()? {
            Ok(AnyTiler::Integer(tiler)) => Some(Ok(tiler)),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// As [`Value::to_tiler`], with numbers and steps of any kind.
    ///
    /// Errors: as [`Value::to_tiler`].
    pub fn any_tiler(&self) -> Option<Result<AnyTiler, LayoutError>> {
        tiler_of(self)
    }
}

/// The tuple literal with these elements: a tree, a coordinate or a list.
pub(crate) fn tuple_of(mut values: Vec<Value>, trailing: bool) -> Result<Value, LayoutError> {
    if values.iter().all(|value| matches!(value, Value::Int(_))) {
        let numbers = values.iter().map(|value| if let Value::Int(number) = value { *number } else { 0 });
        return Ok(Value::Tree(Tree::flat(numbers)?.into()));
    }
    if let Some(parts) = all(&values, any_tree) {
        // Steps of different kinds do not make a tuple.
        return match AnyTree::tuple(&parts) {
            Err(LayoutError::Kind { .. }) => Err(mixed(&values)),
            tree => Ok(Value::Tree(tree?)),
        };
    }
    if let Some(parts) = all(&values, coordinate) {
        return Ok(Value::Coord(AnyCoord::tuple(&parts)?));
    }
    match values.pop() {
        // Parentheses around one value group it.
        Some(only) if values.is_empty() && !trailing => Ok(only),
        last => {
            values.extend(last);
            list_of(values)
        }
    }
}

/// The error for steps that cannot be combined: an XOR step and another kind.
#[cold]
fn mixed(values: &[Value]) -> LayoutError {
    let is_xor = |value: &Value| matches!(value, Value::Tree(AnyTree::Xor(_)));
    let place = |at: usize| (vec![at], values.get(at).map(Value::to_string).unwrap_or_default().into_boxed_str());
    let xor = values.iter().position(is_xor).unwrap_or(0);
    let other = values.iter().position(|value| any_tree(value).is_none_or(|tree| tree.xor().is_none())).unwrap_or(xor);
    LayoutError::Mixed(Box::new(Mixed { first: place(xor.min(other)), second: place(xor.max(other)) }))
}

/// All values, converted in the same way; None if one cannot be converted.
fn all<'a, T>(values: &'a [Value], read: impl Fn(&'a Value) -> Option<T>) -> Option<Vec<T>> {
    values.iter().map(read).collect()
}
