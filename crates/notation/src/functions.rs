//! The functions of the language, each with its documentation.
//!
//! There is one table. What a program can call, what the help lists and what the tests run are the same entries, so they
//! cannot disagree.

mod algebra;
mod comparing;
mod coordinates;
mod making;
mod numbers;
mod structure;
mod tiling;

use std::sync::LazyLock;

use tilewright_layout::{Coord, Layout};

use crate::arguments::{Arguments, Fault};
use crate::value::Value;

pub(crate) use algebra::compose;
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
        numbers::FUNCTIONS,
        comparing::FUNCTIONS,
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
        let $map = $a.layout(0)?;
        Ok($result.into())
    }};
}

pub(crate) use mapped;

/// The value of a layout at a coordinate, or its slice where the coordinate has a `_`.
pub(crate) fn apply(layout: &Layout, coord: &Coord) -> Result<Value, Fault> {
    match coord.indices() {
        Some(coord) => Ok(Value::Int(layout.eval_at(&coord)?)),
        None => Ok(Value::Layout(layout.slice(coord)?)),
    }
}
