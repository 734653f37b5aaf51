//! The functions of the language, each with its documentation.
//!
//! There is one table. Evaluation, help and tests use the same entries, so they cannot disagree.

mod algebra;
mod bits;
mod comparing;
mod coordinates;
mod linear;
mod making;
mod morphism_predicates;
mod morphisms;
mod numbers;
mod partitions;
mod predicates;
mod spans;
mod structure;
mod threads;
mod tiled;
mod tiling;

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use tilewright_layout::{OuterMap, Tree};

use crate::arguments::{Arguments, Fault, is_map};
use crate::reading::coordinate;
use crate::value::Value;

pub(crate) use algebra::{chained, compose, composed};
pub(crate) use linear::of_linear;
pub(crate) use morphisms::of_morphism;
pub(crate) use numbers::{Unfit, quotient};
pub(crate) use structure::get;

/// No upper limit on the number of arguments.
pub(crate) const MANY: usize = usize::MAX;

/// A function of the language.
///
/// ```
/// use tilewright_notation::{Environment, evaluate, functions};
///
/// for function in functions() {
///     let value = evaluate(function.example, &mut Environment::new()).unwrap();
///     assert_eq!(value.to_string(), function.result, "{}", function.name);
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Function {
    /// The name it is called by.
    pub name: &'static str,
    /// How it is called: `size(A, mode...)`.
    pub signature: &'static str,
    /// The result, as a sentence without a full stop.
    pub summary: &'static str,
    /// An expression that calls it.
    pub example: &'static str,
    /// The value of the example.
    pub result: &'static str,
    /// The heading in the help under which it is listed.
    pub section: &'static str,
    /// The smallest number of arguments.
    pub(crate) least: usize,
    /// The largest number of arguments.
    pub(crate) most: usize,
    pub(crate) run: Run,
}

/// The implementation of a function.
pub(crate) type Run = fn(Arguments<'_>) -> Result<Value, Fault>;

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.signature)
    }
}

/// The documentation of a function, without its implementation.
pub(crate) struct Row {
    signature: &'static str,
    summary: &'static str,
    example: &'static str,
    result: &'static str,
}

/// The row of a function with this signature and this description of its result.
const fn function(signature: &'static str, summary: &'static str) -> Row {
    Row { signature, summary, example: "", result: "" }
}

impl Row {
    /// Adds an example call and its value to the row.
    const fn example(self, example: &'static str, result: &'static str) -> Row {
        Row { example, result, ..self }
    }

    /// The function with this row's documentation and this implementation, which takes this many
    /// arguments. [`SECTIONS`] has the heading.
    const fn run(self, arguments: RangeInclusive<usize>, run: Run) -> Function {
        let Row { signature, summary, example, result } = self;
        let (least, most) = (*arguments.start(), *arguments.end());
        let mut end = 0;
        while end < signature.len() && signature.as_bytes()[end] != b'(' {
            end += 1;
        }
        let name = signature.split_at(end).0;
        Function { name, signature, summary, example, result, section: "", least, most, run }
    }
}

/// The functions under each heading.
const SECTIONS: &[(&str, &[Function])] = &[
    ("Size and structure", structure::QUESTIONS),
    ("Modes", structure::MODES),
    ("Making layouts", making::MAKING),
    ("Coordinates and slices", coordinates::COORDINATES),
    ("Simplifying", algebra::SIMPLIFYING),
    ("Composition, complement, inverses", algebra::ALGEBRA),
    ("Element width", algebra::WIDTH),
    ("Division", tiling::DIVISION),
    ("Product", tiling::PRODUCT),
    ("Threads and vectors", threads::THREADS),
    ("Tiles of blocks and parts of threads", tiled::PARTS),
    ("Tiles of blocks and parts of threads", partitions::PARTS),
    ("Bits", bits::BITS),
    ("Linear layouts", linear::LINEAR),
    ("Numbers in tuples", numbers::NUMBERS),
    ("Common shapes", numbers::SHAPES),
    ("Equality and fit", comparing::EQUALITY),
    ("Orders of coordinates", comparing::ORDER),
    ("Properties", predicates::PREDICATES),
    ("Morphisms", morphisms::MORPHISMS),
    ("Morphisms", morphism_predicates::MORPHISMS),
    ("Refinements and spans", spans::SPANS),
];

static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let below = |(section, rows): &(&'static str, &'static [Function])| {
        let section = *section;
        rows.iter().map(move |row| Function { section, ..*row })
    };
    SECTIONS.iter().flat_map(below).collect()
});

/// The index of each function, by name.
static BY_NAME: LazyLock<Vec<(&'static str, usize)>> = LazyLock::new(|| {
    let mut names: Vec<_> = FUNCTIONS.iter().enumerate().map(|(at, function)| (function.name, at)).collect();
    names.sort_unstable();
    names
});

/// All functions, by section.
pub fn functions() -> &'static [Function] {
    &FUNCTIONS
}

/// The function with this name.
///
/// ```
/// assert_eq!(tilewright_notation::function("size").unwrap().signature, "size(A, mode...)");
/// ```
pub fn find(name: &str) -> Option<&'static Function> {
    let at = BY_NAME.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    FUNCTIONS.get(BY_NAME.get(at)?.1)
}

/// The implementation for a first argument: morphisms and linear layouts have operations of their
/// own under the same names.
pub(crate) fn of_first(function: &Function, first: Option<&Value>) -> Run {
    match first {
        Some(Value::Morphism(_)) => of_morphism(function.name).unwrap_or(function.run),
        Some(Value::Linear(_)) => of_linear(function.name).unwrap_or(function.run),
        _ => function.run,
    }
}

/// The result of an operation that layouts and tuples share.
macro_rules! nested {
    ($a:expr, $x:ident => $result:expr) => {
        match $a.nested(0)? {
            $crate::arguments::Nested::Layout($x) => Ok($result.into()),
            $crate::arguments::Nested::Tree($x) => Ok($result.into()),
        }
    };
}

/// The result of an operation that layouts and tuples share, on the first argument and another.
macro_rules! nested_with {
    ($a:expr, $argument:expr, ($x:ident, $y:ident) => $result:expr) => {
        match ($a.nested(0)?, $a.nested($argument)?) {
            ($crate::arguments::Nested::Tree($x), $crate::arguments::Nested::Tree($y)) => {
                Ok($result.map_err($crate::arguments::among(0, $argument))?.into())
            }
            _ => {
                let ($x, $y) = ($a.layout(0)?, $a.layout($argument)?);
                Ok($result.map_err($crate::arguments::among(0, $argument))?.into())
            }
        }
    };
}

/// The result of an operation on a tuple of numbers, with or without parameters.
macro_rules! numeric {
    ($a:expr, $numbers:expr, ($x:ident, $y:ident) => $result:expr) => {
        match $numbers {
            $crate::arguments::Numbers::Integer($x, $y) => Ok($result.into()),
            $crate::arguments::Numbers::Launch($x, $y) => Ok($result.into()),
        }
    };
    ($a:expr, $argument:expr, $shape:ident => $result:expr) => {
        match $a.integer_shape($argument) {
            Ok($shape) => Ok($result.into()),
            Err(_) => {
                let $shape = $a.launch_shape($argument)?;
                Ok($result.into())
            }
        }
    };
}

pub(crate) use {nested, nested_with, numeric};

/// The value of a map at a coordinate, or its slice if the coordinate has a `_`; None if the value
/// is not a map.
pub(crate) fn apply(map: &Value, coord: &Value) -> Option<Result<Value, Fault>> {
    if let Value::Morphism(f) = map {
        return Some(morphisms::realised(f, coord));
    }
    if !is_map(map) && !matches!(map, Value::Swizzle(_) | Value::Matrix(_) | Value::Linear(_)) {
        return None;
    }
    Some(applied(map, coord))
}

fn applied(map: &Value, coord: &Value) -> Result<Value, Fault> {
    let place = coordinate(coord).ok_or(Fault::Kind { argument: 1, wanted: "a coordinate" })?;
    let indices = place.indices();
    if let Value::Layout(layout) = map {
        return match indices {
            Some(indices) => Ok(layout.eval_at(&indices)?.into()),
            None => Ok(layout.slice(&place)?.into()),
        };
    }
    let known = indices.as_ref().and_then(|indices| indices.integer());
    match (map, known.map(Tree::leaves)) {
        (Value::Matrix(matrix), Some([index])) => Ok(OuterMap::from(matrix.clone()).eval(index)?.into()),
        (Value::Swizzle(swizzle), Some([offset])) => Ok(swizzle.apply(*offset).into()),
        (Value::Linear(map), Some(indices)) => linear::apply(map, indices),
        (Value::Matrix(_), _) if indices.is_some() => {
            Err(Fault::Kind { argument: 1, wanted: "an integer, for a bit matrix" })
        }
        (Value::Swizzle(_), _) if indices.is_some() => {
            Err(Fault::Kind { argument: 1, wanted: "an integer, for a swizzle" })
        }
        (Value::Linear(_), _) if indices.is_some() => {
            Err(Fault::Kind { argument: 1, wanted: "known indices, for a linear layout" })
        }
        _ => Err(Fault::Kind { argument: 1, wanted: "a coordinate whose indices are known" }),
    }
}
