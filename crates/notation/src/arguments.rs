//! Arguments of a function, converted to the kind of value that the function needs.
//!
//! Arguments are converted in the same way everywhere: if a layout is needed, a shape becomes its
//! compact layout; if a tiler is needed, a shape tiles by mode; if a coordinate is needed, a tuple
//! of numbers is one. Several arguments are converted to a common kind, and a result has the most
//! special kind that can represent it ([`AnyLayout`]).

use std::borrow::Cow;

use tilewright_layout::atoms::AtomError;
use tilewright_layout::morphism::MorphismError;
use tilewright_layout::symbolic::{Expr, Symbolic};
use tilewright_layout::{AnyCoord, AnyLayout, AnyTiler, AnyTree, Layout, LayoutError, Profile, RefusedOperand, Tree};

use crate::reading::{any_tree, compact, coordinate, integer_tree, launch_tree, tiler_of};
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
    /// One argument is wrong independently of the others; the error is about it.
    At(usize, LayoutError),
    /// One argument is of the wrong kind.
    Kind {
        /// The index of the argument.
        argument: usize,
        /// The expected kind, in words.
        wanted: &'static str,
    },
}

impl From<LayoutError> for Fault {
    fn from(error: LayoutError) -> Fault {
        match error {
            LayoutError::Kind { operand, wanted, .. } => {
                Fault::Kind { argument: usize::from(operand == RefusedOperand::Second), wanted }
            }
            error => Fault::Refused(error),
        }
    }
}

impl From<MorphismError> for Fault {
    fn from(error: MorphismError) -> Fault {
        match error {
            MorphismError::Layout(error) => error.into(),
            error => Fault::Morphism(error),
        }
    }
}

/// The arguments of one call.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    /// The name of the function, for errors.
    pub(crate) function: &'static str,
    pub(crate) values: Values<'a>,
}

/// Borrowed values: a slice, or one reference for each value, as the bindings for another language
/// have them. Neither copies a value.
#[derive(Clone, Copy)]
pub(crate) enum Values<'a> {
    Beside(&'a [Value]),
    Each(&'a [&'a Value]),
}

impl<'a> Values<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Values::Beside(values) => values.len(),
            Values::Each(values) => values.len(),
        }
    }

    pub(crate) fn get(self, number: usize) -> Option<&'a Value> {
        match self {
            Values::Beside(values) => values.get(number),
            Values::Each(values) => values.get(number).copied(),
        }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = &'a Value> {
        (0..self.len()).filter_map(move |number| self.get(number))
    }
}

impl<'a, T: AsRef<[Value]> + ?Sized> From<&'a T> for Values<'a> {
    fn from(values: &'a T) -> Values<'a> {
        Values::Beside(values.as_ref())
    }
}

/// A layout or a tuple: a value whose modes can be rearranged.
pub(crate) enum Nested<'a> {
    Layout(Cow<'a, AnyLayout>),
    Tree(Cow<'a, AnyTree>),
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

    /// The value found at an argument; if it is `None`, the fault that another kind is wanted
    /// there.
    pub(crate) fn wanted<T>(&self, argument: usize, found: Option<T>, wanted: &'static str) -> Result<T, Fault> {
        found.ok_or(Fault::Kind { argument, wanted })
    }

    /// A word: a name to which no value is bound.
    pub(crate) fn word(&self, argument: usize) -> Option<String> {
        let Some(Value::Tree(AnyTree::Launch(name))) = self.get(argument) else { return None };
        let [name] = name.leaves() else { return None };
        match name.parameters().as_slice() {
            [parameter] if Expr::from(parameter.clone()) == *name => parameter.name().map(str::to_owned),
            _ => None,
        }
    }

    /// A layout of any kind; a shape means its compact layout.
    pub(crate) fn layout(&self, argument: usize) -> Result<Cow<'a, AnyLayout>, Fault> {
        match self.get(argument) {
            Some(Value::Layout(layout)) => Ok(Cow::Borrowed(layout)),
            value => match value.and_then(any_tree).and_then(|shape| compact(&shape)) {
                Some(Ok(layout)) => Ok(Cow::Owned(layout)),
                Some(Err(error)) => Err(Fault::At(argument, error)),
                None => self.kind(argument, "a layout"),
            },
        }
    }

    /// An integer layout; a shape means its compact layout.
    pub(crate) fn integer_layout(&self, argument: usize) -> Result<Cow<'a, Layout>, Fault> {
        match self.layout(argument)? {
            Cow::Borrowed(layout) => match layout.integers() {
                Ok(layout) => Ok(Cow::Borrowed(layout)),
                Err(error) => Err(at(argument, error)),
            },
            Cow::Owned(AnyLayout::Integer(layout)) => Ok(Cow::Owned(layout)),
            Cow::Owned(_) => self.kind(argument, "a layout whose numbers are known"),
        }
    }

    /// A layout or a tuple of any kind; neither is converted to the other.
    pub(crate) fn nested(&self, argument: usize) -> Result<Nested<'a>, Fault> {
        match self.get(argument) {
            Some(Value::Layout(layout)) => Ok(Nested::Layout(Cow::Borrowed(layout))),
            value => match value.and_then(any_tree) {
                Some(tree) => Ok(Nested::Tree(tree)),
                None => self.kind(argument, "a layout or a tuple"),
            },
        }
    }

    /// Whether an argument is a composed layout, or a layout of bit vectors.
    pub(crate) fn is_map_of_bits(&self, argument: usize) -> bool {
        matches!(self.get(argument), Some(Value::Layout(layout)) if layout.is_map_of_bits())
    }

    /// A number, a step or a tuple.
    pub(crate) fn any_tree(&self, argument: usize) -> Result<Cow<'a, AnyTree>, Fault> {
        self.wanted(argument, self.get(argument).and_then(any_tree), "a number or a tuple of numbers")
    }

    /// A number or a tuple of numbers, without parameters.
    pub(crate) fn integer_tree(&self, argument: usize) -> Result<Tree<i64>, Fault> {
        self.wanted(argument, self.get(argument).and_then(integer_tree), "an integer or a tuple of integers")
    }

    /// A number or a tuple of numbers, which may contain parameters.
    pub(crate) fn launch_tree(&self, argument: usize) -> Result<Tree<Expr>, Fault> {
        self.wanted(argument, self.get(argument).and_then(launch_tree), "a number or a tuple of numbers")
    }

    /// Two tuples of numbers.
    pub(crate) fn tuples(&self, first: usize, second: usize) -> Result<Numbers, Fault> {
        let found = numbers(&*self.any_tree(first)?, &*self.any_tree(second)?);
        self.wanted(first, found, "a number or a tuple of numbers")
    }

    /// The argument as a shape, or its shape.
    pub(crate) fn shape(&self, argument: usize) -> Result<Cow<'a, AnyTree>, Fault> {
        self.wanted(argument, self.get(argument).and_then(shape_of), "a shape or a layout")
    }

    /// The argument as a shape, or its shape, without parameters.
    pub(crate) fn integer_shape(&self, argument: usize) -> Result<Tree<i64>, Fault> {
        match &*self.shape(argument)? {
            AnyTree::Integer(shape) => Ok(shape.clone()),
            AnyTree::Launch(_) => self.kind(argument, "a shape whose extents are known"),
            _ => self.kind(argument, "a shape or a layout"),
        }
    }

    /// The argument as a shape, or its shape, which may contain parameters.
    pub(crate) fn launch_shape(&self, argument: usize) -> Result<Tree<Expr>, Fault> {
        self.wanted(argument, self.shape(argument)?.launch(), "a shape or a layout")
    }

    /// Two shapes.
    pub(crate) fn shapes(&self, first: usize, second: usize) -> Result<Numbers, Fault> {
        self.wanted(first, numbers(&*self.shape(first)?, &*self.shape(second)?), "a shape or a layout")
    }

    /// The nesting of an argument.
    pub(crate) fn profile(&self, argument: usize) -> Result<Profile, Fault> {
        match self.nested(argument) {
            Ok(Nested::Layout(layout)) => Ok(layout.profile().clone()),
            Ok(Nested::Tree(tree)) => Ok(tree.profile().clone()),
            Err(_) => self.kind(argument, "a shape or a layout"),
        }
    }

    /// The argument as a coordinate.
    pub(crate) fn coord(&self, argument: usize) -> Result<AnyCoord, Fault> {
        self.wanted(argument, self.get(argument).and_then(coordinate), "a coordinate")
    }

    /// A tiler: a layout, one for each mode, a shape by mode, or `_`.
    pub(crate) fn tiler(&self, argument: usize) -> Result<Cow<'a, AnyTiler>, Fault> {
        match self.get(argument) {
            Some(Value::Tiler(tiler)) => Ok(Cow::Borrowed(tiler)),
            value => match value.and_then(tiler_of) {
                Some(Ok(tiler)) => Ok(Cow::Owned(tiler)),
                Some(Err(error)) => Err(Fault::At(argument, error)),
                None => self.kind(argument, "a tiler"),
            },
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
        if let (Some(Value::Tree(AnyTree::Integer(tree))), true) = (self.get(first), self.len() == first + 1) {
            return tree.leaves().iter().map(|mode| self.natural(first, *mode)).collect();
        }
        (first..self.len()).map(|argument| self.mode(argument)).collect()
    }
}

/// Two tuples of numbers of one kind.
pub(crate) enum Numbers {
    Integer(Tree<i64>, Tree<i64>),
    Launch(Tree<Expr>, Tree<Expr>),
}

/// Two tuples as tuples of numbers of the same kind; None for steps.
fn numbers(first: &AnyTree, second: &AnyTree) -> Option<Numbers> {
    match (first, second) {
        (AnyTree::Integer(a), AnyTree::Integer(b)) => Some(Numbers::Integer(a.clone(), b.clone())),
        (a, b) => Some(Numbers::Launch(a.launch()?, b.launch()?)),
    }
}

/// The fault of an operation whose first operand is the argument with this index.
pub(crate) fn at(argument: usize, error: LayoutError) -> Fault {
    match error {
        LayoutError::Kind { wanted, .. } => Fault::Kind { argument, wanted },
        error => Fault::At(argument, error),
    }
}

/// The fault of an operation whose operands are the arguments with these indices.
pub(crate) fn among(first: usize, second: usize) -> impl Fn(LayoutError) -> Fault {
    move |error| match error {
        LayoutError::Kind { operand, wanted, .. } => {
            Fault::Kind { argument: if operand == RefusedOperand::First { first } else { second }, wanted }
        }
        error => Fault::Refused(error),
    }
}

/// Whether a value is a map from coordinates.
pub(crate) fn is_map(value: &Value) -> bool {
    matches!(value, Value::Layout(_))
}

/// The value as a shape, or its shape.
pub(crate) fn shape_of(value: &Value) -> Option<Cow<'_, AnyTree>> {
    match value {
        Value::Layout(layout) => Some(Cow::Owned(layout.shape())),
        value => any_tree(value),
    }
}
