//! Evaluation.
//!
//! Law: a program's value is that of its last statement, its names bound in order; an operation that the algebra refuses is
//! a [`Diagnostic`] that points at the operand, and within a written operand at the mode, that is to blame.

use std::collections::BTreeMap;
use std::ops::Range;

use tilewright_layout::{Layout, LayoutError, Swizzle, Tiler, Tree};

use crate::arguments::{Arguments, Fault};
use crate::ast::{List, Name, Node, NodeId, Program};
use crate::blame::{Operation, with_article};
use crate::diagnostic::{Diagnostic, excerpt};
use crate::functions::{self, MANY};
use crate::parse::{parse, unsupported};
use crate::suggest::nearest;
use crate::value::{Value, coordinate, number_tree, tiler_of, tuple_of};

/// The names that programs have bound.
///
/// ```
/// use tilewright_notation::{Environment, evaluate};
///
/// let mut env = Environment::new();
/// evaluate("A = (4,8):(8,1)", &mut env).unwrap();
/// assert_eq!(evaluate("A(2,3)", &mut env).unwrap().to_string(), "19");
/// assert_eq!(env.names().collect::<Vec<_>>(), ["A"]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Environment {
    values: BTreeMap<String, Value>,
}

impl Environment {
    /// An environment in which no name is bound.
    pub fn new() -> Environment {
        Environment::default()
    }

    /// The names that are bound, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Binds a name to a value. A name that is already bound is bound anew.
    pub fn bind(&mut self, name: impl Into<String>, value: Value) {
        self.values.insert(name.into(), value);
    }

    /// Forgets every name.
    pub fn clear(&mut self) {
        self.values.clear();
    }
}

/// Evaluates a program: statements separated by `;` or a newline, each `name = expression` but the last, which may be an
/// expression alone. The value is that of the last statement.
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
    parse(source, program).map_err(|error| *error)?;
    let mut last = None;
    for statement in &program.statements {
        let value = Evaluator { source, program, env }.value(statement.value)?;
        if let Some(name) = statement.name {
            let text = source.get(name.span()).unwrap_or("");
            env.bind(text, value.clone());
        }
        last = Some(value);
    }
    last.ok_or_else(|| Diagnostic::new("E0212", 0..source.len(), "there is nothing to evaluate"))
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

    /// The value of a node: one walk along its subtree in postorder.
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
                Node::Underscore => Value::Coord(Tree::leaf(tilewright_layout::Slot::All)),
                Node::Name => self.name(self.program.span(at))?.clone(),
                Node::Numbers { items } => self.numbers(at, items)?,
                Node::Tuple { trailing, .. } => {
                    let values = stack.drain(base..).collect();
                    tuple_of(values, trailing).map_err(|error| self.refuse(at, error))?
                }
                Node::Pair { shape, stride } => self.pair(at, &[shape, stride], values)?,
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
        // The walk ends in the root, which leaves one value.
        stack.pop().ok_or_else(|| Diagnostic::new("E0212", self.program.span(id), "there is nothing to evaluate"))
    }

    fn name(&self, span: Range<usize>) -> Result<&'a Value, Diagnostic> {
        let text = self.text(span.clone());
        match self.env.values.get(text) {
            Some(value) => Ok(value),
            None => Err(self.unknown_name(span, text)),
        }
    }

    #[cold]
    fn unknown_name(&self, span: Range<usize>, text: &str) -> Diagnostic {
        if text.strip_prefix('F').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
        {
            return unsupported(span, "XOR steps", "an XOR step, such as F9,");
        }
        let known = functions::find(text).is_some();
        let near = nearest(text, self.env.names());
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
            None => error.help(format!("bind it first: {text} = (4,8):(8,1)")),
        }
    }

    fn numbers(&self, id: NodeId, items: List) -> Evaluated {
        let numbers = self.program.list(items).iter().filter_map(|item| self.program.node(*item).integer());
        Tree::flat(numbers).map(Value::Tree).map_err(|error| self.refuse(id, error))
    }

    fn pair(&self, id: NodeId, operands: &[NodeId], values: &[Value]) -> Evaluated {
        let layout = match values {
            [Value::Tree(shape), Value::Tree(stride)] => Layout::new(shape, stride),
            [Value::Int(extent), Value::Int(stride)] => Layout::mode_of(*extent, *stride),
            [Value::Int(_) | Value::Tree(_), Value::Int(_) | Value::Tree(_)] => {
                match (values.first().and_then(number_tree), values.get(1).and_then(number_tree)) {
                    (Some(shape), Some(stride)) => Layout::new(&shape, &stride),
                    _ => Ok(Layout::unit()),
                }
            }
            _ => {
                let (argument, wanted) = match values.first() {
                    Some(Value::Int(_) | Value::Tree(_)) => (1, "strides after ':'"),
                    _ => (0, "a shape before ':'"),
                };
                return Err(self.operation("", id, operands, values).diagnose(Fault::Kind { argument, wanted }));
            }
        };
        layout.map(Value::Layout).map_err(|error| self.operation("", id, operands, values).diagnose(error.into()))
    }

    fn tiler(&self, id: NodeId, operands: &[NodeId], values: &[Value]) -> Evaluated {
        let operation = || self.operation("", id, operands, values);
        let mut tilers = Vec::with_capacity(values.len());
        for (argument, value) in values.iter().enumerate() {
            let tiler = match tiler_of(value) {
                Some(tiler) => tiler.map_err(|error| Fault::At(argument, error)),
                None => Err(Fault::Kind { argument, wanted: "a layout, an extent, '_' or a tiler" }),
            };
            tilers.push(tiler.map_err(|fault| operation().diagnose(fault))?);
        }
        Tiler::modes(tilers).map(Value::from).map_err(|error| self.refuse(id, error))
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
        (function.run)(Arguments { function: function.name, values })
            .map_err(|fault| self.operation(function.name, id, operands, values).diagnose(fault))
    }

    #[cold]
    fn unknown_function(&self, name: Name, text: &str, bound: bool) -> Diagnostic {
        let error = Diagnostic::new("E0206", name.span(), format!("there is no function '{}'", excerpt(text)))
            .label(name.span(), "not a function");
        if bound {
            return error.help(format!("'{}' is a value; only functions are called with '.'", excerpt(text)));
        }
        let names = functions::functions().iter().map(|function| function.name).chain(self.env.names());
        match nearest(text, names) {
            Some(near) => error.help(format!("did you mean '{near}'?")),
            None => error.help("'tilewright functions' lists them"),
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

    /// `f(c)`: the value of a map at a coordinate, or its slice where the coordinate has a `_`. Several arguments are the
    /// modes of one coordinate.
    fn apply(&self, id: NodeId, operands: &[NodeId], values: &[Value]) -> Evaluated {
        let span = self.program.span(id);
        let (Some((map, rest)), Some(target)) = (values.split_first(), operands.first().copied()) else {
            return Ok(Value::Bool(false));
        };
        if rest.is_empty() {
            return Err(Diagnostic::new("E0207", span.clone(), "a map is applied to a coordinate, and none is given")
                .label(span, "no coordinate")
                .help("write A(c), such as A(3) or A(2,_)"));
        }
        let mut modes = Vec::with_capacity(rest.len());
        for (position, value) in rest.iter().enumerate() {
            match coordinate(value) {
                Some(mode) => modes.push(mode),
                None => {
                    let fault = Fault::Kind { argument: position + 1, wanted: "a coordinate" };
                    return Err(self.operation("", id, operands, values).diagnose(fault));
                }
            }
        }
        let applied = match modes.as_slice() {
            [only] => functions::apply(map, only),
            many => match Tree::tuple(many.iter()) {
                Ok(coord) => functions::apply(map, &coord),
                Err(error) => Some(Err(Fault::Refused(error))),
            },
        };
        match applied {
            Some(Ok(value)) => Ok(value),
            Some(Err(fault)) => Err(self.misapplied(id, operands, values, fault)),
            None => {
                let kind = with_article(map.kind());
                // A name that is applied is a call whose name comes first; its own place is the name.
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
        // Several coordinates are the modes of one; the culprit is the mode itself.
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
        functions::get(Arguments { function: "get", values }).map_err(|fault| {
            let mut diagnostic = self.operation("get", id, operands, values).diagnose(fault);
            if diagnostic.code == "E0105" {
                diagnostic.span = self.program.span(operands[1]);
                diagnostic.labels.iter_mut().for_each(|(label, _)| *label = diagnostic.span.clone());
            }
            diagnostic
        })
    }

    /// `a o b o c`, from the left. A swizzle, an offset and a layout, or two layouts with an offset between them, are a
    /// composed layout; any other `a o b` is a composition.
    fn compose(&self, id: NodeId, operands: &[NodeId], values: &[Value]) -> Evaluated {
        let step = |operands: &[NodeId], values: &[Value]| {
            let arguments = Arguments { function: "composition", values };
            let value =
                if values.len() == 3 { functions::composed(arguments, 1, 2) } else { functions::compose(arguments) };
            value.map_err(|fault| self.operation("composition", id, operands, values).diagnose(fault))
        };
        if values.len() == 2 {
            return step(operands, values);
        }
        let (Some((left, mut values)), Some((first, mut operands))) = (values.split_first(), operands.split_first())
        else {
            return Ok(Value::Bool(false));
        };
        let mut left = left.clone();
        while !values.is_empty() {
            let offset_between = values.len() > 1
                && matches!(left, Value::Layout(_) | Value::Swizzle(_))
                && matches!(values.first(), Some(Value::Int(_) | Value::Tree(_)));
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
