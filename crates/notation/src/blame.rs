//! Maps an error of the layout algebra to a location in the text of the program.
//!
//! A [`LayoutError`] names an operand and the path of a mode in it. If the operand is a literal,
//! exactly the numbers of that mode are underlined. If it is a name or a call, the whole operand is
//! underlined, and its value is shown beside it.

use std::ops::Range;

use tilewright_layout::{AnyLayout, AnyTree, LayoutError, Path, Refusal, RefusedOperand};

use crate::arguments::{Fault, is_map};
use crate::ast::{Node, NodeId, Program};
use crate::diagnostic::Diagnostic;
use crate::reading::{coordinate, single};
use crate::value::Value;

/// An operation: its location, and its operands as text and as values.
pub(crate) struct Operation<'a> {
    pub(crate) program: &'a Program,
    /// The name of the function; empty for notation like `shape:stride`.
    pub(crate) function: &'a str,
    pub(crate) whole: Range<usize>,
    pub(crate) operands: &'a [NodeId],
    pub(crate) values: &'a [Value],
}

/// The locations of one mode in the text of an operand.
#[derive(Debug, Default, Clone)]
struct Spot {
    extent: Option<Range<usize>>,
    stride: Option<Range<usize>>,
}

impl Operation<'_> {
    #[cold]
    pub(crate) fn diagnose(&self, fault: Fault) -> Diagnostic {
        match fault {
            Fault::Refused(error) => self.refused(&error),
            Fault::Morphism(error) => self.refused_as_a_whole(&error),
            Fault::Atom(error) => self.refused_as_a_whole(&error),
            Fault::At(argument, error) => self.argument_refused(argument, &error),
            Fault::Kind { argument, wanted } => self.wrong_kind(argument, wanted),
        }
    }

    /// A refusal without a location in the operands.
    fn refused_as_a_whole(&self, error: &dyn Refusal) -> Diagnostic {
        let diagnostic = Diagnostic::new(error.code(), self.whole.clone(), error.to_string());
        let diagnostic = self.with_values(diagnostic, None);
        match error.help() {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }

    fn wrong_kind(&self, argument: usize, wanted: &str) -> Diagnostic {
        let span = self.operands.get(argument).map_or(self.whole.clone(), |id| self.program.span(*id));
        let (found, value) = match self.values.get(argument) {
            Some(value) => (with_article(value.kind()), short(value)),
            None => ("nothing".to_string(), None),
        };
        let which = if self.function.is_empty() {
            format!("expected {wanted}, found {found}")
        } else {
            format!("{}: argument {} must be {wanted}, not {found}", self.function, argument + 1)
        };
        let written = self.operands.get(argument).is_some_and(|id| self.written(argument, *id));
        let error = Diagnostic::new("E0208", span.clone(), which);
        let error = match value {
            Some(value) if !written => error.label(span, format!("this is {value}")),
            _ => error.label(span, format!("expected {wanted}")),
        };
        if let Some(help) = self.rewritten(argument) {
            return error.help(help);
        }
        match crate::functions::find(self.function) {
            Some(function) => error.help(format!("{}: {}", function.signature, function.summary)),
            None => error,
        }
    }

    /// What an argument of the wrong kind was probably meant to be.
    fn rewritten(&self, argument: usize) -> Option<String> {
        match (self.function, self.values) {
            // Some documents write the arguments in this order.
            ("slice" | "dice" | "slice_and_offset" | "domain_offset", [coord, map])
                if is_map(map) && coordinate(coord).is_some() =>
            {
                return Some(format!("the layout comes first: {}(A, c)", self.function));
            }
            _ => {}
        }
        // `(4,8:8,1)` is a list of 4, 8:8 and 1.
        let Some(Value::List(items)) = self.values.get(argument) else { return None };
        let pairs = items
            .iter()
            .filter(|item| matches!(item, Value::Layout(AnyLayout::Integer(_) | AnyLayout::Launch(_))))
            .count();
        let numbers = items.iter().filter(|item| single(item).is_some()).count();
        (pairs == 1 && numbers + 1 == items.len() && numbers > 0).then(|| {
            let list = short(&Value::List(items.clone())).unwrap_or_default();
            format!("{list} is a list of {} values; a layout of several modes is (4,8):(8,1)", items.len())
        })
    }

    fn refused(&self, error: &LayoutError) -> Diagnostic {
        let diagnostic = self.refused_at(error);
        match (self.composed(error), &diagnostic.help) {
            (Some(parts), Some(help)) => {
                let help = format!("{parts}; {help}");
                diagnostic.help(help)
            }
            (Some(parts), None) => diagnostic.help(parts),
            (None, _) => diagnostic,
        }
    }

    /// The meaning of A and B in a message about a composition inside the definition of the
    /// operation, because they are not the operation's own operands.
    fn composed(&self, error: &LayoutError) -> Option<String> {
        if !matches!(error, LayoutError::Carry(_) | LayoutError::Uneven(_)) {
            return None;
        }
        match self.function {
            "logical_divide" | "zipped_divide" | "tiled_divide" | "flat_divide" => {
                Some("here B is the tile, its mode 0, and the complement of the tile, its mode 1".to_string())
            }
            "logical_product" | "zipped_product" | "tiled_product" | "flat_product" | "blocked_product"
            | "raked_product" | "tile_to_shape" => {
                let Some(Value::Layout(AnyLayout::Integer(block))) = self.values.first() else { return None };
                let gaps = block.weak_complement_open().ok()?;
                Some(format!(
                    "here A is the weak complement of the block, {gaps}, of which B takes an index for each copy"
                ))
            }
            _ => None,
        }
    }

    fn refused_at(&self, error: &LayoutError) -> Diagnostic {
        if let Some((operand, path)) = self.place(error) {
            let diagnostic = self.at(error, operand, &path);
            return self.with_values(diagnostic, Some(operand));
        }
        match self.number(error) {
            Some(span) => base(error, span.clone()).label(span, label(error)),
            None => {
                let diagnostic = base(error, self.whole.clone());
                let text = label(error);
                let diagnostic = if text.is_empty() { diagnostic } else { diagnostic.label(self.whole.clone(), text) };
                self.with_values(diagnostic, None)
            }
        }
    }

    /// The number in the arguments that an error without a path is about.
    fn number(&self, error: &LayoutError) -> Option<Range<usize>> {
        let span = |operand: usize| self.operands.get(operand).map(|id| self.program.span(*id));
        let wanted = match error {
            LayoutError::Modes { .. } => return Some(span(1)?.start..span(2)?.end),
            LayoutError::Order { key, .. } => {
                let id = *self.operands.last()?;
                let keys = match self.program.node(id) {
                    Node::Tuple { items, .. } | Node::Numbers { items } => self.program.list(items),
                    _ => &[],
                };
                let found = keys.iter().rev().find(|key_id| self.program.node(**key_id).integer() == Some(*key));
                return Some(self.program.span(*found.unwrap_or(&id)));
            }
            LayoutError::LeafCount { .. } => return span(1),
            LayoutError::Argument { value, .. } => *value,
            LayoutError::NoSuchMode { mode, .. } => i64::try_from(*mode).ok()?,
            _ => return None,
        };
        let mut found = self.values.iter().enumerate().filter(|(_, value)| **value == Value::Int(wanted));
        match (found.next(), found.next()) {
            (Some((operand, _)), None) => span(operand),
            _ => None,
        }
    }

    /// A refusal of one argument alone: it is the first operand of the error.
    fn argument_refused(&self, argument: usize, error: &LayoutError) -> Diagnostic {
        match error.place() {
            Some((RefusedOperand::First, path)) => self.at(error, argument, &path),
            _ => self.at(error, argument, &[]),
        }
    }

    /// The argument that the error is about, and the path in it.
    fn place(&self, error: &LayoutError) -> Option<(usize, Path)> {
        let (operand, path) = error.place()?;
        let layout = self.values.iter().position(is_map);
        let (operand, path) = match (self.function, operand, path.as_slice()) {
            // The modes of a transposition (`zip`) are its arguments.
            ("zip", _, [argument, rest @ ..]) if self.operands.len() == 2 => (*argument, rest),
            // The layout is the last argument.
            ("recast_layout", RefusedOperand::First, path) => (layout?, path),
            // The coordinate is the first argument, and the shape the second, unless the function
            // is called as a method.
            ("crd2idx" | "idx2crd" | "crd2crd" | "increment_coord", operand, path) => {
                let method = layout == Some(0);
                (usize::from((operand == RefusedOperand::First) != method), path)
            }
            (_, RefusedOperand::First, path) => (0, path),
            (_, RefusedOperand::Second, path) => (1, path),
        };
        (operand < self.operands.len()).then(|| (operand, path.to_vec()))
    }

    fn at(&self, error: &LayoutError, operand: usize, path: &[usize]) -> Diagnostic {
        let Some(id) = self.operands.get(operand).copied() else { return base(error, self.whole.clone()) };
        let spot = locate(self.program, id, path);
        let whole = self.program.span(id);
        let (culprit, other) = match error {
            LayoutError::Extent { .. } => (spot.extent.clone(), None),
            LayoutError::NotDivisible { value, .. } if self.extent(operand, path) == Some(*value) => {
                (spot.extent.clone(), None)
            }
            _ => match (spot.stride.clone(), spot.extent.clone()) {
                (Some(stride), extent) => (Some(stride), extent),
                (None, extent) => (extent, None),
            },
        };
        let exact = culprit.is_some();
        let span = culprit.unwrap_or(whole);
        let mut diagnostic = base(error, span.clone());
        let text = match (self.values.get(operand).and_then(short), exact) {
            (Some(value), false) if !self.written(operand, id) => format!("{} is {value}", self.letter(operand)),
            _ => label(error),
        };
        diagnostic = diagnostic.label(span, text);
        if let Some(extent) = other {
            diagnostic = diagnostic.label(extent, "");
        }
        // The second mode that the error names, if there is one.
        let second = match error {
            LayoutError::Carry(carry) if !carry.alone() => Some((carry.inside().path, "starts inside it")),
            LayoutError::NotChain(chain) | LayoutError::Overlap(chain) => {
                chain.inner.as_ref().map(|(path, _, _)| (path.clone(), "the mode before it"))
            }
            _ => None,
        };
        if let (Some((path, text)), true) = (second, exact) {
            let spot = locate(self.program, id, &path);
            if let Some(stride) = spot.stride.or(spot.extent) {
                diagnostic = diagnostic.label(stride, text);
            }
        }
        diagnostic
    }

    /// The extent of the leaf at `path` of an operand; None if it equals the stride, or if there is
    /// no such leaf.
    fn extent(&self, operand: usize, path: &[usize]) -> Option<i64> {
        let Some(Value::Layout(AnyLayout::Integer(layout))) = self.values.get(operand) else { return None };
        let mode = path.iter().try_fold(layout.clone(), |mode, number| mode.mode(*number))?;
        match mode.leaves() {
            [leaf] if leaf.extent != leaf.stride => Some(leaf.extent),
            _ => None,
        }
    }

    /// Adds the values of the operands that are not literals.
    fn with_values(&self, mut diagnostic: Diagnostic, told: Option<usize>) -> Diagnostic {
        if self.function.is_empty() {
            return diagnostic;
        }
        for (position, (id, value)) in self.operands.iter().zip(self.values).enumerate() {
            let span = self.program.span(*id);
            if told == Some(position) || self.written(position, *id) || diagnostic.span == span {
                continue;
            }
            if let (true, Some(text)) = (is_map(value), short(value)) {
                diagnostic = diagnostic.label(span, format!("{} is {text}", self.letter(position)));
            }
        }
        diagnostic
    }

    /// Whether an operand is a literal, so that its value need not be shown. An unbound name
    /// represents itself.
    fn written(&self, operand: usize, id: NodeId) -> bool {
        match self.program.node(id) {
            Node::Unknown => matches!(self.values.get(operand), Some(Value::Tree(AnyTree::Launch(_)))),
            Node::Name | Node::Call { .. } | Node::Apply { .. } | Node::Index { .. } | Node::Compose { .. } => false,
            _ => true,
        }
    }

    fn letter(&self, operand: usize) -> &'static str {
        match operand {
            0 => "A",
            1 => "B",
            _ => "this",
        }
    }
}

fn base(error: &LayoutError, span: Range<usize>) -> Diagnostic {
    let mut diagnostic = Diagnostic::new(error.code(), span, error.to_string());
    diagnostic.witness = error.witness().map(Box::new);
    if let LayoutError::Open { question, .. } = error {
        diagnostic.declaration.clone_from(&question.declaration);
    }
    match error.help() {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// The label of the underlined text.
fn label(error: &LayoutError) -> String {
    match error {
        LayoutError::NotCongruent { .. } => "nests differently".to_string(),
        LayoutError::Extent { .. } => "not positive".to_string(),
        LayoutError::Carry(carry) if carry.alone() => {
            format!("carries in mode {} of A", carry.mode_of_a)
        }
        LayoutError::Carry(carry) => format!("walks past mode {} of A", carry.mode_of_a),
        LayoutError::Uneven(uneven) => format!("leaves mode {} of A after {} steps", uneven.mode_of_a, uneven.run),
        LayoutError::OutOfDomain { size, .. } => format!("leaves the domain of A, which has size {size}"),
        LayoutError::NotChain(chain) => format!("not a multiple of {}", chain.covered),
        LayoutError::Overlap(chain) => format!("less than {}", chain.covered),
        LayoutError::Negative { .. } => "negative".to_string(),
        LayoutError::Rank { expected, found, .. } => format!("rank {found}, expected {expected}"),
        LayoutError::NotDivisible { divisor, .. } => format!("not divisible by {divisor}"),
        LayoutError::Apart { together: 1, .. } => "elements lie apart".to_string(),
        LayoutError::Apart { together, .. } => format!("only {together} side by side"),
        LayoutError::Coordinate { shape, .. } if shape.is_leaf() => "the mode here is a single number".to_string(),
        LayoutError::Coordinate { shape, .. } => format!("the shape here nests as {shape}"),
        LayoutError::Tiler { what, .. } => what.to_string(),
        LayoutError::Size { left, right, .. } => format!("{left} and {right}"),
        LayoutError::Argument { what, wanted, .. } => format!("{what} must be {wanted}"),
        LayoutError::NoSuchMode { rank, .. } | LayoutError::Modes { rank, .. } => format!("the rank is {rank}"),
        LayoutError::Order { what, .. } => what.to_string(),
        LayoutError::LeafCount { expected, .. } => {
            format!("{expected} {}", if *expected == 1 { "leaf" } else { "leaves" })
        }
        _ => String::new(),
    }
}

/// A value that is short enough for a label.
fn short(value: &Value) -> Option<String> {
    let text = value.to_string();
    (text.len() <= 60).then_some(text)
}

pub(crate) fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {kind}")
}

/// The location of the mode at `path` in the text of a node; None if that part is not a literal.
fn locate(program: &Program, id: NodeId, path: &[usize]) -> Spot {
    match program.node(id) {
        Node::Pair { shape, stride } => {
            Spot { extent: walk(program, shape, path), stride: walk(program, stride, path) }
        }
        // Parentheses around one layout only group it.
        Node::Tuple { items, trailing: false } => match program.list(items) {
            [only]
                if !program.node(*only).is_number()
                    && !matches!(program.node(*only), Node::Tuple { .. } | Node::Numbers { .. } | Node::Underscore) =>
            {
                locate(program, *only, path)
            }
            _ => Spot { extent: walk(program, id, path), stride: None },
        },
        Node::Tiler { items } => match path {
            [first, rest @ ..] => match program.list(items).get(*first) {
                Some(item) => locate(program, *item, rest),
                None => Spot::default(),
            },
            [] => Spot::default(),
        },
        node if node.is_number() || matches!(node, Node::Numbers { .. }) => {
            Spot { extent: walk(program, id, path), stride: None }
        }
        _ => Spot::default(),
    }
}

/// The location of the number or tuple at `path` in a literal tuple; a number is its own mode 0.
fn walk(program: &Program, id: NodeId, path: &[usize]) -> Option<Range<usize>> {
    let mut id = id;
    let mut path = path;
    while let [first, rest @ ..] = path {
        match program.node(id) {
            Node::Tuple { items, .. } | Node::Numbers { items } => id = *program.list(items).get(*first)?,
            node if node.is_number() && path.iter().all(|mode| *mode == 0) => break,
            _ => return None,
        }
        path = rest;
    }
    let node = program.node(id);
    let written = node.is_number() || matches!(node, Node::Tuple { .. } | Node::Numbers { .. } | Node::Underscore);
    written.then(|| program.span(id))
}
