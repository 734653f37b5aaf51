//! Functions, maps and operators called on values instead of text: the interface for the bindings
//! of other languages.
//!
//! Law: [`Function::call`] of values, with names or without, has the value of the program that
//! writes the call out, and [`apply`] that of the program `map(coordinate, ...)`. A refusal
//! contains that program as its text ([`Refused`]), so that a diagnostic underlines the same
//! numbers as for the program.

use super::Evaluator;
use super::advice::tried;
use super::keywords::{in_place, ways};
use crate::arguments::{Arguments, Fault, Values};
use crate::ast::{Node, NodeId, Program};
use crate::blame::Operation;
use crate::diagnostic::Diagnostic;
use crate::eval::Environment;
use crate::functions::{self, Function};
use crate::parse::parse;
use crate::reading::coordinate;
use crate::reading::tuple_of;
use crate::value::Value;

/// A refused call on values, with the equivalent program.
///
/// ```
/// use tilewright_notation::{Environment, evaluate, functions};
///
/// let value = |text: &str| evaluate(text, &mut Environment::new()).unwrap();
/// let composition = functions().iter().find(|function| function.name == "composition").unwrap();
/// let refused = composition.call(&[value("(6,2):(1,7)"), value("(3,2):(2,3)")], &[]).unwrap_err();
/// assert_eq!(refused.source, "composition((6,2):(1,7), (3,2):(2,3))");
/// assert_eq!(refused.diagnostic.code, "E0107");
/// assert_eq!(&refused.source[refused.diagnostic.span.clone()], "2"); // the stride of mode 0 of B
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The text of the equivalent program.
    pub source: String,
    /// The error, located in bytes of the program.
    pub diagnostic: Diagnostic,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.diagnostic.render(&self.source, false).trim_end())
    }
}

impl std::error::Error for Refused {}

impl Function {
    /// The names of the arguments in each form of the function. A repeated argument has one name.
    ///
    /// ```
    /// use tilewright_notation::functions;
    ///
    /// let take = functions().iter().find(|function| function.name == "take").unwrap();
    /// assert_eq!(take.ways().collect::<Vec<_>>(), [["A", "begin", "end"]]);
    /// ```
    pub fn ways(&self) -> impl Iterator<Item = Vec<&'static str>> {
        ways(self.signature)
    }

    /// The smallest and the largest number of arguments; the largest is None if there is no limit.
    pub fn arity(&self) -> (usize, Option<usize>) {
        (self.least, (self.most != functions::MANY).then_some(self.most))
    }

    /// Whether the function has a form whose first argument is a morphism, and one whose first
    /// argument is a linear layout.
    pub fn own_forms(&self) -> (bool, bool) {
        (functions::of_morphism(self.name).is_some(), functions::of_linear(self.name).is_some())
    }

    /// The value of the function for these arguments, followed by those that are given by name.
    ///
    /// Errors: as a program that calls it.
    ///
    /// ```
    /// use tilewright_notation::{Value, functions};
    ///
    /// let row_major = functions().iter().find(|function| function.name == "row_major").unwrap();
    /// let shape = Value::tuple(vec![Value::from(4), Value::from(8)]).unwrap();
    /// assert_eq!(row_major.call(&[shape.clone()], &[]).unwrap().to_string(), "(4,8):(8,1)");
    /// assert_eq!(row_major.call(&[], &[("shape", shape)]).unwrap().to_string(), "(4,8):(8,1)");
    /// ```
    pub fn call(&self, arguments: &[Value], named: &[(&str, Value)]) -> Result<Value, Box<Refused>> {
        if named.is_empty() {
            return self.fits(arguments.into()).unwrap_or_else(|| Err(self.refusal(arguments, named)));
        }
        let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
        let places = self.ways().find_map(|way| in_place(&way, arguments.len(), &names));
        let all = || arguments.iter().chain(named.iter().map(|(_, value)| value));
        let placed = places.map(|places| {
            let values: Vec<&Value> = all().collect();
            places.iter().filter_map(|place| values.get(*place).map(|value| (*value).clone())).collect::<Vec<Value>>()
        });
        match placed.and_then(|values| self.fits((&values).into())) {
            Some(Ok(value)) => Ok(value),
            // The program is the one with the names.
            Some(Err(_)) | None => Err(self.refusal(arguments, named)),
        }
    }

    /// As [`Function::call`], for references to values, which are not copied.
    ///
    /// Errors: as [`Function::call`].
    ///
    /// ```
    /// use tilewright_notation::{Value, function};
    ///
    /// let (least, most) = (Value::from(4), Value::from(9));
    /// let value = function("max").unwrap().call_each(&[&least, &most]).unwrap();
    /// assert_eq!(value, most);
    /// ```
    pub fn call_each(&self, arguments: &[&Value]) -> Result<Value, Box<Refused>> {
        let values = Values::Each(arguments);
        // A value is large, so it is moved once, without adapters.
        if self.takes(values.len())
            && let Ok(value) = functions::of_first(self, values.get(0))(Arguments { function: self.name, values })
        {
            return Ok(value);
        }
        let copied: Vec<Value> = arguments.iter().map(|value| (*value).clone()).collect();
        Err(self.refusal(&copied, &[]))
    }

    fn takes(&self, count: usize) -> bool {
        (self.least..=self.most).contains(&count)
    }

    /// The value, if the function takes this number of arguments; None if it does not.
    fn fits(&self, values: Values<'_>) -> Option<Result<Value, Box<Refused>>> {
        if !self.takes(values.len()) {
            return None;
        }
        let run = functions::of_first(self, values.get(0));
        let refused = |_| {
            let values: Vec<Value> = values.iter().cloned().collect();
            self.refusal(&values, &[])
        };
        Some(run(Arguments { function: self.name, values }).map_err(refused))
    }

    /// The refusal of the call.
    #[cold]
    fn refusal(&self, arguments: &[Value], named: &[(&str, Value)]) -> Box<Refused> {
        let positional = arguments.iter().map(Value::to_string);
        let keyed = named.iter().map(|(name, value)| format!("{name}={value}"));
        let source = format!("{}({})", self.name, positional.chain(keyed).collect::<Vec<_>>().join(", "));
        let values: Vec<Value> = arguments.iter().chain(named.iter().map(|(_, value)| value)).cloned().collect();
        let diagnostic = written(&source, |evaluator, id| match evaluator.program.node(id) {
            Node::Call { name, arguments } => {
                let operands = evaluator.program.list(arguments);
                (operands.len() == values.len()).then(|| evaluator.call(id, name, operands, &values))
            }
            _ => None,
        });
        let diagnostic = diagnostic.unwrap_or_else(|| {
            // The text is not a program: it is too long, or a parameter has the name of a function.
            let run = functions::of_first(self, values.first());
            whole_diagnostic(
                self.name,
                &source,
                &values,
                run(Arguments { function: self.name, values: (&values).into() }).err(),
            )
        });
        // Facts about parameters are in the values, but not in their text.
        let mut env = Environment::new();
        for parameter in values.iter().flat_map(Value::parameters) {
            if let Some(name) = parameter.name().map(str::to_owned) {
                env.parameters.insert(name, parameter);
            }
        }
        let diagnostic = tried(&source, &[], &env, diagnostic);
        Box::new(Refused { source, diagnostic })
    }
}

/// The value of a map at a coordinate, or its slice where an index is `_`; several arguments are
/// the modes of one coordinate.
///
/// Errors: as the program `map(coordinate, ...)`.
///
/// ```
/// use tilewright_notation::{Environment, Value, apply, evaluate};
///
/// let layout = evaluate("(4,8):(8,1)", &mut Environment::new()).unwrap();
/// assert_eq!(apply(&layout, &[Value::from(2), Value::from(3)]).unwrap(), Value::from(19));
/// assert_eq!(apply(&layout, &[Value::open(), Value::from(3)]).unwrap().to_string(), "(4):(8)");
/// ```
pub fn apply(map: &Value, coordinates: &[Value]) -> Result<Value, Box<Refused>> {
    let applied = match coordinates {
        [] => None,
        [only] => coordinate(only).and_then(|_| functions::apply(map, only)?.ok()),
        modes if modes.iter().all(|mode| coordinate(mode).is_some()) => {
            tuple_of(modes.to_vec(), false).ok().and_then(|coord| functions::apply(map, &coord)?.ok())
        }
        _ => None,
    };
    if let Some(value) = applied {
        return Ok(value);
    }
    let indices: Vec<String> = coordinates.iter().map(Value::to_string).collect();
    let source = format!("({map})({})", indices.join(", "));
    let values: Vec<Value> = [map].into_iter().chain(coordinates).cloned().collect();
    let diagnostic = written(&source, |evaluator, id| match evaluator.program.node(id) {
        Node::Apply { target, arguments } => {
            let operands: Vec<NodeId> = [target].iter().chain(evaluator.program.list(arguments)).copied().collect();
            (operands.len() == values.len()).then(|| evaluator.apply(id, &operands, &values))
        }
        _ => None,
    });
    let diagnostic = diagnostic.unwrap_or_else(|| {
        let fault = match coordinates {
            [only] => functions::apply(map, only).and_then(Result::err),
            _ => None,
        };
        whole_diagnostic("", &source, &values, fault)
    });
    Err(Box::new(Refused { source, diagnostic }))
}

/// The diagnostic of a step of the evaluation of a program, at its only statement; None if the text
/// is not such a program, or nothing is refused.
fn written(
    source: &str,
    step: impl FnOnce(&Evaluator<'_>, NodeId) -> Option<Result<Value, Diagnostic>>,
) -> Option<Diagnostic> {
    let (mut program, env) = (Program::default(), Environment::new());
    parse(source, &mut program).ok()?;
    let statement = program.statements.first()?.value;
    step(&Evaluator { source, program: &program, env: &env }, statement)?.err()
}

/// A fault about a text in which no operand can be located.
fn whole_diagnostic(function: &str, source: &str, values: &[Value], fault: Option<Fault>) -> Diagnostic {
    let program = Program::default();
    let operation = Operation { program: &program, function, whole: 0..source.len(), operands: &[], values };
    match fault {
        Some(fault) => operation.diagnose(fault),
        None => Diagnostic::new("E0208", 0..source.len(), "these arguments do not go together")
            .label(0..source.len(), "refused"),
    }
}
