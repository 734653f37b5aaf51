//! The functions of the language, each with its documentation.
//!
//! There is one table. What a program can call, what the help lists and what the tests run are the same entries, so they
//! cannot disagree.

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
mod tiling;

use std::sync::LazyLock;

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, OuterMap, Tree, Xor};

use crate::arguments::{Arguments, Fault, is_map};
use crate::kinds::{self, Step, known_tree};
use crate::reading::{coordinate, symbol_coordinate};
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
    /// What it returns, in a sentence without a full stop.
    pub summary: &'static str,
    /// An expression that calls it.
    pub example: &'static str,
    /// The value of the example.
    pub result: &'static str,
    /// The heading it belongs under.
    pub section: &'static str,
    /// The fewest arguments.
    pub(crate) least: usize,
    /// The most arguments.
    pub(crate) most: usize,
    pub(crate) run: fn(Arguments<'_>) -> Result<Value, Fault>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.signature)
    }
}

static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    [
        structure::FUNCTIONS,
        making::FUNCTIONS,
        coordinates::FUNCTIONS,
        algebra::FUNCTIONS,
        tiling::FUNCTIONS,
        threads::FUNCTIONS,
        partitions::FUNCTIONS,
        bits::FUNCTIONS,
        linear::FUNCTIONS,
        numbers::FUNCTIONS,
        comparing::FUNCTIONS,
        predicates::FUNCTIONS,
        morphisms::FUNCTIONS,
        morphism_predicates::FUNCTIONS,
        spans::FUNCTIONS,
    ]
    .concat()
});

/// Where each function stands, by name.
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
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    let at = BY_NAME.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    FUNCTIONS.get(BY_NAME.get(at)?.1)
}

/// The result of an operation on the first argument, whatever kind of map it is.
macro_rules! mapped {
    ($a:expr, $map:ident => $result:expr) => {
        match $a.map(0)? {
            $crate::arguments::Map::Integer($map) => Ok($result.into()),
            $crate::arguments::Map::Symbol($map) => Ok($result.into()),
            $crate::arguments::Map::Step($map) => Ok($result.into()),
            $crate::arguments::Map::Xor($map) => Ok($result.into()),
            $crate::arguments::Map::Composed($map) => Ok($result.into()),
            $crate::arguments::Map::SymbolComposed($map) => Ok($result.into()),
            $crate::arguments::Map::StepComposed($map) => Ok($result.into()),
        }
    };
    ($a:expr, $($kind:ident)|+, $map:ident => $result:expr) => {
        match $a.map_of_indices(0)? {
            $($crate::arguments::Map::$kind($map) => Ok($result.into()),)+
            _ => $a.kind(0, "a layout of another kind"),
        }
    };
}

/// The result of an operation on the first argument, a map, and the second, a tiler for it.
macro_rules! tiled {
    ($a:expr, ($map:ident, $tiler:ident) => $result:expr) => {
        match $a.tiled()? {
            $crate::arguments::Tiled::PickedComposed($map, $tiler) => Ok($result.into()),
            $crate::arguments::Tiled::PickedStepComposed($map, $tiler) => Ok($result.into()),
            tiled => $crate::functions::tiled!($a, tiled, ($map, $tiler) => $result),
        }
    };
    ($a:expr, $tiled:expr, ($map:ident, $tiler:ident) => $result:expr) => {
        match $tiled {
            $crate::arguments::Tiled::Integer($map, $tiler) => Ok($result.into()),
            $crate::arguments::Tiled::Symbol($map, $tiler) => Ok($result.into()),
            $crate::arguments::Tiled::Step($map, $tiler) => Ok($result.into()),
            $crate::arguments::Tiled::Picked($map, $tiler) => Ok($result.into()),
            $crate::arguments::Tiled::Xor($map, $tiler) => Ok($result.into()),
            $crate::arguments::Tiled::PickedXor($map, $tiler) => Ok($result.into()),
            $crate::arguments::Tiled::Composed($map, $tiler) => Ok($result.into()),
            $crate::arguments::Tiled::SymbolComposed($map, $tiler) => Ok($result.into()),
            $crate::arguments::Tiled::StepComposed($map, $tiler) => Ok($result.into()),
            $crate::arguments::Tiled::Mapped($map, $tiler) => Ok($result.into()),
            $crate::arguments::Tiled::PickedComposed(..) | $crate::arguments::Tiled::PickedStepComposed(..) => {
                $a.kind(1, "a layout, or a tiler of numbers")
            }
        }
    };
}

/// The result of an operation on the first argument, a map, and the second, a layout of its indices.
macro_rules! arranged {
    ($a:expr, ($map:ident, $by:ident) => $result:expr) => {
        match $a.arranged()? {
            $crate::arguments::Arranged::Integer($map, $by) => Ok($result.into()),
            $crate::arguments::Arranged::Symbol($map, $by) => Ok($result.into()),
            $crate::arguments::Arranged::Step($map, $by) => Ok($result.into()),
            $crate::arguments::Arranged::Xor($map, $by) => Ok($result.into()),
            $crate::arguments::Arranged::PickedXor($map, $by) => Ok($result.into()),
            $crate::arguments::Arranged::Composed($map, $by) => Ok($result.into()),
            $crate::arguments::Arranged::SymbolComposed($map, $by) => Ok($result.into()),
            $crate::arguments::Arranged::StepComposed($map, $by) => Ok($result.into()),
            $crate::arguments::Arranged::Picked($map, $by) => Ok($result.into()),
            $crate::arguments::Arranged::PickedComposed($map, $by) => Ok($result.into()),
            $crate::arguments::Arranged::PickedStepComposed($map, $by) => Ok($result.into()),
            $crate::arguments::Arranged::Mapped($map, $by) => Ok($result.into()),
        }
    };
}

/// The result of an operation on two layouts of one kind.
macro_rules! paired {
    ($a:expr, $first:expr, $second:expr, ($x:ident, $y:ident) => $result:expr) => {
        match $a.layouts($first, $second)? {
            $crate::arguments::Layouts::Integer($x, $y) => Ok($result.into()),
            $crate::arguments::Layouts::Symbol($x, $y) => Ok($result.into()),
            $crate::arguments::Layouts::Step($x, $y) => Ok($result.into()),
            $crate::arguments::Layouts::Xor($x, $y) => Ok($result.into()),
        }
    };
}

/// The result of an operation that layouts and tuples share, on a value that is either.
macro_rules! nested {
    ($a:expr, $value:expr, $x:ident => $result:expr) => {
        match $value {
            Some($crate::value::Value::Layout($x)) => Ok($result.into()),
            Some($crate::value::Value::SymbolLayout($x)) => Ok($result.into()),
            Some($crate::value::Value::StepLayout($x)) => Ok($result.into()),
            Some($crate::value::Value::XorLayout($x)) => Ok($result.into()),
            Some($crate::value::Value::Composed($x)) => Ok($result.into()),
            Some($crate::value::Value::SymbolComposed($x)) => Ok($result.into()),
            Some($crate::value::Value::StepComposed($x)) => Ok($result.into()),
            Some($crate::value::Value::Tree($x)) => Ok($result.into()),
            Some($crate::value::Value::SymbolTree($x)) => Ok($result.into()),
            Some($crate::value::Value::StepTree($x)) => Ok($result.into()),
            Some($crate::value::Value::XorTree($x)) => Ok($result.into()),
            Some($crate::value::Value::Int(number)) => {
                let $x = &tilewright_layout::Tree::leaf(*number);
                Ok($result.into())
            }
            Some($crate::value::Value::Symbol(number)) => {
                let $x = &tilewright_layout::Tree::leaf(number.clone());
                Ok($result.into())
            }
            _ => $a.kind(0, "a layout or a tuple"),
        }
    };
}

/// The result of an operation that layouts and tuples share, on the first argument and another of the same kind.
macro_rules! nested_with {
    ($a:expr, $argument:expr, ($x:ident, $y:ident) => $result:expr) => {
        match $a.trees(0, $argument) {
            Some($crate::arguments::Trees::Integer($x, $y)) => Ok($result.into()),
            Some($crate::arguments::Trees::Symbol($x, $y)) => Ok($result.into()),
            Some($crate::arguments::Trees::Step($x, $y)) => Ok($result.into()),
            Some($crate::arguments::Trees::Xor($x, $y)) => Ok($result.into()),
            None => match $a.get(0) {
                Some($crate::value::Value::Composed($x)) => {
                    let $y = $a.layout($argument)?;
                    Ok($result.into())
                }
                Some($crate::value::Value::SymbolComposed($x)) => {
                    let $y = $a.symbol_layout($argument)?;
                    Ok($result.into())
                }
                Some($crate::value::Value::StepComposed($x)) => {
                    let $y = $a.step_layout($argument)?;
                    Ok($result.into())
                }
                _ => $crate::functions::paired!($a, 0, $argument, ($x, $y) => $result),
            },
        }
    };
}

/// The result of an operation on the shape that an argument is or has.
macro_rules! shaped_as {
    ($a:expr, $argument:expr, $shape:ident => $result:expr) => {
        match $a.shape($argument) {
            Ok($shape) => Ok($result.into()),
            Err(_) => {
                let $shape = $a.symbol_shape($argument)?;
                Ok($result.into())
            }
        }
    };
}

/// The result of an operation on two tuples of numbers, known or not, given as a pair of them.
macro_rules! numeric {
    ($a:expr, $trees:expr, ($x:ident, $y:ident) => $result:expr) => {
        match $trees {
            $crate::arguments::Trees::Integer($x, $y) => Ok($result.into()),
            $crate::arguments::Trees::Symbol($x, $y) => Ok($result.into()),
            _ => $a.kind(0, "a number or a tuple of numbers"),
        }
    };
}

pub(crate) use {arranged, mapped, nested, nested_with, numeric, paired, shaped_as, tiled};

/// The value of a map at a coordinate, or its slice where the coordinate has a `_`; none for what is not a map.
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
    if let (Some(coord), Value::Layout(_) | Value::Composed(_) | Value::XorLayout(_)) = (coordinate(coord), map) {
        return match (map, coord.indices()) {
            (Value::Layout(layout), Some(coord)) => Ok(layout.eval_at(&coord)?.into()),
            (Value::Layout(layout), None) => Ok(layout.slice(&coord)?.into()),
            (Value::XorLayout(layout), Some(coord)) => Ok(offset(layout.eval_at(&coord)?)),
            (Value::XorLayout(layout), None) => Ok(layout.slice(&coord)?.into()),
            (Value::Composed(composed), Some(coord)) => Ok(composed.eval_at(&coord)?.into()),
            (Value::Composed(composed), None) => Ok(composed.slice(&coord)?.into()),
            _ => Err(Fault::Kind { argument: 0, wanted: "a layout" }),
        };
    }
    let place = symbol_coordinate(coord).ok_or(Fault::Kind { argument: 1, wanted: "a coordinate" })?;
    match (map, place.indices()) {
        (Value::Layout(layout), indices) => {
            let layout: Layout<Expr> = Layout::from(layout);
            match indices {
                Some(indices) => Ok(layout.eval_at(&indices)?.into()),
                None => Ok(layout.slice(&place)?.into()),
            }
        }
        (Value::SymbolLayout(layout), Some(indices)) => Ok(layout.eval_at(&indices)?.into()),
        (Value::SymbolLayout(layout), None) => Ok(layout.slice(&place)?.into()),
        (Value::StepLayout(layout), Some(indices)) => position(layout, &layout.eval_at(&indices)?),
        (Value::StepLayout(layout), None) => Ok(layout.slice(&place)?.into()),
        (Value::Composed(map), indices) => {
            let map = kinds::symbolic_composed(map)?;
            match indices {
                Some(indices) => Ok(map.eval_at(&indices)?.into()),
                None => Ok(map.slice(&place)?.into()),
            }
        }
        (Value::SymbolComposed(map), Some(indices)) => Ok(map.eval_at(&indices)?.into()),
        (Value::SymbolComposed(map), None) => Ok(map.slice(&place)?.into()),
        (Value::StepComposed(map), Some(indices)) => Ok(map.eval_at(&indices)?.into()),
        (Value::StepComposed(map), None) => Ok(map.slice(&place)?.into()),
        (Value::Matrix(matrix), Some(indices)) => match known_tree(&indices).as_ref().map(Tree::leaves) {
            Some([index]) => Ok(OuterMap::from(matrix.clone()).eval(index)?.into()),
            _ => Err(Fault::Kind { argument: 1, wanted: "an integer, for a bit matrix" }),
        },
        (Value::Linear(map), Some(indices)) => match known_tree(&indices) {
            Some(indices) => linear::apply(map, indices.leaves()),
            None => Err(Fault::Kind { argument: 1, wanted: "known indices, for a linear layout" }),
        },
        (Value::Swizzle(swizzle), Some(indices)) => match known_tree(&indices).as_ref().map(Tree::leaves) {
            Some([offset]) => Ok(swizzle.apply(*offset).into()),
            _ => Err(Fault::Kind { argument: 1, wanted: "an integer, for a swizzle" }),
        },
        _ => Err(Fault::Kind { argument: 1, wanted: "a coordinate whose indices are known" }),
    }
}

/// A value of an XOR layout as the offset that it is.
pub(crate) fn offset(value: Xor) -> Value {
    // A step has 63 bits.
    Value::Int(i64::try_from(value.bits()).unwrap_or(i64::MAX))
}

/// A value of a coordinate layout as the nested coordinate that it is.
pub(crate) fn position(layout: &Layout<Step>, value: &Step) -> Result<Value, Fault> {
    Ok(value.in_profile(&layout.coprofile()?)?.into())
}
