//! Extents and steps: parameters with their facts, steps along a mode, XOR steps, and the
//! arithmetic in which they are written.

use std::ops::Range;

use tilewright_layout::LayoutError;
use tilewright_layout::symbolic::Facts;

use super::{MAX_NESTING, Parsed, Parser};
use crate::ast::{Item, Name, Node, NodeId, Operator, Parameter};
use crate::diagnostic::{Diagnostic, Fail};
use crate::lex::Kind;

impl Parser<'_, '_> {
    /// `['-'] term { ('+' | '-') term }`
    pub(super) fn sum(&mut self) -> Parsed {
        let first = match self.now.kind {
            Kind::Minus => self.negated(Self::term)?,
            _ => self.term()?,
        };
        self.sum_after(first)
    }

    /// `0 - operand`, at the sign.
    fn negated(&mut self, operand: fn(&mut Self) -> Parsed) -> Parsed {
        let start = self.advance()?.start;
        let zero = self.push(Node::Int(0), start..start, 1)?;
        let operand = operand(self)?;
        self.arithmetic(Operator::Minus, zero, operand)
    }

    /// The rest of a sum after its first term.
    fn sum_after(&mut self, mut left: NodeId) -> Parsed {
        loop {
            let operator = match self.now.kind {
                Kind::Plus => Operator::Plus,
                Kind::Minus => Operator::Minus,
                // `K-1` is a difference, but in `4 -1` an operator is missing between two numbers.
                Kind::Int(value) if value < 0 && self.now.start == self.end => {
                    let right = self.term()?;
                    left = self.arithmetic(Operator::Plus, left, right)?;
                    continue;
                }
                _ => return Ok(left),
            };
            self.advance()?;
            self.skip_lines()?;
            let right = self.term()?;
            left = self.arithmetic(operator, left, right)?;
        }
    }

    /// `step { ('*' | '/' | '%') step }`
    fn term(&mut self) -> Parsed {
        let first = self.step()?;
        self.term_after(first)
    }

    /// The rest of a term after its first step.
    fn term_after(&mut self, mut left: NodeId) -> Parsed {
        loop {
            let operator = match self.now.kind {
                Kind::Star => Operator::Times,
                Kind::Slash => Operator::Over,
                Kind::Percent => Operator::Modulo,
                // `1/2@0` is half of a step along mode 0; `2*M@0` is `(2*M)@0`.
                Kind::At => {
                    left = self.along(left)?;
                    continue;
                }
                _ => return Ok(left),
            };
            self.advance()?;
            self.skip_lines()?;
            let right = self.atom()?;
            left = self.arithmetic(operator, left, right)?;
        }
    }

    fn step(&mut self) -> Parsed {
        let scale = self.atom()?;
        if self.now.kind == Kind::At { self.along(scale) } else { Ok(scale) }
    }

    fn arithmetic(&mut self, operator: Operator, left: NodeId, right: NodeId) -> Parsed {
        self.may_be_parameter(left);
        self.may_be_parameter(right);
        let height = self.height(left).max(self.height(right)) + 1;
        if usize::from(height) > MAX_NESTING + 1 {
            return too_long(self.program.span(right)).fail();
        }
        self.push(Node::Arithmetic { operator, left, right }, self.start(left)..self.end, height)
    }

    /// `@mode@mode` after a scale.
    fn along(&mut self, scale: NodeId) -> Parsed {
        self.may_be_parameter(scale);
        let mark = self.pending.len();
        while self.now.kind == Kind::At {
            self.advance()?;
            let Kind::Int(mode) = self.now.kind else {
                return self
                    .unexpected("the number of a mode")
                    .help("a coordinate step is written scale@mode, such as 1@0, or 1@0@1 along mode 0 of mode 1")
                    .fail();
            };
            let token = self.advance()?;
            let part = self.push(Node::Part(mode), token.span(), 1)?;
            self.pending.push(part);
        }
        let (path, _) = self.finish_list(mark);
        let height = self.height(scale) + 1;
        self.push(Node::Step { scale, path }, self.start(scale)..self.end, height)
    }

    /// `^9`
    pub(super) fn xor(&mut self) -> Parsed {
        let start = self.advance()?.start;
        match self.now.kind {
            Kind::Int(value) if value >= 0 => {
                self.advance()?;
                self.push(Node::Xor(value.unsigned_abs()), start..self.end, 1)
            }
            _ => self.unexpected("the bits of the step, as an integer").help("an XOR step is written ^9").fail(),
        }
    }

    /// A parameter after its name or `?`: the facts, if there are any.
    pub(super) fn parameter(&mut self, start: usize, name: Option<Name>) -> Parsed {
        let facts = if self.now.kind == Kind::OpenBrace { Some(self.facts()?) } else { None };
        let index = self.program.parameters.len() as u32;
        self.program.parameters.push(Parameter { name, facts, in_stride: false });
        self.push(Node::Parameter(index), start..self.end, 1)
    }

    /// `{div=8,min=64,i32}`
    fn facts(&mut self) -> Result<Name, Fail> {
        let open = self.open()?;
        while !matches!(self.now.kind, Kind::CloseBrace | Kind::End | Kind::Semicolon) {
            self.advance()?;
        }
        let place = Name { start: open.end as u32, end: self.now.start as u32 };
        let text = self.source.get(place.span()).unwrap_or("");
        self.close(Kind::CloseBrace, "a fact or '}'")?;
        text.parse().map(|_: Facts| place).map_err(|error: LayoutError| {
            let span = match &error {
                LayoutError::Syntax { at, .. } => {
                    let word = text.get(*at..).unwrap_or("").split([',', ' ', '=']).next().unwrap_or("");
                    open.end + at..open.end + at + word.len().max(1)
                }
                _ => open.end..open.end + text.len(),
            };
            let diagnostic = match error {
                LayoutError::Syntax { expected, .. } => {
                    Diagnostic::new("E0201", span.clone(), format!("expected {expected}"))
                }
                // Each fact alone may be true of some number, but all together of none.
                LayoutError::Argument { what: "min" | "max" | "div", wanted: "such that a value remains", .. } => {
                    let said = format!("no positive number has all of these facts: {}", text.trim());
                    let said = if text.contains("int") { said.replacen("positive ", "", 1) } else { said };
                    Diagnostic::new(error.code(), span.clone(), said)
                }
                error => Diagnostic::new(error.code(), span.clone(), error.to_string()),
            };
            let help = "the facts are div=8, min=1, max=4096, int (of either sign) and the widths i8, i16, i32 and i64";
            Box::new(diagnostic.label(span, "in the facts about a number").help(help))
        })
    }

    /// `floor(a/b)` after the name: the quotient with the requested rounding.
    pub(super) fn rounded(&mut self, start: usize, rounding: Operator) -> Parsed {
        self.open()?;
        // The sign belongs to the dividend, because -M/2 rounds down to another number than -(M/2).
        let first = match self.now.kind {
            Kind::Minus => self.negated(Self::step)?,
            _ => self.step()?,
        };
        let term = self.term_after(first)?;
        let quotient = self.sum_after(term)?;
        let end = self.now.end;
        self.close(Kind::Close, "')'")?;
        let span = self.program.span(quotient);
        match self.program.items.get_mut(quotient as usize) {
            Some(item) if matches!(item.node, Node::Arithmetic { operator: Operator::Over, .. }) => {
                if let Node::Arithmetic { left, right, .. } = item.node {
                    *item = Item::new(Node::Arithmetic { operator: rounding, left, right }, start..end, item.height);
                }
                Ok(quotient)
            }
            _ => Diagnostic::new("E0201", span.clone(), "expected a quotient a/b to round")
                .label(span, "not a quotient")
                .help("write floor(a/b), ceil(a/b) or trunc(a/b)")
                .fail(),
        }
    }

    /// Marks the `?` of a stride, which may be any integer.
    pub(super) fn mark_stride(&mut self, stride: NodeId) {
        for at in self.program.first(stride)..=stride {
            if let Node::Parameter(index) = self.program.node(at)
                && let Some(parameter) = self.program.parameters.get_mut(index as usize)
            {
                parameter.in_stride = true;
            }
        }
    }

    /// Marks a bare name as a parameter if no value is bound to it.
    pub(super) fn may_be_parameter(&mut self, id: NodeId) {
        if let Some(item) = self.program.items.get_mut(id as usize)
            && item.node == Node::Name
        {
            item.node = Node::Unknown;
        }
    }

    /// As [`Parser::may_be_parameter`], for the pending nodes since `mark`.
    pub(super) fn may_be_parameters(&mut self, mark: usize) {
        for position in mark..self.pending.len() {
            if let Some(id) = self.pending.get(position).copied() {
                self.may_be_parameter(id);
            }
        }
    }
}

/// The error for a sum or product with more operators than brackets may nest. Each operator's left
/// operand contains all earlier ones.
#[cold]
fn too_long(span: Range<usize>) -> Diagnostic {
    Diagnostic::new("E0209", span.clone(), "the sum or product is too long")
        .label(span, format!("level {}", MAX_NESTING + 1))
        .help(format!(
            "each operator nests what stands before it, {MAX_NESTING} levels at most; bind the first part to a name"
        ))
}
