//! Literals: numbers and their arithmetic, steps, layouts, tilers, maps over bits and morphisms.
//!
//! Each method gets the values of its operands, which were evaluated before.

use tilewright_layout::morphism::{MorphismError, NestMorphism};
use tilewright_layout::symbolic::{Expr, Facts, Parameter};
use tilewright_layout::{
    AnyLayout, AnyTiler, AnyTree, BitMatrix, CoordinateStep, Extent, Layout, LayoutError, LinearLayout, ModePath,
    Stride, Tree,
};

use super::{Evaluated, Evaluator};
use crate::arguments::{Fault, is_map};
use crate::ast::{List, Name, NodeId, Operator};
use crate::diagnostic::Diagnostic;
use crate::functions::{Unfit, quotient};
use crate::reading::{any_tree, integer_tree, launch_tree, single, single_step, tiler_of};
use crate::value::Value;

/// A new parameter without a name. In a stride, its sign is unknown too.
pub(super) fn unnamed(said: &str, in_stride: bool) -> Result<Parameter, LayoutError> {
    match in_stride {
        true => format!("int,{said}").parse().map(Parameter::anonymous),
        false => said.parse().map(Parameter::anonymous),
    }
}

impl Evaluator<'_> {
    /// `M{div=8}` or `?`.
    pub(super) fn parameter(&self, id: NodeId, index: u32) -> Evaluated {
        let Some(written) = self.program.parameters.get(index as usize) else { return Ok(Value::Bool(false)) };
        let said = written.facts.map_or("", |facts| self.text(facts.span()));
        let parameter = match written.name {
            Some(name) => match self.env.parameters.get(self.text(name.span())) {
                Some(declared) => Ok(declared.clone()),
                None => Parameter::named(self.text(name.span()), Facts::positive()),
            },
            // If no program was prepared, nothing else is evaluated.
            None => match self.program.unnamed.get(index as usize) {
                Some(Some(parameter)) => Ok(parameter.clone()),
                _ => unnamed(said, written.in_stride),
            },
        };
        parameter.map(|parameter| Value::from(Expr::from(parameter))).map_err(|error| self.refuse(id, error))
    }

    /// `F2<outputs>[column,...]`
    pub(super) fn matrix(&self, id: NodeId, outputs: u8, columns: &[NodeId]) -> Evaluated {
        let columns = columns.iter().filter_map(|column| self.program.node(*column).integer());
        let columns = columns.map(|column| {
            let (what, wanted) = ("a column of a bit matrix", "0 or more");
            u64::try_from(column).map_err(|_| LayoutError::Argument { op: "bit_matrix", what, value: column, wanted })
        });
        let columns = columns.collect::<Result<Vec<u64>, _>>();
        let matrix = columns.and_then(|columns| BitMatrix::new(usize::from(outputs), columns));
        matrix.map(Value::Matrix).map_err(|error| self.refuse(id, error))
    }

    /// `input=[image,...] -> output:size`
    pub(super) fn linear(&self, id: NodeId) -> Evaluated {
        let span = self.program.span(id);
        // Lines may end inside brackets.
        let text = self.text(span.clone()).replace(['\n', '\r'], " ");
        text.parse().map(|map: LinearLayout| Value::from(map)).map_err(|error| match error {
            LayoutError::Syntax { at, expected } => {
                let place = (span.start + at).min(span.end)..span.end;
                Diagnostic::new("E0201", place.clone(), format!("expected {expected}"))
                    .label(place, "in a linear layout")
            }
            error => self.refuse(id, error),
        })
    }

    /// `scale@mode@mode`: the path is written innermost mode first.
    pub(super) fn step(&self, id: NodeId, path: &[NodeId], values: &[Value]) -> Evaluated {
        let refuse = |error: LayoutError| self.refuse(id, error);
        let scale = match values.first().and_then(single) {
            Some(scale) => scale,
            None => {
                let fault = Fault::Kind { argument: 0, wanted: "a number before '@'" };
                return Err(self.operation("", id, &[id], values).diagnose(fault));
            }
        };
        let mut along = ModePath::ROOT;
        for mode in path.iter().rev() {
            let number = self.program.node(*mode).integer().unwrap_or(0);
            let mode = usize::try_from(number).map_err(|_| {
                let span = self.program.span(*mode);
                Diagnostic::new("E0201", span.clone(), format!("{number} is not the number of a mode"))
                    .label(span, "must be 0 or more")
            })?;
            along = along.then(mode).map_err(refuse)?;
        }
        Ok(Value::from(CoordinateStep::step(scale, along)))
    }

    /// `a+b` and the other operators, for numbers and, for sums, coordinate steps. A tuple of one
    /// number is that number.
    pub(super) fn arithmetic(
        &self,
        id: NodeId,
        operator: Operator,
        operands: &[NodeId; 2],
        values: &[Value],
    ) -> Evaluated {
        let fault = |argument, wanted| {
            let diagnostic = self.operation("", id, operands, values).diagnose(Fault::Kind { argument, wanted });
            match values.get(argument) {
                Some(value) if is_map(value) => diagnostic.help("there is no arithmetic on layouts; see layout_add"),
                _ => diagnostic,
            }
        };
        let refused = |of_numbers: bool| match of_numbers {
            true => self.refuse(id, LayoutError::Overflow { op: "arithmetic" }),
            false => self.refuse(id, LayoutError::Expression { op: "arithmetic" }),
        };
        let overflow = || refused(false);
        let (Some(left), Some(right)) = (values.first(), values.get(1)) else { return Ok(Value::Bool(false)) };
        if let (Some(a), Some(b)) = (single(left), single(right)) {
            let overflow = || refused(a.known().is_some() && b.known().is_some());
            let toward_zero = |a: &Expr, b: &Expr| a.divide(b).map(|(quotient, _)| quotient);
            let divided = |rounded: fn(&Expr, &Expr) -> Option<Expr>| match quotient(&a, &b, rounded) {
                Ok(quotient) => Ok(Some(quotient)),
                Err(Unfit::Overflow) => Ok(None),
                Err(Unfit::Zero) => Err(self.zero_divisor(operands[1])),
                Err(Unfit::Unsettled) => Err(fault(1, "a divisor whose sign is known, such as M{min=1}")),
            };
            let result = match operator {
                Operator::Plus => a.plus(&b),
                Operator::Minus => a.minus(&b),
                Operator::Times => a.times(&b),
                Operator::Floor => divided(Expr::floor_div)?,
                Operator::Ceil => divided(|a, b| match a.less(&Expr::zero()).proved() {
                    // For a negative dividend, rounding toward zero is rounding up.
                    true => a.divide(b).map(|(quotient, _)| quotient),
                    false => a.divide_up(b),
                })?,
                Operator::Over => match (a.known(), b.known()) {
                    (Some(n), Some(d)) if n.checked_rem(d).is_some_and(|rest| rest != 0) => {
                        return Err(self.fraction(id, n, d));
                    }
                    _ => divided(toward_zero)?,
                },
                // The remainder has the sign of the dividend, and does not depend on the sign of
                // the divisor.
                Operator::Modulo => match b.less(&Expr::zero()).proved() {
                    // The smallest integer cannot be negated.
                    true if b.known() == Some(i64::MIN) => match a.known() {
                        Some(i64::MIN) => Some(Expr::zero()),
                        known => known.map(Expr::from),
                    },
                    true => Expr::zero().minus(&b).and_then(|b| a.divide(&b)).map(|(_, rest)| rest),
                    false => divided(|a, b| a.divide(b).map(|(_, rest)| rest))?,
                },
            };
            return result.map(Value::from).ok_or_else(overflow);
        }
        match (operator, single_step(left), single_step(right)) {
            (Operator::Plus, Some(a), Some(b)) => a.plus(&b).map(Value::from).ok_or_else(overflow),
            (Operator::Minus, Some(a), Some(b)) => {
                b.times(&Expr::from(-1)).and_then(|b| a.plus(&b)).map(Value::from).ok_or_else(overflow)
            }
            (Operator::Plus | Operator::Minus, None, _) => Err(fault(0, "a number or a coordinate step")),
            (Operator::Plus | Operator::Minus, ..) => Err(fault(1, "a number or a coordinate step")),
            _ if single(left).is_none() => Err(fault(0, "a number")),
            _ => Err(fault(1, "a number")),
        }
    }

    #[cold]
    fn zero_divisor(&self, divisor: NodeId) -> Diagnostic {
        let span = self.program.span(divisor);
        Diagnostic::new("E0214", span.clone(), "division by 0")
            .label(span, "this is 0")
            .help("a divisor may be negative, but not 0")
    }

    #[cold]
    fn fraction(&self, id: NodeId, numerator: i64, denominator: i64) -> Diagnostic {
        let span = self.program.span(id);
        let scale = self.source.get(span.end..).is_some_and(|rest| rest.trim_start().starts_with('@'));
        let code = if scale { "E0128" } else { "E0210" };
        Diagnostic::new(code, span.clone(), format!("{numerator}/{denominator} is not a whole number"))
            .label(span, "a fraction")
            .help("extents, strides and offsets are whole numbers; see recast_layout for elements of another width")
    }

    pub(super) fn numbers(&self, id: NodeId, items: List) -> Evaluated {
        let numbers = self.program.list(items).iter().filter_map(|item| self.program.node(*item).integer());
        Tree::flat(numbers).map(|tree| Value::Tree(tree.into())).map_err(|error| self.refuse(id, error))
    }

    /// `shape:stride`
    pub(super) fn pair(&self, id: NodeId, operands: &[NodeId], values: &[Value]) -> Evaluated {
        let diagnose = |fault: Fault| self.operation("", id, operands, values).diagnose(fault);
        let layout = match values {
            [Value::Tree(AnyTree::Integer(shape)), Value::Tree(AnyTree::Integer(stride))] => {
                Layout::new(shape, stride).map(Value::from)
            }
            [Value::Int(extent), Value::Int(stride)] => Layout::mode_of(*extent, *stride).map(Value::from),
            [shape, stride] => {
                let kind = |argument, wanted| diagnose(Fault::Kind { argument, wanted });
                let extents = any_tree(shape).filter(|_| launch_tree(shape).is_some());
                let extents = extents.ok_or_else(|| kind(0, "a shape before ':'"))?;
                let strides = any_tree(stride).ok_or_else(|| kind(1, "strides after ':'"))?;
                AnyLayout::new(&extents, &strides).map(Value::from)
            }
            _ => Ok(Value::Bool(false)),
        };
        layout.map_err(|error| diagnose(error.into()))
    }

    /// `domain -> codomain : images`
    pub(super) fn morphism(&self, id: NodeId, operands: &[NodeId; 2], images: Name, values: &[Value]) -> Evaluated {
        let diagnose = |fault: Fault| self.operation("", id, operands, values).diagnose(fault);
        let tuple = |argument: usize| {
            let tuple = values.get(argument).and_then(integer_tree);
            tuple.ok_or_else(|| diagnose(Fault::Kind { argument, wanted: "a tuple of known numbers beside '->'" }))
        };
        // Lines may end inside brackets.
        let text = self.text(images.span()).replace(['\n', '\r'], " ");
        NestMorphism::over_images(&tuple(0)?, &tuple(1)?, &text).map(Value::from).map_err(|error| match error {
            MorphismError::Syntax { at, .. } => {
                let place = (images.span().start + at).min(images.span().end);
                let error = diagnose(error.into());
                Diagnostic { span: place..images.span().end.max(place), labels: Vec::new(), ..error }
            }
            error => diagnose(error.into()),
        })
    }

    /// `[a;b]`
    pub(super) fn tiler(&self, id: NodeId, operands: &[NodeId], values: &[Value]) -> Evaluated {
        let wanted = |argument| Fault::Kind { argument, wanted: "a layout, an extent, '_' or a tiler" };
        let mut modes = Vec::with_capacity(values.len());
        let read = values.iter().enumerate().try_for_each(|(argument, value)| match tiler_of(value) {
            Some(Ok(tiler)) if tiler.coordinate().is_none() => Err(wanted(argument)),
            Some(Ok(tiler)) => {
                modes.push(tiler);
                Ok(())
            }
            Some(Err(error)) => Err(Fault::At(argument, error)),
            None => Err(wanted(argument)),
        });
        let tiler = read.and_then(|()| Ok(Value::from(AnyTiler::modes(&modes)?)));
        tiler.map_err(|fault| self.operation("", id, operands, values).diagnose(fault))
    }
}
