//! Values of the expression language.
//!
//! Law: a value prints as canonical text, and that text evaluates to the same value. So each value has one form only: a
//! tree of one number is [`Value::Int`], a coordinate without `_` is a tree, and a tuple whose elements are numbers, `_`
//! and such tuples is never a list.

use std::fmt;

use tilewright_layout::{
    Composed, Coord, Layout, LayoutError, Limit, MAX_DEPTH, MAX_NODES, OuterMap, Slot, Swizzle, Tiler, Tree,
};

/// What an expression evaluates to.
///
/// ```
/// use tilewright_notation::{Environment, evaluate};
///
/// let value = evaluate("shape((4,(2,3)))", &mut Environment::new()).unwrap();
/// assert_eq!(value.to_string(), "(4,(2,3))");
/// assert_eq!(value.kind(), "tuple");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// An integer.
    Int(i64),
    /// `true` or `false`.
    Bool(bool),
    /// A nested tuple of integers, in parentheses: a shape, a stride or a coordinate.
    Tree(Tree<i64>),
    /// A coordinate with at least one `_`.
    Coord(Coord),
    /// A layout.
    Layout(Layout),
    /// A swizzle: `S<3,4,3>`.
    Swizzle(Swizzle),
    /// A layout seen through a swizzle or another layout: `S<3,4,3> o 0 o (8,64):(64,1)`.
    Composed(Composed),
    /// A tiler by mode: `[2:1;_]`.
    Tiler(Tiler),
    /// Several values, at least one of which is not a number, a tuple or `_`.
    List(Vec<Value>),
}

impl Value {
    /// What kind of value this is, as a word for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Int(_) => "integer",
            Value::Bool(_) => "truth value",
            Value::Tree(_) => "tuple",
            Value::Coord(_) => "coordinate",
            Value::Layout(_) => "layout",
            Value::Swizzle(_) => "swizzle",
            Value::Composed(_) => "composed layout",
            Value::Tiler(_) => "tiler",
            Value::List(_) => "list",
        }
    }

    /// The tiler that this value stands for: a layout is itself, a shape tiles by mode, `_` keeps. None when it stands for none.
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
        tiler_of(self)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<Tree<i64>> for Value {
    fn from(tree: Tree<i64>) -> Value {
        match tree.leaves() {
            [only] if tree.is_leaf() => Value::Int(*only),
            _ => Value::Tree(tree),
        }
    }
}

impl From<Coord> for Value {
    fn from(coord: Coord) -> Value {
        match coord.indices() {
            Some(tree) => Value::from(tree),
            None => Value::Coord(coord),
        }
    }
}

impl From<Layout> for Value {
    fn from(layout: Layout) -> Value {
        Value::Layout(layout)
    }
}

impl From<Swizzle> for Value {
    fn from(swizzle: Swizzle) -> Value {
        Value::Swizzle(swizzle)
    }
}

impl From<Composed> for Value {
    fn from(composed: Composed) -> Value {
        Value::Composed(composed)
    }
}

impl From<Tiler> for Value {
    fn from(tiler: Tiler) -> Value {
        match tiler {
            Tiler::Keep => Value::Coord(Tree::leaf(Slot::All)),
            Tiler::Layout(layout) => Value::Layout(layout),
            by_mode => Value::Tiler(by_mode),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(value) => value.fmt(f),
            Value::Bool(value) => value.fmt(f),
            Value::Tree(tree) => tree.fmt(f),
            Value::Coord(coord) => coord.fmt(f),
            Value::Layout(layout) => layout.fmt(f),
            Value::Swizzle(swizzle) => swizzle.fmt(f),
            Value::Composed(composed) => composed.fmt(f),
            Value::Tiler(tiler) => tiler.fmt(f),
            Value::List(values) => {
                f.write_str("(")?;
                for (position, value) in values.iter().enumerate() {
                    if position > 0 {
                        f.write_str(",")?;
                    }
                    value.fmt(f)?;
                }
                // Parentheses around one value only group it; the comma makes it a list.
                f.write_str(if values.len() == 1 { ",)" } else { ")" })
            }
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({self})")
    }
}

/// The tuple literal with these elements: a tree, a coordinate or a list.
pub(crate) fn tuple_of(mut values: Vec<Value>, trailing: bool) -> Result<Value, LayoutError> {
    if values.iter().all(|value| matches!(value, Value::Int(_))) {
        let numbers = values.iter().map(|value| if let Value::Int(number) = value { *number } else { 0 });
        return Ok(Value::Tree(Tree::flat(numbers)?));
    }
    if values.iter().all(|value| matches!(value, Value::Int(_) | Value::Tree(_))) {
        let parts: Vec<Tree<i64>> = values.iter().filter_map(number_tree).collect();
        return Ok(Value::Tree(Tree::tuple(parts.iter())?));
    }
    if values.iter().all(|value| matches!(value, Value::Int(_) | Value::Tree(_) | Value::Coord(_))) {
        let parts: Vec<Coord> = values.iter().filter_map(coordinate).collect();
        return Ok(Value::Coord(Tree::tuple(parts.iter())?));
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

/// The list of these values.
///
/// Errors: it is larger or nests deeper than a tree may, so that copying, comparing and printing it is bounded.
pub(crate) fn list_of(values: Vec<Value>) -> Result<Value, LayoutError> {
    let list = Value::List(values);
    let (nodes, depth) = extent_of(&list);
    if depth > MAX_DEPTH {
        return Err(LayoutError::TooLarge { limit: Limit::Depth, value: depth });
    }
    if nodes > MAX_NODES {
        return Err(LayoutError::TooLarge { limit: Limit::Nodes, value: nodes });
    }
    Ok(list)
}

/// How many nodes a value has and how deep its lists nest; lists inside it are within the limits already.
fn extent_of(value: &Value) -> (usize, usize) {
    match value {
        Value::List(values) => values
            .iter()
            .map(extent_of)
            .fold((1, 1), |(nodes, depth), (more, deeper)| (nodes.saturating_add(more), depth.max(deeper + 1))),
        Value::Tree(tree) => (1 + tree.leaves().len(), 0),
        Value::Coord(coord) => (1 + coord.leaves().len(), 0),
        Value::Layout(layout) => (1 + layout.leaves().len(), 0),
        Value::Composed(composed) => (1 + leaves_of_map(composed.outer()) + composed.inner().leaves().len(), 0),
        Value::Tiler(tiler) => (leaves_of(tiler), 0),
        Value::Int(_) | Value::Bool(_) | Value::Swizzle(_) => (1, 0),
    }
}

fn leaves_of_map(map: &OuterMap) -> usize {
    match map {
        OuterMap::Layout(layout) => layout.leaves().len(),
        OuterMap::Swizzle(_) => 1,
        OuterMap::Bits(matrix) => 1 + matrix.inputs(),
        // At most MAX_CHAIN maps.
        OuterMap::Chain(chain) => leaves_of_map(chain.outer()) + 1 + leaves_of_map(chain.inner()),
    }
}

fn leaves_of(tiler: &Tiler) -> usize {
    match tiler {
        Tiler::Keep => 1,
        Tiler::Layout(layout) => 1 + layout.leaves().len(),
        Tiler::Modes(modes) => modes.items().iter().map(leaves_of).fold(1, usize::saturating_add),
    }
}

/// A number or a tuple of numbers as a tree.
pub(crate) fn number_tree(value: &Value) -> Option<Tree<i64>> {
    match value {
        Value::Int(number) => Some(Tree::leaf(*number)),
        Value::Tree(tree) => Some(tree.clone()),
        _ => None,
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
        Value::Bool(_) | Value::Swizzle(_) | Value::Composed(_) => None,
    }
}

/// Extents and `_` by mode.
fn tiler_of_coord(coord: &Coord) -> Result<Tiler, LayoutError> {
    match (coord.is_leaf(), coord.leaves()) {
        (true, [Slot::All]) => Ok(Tiler::Keep),
        (true, [Slot::At(extent)]) => Tiler::from_shape(&Tree::leaf(*extent)),
        _ => Tiler::modes(coord.modes().map(|mode| tiler_of_coord(&mode)).collect::<Result<Vec<_>, _>>()?),
    }
}
