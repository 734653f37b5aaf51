//! Derivations: the steps to the value of an expression, or to its refusal.
//!
//! Law: a derivation is a program of the language. Each step is an expression over the arguments
//! and the earlier steps, evaluated like any other, and the last step has the value of the derived
//! call. If the call is refused, the steps go as far as they have values, and end with the numbers
//! that show why.

mod morphisms;
mod plan;

use std::fmt;

use tilewright_layout::{AnyLayout, AnyTree, Layout, LayoutError};

use crate::ast::{List, Node, NodeId, Program};
use crate::diagnostic::Diagnostic;
use crate::eval::{Environment, Evaluator, bind, evaluate, explained, prepare};
use crate::functions;
use crate::reading::tuple_of;
use crate::value::Value;

use plan::{APPLIED, Plan, plan};

/// One line of a derivation.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its indentation level.
    pub indent: usize,
    /// The text.
    pub text: String,
    /// The subject of the line.
    pub about: About,
}

/// The subject of a line of a derivation.
#[derive(Debug, Clone, PartialEq)]
pub enum About {
    /// An operation on these arguments: a function by its name, `composition` for `A o B`, or
    /// `apply` for `A(c)`. Its formula is the line; the lines about it follow, indented by one
    /// more.
    Operation(&'static str, Vec<Value>),
    /// A value with a name.
    Value(String, Box<Value>),
    /// Text only.
    Words,
}

/// The steps to the value of an expression, and the value or the error.
#[derive(Debug, Clone, PartialEq)]
pub struct Derivation {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The value, or the error.
    pub value: Result<Value, Diagnostic>,
}

impl fmt::Display for Derivation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "{:indent$}{}", "", step.text, indent = 2 * step.indent)?;
        }
        Ok(())
    }
}

/// A call that was evaluated: the function, its arguments and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The name of the function; `composition` for `A o B`.
    pub function: &'static str,
    /// The values of its arguments.
    pub arguments: Vec<Value>,
    /// Its value.
    pub value: Value,
}

/// Evaluates a program and records its derivation: the defining formula of the last call with each
/// intermediate value, and likewise for the calls among its arguments. If a call is refused, its
/// steps are given as far as possible.
///
/// ```
/// use tilewright_notation::{Environment, derive};
///
/// let derivation = derive("logical_divide((4,6):(1,4), 4:2)", &mut Environment::new());
/// assert_eq!(
///     derivation.to_string(),
///     "\
/// logical_divide(A, T) = A o (T, complement(T, size(A)))
///   A = (4,6):(1,4)
///   T = 4:2
///   N = size(A) = 24
///   C = complement(T, N) = (2,3):(1,8)
///   D = make_layout(T, C) = (4,(2,3)):(2,(1,8))
///   R = A o D = (4,(2,3)):(2,(1,8))
/// "
/// );
///
/// let refused = derive("(6,2):(1,7) o (3,2):(2,3)", &mut Environment::new());
/// assert_eq!(refused.value.unwrap_err().code, "E0107");
/// assert_eq!(refused.steps.last().unwrap().text, "the modes alone: A(4) + A(3) = 4 + 3 = 7");
/// ```
pub fn derive(source: &str, env: &mut Environment) -> Derivation {
    let mut steps = Vec::new();
    let value = derived(source, env, &mut steps);
    Derivation { steps, value }
}

fn derived(source: &str, env: &mut Environment, steps: &mut Vec<Step>) -> Result<Value, Diagnostic> {
    let mut program = Program::default();
    prepare(source, &mut program, env)?;
    let value = told(source, &program, env, steps);
    value.map_err(|error| explained(source, &program, env, error))
}

fn told(source: &str, program: &Program, env: &mut Environment, steps: &mut Vec<Step>) -> Result<Value, Diagnostic> {
    let mut last = None;
    for (at, statement) in program.statements.iter().enumerate() {
        let deriver = Deriver { evaluator: Evaluator { source, program, env } };
        let value = deriver.evaluator.value(statement.value);
        match &value {
            Ok(value) if at + 1 == program.statements.len() => deriver.node(statement.value, value, 0, steps)?,
            Ok(_) => {}
            Err(_) => deriver.refused(statement.value, steps)?,
        }
        let value = value?;
        bind(source, statement, &value, env);
        last = Some(value);
    }
    last.ok_or_else(|| Diagnostic::nothing(source))
}

/// Evaluates a program. If its last statement is a call or a composition, returns it with the
/// values of its arguments.
///
/// Errors: as [`evaluate`].
///
/// ```
/// use tilewright_notation::{Environment, call};
///
/// let call = call("complement(4:2, 24)", &mut Environment::new()).unwrap().unwrap();
/// assert_eq!(call.function, "complement");
/// assert_eq!(call.arguments[1].to_string(), "24");
/// assert_eq!(call.value.to_string(), "(2,3):(1,8)");
/// ```
pub fn call(source: &str, env: &mut Environment) -> Result<Option<Call>, Diagnostic> {
    let mut program = Program::default();
    prepare(source, &mut program, env)?;
    call_prepared(source, &program, env).map_err(|error| explained(source, &program, env, error))
}

fn call_prepared(source: &str, program: &Program, env: &mut Environment) -> Result<Option<Call>, Diagnostic> {
    let mut called = Err(Diagnostic::nothing(source));
    for statement in &program.statements {
        let deriver = Deriver { evaluator: Evaluator { source, program, env } };
        let value = deriver.evaluator.value(statement.value)?;
        let call = deriver.called(statement.value)?;
        bind(source, statement, &value, env);
        called = Ok(call.map(|call| Call { function: call.function, arguments: call.values, value }));
    }
    called
}

struct Deriver<'a> {
    evaluator: Evaluator<'a>,
}

/// A call in the text: the function, the nodes of its arguments and their values.
struct Called {
    function: &'static str,
    nodes: Vec<NodeId>,
    values: Vec<Value>,
}

impl Deriver<'_> {
    fn nodes(&self, items: List) -> Vec<NodeId> {
        self.evaluator.program.list(items).to_vec()
    }

    fn values(&self, nodes: &[NodeId]) -> Result<Vec<Value>, Diagnostic> {
        nodes.iter().map(|id| self.evaluator.value(*id)).collect()
    }

    /// The function that a node calls, if it calls one.
    fn called(&self, id: NodeId) -> Result<Option<Called>, Diagnostic> {
        let (function, nodes) = match self.evaluator.program.node(id) {
            Node::Call { name, arguments } => match functions::find(self.evaluator.text(name.span())) {
                Some(function) => (function.name, self.nodes(arguments)),
                None => return Ok(None),
            },
            Node::Compose { items } if items.end - items.start == 2 => ("composition", self.nodes(items)),
            // Parentheses around one value only group it.
            Node::Tuple { items, trailing: false } => match self.nodes(items).as_slice() {
                [only] => return self.called(*only),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let values = self.values(&nodes)?;
        Ok(Some(Called { function, nodes, values }))
    }

    /// The map and the coordinate, if a node applies a map to a coordinate.
    fn applied(&self, id: NodeId) -> Result<Option<Called>, Diagnostic> {
        let (map, nodes) = match self.evaluator.program.node(id) {
            Node::Call { name, arguments } => match self.evaluator.env.get(self.evaluator.text(name.span())) {
                Some(map) => (map.clone(), self.nodes(arguments)),
                None => return Ok(None),
            },
            Node::Apply { target, arguments } => (self.evaluator.value(target)?, self.nodes(arguments)),
            _ => return Ok(None),
        };
        let mut coordinates = self.values(&nodes)?;
        let coordinate = match coordinates.as_slice() {
            [_] => coordinates.pop(),
            _ => tuple_of(coordinates, false).ok(),
        };
        Ok(coordinate.map(|coordinate| Called { function: APPLIED, nodes: Vec::new(), values: vec![map, coordinate] }))
    }

    /// The steps to the value of a node.
    fn node(&self, id: NodeId, value: &Value, indent: usize, steps: &mut Vec<Step>) -> Result<(), Diagnostic> {
        let called = match self.called(id)? {
            None => self.applied(id)?,
            called => called,
        };
        match called {
            Some(called) => self.operation(&called, Some(value), indent, steps),
            None => {
                let text = self.evaluator.text(self.evaluator.program.span(id));
                let written = value.to_string();
                let about = About::Value(text.to_owned(), Box::new(value.clone()));
                let text = if text == written { written } else { format!("{text} = {written}") };
                steps.push(Step { indent, text, about });
                Ok(())
            }
        }
    }

    /// The steps of the innermost refused call within a node, as far as they have values.
    fn refused(&self, id: NodeId, steps: &mut Vec<Step>) -> Result<(), Diagnostic> {
        let operands = match self.evaluator.program.node(id) {
            Node::Call { arguments, .. } => self.nodes(arguments),
            Node::Apply { target, arguments } => [vec![target], self.nodes(arguments)].concat(),
            Node::Compose { items } | Node::Tiler { items } | Node::Tuple { items, .. } => self.nodes(items),
            Node::Index { target, .. } => vec![target],
            _ => return Ok(()),
        };
        match operands.into_iter().find(|operand| self.is_refused(*operand)) {
            Some(operand) => self.refused(operand, steps),
            None => match self.called(id)? {
                Some(called) => self.operation(&called, None, 0, steps),
                None => Ok(()),
            },
        }
    }

    /// The steps of a call: its formula, its arguments, intermediate values, and remarks.
    ///
    /// It recurses for arguments that are calls, as deep as the text nests, so parts that need
    /// stack space are separate functions.
    fn operation(
        &self,
        called: &Called,
        value: Option<&Value>,
        indent: usize,
        steps: &mut Vec<Step>,
    ) -> Result<(), Diagnostic> {
        let plan = formula(called, indent, steps);
        for (position, (name, value)) in plan.names.iter().zip(&called.values).enumerate() {
            steps.push(named(name, None, value, indent + 1));
            // Derives an argument that is itself a call.
            if let Some(id) = called.nodes.get(position)
                && self.is_call(*id)
            {
                self.node(*id, value, indent + 2, steps)?;
            }
        }
        conclusion(called, &plan, value, indent + 1, steps);
        Ok(())
    }

    #[inline(never)]
    fn is_call(&self, id: NodeId) -> bool {
        matches!(self.called(id), Ok(Some(_)))
    }

    #[inline(never)]
    fn is_refused(&self, id: NodeId) -> bool {
        self.evaluator.value(id).is_err()
    }
}

/// The line of a value that has a name, with its kind.
#[inline(never)]
fn named(name: &str, from: Option<String>, value: &Value, indent: usize) -> Step {
    let from = from.map_or_else(String::new, |from| format!("{from} = "));
    let about = About::Value(name.to_owned(), Box::new(value.clone()));
    Step { indent, text: format!("{name} = {from}{value}"), about }
}

/// The line with the formula of a call, and how the call is derived.
#[inline(never)]
fn formula(called: &Called, indent: usize, steps: &mut Vec<Step>) -> Plan {
    let plan = plan(called.function, &called.values);
    let shown = match called.function {
        APPLIED => format!("{}(c)", plan.names.first().map_or("A", String::as_str)),
        function => format!("{function}({})", plan.names.join(", ")),
    };
    let about = About::Operation(called.function, called.values.clone());
    steps.push(Step { indent, text: format!("{shown} {}", plan.formula), about });
    plan
}

/// The intermediate values of a call, and remarks.
#[inline(never)]
fn conclusion(called: &Called, plan: &Plan, value: Option<&Value>, indent: usize, steps: &mut Vec<Step>) {
    let mut env = Environment::new();
    for (name, value) in plan.names.iter().zip(&called.values) {
        env.bind(name.as_str(), value.clone());
    }
    for (name, expression) in &plan.steps {
        // A step may be refused although the whole is not: in a mode-by-mode operation, or past the
        // end. Such a step is left out.
        if let Ok(value) = evaluate(expression, &mut env) {
            let sum = if expression == "inner_product(k, D)" { written_sum(&env) } else { None };
            steps.push(named(name, Some(sum.unwrap_or_else(|| expression.clone())), &value, indent));
            env.bind(name.as_str(), value);
        }
    }
    if let (true, Some(value)) = (plan.steps.is_empty(), value) {
        steps.push(named("R", None, value, indent));
    }
    let remarks = match (value, called.function, called.values.as_slice()) {
        (Some(Value::Layout(AnyLayout::Integer(rest))), "complement", _) => filled(rest),
        (None, "composition", [Value::Layout(AnyLayout::Integer(a)), Value::Layout(AnyLayout::Integer(b))]) => {
            disproof(a, b)
        }
        (Some(_), function, values) => morphisms::remarks(function, values),
        _ => Vec::new(),
    };
    steps.extend(remarks.into_iter().map(|text| Step { indent, text, about: About::Words }));
}

/// The text `2*8 + 3*1`: the sum of the products of the numbers of `k` and `D`.
fn written_sum(env: &Environment) -> Option<String> {
    let leaves = |value: &Value| match value {
        Value::Int(number) => Some(vec![*number]),
        Value::Tree(AnyTree::Integer(tree)) => Some(tree.leaves().to_vec()),
        _ => None,
    };
    let (coordinate, stride) = (leaves(env.get("k")?)?, leaves(env.get("D")?)?);
    let products = coordinate.iter().zip(&stride).map(|(index, step)| format!("{index}*{step}"));
    Some(products.collect::<Vec<_>>().join(" + "))
}

/// How a complement fills the gaps, mode by mode: all offsets below the stride of a mode are filled
/// by the modes before it.
fn filled(rest: &Layout) -> Vec<String> {
    let modes = rest.leaves().iter().filter(|leaf| leaf.extent > 1);
    let told = modes.filter_map(|leaf| {
        let (extent, stride) = (leaf.extent, leaf.stride);
        let end = extent.checked_mul(stride)?;
        Some(format!("{extent}:{stride} repeats what fills [0,{stride}) {extent} times: [0,{end}) is full"))
    });
    told.collect()
}

/// The numbers that show why a composition does not exist.
fn disproof(a: &Layout, b: &Layout) -> Vec<String> {
    let at = |index: i64| a.eval(&index).map_or_else(|_| "?".to_owned(), |value| value.to_string());
    match a.compose(b) {
        Err(LayoutError::Carry(carry)) => {
            let parts: Vec<(i64, i64)> = (carry.coordinate().iter().zip(b.leaves().iter()))
                .filter(|(index, _)| **index != 0)
                .map(|(index, leaf)| (*index, leaf.stride))
                .collect();
            let listed = |text: &dyn Fn(i64, i64) -> String| {
                parts.iter().map(|(index, stride)| text(*index, *stride)).collect::<Vec<_>>().join(" + ")
            };
            let index =
                parts.iter().fold(0_i64, |sum, (index, stride)| sum.saturating_add(index.saturating_mul(*stride)));
            let place = carry.place();
            let coordinate = if place.is_leaf() { format!("({place})") } else { place.to_string() };
            let steps = listed(&|index, stride| format!("{index}*{stride}"));
            let alone = listed(&|index, stride| format!("A({})", index.saturating_mul(stride)));
            let values = listed(&|index, stride| at(index.saturating_mul(stride)));
            let total = parts.iter().try_fold(0_i64, |total, (index, stride)| {
                total.checked_add(a.eval(&index.checked_mul(*stride)?).ok()?)
            });
            // If a mode carries by itself, the sum is one of its runs instead of values of A.
            let told = total.is_some_and(|total| total.to_string() == carry.sum.to_string());
            let modes =
                if told { format!("the modes alone: {alone} = {values}") } else { "the modes alone".to_owned() };
            vec![
                format!("at c = {coordinate}: B(c) = {steps} = {index}, and A({index}) = {}", carry.value),
                format!("{modes} = {}", carry.sum),
            ]
        }
        Err(LayoutError::Uneven(uneven)) => {
            const SHOWN: i64 = 12;
            let run = |extent: i64, stride: i64| {
                let values: Vec<String> = (0..extent.min(SHOWN)).map(|step| at(step.saturating_mul(stride))).collect();
                format!("{}{}", values.join(", "), if extent > SHOWN { ", .." } else { "" })
            };
            let mode = &uneven.mode;
            let mut told =
                vec![format!("{}:{} alone has the values {}", mode.extent, mode.stride, run(mode.extent, mode.stride))];
            if uneven.left != mode.extent {
                let (left, stride) = (uneven.left, uneven.stride);
                told.push(format!("after its first runs {left}:{stride} is left, with {}", run(left, stride)));
            }
            told.push(format!(
                "the steps are equal for {} positions, which does not divide {}",
                uneven.run, uneven.left
            ));
            told
        }
        _ => Vec::new(),
    }
}
