//! The functions of the language, each with its documentation.
//!
//! There is one table. What a program can call, what the help lists and what the tests run are the same entries, so they
//! cannot disagree.

mod algebra;
mod comparing;
mod coordinates;
mod making;
mod numbers;
mod predicates;
mod structure;
mod threads;
mod tiling;

use std::sync::LazyLock;

use tilewright_layout::Coord;

use crate::arguments::{Arguments, Fault};
use crate::value::Value;

pub(crate) use algebra::{compose, composed};
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
        numbers::FUNCTIONS,
        comparing::FUNCTIONS,
        predicates::FUNCTIONS,
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
    ($a:expr, $map:ident => $result:expr) => {{
        match $a.get(0) {
            Some($crate::value::Value::Composed($map)) => Ok($result.into()),
            _ => {
                let $map = $a.layout(0)?;
                Ok($result.into())
            }
        }
    }};
}

pub(crate) use mapped;

/// The value of a map at a coordinate, or its slice where the coordinate has a `_`; none for what is not a map.
pub(crate) fn apply(map: &Value, coord: &Coord) -> Option<Result<Value, Fault>> {
    let value = || -> Result<Option<Value>, Fault> {
        Ok(Some(match (map, coord.indices()) {
            (Value::Layout(layout), Some(coord)) => layout.eval_at(&coord)?.into(),
            (Value::Layout(layout), None) => layout.slice(coord)?.into(),
            (Value::Composed(composed), Some(coord)) => composed.eval_at(&coord)?.into(),
            (Value::Composed(composed), None) => composed.slice(coord)?.into(),
            (Value::Swizzle(swizzle), Some(coord)) => match coord.leaves() {
                [offset] => swizzle.apply(*offset).into(),
                _ => return Err(Fault::Kind { argument: 1, wanted: "an integer, for a swizzle" }),
            },
            _ => return Ok(None),
        }))
    };
    value().transpose()
}
