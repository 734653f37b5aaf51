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
use crate::diagnostic::Diagnostic;
use crate::functions::{self, MANY};
use crate::parse::{parse, unsupported};
use crate::suggest::nearest;
use crate::value::{Value, coordinate, tiler_of, tuple_of};

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
    parse(source, program)?;
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

    pub(crate) fn value(&self, id: NodeId) -> Evaluated {
        match self.program.node(id) {
            Node::Int(value) => Ok(Value::Int(value)),
            Node::Bool(value) => Ok(Value::Bool(value)),
            Node::Underscore => Ok(Value::Coord(Tree::leaf(tilewright_layout::Slot::All))),
            Node::Name => self.name(self.program.span(id)).cloned(),
            Node::Tuple { items, trailing } => self.tuple(id, items, trailing),
            Node::Pair { shape, stride } => self.pair(id, shape, stride),
            Node::Tiler { items } => self.tiler(id, items),
            Node::Swizzle { bits, base, shift } => self.swizzle(id, bits, base, shift),
            Node::Call { name, arguments } => self.call(id, name, arguments),
            Node::Apply { target, arguments } => {
                let value = self.value(target)?;
                self.apply(id, target, value, arguments)
            }
            Node::Index { target, mode } => self.index(id, target, mode),
            Node::Compose { items } => self.compose(id, items),
        }
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
        let error = Diagnostic::new("E0205", span.clone(), format!("the name '{text}' is not bound"));
        if functions::find(text).is_some() {
            return error
                .label(span, "this is a function")
                .help(format!("a function is called with arguments in parentheses: {text}(...)"));
        }
        let error = error.label(span, "not bound");
        match nearest(text, self.env.names()) {
            Some(near) => error.help(format!("did you mean '{near}'?")),
            None => error.help(format!("bind it first: {text} = (4,8):(8,1)")),
        }
    }

    fn values(&self, items: List) -> Result<Vec<Value>, Diagnostic> {
        self.program.list(items).iter().map(|item| self.value(*item)).collect()
    }

    fn tuple(&self, id: NodeId, items: List, trailing: bool) -> Evaluated {
        let nodes = self.program.list(items);
        // Most tuples are plain numbers.
        let numbers = nodes.iter().map(|item| match self.program.node(*item) {
            Node::Int(value) => Some(value),
            _ => None,
        });
        if numbers.clone().all(|number| number.is_some()) {
            return match Tree::flat(numbers.flatten()) {
                Ok(tree) => Ok(Value::Tree(tree)),
                Err(error) => Err(self.refuse(id, &[], &[], error)),
            };
        }
        let values = self.values(items)?;
        tuple_of(values, trailing).map_err(|error| self.refuse(id, &[], &[], error))
    }

    fn pair(&self, id: NodeId, shape: NodeId, stride: NodeId) -> Evaluated {
        let operands = [shape, stride];
        let values = [self.value(shape)?, self.value(stride)?];
        let operation = self.operation("", id, &operands, &values);
        let arguments = Arguments { function: "", values: &values };
        for (argument, wanted) in ["a shape before ':'", "strides after ':'"].into_iter().enumerate() {
            if !matches!(values.get(argument), Some(Value::Int(_) | Value::Tree(_))) {
                return Err(operation.diagnose(Fault::Kind { argument, wanted }));
            }
        }
        let layout = || -> Result<Layout, Fault> { Ok(Layout::new(&arguments.tree(0)?, &arguments.tree(1)?)?) };
        layout().map(Value::Layout).map_err(|fault| operation.diagnose(fault))
    }

    fn tiler(&self, id: NodeId, items: List) -> Evaluated {
        let operands = self.program.list(items);
        let values = self.values(items)?;
        let operation = || self.operation("", id, operands, &values);
        let mut tilers = Vec::with_capacity(values.len());
        for (argument, value) in values.iter().enumerate() {
            let tiler = match tiler_of(value) {
                Some(tiler) => tiler.map_err(|error| Fault::At(argument, error)),
                None => Err(Fault::Kind { argument, wanted: "a layout, an extent, '_' or a tiler" }),
            };
            tilers.push(tiler.map_err(|fault| operation().diagnose(fault))?);
        }
        Tiler::modes(tilers).map(Value::from).map_err(|error| self.refuse(id, operands, &values, error))
    }

    fn swizzle(&self, id: NodeId, bits: i64, base: i64, shift: i64) -> Evaluated {
        Swizzle::new(bits, base, shift).map(Value::Swizzle).map_err(|error| self.refuse(id, &[], &[], error))
    }

    fn call(&self, id: NodeId, name: Name, items: List) -> Evaluated {
        let text = self.text(name.span());
        let Some(function) = functions::find(text) else {
            let bound = self.env.values.get(text);
            let starts_here = self.program.span(id).start == name.span().start;
            return match bound {
                Some(value) if starts_here => self.apply(id, id, value.clone(), items),
                _ => Err(self.unknown_function(name, text, bound.is_some())),
            };
        };
        let operands = self.program.list(items);
        if operands.len() < function.least || operands.len() > function.most {
            return Err(self.wrong_arity(id, name, function, operands));
        }
        let values = self.values(items)?;
        let arguments = Arguments { function: function.name, values: &values };
        (function.run)(arguments).map_err(|fault| self.operation(function.name, id, operands, &values).diagnose(fault))
    }

    #[cold]
    fn unknown_function(&self, name: Name, text: &str, bound: bool) -> Diagnostic {
        let error = Diagnostic::new("E0206", name.span(), format!("there is no function '{text}'"))
            .label(name.span(), "not a function");
        if bound {
            return error.help(format!("'{text}' is a value; only functions are called with '.'"));
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
    fn apply(&self, id: NodeId, target: NodeId, value: Value, items: List) -> Evaluated {
        let mut operands = vec![target];
        operands.extend(self.program.list(items));
        let mut values = vec![value];
        values.extend(self.values(items)?);
        let span = self.program.span(id);
        let Some((map, rest)) = values.split_first() else { return Ok(Value::Bool(false)) };
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
                    return Err(self.operation("", id, &operands, &values).diagnose(fault));
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
            Some(Err(fault)) => Err(self.misapplied(id, &operands, &values, fault)),
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
    fn index(&self, id: NodeId, target: NodeId, mode: NodeId) -> Evaluated {
        let operands = [target, mode];
        let values = [self.value(target)?, self.value(mode)?];
        let arguments = Arguments { function: "get", values: &values };
        functions::get(arguments).map_err(|fault| {
            let mut diagnostic = self.operation("get", id, &operands, &values).diagnose(fault);
            if diagnostic.code == "E0105" {
                diagnostic.span = self.program.span(mode);
                diagnostic.labels.iter_mut().for_each(|(label, _)| *label = diagnostic.span.clone());
            }
            diagnostic
        })
    }

    /// `a o b o c`, from the left. A swizzle, an offset and a layout, or two layouts with an offset between them, are a
    /// composed layout; any other `a o b` is a composition.
    fn compose(&self, id: NodeId, items: List) -> Evaluated {
        let nodes = self.program.list(items);
        let Some((first, mut rest)) = nodes.split_first() else { return Ok(Value::Bool(false)) };
        let mut left = self.value(*first)?;
        while let Some((next, after)) = rest.split_first() {
            let right = self.value(*next)?;
            let offset_between =
                matches!((&left, &right), (Value::Layout(_) | Value::Swizzle(_), Value::Int(_) | Value::Tree(_)));
            let (operands, values);
            let value = match after.split_first() {
                Some((inner, after)) if offset_between => {
                    let inner_value = self.value(*inner)?;
                    (operands, values) = (vec![*first, *next, *inner], vec![left, right, inner_value]);
                    rest = after;
                    functions::composed(Arguments { function: "composition", values: &values }, 1, 2)
                }
                _ => {
                    (operands, values) = (vec![*first, *next], vec![left, right]);
                    rest = after;
                    functions::compose(Arguments { function: "composition", values: &values })
                }
            };
            left = value.map_err(|fault| self.operation("composition", id, &operands, &values).diagnose(fault))?;
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

    fn refuse(&self, id: NodeId, operands: &[NodeId], values: &[Value], error: LayoutError) -> Diagnostic {
        self.operation("", id, operands, values).diagnose(Fault::Refused(error))
    }
}
