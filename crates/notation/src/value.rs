//! Values of the expression language.
//!
//! Law: a value prints as canonical text, and that text evaluates to the same value if its names
//! have the same meaning. So each value has only one form: a tree of one number is [`Value::Int`];
//! a coordinate without `_` is a tree; a tuple whose elements are numbers, `_` and such tuples is
//! never a list; layouts, tuples and tilers have the most special kind that can represent them
//! ([`AnyLayout`]).

use std::fmt;

use tilewright_layout::morphism::NestMorphism;
use tilewright_layout::{
    AnyCoord, AnyLayout, AnyTiler, AnyTree, BitMatrix, Composed, Coord, Coordinate, CoordinateStep, Layout,
    LayoutError, Limit, LinearLayout, MAX_DEPTH, MAX_NODES, Swizzle, Tiler, Tree, Xor,
    symbolic::{Expr, Parameter, Values},
};

/// A value of an expression.
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
    /// A nested tuple of numbers or of steps, in parentheses: a shape, strides or a coordinate; or
    /// a single number or step that is not an integer.
    Tree(AnyTree),
    /// A coordinate with at least one `_`.
    Coord(AnyCoord),
    /// A layout of any kind, including composed layouts.
    Layout(AnyLayout),
    /// A tiler by mode: `[2:1;_]`.
    Tiler(AnyTiler),
    /// Several values, at least one of which is not a number, a tuple or `_`.
    List(Vec<Value>),
    /// A swizzle: `S<3,4,3>`.
    Swizzle(Swizzle),
    /// A linear map over bits.
    Matrix(BitMatrix),
    /// A map over bits whose inputs and outputs have names: `lane=[(1,0),(2,0)] -> row:4 column:2`.
    Linear(Box<LinearLayout>),
    /// A morphism of nested tuples: `(4,5) -> (4,16,5) : (1,3)`.
    Morphism(Box<NestMorphism>),
}

impl Value {
    /// The kind of the value, as a word for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Int(_) => "integer",
            Value::Bool(_) => "truth value",
            Value::Tree(AnyTree::Integer(_)) => "tuple",
            Value::Tree(AnyTree::Launch(tree)) if tree.is_leaf() => "number known at launch",
            Value::Tree(AnyTree::Launch(_)) => "tuple known at launch",
            Value::Tree(AnyTree::Coordinate(steps)) if steps.is_leaf() => "coordinate step",
            Value::Tree(AnyTree::Coordinate(_)) => "tuple of coordinate steps",
            Value::Tree(AnyTree::Xor(steps)) if steps.is_leaf() => "XOR step",
            Value::Tree(AnyTree::Xor(_)) => "tuple of XOR steps",
            Value::Coord(AnyCoord::Integer(_)) => "coordinate",
            Value::Coord(AnyCoord::Launch(_)) => "coordinate known at launch",
            Value::Layout(layout) => layout.kind().name(),
            Value::Tiler(AnyTiler::Integer(_)) => "tiler",
            Value::Tiler(AnyTiler::Launch(_)) => "tiler known at launch",
            Value::Tiler(AnyTiler::Coordinate(_) | AnyTiler::Map(_)) => "coordinate tiler",
            Value::List(_) => "list",
            Value::Swizzle(_) => "swizzle",
            Value::Matrix(_) => "bit matrix",
            Value::Linear(_) => "linear layout",
            Value::Morphism(_) => "morphism",
        }
    }

    /// `_`: any index of a coordinate, or a mode that a tiler keeps.
    pub fn open() -> Value {
        Value::Coord(AnyCoord::open())
    }

    /// The value as an integer layout; None if it is not one.
    pub fn integer_layout(&self) -> Option<&Layout> {
        if let Value::Layout(layout) = self { layout.integer() } else { None }
    }

    /// The parameters in it, each once.
    ///
    /// ```
    /// use tilewright_notation::{Environment, evaluate};
    ///
    /// let value = evaluate("(M{div=8},K):(K,1)", &mut Environment::new()).unwrap();
    /// let names: Vec<String> = value.parameters().iter().map(ToString::to_string).collect();
    /// assert_eq!(names, ["K", "M"]);
    /// ```
    pub fn parameters(&self) -> Vec<Parameter> {
        match self {
            Value::Tree(tree) => tree.parameters(),
            Value::Coord(coord) => coord.parameters(),
            Value::Layout(layout) => layout.parameters(),
            Value::Tiler(tiler) => tiler.parameters(),
            Value::List(items) => {
                let mut found: Vec<Parameter> = items.iter().flat_map(Value::parameters).collect();
                found.sort();
                found.dedup();
                found
            }
            _ => Vec::new(),
        }
    }

    /// The value with each given parameter replaced by its number.
    ///
    /// Errors: a number that the facts of its parameter do not allow; a number is not
    /// representable.
    ///
    /// ```
    /// use tilewright_layout::symbolic::Values;
    /// use tilewright_notation::{Environment, evaluate};
    ///
    /// let value = evaluate("(M{div=8},K):(1@0,1@1)", &mut Environment::new()).unwrap();
    /// let mut values = Values::new();
    /// values.set_named("M", 64);
    /// values.set_named("K", 3);
    /// assert_eq!(value.substitute(&values).unwrap().to_string(), "(64,3):(1@0,1@1)");
    /// ```
    pub fn substitute(&self, values: &Values) -> Result<Value, LayoutError> {
        Ok(match self {
            Value::Tree(tree) => tree.substitute(values)?.into(),
            Value::Coord(coord) => coord.substitute(values)?.into(),
            Value::Layout(layout) => layout.substitute(values)?.into(),
            Value::Tiler(tiler) => tiler.substitute(values)?.into(),
            Value::List(items) => {
                Value::List(items.iter().map(|item| item.substitute(values)).collect::<Result<_, _>>()?)
            }
            known => known.clone(),
        })
    }
}

tilewright_layout::from_variants! {
    Value: Int(i64), Bool(bool), Layout(AnyLayout), Swizzle(Swizzle), Matrix(BitMatrix), Linear(LinearLayout), Morphism(NestMorphism),
}

impl From<AnyTree> for Value {
    fn from(tree: AnyTree) -> Value {
        match tree {
            AnyTree::Integer(tree) => match (tree.is_leaf(), tree.leaves()) {
                (true, [only]) => Value::Int(*only),
                _ => Value::Tree(AnyTree::Integer(tree)),
            },
            tree => Value::Tree(tree),
        }
    }
}

impl From<AnyCoord> for Value {
    fn from(coord: AnyCoord) -> Value {
        match coord.indices() {
            Some(tree) => tree.into(),
            None => Value::Coord(coord),
        }
    }
}

impl From<AnyTiler> for Value {
    fn from(tiler: AnyTiler) -> Value {
        match tiler.layout() {
            Some(layout) => Value::Layout(layout),
            None if tiler.is_keep() => Value::Coord(AnyCoord::open()),
            None => Value::Tiler(tiler),
        }
    }
}

/// Conversions from values of one kind, through the enum of all kinds.
macro_rules! by_way_of {
    ($($any:ident: $($kind:ty),+;)*) => {
        $($(
            impl From<$kind> for Value {
                #[inline]
                fn from(value: $kind) -> Value {
                    Value::from($any::from(value))
                }
            }
        )+)*
    };
}

by_way_of! {
    AnyTree: Expr, CoordinateStep, Tree<i64>, Tree<Expr>, Tree<CoordinateStep>, Tree<Xor>;
    AnyCoord: Coord, Coord<Expr>;
    AnyLayout: Layout, Layout<Expr>, Layout<CoordinateStep>, Layout<Coordinate>, Layout<Xor>, Composed, Composed<Expr>, Composed<CoordinateStep>;
    AnyTiler: Tiler, Tiler<Expr>, Tiler<CoordinateStep>;
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(value) => value.fmt(f),
            Value::Bool(value) => value.fmt(f),
            Value::Tree(tree) => tree.fmt(f),
            Value::Coord(coord) => coord.fmt(f),
            Value::Layout(layout) => layout.fmt(f),
            Value::Tiler(tiler) => tiler.fmt(f),
            Value::Swizzle(swizzle) => swizzle.fmt(f),
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
                // Parentheses around one value only group it; a comma makes it a list.
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

/// The list of these values.
///
/// Errors: it is larger or nests deeper than a tree may, so that copying, comparing and printing it
/// is bounded.
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

/// The number of nodes of a value and the depth of its lists. Lists inside it are already within
/// the limits.
fn extent_of(value: &Value) -> (usize, usize) {
    let leaves = match value {
        Value::List(values) => {
            return values
                .iter()
                .map(extent_of)
                .fold((1, 1), |(nodes, depth), (more, deeper)| (nodes.saturating_add(more), depth.max(deeper + 1)));
        }
        Value::Tree(tree) if tree.is_leaf() => 0,
        Value::Tree(tree) => tree.len(),
        Value::Coord(coord) => coord.len(),
        Value::Layout(layout) => layout.leaves(),
        Value::Tiler(tiler) => tiler.leaves(),
        Value::Linear(map) => map.inputs().len() + map.outputs().len() + map.matrix().inputs(),
        Value::Morphism(morphism) => morphism.flatten().domain().len() + morphism.flatten().codomain().len(),
        Value::Int(_) | Value::Bool(_) | Value::Swizzle(_) | Value::Matrix(_) => 0,
    };
    (1 + leaves, 0)
}
