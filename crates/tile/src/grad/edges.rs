//! Which elements of a tile lie past the edge of a tensor.
//!
//! Law: if a mode of a value has an edge, its element `i` is one of a tile of a tensor at the
//! coordinate `at * extent + i` along a mode with `end` elements; operations that compute elements
//! one by one keep that. A sum along the mode leaves out the elements from `end` on: their
//! derivatives are 0, but 0 times what the program computes there may be NaN.

use std::collections::HashMap;

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Layout};

use super::prepare::each;
use crate::error::TileError;
use crate::program::{Index, Operation, Program, Statement, ValueId};

/// The edge along a mode of a value.
#[derive(Clone)]
pub(super) struct Edge {
    /// Which tile it is.
    pub(super) at: Index,
    /// The extent of the tile.
    pub(super) extent: i64,
    /// The extent of the tensor.
    pub(super) end: String,
}

/// A mode of a value.
type Mode = (ValueId, usize);

/// The modes that lie side by side, each set with the edge of one of them.
#[derive(Default)]
pub(super) struct Edges {
    parents: HashMap<Mode, Mode>,
    edges: HashMap<Mode, Edge>,
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
    pub(super) fn new(program: &Program) -> Result<Edges, TileError> {
        let ends = program.tensors.iter().map(|tensor| extents(&tensor.layout)).collect::<Result<Vec<_>, _>>()?;
        let mut edges = Edges::default();
        each(&program.body, &mut |statement| edges.statement(program, &ends, statement));
        Ok(edges)
    }

    /// The edge along a mode of a value, if elements may lie past it.
    pub(super) fn of(&self, value: ValueId, mode: usize) -> Option<&Edge> {
        self.edges.get(&self.root((value, mode)))
    }

    fn root(&self, mut mode: Mode) -> Mode {
        while let Some(parent) = self.parents.get(&mode) {
            mode = *parent;
        }
        mode
    }

    fn join(&mut self, a: Mode, b: Mode) {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return;
        }
        // The root with an edge stays one.
        let (child, root) = if self.edges.contains_key(&a) { (b, a) } else { (a, b) };
        self.edges.remove(&child);
        self.parents.insert(child, root);
    }

    fn side_by_side(&mut self, a: ValueId, b: ValueId, rank: usize) {
        (0..rank).for_each(|mode| self.join((a, mode), (b, mode)));
    }

    /// Marks a mode that is a mode of a tensor's tile.
    fn mark(&mut self, mode: Mode, (at, extent, end): (&Index, i64, &Expr)) {
        let inside = extent == 1 || end.known().is_some_and(|end| end % extent == 0);
        let root = self.root(mode);
        if !inside && !self.edges.contains_key(&root) {
            self.edges.insert(root, Edge { at: at.clone(), extent, end: end.to_string() });
        }
    }

    fn statement(&mut self, program: &Program, ends: &[Vec<Expr>], statement: &Statement) {
        match statement {
            Statement::Let { result, operation, operands, .. } => {
                self.operation(program, ends, (*result, operation, operands));
            }
            Statement::Store { tensor, at, rows, value, .. } => {
                let shape = &program.type_of(*value).shape;
                for (mode, ((at, extent), end)) in at.iter().zip(shape).zip(&ends[*tensor]).enumerate() {
                    if rows.is_none_or(|(own, _)| own != mode) {
                        self.mark((*value, mode), (at, *extent, end));
                    }
                }
            }
            Statement::Loop(own) => {
                for (((initial, parameter), next), result) in
                    own.initial.iter().zip(&own.parameters).zip(&own.next).zip(&own.results)
                {
                    let rank = program.type_of(*initial).shape.len();
                    [parameter, next, result].into_iter().for_each(|other| self.side_by_side(*initial, *other, rank));
                }
            }
        }
    }

    fn operation(
        &mut self,
        program: &Program,
        ends: &[Vec<Expr>],
        (result, operation, operands): (ValueId, &Operation, &[ValueId]),
    ) {
        let shape = &program.type_of(result).shape;
        match operation {
            Operation::Load { tensor, shape, at, .. } => {
                for (mode, ((at, extent), end)) in at.iter().zip(shape).zip(&ends[*tensor]).enumerate() {
                    self.mark((result, mode), (at, *extent, end));
                }
            }
            Operation::Gather { tensor, shape, at, mode: picked, .. } => {
                for (mode, ((at, extent), end)) in at.iter().zip(shape).zip(&ends[*tensor]).enumerate() {
                    if mode != *picked {
                        self.mark((result, mode), (at, *extent, end));
                    }
                }
            }
            Operation::Stage { tensor, shape, at, modes, .. } => {
                for (mode, own) in modes.iter().enumerate() {
                    self.mark((result, mode), (&at[*own], shape[*own], &ends[*tensor][*own]));
                }
            }
            Operation::Broadcast(_) => {
                let from = &program.type_of(operands[0]).shape;
                for mode in (0..from.len()).filter(|mode| from[*mode] == shape[*mode]) {
                    self.join((operands[0], mode), (result, mode));
                }
            }
            Operation::Reduce(_, modes) => {
                for mode in (0..shape.len()).filter(|mode| !modes.contains(mode)) {
                    self.join((operands[0], mode), (result, mode));
                }
            }
            Operation::Transpose(order) => {
                for (mode, from) in order.iter().enumerate() {
                    self.join((operands[0], *from), (result, mode));
                }
            }
            Operation::Reshape(_) => {
                // Extents of 1 come and go; others that stay in their order stay modes.
                let real = |shape: &[i64]| -> Vec<usize> { (0..shape.len()).filter(|own| shape[*own] > 1).collect() };
                let from = &program.type_of(operands[0]).shape;
                let (before, after) = (real(from), real(shape));
                if before.iter().map(|own| from[*own]).eq(after.iter().map(|own| shape[*own])) {
                    before.iter().zip(&after).for_each(|(a, b)| self.join((operands[0], *a), (result, *b)));
                }
            }
            Operation::Dot => {
                let [a, b, c] = operands else { return };
                self.join((*a, 0), (result, 0));
                self.join((*b, 1), (result, 1));
                self.join((*a, 1), (*b, 0));
                self.side_by_side(*c, result, 2);
            }
            Operation::Unary(_)
            | Operation::Binary(_)
            | Operation::MultiplyAdd
            | Operation::Select(_)
            | Operation::To(_)
            | Operation::Recast(_)
            | Operation::Scan(..)
            | Operation::ScanBefore(..)
            | Operation::Random(_)
            | Operation::Atom(_)
            | Operation::Held(_) => {
                operands.iter().for_each(|operand| self.side_by_side(*operand, result, shape.len()));
            }
            _ => {}
        }
    }
}
