//! Which elements of a derivative lie past the edge of an output.
//!
//! Law: if a mode of a derivative has an edge, the derivative is 0 from the edge on, but an element
//! that the program computes there may be NaN, because 0 times a value may be NaN. A sum along the
//! mode leaves these elements out. An input makes no edge, because elements past its edge may
//! count.

use std::collections::{HashMap, HashSet};

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Layout};

use crate::error::TileError;
use crate::program::{Binary, Index, Operation, Reduction, Unary, ValueId};

/// The edge along a mode. Element `i` of the mode has the coordinate `at * extent + i` along a mode
/// of a tensor that has `end` elements.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Edge {
    /// The index of the tile.
    pub(super) at: Index,
    /// The extent of the tile.
    pub(super) extent: i64,
    /// The extent of the tensor.
    pub(super) end: String,
}

/// The edge along each mode of a value; None if a mode has no edge.
pub(super) type Ends = Vec<Option<Edge>>;

/// The known edges of the values of a gradient.
#[derive(Default)]
pub(super) struct Edges {
    /// The extents of the tensors that hold derivatives with respect to outputs, by the numbers of
    /// the tensors.
    given: HashMap<usize, Vec<Expr>>,
    ends: HashMap<ValueId, Ends>,
    zeros: HashSet<ValueId>,
}

/// The extents of the modes of a tensor.
pub(super) fn extents(layout: &str) -> Result<Vec<Expr>, TileError> {
    let layout: Layout<Expr> = layout.parse()?;
    let shape = layout.shape();
    Ok(match shape.is_leaf() {
        true => vec![shape.product()?],
        false => shape.modes().map(|mode| mode.product()).collect::<Result<_, _>>()?,
    })
}

impl Edges {
    /// Records that a tensor holds the derivative with respect to an output.
    pub(super) fn give(&mut self, tensor: usize, layout: &str) -> Result<(), TileError> {
        self.given.insert(tensor, extents(layout)?);
        Ok(())
    }

    /// The edge along a mode of a value.
    pub(super) fn of(&self, value: ValueId, mode: usize) -> Option<&Edge> {
        self.ends.get(&value).and_then(|ends| ends.get(mode)?.as_ref())
    }

    /// Records the edges of the sum of a value over the iterations of a loop: those edges that are
    /// the same in each iteration.
    pub(super) fn sum(&mut self, result: ValueId, value: ValueId, is_same: impl Fn(&Index) -> bool) {
        if let Some(ends) = self.ends.get(&value) {
            let kept = ends.iter().map(|own| own.clone().filter(|own| is_same(&own.at))).collect();
            self.ends.insert(result, kept);
        }
    }

    /// Records the edges of a value, given the operation that computes it, its operands with their
    /// shapes, and its shape.
    pub(super) fn note(
        &mut self,
        (result, shape): (ValueId, &[i64]),
        operation: &Operation,
        operands: &[(ValueId, &[i64])],
    ) {
        let is_zero = |operand: usize| operands.get(operand).is_some_and(|(own, _)| self.zeros.contains(own));
        let zero = match operation {
            Operation::Constant(_, value) => *value == 0.0,
            Operation::Broadcast(_) | Operation::Reshape(_) => is_zero(0),
            _ => false,
        };
        if zero {
            self.zeros.insert(result);
        }
        let ends = self.ends_of(shape, operation, operands);
        if ends.iter().any(Option::is_some) {
            self.ends.insert(result, ends);
        }
    }

    fn ends_of(&self, shape: &[i64], operation: &Operation, operands: &[(ValueId, &[i64])]) -> Ends {
        let none = vec![None; shape.len()];
        let of = |operand: usize| match operands.get(operand) {
            Some((own, shape)) => self.ends.get(own).cloned().unwrap_or_else(|| vec![None; shape.len()]),
            None => none.clone(),
        };
        // A sum is 0 where both operands are 0. A constant 0 is 0 everywhere.
        let both = |a: usize, b: usize| -> Ends {
            let is_zero = |operand: usize| operands.get(operand).is_some_and(|(own, _)| self.zeros.contains(own));
            match (is_zero(a), is_zero(b)) {
                (true, _) => of(b),
                (_, true) => of(a),
                _ => of(a).into_iter().zip(of(b)).map(|(a, b)| a.filter(|a| Some(a) == b.as_ref())).collect(),
            }
        };
        match operation {
            Operation::Load { tensor, shape, at, .. } => self.loaded(*tensor, shape, at, &[]),
            Operation::Gather { tensor, shape, at, modes, .. } => self.loaded(*tensor, shape, at, modes),
            Operation::Unary(Unary::Negate | Unary::Abs)
            | Operation::To(_)
            | Operation::Atom(_)
            | Operation::Held(_)
            | Operation::Binary(Binary::Divide) => of(0),
            Operation::Binary(Binary::Multiply) => of(0).into_iter().zip(of(1)).map(|(a, b)| a.or(b)).collect(),
            Operation::Binary(Binary::Add | Binary::Subtract) => both(0, 1),
            Operation::Select(_) => both(2, 3),
            Operation::Broadcast(_) => match operands {
                [(_, from)] if from.len() == shape.len() => {
                    let kept = |(mode, own): (usize, Option<Edge>)| own.filter(|_| from[mode] == shape[mode]);
                    of(0).into_iter().enumerate().map(kept).collect()
                }
                _ => none,
            },
            Operation::Reduce(Reduction::Sum, modes) => {
                let kept = |(mode, own): (usize, Option<Edge>)| own.filter(|_| !modes.contains(&mode));
                of(0).into_iter().enumerate().map(kept).collect()
            }
            Operation::Scan(Reduction::Sum, along) | Operation::ScanBefore(Reduction::Sum, along) => {
                of(0).into_iter().enumerate().map(|(mode, own)| own.filter(|_| mode != *along)).collect()
            }
            Operation::Transpose(order) => order.iter().map(|mode| of(0).get(*mode).cloned().flatten()).collect(),
            Operation::Reshape(_) => {
                // A reshape may add or remove modes of extent 1. If the other extents keep their
                // order, the modes correspond.
                let real = |shape: &[i64]| -> Vec<usize> { (0..shape.len()).filter(|own| shape[*own] > 1).collect() };
                let Some((_, from)) = operands.first() else { return none };
                let (before, after, mut ends) = (real(from), real(shape), none.clone());
                if before.iter().map(|own| from[*own]).eq(after.iter().map(|own| shape[*own])) {
                    let own = of(0);
                    before.iter().zip(&after).for_each(|(a, b)| ends[*b] = own[*a].clone());
                }
                ends
            }
            Operation::Dot if operands.get(2).is_some_and(|(own, _)| self.zeros.contains(own)) => {
                vec![of(0)[0].clone(), of(1)[1].clone()]
            }
            _ => none,
        }
    }

    /// The edges of a tile of a tensor, if the tensor holds the derivative with respect to an
    /// output.
    fn loaded(&self, tensor: usize, shape: &[i64], at: &[Index], picked: &[usize]) -> Ends {
        let Some(ends) = self.given.get(&tensor) else { return vec![None; shape.len()] };
        let edge = |(mode, ((at, extent), end)): (usize, ((&Index, &i64), &Expr))| {
            let is_whole = *extent == 1 || end.known().is_some_and(|end| end % extent == 0);
            let edge = Edge { at: at.clone(), extent: *extent, end: end.to_string() };
            (!is_whole && !picked.contains(&mode)).then_some(edge)
        };
        at.iter().zip(shape).zip(ends).enumerate().map(edge).collect()
    }
}
