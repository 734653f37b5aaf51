//! Evaluation of programs.
//!
//! Law: a program's value is that of its last statement, with its names bound in order. If the
//! algebra refuses an operation, the [`Diagnostic`] points at the operand to blame and, if the
//! operand is a literal, at the mode in it.

mod advice;
mod environment;
mod foreign;
pub(crate) mod invoke;
mod keywords;
mod literals;
pub(crate) mod pair;

use std::collections::BTreeSet;
use std::ops::Range;

use tilewright_layout::symbolic::{Expr, Facts, Parameter};
use tilewright_layout::{AnyCoord, AnyTree, LayoutError, Swizzle, Tree, Xor, nearest};

use crate::arguments::{Arguments, Fault};
use crate::ast::{Name, Node, NodeId, Program, Statement};
use crate::blame::{Operation, with_article};
use crate::diagnostic::{Diagnostic, excerpt};
use crate::functions::{self, MANY};
use crate::notes::{self, Note};
use crate::parse::{KEYWORDS, parse};
use crate::reading::tuple_of;
use crate::reading::{coordinate, launch_tree, single};
use crate::spellings;
use crate::value::Value;
use environment::Watch;

pub use environment::Environment;

/// Evaluates a program: statements separated by `;` or a newline, each of the form `name =
/// expression`; the last may be an expression alone. The value is that of the last statement.
///
/// Names bound before a statement fails stay bound.
/// Errors: the text is not a program; an operation refuses.
///
/// ```
/// use tilewright_notation::{Environment, evaluate};
///
/// let value = evaluate("A = (6,2):(8,2); A o (4,3):(3,1)", &mut Environment::new()).unwrap();
/// assert_eq!(value.to_string(), "((2,2),3):((24,2),8)");
/// ```
pub fn evaluate(source: &str, env: &mut Environment) -> Result<Value, Diagnostic> {
    let mut program = Program::default();
    run(source, &mut program, env)
}

/// As [`evaluate`], in the memory of an earlier program.
pub(crate) fn run(source: &str, program: &mut Program, env: &mut Environment) -> Result<Value, Diagnostic> {
    run_unnamed(source, program, env).map_err(|error| explained(source, program, env, error))
}

/// An error, after its advice has been tried, or replaced by the refusal of another system's text.
#[cold]
pub(crate) fn explained(source: &str, program: &Program, env: &Environment, error: Diagnostic) -> Diagnostic {
    match &error.declaration {
        Some(_) => advice::tried(source, &program.unnamed, env, error),
        None => foreign::named(source, error),
    }
}

/// As [`run`], with errors as they are found, without [`explained`].
pub(crate) fn run_unnamed(source: &str, program: &mut Program, env: &mut Environment) -> Result<Value, Diagnostic> {
    parse(source, program).map_err(|error| *error)?;
    gather(source, program, env)?;
    evaluate_prepared(source, program, env)
}

/// The value of a program whose parameters have been collected.
fn evaluate_prepared(source: &str, program: &Program, env: &mut Environment) -> Result<Value, Diagnostic> {
    let mut last = None;
    for statement in &program.statements {
        let evaluator = Evaluator { source, program, env };
        let value = evaluator.value(statement.value)?;
        if program.node(statement.value) == Node::Unknown {
            evaluator.note_free(statement.value);
        }
        bind(source, statement, &value, env);
        last = Some(value);
    }
    last.ok_or_else(|| Diagnostic::nothing(source))
}

/// Parses a program and collects its parameters.
pub(crate) fn prepare(source: &str, program: &mut Program, env: &mut Environment) -> Result<(), Diagnostic> {
    parse(source, program)
        .map_err(|error| *error)
        .and_then(|()| gather(source, program, env))
        .map_err(|error| foreign::named(source, error))
}

/// Collects the parameters of a program.
fn gather(source: &str, program: &mut Program, env: &mut Environment) -> Result<(), Diagnostic> {
    let unnamed = program.parameters.iter().map(|parameter| {
        let said = parameter.facts.and_then(|facts| source.get(facts.span())).unwrap_or("");
        // Errors in facts are reported where they are evaluated.
        parameter.name.is_none().then(|| literals::unnamed(said, parameter.in_stride).ok()).flatten()
    });
    program.unnamed = unnamed.collect();
    declare(source, program, env)
}

/// Binds the name of a statement, if it has one, to its value.
pub(crate) fn bind(source: &str, statement: &Statement, value: &Value, env: &mut Environment) {
    if let Some(name) = statement.name {
        env.bind(source.get(name.span()).unwrap_or(""), value.clone());
    }
}

/// Collects the parameters of a program, which are unbound names used as numbers, and their facts:
/// facts given anywhere apply everywhere.
fn declare(source: &str, program: &Program, env: &mut Environment) -> Result<(), Diagnostic> {
    let text_of = |name: Name| source.get(name.span()).unwrap_or("");
    let bound: BTreeSet<&str> = program.statements.iter().filter_map(|statement| statement.name).map(text_of).collect();
    for parameter in &program.parameters {
        let Some(name) = parameter.name else { continue };
        let text = text_of(name);
        if functions::find(text).is_some() || KEYWORDS.contains(&text) {
            return Err(Diagnostic::new("E0211", name.span(), format!("'{text}' is a word of the language"))
                .label(name.span(), "facts are said about a number that is not known")
                .help("use another name"));
        }
        if env.values.contains_key(text) || bound.contains(text) {
            return Err(Diagnostic::new("E0211", name.span(), format!("'{text}' is bound to a value"))
                .label(name.span(), "facts are said about a number that is not known")
                .help("use another name, or leave out the braces"));
        }
        let said = parameter.facts.and_then(|facts| source.get(facts.span())).unwrap_or("");
        let declared = said.parse().and_then(|facts: Facts| match env.parameters.get(text) {
            Some(before) => Parameter::named(text, before.facts().and(facts)?),
            None => Parameter::named(text, facts),
        });
        let declared = declared.map_err(|error| {
            let diagnostic = Diagnostic::new(error.code(), name.span(), error.to_string());
            diagnostic.label(name.span(), "no number is like this")
        })?;
        env.parameters.insert(text.to_owned(), declared);
    }
    for statement in &program.statements {
        if let Some(error) = foreign::labelled(source, program, statement.value, env) {
            return Err(error);
        }
    }
    for name in program.unknown_names() {
        let text = source.get(name.clone()).unwrap_or("");
        let known = bound.contains(text) || env.values.contains_key(text) || env.parameters.contains_key(text);
        if known || functions::find(text).is_some() || xor_bits(text).is_some() {
            continue;
        }
        if let Some(error) = foreign::reserved(text, name) {
            return Err(error);
        }
        if let Ok(parameter) = Parameter::named(text, Facts::positive()) {
            env.parameters.insert(text.to_owned(), parameter);
        }
    }
    Ok(())
}

/// The bits of an XOR step that is written as a name: `F9`.
fn xor_bits(text: &str) -> Option<u64> {
    text.strip_prefix('F').filter(|digits| digits.starts_with(|c: char| c.is_ascii_digit()))?.parse().ok()
}

/// The evaluator of one statement.
pub(crate) struct Evaluator<'a> {
    pub(crate) source: &'a str,
    pub(crate) program: &'a Program,
    pub(crate) env: &'a Environment,
}

type Evaluated = Result<Value, Diagnostic>;

impl<'a> Evaluator<'a> {
    pub(crate) fn text(&self, span: Range<usize>) -> &'a str {
        self.source.get(span).unwrap_or("")
    }

    /// The value of a node, by one pass along its subtree in postorder.
    pub(crate) fn value(&self, id: NodeId) -> Evaluated {
        let mut stack: Vec<Value> = Vec::new();
        for at in self.program.first(id)..=id {
            let node = self.program.node(at);
            let base = stack.len().saturating_sub(node.operands());
            let values = stack.get(base..).unwrap_or(&[]);
            let value = match node {
                Node::Part(_) => continue,
                Node::Int(value) => Value::Int(value),
                Node::Bool(value) => Value::Bool(value),
                Node::Underscore => Value::Coord(AnyCoord::open()),
                Node::Name | Node::Unknown => self.name(self.program.span(at))?,
                Node::Parameter(index) => self.parameter(at, index)?,
                Node::Xor(bits) => Value::from(Tree::leaf(Xor::new(bits).map_err(|error| self.refuse(at, error))?)),
                Node::Matrix { outputs, columns } => self.matrix(at, outputs, self.program.list(columns))?,
                Node::Linear => self.linear(at)?,
                Node::Step { path, .. } => self.step(at, self.program.list(path), values)?,
                Node::Arithmetic { operator, left, right } => self.arithmetic(at, operator, &[left, right], values)?,
                Node::Numbers { items } => self.numbers(at, items)?,
                Node::Tuple { trailing, .. } => {
                    let values = stack.drain(base..).collect();
                    tuple_of(values, trailing).map_err(|error| self.refuse(at, error))?
                }
                Node::Pair { shape, stride } => self.pair(at, &[shape, stride], values)?,
                Node::Morphism { domain, codomain, images } => {
                    self.morphism(at, &[domain, codomain], images, values)?
                }
                Node::Tiler { items } => self.tiler(at, self.program.list(items), values)?,
                Node::Swizzle { bits, base, shift } => {
                    Swizzle::new(bits, base, shift).map(Value::Swizzle).map_err(|error| self.refuse(at, error))?
                }
                Node::Call { name, arguments } => self.call(at, name, self.program.list(arguments), values)?,
                Node::Apply { target, arguments } => {
                    let mut operands = vec![target];
                    operands.extend(self.program.list(arguments));
                    self.apply(at, &operands, values)?
                }
                Node::Index { target, mode } => self.index(at, &[target, mode], values)?,
                Node::Compose { items } => self.compose(at, self.program.list(items), values)?,
            };
            stack.truncate(base);
            stack.push(value);
        }
        // The pass ends at the root, which leaves one value.
        stack.pop().ok_or_else(|| Diagnostic::new("E0212", self.program.span(id), "there is nothing to evaluate"))
    }

    /// The value of a name: a bound value, a parameter, or an XOR step such as `F9`.
    fn name(&self, span: Range<usize>) -> Evaluated {
        let text = self.text(span.clone());
        if let Some(value) = self.env.values.get(text) {
            return Ok(value.clone());
        }
        if let Some(parameter) = self.env.parameters.get(text) {
            return Ok(Value::from(Expr::from(parameter.clone())));
        }
        match xor_bits(text) {
            Some(bits) => Xor::new(bits)
                .map(|step| Value::from(Tree::leaf(step)))
                .map_err(|error| Diagnostic::new(error.code(), span, error.to_string())),
            None => Err(self.unknown_name(span, text)),
        }
    }

    #[cold]
    fn unknown_name(&self, span: Range<usize>, text: &str) -> Diagnostic {
        if let Some(error) = foreign::reserved(text, span.clone()) {
            return error;
        }
        let known = functions::find(text).is_some();
        let near = nearest(text, self.env.names(), 1).first().copied();
        let text = excerpt(text);
        let error = Diagnostic::new("E0205", span.clone(), format!("the name '{text}' is not bound"));
        if known {
            return error
                .label(span, "this is a function")
                .help(format!("a function is called with arguments in parentheses: {text}(...)"));
        }
        let error = error.label(span, "not bound");
        match near {
            Some(near) => error.help(format!("did you mean '{near}'?")),
            None => error.help(format!("bind it first, as in {text} = (4,8):(8,1)")),
        }
    }

    fn call(&self, id: NodeId, name: Name, operands: &[NodeId], values: &[Value]) -> Evaluated {
        let text = self.text(name.span());
        let Some(function) = functions::find(text) else {
            let starts_here = self.program.span(id).start == name.span().start;
            return match self.env.values.get(text) {
                Some(map) if starts_here => {
                    let operands: Vec<NodeId> = [id].iter().chain(operands).copied().collect();
                    let values: Vec<Value> = [map].into_iter().chain(values).cloned().collect();
                    self.apply(id, &operands, &values)
                }
                bound => Err(self.unknown_function(name, text, bound.is_some())),
            };
        };
        if values.len() < function.least || values.len() > function.most {
            return Err(self.wrong_arity(id, name, function, operands));
        }
        if operands.iter().any(|operand| self.program.keyword(*operand).is_some()) {
            let places = self.placed(function, operands)?;
            let values: Vec<Value> = places.iter().filter_map(|place| values.get(*place).cloned()).collect();
            let operands: Vec<NodeId> = places.iter().filter_map(|place| operands.get(*place).copied()).collect();
            return self.run(function, id, &operands, &values);
        }
        self.run(function, id, operands, values)
    }

    /// Calls a function with arguments in its order.
    fn run(&self, function: &functions::Function, id: NodeId, operands: &[NodeId], values: &[Value]) -> Evaluated {
        let run = functions::of_first(function, values.first());
        let value = run(Arguments { function: function.name, values: values.into() }).map_err(|fault| {
            let diagnostic = self.operation(function.name, id, operands, values).diagnose(fault);
            self.with_unbound(diagnostic, operands, values)
        })?;
        match self.env.watch {
            Watch::Off => Ok(value),
            _ => self.noted(function.name, id, operands, values, value),
        }
    }

    /// A value, after notes about it were added; an error if the evaluation is strict.
    #[cold]
    fn noted(&self, function: &str, id: NodeId, operands: &[NodeId], values: &[Value], value: Value) -> Evaluated {
        let Some((argument, message)) = notes::of(function, values.into(), &value) else { return Ok(value) };
        // A name that is applied has no node of its own.
        let place = operands.get(argument).filter(|operand| **operand != id);
        let note = Note { message, span: self.program.span(place.copied().unwrap_or(id)), strict: true };
        if self.env.watch == Watch::Refused {
            return Err(note.refusal());
        }
        self.env.note(note);
        Ok(value)
    }

    /// Adds a note about a name that was taken for a parameter.
    fn note_free(&self, id: NodeId) {
        let span = self.program.span(id);
        let text = self.text(span.clone());
        let free = self.env.watch != Watch::Off && !self.env.values.contains_key(text);
        if free && self.env.parameters.contains_key(text) {
            let near = nearest(text, self.env.names(), 1).first().copied();
            self.env.note(Note { message: notes::free(&excerpt(text), near), span, strict: false });
        }
    }

    #[cold]
    fn unknown_function(&self, name: Name, text: &str, bound: bool) -> Diagnostic {
        let error = Diagnostic::new("E0206", name.span(), format!("there is no function '{}'", excerpt(text)))
            .label(name.span(), "not a function");
        if bound {
            return error.help(format!("'{}' is a value; only functions are called with '.'", excerpt(text)));
        }
        if let Some(ours) = spellings::ours(text) {
            return error.help(ours);
        }
        let names = functions::functions().iter().map(|function| function.name).chain(self.env.names());
        match nearest(text, names, 1).first() {
            Some(near) => error.help(format!("did you mean '{near}'?")),
            None => error.help("'tilewright functions' lists them"),
        }
    }

    /// A refusal of an operation. If an operand is an unbound name, the refusal also names the
    /// bound name of which it may be a misspelling.
    #[cold]
    fn with_unbound(&self, diagnostic: Diagnostic, operands: &[NodeId], values: &[Value]) -> Diagnostic {
        let unbound = operands.iter().zip(values).find_map(|(operand, value)| {
            let text = self.text(self.program.span(*operand));
            let number = matches!(value, Value::Tree(AnyTree::Launch(number)) if number.is_leaf())
                && !self.env.values.contains_key(text);
            (self.program.node(*operand) == Node::Unknown && number).then_some(text)
        });
        match unbound.and_then(|text| Some((text, *nearest(text, self.env.names(), 1).first()?))) {
            Some((text, near)) => diagnostic.help(format!(
                "nothing is bound to '{}', so it is a number known at launch; did you mean '{near}'?",
                excerpt(text)
            )),
            None => diagnostic,
        }
    }

    #[cold]
    fn wrong_arity(&self, id: NodeId, name: Name, function: &functions::Function, operands: &[NodeId]) -> Diagnostic {
        let plural = |count: usize| if count == 1 { "argument" } else { "arguments" };
        let wanted = match (function.least, function.most) {
            (least, most) if least == most => format!("{least} {}", plural(least)),
            (least, MANY) => format!("at least {least} {}", plural(least)),
            (least, most) => format!("{least} to {most} arguments"),
        };
        let found = operands.len();
        let whole = self.program.span(id);
        let span = match operands.get(function.most) {
            Some(first) => self.program.span(*first).start..whole.end - 1,
            None => name.span(),
        };
        let what = if found > function.most { "not expected" } else { "too few arguments" };
        Diagnostic::new("E0207", span.clone(), format!("{} takes {wanted}, not {found}", function.name))
            .label(span, what)
            .help(format!("{}: {}", function.signature, function.summary))
    }

    /// `f(c)`: the value of a map at a coordinate, or its slice if the coordinate has a `_`.
    /// Several arguments are the modes of one coordinate.
    fn apply(&self, id: NodeId, operands: &[NodeId], values: &[Value]) -> Evaluated {
        let span = self.program.span(id);
        let (Some((map, rest)), Some(target)) = (values.split_first(), operands.first().copied()) else {
            return Ok(Value::Bool(false));
        };
        if let Some(name) = operands.iter().skip(1).find_map(|operand| self.program.keyword(*operand)) {
            return Err(Diagnostic::new("E0207", name.span(), "the indices of a coordinate have no names")
                .label(name.span(), "a name")
                .help("write A(2,3); arguments are given by name to functions, as in size(A, mode=[0])"));
        }
        if rest.is_empty() {
            return Err(Diagnostic::new("E0207", span.clone(), "a map is applied to a coordinate, and none is given")
                .label(span, "no coordinate")
                .help("write A(c), such as A(3) or A(2,_)"));
        }
        if let Some(position) = rest.iter().position(|value| coordinate(value).is_none()) {
            let fault = Fault::Kind { argument: position + 1, wanted: "a coordinate" };
            return Err(self.operation("", id, operands, values).diagnose(fault));
        }
        let applied = match rest {
            [only] => functions::apply(map, only),
            many => match tuple_of(many.to_vec(), false) {
                Ok(coord) => functions::apply(map, &coord),
                Err(error) => Some(Err(Fault::Refused(error))),
            },
        };
        match applied {
            Some(Ok(value)) if self.env.watch == Watch::Off => Ok(value),
            Some(Ok(value)) => {
                let coord = match rest {
                    [only] => only.clone(),
                    many => tuple_of(many.to_vec(), false).map_err(|error| self.refuse(id, error))?,
                };
                // Several arguments are one coordinate, whose location is that of all of them.
                let operands = if rest.len() == 1 { operands } else { &[] };
                self.noted("", id, operands, &[map.clone(), coord], value)
            }
            Some(Err(fault)) => Err(self.misapplied(id, operands, values, fault)),
            None => {
                let kind = with_article(map.kind());
                // A name that is applied is a call that begins with the name, whose own location is
                // that of the name.
                let shown = if target == id {
                    span.start..span.start + self.text(span.clone()).find('(').unwrap_or(1)
                } else {
                    self.program.span(target)
                };
                Err(Diagnostic::new("E0208", shown.clone(), format!("{kind} cannot be applied to a coordinate"))
                    .label(shown, format!("this is {kind}"))
                    .help("layouts are applied to coordinates; a layout literal is shape:stride"))
            }
        }
    }

    #[cold]
    fn misapplied(&self, id: NodeId, operands: &[NodeId], values: &[Value], fault: Fault) -> Diagnostic {
        // Several coordinates are the modes of one; the error is at the mode itself.
        let mode = match &fault {
            Fault::Refused(LayoutError::Coordinate { path, .. }) if operands.len() > 2 => path.first().copied(),
            _ => None,
        };
        let whole = matches!(&fault, Fault::Refused(LayoutError::Coordinate { path, .. }) if operands.len() > 2 && path.is_empty());
        let mut diagnostic = self.operation("", id, operands, values).diagnose(fault);
        let span = match (mode.and_then(|mode| operands.get(mode + 1)), operands) {
            (Some(operand), _) => self.program.span(*operand),
            (None, [_, first, .., last]) if whole => self.program.span(*first).start..self.program.span(*last).end,
            _ => return diagnostic,
        };
        diagnostic.labels.retain(|(label, _)| *label == diagnostic.span);
        diagnostic.labels.iter_mut().for_each(|(label, _)| *label = span.clone());
        diagnostic.span = span;
        diagnostic
    }

    /// `a[k]`: mode `k`.
    fn index(&self, id: NodeId, operands: &[NodeId; 2], values: &[Value]) -> Evaluated {
        functions::get(Arguments { function: "get", values: values.into() }).map_err(|fault| {
            let mut diagnostic = self.operation("get", id, operands, values).diagnose(fault);
            if diagnostic.code == "E0105" {
                diagnostic.span = self.program.span(operands[1]);
                diagnostic.labels.iter_mut().for_each(|(label, _)| *label = diagnostic.span.clone());
            }
            diagnostic
        })
    }

    /// `a o b o c`, from the left. A number or a tuple between two `o` is the offset of a composed
    /// layout: `a o offset o b`. Any other `a o b` is a composition.
    fn compose(&self, id: NodeId, operands: &[NodeId], values: &[Value]) -> Evaluated {
        let step = |operands: &[NodeId], values: &[Value]| {
            let arguments = Arguments { function: "composition", values: values.into() };
            let value =
                if values.len() == 3 { functions::composed(arguments, 1, 2) } else { functions::compose(arguments) };
            value.map_err(|fault| {
                let diagnostic = self.operation("composition", id, operands, values).diagnose(fault);
                self.with_unbound(diagnostic, operands, values)
            })
        };
        if values.len() == 2 {
            return step(operands, values);
        }
        for (operand, _) in operands.iter().zip(values).skip(1).step_by(2) {
            if self.program.node(*operand) == Node::Unknown && operands.last() != Some(operand) {
                self.note_free(*operand);
            }
        }
        // Maps with offsets between them, the last offset before the layout.
        let offsets = values.iter().skip(1).step_by(2).all(|value| single(value).is_some());
        if values.len() % 2 == 1 && values.len() > 3 && offsets {
            let chained = functions::chained(Arguments { function: "composition", values: values.into() });
            return chained.map_err(|fault| self.operation("composition", id, operands, values).diagnose(fault));
        }
        let (Some((left, mut values)), Some((first, mut operands))) = (values.split_first(), operands.split_first())
        else {
            return Ok(Value::Bool(false));
        };
        let mut left = left.clone();
        while !values.is_empty() {
            let offset_between = values.len() > 1 && values.first().is_some_and(|value| launch_tree(value).is_some());
            let taken = if offset_between { 2 } else { 1 };
            let (now, later) = values.split_at(taken);
            let (nodes, others) = operands.split_at(taken.min(operands.len()));
            let parties: Vec<Value> = std::iter::once(left).chain(now.iter().cloned()).collect();
            let places: Vec<NodeId> = std::iter::once(*first).chain(nodes.iter().copied()).collect();
            left = step(&places, &parties)?;
            (values, operands) = (later, others);
        }
        Ok(left)
    }

    fn operation<'b>(
        &'b self,
        function: &'b str,
        id: NodeId,
        operands: &'b [NodeId],
        values: &'b [Value],
    ) -> Operation<'b> {
        Operation { program: self.program, function, whole: self.program.span(id), operands, values }
    }

    fn refuse(&self, id: NodeId, error: LayoutError) -> Diagnostic {
        self.operation("", id, &[], &[]).diagnose(Fault::Refused(error))
    }
}
