//! Arguments of a function, read as what the function needs.
//!
//! The rules of reading are the same everywhere: where a layout is needed, a shape stands for its compact layout; where a
//! tiler is needed, a shape tiles by mode; where a coordinate is needed, a tuple of numbers is one.

use std::borrow::Cow;

use tilewright_layout::{Coord, Layout, LayoutError, Tiler, Tree};

use crate::value::{Value, coordinate, number_tree, tiler_of};

/// Why a function did not return a value.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The operation refused; the operands of the error are the arguments.
    Refused(LayoutError),
    /// One argument is wrong on its own account; the error is about it.
    At(usize, LayoutError),
    /// The answer needs what only a later version computes with: what, and that it is part of the notation.
    Later(&'static str, &'static str),
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

    /// A layout; a shape stands for its compact layout.
    pub(crate) fn layout(&self, argument: usize) -> Result<Cow<'a, Layout>, Fault> {
        match self.get(argument) {
            Some(Value::Layout(layout)) => Ok(Cow::Borrowed(layout)),
            Some(Value::Int(extent)) => compact(argument, &Tree::leaf(*extent)),
            Some(Value::Tree(shape)) => compact(argument, shape),
            _ => self.kind(argument, "a layout"),
        }
    }

    /// A number or a tuple of numbers.
    pub(crate) fn tree(&self, argument: usize) -> Result<Tree<i64>, Fault> {
        match self.get(argument).and_then(number_tree) {
            Some(tree) => Ok(tree),
            None => self.kind(argument, "an integer or a tuple of integers"),
        }
    }

    /// The shape that an argument is or has.
    pub(crate) fn shape(&self, argument: usize) -> Result<Tree<i64>, Fault> {
        match self.get(argument) {
            Some(Value::Layout(layout)) => Ok(layout.shape()),
            Some(Value::Composed(composed)) => Ok(composed.shape()),
            Some(value) => match number_tree(value) {
                Some(tree) => Ok(tree),
                None => self.kind(argument, "a shape or a layout"),
            },
            None => self.kind(argument, "a shape or a layout"),
        }
    }

    /// A coordinate.
    pub(crate) fn coord(&self, argument: usize) -> Result<Coord, Fault> {
        match self.get(argument).and_then(coordinate) {
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
            Some(value) => match tiler_of(value) {
                Some(tiler) => tiler.map(Cow::Owned).map_err(|error| Fault::At(argument, error)),
                None => self.kind(argument, "a tiler"),
            },
            None => self.kind(argument, "a tiler"),
        }
    }

    /// The size of a number, a shape or a layout.
    pub(crate) fn size(&self, argument: usize) -> Result<i64, Fault> {
        self.shape(argument)?.product().map_err(|error| Fault::At(argument, error))
    }

    /// Whether the argument is a map from coordinates, not a number or a tuple.
    pub(crate) fn is_map(&self, argument: usize) -> bool {
        matches!(self.get(argument), Some(Value::Layout(_) | Value::Composed(_)))
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

fn compact<'a>(argument: usize, shape: &Tree<i64>) -> Result<Cow<'a, Layout>, Fault> {
    match Layout::compact(shape) {
        Ok(layout) => Ok(Cow::Owned(layout)),
        Err(error) => Err(Fault::At(argument, error)),
    }
}
