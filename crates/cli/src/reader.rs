//! Reads the expressions on the command line as values of the kind that a command needs.

use tilewright::layout::{AnyTree, Coord, Tiler};
use tilewright::notation::{Call, call};
use tilewright::{Environment, Layout, LayoutError, Tree, Value, evaluate};

pub use tilewright::explain::map::plain;

use crate::output::Failure;

/// What evaluates expressions, each with the names of those before it.
#[derive(Default)]
pub struct Reader {
    environment: Environment,
}

/// An expression, its value, and the call that made it if there was one.
pub struct Read {
    pub source: String,
    pub value: Value,
    pub call: Option<Call>,
}

impl Reader {
    pub fn value(&mut self, source: &str) -> Result<Value, Failure> {
        evaluate(source, &mut self.environment).map_err(|error| Failure::of_expression(error, source))
    }

    /// The value of an expression with its outermost operation.
    pub fn call(&mut self, source: &str) -> Result<Read, Failure> {
        let call = call(source, &mut self.environment).map_err(|error| Failure::of_expression(error, source))?;
        let value = match &call {
            Some(call) => call.value.clone(),
            None => self.value(source)?,
        };
        Ok(Read { source: source.to_owned(), value, call })
    }

    pub fn shape(&mut self, source: &str) -> Result<Tree<i64>, Failure> {
        match self.value(source)? {
            Value::Int(extent) => Ok(Tree::from(extent)),
            Value::Tree(AnyTree::Integer(shape)) => Ok(shape),
            other => Err(Failure::not(source, &other, "a shape")),
        }
    }

    pub fn layout(&mut self, source: &str) -> Result<Layout, Failure> {
        let value = self.value(source)?;
        plain(&value).ok_or_else(|| Failure::not(source, &value, "a layout of integers"))
    }

    /// A coordinate, which may have `_` in it.
    pub fn coordinate(&mut self, source: &str) -> Result<Coord, Failure> {
        source.parse().map_err(|error: LayoutError| Failure::refused_about(format_args!("`{source}`"), &error))
    }

    pub fn tiler(&mut self, source: &str) -> Result<Tiler, Failure> {
        let value = self.value(source)?;
        match value.to_tiler() {
            Some(tiler) => Ok(tiler?),
            None => Err(Failure::not(source, &value, "a tiler")),
        }
    }
}

/// That the numbers of a value must be known first, and how they become so:
/// `substitute((M,4):(4,1), M, 8)`.
///
/// None where they are known.
pub fn unknown(source: &str, value: &Value) -> Option<String> {
    let parameter = value.parameters().into_iter().next()?;
    let number =
        tilewright::explain::launch::admissible(&parameter).into_iter().find(|number| *number >= 8).unwrap_or(8);
    // A program of several statements is no argument; its last expression is, where it stands.
    let source = if source.contains([';', '\n']) { "..." } else { source.trim() };
    let names: Vec<String> = value.parameters().iter().map(ToString::to_string).collect();
    let names = match names.split_last() {
        Some((last, front)) if !front.is_empty() => format!("{} and {last} are", front.join(", ")),
        _ => format!("{parameter} is"),
    };
    Some(format!("once {names} known: substitute({source}, {parameter}, {number})"))
}
