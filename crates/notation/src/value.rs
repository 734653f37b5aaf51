//! Values of the expression language.
//!
//! Law: a value prints as canonical text, and that text evaluates to the same value, where its names mean what they did. So each value has one form only: a
//! tree of one number is [`Value::Int`], a coordinate without `_` is a tree, a tuple whose elements are numbers, `_`
//! and such tuples is never a list, and what is symbolic or has coordinate or XOR steps cannot be had without ([`crate::kinds`]).

use std::fmt;

use tilewright_layout::symbolic::{Expr, Symbolic};
use tilewright_layout::{
    BitMatrix, Composed, Coord, Coordinate, Extent, Layout, LayoutError, Limit, LinearLayout, MAX_DEPTH, MAX_NODES,
    Mixed, OuterMap, Slot, Stride, Swizzle, Tiler, Tree, Xor,
};
use tilewright_morphism::NestMorphism;

use crate::kinds::{self, Step};
use crate::reading::{coordinate, number_tree, step_tree, symbol_coordinate, symbol_tree, tiler_of, xor_tree};

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
    /// A number that is known at launch: `2*M`.
    Symbol(Expr),
    /// A tuple with such a number in it.
    SymbolTree(Box<Tree<Expr>>),
    /// A coordinate with a `_` and with such an index.
    SymbolCoord(Box<Coord<Expr>>),
    /// A layout with such a number: `(M,8):(8,1)`.
    SymbolLayout(Box<Layout<Expr>>),
    /// A tiler with such a number.
    SymbolTiler(Box<Tiler<Expr>>),
    /// A step along modes of a coordinate, or a tuple of them: `(1@0,2@1)`.
    StepTree(Box<Tree<Coordinate<Expr>>>),
    /// A layout whose value is a coordinate: `(4,8):(1@0,1@1)`.
    StepLayout(Box<Layout<Coordinate<Expr>>>),
    /// A composed layout with such a number: `(M,8):(8,1) o K o 4:1`.
    SymbolComposed(Box<Composed<Expr>>),
    /// A map seen through coordinates: `(4,5):(1,4) o (0,0) o (2,3):(1@0,1@1)`.
    StepComposed(Box<Composed<Coordinate<Expr>>>),
    /// A tiler that picks positions by coordinate: `2:64@0` in one of its modes.
    StepTiler(Box<Tiler<Coordinate<Expr>>>),
    /// An XOR step, or a tuple of them: `(^1,^9)`.
    XorTree(Tree<Xor>),
    /// A layout whose value is an XOR of steps: `(8,8):(^1,^9)`.
    XorLayout(Layout<Xor>),
    /// A linear map over bits.
    Matrix(BitMatrix),
    /// A map over bits whose inputs and outputs have names: `lane=[(1,0),(2,0)] -> row:4 column:2`.
    Linear(Box<LinearLayout>),
    /// A morphism of nested tuples: `(4,5) -> (4,16,5) : (1,3)`.
    Morphism(Box<NestMorphism>),
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
            Value::Symbol(_) => "number known at launch",
            Value::SymbolTree(_) => "tuple known at launch",
            Value::SymbolCoord(_) => "coordinate known at launch",
            Value::SymbolLayout(_) => "layout known at launch",
            Value::SymbolTiler(_) => "tiler known at launch",
            Value::StepTree(steps) if steps.is_leaf() => "coordinate step",
            Value::StepTree(_) => "tuple of coordinate steps",
            Value::StepLayout(_) => "coordinate layout",
            Value::StepTiler(_) => "coordinate tiler",
            Value::SymbolComposed(_) => "composed layout known at launch",
            Value::StepComposed(_) => "composed layout of coordinates",
            Value::XorTree(steps) if steps.is_leaf() => "XOR step",
            Value::XorTree(_) => "tuple of XOR steps",
            Value::XorLayout(_) => "XOR layout",
            Value::Matrix(_) => "bit matrix",
            Value::Linear(_) => "linear layout",
            Value::Morphism(_) => "morphism",
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

impl From<Expr> for Value {
    fn from(number: Expr) -> Value {
        match number.known() {
            Some(known) => Value::Int(known),
            None => Value::Symbol(number),
        }
    }
}

impl From<Tree<Expr>> for Value {
    fn from(tree: Tree<Expr>) -> Value {
        match (kinds::known_tree(&tree), tree.leaves()) {
            (Some(known), _) => Value::from(known),
            (None, [only]) if tree.is_leaf() => Value::Symbol(only.clone()),
            _ => Value::SymbolTree(Box::new(tree)),
        }
    }
}

impl From<Coord<Expr>> for Value {
    fn from(coord: Coord<Expr>) -> Value {
        match (coord.indices(), kinds::known_coord(&coord)) {
            (Some(tree), _) => Value::from(tree),
            (None, Some(known)) => Value::Coord(known),
            (None, None) => Value::SymbolCoord(Box::new(coord)),
        }
    }
}

impl From<Layout<Expr>> for Value {
    fn from(layout: Layout<Expr>) -> Value {
        match kinds::known_layout(&layout) {
            Some(known) => Value::Layout(known),
            None => Value::SymbolLayout(Box::new(layout)),
        }
    }
}

impl From<Tiler<Expr>> for Value {
    fn from(tiler: Tiler<Expr>) -> Value {
        match (kinds::retiled(&tiler, &kinds::known_layout), tiler) {
            (Some(known), _) => Value::from(known),
            (None, Tiler::Layout(layout)) => Value::SymbolLayout(Box::new(layout)),
            (None, tiler) => Value::SymbolTiler(Box::new(tiler)),
        }
    }
}

impl From<Tree<Step>> for Value {
    fn from(tree: Tree<Step>) -> Value {
        match kinds::plain_tree(&tree) {
            Some(numbers) => Value::from(numbers),
            None => Value::StepTree(Box::new(tree)),
        }
    }
}

impl From<Step> for Value {
    fn from(step: Step) -> Value {
        Value::from(Tree::leaf(step))
    }
}

impl From<Layout<Step>> for Value {
    fn from(layout: Layout<Step>) -> Value {
        match kinds::plain_layout(&layout) {
            Some(plain) => Value::from(plain),
            None => Value::StepLayout(Box::new(layout)),
        }
    }
}

impl From<Tiler<Step>> for Value {
    fn from(tiler: Tiler<Step>) -> Value {
        match (kinds::retiled(&tiler, &kinds::plain_layout), tiler) {
            (Some(plain), _) => Value::from(plain),
            (None, Tiler::Layout(layout)) => Value::StepLayout(Box::new(layout)),
            (None, tiler) => Value::StepTiler(Box::new(tiler)),
        }
    }
}

impl From<Tree<Xor>> for Value {
    fn from(tree: Tree<Xor>) -> Value {
        match tree.leaves().iter().all(|step| step.is_zero().proved()) {
            true => Value::from(tree.map(|_| 0_i64)),
            false => Value::XorTree(tree),
        }
    }
}

impl From<Layout<Xor>> for Value {
    fn from(layout: Layout<Xor>) -> Value {
        match kinds::without_bits(&layout) {
            Some(plain) => Value::Layout(plain),
            None => Value::XorLayout(layout),
        }
    }
}

impl From<Composed<Expr>> for Value {
    fn from(map: Composed<Expr>) -> Value {
        match kinds::known_composed(&map) {
            Some(known) => Value::Composed(known),
            None => Value::SymbolComposed(Box::new(map)),
        }
    }
}

impl From<Composed<Step>> for Value {
    fn from(map: Composed<Step>) -> Value {
        Value::StepComposed(Box::new(map))
    }
}

impl From<BitMatrix> for Value {
    fn from(matrix: BitMatrix) -> Value {
        Value::Matrix(matrix)
    }
}

impl From<LinearLayout> for Value {
    fn from(map: LinearLayout) -> Value {
        Value::Linear(Box::new(map))
    }
}

impl From<NestMorphism> for Value {
    fn from(morphism: NestMorphism) -> Value {
        Value::Morphism(Box::new(morphism))
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
            Value::Symbol(number) => f.write_str(&number.with_facts()),
            Value::SymbolTree(tree) => f.write_str(&tree.with_facts()),
            Value::SymbolCoord(coord) => f.write_str(&coord.with_facts()),
            Value::SymbolLayout(layout) => f.write_str(&layout.with_facts()),
            Value::SymbolTiler(tiler) => f.write_str(&tiler.with_facts()),
            Value::StepTree(tree) => f.write_str(&tree.with_facts()),
            Value::StepLayout(layout) => f.write_str(&layout.with_facts()),
            Value::StepTiler(tiler) => f.write_str(&tiler.with_facts()),
            Value::SymbolComposed(map) => f.write_str(&map.with_facts()),
            Value::StepComposed(map) => f.write_str(&map.with_facts()),
            Value::XorTree(tree) => tree.fmt(f),
            Value::XorLayout(layout) => layout.fmt(f),
            Value::Matrix(matrix) => matrix.fmt(f),
            Value::Linear(map) => map.fmt(f),
            Value::Morphism(morphism) => morphism.fmt(f),
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
    if let Some(parts) = all(&values, number_tree) {
        return Ok(Value::Tree(Tree::tuple(parts.iter())?));
    }
    if let Some(parts) = all(&values, coordinate) {
        return Ok(Value::Coord(Tree::tuple(parts.iter())?));
    }
    if let Some(parts) = all(&values, symbol_tree) {
        return Ok(Value::SymbolTree(Box::new(Tree::tuple(parts.iter())?)));
    }
    if let Some(parts) = all(&values, symbol_coordinate) {
        return Ok(Value::SymbolCoord(Box::new(Tree::tuple(parts.iter())?)));
    }
    if let Some(parts) = all(&values, step_tree) {
        return Ok(Value::StepTree(Box::new(Tree::tuple(parts.iter())?)));
    }
    if let Some(parts) = all(&values, xor_tree) {
        return Ok(Value::XorTree(Tree::tuple(parts.iter())?));
    }
    // Steps are given, and not all of one kind.
    if let (Some(xor), true) = (
        values.iter().position(|value| matches!(value, Value::XorTree(_))),
        values.iter().all(|value| step_tree(value).is_some() || matches!(value, Value::XorTree(_))),
    ) {
        let place = |at: usize| (vec![at], values.get(at).map(Value::to_string).unwrap_or_default().into_boxed_str());
        let other = values.iter().position(|value| xor_tree(value).is_none()).unwrap_or(xor);
        let (first, second) = (place(xor.min(other)), place(xor.max(other)));
        return Err(LayoutError::Mixed(Box::new(Mixed { first, second })));
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

/// All values read in one way; none where one cannot be.
fn all<T>(values: &[Value], read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    values.iter().map(read).collect()
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
    let leaves = match value {
        Value::List(values) => {
            return values
                .iter()
                .map(extent_of)
                .fold((1, 1), |(nodes, depth), (more, deeper)| (nodes.saturating_add(more), depth.max(deeper + 1)));
        }
        Value::Tree(tree) => tree.leaves().len(),
        Value::SymbolTree(tree) => tree.leaves().len(),
        Value::StepTree(tree) => tree.leaves().len(),
        Value::XorTree(tree) => tree.leaves().len(),
        Value::Coord(coord) => coord.leaves().len(),
        Value::SymbolCoord(coord) => coord.leaves().len(),
        Value::Layout(layout) => layout.leaves().len(),
        Value::SymbolLayout(layout) => layout.leaves().len(),
        Value::StepLayout(layout) => layout.leaves().len(),
        Value::XorLayout(layout) => layout.leaves().len(),
        Value::Composed(composed) => maps_of(composed.outer()) + composed.inner().leaves().len(),
        Value::SymbolComposed(composed) => maps_of(composed.outer()) + composed.inner().leaves().len(),
        Value::StepComposed(composed) => maps_of(composed.outer()) + composed.inner().leaves().len(),
        Value::Tiler(tiler) => leaves_of(tiler),
        Value::SymbolTiler(tiler) => leaves_of(tiler),
        Value::StepTiler(tiler) => leaves_of(tiler),
        Value::Linear(map) => map.inputs().len() + map.outputs().len() + map.matrix().inputs(),
        Value::Morphism(morphism) => morphism.flatten().domain().len() + morphism.flatten().codomain().len(),
        Value::Int(_) | Value::Bool(_) | Value::Swizzle(_) | Value::Symbol(_) | Value::Matrix(_) => 0,
    };
    (1 + leaves, 0)
}

fn maps_of<N: Extent>(map: &OuterMap<N>) -> usize {
    match map {
        OuterMap::Layout(layout) => layout.leaves().len(),
        OuterMap::Swizzle(_) => 1,
        OuterMap::Bits(matrix) => matrix.inputs(),
        OuterMap::Chain(chain) => maps_of(chain.outer()).saturating_add(maps_of(chain.inner())),
    }
}

fn leaves_of<D: Stride>(tiler: &Tiler<D>) -> usize {
    match tiler {
        Tiler::Keep => 1,
        Tiler::Layout(layout) => 1 + layout.leaves().len(),
        Tiler::Modes(modes) => modes.items().iter().map(leaves_of).fold(1, usize::saturating_add),
    }
}
