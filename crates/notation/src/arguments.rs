//! Arguments of a function, read as what the function needs.
//!
//! The rules of reading are the same everywhere: where a layout is needed, a shape stands for its compact layout; where a
//! tiler is needed, a shape tiles by mode; where a coordinate is needed, a tuple of numbers is one. Several arguments that go
//! together are read as values of one kind, the least that holds them all ([`crate::kinds`]).

use std::borrow::Cow;

use tilewright_atoms::AtomError;
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Coord, Coordinate, Layout, LayoutError, Profile, Tiler, Tree, Xor};

use tilewright_morphism::MorphismError;

use crate::kinds::{self, Step};
use crate::reading::{
    coordinate, number_tree, step_tiler_of, step_tree, symbol_coordinate, symbol_tiler_of, symbol_tree, tiler_of,
    xor_tree,
};
use crate::value::Value;

/// Why a function did not return a value.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The operation refused; the operands of the error are the arguments.
    Refused(LayoutError),
    /// An operation on morphisms refused.
    Morphism(MorphismError),
    /// An instruction or a tiling of one refused.
    Atom(AtomError),
    /// One argument is wrong on its own account; the error is about it.
    At(usize, LayoutError),
    /// One argument is of the wrong kind.
    Kind {
        /// Which.
        argument: usize,
        /// What was wanted, in words.
        wanted: &'static str,
    },
}

impl From<LayoutError> for Fault {
    fn from(error: LayoutError) -> Fault {
        Fault::Refused(error)
    }
}

impl From<MorphismError> for Fault {
    fn from(error: MorphismError) -> Fault {
        match error {
            MorphismError::Layout(error) => Fault::Refused(error),
            error => Fault::Morphism(error),
        }
    }
}

/// The kinds of strides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer,
    Symbol,
    Step,
    Xor,
}

/// A map, of whatever kind.
pub(crate) enum Map<'a> {
    Integer(Cow<'a, Layout>),
    Symbol(Cow<'a, Layout<Expr>>),
    Step(Cow<'a, Layout<Step>>),
    Xor(Cow<'a, Layout<Xor>>),
    Composed(Cow<'a, Composed>),
    SymbolComposed(Cow<'a, Composed<Expr>>),
    StepComposed(&'a Composed<Step>),
}

/// Two layouts of one kind.
#[expect(clippy::large_enum_variant, reason = "it lives for one call")]
pub(crate) enum Layouts<'a> {
    Integer(Cow<'a, Layout>, Cow<'a, Layout>),
    Symbol(Layout<Expr>, Layout<Expr>),
    Step(Layout<Step>, Layout<Step>),
    Xor(Layout<Xor>, Layout<Xor>),
}

/// A map and a tiler for its domain.
pub(crate) enum Tiled<'a> {
    Integer(Cow<'a, Layout>, Cow<'a, Tiler>),
    Symbol(Layout<Expr>, Tiler<Expr>),
    Step(Layout<Step>, Tiler<Expr>),
    /// The tiler picks positions by coordinate.
    Picked(Layout<Step>, Tiler<Step>),
    Xor(Cow<'a, Layout<Xor>>, Cow<'a, Tiler>),
    PickedXor(&'a Layout<Xor>, Tiler<Coordinate>),
    Composed(&'a Composed, Cow<'a, Tiler>),
    SymbolComposed(Composed<Expr>, Tiler<Expr>),
    StepComposed(&'a Composed<Step>, Tiler<Expr>),
    PickedComposed(Composed<Expr>, Tiler<Step>),
    PickedStepComposed(&'a Composed<Step>, Tiler<Step>),
    /// The tile, or the arrangement, is a map as well.
    Mapped(Whole, Composed),
}

/// A map and a layout into its domain, or of copies of it.
pub(crate) enum Arranged<'a> {
    Integer(Cow<'a, Layout>, Cow<'a, Layout>),
    Symbol(Layout<Expr>, Layout<Expr>),
    Step(Layout<Step>, Layout<Expr>),
    Xor(Cow<'a, Layout<Xor>>, Cow<'a, Layout>),
    Composed(&'a Composed, Cow<'a, Layout>),
    SymbolComposed(Composed<Expr>, Layout<Expr>),
    StepComposed(&'a Composed<Step>, Layout<Expr>),
    /// The layout leads to coordinates.
    Picked(Layout<Step>, Layout<Step>),
    PickedXor(&'a Layout<Xor>, Layout<Coordinate>),
    PickedComposed(Composed<Expr>, Layout<Step>),
    PickedStepComposed(&'a Composed<Step>, Layout<Step>),
    /// The arrangement is a map as well.
    Mapped(Whole, Composed),
}

/// A map that is divided, multiplied or composed by a map of numbers.
pub(crate) enum Whole {
    /// Of numbers.
    Map(Composed),
    /// Of bit vectors.
    Xor(Layout<Xor>),
}

macro_rules! by_map {
    ($($name:ident => $composed:ident),+ $(,)?) => {
        impl Whole {
            $(pub(crate) fn $name(&self, by: &Composed) -> Result<Value, LayoutError> {
                match self {
                    Whole::Map(whole) => Ok(whole.$composed(by)?.into()),
                    // Of its indices, and then the map after that.
                    Whole::Xor(whole) => {
                        let indices = Composed::from(Layout::compact(&whole.shape())?);
                        Ok(vectors(indices.$composed(by)?.then_xor(whole)?))
                    }
                }
            })+
        }
    };
}

/// A map of bit vectors: a layout with XOR strides, where one is it.
pub(crate) fn vectors(map: Composed) -> Value {
    match map.to_xor() {
        Ok(layout) => layout.into(),
        Err(_) => map.into(),
    }
}

/// A map of numbers that came of bit vectors: a layout, where one is it.
pub(crate) fn numbers(map: Composed) -> Value {
    match map.to_layout() {
        Ok((layout, 0)) => layout.into(),
        _ => vectors(map),
    }
}

by_map! {
    compose_tiler => compose_composed,
    logical_divide => logical_divide_composed,
    zipped_divide => zipped_divide_composed,
    tiled_divide => tiled_divide_composed,
    flat_divide => flat_divide_composed,
}

/// The layout that a map of indices is.
fn indices(map: &Composed) -> Result<Layout, LayoutError> {
    match map.to_layout()? {
        (layout, 0) => Ok(layout),
        (_, value) => Err(LayoutError::Argument {
            op: "logical_product",
            what: "the offset of the arrangement",
            value,
            wanted: "0",
        }),
    }
}

macro_rules! times_map {
    ($($name:ident => $composed:ident),+ $(,)?) => {
        impl Whole {
            $(pub(crate) fn $name(&self, by: &Composed) -> Result<Value, LayoutError> {
                match self {
                    Whole::Map(whole) => Ok(whole.$composed(by)?.into()),
                    // Copies of vectors are added by XOR, which numbers are not.
                    Whole::Xor(whole) => Ok(whole.$name(&indices(by)?.into())?.into()),
                }
            })+
        }
    };
}

times_map! {
    logical_product => logical_product_composed,
    zipped_product => zipped_product_composed,
    tiled_product => tiled_product_composed,
    flat_product => flat_product_composed,
    blocked_product => blocked_product_composed,
    raked_product => raked_product_composed,
}

/// Two tuples of one kind.
#[expect(clippy::large_enum_variant, reason = "it lives for one call")]
pub(crate) enum Trees {
    Integer(Tree<i64>, Tree<i64>),
    Symbol(Tree<Expr>, Tree<Expr>),
    Step(Tree<Step>, Tree<Step>),
    Xor(Tree<Xor>, Tree<Xor>),
}

/// The arguments of one call.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    /// The name of the function, for errors.
    pub(crate) function: &'static str,
    pub(crate) values: &'a [Value],
}

impl<'a> Arguments<'a> {
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn get(&self, argument: usize) -> Option<&'a Value> {
        self.values.get(argument)
    }

    pub(crate) fn kind<T>(&self, argument: usize, wanted: &'static str) -> Result<T, Fault> {
        Err(Fault::Kind { argument, wanted })
    }

    /// A layout with integer strides; a shape stands for its compact layout.
    pub(crate) fn layout(&self, argument: usize) -> Result<Cow<'a, Layout>, Fault> {
        match self.get(argument) {
            Some(Value::Layout(layout)) => Ok(Cow::Borrowed(layout)),
            Some(Value::Int(extent)) => compact(argument, &Tree::leaf(*extent)),
            Some(Value::Tree(shape)) => compact(argument, shape),
            Some(Value::SymbolLayout(_) | Value::Symbol(_) | Value::SymbolTree(_)) => {
                self.kind(argument, "a layout whose numbers are known")
            }
            Some(Value::StepLayout(_) | Value::XorLayout(_)) => self.kind(argument, "a layout with integer strides"),
            _ => self.kind(argument, "a layout"),
        }
    }

    /// A map of any kind; a shape stands for its compact layout.
    pub(crate) fn map(&self, argument: usize) -> Result<Map<'a>, Fault> {
        match self.get(argument) {
            Some(Value::Composed(map)) => Ok(Map::Composed(Cow::Borrowed(map))),
            Some(Value::SymbolComposed(map)) => Ok(Map::SymbolComposed(Cow::Borrowed(&**map))),
            Some(Value::StepComposed(map)) => Ok(Map::StepComposed(map)),
            Some(Value::SymbolLayout(layout)) => Ok(Map::Symbol(Cow::Borrowed(&**layout))),
            Some(Value::StepLayout(layout)) => Ok(Map::Step(Cow::Borrowed(&**layout))),
            Some(Value::XorLayout(layout)) => Ok(Map::Xor(Cow::Borrowed(layout))),
            Some(Value::Symbol(_) | Value::SymbolTree(_)) => Ok(Map::Symbol(Cow::Owned(self.symbol_layout(argument)?))),
            _ => self.layout(argument).map(Map::Integer),
        }
    }

    /// A map of any kind that sends indices to what its values are: one seen through coordinates as one seen through numbers.
    pub(crate) fn map_of_indices(&self, argument: usize) -> Result<Map<'a>, Fault> {
        Ok(match self.map(argument)? {
            Map::StepComposed(map) => {
                let map = map.by_index().map_err(|error| Fault::At(argument, error))?;
                match kinds::known_composed(&map) {
                    Some(known) => Map::Composed(Cow::Owned(known)),
                    None => Map::SymbolComposed(Cow::Owned(map)),
                }
            }
            other => other,
        })
    }

    /// A map to numbers that are known, as a composed layout.
    pub(crate) fn composed(&self, argument: usize) -> Result<Composed, Fault> {
        match self.map_of_indices(argument)? {
            Map::Composed(map) => Ok(map.into_owned()),
            Map::Integer(layout) => Ok(Composed::from(layout.into_owned())),
            Map::Xor(layout) => Ok(layout.composed()?),
            Map::SymbolComposed(_) => self.kind(argument, "a map whose numbers are known"),
            _ => Ok(Composed::from(self.layout(argument)?.into_owned())),
        }
    }

    /// A composed layout whose numbers may not be known.
    pub(crate) fn symbol_composed(&self, argument: usize) -> Result<Composed<Expr>, Fault> {
        match self.map_of_indices(argument)? {
            Map::Composed(map) => Ok(kinds::symbolic_composed(&map)?),
            Map::SymbolComposed(map) => Ok(map.into_owned()),
            _ => Ok(Composed::from(self.symbol_layout(argument)?)),
        }
    }

    /// Whether an argument is a composed layout, or one of bit vectors.
    pub(crate) fn is_map_of_bits(&self, argument: usize) -> bool {
        self.is_composed(argument) || matches!(self.get(argument), Some(Value::XorLayout(_)))
    }

    /// Whether an argument is a composed layout.
    pub(crate) fn is_composed(&self, argument: usize) -> bool {
        matches!(self.get(argument), Some(Value::Composed(_) | Value::SymbolComposed(_) | Value::StepComposed(_)))
    }

    /// A map of any kind; none for a linear map over bits.
    pub(crate) fn map_or_matrix(&self) -> Result<Option<Map<'a>>, Fault> {
        match self.get(0) {
            Some(Value::Matrix(_) | Value::Swizzle(_)) => Ok(None),
            _ => self.map(0).map(Some),
        }
    }

    /// A layout with integer strides whose numbers may not be known.
    pub(crate) fn symbol_layout(&self, argument: usize) -> Result<Layout<Expr>, Fault> {
        match self.get(argument) {
            Some(Value::SymbolLayout(layout)) => Ok((**layout).clone()),
            Some(value @ (Value::Symbol(_) | Value::SymbolTree(_))) => {
                let shape = symbol_tree(value).unwrap_or(Tree::leaf(Expr::from(1)));
                Layout::compact(&shape).map_err(|error| Fault::At(argument, error))
            }
            _ => Ok(Layout::from(&*self.layout(argument)?)),
        }
    }

    /// A layout with coordinate strides; integers are steps in a codomain that is not a tuple.
    pub(crate) fn step_layout(&self, argument: usize) -> Result<Layout<Step>, Fault> {
        if let Some(Value::StepLayout(layout)) = self.get(argument) {
            return Ok((**layout).clone());
        }
        match kinds::step_layout(&self.symbol_layout(argument)?) {
            Some(layout) => Ok(layout),
            None => self.kind(argument, "a layout with coordinate strides"),
        }
    }

    /// A layout with XOR strides; strides of 0 are such.
    pub(crate) fn xor_layout(&self, argument: usize) -> Result<Cow<'a, Layout<Xor>>, Fault> {
        if let Some(Value::XorLayout(layout)) = self.get(argument) {
            return Ok(Cow::Borrowed(layout));
        }
        match kinds::xor_layout(&*self.layout(argument)?) {
            Some(layout) => Ok(Cow::Owned(layout)),
            None => self.kind(argument, "a layout with XOR strides, as the other one has"),
        }
    }

    /// Two layouts, as layouts of one kind.
    pub(crate) fn layouts(&self, first: usize, second: usize) -> Result<Layouts<'a>, Fault> {
        Ok(match self.kind_of([first, second].into_iter()) {
            Kind::Integer => Layouts::Integer(self.layout(first)?, self.layout(second)?),
            Kind::Symbol => Layouts::Symbol(self.symbol_layout(first)?, self.symbol_layout(second)?),
            Kind::Step => Layouts::Step(self.step_layout(first)?, self.step_layout(second)?),
            Kind::Xor => Layouts::Xor(self.xor_layout(first)?.into_owned(), self.xor_layout(second)?.into_owned()),
        })
    }

    /// The least kind that holds these arguments, as far as one does.
    pub(crate) fn kind_of(&self, arguments: impl Iterator<Item = usize> + Clone) -> Kind {
        let any = |test: fn(&Value) -> bool| arguments.clone().any(|at| self.get(at).is_some_and(test));
        if any(|value| matches!(value, Value::XorLayout(_))) {
            Kind::Xor
        } else if any(|value| matches!(value, Value::StepLayout(_))) {
            Kind::Step
        } else if any(is_symbolic) {
            Kind::Symbol
        } else {
            Kind::Integer
        }
    }

    /// The first argument, for an operation by a map.
    fn whole(&self) -> Result<Whole, Fault> {
        match self.get(0) {
            Some(Value::XorLayout(layout)) => Ok(Whole::Xor(layout.clone())),
            _ => Ok(Whole::Map(self.composed(0)?)),
        }
    }

    /// The first argument as a map and the second as a tiler for it.
    pub(crate) fn tiled(&self) -> Result<Tiled<'a>, Fault> {
        let tiler = self.get(1);
        if tiler.is_some_and(|value| matches!(value, Value::StepLayout(_) | Value::StepTiler(_)) || lists_steps(value))
        {
            let tiler = self.as_tiler(1, step_tiler_of)?;
            return Ok(match self.get(0) {
                Some(Value::StepComposed(map)) => Tiled::PickedStepComposed(map, tiler),
                Some(Value::XorLayout(layout)) => match kinds::retiled(&tiler, &kinds::known_steps) {
                    Some(tiler) => Tiled::PickedXor(layout, tiler),
                    None => return self.kind(1, "a tiler whose numbers are known"),
                },
                _ if self.is_composed(0) => Tiled::PickedComposed(self.symbol_composed(0)?, tiler),
                _ => Tiled::Picked(self.step_layout(0)?, tiler),
            });
        }
        if self.is_map_of_bits(1) {
            return Ok(Tiled::Mapped(self.whole()?, self.composed(1)?));
        }
        match self.get(0) {
            Some(Value::Composed(map)) => match self.tiler(1) {
                Ok(tiler) => Ok(Tiled::Composed(map, tiler)),
                Err(_) => Ok(Tiled::SymbolComposed(kinds::symbolic_composed(map)?, self.symbol_tiler(1)?)),
            },
            Some(Value::SymbolComposed(map)) => Ok(Tiled::SymbolComposed((**map).clone(), self.symbol_tiler(1)?)),
            Some(Value::StepComposed(map)) => Ok(Tiled::StepComposed(map, self.symbol_tiler(1)?)),
            Some(Value::XorLayout(layout)) => Ok(Tiled::Xor(Cow::Borrowed(layout), self.tiler(1)?)),
            Some(Value::StepLayout(layout)) => Ok(Tiled::Step((**layout).clone(), self.symbol_tiler(1)?)),
            first => {
                if first.is_some_and(is_symbolic) || tiler.is_some_and(is_symbolic) {
                    return Ok(Tiled::Symbol(self.symbol_layout(0)?, self.symbol_tiler(1)?));
                }
                Ok(Tiled::Integer(self.layout(0)?, self.tiler(1)?))
            }
        }
    }

    /// The first argument as a map and the second as a layout of its indices.
    pub(crate) fn arranged(&self) -> Result<Arranged<'a>, Fault> {
        if let Some(Value::StepLayout(by)) = self.get(1) {
            let by = (**by).clone();
            return Ok(match self.get(0) {
                Some(Value::StepComposed(map)) => Arranged::PickedStepComposed(map, by),
                Some(Value::XorLayout(layout)) => match kinds::known_steps(&by) {
                    Some(by) => Arranged::PickedXor(layout, by),
                    None => return self.kind(1, "a layout whose numbers are known"),
                },
                _ if self.is_composed(0) => Arranged::PickedComposed(self.symbol_composed(0)?, by),
                _ => Arranged::Picked(self.step_layout(0)?, by),
            });
        }
        if self.is_map_of_bits(1) {
            return Ok(Arranged::Mapped(self.whole()?, self.composed(1)?));
        }
        match self.get(0) {
            Some(Value::StepComposed(map)) => Ok(Arranged::StepComposed(map, self.symbol_layout(1)?)),
            Some(Value::Composed(map)) => match self.layout(1) {
                Ok(layout) => Ok(Arranged::Composed(map, layout)),
                Err(_) => Ok(Arranged::SymbolComposed(kinds::symbolic_composed(map)?, self.symbol_layout(1)?)),
            },
            Some(Value::SymbolComposed(map)) => Ok(Arranged::SymbolComposed((**map).clone(), self.symbol_layout(1)?)),
            Some(Value::XorLayout(layout)) => Ok(Arranged::Xor(Cow::Borrowed(layout), self.layout(1)?)),
            Some(Value::StepLayout(layout)) => Ok(Arranged::Step((**layout).clone(), self.symbol_layout(1)?)),
            first => {
                if first.is_some_and(is_symbolic) || self.get(1).is_some_and(is_symbolic) {
                    return Ok(Arranged::Symbol(self.symbol_layout(0)?, self.symbol_layout(1)?));
                }
                Ok(Arranged::Integer(self.layout(0)?, self.layout(1)?))
            }
        }
    }

    /// A number or a tuple of numbers.
    pub(crate) fn tree(&self, argument: usize) -> Result<Tree<i64>, Fault> {
        match self.get(argument).and_then(number_tree) {
            Some(tree) => Ok(tree),
            None => self.kind(argument, "an integer or a tuple of integers"),
        }
    }

    /// A number or a tuple of numbers that may not be known.
    pub(crate) fn symbol_tree(&self, argument: usize) -> Result<Tree<Expr>, Fault> {
        match self.get(argument).and_then(symbol_tree) {
            Some(tree) => Ok(tree),
            None => self.kind(argument, "a number or a tuple of numbers"),
        }
    }

    /// Two tuples, as tuples of one kind; none when one is no tuple.
    pub(crate) fn trees(&self, first: usize, second: usize) -> Option<Trees> {
        let (first, second) = (self.get(first)?, self.get(second)?);
        if let (Some(a), Some(b)) = (number_tree(first), number_tree(second)) {
            return Some(Trees::Integer(a, b));
        }
        if let (Some(a), Some(b)) = (symbol_tree(first), symbol_tree(second)) {
            return Some(Trees::Symbol(a, b));
        }
        if let (Some(a), Some(b)) = (step_tree(first), step_tree(second)) {
            return Some(Trees::Step(a, b));
        }
        Some(Trees::Xor(xor_tree(first)?, xor_tree(second)?))
    }

    /// The shape that an argument is or has, of known numbers.
    pub(crate) fn shape(&self, argument: usize) -> Result<Tree<i64>, Fault> {
        match self.get(argument) {
            Some(Value::Layout(layout)) => Ok(layout.shape()),
            Some(Value::XorLayout(layout)) => Ok(layout.shape()),
            Some(Value::Composed(composed)) => Ok(composed.shape()),
            Some(value) => match number_tree(value).or_else(|| kinds::known_tree(&symbol_shape(value)?)) {
                Some(tree) => Ok(tree),
                None if symbol_shape(value).is_some() => self.kind(argument, "a shape whose extents are known"),
                None => self.kind(argument, "a shape or a layout"),
            },
            None => self.kind(argument, "a shape or a layout"),
        }
    }

    /// The shape that an argument is or has, of numbers that may not be known.
    pub(crate) fn symbol_shape(&self, argument: usize) -> Result<Tree<Expr>, Fault> {
        match self.get(argument).and_then(symbol_shape) {
            Some(tree) => Ok(tree),
            None => self.kind(argument, "a shape or a layout"),
        }
    }

    /// Two shapes, known or both as numbers that may not be.
    pub(crate) fn shapes(&self, first: usize, second: usize) -> Result<Trees, Fault> {
        let open =
            |value: &Value| matches!(value, Value::StepLayout(_) | Value::SymbolComposed(_) | Value::StepComposed(_));
        let known = |argument: usize| self.get(argument).is_some_and(|value| !is_symbolic(value) && !open(value));
        if known(first) && known(second) {
            return Ok(Trees::Integer(self.shape(first)?, self.shape(second)?));
        }
        Ok(Trees::Symbol(self.symbol_shape(first)?, self.symbol_shape(second)?))
    }

    /// How an argument nests.
    pub(crate) fn profile(&self, argument: usize) -> Result<Profile, Fault> {
        match self.get(argument) {
            Some(Value::StepTree(tree)) => Ok(tree.profile().clone()),
            Some(Value::XorTree(tree)) => Ok(tree.profile().clone()),
            _ => self.symbol_shape(argument).map(|shape| shape.profile().clone()),
        }
    }

    /// A coordinate.
    pub(crate) fn coord(&self, argument: usize) -> Result<Coord, Fault> {
        match self.get(argument).and_then(coordinate) {
            Some(coord) => Ok(coord),
            None => self.kind(argument, "a coordinate"),
        }
    }

    /// A coordinate of numbers that may not be known.
    pub(crate) fn symbol_coord(&self, argument: usize) -> Result<Coord<Expr>, Fault> {
        match self.get(argument).and_then(symbol_coordinate) {
            Some(coord) => Ok(coord),
            None => self.kind(argument, "a coordinate"),
        }
    }

    /// A coordinate without `_`.
    pub(crate) fn indices(&self, argument: usize) -> Result<Tree<i64>, Fault> {
        match self.get(argument).and_then(number_tree) {
            Some(tree) => Ok(tree),
            None => self.kind(argument, "a coordinate without _"),
        }
    }

    /// A tiler: a layout, one for each mode, a shape by mode, or `_`.
    pub(crate) fn tiler(&self, argument: usize) -> Result<Cow<'a, Tiler>, Fault> {
        match self.get(argument) {
            Some(Value::Tiler(tiler)) => Ok(Cow::Borrowed(tiler)),
            _ => self.as_tiler(argument, tiler_of).map(Cow::Owned),
        }
    }

    /// A tiler whose numbers may not be known.
    pub(crate) fn symbol_tiler(&self, argument: usize) -> Result<Tiler<Expr>, Fault> {
        self.as_tiler(argument, symbol_tiler_of)
    }

    fn as_tiler<T>(&self, argument: usize, read: fn(&Value) -> Option<Result<T, LayoutError>>) -> Result<T, Fault> {
        match self.get(argument).and_then(read) {
            Some(tiler) => tiler.map_err(|error| Fault::At(argument, error)),
            None => self.kind(argument, "a tiler"),
        }
    }

    /// Whether the argument is a map from coordinates, not a number or a tuple.
    pub(crate) fn is_map(&self, argument: usize) -> bool {
        self.get(argument).is_some_and(is_map)
    }

    /// An integer.
    pub(crate) fn int(&self, argument: usize) -> Result<i64, Fault> {
        match self.get(argument) {
            Some(Value::Int(value)) => Ok(*value),
            _ => self.kind(argument, "an integer"),
        }
    }

    /// A mode number or a count of modes.
    pub(crate) fn mode(&self, argument: usize) -> Result<usize, Fault> {
        let value = self.int(argument)?;
        self.natural(argument, value)
    }

    fn natural(&self, argument: usize, value: i64) -> Result<usize, Fault> {
        usize::try_from(value).map_err(|_| {
            let wanted = "0 or more";
            Fault::At(argument, LayoutError::Argument { op: self.function, what: "the mode", value, wanted })
        })
    }

    /// Mode numbers: the arguments from `first` on, or one tuple of them.
    pub(crate) fn modes(&self, first: usize) -> Result<Vec<usize>, Fault> {
        if let (Some(Value::Tree(tree)), true) = (self.get(first), self.len() == first + 1) {
            return tree.leaves().iter().map(|mode| self.natural(first, *mode)).collect();
        }
        (first..self.len()).map(|argument| self.mode(argument)).collect()
    }
}

/// Whether a value is a map from coordinates.
pub(crate) fn is_map(value: &Value) -> bool {
    matches!(
        value,
        Value::Layout(_)
            | Value::SymbolLayout(_)
            | Value::StepLayout(_)
            | Value::XorLayout(_)
            | Value::Composed(_)
            | Value::SymbolComposed(_)
            | Value::StepComposed(_)
    )
}

/// Whether a value has a number that is not known.
pub(crate) fn is_symbolic(value: &Value) -> bool {
    match value {
        Value::Symbol(_)
        | Value::SymbolTree(_)
        | Value::SymbolCoord(_)
        | Value::SymbolLayout(_)
        | Value::SymbolTiler(_) => true,
        Value::List(values) => values.iter().any(is_symbolic),
        _ => false,
    }
}

/// Whether a list has coordinate layouts in it.
fn lists_steps(value: &Value) -> bool {
    match value {
        Value::StepLayout(_) | Value::StepTiler(_) => true,
        Value::List(values) => values.iter().any(lists_steps),
        _ => false,
    }
}

/// The shape that a value is or has.
pub(crate) fn symbol_shape(value: &Value) -> Option<Tree<Expr>> {
    match value {
        Value::Layout(layout) => Some(kinds::symbolic_tree(&layout.shape())),
        Value::XorLayout(layout) => Some(kinds::symbolic_tree(&layout.shape())),
        Value::Composed(map) => Some(kinds::symbolic_tree(&map.shape())),
        Value::SymbolLayout(layout) => Some(layout.shape()),
        Value::StepLayout(layout) => Some(layout.shape()),
        Value::SymbolComposed(map) => Some(map.shape()),
        Value::StepComposed(map) => Some(map.shape()),
        _ => symbol_tree(value),
    }
}

fn compact<'a>(argument: usize, shape: &Tree<i64>) -> Result<Cow<'a, Layout>, Fault> {
    match Layout::compact(shape) {
        Ok(layout) => Ok(Cow::Owned(layout)),
        Err(error) => Err(Fault::At(argument, error)),
    }
}
